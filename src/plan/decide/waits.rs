//! What a coordination that does not go on waits for, replica by replica.

use crate::model::{Group, ProgressState};
use crate::plan::decide::progression::{CoordinationTarget, Targets, test_of};
use crate::plan::view::{GroupView, Replica};

/// A replica that keeps the next batch from going.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// Its role.
    pub role: String,
    /// Its ordinal.
    pub ordinal: u32,
    /// What there is of it; `None` when no pod of it exists.
    pub replica: Option<Replica>,
}

/// The replicas that a coordination waits for: those of its earlier batches that are not what the progression asks for.
/// One that is blocked waits for what its blocker waits for.
pub fn waits_for(group: &Group, view: &GroupView, targets: &Targets, coordination: usize) -> Vec<Missing> {
    let find = |index: usize| targets.coordinations.iter().find(|target| target.index == index);
    let Some(target) = find(coordination) else { return Vec::new() };
    match (target.state, target.blocked_by.and_then(find)) {
        (ProgressState::Blocked, Some(blocker)) => missing(group, view, blocker),
        (ProgressState::Waiting, _) => missing(group, view, target),
        _ => Vec::new(),
    }
}

fn missing(group: &Group, view: &GroupView, target: &CoordinationTarget) -> Vec<Missing> {
    let batching = group.batched().find(|(coordination, _)| coordination.index == target.index).map(|(_, b)| b);
    let Some((batching, test)) = batching.and_then(|batching| Some((batching, test_of(batching.progression())?)))
    else {
        return Vec::new();
    };
    let mut all = Vec::new();
    for role in &group.roles {
        let (Some(seen), Some(size)) = (view.roles.get(&role.name), batching.size(&role.name)) else { continue };
        let bound = target.full.saturating_mul(size).min(seen.desired);
        let failing = (0..bound).map(|ordinal| (ordinal, seen.replicas.get(&ordinal).copied()));
        let failing = failing.filter(|(_, replica)| !replica.as_ref().is_some_and(test));
        all.extend(failing.map(|(ordinal, replica)| Missing { role: role.name.clone(), ordinal, replica }));
    }
    all
}
