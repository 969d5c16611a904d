//! Workloads: desired replicas of the roles that refer to them, and first ordinals of StatefulSets.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use super::store::{Store, Stored};
use super::{SourceId, version};
use crate::model::{
    Group, GroupKey, OrdinalStarts, OwnUpdate, Role, RolledWorkload, ScaledWorkload, Workload, WorkloadKey,
    WorkloadKind, WorkloadObject,
};

/// A workload as a watch reports it.
#[derive(Clone, Debug)]
pub struct SeenWorkload {
    /// The part that rules and groups read.
    pub workload: Arc<Workload>,
    /// `spec.ordinals.start`, 0 for kinds without it.
    pub start: i64,
    /// State of its rollout, if it is claimed for rollouts in lockstep.
    pub rolled: Option<RolledWorkload>,
    /// Its scale, if it is claimed.
    pub scaled: Option<ScaledWorkload>,
    /// Revision of the LeaderWorkerSet whose leaders a StatefulSet makes, and the partition by which it makes them, once observed.
    pub leaders_at: Option<(String, Option<i64>)>,
}

impl SeenWorkload {
    pub fn of<T: WorkloadObject>(object: &T) -> Self {
        Self {
            workload: Arc::new(object.workload()),
            start: object.start(),
            rolled: object.rolled(),
            scaled: object.scaled(),
            leaders_at: object.leaders_at().map(|revision| (revision.to_owned(), object.observed_partition())),
        }
    }
}

/// Workloads, and those that are claimed for a group: a pass over one group does not scan all workloads.
#[derive(Debug, Default)]
pub(super) struct Workloads(pub(super) Store<WorkloadKey, SeenWorkload>);

impl SeenWorkload {
    /// Returns the group it is claimed for, or was claimed for before its claim was removed during a rollout.
    fn group(&self) -> Option<&GroupKey> {
        let former = || self.rolled.as_ref().map(|rolled| &rolled.claim.group);
        self.workload.claim.as_ref().map(|claim| &claim.group).or_else(former)
    }
}

/// The effects of a change of a workload.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct WorkloadChange {
    /// The input of groups and their rules has changed.
    pub(super) groups: bool,
    /// Facts that its pods lack have changed: the first ordinal, or whether pods are made one by one.
    pub(super) pods: bool,
    /// The update of a StatefulSet by itself has changed.
    pub(super) update: bool,
    /// Groups whose rollouts are affected.
    pub(super) rollouts: Vec<GroupKey>,
}

impl Workloads {
    pub(super) fn get(&self, key: &WorkloadKey) -> Option<&Arc<Workload>> {
        self.seen(key).map(|seen| &seen.workload)
    }

    fn seen(&self, key: &WorkloadKey) -> Option<&SeenWorkload> {
        self.0.get(key).map(|stored| &stored.object)
    }

    /// Stores a workload. Without a source it was read outside a watch, and counts until a watch reports it.
    pub(super) fn apply(&mut self, source: Option<SourceId>, seen: SeenWorkload) -> WorkloadChange {
        let key = seen.workload.key.clone();
        let stored = self.0.get(&key);
        let before = stored.map(|stored| &stored.object);
        let versions = before.and_then(version_of).zip(version_of(&seen));
        // A workload read outside a watch may be older than the known one, unless its version proves otherwise.
        let unsure = source.is_none() && before.is_some() && versions.is_none();
        // The version seen by a watch may be behind the one that a write returned.
        if unsure || versions.is_some_and(|(known, seen)| known.0 == seen.0 && seen.1 < known.1) {
            return WorkloadChange::default();
        }
        let rollouts = self.rollouts_concerned(before, &seen);
        let changed = WorkloadChange {
            rollouts,
            groups: before.is_none_or(|before| !seen.workload.is_like(&before.workload)),
            pods: before.map_or(0, |before| before.start) != seen.start
                || before.and_then(|before| before.workload.one_by_one) != seen.workload.one_by_one,
            update: before.is_some_and(|before| before.workload.update != seen.workload.update),
        };
        let source = source.or(stored.and_then(|stored| stored.source));
        self.0.insert(key, Stored { source, group: seen.group().cloned(), object: seen });
        changed
    }

    /// Removes a workload; returns the group of its claim for rollouts.
    pub(super) fn forget(&mut self, key: &WorkloadKey) -> Option<GroupKey> {
        self.0.remove(key)?.object.rolled.map(|rolled| rolled.claim.group)
    }

    /// Returns the groups a workload is or was claimed for, when an input of their rollouts has changed.
    fn rollouts_concerned(&self, before: Option<&SeenWorkload>, seen: &SeenWorkload) -> Vec<GroupKey> {
        let (old, new) = (before.and_then(|entry| entry.rolled.as_ref()), seen.rolled.as_ref());
        let same = match (old, new) {
            (Some(old), Some(new)) => new.is_like(old),
            (None, None) => true,
            _ => false,
        };
        let claims = [old, new].into_iter().flatten().map(|rolled| rolled.claim.group.clone()).filter(|_| !same);
        // The requests of its pods decide whether its next batch has room.
        let asked = before.and_then(|entry| entry.scaled.as_ref()).map(|scaled| &scaled.replica);
        let scaled = seen.scaled.as_ref().filter(|scaled| asked.is_none_or(|asked| *asked != scaled.replica));
        let claims = claims.chain(scaled.map(|scaled| scaled.claim.group.clone()));
        let moved = before.and_then(|entry| entry.leaders_at.as_ref()) != seen.leaders_at.as_ref();
        let led = seen.workload.key.kind.makes_for().filter(|_| moved);
        let led = led.filter_map(|kind| self.seen(&WorkloadKey { kind, ..seen.workload.key.clone() }));
        let led = led.filter_map(|entry| entry.rolled.as_ref());
        claims.chain(led.map(|rolled| rolled.claim.group.clone())).collect()
    }

    /// Returns the workloads claimed for rollouts of a group, by name. The revision of a LeaderWorkerSet comes from the
    /// StatefulSet of its leaders, whose controller makes them by the partition that it has observed.
    pub(super) fn rolled(&self, group: &GroupKey) -> Vec<RolledWorkload> {
        let mut all: Vec<_> = self.0.of(group).filter_map(|entry| entry.rolled.clone()).collect();
        for rolled in &mut all {
            let Some(kind) = rolled.key.kind.row().made_by else { continue };
            let leaders = WorkloadKey { kind, ..rolled.key.clone() };
            let leaders_at = self.seen(&leaders).and_then(|entry| entry.leaders_at.clone());
            // It is never below the partition of the LeaderWorkerSet, once its controller has handed that on.
            let partition = i64::from(rolled.partition);
            let is_handed_on = |(_, seen): &(String, Option<i64>)| seen.is_some_and(|seen| seen >= partition);
            rolled.observed &= leaders_at.as_ref().is_none_or(is_handed_on);
            rolled.update_revision = leaders_at.map(|(revision, _)| revision);
        }
        all
    }

    /// Applies the scale of a workload as a write returned it, ahead of the watch; returns true when it is news. Its
    /// controller has yet to observe it.
    pub(super) fn scaled_to(&mut self, known: &ScaledWorkload, replicas: u32, version_now: &str) -> bool {
        let Some(entry) = self.0.get_mut(&known.key) else { return false };
        let Some(scaled) = entry.scaled.as_mut().filter(|scaled| scaled.uid == known.uid) else { return false };
        if version(Some(version_now)) <= version(Some(&scaled.resource_version)) {
            return false;
        }
        (scaled.desired, scaled.resource_version) = (replicas, version_now.to_owned());
        if let Some(rolled) = &mut entry.rolled {
            (rolled.desired, rolled.resource_version, rolled.observed) = (replicas, version_now.to_owned(), false);
        }
        entry.workload = Arc::new(Workload { desired: replicas, ..Workload::clone(&entry.workload) });
        true
    }

    /// Returns the workloads claimed for a group, by name.
    pub(super) fn scaled(&self, group: &GroupKey) -> Vec<ScaledWorkload> {
        self.0.of(group).filter_map(|entry| entry.scaled.clone()).collect()
    }

    /// Returns the workload that makes the pods of a role: the claimed one, else the one that the group names.
    pub(super) fn of_role(&self, group: &Group, role: &str) -> Option<&Arc<Workload>> {
        let is_claimed = |workload: &&Arc<Workload>| workload.claim.as_ref().is_some_and(|claim| claim.role == role);
        let claimed = self.0.of(&group.key).map(|entry| &entry.workload).find(is_claimed);
        claimed.or_else(|| self.get(group.role(role)?.workload.key.as_ref()?))
    }

    /// Returns the updates of the StatefulSets of a group's roles that are under way.
    pub(super) fn updates(&self, group: &Group) -> Vec<(String, OwnUpdate)> {
        let update = |role: &Role| Some((role.name.clone(), self.of_role(group, &role.name)?.update.clone()?));
        group.roles.iter().filter_map(update).collect()
    }

    pub(super) fn open(&self) -> impl Iterator<Item = &GroupKey> {
        let rolled = self.0.iter().filter_map(|(_, entry)| entry.rolled.as_ref());
        rolled.filter(|rolled| rolled.is_open()).map(|rolled| &rolled.claim.group)
    }

    /// Returns the workload whose pod template has both labels of one of the sets.
    pub(super) fn with_labels(&self, namespace: &str, sets: &[[(&str, &str); 2]]) -> Option<&WorkloadKey> {
        let carries = |labels: &BTreeMap<String, String>, set: &[(&str, &str); 2]| {
            set.iter().all(|(key, value)| labels.get(*key).is_some_and(|found| found == value))
        };
        let makes = |workload: &Workload| {
            workload.template_labels.iter().any(|labels| sets.iter().any(|set| carries(labels, set)))
        };
        let own = self.0.iter().filter(|(key, entry)| key.namespace == namespace && makes(&entry.workload));
        // The StatefulSets behind a LeaderWorkerSet carry its labels as well.
        own.map(|(key, _)| key).min_by_key(|key| (key.kind.makes_for().next().is_some(), *key))
    }

    /// Removes the workloads of a kind that a watch has not listed; returns them.
    pub(super) fn keep_only(
        &mut self,
        source: SourceId,
        kind: WorkloadKind,
        listed: &[SeenWorkload],
    ) -> Vec<(WorkloadKey, Option<GroupKey>)> {
        let listed: HashSet<_> = listed.iter().map(|seen| &seen.workload.key).collect();
        let gone = self.0.keep_only(source, |key| key.kind != kind || listed.contains(key)).into_iter();
        gone.map(|(key, stored)| (key, stored.object.rolled.map(|rolled| rolled.claim.group))).collect()
    }
}

impl OrdinalStarts for Workloads {
    fn start(&self, namespace: &str, stateful_set: &str) -> i64 {
        let (namespace, name) = (namespace.to_owned(), stateful_set.to_owned());
        self.seen(&WorkloadKey { namespace, kind: WorkloadKind::StatefulSet, name }).map_or(0, |entry| entry.start)
    }
}

/// Returns the uid and version of a claimed workload.
fn version_of(seen: &SeenWorkload) -> Option<(&str, Option<u64>)> {
    let of_rolled = || seen.rolled.as_ref().map(|rolled| (&*rolled.uid, &rolled.resource_version));
    let of_scaled = seen.scaled.as_ref().map(|scaled| (&*scaled.uid, &scaled.resource_version));
    of_scaled.or_else(of_rolled).map(|(uid, text)| (uid, version(Some(text))))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::api::workload::StatefulSet;
    use crate::model::names;

    fn set(version: u32, labels: &serde_json::Value) -> SeenWorkload {
        let meta = json!({ "name": "s", "namespace": "ns", "uid": "u", "resourceVersion": version.to_string(), "labels": labels });
        let set: StatefulSet = serde_json::from_value(json!({ "metadata": meta, "spec": { "replicas": 2 } })).unwrap();
        SeenWorkload::of(&set)
    }

    #[test]
    fn workloads_are_found_by_the_group_that_they_are_claimed_for_now() {
        let claim = |group: &str| json!({ (names::GROUP): group, (names::ROLE): "decode" });
        let key = |name: &str| GroupKey { namespace: "ns".into(), name: name.into() };
        let mut workloads = Workloads::default();
        let found = |workloads: &Workloads| {
            ["a", "b"].map(|group| (workloads.rolled(&key(group)).len(), workloads.scaled(&key(group)).len()))
        };
        workloads.apply(Some(0), set(1, &claim("a")));
        assert_eq!(found(&workloads), [(1, 1), (0, 0)]);
        workloads.apply(Some(0), set(2, &claim("b")));
        assert_eq!(found(&workloads), [(0, 0), (1, 1)]);
        workloads.apply(Some(0), set(3, &json!({})));
        assert_eq!((found(&workloads), workloads.0.groups().len()), ([(0, 0), (0, 0)], 0));
        workloads.apply(Some(0), set(4, &claim("a")));
        workloads.forget(&set(4, &claim("a")).workload.key);
        assert_eq!((workloads.0.len(), workloads.0.groups().len()), (0, 0));
    }
}
