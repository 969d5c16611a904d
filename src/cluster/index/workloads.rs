//! Workloads: desired replicas of roles that refer to them, and where StatefulSets start to count.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use super::SourceId;
use crate::model::{OrdinalStarts, Workload, WorkloadKey, WorkloadKind};

/// A workload as a watch reports it.
#[derive(Clone, Debug)]
pub struct SeenWorkload {
    /// What rules and groups look at.
    pub workload: Workload,
    /// `spec.ordinals.start`, 0 for kinds without it.
    pub start: i64,
}

/// Workloads.
#[derive(Debug, Default)]
pub(super) struct Workloads {
    all: HashMap<WorkloadKey, Entry>,
}

#[derive(Debug)]
struct Entry {
    workload: Arc<Workload>,
    start: i64,
    /// The watch that has told of it.
    source: Option<SourceId>,
}

/// What a workload's change concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Changed {
    /// Desired replicas, or anything else that a group is read with.
    pub(super) desired: bool,
    /// What its pods do not say of themselves: from where they are counted, and whether they are made at once.
    pub(super) pods: bool,
}

impl Workloads {
    pub(super) fn get(&self, key: &WorkloadKey) -> Option<&Workload> {
        self.all.get(key).map(|entry| &*entry.workload)
    }

    /// Takes a workload in. Without a source it was read outside a watch, which counts until a watch tells of it.
    pub(super) fn apply(&mut self, source: Option<SourceId>, seen: SeenWorkload) -> Changed {
        let key = seen.workload.key.clone();
        let before = self.all.get(&key);
        if source.is_none() && before.is_some() {
            return Changed { desired: false, pods: false };
        }
        let changed = Changed {
            desired: before.is_none_or(|before| {
                before.workload.desired != seen.workload.desired
                    || before.workload.replica_size != seen.workload.replica_size
                    || before.workload.one_by_one != seen.workload.one_by_one
            }),
            pods: before.map_or(0, |before| before.start) != seen.start
                || before.and_then(|before| before.workload.one_by_one) != seen.workload.one_by_one,
        };
        self.all.insert(key, Entry { workload: Arc::new(seen.workload), start: seen.start, source });
        changed
    }

    /// The workload whose pods carry these labels: all of one of the sets.
    pub(super) fn with_labels(&self, namespace: &str, sets: &[[(&str, &str); 2]]) -> Option<&WorkloadKey> {
        let carries = |labels: &BTreeMap<String, String>, set: &[(&str, &str); 2]| {
            set.iter().all(|(key, value)| labels.get(*key).is_some_and(|found| found == value))
        };
        let makes = |workload: &Workload| {
            workload.template_labels.iter().any(|labels| sets.iter().any(|set| carries(labels, set)))
        };
        let own = self.all.iter().filter(|(key, entry)| key.namespace == namespace && makes(&entry.workload));
        // The StatefulSets behind a LeaderWorkerSet have its labels as well.
        own.map(|(key, _)| key).min_by_key(|key| (key.kind == WorkloadKind::StatefulSet, *key))
    }

    pub(super) fn forget(&mut self, key: &WorkloadKey) {
        self.all.remove(key);
    }

    /// Forgets what a watch has not listed; returns what that was.
    pub(super) fn keep_only(
        &mut self,
        source: SourceId,
        kind: WorkloadKind,
        listed: &[SeenWorkload],
    ) -> Vec<WorkloadKey> {
        let listed: HashSet<_> = listed.iter().map(|seen| &seen.workload.key).collect();
        let gone = self.all.iter().filter(|(key, entry)| {
            entry.source.is_none_or(|from| from == source) && key.kind == kind && !listed.contains(key)
        });
        let gone: Vec<_> = gone.map(|(key, _)| key.clone()).collect();
        gone.iter().for_each(|key| self.forget(key));
        gone
    }
}

impl OrdinalStarts for Workloads {
    fn start(&self, namespace: &str, stateful_set: &str) -> i64 {
        let (namespace, name) = (namespace.to_owned(), stateful_set.to_owned());
        self.all.get(&WorkloadKey { namespace, kind: WorkloadKind::StatefulSet, name }).map_or(0, |entry| entry.start)
    }
}
