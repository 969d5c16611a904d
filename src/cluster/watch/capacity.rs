//! The watches of nodes, of all pods, and of RuntimeClasses. They run while anything is to be placed, and some time longer.

use std::time::Duration;

use kube::Client;
use tokio::sync::{Notify, watch as told};

use crate::api::node::NODE;
use crate::api::pod::POD;
use crate::api::runtime_class::{RUNTIME_CLASS, RuntimeClass};
use crate::api::scheduling::SchedulingPod;
use crate::api::volume::VOLUME_KINDS;
use crate::api::{Node, Object};
use crate::cluster::capacity::{KnownCapacity, SharedCapacity, Wish};
use crate::cluster::index::Change;
use crate::cluster::watch::cache_age::CacheAges;
use crate::cluster::watch::readable::{all_readable, until_readable};
use crate::cluster::watch::{Selection, devices, volumes, watch};
use crate::plan::devices::DeviceSight;
use crate::plan::placement::{RuntimeClasses, VolumeSight};

/// Time for which the watches go on after nothing is to be placed: the next batch is seldom far away.
const REST: Duration = Duration::from_secs(300);

/// Fills the capacity while a reader wants it. Never returns.
pub async fn keep(client: Client, ages: CacheAges, capacity: SharedCapacity) {
    let (mut wishes, mut asked) = (capacity.wishes(), 0);
    while wanted(&mut wishes, &mut asked).await {
        tracing::info!("nodes and pods are watched: there is something to place");
        tokio::select! {
            () = follow(&client, &capacity) => {}
            () = no_longer(&mut wishes, &mut asked) => {}
        }
        tracing::info!("nodes and pods are watched no longer: there is nothing to place");
        capacity.write(|known| *known = KnownCapacity::ignoring(known.capacity.room().ignored));
        let kinds = [NODE, POD].into_iter().chain(VOLUME_KINDS).chain([RUNTIME_CLASS]);
        kinds.chain(devices::kinds()).for_each(|kind| ages.stopped(kind));
    }
}

/// Waits until the capacity is wanted: for placement, or by a new call of `ask`. Returns false when all senders are gone.
async fn wanted(wishes: &mut told::Receiver<Wish>, asked: &mut u64) -> bool {
    let before = *asked;
    let wish = wishes.wait_for(|wish| wish.to_place || wish.asked != before).await.map(|wish| *wish);
    *asked = wish.as_ref().map_or(before, |wish| wish.asked);
    wish.is_ok()
}

/// Waits until the capacity has not been wanted for [`REST`].
async fn no_longer(wishes: &mut told::Receiver<Wish>, asked: &mut u64) {
    loop {
        let gone = wishes.wait_for(|wish| !wish.to_place).await.is_err();
        let again = tokio::time::timeout(REST, wanted(wishes, asked)).await;
        if gone || again.is_err() {
            return;
        }
    }
}

async fn follow(client: &Client, capacity: &SharedCapacity) {
    until_readable(
        || all_readable(client, &[NODE, POD]),
        "without a place",
        |why| capacity.write(|known| known.refused = Some(why)),
    )
    .await;
    capacity.write(|known| {
        known.refused = None;
        known.capacity.change_volumes(|volumes| {
            volumes.sight = VolumeSight::Awaited;
            false
        });
        known.capacity.change_devices(|devices| {
            devices.sight = DeviceSight::Awaited;
            false
        });
        known.capacity.change_runtime_classes(|classes| {
            classes.sight = VolumeSight::Awaited;
            false
        });
    });
    let (never, nodes_listed) = (Notify::new(), Notify::new());
    let nodes = watch::<Node>(client, Selection::all(NODE), &never, |change| {
        capacity.write(|known| node_change(known, &change));
        nodes_listed.notify_one();
    });
    let pods = async {
        // Pods count on known nodes only.
        nodes_listed.notified().await;
        watch::<SchedulingPod>(client, Selection::all(POD), &never, |change| {
            capacity.write(|known| pod_change(known, &change));
        })
        .await;
    };
    let classes = follow_runtime_classes(client, capacity);
    tokio::join!(nodes, pods, volumes::follow(client, capacity), devices::follow(client, capacity), classes);
}

fn node_change(known: &mut KnownCapacity, change: &Change<Node>) {
    if let Change::Listed(nodes) = change {
        known.capacity.keep_nodes(&nodes.iter().map(|node| node.metadata.display_name()).collect());
        known.nodes_listed = true;
    }
    change.gone().into_iter().for_each(|node| known.capacity.remove_node(node.metadata.display_name()));
    for node in change.there() {
        if let Err(error) = known.capacity.apply_node(node) {
            tracing::warn!(node = node.metadata.display_name(), %error, "nothing is placed on a node that cannot be read");
        }
    }
}

fn pod_change(known: &mut KnownCapacity, change: &Change<SchedulingPod>) {
    fn uid(pod: &SchedulingPod) -> &str {
        pod.metadata.uid.as_deref().unwrap_or_default()
    }
    if let Change::Listed(pods) = change {
        known.capacity.keep_pods(&pods.iter().map(uid).collect());
        known.pods_listed = true;
    }
    change.gone().into_iter().for_each(|pod| known.capacity.remove_pod(uid(pod)));
    for pod in change.there() {
        if let Err(error) = known.capacity.apply_pod(pod) {
            let (namespace, name) = (pod.metadata.namespace(), pod.metadata.display_name());
            tracing::warn!(namespace, name, %error, "room of a pod that cannot be read does not count");
        }
    }
}

/// Fills the RuntimeClasses of the capacity. Never returns.
async fn follow_runtime_classes(client: &Client, capacity: &SharedCapacity) {
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
    watch::<RuntimeClass>(client, Selection::all(RUNTIME_CLASS), &Notify::new(), |change| {
        capacity.write(|known| known.capacity.change_runtime_classes(|classes| take_class(classes, &change)));
    })
    .await;
}

fn take_class(known: &mut RuntimeClasses, change: &Change<RuntimeClass>) -> bool {
    match change {
        Change::Listed(all) => known.set_all(all),
        Change::NotServed => known.set_all(&[]),
        Change::Applied(one) => return known.apply(one),
        Change::Deleted(one) => return known.remove(one.meta().display_name()),
    }
    true
}
