//! Batches of which nothing was released, and whose pods are not yet those that are to run. Of a batch that is released as a whole a role
//! may still get replicas: roles are scaled one after another, and their growth is one step. Of a batch that grew in a rollout old pods
//! are replaced first.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::{Batching, Group, HoldReason, Role};
use crate::plan::decide::held::Held;
use crate::plan::decide::together::{is_untouched, together, waits_text};
use crate::plan::recovery::BatchId;
use crate::plan::rollout::Rollouts;
use crate::plan::view::{GroupView, HeldPod, RoleView};

/// The maximum number of batches of a coordination that are looked at: more than wait to grow at once.
const MOST: usize = 1024;

/// Returns the batches that are cut, because the replicas of a role end inside or before them, and of which nothing was released.
/// Where the replicas of all roles stand in one object, none will grow by itself.
pub(in crate::plan) fn cut(group: &Group, view: &GroupView) -> Vec<BatchId> {
    let whole = group.batched().filter(|(_, batching)| batching.is_all_or_nothing());
    let of = |(index, batching): (usize, &Batching)| -> Option<Vec<BatchId>> {
        let full = first_cut(view, batching)?;
        let total = view.desired_batches(batching);
        let new = (full..total).take(MOST).filter(|batch| is_new(view, batching, *batch));
        Some(new.map(|batch| (index, batch)).collect())
    };
    let apart = whole.filter(|(_, batching)| are_scaled_apart(group, batching));
    apart.filter_map(|(coordination, batching)| of((coordination.index, batching))).flatten().collect()
}

/// Returns the batches of which nothing runs or ever served, from the first one on with a replica that the rollout of its role makes new
/// before it runs, each with that replica: a segment begins with pods of one version. They may be committed, before their pods are made.
fn outdated(group: &Group, view: &GroupView, rollouts: &Rollouts) -> BTreeMap<BatchId, (String, u32)> {
    // Of an elastic group no partition moves while segments are made.
    if rollouts.roles.is_empty() || group.scaled().is_some() {
        return BTreeMap::new();
    }
    let served = |role: &str| group.status.replicas_served(role);
    let new = |batching: &Batching, first: u32| {
        let total = view.desired_batches(batching);
        let begins = |batch: &u32| begins_after(view, batching, *batch, |role, _| served(role));
        (first..total).take(MOST).filter(begins).collect::<Vec<_>>()
    };
    let old = |batching: &Batching| {
        let begun = |role: &String| batching.batch_of(role, served(role).checked_sub(1)?);
        let first = batching.sizes.keys().filter_map(begun).min().unwrap_or(0);
        new(batching, first).into_iter().find_map(|batch| {
            let mut ranges = view.ranges(batching, batch);
            ranges.find_map(|(role, _, range)| Some((role.to_owned(), rollouts.made_new(role, range)?)))
        })
    };
    let replicas: Vec<_> = group.batched().filter_map(|(_, batching)| old(batching)).collect();
    let waiting = |(index, batching): (usize, &Batching)| {
        let first = replicas.iter().filter_map(|replica| Some((batching.batch_of(&replica.0, replica.1)?, replica)));
        let (first, replica) = first.min()?;
        Some(new(batching, first).into_iter().map(move |batch| ((index, batch), replica.clone())))
    };
    group.batched().filter_map(|(own, batching)| waiting((own.index, batching))).flatten().collect()
}

/// Reports whether a batch is cut, and the replicas that it lacks may still come.
pub(super) fn may_grow(group: &Group, view: &GroupView, batching: &Batching, batch: u32) -> bool {
    are_scaled_apart(group, batching) && first_cut(view, batching).is_some_and(|cut| batch >= cut)
}

/// Returns the first batch for which a role has not its full size; `None` while the replicas of a role are unknown.
fn first_cut(view: &GroupView, batching: &Batching) -> Option<u32> {
    let sized = batching.sizes.keys().filter_map(|role| Some((role, batching.size(role)?)));
    let full = |(role, size): (&String, u32)| {
        let role = view.roles.get(role).filter(|role| !role.unknown)?;
        role.desired.checked_div(size)
    };
    sized.map(full).collect::<Option<Vec<_>>>()?.into_iter().min()
}

/// Reports whether the replicas of the roles stand in several objects, which are scaled one after another.
fn are_scaled_apart(group: &Group, batching: &Batching) -> bool {
    if group.scaled().is_some_and(|(_, scaled)| scaled.at == batching.at) {
        return false;
    }
    let own = |role: &Role| role.workload.reference.as_ref().and(role.workload.key.clone());
    let source = |role: &Role| own(role).filter(|_| role.replicas.is_none());
    let roles = batching.sizes.keys().filter_map(|name| group.role(name));
    roles.map(source).collect::<BTreeSet<_>>().len() > 1
}

/// Reports whether no pod of a batch was released, and none of its replicas is committed: those that were go at once.
fn is_new(view: &GroupView, batching: &Batching, batch: u32) -> bool {
    begins_after(view, batching, batch, |_, role| role.committed.unwrap_or(0))
}

/// Reports whether no pod of a batch was released, and its replicas come after these counts of their roles.
fn begins_after(view: &GroupView, batching: &Batching, batch: u32, count: impl Fn(&str, &RoleView) -> u32) -> bool {
    let mut ranges = view.ranges(batching, batch).filter(|(_, _, range)| !range.is_empty());
    ranges.all(|(name, role, range)| count(name, role) <= range.start) && is_untouched(view, batching, batch)
}

/// Held pods of batches that wait to grow, and of batches that share replicas with these.
pub(super) struct Growing<'a> {
    group: &'a Group,
    view: &'a GroupView,
    /// The batches, each with the coordination whose batch waits to grow.
    batches: BTreeMap<BatchId, usize>,
    /// Those that wait for the rollout of a role, with a replica that it replaces.
    outdated: BTreeMap<BatchId, (String, u32)>,
    waiting: BTreeMap<BatchId, Vec<HeldPod>>,
}

impl<'a> Growing<'a> {
    pub(super) fn of(group: &'a Group, view: &'a GroupView, rollouts: &Rollouts, growing: &[BatchId]) -> Self {
        let outdated = outdated(group, view, rollouts);
        let growing = || growing.iter().chain(outdated.keys());
        let mut batches: BTreeMap<_, _> = growing().map(|id| (*id, id.0)).collect();
        for (index, batch) in growing() {
            for (other, _) in together(group, view, (*index, *batch), |other| is_new(view, other, *batch)) {
                batches.entry((other.index, *batch)).or_insert(*index);
            }
        }
        Self { group, view, batches, outdated, waiting: BTreeMap::new() }
    }

    /// Iterates over the batches that wait, whether their pods exist or not.
    pub(super) fn batches(&self) -> impl Iterator<Item = BatchId> {
        self.batches.keys().copied()
    }

    /// Notes a pod that waits; returns false if the pod may go.
    pub(super) fn holds(&mut self, pod: &HeldPod) -> bool {
        if self.batches.is_empty() {
            return false;
        }
        let ids = self.group.batches_of(pod.role(), pod.ordinal).map(|batch| (batch.coordination.index, batch.index));
        let Some(id) = ids.into_iter().find(|id| self.batches.contains_key(id)) else { return false };
        self.waiting.entry(id).or_default().push(pod.clone());
        true
    }

    /// Returns one entry for each waiting batch.
    pub(super) fn explain(&self) -> impl Iterator<Item = Held> {
        self.waiting.iter().filter_map(|(id, pods)| {
            let (own, other) = (self.group.coordination(id.0)?, self.group.coordination(*self.batches.get(id)?)?);
            let batching = own.batching()?;
            let (reason, message) = if own.index != other.index {
                (HoldReason::BlockedByCoordination, waits_text(batching, id.1, other))
            } else if let Some((role, ordinal)) = self.outdated.get(id) {
                let name = batching.batch_name(id.1);
                let message = format!("{name} is held: {role}-{ordinal} is old, and the rollout replaces it first");
                (HoldReason::SegmentOutdated, message)
            } else {
                (HoldReason::SegmentGrowing, self.text(batching, id.1))
            };
            Some(Held::of((Some(own), Some(id.1)), reason, message, pods.clone()))
        })
    }

    fn text(&self, batching: &Batching, batch: u32) -> String {
        let roles = self.view.ranges(batching, batch).filter_map(|(name, _, range)| {
            let size = batching.size(name)?;
            Some(format!("{}/{size} {name}", range.len()))
        });
        let there = roles.collect::<Vec<_>>().join(" and ");
        format!(
            "{} is held: of it {there} are asked for, and its roles may still be growing",
            batching.batch_name(batch)
        )
    }
}

#[cfg(test)]
#[path = "growing_tests.rs"]
mod tests;
