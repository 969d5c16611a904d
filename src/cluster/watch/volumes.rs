//! The watches of claims, volumes, classes, and the room of drivers for new volumes. They start once a pod to be placed has claims, and end with the watches of
//! nodes.

use kube::Client;
use tokio::sync::Notify;

use crate::api::volume::{CsiDriver, PersistentVolume, StorageClass, VOLUME_KINDS};
use crate::cluster::capacity::SharedCapacity;
use crate::cluster::index::{Change, Readable};
use crate::cluster::watch::readable::{all_readable, until_readable};
use crate::cluster::watch::{Selection, watch};
use crate::plan::placement::{VolumeSight, Volumes};

/// Fills the volumes of the capacity. Never returns.
pub(super) async fn follow(client: &Client, capacity: &SharedCapacity) {
    capacity.claims_asked().await;
    let see = |sight: VolumeSight| {
        capacity.write(|known| {
            known.capacity.change_volumes(|volumes| std::mem::replace(&mut volumes.sight, sight.clone()) != sight);
        });
    };
    until_readable(
        || all_readable(client, &VOLUME_KINDS),
        "wherever their volumes are",
        |why| see(VolumeSight::Refused(why.into())),
    )
    .await;
    see(VolumeSight::Awaited);
    tracing::info!("claims, volumes and their classes are watched: pods that are to be placed have claims");
    tokio::join!(
        one(client, capacity, 0, Volumes::keep_claims, Volumes::apply_claim, Volumes::remove_claim),
        one(client, capacity, 1, Volumes::keep_volumes, Volumes::apply_volume, |volumes, one: &PersistentVolume| {
            volumes.remove_volume(one.metadata.display_name())
        }),
        one(client, capacity, 2, Volumes::keep_classes, Volumes::apply_class, |volumes, one: &StorageClass| {
            volumes.remove_class(one.metadata.display_name())
        }),
        one(client, capacity, 3, Volumes::keep_drivers, Volumes::apply_driver, |volumes, one: &CsiDriver| {
            volumes.remove_driver(one.metadata.display_name())
        }),
        one(client, capacity, 4, Volumes::keep_space, Volumes::apply_space, Volumes::remove_space),
    );
}

/// Watches one of the kinds. `apply` and `remove` return true when the volumes changed.
async fn one<T: Readable>(
    client: &Client,
    capacity: &SharedCapacity,
    sort: usize,
    keep: impl Fn(&mut Volumes, &[T]) + Sync,
    apply: impl Fn(&mut Volumes, &T) -> bool + Sync,
    remove: impl Fn(&mut Volumes, &T) -> bool + Sync,
) {
    let Some(kind) = VOLUME_KINDS.get(sort) else { return };
    let take = |volumes: &mut Volumes, change: &Change<T>| {
        if let Change::Listed(all) = change {
            keep(volumes, all);
        }
        let mut is_news = change.gone().is_some_and(|one| remove(volumes, one));
        change.there().iter().for_each(|one| is_news |= apply(volumes, one));
        if let Some(served) = change.is_served() {
            volumes.are_listed(sort);
            is_news = served;
        }
        is_news
    };
    watch::<T>(client, Selection::all(*kind), &Notify::new(), |change| {
        capacity.write(|known| known.capacity.change_volumes(|volumes| take(volumes, &change)));
    })
    .await;
}
