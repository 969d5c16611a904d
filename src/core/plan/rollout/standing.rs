//! Standing of the roles with rolling updates: conditions report it, and tools wait for it.

use std::collections::{BTreeMap, BTreeSet};

use super::RoleRollout;
use crate::api::status::{GroupStatus, ObservedWorkload};
use crate::model::{Group, ProgressState, RolledWorkload};
use crate::plan::view::{GroupView, PodFacts, ReplicaIs, Replicas, count};

/// The condition `RolloutComplete`: every replica of the roles that are rolled in lockstep is updated and ready.
pub const ROLLED: &str = "RolloutComplete";
/// The reason of the condition while replicas are still to be updated or to become ready.
pub const IN_PROGRESS: &str = "RolloutInProgress";

/// The reasons for which a rollout goes back.
pub const REPLICAS_NOT_READY: &str = "ReplicasNotReady";
pub const OBJECT_NOT_READY: &str = "ObjectNotReady";
pub const REQUESTED: &str = "Requested";

/// The standing of a rollout. For several roles the greatest value counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// All replicas are at the target revision, unless their user asked for another one.
    #[default]
    Complete,
    /// The other replicas stay old because their user asked for it.
    Paused,
    /// All replicas are at the revision from which a rollout came that went back.
    RolledBack,
    /// Some replicas are still to be replaced, or to become ready.
    InProgress,
}

/// The standing of one role's rollout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RoleStanding {
    pub standing: Standing,
    pub updated: u32,
    pub desired: u32,
}

/// The standings of a group by role, without roles whose updates rolegate does not coordinate.
pub type Standings = BTreeMap<String, RoleStanding>;

/// Returns the standing of the group as a whole.
pub fn of_all(standings: &Standings) -> Standing {
    standings.values().map(|role| role.standing).max().unwrap_or_default()
}

/// Returns the standing of a role with an open rollout.
pub(super) fn of_open(role: &RoleRollout, state: Option<ProgressState>) -> RoleStanding {
    let standing = match state {
        // Until the controller of the workload has observed the edit, its pods are not known to be old.
        _ if !role.judged => Standing::InProgress,
        Some(ProgressState::Complete) => Standing::Complete,
        Some(ProgressState::Paused) => Standing::Paused,
        Some(ProgressState::RolledBack) => Standing::RolledBack,
        _ => Standing::InProgress,
    };
    let updated = if role.judged { role.at_template() } else { 0 };
    RoleStanding { standing, updated, desired: role.desired() }
}

/// Returns the standing of a role without an open rollout: nothing freezes its workload, and the controller may be replacing
/// pods. A rollout is over when all replicas are ready; a replica that is lost later does not reopen it.
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

/// Reports whether the status says that a rollout is in progress.
fn says_in_progress(status: &GroupStatus) -> bool {
    status.condition(ROLLED).is_some_and(|condition| condition.reason == IN_PROGRESS)
}

/// Returns the workload as the status reports it. A workload that its controller has not observed keeps its entry in the
/// status, unless it is frozen.
pub(super) fn observed(group: &Group, workload: &RolledWorkload) -> Option<ObservedWorkload> {
    if workload.observed || workload.is_open() {
        return Some(ObservedWorkload { generation: workload.generation, rollout: workload.rollout_id.clone() });
    }
    group.status.observed_workloads.get(&workload.claim.role).cloned()
}

#[cfg(test)]
#[path = "standing_tests.rs"]
mod tests;
