//! Batches that go as a whole, and of which other controllers hold pods with gates of their own. Released now, the other pods would
//! run without them: the batch waits until these gates are lifted. Kueue's gates are looked at when a batch is placed.

use std::collections::BTreeMap;

use crate::model::{Batch, Group, HoldReason};
use crate::plan::decide::DecisionContext;
use crate::plan::decide::held::Held;
use crate::plan::decide::held_pods::HeldPods;
use crate::plan::decide::together::is_untouched;
use crate::plan::view::{GroupView, HeldPod};

/// Pods whose turn has come, in batches that wait for gates of others.
pub(super) struct Gated<'a> {
    group: &'a Group,
    view: &'a GroupView,
    /// Whether nothing moved for longer than the progress deadline.
    stalled: bool,
    /// The judged batches, each with the text on the gates that it waits for.
    batches: BTreeMap<(usize, u32), Option<String>>,
    /// The first waiting batch of each coordination, with the pods of all.
    waiting: BTreeMap<usize, Held>,
}

impl<'a> Gated<'a> {
    pub(super) fn of(group: &'a Group, view: &'a GroupView, context: DecisionContext<'_>) -> Self {
        let (batches, waiting) = (BTreeMap::new(), BTreeMap::new());
        Self { group, view, stalled: context.stalled, batches, waiting }
    }

    /// Notes a pod of a batch that waits for gates of others; returns false if the pod may go.
    pub(super) fn holds(&mut self, pod: &HeldPod) -> bool {
        let Self { group, view, stalled, batches, waiting } = self;
        for batch in group.batches_of(pod.role(), pod.ordinal).filter(|batch| batch.batching.is_all_or_nothing()) {
            let (coordination, index) = (batch.coordination, batch.index);
            let why = batches.entry((coordination.index, index)).or_insert_with(|| gates(view, batch, *stalled));
            if let Some(why) = why {
                let held = || {
                    let place = (Some(coordination), Some(index));
                    Held::of(place, HoldReason::GatedByOthers, why.clone(), HeldPods::default())
                };
                waiting.entry(coordination.index).or_insert_with(held).pods.push(pod.clone());
                return true;
            }
        }
        false
    }

    /// Returns one entry for each coordination.
    pub(super) fn explain(self) -> impl Iterator<Item = Held> {
        self.waiting.into_values()
    }
}

/// Returns the text on the gates of others that an untouched batch waits for; `None` without one.
fn gates(view: &GroupView, Batch { batching, index, .. }: Batch<'_>, stalled: bool) -> Option<String> {
    if !is_untouched(view, batching, index) {
        return None;
    }
    let pods = || {
        let replicas = view.ranges(batching, index).flat_map(|(_, role, ordinals)| ordinals.map(move |at| (role, at)));
        replicas.flat_map(|(role, ordinal)| role.replicas.pods_of(ordinal)).filter(|pod| pod.foreign_gate.is_some())
    };
    let gate = pods().find_map(|pod| pod.foreign_gate.clone())?;
    let since = pods().filter_map(|pod| pod.created.as_deref()).min();
    let since = since.map(|since| format!(" since {since}")).unwrap_or_default();
    let name = batching.batch_name(index);
    let count = pods().count();
    let mutual = if stalled { MUTUAL } else { "" };
    Some(format!("{name} is held: gate {gate:?} of another controller holds {count} of its pods{since}{mutual}"))
}

/// What is said once nothing has moved for long.
const MUTUAL: &str = "; if its owner waits until rolegate has lifted its own gate, neither goes on";

#[cfg(test)]
#[path = "gated_tests.rs"]
mod tests;
