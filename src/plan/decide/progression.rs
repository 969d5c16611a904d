//! How far each role may go: KEP-32's segment calculation and merge, with the corrections that let every group run to
//! its end (SPEC §4.1).

use std::collections::BTreeMap;

use crate::model::{Batching, Coordination, Group, ProgressState, Progression};
use crate::plan::view::{Replica, RoleView};

/// What a waiting coordination waits for: the first replica that fails its progression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitsFor {
    /// Role of the replica.
    pub role: String,
    /// Its ordinal.
    pub ordinal: u32,
}

/// Where one coordination wants its roles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoordinationTarget {
    /// Position in the group's list.
    pub index: usize,
    /// Targets by role, before the merge.
    pub roles: BTreeMap<String, u32>,
    /// Complete batches.
    pub full: u32,
    /// Its state.
    pub state: ProgressState,
    /// Set while it waits.
    pub waits_for: Option<WaitsFor>,
    /// Set while it is blocked: the coordination that waits.
    pub blocked_by: Option<usize>,
}

/// Where all roles may go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Targets {
    /// By role, merged.
    pub roles: BTreeMap<String, u32>,
    /// By coordination.
    pub coordinations: Vec<CoordinationTarget>,
}

/// Calculates the target of each batched role.
pub fn targets(group: &Group, roles: &BTreeMap<String, RoleView>) -> Targets {
    let batched: Vec<_> = group.batched().collect();
    let mut all: Vec<_> =
        batched.iter().map(|(coordination, batching)| target_of(coordination, batching, roles)).collect();
    block(&mut all, roles);
    let mut merged: BTreeMap<String, u32> = BTreeMap::new();
    for (role, target) in all.iter().flat_map(|coordination| &coordination.roles) {
        merged.entry(role.clone()).and_modify(|least| *least = (*least).min(*target)).or_insert(*target);
    }
    Targets { roles: merged, coordinations: all }
}

/// One coordination by itself (SPEC §4.1, steps 1 to 3).
fn target_of(
    coordination: &Coordination,
    batching: &Batching,
    roles: &BTreeMap<String, RoleView>,
) -> CoordinationTarget {
    // A role without a valid size makes no batches: it is neither limited nor limits.
    let sized: Vec<_> = batching
        .sizes
        .keys()
        .filter_map(|name| Some((name.as_str(), roles.get(name)?, batching.size(name)?)))
        .collect();
    let current: BTreeMap<String, u32> =
        sized.iter().map(|(name, view, _)| ((*name).to_owned(), view.current())).collect();
    let unfinished = || sized.iter().filter(|(_, view, _)| view.current() < view.desired);
    let done = |roles, full, state| CoordinationTarget {
        index: coordination.index,
        roles,
        full,
        state,
        waits_for: None,
        blocked_by: None,
    };
    let desired = || sized.iter().map(|(name, view, _)| ((*name).to_owned(), view.desired)).collect();
    if sized.iter().any(|(_, view, _)| view.unknown) {
        return done(current, 0, ProgressState::Waiting);
    }
    let Some(full) = unfinished().map(|(_, view, size)| view.current() / size).min() else {
        let full = sized.iter().map(|(_, view, size)| view.desired.div_ceil(*size)).max().unwrap_or(0);
        return done(desired(), full, ProgressState::Complete);
    };
    if batching.progression() == Progression::Parallel {
        return done(desired(), full, ProgressState::Progressing);
    }
    let failing = sized.iter().find_map(|(name, view, size)| {
        let bound = full.saturating_mul(*size).min(view.desired);
        let ordinal = view.first_failing(bound, test_of(batching.progression())?)?;
        Some(WaitsFor { role: (*name).to_owned(), ordinal })
    });
    if failing.is_some() {
        return CoordinationTarget { waits_for: failing, ..done(current, full, ProgressState::Waiting) };
    }
    let next = sized.iter().map(|(name, view, size)| {
        let target = (full + 1).saturating_mul(*size).min(view.desired).max(view.current());
        ((*name).to_owned(), target)
    });
    done(next.collect(), full, ProgressState::Progressing)
}

/// What a replica of an earlier batch must be.
pub(in crate::plan) fn test_of(progression: Progression) -> Option<fn(&Replica) -> bool> {
    match progression {
        Progression::OrderedReady => Some(Replica::is_ready),
        Progression::Scheduled => Some(Replica::is_scheduled),
        Progression::Ordered | Progression::Parallel => None,
    }
}

/// A coordination that waits blocks those that share a role with it, directly; one that is complete blocks nobody and is
/// blocked by nobody.
fn block(all: &mut [CoordinationTarget], roles: &BTreeMap<String, RoleView>) {
    let waiting: Vec<(usize, Vec<String>)> = all
        .iter()
        .filter(|coordination| coordination.state == ProgressState::Waiting)
        .map(|coordination| (coordination.index, coordination.roles.keys().cloned().collect()))
        .collect();
    for coordination in all.iter_mut().filter(|coordination| coordination.state == ProgressState::Progressing) {
        let blocker =
            waiting.iter().find(|(_, shared)| shared.iter().any(|role| coordination.roles.contains_key(role)));
        let Some((index, _)) = blocker else { continue };
        coordination.state = ProgressState::Blocked;
        coordination.blocked_by = Some(*index);
        for (role, target) in &mut coordination.roles {
            *target = roles.get(role).map_or(0, RoleView::current);
        }
    }
}

#[cfg(test)]
#[path = "progression_tests.rs"]
mod tests;
