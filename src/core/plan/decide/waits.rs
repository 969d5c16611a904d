//! The replicas that a waiting coordination waits for.

use crate::model::{Coordination, Group, ProgressState};
use crate::plan::decide::progression::{CoordinationTarget, NextBatch, Targets, requirement_of};
use crate::plan::view::{GroupView, Replica};

/// A replica that keeps the next batch from going.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    pub role: String,
    pub ordinal: u32,
    /// The state of the replica; `None` if it has no pod.
    pub replica: Option<Replica>,
}

/// Returns the replicas that a coordination waits for: replicas of its earlier batches that fail the progression, and replicas
/// of the batch that may go, which all later batches wait for. A blocked coordination waits for the replicas of its blocker.
pub fn waits_for(group: &Group, view: &GroupView, targets: &Targets, coordination: usize) -> Vec<Missing> {
    let Some(target) = targets.coordination(coordination) else { return Vec::new() };
    match (target.state, target.blocked_by.and_then(|blocker| targets.coordination(blocker))) {
        (ProgressState::Blocked, Some(blocker)) => missing(group, view, blocker, blocker.full),
        (ProgressState::Waiting, _) => missing(group, view, target, target.full),
        (ProgressState::Progressing, _) => missing(group, view, target, target.full + 1),
        _ => Vec::new(),
    }
}

/// Returns the replicas of the first `batches` batches that fail the progression.
fn missing(group: &Group, view: &GroupView, target: &CoordinationTarget, batches: u32) -> Vec<Missing> {
    let Some(batching) = group.coordination(target.index).and_then(Coordination::batching) else { return Vec::new() };
    let requirement = requirement_of(group, batching);
    if requirement.next != NextBatch::WhenEarlierPass {
        return Vec::new();
    }
    let mut all = Vec::new();
    for role in &group.roles {
        let Some(seen) = view.roles.get(&role.name) else { continue };
        let earlier = batching.ordinals(&role.name, batches, seen.desired).start;
        let failing = (0..earlier).map(|ordinal| (ordinal, seen.replicas.get(ordinal).copied()));
        let failing =
            failing.filter(|(_, replica)| !replica.as_ref().is_some_and(|replica| requirement.test.holds(replica)));
        all.extend(failing.map(|(ordinal, replica)| Missing { role: role.name.clone(), ordinal, replica }));
    }
    all
}
