//! The API server: objects with versions and unique ids, and a log of changes for the watches.

use std::collections::HashMap;
use std::sync::OnceLock;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{OwnerReference, Time};
use kube::core::{ObjectMeta, Status};
use rolegate::api::pod_group::KUBE_POD_GROUP;
use rolegate::api::{ConditionedObject, ObjectKind};
use rolegate::cluster::read::pod_groups::stays;
use rolegate::plan::reconcile::owned_memory::FoundOwned;

use crate::lockstep::Ledger;
use crate::machines::Machine;
use crate::nature::is_gated;
use crate::prelude::*;
use crate::sets::Set;

/// An event of a watch.
#[derive(Clone, Debug)]
pub enum Event {
    Pod(Arc<Pod>),
    PodGone(Arc<Pod>),
    Group(Arc<Stored>),
    GroupGone(Arc<Stored>),
    /// Desired replicas of the workload of a role.
    Workload(usize, u32),
    /// A claimed StatefulSet.
    Set(Arc<Set>),
    /// Whether the namespace is let go, and whether by its mode label.
    Ignored(bool, bool),
    Machine(Machine),
    /// An object that groups wait for.
    Object(Arc<ConditionedObject>),
    ObjectGone(Arc<ConditionedObject>),
}

/// Number of watches: pods, groups, StatefulSets, LeaderWorkerSets, Deployments, namespaces that opted out.
pub const WATCHES: usize = 6;
/// Index of the watch of namespaces that opted out.
pub const NAMESPACES: usize = 5;

/// Index of the log of nodes.
pub const MACHINES: usize = 6;
/// Index of the log of the objects that groups wait for.
pub const OBJECTS: usize = 7;

#[derive(Default)]
pub struct Server {
    pub setup: Setup,
    pub version: u64,
    uids: u32,
    pub group: Option<Arc<Stored>>,
    pub pods: BTreeMap<String, Arc<Pod>>,
    pub pod_groups: BTreeMap<String, ObjectMeta>,
    /// The minimum of members of each PodGroup.
    pub members: BTreeMap<String, u32>,
    /// The PodGroups of which a pod was ever released.
    pub begun: BTreeSet<String>,
    /// Owner and name of every PodGroup that ever existed.
    pub made: BTreeSet<(String, String)>,
    /// The owner of each object of a request for nodes.
    pub requests: BTreeMap<(ObjectKind, String), String>,
    /// Desired replicas of each workload.
    pub workloads: [u32; 3],
    /// The claimed StatefulSets of the first roles; empty in most histories.
    pub sets: Vec<Arc<Set>>,
    /// Running pods of Deployments that were deleted although others were marked for deletion.
    pub taken: Vec<String>,
    /// Unique ids of the pods at the start of a recovery, by coordination and batch.
    pub old: BTreeMap<(String, u32), BTreeSet<String>>,
    /// The committed cohorts of the sets' pods.
    pub ledger: Ledger,
    /// The revision from which the rollout of a role went back, and the unique ids of its pods that are left.
    pub tried: BTreeMap<usize, (String, BTreeSet<String>)>,
    pub ignored: bool,
    pub was_ignored: bool,
    /// Number of times that it was ignored; every other time by its mode.
    pub ignores: u32,
    /// Whether pods may run without a committed count: the namespace was let go for a while, or another actor lifted
    /// gates.
    pub uncounted: bool,
    /// The nodes; empty in most histories.
    pub machines: Vec<Machine>,
    /// The objects that groups wait for, by name.
    pub objects: BTreeMap<String, Arc<ConditionedObject>>,
    pub now: Duration,
    /// Versions and events, by watch.
    pub log: [Vec<(u64, Event)>; WATCHES + 2],
    /// The version at which each pod was created, by unique id.
    born: HashMap<String, u64>,
    /// Every version of the group that was ever stored.
    pub history: HashMap<u64, Arc<Stored>>,
}

impl Server {
    pub fn new(setup: &Setup) -> Self {
        let (workloads, machines) = (setup.replicas, setup.machines());
        let mut server = Self { setup: setup.clone(), version: 100, workloads, machines, ..Self::default() };
        server.make_sets();
        server
    }

    pub fn next_version(&mut self) -> u64 {
        self.version += 1;
        self.version
    }

    fn next_uid(&mut self) -> String {
        self.uids += 1;
        format!("uid-{}", self.uids)
    }

    pub fn tell(&mut self, watch: usize, event: Event) {
        self.log[watch].push((self.version, event));
    }

    pub fn create_group(&mut self, wish: Wish, replicas: [u32; 3]) {
        let meta = Meta {
            name: Some(GROUP.to_owned()),
            namespace: Some(NAMESPACE.to_owned()),
            uid: Some(self.next_uid()),
            generation: Some(1),
            creation_timestamp: Some("2026-01-01T00:00:00Z".to_owned()),
            ..Meta::default()
        };
        let Setup { refers, makers, rolling, segments, readiness, .. } = self.setup;
        let stored = Stored { meta, wish, rolling, segments, replicas, refers, makers, readiness, ..Stored::default() };
        self.store_group(stored);
    }

    fn store_group(&mut self, stored: Stored) -> Arc<Stored> {
        let mut stored = stored.admitted();
        let version = self.next_version();
        stored.meta.resource_version = Some(version.to_string());
        (stored.object, stored.group) = (OnceLock::new(), OnceLock::new());
        let stored = Arc::new(stored);
        self.group = Some(stored.clone());
        self.history.insert(version, stored.clone());
        self.tell(1, Event::Group(stored.clone()));
        stored
    }

    pub fn edit_group(&mut self, edit: impl FnOnce(&mut Stored)) {
        let Some(group) = &self.group else { return };
        let mut stored = (**group).clone();
        edit(&mut stored);
        stored.meta.generation = stored.meta.generation.map(|generation| generation + 1);
        self.store_group(stored);
    }

    /// Ends the pause that the status of the group tells of, as `rolegate resume` does; returns false when it tells of none.
    pub fn resume(&mut self) -> bool {
        let Some(group) = self.group.clone() else { return false };
        let told = crate::steps::paused_since(&group.status).max(crate::canaries::paused_since(&group.status));
        let Some(told) = told else { return false };
        let now = crate::steps::now(self.now).max(told);
        self.annotate(names::ROLLOUT_RESUMED_AT, now.text());
        true
    }

    /// Annotates the object that carries the group, if there is one.
    pub fn annotate(&mut self, key: &str, value: String) {
        let Some(group) = &self.group else { return };
        let mut stored = (**group).clone();
        stored.meta.annotations.insert(key.to_owned(), value);
        self.store_group(stored);
    }

    pub fn delete_group(&mut self) {
        let Some(group) = self.group.take() else { return };
        self.uncounted = true;
        let version = self.next_version();
        let mut gone = (*group).clone();
        gone.object = OnceLock::new();
        gone.meta.resource_version = Some(version.to_string());
        self.tell(1, Event::GroupGone(Arc::new(gone)));
    }

    pub fn replace_group(&mut self) {
        if let Some(group) = self.group.clone() {
            self.delete_group();
            self.create_group(group.wish.clone(), group.replicas);
        }
    }

    /// Applies `PATCH …/status` with a JSON Merge Patch.
    pub fn patch_status(&mut self, name: &str, patch: &Value) -> Answered<Arc<Stored>> {
        assert_eq!(name, GROUP);
        let Some(group) = self.group.clone() else { return Err(refusal(404, "")) };
        let meta = &patch["metadata"];
        if meta["resourceVersion"].as_str().is_some_and(|version| version != group.version().to_string()) {
            return Err(refusal(409, ""));
        }
        if meta["uid"].as_str().is_some_and(|uid| uid != group.uid()) {
            return Err(refusal(422, "metadata.uid"));
        }
        let mut status = serde_json::to_value(&group.status).unwrap();
        json_patch::merge(&mut status, &patch["status"]);
        let status: GroupStatus = serde_json::from_value(status).unwrap();
        if status == group.status {
            return Ok(group);
        }
        Ok(self.store_group(Stored { status, ..(*group).clone() }))
    }

    /// Applies a `POST` of a PodGroup, or the `PATCH` of its members; returns false when the old one is not yet deleted.
    pub fn ensure_pod_group(&mut self, owner: &str, name: &str, members: u32, may_rise: bool) -> bool {
        if let Some(present) = self.pod_groups.get(name) {
            let stays = stays(present, owner);
            if stays {
                self.set_members(name, members, may_rise);
            }
            return stays;
        }
        self.members.insert(name.to_owned(), members);
        let owners = vec![OwnerReference { uid: owner.to_owned(), ..OwnerReference::default() }];
        let meta = ObjectMeta { owner_references: Some(owners), ..ObjectMeta::default() };
        self.pod_groups.insert(name.to_owned(), meta);
        self.made.insert((owner.to_owned(), name.to_owned()));
        self.next_version();
        true
    }

    /// Applies the `PATCH` of the members of a PodGroup of this owner.
    pub fn relax_pod_group(&mut self, owner: &str, name: &str, members: u32) {
        if self.pod_groups.get(name).is_some_and(|present| stays(present, owner)) {
            self.set_members(name, members, false);
        }
    }

    fn set_members(&mut self, name: &str, members: u32, may_rise: bool) {
        let known = self.members.get(name).copied();
        if known.is_some_and(|known| members < known || may_rise && members > known) {
            self.members.insert(name.to_owned(), members);
            self.next_version();
        }
    }

    /// Reports whether the gang scheduler waits for more pods of the PodGroup that a pod names. A pod of a PodGroup that does not
    /// exist is scheduled alone, as by the scheduler plugins.
    pub fn lacks_members(&self, pod: &str) -> bool {
        let named = |pod: &Pod| pod.metadata.label(names::KUBE_POD_GROUP).map(str::to_owned);
        let Some(name) = self.pods.get(pod).and_then(|pod| named(pod)) else { return false };
        let Some(members) = self.members.get(&name).filter(|_| self.pod_groups.contains_key(&name)) else {
            return false;
        };
        let counts = |pod: &&Arc<Pod>| !pod.is_gone() && !is_gated(pod) && named(pod).as_ref() == Some(&name);
        self.pods.values().filter(counts).count() < *members as usize
    }

    /// Returns the objects of an owner, as a `LIST` does.
    pub fn owned_by(&self, owner: &str) -> Vec<FoundOwned> {
        let ours = self.pod_groups.iter().filter(|(_, meta)| meta.deletion_timestamp.is_none() && stays(meta, owner));
        let found = ours.map(|(name, _)| FoundOwned {
            kind: KUBE_POD_GROUP,
            name: name.clone(),
            min_member: self.members[name],
        });
        let requests = self.requests.iter().filter(|(_, of)| *of == owner);
        let requests = requests.map(|((kind, name), _)| FoundOwned { kind: *kind, name: name.clone(), min_member: 1 });
        found.chain(requests).collect()
    }

    /// Applies a `DELETE` of a PodGroup of this owner.
    pub fn remove_pod_group(&mut self, owner: &str, name: &str) {
        if self.pod_groups.get(name).is_some_and(|present| stays(present, owner)) {
            self.pod_groups.remove(name);
            self.next_version();
        }
    }

    /// Lets the garbage collector mark PodGroups without an owner; the next time it removes them.
    pub fn collect_garbage(&mut self) {
        let owner = self.group.as_ref().map(|group| group.uid().to_owned()).unwrap_or_default();
        self.requests.retain(|_, of| *of == owner);
        let before = self.pod_groups.clone();
        self.pod_groups.retain(|_, meta| meta.deletion_timestamp.is_none());
        for meta in self.pod_groups.values_mut().filter(|meta| !stays(meta, &owner)) {
            meta.deletion_timestamp = Some(Time(jiff::Timestamp::UNIX_EPOCH));
        }
        if self.pod_groups != before {
            self.next_version();
        }
    }

    pub fn create_pod(&mut self, name: &str, make: impl FnOnce(&mut Pod)) {
        let mut pod = Pod::default();
        pod.metadata.name = Some(name.to_owned());
        pod.metadata.namespace = Some(NAMESPACE.to_owned());
        pod.metadata.uid = Some(self.next_uid());
        // Timestamps have a resolution of seconds, so several pods share one.
        let seconds = self.version / 50;
        pod.metadata.creation_timestamp = Some(format!("2026-01-01T{:02}:{:02}:00Z", seconds / 60, seconds % 60));
        make(&mut pod);
        self.born.insert(pod.metadata.uid.clone().unwrap(), self.version);
        self.store_pod(pod);
    }

    /// Returns the version of the last change of the group before a pod was created.
    pub fn changed_before(&self, pod: &str) -> Option<u64> {
        let born = self.born[pod];
        self.log[1].iter().map(|(version, _)| *version).filter(|version| *version <= born).max()
    }

    fn store_pod(&mut self, mut pod: Pod) -> Arc<Pod> {
        pod.metadata.resource_version = Some(self.next_version().to_string());
        let pod = Arc::new(pod);
        self.pods.insert(pod.metadata.name.clone().unwrap(), pod.clone());
        self.tell(0, Event::Pod(pod.clone()));
        pod
    }

    pub fn edit_pod(&mut self, name: &str, edit: impl FnOnce(&mut Pod)) {
        let Some(pod) = self.pods.get(name) else { return };
        let mut pod = (**pod).clone();
        edit(&mut pod);
        self.store_pod(pod);
    }

    pub fn delete_pod(&mut self, name: &str) {
        let Some(pod) = self.pods.remove(name) else { return };
        let mut pod = (*pod).clone();
        pod.metadata.resource_version = Some(self.next_version().to_string());
        self.tell(0, Event::PodGone(Arc::new(pod)));
    }

    /// Applies a `DELETE` of a pod with this uid, and if requested of the other pods of its replica: they become
    /// terminating.
    pub fn delete_by_uid(&mut self, pod: &PodRef, with_dependents: bool) {
        let Some(found) = self.pods.get(&*pod.name) else { return };
        if found.metadata.uid.as_deref() != Some(&*pod.uid) || found.metadata.is_deleting() {
            return;
        }
        let of_replica = |name: &str| {
            let (one, other) = (self.setup.named(name), self.setup.named(&pod.name));
            one.zip(other).is_some_and(|(one, other)| (one.role, one.ordinal) == (other.role, other.ordinal))
        };
        let all = self.pods.keys().filter(|name| **name == *pod.name || with_dependents && of_replica(name));
        let all: Vec<_> = all.filter(|name| !self.pods[*name].metadata.is_deleting()).cloned().collect();
        all.iter().for_each(|name| self.evict(name));
    }

    /// Applies a strategic merge patch to a pod: labels, annotations and scheduling gates, which merge by name.
    pub fn patch_pod(&mut self, name: &str, patch: &Value) -> Answered<Arc<Pod>> {
        let Some(known) = self.pods.get(name).cloned() else { return Err(refusal(404, "")) };
        if patch["metadata"]["uid"].as_str().is_some_and(|uid| Some(uid) != known.metadata.uid.as_deref()) {
            return Err(refusal(422, "metadata.uid"));
        }
        let mut pod = (*known).clone();
        merge_metadata(&mut pod.metadata, patch);
        let mut gates = pod.spec.scheduling_gates.take().unwrap_or_default();
        match &patch["spec"]["schedulingGates"] {
            Value::Null => gates.clear(),
            entries => {
                for entry in entries.as_array().unwrap() {
                    assert_eq!(entry["$patch"], "delete", "a gate can only be taken away: {entry}");
                    gates.retain(|gate| entry["name"] != gate.name);
                }
            }
        }
        pod.spec.scheduling_gates = Some(gates);
        for (key, value) in patch["spec"]["nodeSelector"].as_object().into_iter().flatten() {
            pod.spec.node_selector.insert(key.clone(), value.as_str().unwrap().to_owned());
        }
        let is_same =
            pod.spec.scheduling_gates == known.spec.scheduling_gates && pod.metadata.labels == known.metadata.labels;
        Ok(if is_same { known } else { self.store_pod(pod) })
    }

    pub fn scale_workload(&mut self, role: usize, replicas: u32) {
        if self.workloads[role] == replicas {
            return;
        }
        self.workloads[role] = replicas;
        if role < self.sets.len() {
            return self.edit_set(role, |set| set["spec"]["replicas"] = json!(replicas));
        }
        self.next_version();
        self.tell(self.watch_of(role), Event::Workload(role, replicas));
    }

    /// Returns the desired replicas of a role, from the group or from the workload that it refers to.
    pub fn desired(&self, role: usize) -> u32 {
        let own = self.group.as_ref().filter(|group| !group.refers).map(|group| group.replicas[role]);
        own.or_else(|| self.elastic_desired(role)).unwrap_or(self.workloads[role])
    }

    /// Returns the watch of a role's workload.
    pub fn watch_of(&self, role: usize) -> usize {
        match self.setup.makers[role] {
            Maker::Set { .. } => 2,
            Maker::Leaders { .. } => 3,
            Maker::Alike => 4,
        }
    }

    /// Reports whether the namespace is ignored by its mode, if it is ignored.
    pub fn observes(&self) -> bool {
        self.ignores % 2 == 1
    }

    pub fn ignore(&mut self, ignored: bool) {
        if self.ignored != ignored {
            self.ignored = ignored;
            self.ignores += u32::from(ignored);
            self.was_ignored |= ignored;
            self.uncounted |= ignored;
            self.next_version();
            self.tell(NAMESPACES, Event::Ignored(ignored, self.observes()));
        }
    }
}

/// An answer of the API server.
pub type Answered<T> = Result<T, Box<Status>>;

/// Returns a refusal; `field` is the field of its cause.
pub fn refusal(code: u16, field: &str) -> Box<Status> {
    let cause = json!({ "field": field, "message": "field is immutable", "reason": "FieldValueInvalid" });
    serde_json::from_value(json!({ "code": code, "details": { "causes": [cause] } })).unwrap()
}

/// Reports whether a pod counts and has our gate.
pub fn is_held(pod: &Pod) -> bool {
    pod.has_gate(names::GATE) && !pod.is_gone()
}

/// Merges the labels and annotations of a patch into those of an object.
pub fn merge_metadata(metadata: &mut Meta, patch: &Value) {
    let Meta { labels, annotations, .. } = metadata;
    for (field, map) in [("labels", labels), ("annotations", annotations)] {
        for (key, value) in patch["metadata"][field].as_object().into_iter().flatten() {
            match value.as_str() {
                Some(value) => _ = map.insert(key.clone(), value.to_owned()),
                None => _ = map.remove(key),
            }
        }
    }
}
