//! Recovery of batches: one that was complete and loses a replica is made anew as a whole. Pure.
//!
//! Which batches were complete is committed. Every pod of such a batch is born with our gate, so that a replica is lost
//! exactly when its pod is missing or held: nobody has to have seen it go, and a watch that is late shows it later and not
//! wrong. What a rollout, a scale-in or another recovery takes away looks the same; it is told apart by a live look at what
//! makes the pods, which begins after the loss was seen.

mod brake;
pub mod entry;
mod one;
pub mod text;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use crate::api::status::{CoordinationState, RecoveryState};
use crate::model::moment::Moment;
use crate::model::{Batching, Coordination, Group};
pub use crate::plan::recovery::brake::{Brake, BrakeContext, PAUSED, RESUMED, Stop, Tally};
use crate::plan::recovery::entry::{Phase, of_batch};
use crate::plan::recovery::one::One;
use crate::plan::rollout::Rollouts;
use crate::plan::view::Numbers;
use crate::plan::view::{GroupView, LastWords, PodFacts, PodRef, count};

/// A batch by the place of its coordination in the group's list, and its number from 0.
pub type BatchId = (usize, u32);

/// What is known beside the pods.
#[derive(Clone, Copy, Debug, Default)]
pub struct RecoveryContext<'a> {
    /// Whoever runs the loop has not allowed it to delete pods: nothing is made anew.
    pub off: bool,
    /// What time it is; without it, nothing begins.
    pub now: Option<Moment>,
    /// The group breaks a rule, or is on its way out: nothing begins.
    pub rests: bool,
    /// What live looks at losses have shown.
    pub verdicts: &'a [Judged],
    /// Batches of which replicas are not ready for longer than they may be.
    pub unready: &'a [BatchId],
    /// What is known of other groups.
    pub brake: BrakeContext,
}

/// Nothing is known.
impl Default for &RecoveryContext<'_> {
    fn default() -> Self {
        const NONE: RecoveryContext<'_> = RecoveryContext {
            off: false,
            now: None,
            rests: false,
            verdicts: &[],
            unready: &[],
            brake: BrakeContext { others: Tally { batches: 0, unready: 0, under_way: 0 }, unseen: false, most: None },
        };
        &NONE
    }
}

/// A replica that is lost, or looks so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// Its role.
    pub role: String,
    /// Its ordinal.
    pub ordinal: u32,
    /// Its pods that are there and not ready; none of a replica that is missing or held.
    pub unready: Vec<PodRef>,
}

/// A batch that looks broken, and is to be looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suspect {
    /// The batch.
    pub id: BatchId,
    /// The first replica that looks lost.
    pub loss: Loss,
    /// Roles of its coordination: what an open rollout of any of them takes away is not lost.
    pub roles: Vec<String>,
}

/// What a live look at a loss has shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is lost, and this is what was seen of it.
    Lost(LastWords),
    /// A rollout or a scale-in takes it away, or it is back.
    NotLost,
    /// The node of a pod of it does not answer: whether the pod runs, nobody knows. It is lost when it is deleted.
    Unknown {
        /// The pod.
        pod: String,
        /// The node.
        node: String,
    },
}

/// A loss that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judged {
    /// The batch.
    pub id: BatchId,
    /// What was looked at.
    pub loss: Loss,
    /// What that has shown.
    pub verdict: Verdict,
}

/// A pod that is to be deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deletion {
    /// The pod.
    pub pod: Arc<PodFacts>,
    /// The other pods of its replica go with it, and before it.
    pub with_dependents: bool,
}

/// What a batch's pods wait for that are held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocked {
    /// For people.
    pub message: String,
}

/// What is decided.
#[derive(Clone, Debug, Default)]
pub struct RecoveryPlan {
    /// Recoveries as the status is to keep them.
    pub entries: Vec<RecoveryState>,
    /// Batches that are complete, by the place of their coordination.
    pub complete: BTreeMap<usize, Complete>,
    /// Batches whose held pods stay.
    pub blocked: BTreeMap<BatchId, Blocked>,
    /// Batches whose new pods are all there: they go when they have room, and when that is committed.
    pub ready_to_go: BTreeSet<BatchId>,
    /// Batches that are placed anew: what was committed of their domains counts no more.
    pub placed_anew: BTreeSet<BatchId>,
    /// Pods that are to be deleted: what is committed is done.
    pub delete: Vec<Deletion>,
    /// Batches that are to be looked at.
    pub suspects: Vec<Suspect>,
    /// Batches that look broken, whether they were looked at or not.
    pub broken: BTreeSet<BatchId>,
    /// Batches with replicas that are not ready, and how long they may be.
    pub unready: Vec<(BatchId, Duration)>,
    /// When something is due that no event brings.
    pub due: Option<Moment>,
    /// Coordinations that want their batches recovered, where nobody has allowed it.
    pub without_effect: Vec<String>,
    /// What keeps recoveries back.
    pub brake: Brake,
    /// Batches of which nobody knows whether they are broken, and why.
    pub unknown: BTreeMap<BatchId, String>,
}

/// Batches of a coordination that are complete, or were.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Complete {
    /// Their numbers, as the status keeps them: `0-3,5`.
    pub batches: String,
    /// Desired replicas of each role.
    pub replicas: BTreeMap<String, u32>,
    /// Replicas of each role in one batch.
    pub sizes: BTreeMap<String, u32>,
}

impl RecoveryPlan {
    /// Notes that the pods of a batch go, which waited for nothing but their place.
    pub(in crate::plan) fn goes(&mut self, group: &Group, (index, batch): BatchId) {
        let Some(name) = group.coordination(index).map(Coordination::display_name) else { return };
        let is_this = |entry: &&mut RecoveryState| entry.batch == batch && entry.coordination == name;
        if let Some(entry) = self.entries.iter_mut().find(is_this) {
            Phase::Releasing.as_str().clone_into(&mut entry.phase);
        }
    }

    /// How many batches are in each phase.
    pub fn phases(&self) -> impl Iterator<Item = Phase> {
        self.entries.iter().filter_map(Phase::of)
    }
}

/// Decides which batches are made anew, and how far that is.
pub(in crate::plan) fn plan_recovery(
    group: &Group,
    view: &GroupView,
    rollouts: &Rollouts,
    context: RecoveryContext<'_>,
) -> RecoveryPlan {
    let mut plan = RecoveryPlan::default();
    let desired = |role: &str| view.roles.get(role).map(|role| role.desired);
    let mut all = Vec::new();
    for (coordination, batching) in group.batched() {
        let Some(recovery) = batching.recovers() else { continue };
        if context.off {
            plan.without_effect.push(coordination.display_name());
            continue;
        }
        let name = coordination.display_name();
        let known = group.status.coordination_state.iter().find(|state| state.name == name);
        let marks = Marks::of(known.filter(|known| known.complete_sizes == sizes(batching)));
        let unknown = batching.sizes.keys().any(|role| view.roles.get(role).is_none_or(|role| role.unknown));
        let rolls = batching.sizes.keys().any(|role| rollouts.roles.contains_key(role));
        all.extend((0..batching.total(desired)).map(|batch| One {
            group,
            view,
            coordination,
            batching,
            recovery,
            batch,
            known: of_batch(&group.status.recoveries, coordination, batch),
            was_complete: marks.has(batching, batch, desired),
            rests: context.rests || unknown || rolls,
            rolls,
            context,
        }));
    }
    let under_way: Vec<_> = all.iter().filter_map(One::counts_until).collect();
    let own = Tally {
        batches: count(all.len()),
        unready: count(all.iter().filter(|one| one.looks_broken()).count()),
        under_way: count(under_way.len()),
    };
    plan.due = under_way.into_iter().min();
    plan.brake = Brake::of(group, own, context.brake);
    let mut complete: BTreeMap<usize, Numbers> = BTreeMap::new();
    for one in &all {
        if one.decide(&mut plan) {
            complete.entry(one.coordination.index).or_default().push(one.batch);
        }
    }
    for (coordination, batching) in group.batched() {
        let Some(complete) = complete.get(&coordination.index) else { continue };
        let replicas = batching.sizes.keys().filter_map(|role| Some((role.clone(), desired(role)?)));
        let complete = Complete { batches: complete.text(), replicas: replicas.collect(), sizes: sizes(batching) };
        plan.complete.insert(coordination.index, complete);
    }
    plan
}

fn sizes(batching: &Batching) -> BTreeMap<String, u32> {
    batching.sizes.keys().filter_map(|role| Some((role.clone(), batching.size(role)?))).collect()
}

/// Batches that are known to have been complete.
struct Marks<'a> {
    batches: Numbers,
    replicas: Option<&'a BTreeMap<String, u32>>,
}

impl<'a> Marks<'a> {
    fn of(state: Option<&'a CoordinationState>) -> Self {
        let batches = state.map(|state| Numbers::parse(&state.complete_batches)).unwrap_or_default();
        Self { batches, replicas: state.map(|state| &state.complete_replicas) }
    }

    /// True for a batch that was complete, and has not grown since.
    fn has(&self, batching: &Batching, batch: u32, desired: impl Fn(&str) -> Option<u32>) -> bool {
        let has_grown = |role: &String| {
            let before = self.replicas.and_then(|replicas| replicas.get(role)).copied().unwrap_or(0);
            let now = batching.ordinals(role, batch, desired(role).unwrap_or(0));
            !now.is_empty() && batching.ordinals(role, batch, before).end < now.end
        };
        self.batches.has(batch) && !batching.sizes.keys().any(has_grown)
    }
}

#[cfg(test)]
#[path = "recovery_tests.rs"]
mod tests;
