//! How far the roles are whose updates come to rolegate: what conditions say, and what tools wait for.

use std::collections::BTreeMap;

use super::RoleRollout;
use crate::api::status::ObservedWorkload;
use crate::model::{Group, ProgressState, RolledWorkload};
use crate::plan::view::{GroupView, PodFacts, Replicas, count};

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

/// How a role stands of which no rollout of ours is open: nobody holds it, and its controller may be replacing pods.
pub(super) fn at_rest(view: &GroupView, workload: &RolledWorkload) -> RoleStanding {
    let none = Replicas::default();
    let replicas = view.roles.get(&workload.claim.role).map_or(&none, |role| &role.replicas);
    let is_old = |pod: &PodFacts| {
        let known = pod.revision.as_deref().zip(workload.update_revision.as_deref());
        known.is_some_and(|(made_at, goes_to)| made_at != goes_to)
    };
    let mut old: Vec<_> = replicas.pods().filter(|(_, pod)| is_old(pod)).map(|(ordinal, _)| ordinal).collect();
    old.retain(|ordinal| *ordinal < workload.desired);
    old.dedup();
    let standing = match old.last() {
        None => Standing::Complete,
        Some(highest) if *highest < workload.partition => Standing::Paused,
        Some(_) => Standing::InProgress,
    };
    let updated = workload.desired.saturating_sub(count(old.len()));
    RoleStanding { standing, updated, desired: workload.desired }
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
