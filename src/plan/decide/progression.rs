//! How far each role may go: KEP-32's segment calculation and merge, with the corrections that let every group run to
//! its end.

use std::collections::BTreeMap;

use crate::model::{Batching, Coordination, Group, HoldReason, ProgressState, Progression};
use crate::plan::view::{ReplicaIs, RoleView};

/// When the next batch of a progression goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::plan) enum NextBatch {
    /// When every replica of the earlier batches passes the test.
    WhenEarlierPass,
    /// When every replica of the earlier batches may run.
    WhenEarlierMayRun,
    /// At once.
    AtOnce,
}

/// What a progression asks for.
#[derive(Clone, Copy, Debug)]
pub(in crate::plan) struct Requirement {
    /// When the next batch goes.
    pub(in crate::plan) next: NextBatch,
    /// What a replica of an earlier batch is to be.
    pub(in crate::plan) test: ReplicaIs,
    /// What a replica is called that passes.
    pub(in crate::plan) word: &'static str,
    /// Why a batch is held that waits for its turn.
    pub(in crate::plan) reason: HoldReason,
}

/// What each progression asks for: a new one is one row here, and its spelling in `model::batching`.
pub(in crate::plan) const fn requirement(progression: Progression) -> Requirement {
    use HoldReason::{IncompleteBatch, PreviousSegmentNotReady, PreviousStepNotScheduled};
    use NextBatch::{AtOnce, WhenEarlierMayRun, WhenEarlierPass};
    let (next, test, word, reason) = match progression {
        Progression::OrderedReady => (WhenEarlierPass, ReplicaIs::Ready, "ready", PreviousSegmentNotReady),
        Progression::Scheduled => (WhenEarlierPass, ReplicaIs::Scheduled, "scheduled", PreviousStepNotScheduled),
        Progression::Ordered => (WhenEarlierMayRun, ReplicaIs::Released, "released", IncompleteBatch),
        Progression::Parallel => (AtOnce, ReplicaIs::Ready, "ready", PreviousSegmentNotReady),
    };
    Requirement { next, test, word, reason }
}

/// What the progression of a group's coordination asks for. Where its workloads are scaled there is always a next batch:
/// all of them at once would be far from their ratio on the way.
pub(in crate::plan) fn requirement_of(group: &Group, batching: &Batching) -> Requirement {
    match batching.progression() {
        Progression::Parallel if group.scaled().is_some() => requirement(Progression::Ordered),
        progression => requirement(progression),
    }
}

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

impl Targets {
    /// The targets of the coordination at this place in the group's list.
    pub fn coordination(&self, index: usize) -> Option<&CoordinationTarget> {
        self.coordinations.iter().find(|target| target.index == index)
    }
}

/// Calculates the target of each batched role. A coordination whose layer is missing waits for it.
pub fn targets(group: &Group, roles: &BTreeMap<String, RoleView>, missing_layers: &[usize]) -> Targets {
    let target = |(coordination, batching): (&Coordination, &Batching)| {
        let requirement = requirement_of(group, batching);
        target_of(coordination, batching, requirement, roles, missing_layers.contains(&coordination.index))
    };
    let mut all: Vec<_> = group.batched().map(target).collect();
    block(&mut all, roles);
    let mut merged: BTreeMap<String, u32> = BTreeMap::new();
    for (role, target) in all.iter().flat_map(|coordination| &coordination.roles) {
        merged.entry(role.clone()).and_modify(|least| *least = (*least).min(*target)).or_insert(*target);
    }
    Targets { roles: merged, coordinations: all }
}

/// One coordination by itself.
fn target_of(
    coordination: &Coordination,
    batching: &Batching,
    requirement: Requirement,
    roles: &BTreeMap<String, RoleView>,
    lacks_layer: bool,
) -> CoordinationTarget {
    // A role without a valid size makes no batches: it is neither limited nor limits.
    let is_sized = |name: &&String| batching.size(name).is_some();
    let sized = batching.sizes.keys().filter(is_sized).filter_map(|name| Some((name.as_str(), roles.get(name)?)));
    let sized: Vec<_> = sized.collect();
    let current: BTreeMap<String, u32> =
        sized.iter().map(|(name, view)| ((*name).to_owned(), view.current())).collect();
    let unfinished = || sized.iter().filter(|(_, view)| view.current() < view.desired);
    let done = |roles, full, state| CoordinationTarget {
        index: coordination.index,
        roles,
        full,
        state,
        waits_for: None,
        blocked_by: None,
    };
    let desired = || sized.iter().map(|(name, view)| ((*name).to_owned(), view.desired)).collect();
    if sized.iter().any(|(_, view)| view.unknown) {
        return done(current, 0, ProgressState::Waiting);
    }
    let Some(full) = unfinished().filter_map(|(name, view)| batching.batch_of(name, view.current())).min() else {
        let total = batching.total(|name| roles.get(name).map(|view| view.desired));
        return done(desired(), total, ProgressState::Complete);
    };
    if lacks_layer {
        return done(current, full, ProgressState::Waiting);
    }
    if requirement.next == NextBatch::AtOnce {
        return done(desired(), full, ProgressState::Progressing);
    }
    let failing = sized.iter().filter(|_| requirement.next == NextBatch::WhenEarlierPass).find_map(|(name, view)| {
        let earlier = batching.ordinals(name, full, view.desired).start;
        let ordinal = view.replicas.first_failing(earlier, requirement.test)?;
        Some(WaitsFor { role: (*name).to_owned(), ordinal })
    });
    if failing.is_some() {
        return CoordinationTarget { waits_for: failing, ..done(current, full, ProgressState::Waiting) };
    }
    let next = sized.iter().map(|(name, view)| {
        let target = batching.ordinals(name, full, view.desired).end.max(view.current());
        ((*name).to_owned(), target)
    });
    done(next.collect(), full, ProgressState::Progressing)
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
