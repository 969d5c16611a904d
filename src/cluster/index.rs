//! The cluster as it was last seen: groups, their pods, and which of them changed. The webhook reads it, the loop plans
//! from it; nothing here talks to anybody.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use tokio::sync::{Notify, watch};

use super::watch::Change;
use crate::api::workload::StatefulSet;
use crate::api::{Meta, Object, ObjectKind, Pod};
use crate::model::{Group, GroupKey, OrdinalStarts, identify, names};
use crate::plan::PodFacts;

/// Names one watch: what one has listed, another must not remove.
pub type SourceId = usize;

/// Namespace and name.
type Name = (Arc<str>, Arc<str>);

/// The cluster as it was last seen.
#[derive(Debug, Default)]
pub struct Index {
    groups: HashMap<GroupKey, Carried>,
    pods: HashMap<GroupKey, HashMap<Arc<str>, PodEntry>>,
    homes: HashMap<Name, GroupKey>,
    starts: HashMap<Name, Start>,
    ignored: HashMap<Arc<str>, SourceId>,
    /// Kinds that the API server serves, or does not.
    served: HashMap<ObjectKind, bool>,
    awaited: HashSet<SourceId>,
    dirty: HashSet<GroupKey>,
}

/// A group and the watch it came from.
#[derive(Clone, Debug)]
struct Carried {
    group: Arc<Group>,
    source: SourceId,
}

#[derive(Debug)]
struct PodEntry {
    facts: PodFacts,
    /// StatefulSet that numbers it: the ordinal in `facts` is not yet counted from its start.
    stateful_set: Option<Arc<str>>,
    source: SourceId,
    version: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
struct Start {
    at: i64,
    source: SourceId,
}

/// What planning needs of one group.
#[derive(Debug)]
pub struct Snapshot {
    /// The group, if it is there.
    pub group: Option<Arc<Group>>,
    /// Its pods.
    pub pods: Vec<PodFacts>,
    /// The namespace has opted out.
    pub ignored: bool,
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

    /// The group of this key.
    pub fn group(&self, key: &GroupKey) -> Option<Arc<Group>> {
        self.groups.get(key).map(|carried| carried.group.clone())
    }

    /// All groups.
    pub fn groups(&self) -> impl Iterator<Item = &Arc<Group>> {
        self.groups.values().map(|carried| &carried.group)
    }

    /// Whether the API server serves a kind; `None` before that is known.
    pub fn is_served(&self, kind: ObjectKind) -> Option<bool> {
        self.served.get(&kind).copied()
    }

    /// True when the StatefulSet was seen.
    pub fn knows_stateful_set(&self, namespace: &str, name: &str) -> bool {
        self.starts.contains_key(&(namespace.into(), name.into()))
    }

    /// What planning needs of one group.
    pub fn snapshot(&self, key: &GroupKey) -> Snapshot {
        let pods = self.pods.get(key).into_iter().flat_map(HashMap::values).map(|entry| self.numbered(key, entry));
        Snapshot { group: self.group(key), pods: pods.collect(), ignored: self.ignored.contains_key(&key.namespace) }
    }

    fn numbered(&self, key: &GroupKey, entry: &PodEntry) -> PodFacts {
        let mut facts = entry.facts.clone();
        if let Some(name) = &entry.stateful_set {
            let start = self.start(&key.namespace, name);
            let index = facts.identity.ordinal.map(i64::from);
            facts.identity.ordinal = index.and_then(|index| u32::try_from(index - start).ok());
        }
        facts
    }

    /// Groups that changed since the last call.
    pub fn take_dirty(&mut self) -> HashSet<GroupKey> {
        std::mem::take(&mut self.dirty)
    }

    /// Every group that is known or named by a pod.
    pub fn keys(&self) -> HashSet<GroupKey> {
        self.groups.keys().chain(self.pods.keys()).cloned().collect()
    }

    /// Takes in a group that was read or written outside a watch; an older version than the known one is dropped.
    pub fn apply_group(&mut self, source: Option<SourceId>, group: Group) {
        let key = group.key.clone();
        let known = self.groups.get(&key);
        let is_older = known.is_some_and(|known| {
            known.group.carrier.uid == group.carrier.uid
                && version(Some(&group.carrier.resource_version)) < version(Some(&known.group.carrier.resource_version))
        });
        if is_older {
            return;
        }
        let source = source.or(known.map(|known| known.source)).unwrap_or_default();
        self.groups.insert(key.clone(), Carried { group: Arc::new(group), source });
        self.dirty.insert(key);
    }

    /// Takes in what a watch of groups reports.
    pub fn group_change(&mut self, source: SourceId, kind: ObjectKind, change: Change<Option<Group>>) {
        match change {
            Change::Listed(groups) => {
                self.served.insert(kind, true);
                let groups: Vec<_> = groups.into_iter().flatten().collect();
                let seen: HashSet<_> = groups.iter().map(|group| group.key.clone()).collect();
                self.forget_groups(source, |key| !seen.contains(key));
                groups.into_iter().for_each(|group| self.apply_group(Some(source), group));
                self.awaited.remove(&source);
            }
            Change::Applied(group) => {
                if let Some(group) = group {
                    self.apply_group(Some(source), group);
                }
            }
            Change::Deleted(group) => {
                if let Some(group) = group {
                    self.forget_groups(source, |key| *key == group.key);
                }
            }
            Change::NotServed => {
                self.served.insert(kind, false);
                self.forget_groups(source, |_| true);
                self.awaited.remove(&source);
            }
        }
    }

    fn forget_groups(&mut self, source: SourceId, gone: impl Fn(&GroupKey) -> bool) {
        let keys: Vec<_> = self
            .groups
            .iter()
            .filter(|(key, carried)| carried.source == source && gone(key))
            .map(|(key, _)| key.clone())
            .collect();
        for key in keys {
            self.groups.remove(&key);
            self.dirty.insert(key);
        }
    }

    /// Takes in what a watch of pods reports.
    pub fn pod_change(&mut self, source: SourceId, change: Change<Pod>) {
        match change {
            Change::Listed(pods) => {
                let seen: HashSet<Name> = pods.iter().map(|pod| name_of(&pod.metadata)).collect();
                let homes = self.homes.iter().filter(|(name, home)| {
                    let entry = self.pods.get(home).and_then(|pods| pods.get(&name.1));
                    entry.is_some_and(|entry| entry.source == source) && !seen.contains(name)
                });
                let gone: Vec<Name> = homes.map(|(name, _)| name.clone()).collect();
                gone.iter().for_each(|name| self.forget_pod(name));
                pods.iter().for_each(|pod| self.apply_pod(source, pod));
                self.awaited.remove(&source);
            }
            Change::Applied(pod) => self.apply_pod(source, &pod),
            Change::Deleted(pod) => {
                let name = name_of(&pod.metadata);
                let uid = pod.metadata.uid.as_deref().unwrap_or_default();
                let entry = self.homes.get(&name).and_then(|home| self.pods.get(home)?.get(&name.1));
                if entry.is_some_and(|entry| entry.source == source && *entry.facts.pod.uid == *uid) {
                    self.forget_pod(&name);
                }
            }
            Change::NotServed => _ = self.awaited.remove(&source),
        }
    }

    /// Takes in a pod as a write has left it, ahead of the watch.
    pub fn pod_written(&mut self, pod: &Pod) {
        let name = name_of(&pod.metadata);
        let source = self.homes.get(&name).and_then(|home| Some(self.pods.get(home)?.get(&name.1)?.source));
        if let Some(source) = source {
            self.apply_pod(source, pod);
        }
    }

    fn apply_pod(&mut self, source: SourceId, pod: &Pod) {
        let name = name_of(&pod.metadata);
        let identity = identify(pod, &name.0, &());
        let facts = identity.and_then(|identity| PodFacts::of(pod, identity));
        let Some(facts) = facts else { return self.forget_pod(&name) };
        let (home, version) = (facts.identity.group.clone(), version(pod.metadata.resource_version.as_deref()));
        let known = self.homes.get(&name).and_then(|home| self.pods.get(home)?.get(&name.1));
        if known.is_some_and(|known| known.facts.pod.uid == facts.pod.uid && version < known.version) {
            return;
        }
        if known.is_some_and(|known| known.facts == facts && known.source == source) {
            return;
        }
        if self.homes.get(&name).is_some_and(|old| *old != home) {
            self.forget_pod(&name);
        }
        self.homes.insert(name.clone(), home.clone());
        let stateful_set = numbering_stateful_set(&pod.metadata);
        self.pods.entry(home.clone()).or_default().insert(name.1, PodEntry { facts, stateful_set, source, version });
        self.dirty.insert(home);
    }

    fn forget_pod(&mut self, name: &Name) {
        let Some(home) = self.homes.remove(name) else { return };
        if let Some(pods) = self.pods.get_mut(&home) {
            pods.remove(&name.1);
            if pods.is_empty() {
                self.pods.remove(&home);
            }
        }
        self.dirty.insert(home);
    }

    /// Takes in what a watch of StatefulSets reports.
    pub fn stateful_set_change(&mut self, source: SourceId, change: Change<StatefulSet>) {
        match change {
            Change::Listed(sets) => {
                self.starts.retain(|_, start| start.source != source);
                sets.iter().for_each(|set| self.apply_stateful_set(source, set));
                self.awaited.remove(&source);
            }
            Change::Applied(set) => self.apply_stateful_set(source, &set),
            Change::Deleted(set) => _ = self.starts.remove(&name_of(&set.metadata)),
            Change::NotServed => _ = self.awaited.remove(&source),
        }
    }

    /// Takes in a StatefulSet that was read outside a watch. The watch takes it over, or forgets it with its next list.
    pub fn stateful_set_read(&mut self, set: &StatefulSet) {
        if !self.starts.contains_key(&name_of(&set.metadata)) {
            self.apply_stateful_set(SourceId::default(), set);
        }
    }

    fn apply_stateful_set(&mut self, source: SourceId, set: &StatefulSet) {
        let name = name_of(&set.metadata);
        let at = set.spec.ordinals.start;
        let before = self.starts.insert(name.clone(), Start { at, source });
        if before.map_or(0, |before| before.at) != at {
            let numbered = |entry: &PodEntry| entry.stateful_set.as_ref() == Some(&name.1);
            let homes = self.pods.iter().filter(|(key, pods)| key.namespace == name.0 && pods.values().any(numbered));
            let homes: Vec<_> = homes.map(|(key, _)| key.clone()).collect();
            self.dirty.extend(homes);
        }
    }

    /// Takes in what a watch of namespaces that opted out reports.
    pub fn ignored_change<T: Object>(&mut self, source: SourceId, change: Change<T>) {
        let name = |object: &T| Arc::<str>::from(object.meta().display_name());
        let mut touched = HashSet::new();
        match change {
            Change::Listed(namespaces) => {
                touched.extend(self.ignored.keys().cloned());
                self.ignored = namespaces.iter().map(|namespace| (name(namespace), source)).collect();
                touched.extend(self.ignored.keys().cloned());
                self.awaited.remove(&source);
            }
            Change::Applied(namespace) => {
                self.ignored.insert(name(&namespace), source);
                touched.insert(name(&namespace));
            }
            Change::Deleted(namespace) => {
                self.ignored.remove(&name(&namespace));
                touched.insert(name(&namespace));
            }
            Change::NotServed => _ = self.awaited.remove(&source),
        }
        let keys: Vec<_> = self.keys().into_iter().filter(|key| touched.contains(&key.namespace)).collect();
        self.dirty.extend(keys);
    }

    /// Held pods of the whole cluster, by group: for metrics.
    pub fn held_by_group(&self) -> BTreeMap<&GroupKey, usize> {
        let held = |pods: &HashMap<_, PodEntry>| pods.values().filter(|entry| entry.facts.held).count();
        self.pods.iter().map(|(key, pods)| (key, held(pods))).filter(|(_, count)| *count > 0).collect()
    }
}

impl OrdinalStarts for Index {
    fn start(&self, namespace: &str, stateful_set: &str) -> i64 {
        self.starts.get(&(namespace.into(), stateful_set.into())).map_or(0, |start| start.at)
    }
}

/// The StatefulSet from whose start a pod's index counts. LWS numbers its groups from 0.
fn numbering_stateful_set(meta: &Meta) -> Option<Arc<str>> {
    let other = [names::LWS_NAME, names::RBG_INSTANCE, names::INSTANCE_NAME];
    let owner = meta.controller().filter(|owner| owner.kind == "StatefulSet")?;
    other.iter().all(|key| meta.label(key).is_none()).then(|| owner.name.as_str().into())
}

fn name_of(meta: &Meta) -> Name {
    (meta.namespace().into(), meta.display_name().into())
}

/// A resource version as a number; those that are none compare as equal.
fn version(text: Option<&str>) -> Option<u64> {
    text?.parse().ok()
}

/// The index as its readers and its writers share it.
#[derive(Clone, Debug, Default)]
pub struct SharedIndex {
    index: Arc<RwLock<Index>>,
    changed: Arc<Notify>,
    synced: Arc<watch::Sender<bool>>,
}

impl SharedIndex {
    /// Looks at it.
    pub fn read(&self) -> RwLockReadGuard<'_, Index> {
        // A panic elsewhere must not take the webhook down: the index is whole between its methods.
        self.index.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes it and wakes the loop.
    pub fn write<R>(&self, change: impl FnOnce(&mut Index) -> R) -> R {
        let (result, synced) = self.write_quietly(|index| (change(index), index.is_synced()));
        self.synced.send_if_modified(|known| std::mem::replace(known, synced) != synced);
        self.changed.notify_one();
        result
    }

    /// Changes it without waking the loop: for what only the loop reads.
    pub fn write_quietly<R>(&self, change: impl FnOnce(&mut Index) -> R) -> R {
        change(&mut self.index.write().unwrap_or_else(PoisonError::into_inner))
    }

    /// Follows whether every watch has listed.
    pub fn synced(&self) -> watch::Receiver<bool> {
        self.synced.subscribe()
    }

    /// Waits for the next change.
    pub async fn changed(&self) {
        self.changed.notified().await;
    }
}
