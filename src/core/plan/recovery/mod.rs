//! Recovery of batches: a batch that was complete and loses a replica is recreated as a whole. Pure.
//!
//! The complete batches are committed. Every pod of such a batch is created with the gate of rolegate, so a replica is lost
//! exactly when its pod is missing or held: the loss need not be observed, and a late watch shows it later, not wrongly. A
//! replica removed by a rollout, a scale-in or another recovery looks the same; a live read of the workload, which begins after
//! the loss was seen, tells these apart.

mod brake;
pub mod entry;
mod one;
pub mod text;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::api::status::{CoordinationState, RecoveryState};
use crate::model::moment::Moment;
use crate::model::{Batching, Coordination, Group, Recovery};
pub use crate::plan::recovery::brake::{Brake, BrakeContext, PAUSED, RESUMED, Stop, Tally};
use crate::plan::recovery::entry::{Phase, of_batch};
use crate::plan::recovery::one::One;
use crate::plan::rollout::Rollouts;
pub use crate::plan::view::Deletion;
use crate::plan::view::Numbers;
use crate::plan::view::{GroupView, LastWords, PodRef, count};

/// A batch: the position of its coordination in the list of the group, and its number from 0.
pub type BatchId = (usize, u32);

/// The inputs of recovery beside the pods.
#[derive(Clone, Copy, Debug)]
pub struct RecoveryContext<'a> {
    /// Whether the loop may not delete pods: nothing is recreated.
    pub off: bool,
    /// The current time; without it, no recovery begins.
    pub now: Option<Moment>,
    /// Whether the group breaks a rule or is being deleted: no recovery begins.
    pub rests: bool,
    /// The results of live reads of losses.
    pub verdicts: &'a [Judged],
    /// Batches with replicas that were unready for too long.
    pub unready: &'a [BatchId],
    /// Batches of which some pods have no room in their domain, while another one has room for all.
    pub moves: &'a BTreeSet<BatchId>,
    /// The inputs from other groups.
    pub brake: BrakeContext,
}

impl RecoveryContext<'_> {
    const NONE: Self = Self {
        off: false,
        now: None,
        rests: false,
        verdicts: &[],
        unready: &[],
        moves: &BTreeSet::new(),
        brake: BrakeContext { others: Tally { batches: 0, unready: 0, under_way: 0 }, unseen: false, most: None },
    };
}

/// An empty context.
impl Default for RecoveryContext<'_> {
    fn default() -> Self {
        Self::NONE
    }
}

impl Default for &RecoveryContext<'_> {
    fn default() -> Self {
        &RecoveryContext::NONE
    }
}

/// A replica that is lost, or looks lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    pub role: String,
    pub ordinal: u32,
    /// Its existing pods that are not ready; empty for a missing or held replica.
    pub unready: Vec<PodRef>,
}

/// A batch that looks broken and needs a live read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suspect {
    pub id: BatchId,
    /// The first replica that looks lost.
    pub loss: Loss,
    /// The roles of its coordination: a replica that an open rollout of any of these removes is not lost.
    pub roles: Vec<String>,
}

/// The result of a live read of a loss.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The replica is lost; the last words of its pod.
    Lost(LastWords),
    /// A rollout or a scale-in removes the replica, or it is back.
    NotLost,
    /// The node of a pod does not answer, so it is not known whether the pod runs. The replica is lost once the pod is deleted.
    Unknown {
        /// The name of the pod.
        pod: String,
        node: String,
    },
}

/// A loss with the result of its live read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judged {
    pub id: BatchId,
    pub loss: Loss,
    pub verdict: Verdict,
}

/// A batch whose held pods wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocked {
    pub message: String,
}

/// The decision on recoveries.
#[derive(Clone, Debug, Default)]
pub struct RecoveryPlan {
    /// The recoveries to store in the status.
    pub entries: Vec<RecoveryState>,
    /// The complete batches, by the position of their coordination.
    pub complete: BTreeMap<usize, Complete>,
    /// Batches whose held pods stay held.
    pub blocked: BTreeMap<BatchId, Blocked>,
    /// Batches with all their new pods, which are released when they have room and that is committed.
    pub ready_to_go: BTreeSet<BatchId>,
    /// Batches that are placed again: their committed domains no longer count.
    pub placed_anew: BTreeSet<BatchId>,
    /// Pods to delete by committed entries.
    pub delete: Vec<Deletion>,
    /// Batches that need a live read.
    pub suspects: Vec<Suspect>,
    /// Batches that look broken, with or without a live read.
    pub broken: BTreeSet<BatchId>,
    /// Batches with unready replicas, each with the time after which these are lost.
    pub unready: Vec<(BatchId, Duration)>,
    /// The time at which something is due without an event.
    pub due: Option<Moment>,
    /// Coordinations with a recovery policy while recovery is not allowed.
    pub without_effect: Vec<String>,
    /// The brake on the recoveries.
    pub brake: Brake,
    /// Batches that may or may not be broken, each with the reason.
    pub unknown: BTreeMap<BatchId, String>,
}

/// Batches of a coordination that are complete, or were.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Complete {
    /// The numbers, as in the status: `0-3,5`.
    pub batches: String,
    /// Desired replicas of each role.
    pub replicas: BTreeMap<String, u32>,
    /// Replicas of each role in one batch.
    pub sizes: BTreeMap<String, u32>,
}

impl RecoveryPlan {
    /// Notes that the pods of a batch, which waited only for their place, are released.
    pub(in crate::plan) fn goes(&mut self, group: &Group, (index, batch): BatchId) {
        let Some(name) = group.coordination(index).map(Coordination::display_name) else { return };
        let is_this = |entry: &&mut RecoveryState| entry.batch == batch && entry.coordination == name;
        if let Some(entry) = self.entries.iter_mut().find(is_this) {
            Phase::Releasing.as_str().clone_into(&mut entry.phase);
        }
    }

    /// Iterates over the phases of all entries.
    pub fn phases(&self) -> impl Iterator<Item = Phase> {
        self.entries.iter().filter_map(Phase::of)
    }
}

/// Decides which batches are recreated, and the phase of each.
pub(in crate::plan) fn plan_recovery(
    group: &Group,
    view: &GroupView,
    rollouts: &Rollouts,
    context: RecoveryContext<'_>,
) -> RecoveryPlan {
    let mut plan = RecoveryPlan::default();
    let desired = |role: &str| view.roles.get(role).map(|role| role.desired);
    let (mut all, usual) = (Vec::new(), Recovery::usual());
    let is_idle = context.moves.is_empty() && group.status.recoveries.is_empty();
    for (coordination, batching) in group.batched() {
        let policy = batching.recovers();
        if context.off {
            plan.without_effect.extend(policy.map(|_| coordination.display_name()));
            continue;
        }
        // Without a policy a batch is recreated only to move as a whole.
        let is_looked_at = |batch: &u32| {
            let known = of_batch(&group.status.recoveries, coordination, *batch);
            policy.is_some() || known.is_some() || context.moves.contains(&(coordination.index, *batch))
        };
        let recovery = policy.unwrap_or(&usual);
        let known = group.status.coordination(&coordination.display_name());
        let marks = Marks::of(known.filter(|known| known.complete_sizes == sizes(batching)));
        let unknown = batching.sizes.keys().any(|role| view.roles.get(role).is_none_or(|role| role.unknown));
        let rolls = batching.sizes.keys().any(|role| rollouts.roles.contains_key(role));
        let total = view.desired_batches(batching);
        let batches = (0..if policy.is_none() && is_idle { 0 } else { total }).filter(is_looked_at);
        all.extend(batches.map(|batch| One {
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
        batches: count(all.iter().filter(|one| one.batching.recovers().is_some()).count()),
        unready: count(all.iter().filter(|one| one.looks_broken()).count()),
        under_way: count(under_way.len()),
    };
    plan.due = under_way.into_iter().min();
    plan.brake = Brake::of(group, own, context.brake);
    let mut complete: BTreeMap<usize, Numbers> = BTreeMap::new();
    for one in &all {
        if one.decide(&mut plan) && one.batching.recovers().is_some() {
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

/// The batches that the status marks as complete.
struct Marks<'a> {
    batches: Numbers,
    replicas: Option<&'a BTreeMap<String, u32>>,
}

impl<'a> Marks<'a> {
    fn of(state: Option<&'a CoordinationState>) -> Self {
        let batches = state.map(|state| Numbers::parse(&state.complete_batches)).unwrap_or_default();
        Self { batches, replicas: state.map(|state| &state.complete_replicas) }
    }

    /// Reports whether a batch was complete, and has not grown since.
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
