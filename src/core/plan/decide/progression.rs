//! How far each role may go: the segment calculation and merge of KEP-32, corrected so that every group can complete.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::model::{Batching, Coordination, Group, HoldReason, ProgressState, Progression};
use crate::plan::decide::acceptance::{Acceptance, Conditions};
use crate::plan::rollout::PauseEnd;
use crate::plan::view::{ReplicaIs, RoleView};

/// The condition under which the next batch of a progression goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::plan) enum NextBatch {
    /// Every replica of the earlier batches passes the test.
    WhenEarlierPass,
    /// Every replica of the earlier batches may run.
    WhenEarlierMayRun,
    /// Always.
    AtOnce,
}

/// The requirement of a progression.
#[derive(Clone, Copy, Debug)]
pub(in crate::plan) struct Requirement {
    /// The condition for the next batch.
    pub(in crate::plan) next: NextBatch,
    /// The test for replicas of earlier batches.
    pub(in crate::plan) test: ReplicaIs,
    /// The word for a replica that passes.
    pub(in crate::plan) word: &'static str,
    /// The reason of a batch that waits for its turn.
    pub(in crate::plan) reason: HoldReason,
}

/// Returns the requirement of a progression: a new progression is one row here, and its spelling in `model::batching`.
pub(in crate::plan) const fn requirement(progression: Progression) -> Requirement {
    use HoldReason::{IncompleteBatch, PreviousSegmentNotReady, PreviousStepNotScheduled};
    use NextBatch::{AtOnce, WhenEarlierMayRun, WhenEarlierPass};
    let (next, test, word, reason) = match progression {
        Progression::OrderedReady | Progression::Canary => {
            (WhenEarlierPass, ReplicaIs::Ready, "ready", PreviousSegmentNotReady)
        }
        Progression::Scheduled => (WhenEarlierPass, ReplicaIs::Scheduled, "scheduled", PreviousStepNotScheduled),
        Progression::Ordered => (WhenEarlierMayRun, ReplicaIs::Released, "released", IncompleteBatch),
        Progression::Parallel => (AtOnce, ReplicaIs::Ready, "ready", PreviousSegmentNotReady),
    };
    Requirement { next, test, word, reason }
}

/// Returns the requirement of a coordination. A scaled group always has a next batch: if all batches went at once, its roles
/// would be far from their ratio on the way.
pub(in crate::plan) fn requirement_of(group: &Group, batching: &Batching) -> Requirement {
    match batching.progression() {
        Progression::Parallel if group.scaled().is_some() => requirement(Progression::Ordered),
        progression => requirement(progression),
    }
}

/// The first replica that fails the progression of a waiting coordination.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WaitsFor {
    pub role: String,
    pub ordinal: u32,
}

/// The targets of one coordination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoordinationTarget {
    /// The position in the list of the group.
    pub index: usize,
    /// Targets by role, before the merge.
    pub roles: BTreeMap<String, u32>,
    /// The number of complete batches.
    pub full: u32,
    pub state: ProgressState,
    /// The replica that a waiting coordination waits for.
    pub waits_for: Option<WaitsFor>,
    /// The waiting coordination that blocks this one.
    pub blocked_by: Option<usize>,
    /// The acceptance of the complete batches.
    pub acceptance: Acceptance,
}

/// The targets of all roles.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Targets {
    /// The least target of each role.
    pub roles: BTreeMap<String, u32>,
    /// The targets of each coordination.
    pub coordinations: Vec<CoordinationTarget>,
}

impl Targets {
    /// Returns the targets of the coordination at this position in the list of the group.
    pub fn coordination(&self, index: usize) -> Option<&CoordinationTarget> {
        self.coordinations.iter().find(|target| target.index == index)
    }

    /// Returns the coordinations that pause after their canary, each with the end of the pause.
    pub fn pauses(&self) -> impl Iterator<Item = (&CoordinationTarget, PauseEnd)> {
        self.coordinations.iter().filter_map(|target| Some((target, target.pause()?)))
    }
}

impl CoordinationTarget {
    /// Returns the end of the pause after a canary.
    pub fn pause(&self) -> Option<PauseEnd> {
        self.acceptance.wait.as_ref()?.pause().filter(|_| self.state == ProgressState::Paused)
    }
}

/// Calculates the target of each batched role. A coordination whose layer is missing waits for it.
pub fn targets(group: &Group, roles: &BTreeMap<String, RoleView>, conditions: Conditions<'_>) -> Targets {
    let target = |of: (&Coordination, &Batching)| target_of((group, conditions), of, roles);
    let mut all: Vec<_> = group.batched().map(target).collect();
    block(&mut all, roles);
    let mut merged: BTreeMap<String, u32> = BTreeMap::new();
    for (role, target) in all.iter().flat_map(|coordination| &coordination.roles) {
        merged.entry(role.clone()).and_modify(|least| *least = (*least).min(*target)).or_insert(*target);
    }
    Targets { roles: merged, coordinations: all }
}

/// Calculates the targets of one coordination, without the others.
///
/// With `s` the size, `D` the desired and `C` the released replicas of a role, batch `b` of the role has the ordinals from
/// `b * s` to `min((b + 1) * s, D) - 1`.
///
/// - `full`, the complete batches: the least `floor(C / s)` of the roles with `C < D`; all batches if there is no such role.
/// - Waiting, if an ordinal below `full * s` fails the test of the progression, or these batches are not accepted (see
///   [`Acceptance`]): the target of each role is `C`.
/// - Progressing otherwise: the target of each role is `max(C, min((full + 1) * s, D))`.
///
/// A target is never below `C` nor above `max(C, D)`. No role is more than one batch ahead of another one, apart from replicas
/// that were released before the coordination had this shape. A role with `C = D` does not limit the others, so a group whose
/// roles have different numbers of batches completes.
///
/// Example: sizes prefill 10 and decode 5, desired 100 and 50, released 20 and 10. `full` is 2; once prefill 0-19 and decode 0-9
/// are ready, the targets are 30 and 15.
fn target_of(
    (group, conditions): (&Group, Conditions<'_>),
    (coordination, batching): (&Coordination, &Batching),
    roles: &BTreeMap<String, RoleView>,
) -> CoordinationTarget {
    let requirement = requirement_of(group, batching);
    // A role without a valid size makes no batches: it is not limited and does not limit others.
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
        acceptance: Acceptance::default(),
    };
    let accepted = |full, pass| Acceptance::of((group, conditions), (coordination, batching), &sized, (full, pass));
    let failing = |full| {
        sized.iter().filter(|_| requirement.next == NextBatch::WhenEarlierPass).find_map(|(name, view)| {
            let earlier = batching.ordinals(name, full, view.desired).start;
            let ordinal = view.replicas.first_failing(earlier, requirement.test)?;
            Some(WaitsFor { role: (*name).to_owned(), ordinal })
        })
    };
    let desired = || sized.iter().map(|(name, view)| ((*name).to_owned(), view.desired)).collect();
    if sized.iter().any(|(_, view)| view.unknown) {
        return done(current, 0, ProgressState::Waiting);
    }
    let Some(full) = unfinished().filter_map(|(name, view)| batching.batch_of(name, view.current())).min() else {
        let total = batching.total(|name| roles.get(name).map(|view| view.desired));
        let pass = batching.asks_acceptance() && failing(total).is_none();
        let acceptance = Acceptance { wait: None, ..accepted(total, pass) };
        return CoordinationTarget { acceptance, ..done(desired(), total, ProgressState::Complete) };
    };
    if conditions.missing_layers.contains(&coordination.index) {
        return done(current, full, ProgressState::Waiting);
    }
    if requirement.next == NextBatch::AtOnce {
        return done(desired(), full, ProgressState::Progressing);
    }
    let failing = failing(full);
    let acceptance = accepted(full, failing.is_none());
    let waiting = match &acceptance.wait {
        Some(wait) if wait.pause().is_some() => Some(ProgressState::Paused),
        Some(_) => Some(ProgressState::Waiting),
        None => failing.is_some().then_some(ProgressState::Waiting),
    };
    if let Some(state) = waiting {
        return CoordinationTarget { waits_for: failing, acceptance, ..done(current, full, state) };
    }
    let next = sized.iter().map(|(name, view)| {
        let target = batching.ordinals(name, full, view.desired).end.max(view.current());
        ((*name).to_owned(), target)
    });
    CoordinationTarget { acceptance, ..done(next.collect(), full, ProgressState::Progressing) }
}

/// Blocks the coordinations that share a role with a waiting one. Only direct sharing counts, and a complete coordination
/// neither blocks nor is blocked.
fn block(all: &mut [CoordinationTarget], roles: &BTreeMap<String, RoleView>) {
    let waiting: Vec<(usize, Vec<String>)> = all
        .iter()
        .filter(|coordination| matches!(coordination.state, ProgressState::Waiting | ProgressState::Paused))
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
