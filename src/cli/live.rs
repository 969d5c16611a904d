//! Groups of a live cluster as the planner sees them: the same reads and the same decision as the loop's.

use std::sync::Arc;
use std::time::Duration;

use kube::api::ListParams;
use tokio::sync::OnceCell;

use super::connection::{Connection, Failure};
use crate::api::node::NODE;
use crate::api::pod::POD;
use crate::api::scheduling::SchedulingPod;
use crate::api::{Node, ObjectKind, Pod};
use crate::cluster::index::Index;
use crate::cluster::read::listing::{ClusterListing, list_cluster};
use crate::cluster::read::makers::{add_makers, makers};
use crate::cluster::read::{missing_pods, pod_groups};
use crate::cluster::watch::watched::api;
use crate::fit::{Cluster, Fitted, MOST_PODS, fit};
use crate::model::{Group, GroupKey, WorkloadKey};
use crate::plan::decide::pod_groups::awaited;
use crate::plan::gangs::{self, TreeDecision, TreeSnapshot};
use crate::plan::placement::{Capacity, Line, Placer, Sight};
use crate::plan::rollout::Edit;
use crate::plan::status::conditions::says_stalled;
use crate::plan::{
    Batch, DecisionContext, Diagnosis, Evaluation, Held, MissingPodGroup, Observation, Snapshot, evaluate,
};

/// Batches of which it is said how many fit.
const MOST_FITTED: usize = 100;

/// A group with what would be decided about it now.
#[derive(Debug)]
pub struct Picture {
    /// Its name.
    pub key: GroupKey,
    /// What is seen of it.
    pub snapshot: Snapshot,
    /// What is observed of it, and what would be decided now.
    pub seen: Evaluation,
    /// Its batches.
    pub batches: Vec<Batch>,
    /// How many of its batches fit, where they go only where there is room; empty where nobody has looked.
    pub fitted: Vec<Fitted>,
    /// The workloads of the roles that lack pods.
    makers: Vec<Option<WorkloadKey>>,
}

/// What room there is, read once for all who ask; `Err` says why it cannot be read.
#[derive(Debug, Default)]
pub struct Rooms(OnceCell<Result<Capacity, String>>);

impl Rooms {
    /// What room there is.
    pub async fn get(&self, connection: &Connection) -> &Result<Capacity, String> {
        self.0.get_or_init(|| room(connection)).await
    }
}

/// Lists the cluster, and says what could not be read.
pub async fn list(connection: &Connection, namespace: Option<&str>) -> Result<ClusterListing, Failure> {
    let seen = list_cluster(&connection.client, namespace).await.map_err(|error| connection.failure(&error))?;
    if seen.lacks_groups() {
        return Err(Failure::Other(
            "this cluster has neither RoleBasedGroups nor RoleCoordinations: `rolegate crds` prints their definitions"
                .to_owned(),
        ));
    }
    if !seen.forbidden.is_empty() {
        let kinds: Vec<_> = seen.forbidden.iter().map(ObjectKind::crd_name).collect();
        eprintln!("rolegate: not read, since you may not: {}", kinds.join(", "));
    }
    Ok(seen)
}

impl Picture {
    /// The group of this key, whether its object is there or only pods that name it.
    pub fn of(index: &Index, key: &GroupKey) -> Self {
        let mut picture = Self::decided(key, index.snapshot(key), &[], &[], None);
        if let Some(group) = picture.group() {
            picture.makers =
                missing_pods::makers(index, group, picture.seen.decision.missing_pods.iter().map(|of| &*of.role));
        }
        picture
    }

    fn decided(
        key: &GroupKey,
        snapshot: Snapshot,
        diagnoses: &[Diagnosis],
        missing_pod_groups: &[MissingPodGroup],
        room: Option<Result<Capacity, String>>,
    ) -> Self {
        let Some(claims) = &snapshot.claims else {
            let seen = Evaluation::of_missing(key, &snapshot);
            let (batches, fitted, makers) = (Vec::new(), Vec::new(), Vec::new());
            return Self { key: key.clone(), batches, seen, snapshot, fitted, makers };
        };
        let group = &claims.group;
        // When the loop first saw an edit, nobody else knows.
        let observation = Observation::of(group, &snapshot, |_| None, |_| Edit::long_ago());
        let stalled = says_stalled(&group.status);
        let context = DecisionContext {
            faults: &snapshot.faults,
            missing_layers: &snapshot.missing_layers,
            domain_keys: &snapshot.domain_keys,
            stalled,
            missing_pod_groups,
            diagnoses,
            ..DecisionContext::default()
        };
        // Who else waits for room, and for how long, only the loop knows.
        let (mut room, mut line) = (room, Line::default());
        let sight = room.as_mut().map(|room| match room {
            Ok(capacity) => Sight::Known(capacity),
            Err(why) => Sight::Refused(why),
        });
        let mut placer = sight.map(|sight| Placer::new(key.clone(), sight, &mut line, false, Duration::ZERO));
        let seen = evaluate(group, observation, context, placer.as_mut());
        let batches = seen.batches(group);
        Self { key: key.clone(), batches, seen, snapshot, fitted: Vec::new(), makers: Vec::new() }
    }

    /// Finds out why pods do not appear that may run, which PodGroups others wait for, and whether there is room for those that
    /// may go. What cannot be read is left out.
    pub async fn diagnose(self, connection: &Connection, rooms: &Rooms) -> Self {
        let needs_room = self.needs_room();
        self.diagnosed(connection, rooms, needs_room).await
    }

    /// The same of a group that is looked at alone: how many of its batches fit is said also while others go before them.
    pub async fn diagnose_alone(self, connection: &Connection) -> Self {
        let is_placed = |group: &Arc<Group>| group.batched().any(|(_, batching)| batching.placed_in().is_some());
        let looks = self.group().is_some_and(is_placed) && self.snapshot.pods.held().next().is_some();
        self.diagnosed(connection, &Rooms::default(), looks).await
    }

    async fn diagnosed(self, connection: &Connection, rooms: &Rooms, needs_room: bool) -> Self {
        let Some(group) = self.group() else { return self };
        let decision = &self.seen.decision;
        let diagnoses = async {
            match decision.missing_pods.as_slice() {
                [] => Vec::new(),
                missing => {
                    missing_pods::find(&connection.client, group, missing, &self.makers).await.unwrap_or_default()
                }
            }
        };
        let awaited = awaited(group, &decision.release);
        let (diagnoses, missing) = tokio::join!(diagnoses, pod_groups::missing(&connection.client, group, &awaited));
        let room = if needs_room { Some(rooms.get(connection).await.clone()) } else { None };
        if diagnoses.is_empty() && missing.is_empty() && room.is_none() {
            return self;
        }
        let mut fitted = Vec::new();
        if let Some(Ok(room)) = &room {
            let keys = self.snapshot.domain_keys.iter().cloned().collect();
            // What cannot be read of its workloads keeps back this answer alone.
            let cluster = cluster(connection, group, &self.snapshot, room).await;
            fitted = cluster.map(|cluster| fit(group, &keys, &cluster, MOST_FITTED)).unwrap_or_default();
            fitted.retain(|fitted| fitted.key.is_some());
        }
        Self { fitted, ..Self::decided(&self.key, self.snapshot, &diagnoses, &missing, room) }
    }

    /// True when a pod may go, of a batch that goes only where there is room for it.
    fn needs_room(&self) -> bool {
        let is_placed = |group: &Arc<Group>, role: &str| {
            group.batchings_of(role).any(|(_, batching)| batching.placed_in().is_some())
        };
        let mut release = self.seen.decision.release.iter();
        self.group().is_some_and(|group| release.any(|release| is_placed(group, release.pod.role())))
    }

    /// The group, as its controlling object carries it.
    pub fn group(&self) -> Option<&Arc<Group>> {
        Some(&self.snapshot.claims.as_ref()?.group)
    }

    /// Pods that stay held, as the status of the group counts them: of those with our gate all but the ones that go now.
    pub fn held_pods(&self) -> u32 {
        self.seen.decision.held.iter().map(Held::count).sum()
    }

    /// `RoleBasedGroup pd`: what to look at with kubectl.
    pub fn carrier(&self) -> Option<(&'static str, &str)> {
        let carrier = &self.group()?.carrier;
        Some((carrier.kind.kind, &carrier.name))
    }

    /// True when it is of this name, or carried by an object of this name.
    pub fn is_named(&self, name: &str) -> bool {
        *self.key.name == *name || self.group().is_some_and(|group| group.carrier.name == name)
    }

    /// True when rolegate coordinates anything in it, or holds any of its pods.
    pub fn concerns_us(&self) -> bool {
        self.held_pods() > 0 || self.group().is_some_and(|group| !group.coordinations.is_empty())
    }
}

/// A KAI PodGroup that places its pods, with what would be decided about it now.
#[derive(Debug)]
pub struct TreePicture {
    /// What is seen of it.
    pub snapshot: TreeSnapshot,
    /// What becomes of its held pods; `Err` says why that is not known.
    pub decision: Result<TreeDecision, String>,
}

impl TreePicture {
    /// The PodGroup of this key, whether it is there or only pods that name it.
    pub async fn of(snapshot: TreeSnapshot, connection: &Connection, rooms: &Rooms) -> Self {
        let is_held = snapshot.held().next().is_some();
        // Who else waits for room, and for how long, only the loop knows.
        let decide = |room: &Capacity| gangs::decide(&snapshot, room, None);
        let decision = if is_held {
            rooms.get(connection).await.as_ref().map(decide).map_err(Clone::clone)
        } else {
            Ok(TreeDecision::default())
        };
        Self { snapshot, decision }
    }
}

/// All PodGroups of an index that place pods, by namespace and name; those of one name where it is given.
pub fn trees(index: &Index, name: Option<&str>) -> Vec<TreeSnapshot> {
    let mut keys: Vec<_> = index.tree_keys().iter().filter_map(GroupKey::pod_group).collect();
    keys.retain(|key| name.is_none_or(|name| *key.name == *name));
    keys.sort();
    keys.iter().map(|key| index.tree_snapshot(key)).collect()
}

/// The pods of a group that are there, those that its workloads would make, and the room for them.
pub async fn cluster(
    connection: &Connection,
    group: &Group,
    snapshot: &Snapshot,
    room: &Capacity,
) -> Result<Cluster, Failure> {
    let makers = makers(&connection.client, group).await.map_err(|error| connection.failure(&error))?;
    let mut cluster = Cluster::seen(room, &group.key, &snapshot.pods, MOST_PODS);
    add_makers(&mut cluster, makers).map_err(Failure::Other)?;
    Ok(cluster)
}

/// What room there is, or why that cannot be read.
pub async fn room(connection: &Connection) -> Result<Capacity, String> {
    let (all, client) = (ListParams::default(), &connection.client);
    let (nodes, pods) = (api::<Node>(client, NODE, None), api::<SchedulingPod>(client, POD, None));
    let (nodes, pods) = tokio::join!(nodes.list(&all), pods.list(&all));
    let why = |error: kube::Error| connection.failure(&error).to_string();
    let mut capacity = Capacity::default();
    // What cannot be read counts as the loop counts it: not at all.
    nodes.map_err(why)?.items.iter().for_each(|node| _ = capacity.apply_node(&node.object));
    pods.map_err(why)?.items.iter().for_each(|pod| _ = capacity.apply_pod(&pod.object));
    Ok(capacity)
}

/// All groups of an index, by namespace and name.
pub fn pictures(index: &Index) -> Vec<Picture> {
    let mut keys: Vec<_> = index.keys().into_iter().collect();
    keys.sort();
    keys.iter().map(|key| Picture::of(index, key)).collect()
}

/// The groups of this name; there may be two, when one object carries the coordination of another's name.
pub fn named(index: &Index, namespace: &str, name: &str) -> Result<Picture, Failure> {
    let mut found: Vec<_> = pictures(index).into_iter().filter(|picture| picture.is_named(name)).collect();
    let by_key = found.iter().position(|picture| *picture.key.name == *name);
    match by_key.or((!found.is_empty()).then_some(0)) {
        Some(position) => Ok(found.swap_remove(position)),
        None => Err(Failure::Other(format!("group {name:?} is not in namespace {namespace:?}"))),
    }
}

/// A pod.
pub async fn pod(connection: &Connection, name: &str) -> Result<Pod, Failure> {
    let pods = api::<Pod>(&connection.client, POD, Some(&connection.namespace));
    match pods.get_opt(name).await {
        Ok(Some(pod)) => Ok(pod.object),
        Ok(None) => Err(Failure::Other(format!("pod {name:?} is not in namespace {:?}", connection.namespace))),
        Err(error) => Err(connection.failure(&error)),
    }
}
