//! Units that are released as a whole once all their pods exist: a replica of several pods that are created at once, and a
//! batch with a hard domain or a gang. After one pod of a unit was released, the others are released as they appear, so that a
//! recreated pod does not wait.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::{Batch, Batching, Coordination, Group, HoldReason};
use crate::plan::decide::held::Held;
use crate::plan::decide::held_pods::HeldPods;
use crate::plan::decide::together::{going_with, is_untouched};
use crate::plan::recovery::BatchId;
use crate::plan::view::{GroupView, HeldPod, Replica, ReplicaIs, RoleView};

/// A unit that is released as a whole.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AllOrNothing {
    Batch {
        /// The position of the coordination in the list of the group.
        coordination: usize,
        /// The number of the batch, from 0.
        index: u32,
    },
    Replica {
        role: String,
        /// The ordinal of the replica.
        ordinal: u32,
    },
}

/// Pods that their count allows, but that wait for other pods of their unit.
pub(in crate::plan) struct Incomplete<'a> {
    group: &'a Group,
    view: &'a GroupView,
    /// The judged batches, each with the coordination that lacks pods of it, or of a batch that shares replicas with it.
    batches: BTreeMap<(usize, u32), Option<usize>>,
    waiting: BTreeMap<AllOrNothing, Vec<HeldPod>>,
    /// The units that have waited long enough: they are released with the pods they have.
    overdue: &'a [AllOrNothing],
    gone_without: BTreeSet<AllOrNothing>,
}

impl<'a> Incomplete<'a> {
    pub(in crate::plan) fn new(group: &'a Group, view: &'a GroupView, overdue: &'a [AllOrNothing]) -> Self {
        let gone_without = BTreeSet::new();
        Self { group, view, batches: BTreeMap::new(), waiting: BTreeMap::new(), overdue, gone_without }
    }

    /// Notes a pod that waits for others; returns false if the pod may go.
    pub(in crate::plan) fn holds(&mut self, pod: &HeldPod) -> bool {
        let Some(whole) = self.whole_of(pod) else { return false };
        if self.overdue.contains(&whole) {
            self.gone_without.insert(whole);
            return false;
        }
        self.waiting.entry(whole).or_default().push(pod.clone());
        true
    }

    /// Returns all units that lack pods, whether they still wait or went without them.
    pub(in crate::plan) fn into_units(self) -> Vec<AllOrNothing> {
        self.waiting.into_keys().chain(self.gone_without).collect()
    }

    fn whole_of(&mut self, pod: &HeldPod) -> Option<AllOrNothing> {
        let (group, view) = (self.group, self.view);
        // Without a coordination that holds the replica, its pods do not wait for each other.
        group.batching_of(pod.role())?;
        for batch in group.batches_of(pod.role(), pod.ordinal).filter(|batch| batch.batching.is_all_or_nothing()) {
            let Batch { coordination, index, .. } = batch;
            let waits = self.batches.entry((coordination.index, index));
            let waiting = || {
                let lacks = |(other, batch): &BatchId| {
                    let batching = group.coordination(*other).and_then(Coordination::batching);
                    batching.is_some_and(|batching| batch_waits(view, batching, *batch))
                };
                let with = going_with(group, view, (coordination.index, index));
                with.into_iter().find(lacks).map(|(coordination, _)| coordination)
            };
            if let Some(coordination) = *waits.or_insert_with(waiting) {
                return Some(AllOrNothing::Batch { coordination, index });
            }
        }
        let replica = self.view.roles.get(pod.role())?.replicas.get(pod.ordinal)?;
        let waits = replica.made_at_once && replica.is_incomplete() && replica.is_untouched();
        waits.then(|| AllOrNothing::Replica { role: pod.role().to_owned(), ordinal: pod.ordinal })
    }

    /// Returns one entry for each coordination, with the message of its first waiting unit.
    pub(in crate::plan) fn explain(&self) -> Vec<Held> {
        let mut all: BTreeMap<Option<usize>, Held> = BTreeMap::new();
        for (whole, pods) in &self.waiting {
            let coordination = self.coordination_of(whole);
            let entry = all.entry(coordination.map(|(coordination, _)| coordination.index));
            entry.or_insert_with(|| self.held(whole, coordination)).pods.extend(pods);
        }
        all.into_values().collect()
    }

    /// Returns the coordination of a unit. A role of two coordinations counts for the first of them.
    fn coordination_of(&self, whole: &AllOrNothing) -> Option<(&'a Coordination, &'a Batching)> {
        match whole {
            AllOrNothing::Batch { coordination, .. } => {
                let coordination = self.group.coordination(*coordination)?;
                Some((coordination, coordination.batching()?))
            }
            AllOrNothing::Replica { role, .. } => {
                self.group.batched().find(|(_, batching)| batching.size(role).is_some())
            }
        }
    }

    fn held(&self, whole: &AllOrNothing, coordination: Option<(&Coordination, &Batching)>) -> Held {
        let (batch, message) = match (whole, coordination) {
            (AllOrNothing::Batch { index, .. }, Some((_, batching))) => {
                let (name, existing) = (batching.batch_name(*index), existing(self.view, batching, *index));
                (Some(*index), format!("{name} is held: {existing} exist"))
            }
            (AllOrNothing::Batch { index, .. }, None) => (Some(*index), String::new()),
            (AllOrNothing::Replica { role, ordinal }, _) => {
                let replica = self.view.roles.get(role).and_then(|role| role.replicas.get(*ordinal)).copied();
                let Replica { pods, size, .. } = replica.unwrap_or_default();
                let batch = coordination.and_then(|(_, batching)| batching.batch_of(role, *ordinal));
                (batch, format!("replica {ordinal} of role {role:?} is held: {pods}/{size} pods exist"))
            }
        };
        let place = (coordination.map(|(coordination, _)| coordination), batch);
        Held::of(place, HoldReason::IncompleteBatch, message, HeldPods::default())
    }
}

/// Reports whether a batch lacks pods and none of its pods was released.
pub(super) fn batch_waits(view: &GroupView, batching: &Batching, index: u32) -> bool {
    let lacks = |role: &RoleView, ordinals| !role.all_in(ordinals, ReplicaIs::Complete);
    is_untouched(view, batching, index) && view.ranges(batching, index).any(|(_, role, ordinals)| lacks(role, ordinals))
}

/// Returns the placed batches from which on the pods of a batch are yet to be made, which then waits for a place: a batch that may run
/// and lacks pods, and those that go with it. Of a group that is scaled, pods are made only when their batch may run.
pub(super) fn unmade_from(
    group: &Group,
    view: &GroupView,
    released: &BTreeMap<String, u32>,
    is_placed: impl Fn(&Coordination) -> bool,
) -> Vec<BatchId> {
    let first = |(coordination, batching): (&Coordination, &Batching)| {
        let sized = batching.sizes.keys().filter_map(|name| {
            let (role, count) = (view.roles.get(name)?, *released.get(name)?);
            let batches = (role.released().checked_div(batching.size(name)?)?, count.div_ceil(batching.size(name)?));
            (role.released() < count).then_some(batches)
        });
        let (begun, end) = sized.reduce(|(begun, end), other| (begun.min(other.0), end.max(other.1)))?;
        let batch = (begun..end).find(|batch| batch_waits(view, batching, *batch))?;
        Some(going_with(group, view, (coordination.index, batch)))
    };
    let placed = group.batched().filter(|(own, batching)| batching.placed_in().is_some() && is_placed(own));
    placed.filter(|_| group.scaled().is_none()).filter_map(first).flatten().collect()
}

/// Returns a text such as `7/10 prefill and 5/5 decode`.
fn existing(view: &GroupView, batching: &Batching, index: u32) -> String {
    let roles = view.ranges(batching, index).filter(|(_, _, range)| !range.is_empty()).map(|(name, role, range)| {
        let complete = role.replicas.count_in(range.clone(), ReplicaIs::Complete);
        format!("{complete}/{} {name}", range.len())
    });
    roles.collect::<Vec<_>>().join(" and ")
}

#[cfg(test)]
#[path = "all_or_nothing_tests.rs"]
mod tests;
