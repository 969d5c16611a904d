//! Rollouts in lockstep (KEP-30): from the state of each ordinal of each role to the partition of each workload. Pure.

mod behind;
mod cohorts;
mod counts;
mod observe;
mod outdated;
mod segments;
mod skew;
mod stage;
pub mod standing;
mod text;
mod walk;

use std::collections::BTreeMap;

pub use observe::Rollouts;
pub use skew::excess;
pub use stage::{Late, LateWhat, PauseEnd, Pauses, Stage, StepNumber, stages};
pub use text::{PlannedStep, behind_text, is_behind_held, planned_steps, rollouts, stage_text, waits_for};
pub use walk::plan_rollout;

use crate::model::{ProgressState, RollingBounds};

/// One replica in a rollout; the default is a replica that does not exist.
#[expect(clippy::struct_excessive_bools, reason = "independent facts of a replica, not states of one machine")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ordinal {
    /// Its pods are at the update revision, or will be: after a rollback to the base revision, a missing replica comes back at
    /// it, whatever the partition.
    pub updated: bool,
    /// All its pods are ready.
    pub ready: bool,
    /// Some of its pods are held by the gate of rolegate: it does not serve, and that is no failure.
    pub held: bool,
    /// None of its pods was ready yet since the role has so many replicas: it does not serve, and that is no failure.
    pub new: bool,
    /// It is held, and its batch had a place and lost it: it waits for one as if it had never run.
    pub displaced: bool,
    /// It is at a revision that is neither the base nor the target of the workload: a rollout that was given up halfway.
    pub given_up: bool,
}

impl Ordinal {
    /// Reports whether the replica is updated and ready.
    pub fn is_done(self) -> bool {
        self.updated && self.ready
    }

    /// Reports whether the replica is updated, and is ready, held or never was ready.
    fn is_settled(self) -> bool {
        self.updated && !self.is_unavailable()
    }

    /// Reports whether the replica should serve and does not.
    pub fn is_unavailable(self) -> bool {
        !self.ready && !self.held && !self.new
    }
}

/// An open rollout of one role.
#[expect(clippy::struct_excessive_bools, reason = "independent facts of a rollout, not states of one machine")]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoleRollout {
    /// The current partition of the workload: ordinals from here on may be replaced at any moment.
    pub partition: u32,
    /// The partition that the user asked for: ordinals below it stay old.
    pub floor: u32,
    /// The desired replicas by ordinal.
    pub ordinals: Vec<Ordinal>,
    /// Whether the controller of the workload has observed its last change. Before that, no other field can be trusted.
    pub judged: bool,
    /// The round of the last edit: only roles of one round are compared.
    pub round: u32,
    /// Whether the role no longer waits for edits of other roles.
    pub settled: bool,
    /// Whether nothing has moved for a while: replicas of a revision that was given up do not become ready by waiting.
    pub stuck: bool,
    /// The number of replicas that may run: replicas beyond wait for their batch.
    pub may_run: u32,
    /// The revision that it is updated to, once known.
    pub revision: Option<String>,
    /// Whether the edit was taken back: the role goes to the revision that it came from.
    pub back: bool,
    /// Whether rolegate deletes its old pods: its controller would replace them one after another, or waits for others for ever.
    pub remade: bool,
    /// Replicas that its controller lets be unavailable, if its old pods may be deleted instead.
    pub at_once: Option<u32>,
    /// Whether its controller makes a pod only when those before it are ready.
    pub ordered: bool,
    /// Whether its controller makes replicas below the partition again at an older revision.
    pub can_return: bool,
    /// Whether it changes the number of pods in a replica, which all revisions share.
    pub resized: bool,
    /// Whether the rollout goes back by deletions of pods, with a partition above the top. A replica is then `updated` when it is not
    /// at the revision of the template.
    pub returns: bool,
}

impl RoleRollout {
    pub fn desired(&self) -> u32 {
        crate::plan::view::count(self.ordinals.len())
    }

    /// Reports whether the ordinal may be replaced at any moment.
    pub fn is_granted(&self, ordinal: u32) -> bool {
        ordinal >= self.partition
    }

    /// Reports whether the replica counts for the shares of the role: one that has yet to serve may be replaced at any moment.
    fn shares(&self, ordinal: u32) -> bool {
        !(self.at(ordinal).new || self.waits(ordinal))
    }

    /// Reports whether the replica is held because its batch waits, for its turn or for room that it lost.
    fn waits(&self, ordinal: u32) -> bool {
        let replica = self.at(ordinal);
        replica.held && (replica.displaced || ordinal >= self.may_run)
    }

    /// Counts the replicas of which shares are taken.
    pub fn shared(&self) -> u32 {
        self.count(|ordinal, _| self.shares(ordinal))
    }

    /// Counts those of them that are updated or may be at any moment.
    pub fn reach(&self) -> u32 {
        self.count(|ordinal, replica| self.shares(ordinal) && (replica.updated || self.is_granted(ordinal)))
    }

    /// Counts those of them that are updated when only the others below this ordinal stay old.
    fn last(&self, floor: u32) -> u32 {
        self.count(|ordinal, replica| self.shares(ordinal) && (replica.updated || ordinal >= floor))
    }

    pub fn updated(&self) -> u32 {
        self.count(|_, replica| replica.updated)
    }

    /// Returns the highest replica whose batch is held above old ones from this ordinal on that are not: most controllers wait for it
    /// before they replace those.
    fn held_above_old(&self, from: u32) -> Option<u32> {
        let held = (0..self.desired()).rev().find(|ordinal| self.waits(*ordinal))?;
        let is_old = |ordinal: u32| !self.at(ordinal).updated && !self.at(ordinal).held;
        (from..held).any(is_old).then_some(held)
    }

    /// Returns the highest old replica that is not ready and may not be replaced yet, if its controller counts it and replaces no
    /// other, although it may.
    fn old_in_the_way(&self) -> Option<u32> {
        let most = if self.ordered { 1 } else { self.at_once.filter(|_| !self.remade)? };
        let is_down = |(ordinal, replica): &(u32, Ordinal)| {
            replica.is_unavailable() && !replica.updated && !self.is_granted(*ordinal)
        };
        let down: Vec<_> = self.numbered().filter(is_down).map(|(ordinal, _)| ordinal).collect();
        let waits = self.numbered().any(|(ordinal, _)| self.leaves(ordinal)) && down.len() >= most as usize;
        down.last().copied().filter(|_| waits)
    }

    /// Reports whether its controller may wait for ever for replicas that are held, or old and not ready, before it replaces what it
    /// may: its old pods are to be deleted.
    fn needs_deletions(&self) -> bool {
        let is_held_and_old = |(ordinal, replica): (u32, Ordinal)| !replica.updated && self.waits(ordinal);
        let waits = || {
            self.held_above_old(0).is_some()
                || (!self.ordered && self.old_in_the_way().is_some())
                || self.numbered().any(is_held_and_old)
        };
        self.at_once.is_some() && !self.returns && waits()
    }

    /// Counts the replicas at the revision of the template, to which a rollout that goes back does not go.
    pub fn at_template(&self) -> u32 {
        self.count(|_, replica| replica.updated != self.returns)
    }

    /// Counts those of them that are ready.
    pub fn ready_at_template(&self) -> u32 {
        self.count(|_, replica| replica.updated != self.returns && replica.ready)
    }

    /// Reports whether its edit was taken back while it was under way.
    fn is_taken_back(&self) -> bool {
        self.back && !self.returns
    }

    /// Reports whether it has replicas to update, or none at all.
    fn has_old(&self) -> bool {
        self.ordinals.is_empty() || self.updated() < self.desired()
    }

    /// Counts the replicas that are updated and ready.
    pub fn done(&self) -> u32 {
        self.count(|_, replica| replica.is_done())
    }

    /// Returns the number of replicas below the lowest one whose batch is held: the size that the workload may be scaled to.
    pub fn below_held(&self) -> u32 {
        (0..self.desired()).find(|ordinal| self.waits(*ordinal)).unwrap_or(self.desired())
    }

    /// Returns the replica, or one that does not exist.
    fn at(&self, ordinal: u32) -> Ordinal {
        self.ordinals.get(ordinal as usize).copied().unwrap_or_default()
    }

    /// Reports whether the replica serves, and may be replaced at any moment.
    fn leaves(&self, ordinal: u32) -> bool {
        let replica = self.at(ordinal);
        self.is_granted(ordinal) && !replica.updated && replica.ready
    }

    /// Reports whether the replica is down at a revision that was given up and stays down until it is replaced: it must not
    /// keep higher replicas from being replaced.
    fn is_excused(&self, ordinal: u32) -> bool {
        let replica = self.at(ordinal);
        self.stuck && replica.given_up && !replica.updated && !self.is_granted(ordinal)
    }

    /// Reports whether the rollout is over: every replica is updated, and is ready, held or never was ready.
    fn is_over(&self) -> bool {
        self.judged && self.ordinals.iter().all(|replica| replica.is_settled())
    }

    /// Counts the replicas from this ordinal on that are not updated, or are unavailable.
    fn unsettled(&self, floor: u32) -> u32 {
        self.count(|ordinal, replica| ordinal >= floor && !replica.is_settled())
    }

    /// Returns the replicas that are updated or about to be, and are neither ready nor held. While an updated one is not ready, the
    /// controller may not have come to the others yet.
    fn unready(&self) -> impl Iterator<Item = u32> {
        let is_down = |replica: &Ordinal| replica.updated && replica.is_unavailable();
        let waits = self.ordinals.iter().any(is_down);
        let is_late = move |(ordinal, replica): &(u32, Ordinal)| {
            is_down(replica) || (!waits && self.is_granted(*ordinal) && replica.is_unavailable())
        };
        self.numbered().filter(is_late).map(|(ordinal, _)| ordinal)
    }

    /// Reports whether its last old replica waits for the other roles: without an old replica it could not go back with them.
    fn is_last_old(&self, ordinal: u32) -> bool {
        !self.back && (0..ordinal).all(|lower| self.at(lower).updated)
    }

    fn count(&self, test: impl Fn(u32, Ordinal) -> bool) -> u32 {
        crate::plan::view::count(self.numbered().filter(|(ordinal, replica)| test(*ordinal, *replica)).count())
    }

    /// Returns the replicas with their ordinals, in ascending order.
    fn numbered(&self) -> impl DoubleEndedIterator<Item = (u32, Ordinal)> {
        (0..self.desired()).zip(self.ordinals.iter().copied())
    }

    /// Returns the highest replica that is updated or may be replaced, and is not done.
    fn in_flight(&self) -> Option<u32> {
        let open = |(ordinal, replica): &(u32, Ordinal)| {
            (self.is_granted(*ordinal) || replica.updated) && !replica.is_done() && !replica.held && !replica.new
        };
        self.numbered().rev().find(open).map(|(ordinal, _)| ordinal)
    }

    /// Returns the highest replica that the next step of another role waits for.
    fn behind(&self) -> Option<u32> {
        let waits = |(ordinal, replica): &(u32, Ordinal)| !replica.is_done() && self.shares(*ordinal);
        let next = || self.numbered().rev().find(waits).map(|(ordinal, _)| ordinal);
        self.in_flight().or_else(next)
    }
}

/// The last edit of a workload with an open rollout.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Edit {
    /// The round of the edit, from 0.
    pub round: u32,
    /// Whether the edits of other roles in the newest round were waited for long enough.
    pub settled: bool,
    /// The rollout id of earlier edits, which does not apply to this edit.
    pub stale_id: Option<String>,
}

impl Edit {
    /// Returns an edit of unknown time: it does not wait for other roles.
    pub fn long_ago() -> Self {
        Self { settled: true, ..Self::default() }
    }
}

/// The decision for one role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RolePlan {
    /// The new partition of the workload: never above the current one, unless the rollout goes back.
    pub partition: u32,
    /// The replicas whose pods are deleted, so that they are made again at the revision that the role goes back to.
    pub made_again: Vec<u32>,
    pub state: ProgressState,
    /// The reason why the role does not proceed.
    pub waits: Option<Wait>,
}

impl RolePlan {
    /// Leaves a role that is barred as it is.
    pub(in crate::plan) fn bar(&mut self, name: &str, role: &RoleRollout) {
        (self.partition, self.made_again) = (role.partition, Vec::new());
        if matches!(self.state, ProgressState::Progressing | ProgressState::Waiting) {
            let moves = role.in_flight().is_some();
            self.state = if moves { ProgressState::Progressing } else { ProgressState::Waiting };
            self.waits = Some(Wait { reason: WaitReason::Barred, role: name.to_owned(), ordinal: None });
        }
    }
}

/// The reason why a role does not proceed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    pub reason: WaitReason,
    /// The role that is waited for: another one, or the role itself.
    pub role: String,
    /// The replica that is waited for, if it is a single one.
    pub ordinal: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WaitReason {
    /// The group or a workload is set to what forbids it.
    Barred,
    /// The controller of a workload has not observed its last change.
    NotObserved,
    /// The other roles may still be edited.
    Settling,
    /// The highest replicas are held; the controller of the workload waits for them before it replaces lower ones.
    HeldBatch,
    /// Old replicas are not ready; the controller of the workload waits for them before it replaces those that it may.
    OldReplica,
    /// The maximum number of replicas is unavailable.
    Unavailable,
    /// Another role is too far behind.
    Skew,
    /// Another role has more than its last old replica to update, and the rollout could not go back without an old one.
    LastOld,
    /// The step under way updates no more replicas of the role, and a role is behind in it.
    Step(StepNumber),
    /// The object of a step does not have its condition.
    Object(StepNumber),
    /// The rollout pauses after a step.
    Pause(StepNumber, PauseEnd),
    /// The segment of this number, from 1, is updated and not ready, and no further one may be unavailable.
    Segment(u32),
}

/// Returns the ordinal below which replicas of a role stay old; all go back.
fn floor(bounds: &[RollingBounds], name: &str, role: &RoleRollout) -> u32 {
    let desired = role.desired();
    if role.returns {
        return 0;
    }
    let shared = bounds.iter().filter(|bounds| bounds.has(name));
    let kept = shared.map(|bounds| bounds.kept_of(name, desired)).max().unwrap_or(desired);
    kept.max(role.floor).min(desired)
}

/// The decisions for all roles with an open rollout.
pub type RolloutPlan = BTreeMap<String, RolePlan>;
