//! How far the roles are whose updates come to rolegate: what conditions say, and what tools wait for.

use std::collections::{BTreeMap, BTreeSet};

use super::RoleRollout;
use crate::api::status::{GroupStatus, ObservedWorkload};
use crate::model::{Group, ProgressState, RolledWorkload};
use crate::plan::view::{GroupView, PodFacts, ReplicaIs, Replicas, count};

/// `RolloutComplete`: every replica of the roles that are rolled in lockstep is updated and ready.
pub const ROLLED: &str = "RolloutComplete";
/// Its reason while replicas are yet to be updated, or to get ready.
pub const IN_PROGRESS: &str = "RolloutInProgress";

/// How a rollout stands. Of several roles the last of these counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// All replicas are of the revision that the workload goes to, as far as anybody has asked for another one.
    #[default]
    Complete,
    /// Those that are not are to stay so: their author has asked for that.
    Paused,
    /// Some are yet to be replaced, or to get ready.
    InProgress,
}

/// How the rollout of one role stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RoleStanding {
    /// What became of it.
    pub standing: Standing,
    /// Replicas that are updated.
    pub updated: u32,
    /// Desired replicas.
    pub desired: u32,
}

/// How the rollouts of a group stand, by role; nothing of roles whose updates do not come to rolegate.
pub type Standings = BTreeMap<String, RoleStanding>;

/// What counts of a group as a whole.
pub fn of_all(standings: &Standings) -> Standing {
    standings.values().map(|role| role.standing).max().unwrap_or_default()
}

/// How a role stands with an open rollout, of which this is the state.
pub(super) fn of_open(role: &RoleRollout, state: Option<ProgressState>) -> RoleStanding {
    let standing = match state {
        // Until the workload's controller has seen the edit, its pods are not known to be old.
        _ if !role.judged => Standing::InProgress,
        Some(ProgressState::Complete) => Standing::Complete,
        Some(ProgressState::Paused) => Standing::Paused,
        _ => Standing::InProgress,
    };
    let updated = if role.judged { role.updated() } else { 0 };
    RoleStanding { standing, updated, desired: role.desired() }
}

/// How a role stands of which no rollout of ours is open: nobody holds it, and its controller may be replacing pods. A rollout is
/// over when all replicas are ready: one that is lost later is no rollout.
pub(super) fn at_rest(group: &Group, view: &GroupView, workload: &RolledWorkload) -> RoleStanding {
    let none = Replicas::default();
    let role = view.roles.get(&workload.claim.role);
    let (replicas, wanted) = role.map_or((&none, 0), |role| (&role.replicas, role.desired.min(workload.desired)));
    let is_old = |pod: &PodFacts| {
        let known = pod.revision.as_deref().zip(workload.update_revision.as_deref());
        known.is_some_and(|(made_at, goes_to)| made_at != goes_to)
    };
    let rolls = says_in_progress(&group.status);
    let waits = |ordinal: &u32| rolls && !replicas.get(*ordinal).is_some_and(|replica| ReplicaIs::Ready.holds(replica));
    let old = replicas.pods().filter(|(_, pod)| is_old(pod)).map(|(ordinal, _)| ordinal);
    let old: BTreeSet<_> = old.chain((0..wanted).filter(waits)).collect();
    let mut old = old.range(..workload.desired);
    let (number, highest) = (count(old.clone().count()), old.next_back());
    let standing = match highest {
        None => Standing::Complete,
        Some(highest) if *highest < workload.partition => Standing::Paused,
        Some(_) => Standing::InProgress,
    };
    let updated = workload.desired.saturating_sub(number);
    RoleStanding { standing, updated, desired: workload.desired }
}

/// True when a status says that replicas are yet to be updated, or to get ready.
fn says_in_progress(status: &GroupStatus) -> bool {
    status.condition(ROLLED).is_some_and(|condition| condition.reason == IN_PROGRESS)
}

/// The workload as what is said of its role speaks of it. What its controller has not seen says nothing of its pods, unless it
/// is frozen: then the status stays with what it spoke of before.
pub(super) fn observed(group: &Group, workload: &RolledWorkload) -> Option<ObservedWorkload> {
    if workload.observed || workload.is_open() {
        return Some(ObservedWorkload { generation: workload.generation, rollout: workload.rollout_id.clone() });
    }
    group.status.observed_workloads.get(&workload.claim.role).cloned()
}

#[cfg(test)]
#[path = "standing_tests.rs"]
mod tests;
