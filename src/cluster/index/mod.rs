//! The last seen state of the cluster: groups, their pods, and which groups changed. The webhook reads it, the loop plans
//! from it. Nothing here sends a request.

mod awaited;
mod carriers;
mod change;
mod context;
mod definitions;
mod gone_pods;
mod looked_up;
mod namespaces;
mod pods;
mod shared;
mod store;
mod trees;
mod workloads;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::iter;
use std::sync::Arc;
use std::time::Duration;

use carriers::Because;
pub use carriers::CarrierObject;
pub use change::{Change, Readable};
pub use looked_up::LookedUp;
pub use namespaces::NAMESPACE;
pub use shared::SharedIndex;
pub use store::Report;
use tokio::time::Instant;
pub use trees::KaiLevels;
pub use workloads::SeenWorkload;

use crate::api::definition::Definition;
use crate::api::pod::POD;
use crate::api::{Meta, ObjectKind, Pod};
use crate::model::moment::Moment;
use crate::model::{
    Allowed, CARRIERS, CliqueSet, Dialect, GangTree, Group, GroupKey, Layers, Mode, OrdinalStarts, ScaledWorkload,
    Workload, WorkloadKey, WorkloadKind, names,
};
use crate::plan::{LastWords, Snapshot};
use crate::rules::{Judged, Options, RuleSettings, Violation, faults_in_mode};

/// Id of a watch. A list of one watch must not remove the objects of another.
pub type SourceId = usize;

/// Namespace and name.
pub type Name = (Arc<str>, Arc<str>);

/// The rule on a partition that a workload sets itself.
const PARTITION: &str = "partition-in-manifest";

/// The last seen state of the cluster.
#[derive(Debug, Default)]
pub struct Index {
    carriers: carriers::Carriers,
    pods: pods::Pods,
    workloads: workloads::Workloads,
    /// Objects that the webhook looks up beside groups.
    topologies: store::Named<Layers>,
    clique_sets: store::Named<CliqueSet>,
    pod_groups: store::Named<GangTree>,
    kai_topologies: store::Named<KaiLevels>,
    tree_pods: trees::TreePods,
    /// Objects that groups wait for; `None` where they are not looked at.
    awaited_objects: Option<awaited::Awaited>,
    /// Configured meaning of the counts of KAI's PodGroups; overrides their definition.
    dialect: Option<Dialect>,
    namespaces: namespaces::Namespaces,
    /// Severities set for single rules.
    rules: RuleSettings,
    /// Whether workloads of elastic groups may be scaled; `None` before it is set.
    may_scale: Option<bool>,
    definitions: definitions::Definitions,
    /// Whether the API server serves a kind.
    served: HashMap<ObjectKind, bool>,
    /// Time at which a kind was served again after it had not been.
    returned: HashMap<ObjectKind, Instant>,
    awaited: HashSet<SourceId>,
    dirty: HashSet<GroupKey>,
}

impl Index {
    /// Registers a watch. The index is not synced before the first list of the watch.
    pub fn expect(&mut self, source: SourceId) {
        self.awaited.insert(source);
    }

    /// Reports whether every watch has listed once, or found its kind not served.
    pub fn is_synced(&self) -> bool {
        self.awaited.is_empty()
    }

    /// Returns the group as its controlling object carries it.
    pub fn group(&self, key: &GroupKey) -> Option<Arc<Group>> {
        self.carriers.claims(key).map(|claims| claims.group.clone())
    }

    /// Reports whether `group` equals the known group of its key except for the status, and breaks no rule.
    pub fn is_sound(&self, group: &Arc<Group>) -> bool {
        let is_this = |known: &Arc<Group>| Arc::ptr_eq(known, group) || known.is_like(group);
        let is_known = self.carriers.claims(&group.key).is_some_and(|claims| is_this(&claims.group));
        is_known && self.carriers.faults(&group.key).is_empty()
    }

    pub fn groups(&self) -> impl Iterator<Item = &Arc<Group>> {
        self.carriers.all().map(|(_, claims)| &claims.group)
    }

    /// Returns the RoleBasedGroup of this name, whichever object coordinates it.
    pub fn rbg(&self, key: &GroupKey) -> Option<Arc<Group>> {
        self.carriers.role_based_group(key).cloned()
    }

    pub fn has_pods(&self, key: &GroupKey, role: &str) -> bool {
        self.pods.has_role(key, role)
    }

    pub fn has_ready_pods(&self, key: &GroupKey, role: &str) -> bool {
        self.pods.has_ready(key, role)
    }

    /// Reports whether the API server serves a kind; `None` before that is known.
    pub fn is_served(&self, kind: ObjectKind) -> Option<bool> {
        self.served.get(&kind).copied()
    }

    /// Reports whether a kind is read in its version, of several the stored one; `None` while that is unknown.
    pub fn reads(&self, kind: ObjectKind) -> Option<bool> {
        self.definitions.reads(kind)
    }

    /// Returns the meaning of the counts of KAI's PodGroups, as their definition tells it.
    pub fn defined_dialect(&self) -> Option<Dialect> {
        self.definitions.dialect
    }

    /// Applies an event of the watch of CustomResourceDefinitions; `NotServed` when they may not be read.
    pub fn definition_change(&mut self, change: Change<Definition>) {
        self.definitions.take(change);
    }

    /// Reports whether a definition of a carrier kind was changed since the last call.
    pub fn take_redefined(&mut self) -> bool {
        std::mem::take(&mut self.definitions.changed)
    }

    /// Returns the time since each kind was served again after it had not been.
    fn returned(&self) -> Vec<(ObjectKind, Duration)> {
        self.returned.iter().map(|(kind, at)| (*kind, at.elapsed())).collect()
    }

    /// Notes that a watch has listed, or that its kind is not served.
    fn heard<T>(&mut self, source: SourceId, kind: ObjectKind, change: &Change<T>) {
        let Some(served) = change.is_served() else { return };
        self.awaited.remove(&source);
        if self.served.insert(kind, served) == Some(false) && served && CARRIERS.contains(&kind) {
            self.returned.insert(kind, Instant::now());
        }
    }

    pub fn knows_workload(&self, key: &WorkloadKey) -> bool {
        self.workloads.get(key).is_some()
    }

    /// Returns the last words of the last pod of a replica.
    pub fn last_words(&self, key: &GroupKey, role: &str, ordinal: u32) -> Option<LastWords> {
        self.pods.went.last_words(key, role, ordinal).cloned()
    }

    /// Returns the workload whose pod template labels name this group and role.
    pub fn maker_of(&self, group: &GroupKey, role: &str) -> Option<WorkloadKey> {
        let schemes = names::LABEL_SCHEMES.iter();
        let sets: Vec<_> = schemes.map(|(of_group, of_role)| [(*of_group, &*group.name), (*of_role, role)]).collect();
        self.workloads.with_labels(&group.namespace, &sets).cloned()
    }

    pub fn workload_of(&self, group: &Group, role: &str) -> Option<Arc<Workload>> {
        self.workloads.of_role(group, role).cloned()
    }

    /// Returns the planning input for one group.
    pub fn snapshot(&self, key: &GroupKey) -> Snapshot {
        let claims = self.carriers.claims(key).cloned();
        Snapshot {
            returned: if claims.is_none() { self.returned() } else { Vec::new() },
            faults: self.faults(key),
            spared: self.spared(key),
            missing_layers: claims.iter().flat_map(|claims| self.missing_layers(&claims.group)).collect(),
            objects: claims.as_ref().map(|claims| self.awaited_by(&claims.group)).unwrap_or_default(),
            domain_keys: claims.iter().flat_map(|claims| self.domain_keys(&claims.group)).collect(),
            pods: self.pods.of(key),
            leaving: self.pods.went.leaving.of(key).cloned().collect(),
            refused: self.pods.went.refused(key),
            seen: self.pods.seen,
            workloads: self.workloads.rolled(key),
            updates: claims.iter().flat_map(|claims| self.workloads.updates(&claims.group)).collect(),
            scaled: claims
                .iter()
                .filter(|c| c.group.elastic.is_some())
                .flat_map(|_| self.workloads.scaled(key))
                .collect(),
            now: Some(Moment(jiff::Timestamp::now().as_second())),
            stance: self.stance(&key.namespace).unwrap_or_default(),
            rests: self.rests_in(&key.namespace),
            claims,
        }
    }

    /// Returns the faults of a group that count in the mode of its namespace.
    fn faults(&self, key: &GroupKey) -> Arc<[Violation]> {
        let mode = self.stance(&key.namespace).unwrap_or_default().mode;
        faults_in_mode(self.carriers.faults(key), mode)
    }

    /// Returns the faults that would refuse the group if its namespace were in mode `enforce`; none where it is.
    fn spared(&self, key: &GroupKey) -> Arc<[Violation]> {
        let enforces = self.stance(&key.namespace).unwrap_or_default().mode == Mode::Enforce;
        if enforces { Arc::default() } else { self.carriers.faults(key) }
    }

    /// Sets the severities of single rules. Must be called before any group is applied.
    pub fn weigh_rules(&mut self, rules: RuleSettings) {
        self.rules = rules;
    }

    /// Returns the snapshots of all groups, by namespace and name.
    pub fn snapshots(&self) -> Vec<(GroupKey, Snapshot)> {
        let mut keys: Vec<_> = self.keys().into_iter().collect();
        keys.sort();
        keys.into_iter().map(|key| (key.clone(), self.snapshot(&key))).collect()
    }

    /// Returns the number of entries of each map. Maps of deleted objects are bounded; entries of other maps end with their
    /// objects.
    pub fn sizes(&self) -> impl Iterator<Item = (&'static str, usize)> {
        let own = [
            ("workloads", self.workloads.0.len()),
            ("topologies", self.topologies.len()),
            ("clique_sets", self.clique_sets.len()),
            ("pod_groups", self.pod_groups.len()),
            ("kai_topologies", self.kai_topologies.len()),
            ("placed_pods", self.tree_pods.0.len()),
            ("awaited_objects", self.awaited_objects.as_ref().map_or(0, awaited::Awaited::len)),
            ("namespaces", self.namespaces.stances.len()),
            ("changed", self.dirty.len()),
        ];
        self.carriers.sizes().into_iter().chain(self.pods.sizes()).chain(own)
    }

    /// Returns the groups that changed since the last call.
    pub fn take_dirty(&mut self) -> HashSet<GroupKey> {
        std::mem::take(&mut self.dirty)
    }

    /// Returns every group that is known, is named by a pod, or has an open rollout.
    pub fn keys(&self) -> HashSet<GroupKey> {
        self.carriers
            .all()
            .map(|(key, _)| key)
            .chain(self.pods.groups())
            .chain(self.workloads.open())
            .cloned()
            .collect()
    }

    /// Stores a carrier, with `None` as source if it was read or written outside a watch. An older version than the known one
    /// is dropped.
    pub fn apply_carrier(&mut self, source: Option<SourceId>, object: CarrierObject) {
        if let Some((key, before)) = self.carriers.apply(source, object) {
            self.rebuild(iter::once(key).chain(before), Because::Carrier);
        }
    }

    /// Returns an object that may carry a group, as it was last seen.
    pub fn carrier(&self, kind: ObjectKind, namespace: &str, name: &str) -> Option<CarrierObject> {
        self.carriers.object(kind, namespace, name)
    }

    /// Returns the names of the RoleCoordinations that name a group.
    pub fn coordinations_of(&self, key: &GroupKey) -> BTreeSet<Arc<str>> {
        self.carriers.coordinations_of(key)
    }

    /// Removes a carrier that a live read did not find, but not its successor of the same name.
    pub fn carrier_gone(&mut self, known: &CarrierObject) {
        let gone = self.carriers.deleted(known);
        self.rebuild(gone, Because::Carrier);
    }

    /// Rebuilds groups and marks them as changed.
    fn rebuild(&mut self, keys: impl IntoIterator<Item = GroupKey>, because: Because) {
        for key in keys {
            // Rights are checked when the group is admitted: a loop that lost one holds no pods for it.
            let allowed = Allowed { recovery: true, provision: true, ..Allowed::default() };
            let options = Options { rules: self.rules, allowed, ..Options::default() };
            // A RoleCoordination is read with its RoleBasedGroup, which is one of the carriers that are changed meanwhile.
            let context = context::Context {
                rbg: self.carriers.role_based_group(&key).cloned(),
                workloads: &self.workloads,
                topologies: &self.topologies,
                may_scale: self.may_scale,
                options,
                coming: None,
            };
            self.carriers.rebuild(&key, &context, because);
            self.dirty.insert(key);
        }
    }

    /// Applies an event of the watch of a carrier kind. `None` is an unreadable object, which keeps its known state.
    pub fn carrier_change(&mut self, source: SourceId, kind: ObjectKind, change: Change<Option<CarrierObject>>) {
        self.heard(source, kind, &change);
        let gone = match &change {
            Change::Listed(objects) => self.carriers.keep_only(source, kind, objects.iter().flatten()),
            Change::Deleted(object) => object.iter().filter_map(|object| self.carriers.deleted(object)).collect(),
            Change::NotServed => self.carriers.forget_all(source),
            Change::Applied(_) => Vec::new(),
        };
        self.rebuild(gone, Because::Carrier);
        change.into_there().into_iter().flatten().for_each(|object| self.apply_carrier(Some(source), object));
    }

    /// Applies an event of a watch of pods.
    pub fn pod_change(&mut self, source: SourceId, change: Change<Pod>) {
        self.heard(source, POD, &change);
        match &change {
            Change::Listed(pods) => self.dirty.extend(self.pods.keep_only(source, pods)),
            Change::Deleted(pod) => self.dirty.extend(self.pods.deleted(source, pod)),
            Change::Applied(_) | Change::NotServed => {}
        }
        change.into_there().iter().for_each(|pod| self.dirty.extend(self.pods.apply(source, pod, &self.workloads)));
    }

    /// Removes the pods of a group whose uid a live list at this version lacks.
    pub fn running_pods_read(&mut self, key: &GroupKey, uids: &HashSet<String>, at: Option<u64>) {
        if self.pods.keep_running(key, uids, at) {
            self.dirty.insert(key.clone());
        }
    }

    /// Applies a pod as a write returned it, ahead of the watch.
    pub fn pod_written(&mut self, pod: &Pod) {
        self.dirty.extend(self.tree_pods.written(pod).map(|key| key.of_pod_group()));
        self.dirty.extend(self.pods.written(pod, &self.workloads));
    }

    /// Applies an event of the watch of a workload kind.
    pub fn workload_change(&mut self, source: SourceId, kind: WorkloadKind, change: Change<SeenWorkload>) {
        self.heard(source, kind.object_kind(), &change);
        let gone = match &change {
            Change::Listed(seen) => self.workloads.keep_only(source, kind, seen),
            Change::Deleted(seen) => vec![(seen.workload.key.clone(), self.workloads.forget(&seen.workload.key))],
            Change::Applied(_) | Change::NotServed => Vec::new(),
        };
        for (key, group) in gone {
            self.dirty.extend(group);
            self.dirty.extend(self.pods.made_by(&key, &self.workloads));
            self.rebuild(self.carriers.dependents(&key), Because::Context);
        }
        change.into_there().into_iter().for_each(|seen| self.apply_workload(Some(source), seen));
    }

    /// Sets whether workloads of elastic groups may be scaled. Must be called before any group is applied.
    pub fn allow_scale(&mut self, allowed: bool) {
        self.may_scale = Some(allowed);
    }

    /// Applies the scale of a workload as a write returned it, ahead of the watch.
    pub fn workload_scaled(&mut self, known: &ScaledWorkload, replicas: u32, version: &str) {
        if self.workloads.scaled_to(known, replicas, version) {
            self.rebuild(self.carriers.dependents(&known.key), Because::Context);
        }
    }

    /// Stores a workload; without a source it was read outside a watch.
    pub fn apply_workload(&mut self, source: Option<SourceId>, seen: SeenWorkload) {
        let key = seen.workload.key.clone();
        let changed = self.workloads.apply(source, seen);
        self.dirty.extend(changed.rollouts);
        if changed.update {
            self.dirty.extend(self.carriers.dependents(&key));
        }
        if changed.pods {
            self.dirty.extend(self.pods.made_by(&key, &self.workloads));
        }
        if changed.groups {
            self.rebuild(self.carriers.dependents(&key), Because::Context);
        }
    }

    /// Returns what a group forbids of a workload as it is about to be, and did not find before; and a partition of its own, which the
    /// group overrules.
    pub fn forbids(&self, key: &GroupKey, workload: &Arc<Workload>, options: Options) -> Vec<Violation> {
        let judge = |coming| {
            let context = context::Context {
                rbg: self.carriers.role_based_group(key).cloned(),
                workloads: &self.workloads,
                topologies: &self.topologies,
                may_scale: self.may_scale,
                options,
                coming,
            };
            let Judged { errors, warnings, .. } = self.carriers.judged(key, &context);
            errors.into_iter().chain(warnings.into_iter().filter(|found| found.rule == PARTITION))
        };
        let mut found: Vec<_> = judge(Some(workload)).collect();
        if !found.is_empty() {
            let before: Vec<_> = judge(None).collect();
            found.retain(|found| !before.contains(found));
        }
        found
    }

    /// Returns the node label of a layer of a ClusterTopology.
    pub fn layer_key(&self, topology: &str, layer: &str) -> Option<String> {
        Some(self.topologies.get("", topology)?.layer(layer)?.key)
    }
}

impl OrdinalStarts for Index {
    fn start(&self, namespace: &str, stateful_set: &str) -> i64 {
        self.workloads.start(namespace, stateful_set)
    }
}

fn name_of(meta: &Meta) -> Name {
    (meta.namespace().into(), meta.display_name().into())
}

/// Parses a resource version. `None` for one that is no number; such versions count as equal.
pub fn version(text: Option<&str>) -> Option<u64> {
    text?.parse().ok()
}

#[cfg(test)]
#[path = "faults_tests.rs"]
mod tests;

#[cfg(test)]
mod adoption_tests;
#[cfg(test)]
mod cohort_tests;
#[cfg(test)]
mod gone_pods_tests;
