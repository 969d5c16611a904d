//! Pods that name a group.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::gone_pods::GonePods;
use super::store::{Tombstones, is_older};
use super::workloads::Workloads;
use super::{Name, SourceId, name_of, version};
use crate::api::{Meta, Pod};
use crate::model::{GroupKey, Maker, OrdinalStarts, PodIdentity, WorkloadKey, WorkloadKind, identify};
use crate::plan::{GroupPods, PodFacts, PodRef};

#[derive(Debug, Default)]
pub(super) struct Pods {
    by_group: HashMap<GroupKey, Home>,
    homes: HashMap<Name, GroupKey>,
    gone: Tombstones<Name>,
    /// Leaving pods and the last words of pods that are gone.
    pub(super) went: GonePods,
    /// Number of pods stored so far.
    pub(super) seen: u64,
}

#[derive(Debug, Default)]
struct Home {
    entries: HashMap<Arc<str>, Entry>,
    /// The same pods, counted for planning.
    counted: GroupPods,
    /// The pod stored last, whose texts are shared: consecutive pods have mostly equal texts.
    last: Option<(Arc<PodFacts>, Option<MadeBy>)>,
}

#[derive(Debug)]
struct Entry {
    /// Facts from the pod alone.
    facts: Arc<PodFacts>,
    /// The same facts completed by its workload, as counted.
    completed: Arc<PodFacts>,
    /// The workload that makes the pod, where it adds facts.
    maker: Option<MadeBy>,
    source: SourceId,
    version: Option<u64>,
}

type MadeBy = (WorkloadKind, Arc<str>);

impl Pods {
    /// Returns the pods of a group, completed by their workloads.
    pub(super) fn of(&self, key: &GroupKey) -> GroupPods {
        self.by_group.get(key).map(|home| home.counted.clone()).unwrap_or_default()
    }

    /// Returns the number of entries of each map.
    pub(super) fn sizes(&self) -> [(&'static str, usize); 4] {
        [
            ("pods", self.homes.len()),
            ("groups_of_pods", self.by_group.len()),
            ("deleted_pods", self.gone.len()),
            ("leaving_pods", self.went.leaving.len()),
        ]
    }

    pub(super) fn groups(&self) -> impl Iterator<Item = &GroupKey> {
        self.by_group.keys()
    }

    pub(super) fn has_role(&self, key: &GroupKey, role: &str) -> bool {
        self.by_group.get(key).is_some_and(|home| home.counted.of_role(role).next().is_some())
    }

    /// Reports whether a replica with a number of its own has a ready pod.
    pub(super) fn has_ready(&self, key: &GroupKey, role: &str) -> bool {
        self.by_group.get(key).is_some_and(|home| home.counted.has_ready(role))
    }

    /// Counts anew the pods that a workload makes; returns their groups.
    pub(super) fn made_by(&mut self, workload: &WorkloadKey, workloads: &Workloads) -> Vec<GroupKey> {
        let is_maker = |(kind, name): &MadeBy| *kind == workload.kind && **name == *workload.name;
        let here = |key: &GroupKey| *key.namespace == *workload.namespace;
        let mut groups = Vec::new();
        for (key, home) in self.by_group.iter_mut().filter(|(key, _)| here(key)) {
            let mut made =
                home.entries.values_mut().filter(|entry| entry.maker.as_ref().is_some_and(is_maker)).peekable();
            let Some(maker) = made.peek().and_then(|first| first.maker.clone()) else { continue };
            let says = MakerFacts::of(&key.namespace, &maker, workloads);
            for entry in made {
                home.counted.remove(&entry.completed);
                entry.completed = says.completed(&entry.facts);
                home.counted.add(&entry.completed);
            }
            groups.push(key.clone());
        }
        groups
    }

    /// Removes the pods that a watch has not listed; returns their groups.
    pub(super) fn keep_only(&mut self, source: SourceId, listed: &[Pod]) -> Vec<GroupKey> {
        let seen: HashSet<Name> = listed.iter().map(|pod| name_of(&pod.metadata)).collect();
        let gone = self
            .homes
            .keys()
            .filter(|name| !seen.contains(*name) && self.entry(name).is_some_and(|entry| entry.source == source));
        let gone: Vec<Name> = gone.cloned().collect();
        let left = self.went.keep_only(source, &seen);
        gone.iter().filter_map(|name| self.forget(name)).chain(left).collect()
    }

    /// Removes the running pods of a group that a live list at this version lacks, unless they are newer. Returns true when
    /// there were any.
    pub(super) fn keep_running(&mut self, key: &GroupKey, listed: &HashSet<String>, at: Option<u64>) -> bool {
        let pods = self.by_group.get(key).into_iter().flat_map(|home| &home.entries);
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

    /// Stores a pod unless a newer version of the same name is known; returns the groups that changed.
    pub(super) fn apply(&mut self, source: SourceId, pod: &Pod, workloads: &Workloads) -> Vec<GroupKey> {
        let name = name_of(&pod.metadata);
        let (uid, version) = uid_and_version(pod);
        let known = self.entry_mut(&name);
        if known.as_ref().is_some_and(|known| is_older(version, known.version)) {
            return Vec::new();
        }
        let facts = identify(pod, &name.0, &()).and_then(|identity| PodFacts::of(pod, identity));
        let Some(mut facts) = facts else {
            let left = self.note_gone(source, pod, workloads);
            self.gone.add(name.clone(), None, version);
            return self.forget(&name).into_iter().chain(left).collect();
        };
        let same =
            known.filter(|known| known.facts.pod == facts.pod && known.facts.identity.group == facts.identity.group);
        facts.seen = same.as_ref().map_or(0, |known| known.facts.seen);
        if let Some(known) = same.filter(|known| *known.facts == facts && known.source == source) {
            known.version = version;
            return Vec::new();
        }
        if self.gone.holds(&name, uid, version) {
            return Vec::new();
        }
        if facts.seen == 0 {
            self.seen += 1;
            facts.seen = self.seen;
        }
        let home = facts.identity.group.clone();
        // The predecessor of the same name is gone.
        self.went.gone(&name, Some(uid));
        let left = self.forget(&name).filter(|left| *left != home);
        let mut maker = maker(&pod.metadata);
        let known = self.by_group.get_key_value(&home).map(|(key, home)| (key.clone(), home.last.clone()));
        let (home, name) = match known {
            Some((key, last)) => {
                last.iter().for_each(|last| share(&mut facts, maker.as_mut(), last));
                facts.identity.group.clone_from(&key);
                (key, (facts.identity.group.namespace.clone(), facts.pod.name.clone()))
            }
            None => (home, name),
        };
        let facts = Arc::new(facts);
        let completed = completed(&facts, maker.as_ref(), workloads);
        if completed.ready {
            self.went.is_ready(&completed, pod.spec.node_name.as_deref());
        }
        let pods = self.by_group.entry(home.clone()).or_default();
        pods.counted.add(&completed);
        pods.last = Some((facts.clone(), maker.clone()));
        pods.entries.insert(name.1.clone(), Entry { facts, completed, maker, source, version });
        self.homes.insert(name, home.clone());
        left.into_iter().chain([home]).collect()
    }

    /// Applies a pod as a write returned it, ahead of the watch.
    pub(super) fn written(&mut self, pod: &Pod, workloads: &Workloads) -> Vec<GroupKey> {
        match self.entry(&name_of(&pod.metadata)).map(|entry| entry.source) {
            Some(source) => self.apply(source, pod, workloads),
            None => Vec::new(),
        }
    }

    /// Removes a deleted pod if its uid and watch match; returns its group.
    pub(super) fn deleted(&mut self, source: SourceId, pod: &Pod) -> Option<GroupKey> {
        let name = name_of(&pod.metadata);
        let (uid, version) = uid_and_version(pod);
        self.gone.add(name.clone(), None, version);
        let is_this = |entry: &&Entry| entry.source == source && *entry.facts.pod.uid == *uid;
        let Some(completed) = self.entry(&name).filter(is_this).map(|entry| entry.completed.clone()) else {
            let pod = PodRef { name: name.1.clone(), uid: uid.into() };
            let key = self.went.leaving_of(&name, &pod)?;
            return self.went.left(&key, &pod).then_some(key);
        };
        self.went.went(source, pod, &completed);
        self.went.left(&completed.identity.group, &completed.pod);
        self.forget(&name)
    }

    /// Records a pod that no longer counts; returns its group when its leaving pods changed.
    fn note_gone(&mut self, source: SourceId, pod: &Pod, workloads: &Workloads) -> Option<GroupKey> {
        let name = name_of(&pod.metadata);
        let (uid, version) = uid_and_version(pod);
        if self.gone.holds(&name, uid, version) {
            return None;
        }
        let known = self.entry(&name).filter(|entry| *entry.facts.pod.uid == *uid);
        let known = known.map(|entry| entry.completed.clone());
        let completed = known.or_else(|| {
            let mut counted = pod.clone();
            counted.metadata.deletion_timestamp = None;
            "Running".clone_into(&mut counted.status.phase);
            let facts = Arc::new(PodFacts::of(&counted, identify(pod, &name.0, &())?)?);
            Some(completed(&facts, maker(&pod.metadata).as_ref(), workloads))
        })?;
        let before = self.went.leaving.len();
        self.went.went(source, pod, &completed);
        (self.went.leaving.len() != before).then(|| completed.identity.group.clone())
    }

    fn entry(&self, name: &Name) -> Option<&Entry> {
        self.by_group.get(self.homes.get(name)?)?.entries.get(&name.1)
    }

    fn entry_mut(&mut self, name: &Name) -> Option<&mut Entry> {
        self.by_group.get_mut(self.homes.get(name)?)?.entries.get_mut(&name.1)
    }

    fn forget(&mut self, name: &Name) -> Option<GroupKey> {
        let key = self.homes.remove(name)?;
        let home = self.by_group.get_mut(&key)?;
        if let Some(gone) = home.entries.remove(&name.1) {
            home.counted.remove(&gone.completed);
        }
        if home.entries.is_empty() {
            self.by_group.remove(&key);
        }
        Some(key)
    }
}

/// Shares equal texts with the pod stored last: thousands of pods have a handful of distinct texts.
fn share(facts: &mut PodFacts, maker: Option<&mut MadeBy>, (last, last_maker): &(Arc<PodFacts>, Option<MadeBy>)) {
    let texts = [
        (&mut facts.identity.role, &last.identity.role),
        (&mut facts.revision, &last.revision),
        (&mut facts.cohort, &last.cohort),
        (&mut facts.created, &last.created),
        (&mut facts.stamp.batch, &last.stamp.batch),
        (&mut facts.stamp.engine, &last.stamp.engine),
    ];
    for (text, known) in texts.into_iter().filter(|(text, known)| *text == *known) {
        text.clone_from(known);
    }
    if let Some(((_, name), (_, known))) =
        maker.zip(last_maker.as_ref()).filter(|((_, name), (_, known))| name == known)
    {
        name.clone_from(known);
    }
}

fn uid_and_version(pod: &Pod) -> (&str, Option<u64>) {
    let meta = &pod.metadata;
    (meta.uid.as_deref().unwrap_or_default(), version(meta.resource_version.as_deref()))
}

/// Facts of a pod that only its workload knows.
struct MakerFacts {
    /// `spec.ordinals.start` of a StatefulSet, not yet subtracted in the facts of the pod.
    start: i64,
    /// True for a LeaderWorkerSet that makes the pods of a group after their leader.
    one_by_one: bool,
}

impl MakerFacts {
    fn of(namespace: &str, (kind, name): &MadeBy, workloads: &Workloads) -> Self {
        let is = |other: WorkloadKind| *kind == other;
        let set = || {
            let (namespace, name) = (namespace.to_owned(), name.to_string());
            workloads.get(&WorkloadKey { namespace, kind: *kind, name })
        };
        Self {
            start: if is(WorkloadKind::StatefulSet) { workloads.start(namespace, name) } else { 0 },
            one_by_one: is(WorkloadKind::LeaderWorkerSet) && set().is_some_and(|set| set.one_by_one.is_some()),
        }
    }

    /// Returns the completed facts; does not copy where nothing changes.
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

/// Returns the facts of a pod completed by its maker.
fn completed(facts: &Arc<PodFacts>, maker: Option<&MadeBy>, workloads: &Workloads) -> Arc<PodFacts> {
    let says = maker.map(|maker| MakerFacts::of(&facts.identity.group.namespace, maker, workloads));
    says.map_or_else(|| facts.clone(), |says| says.completed(facts))
}

/// Returns the StatefulSet whose start offsets the pod's index, or the LeaderWorkerSet, which numbers its groups from 0.
fn maker(meta: &Meta) -> Option<MadeBy> {
    match Maker::of(meta) {
        Maker::LeaderWorkerSet { name, .. } => Some((WorkloadKind::LeaderWorkerSet, name.into())),
        Maker::StatefulSet(name) => Some((WorkloadKind::StatefulSet, name.into())),
        _ => None,
    }
}
