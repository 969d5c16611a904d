//! Groups of a live cluster as the planner sees them: with the same reads and the same decision as in the loop.

use kube::Client;
use kube::api::ListParams;
use tokio::sync::OnceCell;

use super::connection::{Connection, Failure};
use crate::api::node::NODE;
use crate::api::pod::POD;
use crate::api::runtime_class::{RUNTIME_CLASS, RuntimeClass};
use crate::api::scheduling::SchedulingPod;
use crate::api::volume::{
    CSI_DRIVER, CSI_STORAGE_CAPACITY, CsiDriver, CsiStorageCapacity, PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM,
    PersistentVolume, PersistentVolumeClaim, STORAGE_CLASS, StorageClass,
};
use crate::api::{Node, ObjectKind, Pod};
use crate::cluster::index::{Index, Readable};
use crate::cluster::objects::api;
use crate::cluster::read::devices::devices;
use crate::cluster::read::listing::{ClusterListing, list_cluster};
use crate::cluster::read::templates::{add_templates, templates};
use crate::cluster::read::{missing_pods, pod_groups};
use crate::fit::{Cluster, MOST_PODS};
use crate::model::{Group, GroupKey, IgnoredResources};
use crate::plan::Snapshot;
use crate::plan::devices::DeviceSight;
use crate::plan::gangs::TreeSnapshot;
use crate::plan::placement::{Capacity, Sight, VolumeSight, assume_sent};
use crate::report::{Findings, Picture, TreePicture};

/// The cluster's capacity, read at most once; `Err` is the reason why it cannot be read.
#[derive(Debug, Default)]
pub struct Rooms(OnceCell<Result<Capacity, String>>);

impl Rooms {
    /// Returns the capacity, and reads it on first use.
    pub async fn get(&self, connection: &Connection) -> &Result<Capacity, String> {
        self.0.get_or_init(|| room(connection, IgnoredResources::default())).await
    }
}

/// Lists the cluster; prints what could not be read.
pub async fn list(connection: &Connection, namespace: Option<&str>) -> Result<ClusterListing, Failure> {
    let seen = list_cluster(&connection.client, namespace, connection.serving()).await;
    let seen = seen.map_err(|error| connection.failure(&error))?;
    if seen.lacks_groups() {
        return Err(Failure::Other(
            "this cluster has neither RoleBasedGroups nor RoleCoordinations: `rolegate manifests --part crds` prints their definitions"
                .to_owned(),
        ));
    }
    if !seen.forbidden.is_empty() {
        let kinds: Vec<_> = seen.forbidden.iter().map(ObjectKind::crd_name).collect();
        eprintln!("rolegate: not read, since you may not: {}", kinds.join(", "));
    }
    Ok(seen)
}

/// Returns the group of this key, even if only pods name it.
pub fn picture(index: &Index, key: &GroupKey) -> Picture {
    with_makers(index, Picture::of(key, index.snapshot(key)))
}

fn with_makers(index: &Index, mut picture: Picture) -> Picture {
    if let Some(group) = picture.group() {
        let lacking = picture.seen.decision.missing_pods.iter().map(|of| &*of.role);
        picture.makers = missing_pods::makers(index, group, lacking);
    }
    picture
}

/// Diagnoses missing pods, awaited PodGroups of others, and the room for releasable pods. Unreadable objects are left
/// out.
pub async fn diagnose(picture: Picture, connection: &Connection, rooms: &Rooms) -> Picture {
    let needs_room = picture.needs_room();
    diagnosed(picture, connection, rooms, needs_room).await
}

/// Like [`diagnose`], for a single group: also counts how many batches fit while others go first.
pub async fn diagnose_alone(picture: Picture, connection: &Connection) -> Picture {
    let needs_room = picture.may_need_room();
    diagnosed(picture, connection, &Rooms::default(), needs_room).await
}

async fn diagnosed(picture: Picture, connection: &Connection, rooms: &Rooms, needs_room: bool) -> Picture {
    let Some(group) = picture.group().cloned() else { return picture };
    let client = &connection.client;
    let missing = &picture.seen.decision.missing_pods;
    let diagnoses = async {
        if missing.is_empty() {
            return Vec::new();
        }
        let missing = missing_pods::with_jobs(client, &group, missing).await;
        missing_pods::find(client, &group, &missing, &picture.makers).await.unwrap_or_default()
    };
    let awaited = picture.awaited_pod_groups();
    let (diagnoses, missing_owned) = tokio::join!(diagnoses, pod_groups::missing(client, &group, &awaited));
    let mut room = if needs_room { Some(rooms.get(connection).await.clone()) } else { None };
    if diagnoses.is_empty() && missing_owned.is_empty() && room.is_none() {
        return picture;
    }
    // Unreadable workloads omit only this answer.
    let into = match &room {
        Some(Ok(room)) => cluster(connection, &group, &picture.snapshot, room).await.ok(),
        _ => None,
    };
    let sight = room.as_mut().map(|room| match room {
        Ok(capacity) => Sight::Known(capacity),
        Err(why) => Sight::Refused(why),
    });
    let picture = picture.with(&Findings { diagnoses, missing_owned }, sight);
    match into {
        Some(cluster) => picture.fitted_into(&cluster),
        None => picture,
    }
}

/// Returns the PodGroup of a snapshot, even if only pods name it.
pub async fn tree(snapshot: TreeSnapshot, connection: &Connection, rooms: &Rooms) -> TreePicture {
    if snapshot.held().next().is_none() {
        return TreePicture::at_rest(snapshot);
    }
    TreePicture::of(snapshot, rooms.get(connection).await.as_ref().map_err(String::as_str))
}

/// Returns the group's existing pods, the pods that its workloads would create, and the room for them.
pub async fn cluster(
    connection: &Connection,
    group: &Group,
    snapshot: &Snapshot,
    room: &Capacity,
) -> Result<Cluster, Failure> {
    let templates = templates(&connection.client, group).await.map_err(|error| connection.failure(&error))?;
    let mut cluster = Cluster::seen(room, &group.key, &snapshot.pods, MOST_PODS);
    add_templates(&mut cluster, &templates).map_err(Failure::Other)?;
    Ok(cluster)
}

/// Reads the capacity of the cluster, or returns why it cannot be read. Resources that need not be on a node are these, or those
/// of the leader.
pub async fn room(connection: &Connection, ignored: IgnoredResources) -> Result<Capacity, String> {
    let client = &connection.client;
    let (nodes, pods) = (all::<Node>(client, NODE), all::<SchedulingPod>(client, POD));
    let (nodes, pods, serving) = tokio::join!(nodes, pods, connection.serving());
    let why = |error: kube::Error| connection.failure(&error).to_string();
    let mut capacity = Capacity::ignoring(ignored.or(serving.ignored_resources));
    // Unparsable nodes and pods are ignored, as in the loop.
    nodes.map_err(why)?.iter().for_each(|node| _ = capacity.apply_node(node));
    pods.map_err(why)?.iter().for_each(|pod| _ = capacity.apply_pod(pod));
    if capacity.has_claims() {
        Box::pin(see_volumes(client, &mut capacity)).await;
    }
    let classes = all::<RuntimeClass>(client, RUNTIME_CLASS).await;
    capacity.change_runtime_classes(|known| {
        match classes {
            Ok(classes) => classes.iter().for_each(|class| _ = known.apply(class)),
            Err(_) => known.sight = VolumeSight::Refused("runtimeclasses may not be read".into()),
        }
        true
    });
    // Pods that do not exist yet may ask for some as well.
    Box::pin(see_devices(client, &mut capacity)).await;
    assume_sent(&mut capacity);
    Ok(capacity)
}

/// Lists a kind in all namespaces.
async fn all<T: Readable>(client: &Client, kind: ObjectKind) -> kube::Result<Vec<T>> {
    Ok(api::<T>(client, kind, None).list(&ListParams::default()).await?.items)
}

/// Reads claims, volumes, classes and the room of drivers into `capacity`. When that is forbidden, the answer is given without them, and
/// says so.
async fn see_volumes(client: &Client, capacity: &mut Capacity) {
    let read = tokio::try_join!(
        all::<PersistentVolumeClaim>(client, PERSISTENT_VOLUME_CLAIM),
        all::<PersistentVolume>(client, PERSISTENT_VOLUME),
        all::<StorageClass>(client, STORAGE_CLASS),
        all::<CsiDriver>(client, CSI_DRIVER),
        all::<CsiStorageCapacity>(client, CSI_STORAGE_CAPACITY)
    );
    let Ok((claims, volumes, classes, drivers, space)) = read else { return };
    capacity.change_volumes(|known| {
        claims.iter().for_each(|claim| _ = known.apply_claim(claim));
        volumes.iter().for_each(|volume| _ = known.apply_volume(volume));
        classes.iter().for_each(|class| _ = known.apply_class(class));
        drivers.iter().for_each(|driver| _ = known.apply_driver(driver));
        space.iter().for_each(|space| _ = known.apply_space(space));
        known.sight = VolumeSight::Known;
        true
    });
}

/// Reads devices and claims on them into `capacity`. When that is forbidden, the answer is given without them, and says
/// so.
async fn see_devices(client: &Client, capacity: &mut Capacity) {
    let objects = devices(client).await;
    capacity.change_devices(|devices| {
        match objects {
            Ok(objects) => devices.apply_all(&objects.unwrap_or_default()),
            Err(why) => devices.sight = DeviceSight::Refused(why.into()),
        }
        true
    });
}

/// Returns all groups of an index, by namespace and name.
pub fn pictures(index: &Index) -> Vec<Picture> {
    let snapshots = index.snapshots().into_iter();
    snapshots.map(|(key, snapshot)| with_makers(index, Picture::of(&key, snapshot))).collect()
}

/// Returns the group of this name; the group's own key comes before the name of its carrier.
pub fn named(index: &Index, namespace: &str, name: &str) -> Result<Picture, Failure> {
    let mut found: Vec<_> = pictures(index).into_iter().filter(|picture| picture.is_named(name)).collect();
    let by_key = found.iter().position(|picture| *picture.key.name == *name);
    match by_key.or((!found.is_empty()).then_some(0)) {
        Some(position) => Ok(found.swap_remove(position)),
        None => Err(Failure::Other(format!("group {name:?} is not in namespace {namespace:?}"))),
    }
}

/// Reads a pod.
pub async fn pod(connection: &Connection, name: &str) -> Result<Pod, Failure> {
    let pods = api::<Pod>(&connection.client, POD, Some(&connection.namespace));
    match pods.get_opt(name).await {
        Ok(Some(pod)) => Ok(pod),
        Ok(None) => Err(Failure::Other(format!("pod {name:?} is not in namespace {:?}", connection.namespace))),
        Err(error) => Err(connection.failure(&error)),
    }
}
