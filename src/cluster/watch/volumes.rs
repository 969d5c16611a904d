//! The watches of claims, volumes and classes. They start once a pod to be placed has claims, and end with the watches of
//! nodes.

use std::fmt::Debug;

use kube::Client;
use serde::de::DeserializeOwned;
use tokio::sync::Notify;

use crate::api::volume::{
    PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM, PersistentVolume, PersistentVolumeClaim, STORAGE_CLASS, StorageClass,
};
use crate::api::{Object, ObjectKind};
use crate::cluster::capacity::SharedCapacity;
use crate::cluster::index::Change;
use crate::cluster::watch::readable::{REFUSED_PAUSE, refusal};
use crate::cluster::watch::stream::watch;
use crate::cluster::watch::watched::api;
use crate::plan::placement::{VolumeSight, Volumes};

/// The kinds. The position of each is its argument of `Volumes::are_listed`.
const KINDS: [ObjectKind; 3] = [PERSISTENT_VOLUME_CLAIM, PERSISTENT_VOLUME, STORAGE_CLASS];

/// Fills the volumes of the capacity. Never returns.
pub(super) async fn follow(client: &Client, capacity: &SharedCapacity) {
    capacity.claims_asked().await;
    let see = |sight: VolumeSight| {
        capacity.write(|known| {
            known.capacity.change_volumes(|volumes| std::mem::replace(&mut volumes.sight, sight.clone()) != sight);
        });
    };
    while let Some(why) = refusal(client, &KINDS).await {
        see(VolumeSight::Refused(why.into()));
        tokio::time::sleep(REFUSED_PAUSE).await;
    }
    see(VolumeSight::Awaited);
    tracing::info!("claims, volumes and their classes are watched: pods that are to be placed have claims");
    tokio::join!(
        one(client, capacity, 0, |volumes, change: &Change<PersistentVolumeClaim>| match change {
            Change::Listed(all) => {
                volumes.keep_claims(all);
                all.iter().for_each(|one| _ = volumes.apply_claim(one));
                true
            }
            Change::Applied(one) => volumes.apply_claim(one),
            Change::Deleted(one) => volumes.remove_claim(one),
            Change::NotServed => false,
        }),
        one(client, capacity, 1, |volumes, change: &Change<PersistentVolume>| match change {
            Change::Listed(all) => {
                volumes.keep_volumes(all);
                all.iter().for_each(|one| _ = volumes.apply_volume(one));
                true
            }
            Change::Applied(one) => volumes.apply_volume(one),
            Change::Deleted(one) => volumes.remove_volume(one.metadata.display_name()),
            Change::NotServed => false,
        }),
        one(client, capacity, 2, |volumes, change: &Change<StorageClass>| match change {
            Change::Listed(all) => {
                volumes.keep_classes(all);
                all.iter().for_each(|one| _ = volumes.apply_class(one));
                true
            }
            Change::Applied(one) => volumes.apply_class(one),
            Change::Deleted(one) => volumes.remove_class(one.metadata.display_name()),
            Change::NotServed => false,
        }),
    );
}

async fn one<T>(
    client: &Client,
    capacity: &SharedCapacity,
    sort: usize,
    take: impl Fn(&mut Volumes, &Change<T>) -> bool,
) where
    T: Object + Clone + Debug + DeserializeOwned + Send + 'static,
{
    let Some(kind) = KINDS.get(sort) else { return };
    let never = Notify::new();
    watch(api::<T>(client, *kind, None), None, &never, |change| {
        capacity.write(|known| {
            known.capacity.change_volumes(|volumes| {
                let changed = take(volumes, &change);
                if matches!(change, Change::Listed(_) | Change::NotServed) {
                    volumes.are_listed(sort);
                }
                changed
            });
        });
    })
    .await;
}
