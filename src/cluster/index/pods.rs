//! Pods that name a group.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::workloads::Workloads;
use super::{Name, SourceId, name_of, version};
use crate::api::{Meta, Pod};
use crate::cluster::index::tombstones::{Tombstones, is_older};
use crate::model::{GroupKey, Maker, OrdinalStarts, PodIdentity, WorkloadKey, WorkloadKind, identify};
use crate::plan::PodFacts;

/// Pods that name a group.
#[derive(Debug, Default)]
pub(super) struct Pods {
    by_group: HashMap<GroupKey, HashMap<Arc<str>, Entry>>,
    homes: HashMap<Name, GroupKey>,
    gone: Tombstones<Name>,
}

#[derive(Debug)]
struct Entry {
    facts: Arc<PodFacts>,
    /// What makes it, where that says more of it than the pod itself.
    maker: Option<MadeBy>,
    source: SourceId,
    version: Option<u64>,
}

/// Kind and name of the workload that makes a pod.
type MadeBy = (WorkloadKind, Arc<str>);

impl Pods {
    /// The pods of a group, with what their workloads say of them.
    pub(super) fn of(&self, key: &GroupKey, workloads: &Workloads) -> Vec<Arc<PodFacts>> {
        let mut makers = HashMap::new();
        let entries = self.by_group.get(key).into_iter().flat_map(HashMap::values);
        let completed = |entry: &Entry| match &entry.maker {
            None => entry.facts.clone(),
            Some(maker) => {
                let says = makers.entry(maker.clone()).or_insert_with(|| Says::of(key, maker, workloads));
                says.completed(&entry.facts)
            }
        };
        entries.map(completed).collect()
    }

    /// Groups that pods name.
    pub(super) fn groups(&self) -> impl Iterator<Item = &GroupKey> {
        self.by_group.keys()
    }

    /// True when a role of a group has pods.
    pub(super) fn has_role(&self, key: &GroupKey, role: &str) -> bool {
        let mut entries = self.by_group.get(key).into_iter().flat_map(HashMap::values);
        entries.any(|entry| entry.facts.identity.role.as_deref() == Some(role))
    }

    /// Groups with pods of which this workload says something.
    pub(super) fn made_by(&self, workload: &WorkloadKey) -> Vec<GroupKey> {
        let is_maker = |(kind, name): &MadeBy| *kind == workload.kind && **name == *workload.name;
        let made = |entry: &Entry| entry.maker.as_ref().is_some_and(is_maker);
        let here = |key: &GroupKey| *key.namespace == *workload.namespace;
        let groups = self.by_group.iter().filter(|(key, pods)| here(key) && pods.values().any(made));
        groups.map(|(key, _)| key.clone()).collect()
    }

    /// Forgets what a watch has not listed; returns the groups that these named.
    pub(super) fn keep_only(&mut self, source: SourceId, listed: &[Pod]) -> Vec<GroupKey> {
        let seen: HashSet<Name> = listed.iter().map(|pod| name_of(&pod.metadata)).collect();
        let gone = self
            .homes
            .keys()
            .filter(|name| !seen.contains(*name) && self.entry(name).is_some_and(|entry| entry.source == source));
        let gone: Vec<Name> = gone.cloned().collect();
        gone.iter().filter_map(|name| self.forget(name)).collect()
    }

    /// Forgets the pods of a group that look as if they ran, and were not there when they were listed at this version. What
    /// is newer stays. True when there were any.
    pub(super) fn keep_running(&mut self, key: &GroupKey, listed: &HashSet<String>, at: Option<u64>) -> bool {
        let pods = self.by_group.get(key).into_iter().flatten();
        let is_gone = |entry: &Entry| {
            let unlisted = !entry.facts.held && !listed.contains(&*entry.facts.pod.uid);
            unlisted && at.is_some() && !is_older(at, entry.version)
        };
        let gone = pods.filter(|(_, entry)| is_gone(entry)).map(|(name, _)| (key.namespace.clone(), name.clone()));
        let gone: Vec<Name> = gone.collect();
        for name in &gone {
            self.gone.add(name.clone(), None, at);
            self.forget(name);
        }
        !gone.is_empty()
    }

    /// Takes a pod in; returns the groups that this concerns. What is older than what is known of its name is dropped.
    pub(super) fn apply(&mut self, source: SourceId, pod: &Pod) -> Vec<GroupKey> {
        let name = name_of(&pod.metadata);
        let (uid, version) = uid_and_version(pod);
        let known = self.entry_mut(&name);
        if known.as_ref().is_some_and(|known| is_older(version, known.version)) {
            return Vec::new();
        }
        let facts = identify(pod, &name.0, &()).and_then(|identity| PodFacts::of(pod, identity));
        let Some(facts) = facts else {
            self.gone.add(name.clone(), None, version);
            return self.forget(&name).into_iter().collect();
        };
        if let Some(known) = known.filter(|known| *known.facts == facts && known.source == source) {
            known.version = version;
            return Vec::new();
        }
        if self.gone.holds(&name, uid, version) {
            return Vec::new();
        }
        let home = facts.identity.group.clone();
        let left = if self.homes.get(&name).is_some_and(|old| *old != home) { self.forget(&name) } else { None };
        self.homes.insert(name.clone(), home.clone());
        let entry = Entry { facts: facts.into(), maker: maker(&pod.metadata), source, version };
        self.by_group.entry(home.clone()).or_default().insert(name.1, entry);
        left.into_iter().chain([home]).collect()
    }

    /// Takes in a pod as a write has left it, ahead of the watch.
    pub(super) fn written(&mut self, pod: &Pod) -> Vec<GroupKey> {
        match self.entry(&name_of(&pod.metadata)).map(|entry| entry.source) {
            Some(source) => self.apply(source, pod),
            None => Vec::new(),
        }
    }

    /// Takes in that a pod is gone: the one of this uid, seen by this watch.
    pub(super) fn deleted(&mut self, source: SourceId, pod: &Pod) -> Option<GroupKey> {
        let name = name_of(&pod.metadata);
        let (uid, version) = uid_and_version(pod);
        self.gone.add(name.clone(), None, version);
        let is_this = |entry: &Entry| entry.source == source && *entry.facts.pod.uid == *uid;
        self.entry(&name).is_some_and(is_this).then(|| self.forget(&name)).flatten()
    }

    fn entry(&self, name: &Name) -> Option<&Entry> {
        self.by_group.get(self.homes.get(name)?)?.get(&name.1)
    }

    fn entry_mut(&mut self, name: &Name) -> Option<&mut Entry> {
        self.by_group.get_mut(self.homes.get(name)?)?.get_mut(&name.1)
    }

    fn forget(&mut self, name: &Name) -> Option<GroupKey> {
        let home = self.homes.remove(name)?;
        if let Some(pods) = self.by_group.get_mut(&home) {
            pods.remove(&name.1);
            if pods.is_empty() {
                self.by_group.remove(&home);
            }
        }
        Some(home)
    }
}

fn uid_and_version(pod: &Pod) -> (&str, Option<u64>) {
    let meta = &pod.metadata;
    (meta.uid.as_deref().unwrap_or_default(), version(meta.resource_version.as_deref()))
}

/// What a workload says of its pods beyond what they say themselves.
struct Says {
    /// Where a StatefulSet starts to count: the ordinals in the facts are not yet counted from there.
    start: i64,
    /// A LeaderWorkerSet makes the pods of a group after their leader.
    one_by_one: bool,
}

impl Says {
    fn of(group: &GroupKey, (kind, name): &MadeBy, workloads: &Workloads) -> Self {
        let is = |other: WorkloadKind| *kind == other;
        let set = || {
            let (namespace, name) = (group.namespace.to_string(), name.to_string());
            workloads.get(&WorkloadKey { namespace, kind: *kind, name })
        };
        Self {
            start: if is(WorkloadKind::StatefulSet) { workloads.start(&group.namespace, name) } else { 0 },
            one_by_one: is(WorkloadKind::LeaderWorkerSet) && set().is_some_and(|set| set.one_by_one.is_some()),
        }
    }

    /// The facts with that; nothing is copied where it changes nothing.
    fn completed(&self, facts: &Arc<PodFacts>) -> Arc<PodFacts> {
        let made_at_once = facts.identity.made_at_once && !self.one_by_one;
        if self.start == 0 && made_at_once == facts.identity.made_at_once {
            return facts.clone();
        }
        let index = facts.identity.ordinal.map(i64::from);
        let ordinal = index.and_then(|index| u32::try_from(index - self.start).ok());
        let identity = PodIdentity { ordinal, made_at_once, ..facts.identity.clone() };
        Arc::new(PodFacts { identity, ..PodFacts::clone(facts) })
    }
}

/// The StatefulSet from whose start a pod's index counts, or its LeaderWorkerSet, which numbers its groups from 0.
fn maker(meta: &Meta) -> Option<MadeBy> {
    match Maker::of(meta) {
        Maker::LeaderWorkerSet { name, .. } => Some((WorkloadKind::LeaderWorkerSet, name.into())),
        Maker::StatefulSet(name) => Some((WorkloadKind::StatefulSet, name.into())),
        _ => None,
    }
}
