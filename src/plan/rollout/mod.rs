//! Rollouts in lockstep (KEP-30): from what each ordinal of each role is to the partition of each workload. Pure.

mod cohorts;
mod counts;
mod observe;
mod skew;
pub mod standing;
mod text;
mod walk;

use std::collections::BTreeMap;

pub use observe::Rollouts;
pub use skew::excess;
pub use text::{rollouts, waits_for};
pub use walk::plan_rollout;

use crate::model::ProgressState;

/// One replica, as a rollout sees it; the default is one that does not exist.
#[expect(clippy::struct_excessive_bools, reason = "four independent facts of a replica, not states of one machine")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ordinal {
    /// Its pods are at the update revision, or will be: after a rollback to what the workload comes from, one that is not
    /// there comes back so, whatever the partition.
    pub updated: bool,
    /// All its pods are ready.
    pub ready: bool,
    /// Some of its pods are held by our gate and stay so: it serves nobody, and nobody is to blame.
    pub held: bool,
    /// It is at a revision that is neither the one that the workload comes from nor the one that it goes to: one that was
    /// given up in the middle.
    pub given_up: bool,
}

impl Ordinal {
    /// Updated, and ready to serve.
    pub fn is_done(self) -> bool {
        self.updated && self.ready
    }

    /// Not there for requests, and meant to be.
    pub fn is_unavailable(self) -> bool {
        !self.ready && !self.held
    }
}

/// An open rollout of one role.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoleRollout {
    /// The workload's own partition, as it is now: ordinals from here on may be replaced at any moment.
    pub partition: u32,
    /// The partition that its user asked for: ordinals below it stay old.
    pub floor: u32,
    /// Its desired replicas by ordinal.
    pub ordinals: Vec<Ordinal>,
    /// The workload's controller has seen its last change: before that nothing here can be believed.
    pub judged: bool,
    /// The round of edits that its last one belongs to: only roles of one round are compared.
    pub round: u32,
    /// It need not wait for the other roles' edits any longer.
    pub settled: bool,
    /// Nothing has moved for a while: replicas of a revision that was given up will not get ready by waiting.
    pub stuck: bool,
    /// So many replicas may run: those beyond wait for the turn of their batch.
    pub may_run: u32,
}

impl RoleRollout {
    /// Desired replicas.
    pub fn desired(&self) -> u32 {
        crate::plan::view::count(self.ordinals.len())
    }

    /// True when the ordinal may be replaced at any moment.
    pub fn is_granted(&self, ordinal: u32) -> bool {
        ordinal >= self.partition
    }

    /// Replicas that are updated, or may be at any moment.
    pub fn reach(&self) -> u32 {
        self.count(|ordinal, replica| replica.updated || self.is_granted(ordinal))
    }

    /// Replicas that are updated.
    pub fn updated(&self) -> u32 {
        self.count(|_, replica| replica.updated)
    }

    /// Replicas that are updated and ready.
    pub fn done(&self) -> u32 {
        self.count(|_, replica| replica.is_done())
    }

    /// Replicas below the lowest that is held since its batch waits: what the workload may be scaled to.
    pub fn below_held(&self) -> u32 {
        let held = self.numbered().find(|(ordinal, replica)| replica.held && *ordinal >= self.may_run);
        held.map_or_else(|| self.desired(), |(ordinal, _)| ordinal)
    }

    /// Every replica is known to be updated, and ready or held for another reason: the rollout is over.
    fn is_over(&self) -> bool {
        self.judged && self.ordinals.iter().all(|replica| replica.updated && (replica.ready || replica.held))
    }

    fn count(&self, test: impl Fn(u32, Ordinal) -> bool) -> u32 {
        crate::plan::view::count(self.numbered().filter(|(ordinal, replica)| test(*ordinal, *replica)).count())
    }

    /// Replicas with their ordinals, from the bottom.
    fn numbered(&self) -> impl DoubleEndedIterator<Item = (u32, Ordinal)> {
        (0..self.desired()).zip(self.ordinals.iter().copied())
    }

    /// The highest replica that may be replaced, or is, and is not done.
    fn in_flight(&self) -> Option<u32> {
        let open = |(ordinal, replica): &(u32, Ordinal)| {
            (self.is_granted(*ordinal) || replica.updated) && !replica.is_done() && !replica.held
        };
        self.numbered().rev().find(open).map(|(ordinal, _)| ordinal)
    }

    /// The highest replica that stands between this role and the next step of another one.
    fn behind(&self) -> Option<u32> {
        let next = || self.numbered().rev().find(|(_, replica)| !replica.is_done()).map(|(ordinal, _)| ordinal);
        self.in_flight().or_else(next)
    }
}

/// The last edit of a workload with an open rollout.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Edit {
    /// The round that it belongs to, from 0.
    pub round: u32,
    /// The edits of other roles in the newest round were waited for long enough.
    pub settled: bool,
    /// What tied earlier edits together: it says nothing of this one.
    pub stale_id: Option<String>,
}

impl Edit {
    /// One of which nobody remembers when it was: others are not waited for.
    pub fn long_ago() -> Self {
        Self { settled: true, ..Self::default() }
    }
}

/// What is decided for one role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RolePlan {
    /// The workload's partition to be: never above what it is.
    pub partition: u32,
    /// Where the role stands.
    pub state: ProgressState,
    /// What keeps it from going on.
    pub waits: Option<Wait>,
}

/// What keeps a role from going on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    /// Why.
    pub reason: WaitReason,
    /// The role that is waited for: another, or itself.
    pub role: String,
    /// The replica that is waited for, where it is one.
    pub ordinal: Option<u32>,
}

/// Why a role does not go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WaitReason {
    /// The controller of a workload has not seen its last change.
    NotObserved,
    /// The other roles may be edited any moment.
    Settling,
    /// Replicas on top are held; the workload's controller waits for them before it replaces those below.
    HeldBatch,
    /// As many replicas as may be are unavailable.
    Unavailable,
    /// Another role has not come as far.
    Skew,
}

/// What is decided for all roles with an open rollout.
pub type RolloutPlan = BTreeMap<String, RolePlan>;
