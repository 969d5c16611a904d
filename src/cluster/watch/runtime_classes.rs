//! The watch of RuntimeClasses, with the watches of nodes.

use kube::Client;
use tokio::sync::Notify;

use crate::api::Object;
use crate::api::runtime_class::{RUNTIME_CLASS, RuntimeClass};
use crate::cluster::capacity::SharedCapacity;
use crate::cluster::index::Change;
use crate::cluster::watch::readable::{all_readable, until_readable};
use crate::cluster::watch::{Asked, watch};
use crate::plan::placement::{RuntimeClasses, VolumeSight};

/// Fills the RuntimeClasses of the capacity. Never returns.
pub(super) async fn follow(client: &Client, capacity: &SharedCapacity) {
    let see = |sight: VolumeSight| {
        capacity.write(|known| {
            known.capacity.change_runtime_classes(|known| std::mem::replace(&mut known.sight, sight.clone()) != sight);
        });
    };
    until_readable(
        || all_readable(client, &[RUNTIME_CLASS]),
        "whatever RuntimeClasses add to pods that are to be made",
        |why| see(VolumeSight::Refused(why.into())),
    )
    .await;
    see(VolumeSight::Awaited);
    watch::<RuntimeClass>(client, Asked::all(RUNTIME_CLASS), &Notify::new(), |change| {
        capacity.write(|known| known.capacity.change_runtime_classes(|classes| take(classes, &change)));
    })
    .await;
}

fn take(known: &mut RuntimeClasses, change: &Change<RuntimeClass>) -> bool {
    match change {
        Change::Listed(all) => known.set_all(all),
        Change::NotServed => known.set_all(&[]),
        Change::Applied(one) => return known.apply(one),
        Change::Deleted(one) => return known.remove(one.meta().display_name()),
    }
    true
}
