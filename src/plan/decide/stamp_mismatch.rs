//! Held pods that were made for another batch than theirs: their affinity cannot be changed, so they stay.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::model::{Group, HoldReason};
use crate::plan::decide::all_or_nothing::is_untouched;
use crate::plan::decide::held::{CoordinationRef, Held};
use crate::plan::view::{GroupView, HeldPod};

/// The batch that a held pod was made for, and the one that it is in; `None` when these are one. A pod that came before
/// its group, or has no number of its own, was made for none.
pub fn mismatch(group: &Group, pod: &HeldPod) -> Option<(Option<Arc<str>>, Option<String>)> {
    let marked = pod.stamp.batch.as_deref();
    let batch = group.batch_with_topology(&pod.role, pod.ordinal).map(|batch| batch.label());
    let differs = match (marked, batch.as_deref()) {
        (Some(marked), batch) => batch != Some(marked),
        (None, Some(_)) => pod.labelled && pod.stamp.carrier.is_some(),
        (None, None) => false,
    };
    differs.then(|| (pod.stamp.batch.clone(), batch))
}

/// Held pods, and those among them that were made for another batch than theirs.
#[derive(Debug, Default)]
pub(in crate::plan) struct Sorted<'a> {
    /// Pods that go by their turn.
    pub(in crate::plan) right: Vec<&'a HeldPod>,
    /// Pods that stay until they are made again.
    pub(in crate::plan) wrong: Vec<&'a HeldPod>,
    /// Others that stay with them, since their batch is released as a whole.
    beside: Vec<&'a HeldPod>,
}

/// Sorts the held pods of a group.
pub(in crate::plan) fn sort<'a>(group: &Group, view: &'a GroupView) -> Sorted<'a> {
    let known =
        |pod: &HeldPod| view.roles.get(&pod.role).is_some_and(|role| !role.unknown && pod.ordinal < role.desired);
    let is_wrong = |pod: &HeldPod| known(pod) && mismatch(group, pod).is_some();
    let (wrong, right): (Vec<_>, Vec<_>) = view.held.iter().partition(|pod| is_wrong(pod));
    let wholes: BTreeSet<_> = wrong.iter().flat_map(|pod| untouched_units(group, view, pod)).collect();
    if wholes.is_empty() {
        return Sorted { right, wrong, beside: Vec::new() };
    }
    let stays = |pod: &&HeldPod| untouched_units(group, view, pod).any(|whole| wholes.contains(&whole));
    let (beside, right) = right.into_iter().partition(stays);
    Sorted { right, wrong, beside }
}

/// The batches of a pod that are released as a whole, and of which nothing runs.
fn untouched_units<'a>(group: &'a Group, view: &'a GroupView, pod: &'a HeldPod) -> impl Iterator<Item = (usize, u32)> {
    let batches = group.batches_of(&pod.role, pod.ordinal).filter(|batch| batch.batching.is_all_or_nothing());
    let untouched = batches.filter(|batch| is_untouched(view, batch.batching, batch.index));
    untouched.map(|batch| (batch.coordination.index, batch.index))
}

impl Sorted<'_> {
    /// Why the wrong ones are held: one entry, which names the first.
    pub(in crate::plan) fn explain(&self, group: &Group) -> Option<Held> {
        let first = self.wrong.first()?;
        let (marked, batch) = mismatch(group, first)?;
        let own = group.batches_of(&first.role, first.ordinal).next();
        let named = |batch: Option<&str>| {
            batch.map_or_else(|| "no domain".to_owned(), |batch| format!("the domain of {batch}"))
        };
        let (made_for, is_in) = (named(marked.as_deref()), named(batch.as_deref()));
        Some(Held {
            coordination: own.map(|batch| CoordinationRef::from(batch.coordination)),
            batch: own.map(|batch| batch.index),
            reason: HoldReason::StampMismatch,
            message: format!("pod {:?} is held: it was made for {made_for} and belongs to {is_in}", &*first.pod.name),
            pods: self.wrong.iter().chain(&self.beside).map(|pod| pod.pod.clone()).collect(),
        })
    }
}
