//! Pods that name a group.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::{Name, SourceId, name_of, version};
use crate::api::{Meta, Pod};
use crate::model::{GroupKey, OrdinalStarts, identify, names};
use crate::plan::PodFacts;

/// Pods that name a group.
#[derive(Debug, Default)]
pub(super) struct Pods {
    by_group: HashMap<GroupKey, HashMap<Arc<str>, Entry>>,
    homes: HashMap<Name, GroupKey>,
}

#[derive(Debug)]
struct Entry {
    facts: PodFacts,
    /// StatefulSet that numbers it: the ordinal in `facts` is not yet counted from its start.
    stateful_set: Option<Arc<str>>,
    source: SourceId,
    version: Option<u64>,
}

impl Pods {
    /// The pods of a group, numbered.
    pub(super) fn of(&self, key: &GroupKey, starts: &impl OrdinalStarts) -> Vec<PodFacts> {
        let entries = self.by_group.get(key).into_iter().flat_map(HashMap::values);
        entries.map(|entry| numbered(key, entry, starts)).collect()
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

    /// Groups with pods that a StatefulSet numbers.
    pub(super) fn numbered_by(&self, set: &Name) -> Vec<GroupKey> {
        let numbered = |entry: &Entry| entry.stateful_set.as_ref() == Some(&set.1);
        let groups = self.by_group.iter().filter(|(key, pods)| key.namespace == set.0 && pods.values().any(numbered));
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

    /// Takes a pod in; returns the groups that this concerns.
    pub(super) fn apply(&mut self, source: SourceId, pod: &Pod) -> Vec<GroupKey> {
        let name = name_of(&pod.metadata);
        let facts = identify(pod, &name.0, &()).and_then(|identity| PodFacts::of(pod, identity));
        let Some(facts) = facts else { return self.forget(&name).into_iter().collect() };
        let (home, version) = (facts.identity.group.clone(), version(pod.metadata.resource_version.as_deref()));
        if let Some(known) = self.entry(&name) {
            let is_older = known.facts.pod.uid == facts.pod.uid && version < known.version;
            if is_older || (known.facts == facts && known.source == source) {
                return Vec::new();
            }
        }
        let left = if self.homes.get(&name).is_some_and(|old| *old != home) { self.forget(&name) } else { None };
        self.homes.insert(name.clone(), home.clone());
        let stateful_set = numbering_stateful_set(&pod.metadata);
        let entry = Entry { facts, stateful_set, source, version };
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
        let uid = pod.metadata.uid.as_deref().unwrap_or_default();
        let is_this = |entry: &Entry| entry.source == source && *entry.facts.pod.uid == *uid;
        self.entry(&name).is_some_and(is_this).then(|| self.forget(&name)).flatten()
    }

    fn entry(&self, name: &Name) -> Option<&Entry> {
        self.by_group.get(self.homes.get(name)?)?.get(&name.1)
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

fn numbered(key: &GroupKey, entry: &Entry, starts: &impl OrdinalStarts) -> PodFacts {
    let mut facts = entry.facts.clone();
    if let Some(name) = &entry.stateful_set {
        let start = starts.start(&key.namespace, name);
        let index = facts.identity.ordinal.map(i64::from);
        facts.identity.ordinal = index.and_then(|index| u32::try_from(index - start).ok());
    }
    facts
}

/// The StatefulSet from whose start a pod's index counts. LWS numbers its groups from 0.
fn numbering_stateful_set(meta: &Meta) -> Option<Arc<str>> {
    let other = [names::LWS_NAME, names::RBG_INSTANCE, names::INSTANCE_NAME];
    let owner = meta.controller().filter(|owner| owner.kind == "StatefulSet")?;
    other.iter().all(|key| meta.label(key).is_none()).then(|| owner.name.as_str().into())
}
