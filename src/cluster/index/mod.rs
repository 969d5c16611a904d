//! The cluster as it was last seen: groups, their pods, and which of them changed. The webhook reads it, the loop plans
//! from it; nothing here talks to anybody.

mod carriers;
mod change;
mod context;
mod definitions;
mod domains;
mod gone_pods;
mod looked_up;
mod named;
mod namespaces;
mod pods;
mod shared;
mod tombstones;
mod trees;
mod workloads;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use carriers::Because;
pub use carriers::CarrierObject;
pub use change::Change;
pub use looked_up::LookedUp;
pub use named::Report;
pub use shared::SharedIndex;
use tokio::time::Instant;
pub use trees::KaiLevels;
pub use workloads::SeenWorkload;

use crate::api::definition::Definition;
use crate::api::{Meta, ObjectKind, Pod};
use crate::model::moment::Moment;
use crate::model::{
    CliqueSet, Dialect, GangTree, Group, GroupKey, Layers, Mode, OrdinalStarts, ScaledWorkload, Workload, WorkloadKey,
    WorkloadKind, names,
};
use crate::plan::{LastWords, Snapshot};
use crate::rules::{RuleSettings, Violation, faults_in_mode};

/// Names one watch: what one has listed, another must not remove.
pub type SourceId = usize;

/// Namespace and name.
pub type Name = (Arc<str>, Arc<str>);

/// The cluster as it was last seen.
#[derive(Debug, Default)]
pub struct Index {
    carriers: carriers::Carriers,
    pods: pods::Pods,
    workloads: workloads::Workloads,
    /// Objects that the webhook looks up beside groups.
    topologies: named::Named<Layers>,
    clique_sets: named::Named<CliqueSet>,
    pod_groups: named::Named<GangTree>,
    kai_topologies: named::Named<KaiLevels>,
    tree_pods: trees::TreePods,
    /// What the counts of KAI's PodGroups mean, where somebody said so.
    dialect: Option<Dialect>,
    namespaces: namespaces::Namespaces,
    /// How much single rules weigh.
    rules: RuleSettings,
    /// Whether workloads of elastic groups are scaled, where somebody said so.
    may_scale: Option<bool>,
    definitions: definitions::Definitions,
    /// Kinds that the API server serves, or does not.
    served: HashMap<ObjectKind, bool>,
    /// When a kind was served again that had not been.
    returned: HashMap<ObjectKind, Instant>,
    awaited: HashSet<SourceId>,
    dirty: HashSet<GroupKey>,
}

impl Index {
    /// Registers a watch: the index is not synced before its first list.
    pub fn expect(&mut self, source: SourceId) {
        self.awaited.insert(source);
    }

    /// True when every watch has listed once, or found its kind not served.
    pub fn is_synced(&self) -> bool {
        self.awaited.is_empty()
    }

    /// The group of this key, as its controlling object carries it.
    pub fn group(&self, key: &GroupKey) -> Option<Arc<Group>> {
        self.carriers.claims(key).map(|claims| claims.group.clone())
    }

    /// True when this is the group of its key, as it is known now but for its status, and it breaks no rule.
    pub fn is_sound(&self, group: &Arc<Group>) -> bool {
        let is_this = |known: &Arc<Group>| Arc::ptr_eq(known, group) || known.is_like(group);
        let is_known = self.carriers.claims(&group.key).is_some_and(|claims| is_this(&claims.group));
        is_known && self.carriers.faults(&group.key).is_empty()
    }

    /// All groups.
    pub fn groups(&self) -> impl Iterator<Item = &Arc<Group>> {
        self.carriers.all().map(|(_, claims)| &claims.group)
    }

    /// The RoleBasedGroup of this name, whoever coordinates it.
    pub fn rbg(&self, key: &GroupKey) -> Option<Arc<Group>> {
        self.carriers.role_based_group(key).cloned()
    }

    /// True when a role of a group has pods.
    pub fn has_pods(&self, key: &GroupKey, role: &str) -> bool {
        self.pods.has_role(key, role)
    }

    /// Whether the API server serves a kind; `None` before that is known.
    pub fn is_served(&self, kind: ObjectKind) -> Option<bool> {
        self.served.get(&kind).copied()
    }

    /// Whether objects of a kind are read in its version, of several the stored one; `None` while that is not known.
    pub fn reads(&self, kind: ObjectKind) -> Option<bool> {
        self.definitions.reads(kind)
    }

    /// Takes in what a watch of CustomResourceDefinitions reports; `NotServed` when they may not be read.
    pub fn definition_change(&mut self, change: Change<Definition>) {
        self.definitions.take(change);
    }

    /// True when a definition of what carries groups was changed since the last call.
    pub fn take_redefined(&mut self) -> bool {
        self.definitions.take_changed()
    }

    /// How long ago kinds came back that had not been served.
    fn returned(&self) -> Vec<(ObjectKind, Duration)> {
        self.returned.iter().map(|(kind, at)| (*kind, at.elapsed())).collect()
    }

    fn note_served(&mut self, kind: ObjectKind, served: bool) {
        if self.served.insert(kind, served) == Some(false) && served {
            self.returned.insert(kind, Instant::now());
        }
    }

    /// True when the workload was seen.
    pub fn knows_workload(&self, key: &WorkloadKey) -> bool {
        self.workloads.get(key).is_some()
    }

    /// What the last pod of a replica said that is gone.
    pub fn last_words(&self, key: &GroupKey, role: &str, ordinal: u32) -> Option<LastWords> {
        self.pods.went().last_words(key, role, ordinal).cloned()
    }

    /// The workload whose pods say that they are of this role.
    pub fn maker_of(&self, group: &GroupKey, role: &str) -> Option<WorkloadKey> {
        let schemes = names::LABEL_SCHEMES.iter();
        let sets: Vec<_> = schemes.map(|(of_group, of_role)| [(*of_group, &*group.name), (*of_role, role)]).collect();
        self.workloads.with_labels(&group.namespace, &sets).cloned()
    }

    /// The workload that makes the pods of a role, where it is known.
    pub fn workload_of(&self, group: &Group, role: &str) -> Option<Arc<Workload>> {
        self.workloads.of_role(group, role).cloned()
    }

    /// What planning needs of one group.
    pub fn snapshot(&self, key: &GroupKey) -> Snapshot {
        let claims = self.carriers.claims(key).cloned();
        Snapshot {
            returned: if claims.is_none() { self.returned() } else { Vec::new() },
            faults: self.faults(key),
            spared: self.spared(key),
            missing_layers: claims.iter().flat_map(|claims| self.missing_layers(&claims.group)).collect(),
            domain_keys: claims.iter().flat_map(|claims| self.domain_keys(&claims.group)).collect(),
            pods: self.pods.of(key),
            leaving: self.pods.went().leaving(key),
            refused: self.pods.went().refused(key),
            seen: self.pods.seen(),
            workloads: self.workloads.rolled(key),
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

    /// The faults of a group that count in the mode of its namespace.
    fn faults(&self, key: &GroupKey) -> Arc<[Violation]> {
        let mode = self.stance(&key.namespace).unwrap_or_default().mode;
        faults_in_mode(self.carriers.faults(key), mode)
    }

    /// The faults of a group that would refuse it, were its namespace served in mode `enforce`; none where it is.
    fn spared(&self, key: &GroupKey) -> Arc<[Violation]> {
        let enforces = self.stance(&key.namespace).unwrap_or_default().mode == Mode::Enforce;
        if enforces { Arc::default() } else { self.carriers.faults(key) }
    }

    /// Says how much single rules weigh, before any group is taken in.
    pub fn weigh_rules(&mut self, rules: RuleSettings) {
        self.rules = rules;
    }

    /// The same of every group, by namespace and name.
    pub fn snapshots(&self) -> Vec<(GroupKey, Snapshot)> {
        let mut keys: Vec<_> = self.keys().into_iter().collect();
        keys.sort();
        keys.into_iter().map(|key| (key.clone(), self.snapshot(&key))).collect()
    }

    /// How many entries each map has. Those of what was deleted are bounded; the others end with their objects.
    pub fn sizes(&self) -> impl Iterator<Item = (&'static str, usize)> {
        let own = [
            ("workloads", self.workloads.len()),
            ("topologies", self.topologies.len()),
            ("clique_sets", self.clique_sets.len()),
            ("pod_groups", self.pod_groups.len()),
            ("kai_topologies", self.kai_topologies.len()),
            ("placed_pods", self.tree_pods.len()),
            ("namespaces", self.namespaces.len()),
            ("changed", self.dirty.len()),
        ];
        self.carriers.sizes().into_iter().chain(self.pods.sizes()).chain(own)
    }

    /// Groups that changed since the last call.
    pub fn take_dirty(&mut self) -> HashSet<GroupKey> {
        std::mem::take(&mut self.dirty)
    }

    /// Every group that is known or named by a pod.
    pub fn keys(&self) -> HashSet<GroupKey> {
        self.carriers
            .all()
            .map(|(key, _)| key)
            .chain(self.pods.groups())
            .chain(self.workloads.open())
            .cloned()
            .collect()
    }

    /// Takes in a carrier that was read or written outside a watch; an older version than the known one is dropped.
    pub fn apply_carrier(&mut self, source: Option<SourceId>, object: CarrierObject) {
        if let Some(key) = self.carriers.apply(source, object) {
            self.rebuild([key], Because::Carrier);
        }
    }

    /// An object that may carry a group, as it was last seen.
    pub fn carrier(&self, kind: ObjectKind, namespace: &str, name: &str) -> Option<CarrierObject> {
        self.carriers.object(kind, namespace, name)
    }

    /// Names of the RoleCoordinations that speak of a group.
    pub fn coordinations_of(&self, key: &GroupKey) -> BTreeSet<Arc<str>> {
        self.carriers.coordinations_of(key)
    }

    /// Takes in that a carrier is not there, as a live read has found; not its successor of the same name.
    pub fn carrier_gone(&mut self, known: &CarrierObject) {
        let gone = self.carriers.deleted(known);
        self.rebuild(gone, Because::Carrier);
    }

    /// Reads groups anew; they are planned next.
    fn rebuild(&mut self, keys: impl IntoIterator<Item = GroupKey>, because: Because) {
        for key in keys {
            // A RoleCoordination is read with its RoleBasedGroup, which is one of the carriers that are changed meanwhile.
            let rbg = self.carriers.role_based_group(&key).cloned();
            let context = context::Context {
                rbg,
                workloads: &self.workloads,
                topologies: &self.topologies,
                may_scale: self.may_scale,
                rules: self.rules,
            };
            self.carriers.rebuild(&key, &context, because);
            self.dirty.insert(key);
        }
    }

    /// Takes in what a watch of carriers reports; those that cannot be read stay as they were known.
    pub fn carrier_change(&mut self, source: SourceId, kind: ObjectKind, change: Change<Option<CarrierObject>>) {
        match change {
            Change::Listed(objects) => {
                self.note_served(kind, true);
                let objects: Vec<_> = objects.into_iter().flatten().collect();
                let gone = self.carriers.keep_only(source, kind, &objects);
                self.rebuild(gone, Because::Carrier);
                objects.into_iter().for_each(|object| self.apply_carrier(Some(source), object));
                self.awaited.remove(&source);
            }
            Change::Applied(object) => object.into_iter().for_each(|object| self.apply_carrier(Some(source), object)),
            Change::Deleted(object) => {
                object.iter().for_each(|object| self.carrier_gone(object));
            }
            Change::NotServed => {
                self.note_served(kind, false);
                let gone = self.carriers.forget_all(source);
                self.rebuild(gone, Because::Carrier);
                self.awaited.remove(&source);
            }
        }
    }

    /// Takes in what a watch of pods reports.
    pub fn pod_change(&mut self, source: SourceId, change: Change<Pod>) {
        match change {
            Change::Listed(pods) => {
                self.dirty.extend(self.pods.keep_only(source, &pods));
                pods.iter().for_each(|pod| self.dirty.extend(self.pods.apply(source, pod, &self.workloads)));
                self.awaited.remove(&source);
            }
            Change::Applied(pod) => self.dirty.extend(self.pods.apply(source, &pod, &self.workloads)),
            Change::Deleted(pod) => self.dirty.extend(self.pods.deleted(source, &pod)),
            Change::NotServed => _ = self.awaited.remove(&source),
        }
    }

    /// Takes in which pods of a group are there, by unique id, as a live list at this version has found.
    pub fn running_pods_read(&mut self, key: &GroupKey, uids: &HashSet<String>, at: Option<u64>) {
        if self.pods.keep_running(key, uids, at) {
            self.dirty.insert(key.clone());
        }
    }

    /// Takes in a pod as a write has left it, ahead of the watch.
    pub fn pod_written(&mut self, pod: &Pod) {
        self.dirty.extend(self.tree_pods.written(pod).map(|key| key.of_pod_group()));
        self.dirty.extend(self.pods.written(pod, &self.workloads));
    }

    /// Takes in what a watch of workloads of one kind reports.
    pub fn workload_change(&mut self, source: SourceId, kind: WorkloadKind, change: Change<SeenWorkload>) {
        match change {
            Change::Listed(seen) => {
                self.served.insert(kind.object_kind(), true);
                let gone = self.workloads.keep_only(source, kind, &seen);
                for (key, group) in gone {
                    self.dirty.extend(group);
                    self.dirty.extend(self.pods.made_by(&key, &self.workloads));
                    self.rebuild(self.carriers.dependents(&key), Because::Context);
                }
                seen.into_iter().for_each(|seen| self.apply_workload(Some(source), seen));
                self.awaited.remove(&source);
            }
            Change::Applied(seen) => self.apply_workload(Some(source), seen),
            Change::Deleted(seen) => {
                let key = &seen.workload.key;
                self.dirty.extend(self.workloads.forget(key));
                self.dirty.extend(self.pods.made_by(key, &self.workloads));
                self.rebuild(self.carriers.dependents(key), Because::Context);
            }
            Change::NotServed => {
                self.served.insert(kind.object_kind(), false);
                self.awaited.remove(&source);
            }
        }
    }

    /// Says whether workloads of elastic groups are scaled, before any group is taken in.
    pub fn allow_scale(&mut self, allowed: bool) {
        self.may_scale = Some(allowed);
    }

    /// Takes in the scale of a workload as a write has left it, ahead of the watch.
    pub fn workload_scaled(&mut self, known: &ScaledWorkload, replicas: u32, version: &str) {
        if self.workloads.scaled_to(known, replicas, version) {
            self.rebuild(self.carriers.dependents(&known.key), Because::Context);
        }
    }

    /// Takes in a workload; without a source it was read outside a watch.
    pub fn apply_workload(&mut self, source: Option<SourceId>, seen: SeenWorkload) {
        let key = seen.workload.key.clone();
        let changed = self.workloads.apply(source, seen);
        self.dirty.extend(changed.rollouts);
        if changed.pods {
            self.dirty.extend(self.pods.made_by(&key, &self.workloads));
        }
        if changed.groups {
            self.rebuild(self.carriers.dependents(&key), Because::Context);
        }
    }

    /// A ClusterTopology of either API group.
    pub fn topology(&self, name: &str) -> Option<Arc<Layers>> {
        self.topologies.get("", name)
    }

    /// The node label of a layer of a ClusterTopology.
    pub fn layer_key(&self, topology: &str, layer: &str) -> Option<String> {
        Some(self.topology(topology)?.layer(layer)?.key)
    }

    /// A Grove set.
    pub fn clique_set(&self, key: &GroupKey) -> Option<Arc<CliqueSet>> {
        self.clique_sets.get(&key.namespace, &key.name)
    }

    /// A KAI PodGroup.
    pub fn pod_group(&self, key: &GroupKey) -> Option<Arc<GangTree>> {
        self.pod_groups.get(&key.namespace, &key.name)
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

/// A resource version as a number; those that are none compare as equal.
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
