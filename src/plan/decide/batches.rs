//! The batches of a group, one by one: what is in them and how far they are.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use crate::model::{Batching, Coordination, Group, HoldReason, ProgressState, Progression};
use crate::plan::decide::decision::Decision;
use crate::plan::view::{GroupView, Replica, RoleView};

/// How far a batch is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BatchState {
    /// Every replica is ready.
    Ready,
    /// Every replica may run.
    Released,
    /// At least one replica may not run.
    Held,
}

impl BatchState {
    /// Every state.
    pub const ALL: &[Self] = &[Self::Ready, Self::Released, Self::Held];

    /// One word, stable.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ready => "Ready",
            Self::Released => "Released",
            Self::Held => "Held",
        }
    }
}

/// One batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// Position of its coordination in the group's list.
    pub coordination: usize,
    /// Its number, from 0.
    pub index: u32,
    /// Its replicas by role; roles that have run out are not in it.
    pub roles: BTreeMap<String, Share>,
    /// How far it is.
    pub state: BatchState,
    /// Why it may not go yet; `None` for one that may, even if its gates are not lifted yet.
    pub reason: Option<HoldReason>,
}

/// The replicas of one role in a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Share {
    /// Ordinals.
    pub ordinals: RangeInclusive<u32>,
    /// Replicas without our gate.
    pub released: u32,
    /// Replicas that are ready.
    pub ready: u32,
}

impl Share {
    /// Replicas that belong there.
    pub fn desired(&self) -> u32 {
        self.ordinals.end() - self.ordinals.start() + 1
    }
}

/// The batches of all coordinations, in order.
pub fn batches(group: &Group, view: &GroupView, decision: &Decision) -> Vec<Batch> {
    let batch = |found: Found<'_>| {
        let Found { coordination, batching, index, state, beyond, shares } = found;
        Batch {
            coordination: coordination.index,
            index,
            state,
            reason: beyond.map_or_else(
                || incomplete(decision, coordination, index),
                |role| Some(reason(group, view, decision, (coordination, batching), role)),
            ),
            roles: shares.into_iter().map(|(role, share)| (role.to_owned(), share)).collect(),
        }
    };
    each(group, view, decision).map(batch).collect()
}

/// How many batches are in each state, of all coordinations.
pub(in crate::plan) fn states(group: &Group, view: &GroupView, decision: &Decision) -> BTreeMap<BatchState, u32> {
    let mut states = BTreeMap::new();
    each(group, view, decision).for_each(|found| *states.entry(found.state).or_default() += 1);
    states
}

/// One batch, as it is found.
struct Found<'a> {
    coordination: &'a Coordination,
    batching: &'a Batching,
    index: u32,
    state: BatchState,
    /// The first role of which a replica may not run.
    beyond: Option<&'a str>,
    shares: Vec<(&'a str, Share)>,
}

fn each<'a>(group: &'a Group, view: &'a GroupView, decision: &'a Decision) -> impl Iterator<Item = Found<'a>> {
    group.batched().flat_map(move |(coordination, batching)| {
        let roles: Vec<_> = batching
            .sizes
            .keys()
            .filter_map(|name| Some((name.as_str(), view.roles.get(name)?, batching.size(name)?)))
            .collect();
        let total = roles.iter().map(|(_, role, size)| role.desired.div_ceil(*size)).max().unwrap_or(0);
        (0..total).map(move |index| {
            let shares = roles.iter().filter_map(|(name, role, size)| Some((*name, share(role, *size, index)?)));
            let shares: Vec<_> = shares.collect();
            let beyond = shares.iter().find(|(role, share)| {
                decision.released.get(*role).is_some_and(|released| share.ordinals.end() >= released)
            });
            let beyond = beyond.map(|(role, _)| *role);
            Found { coordination, batching, index, state: state(&shares, beyond.is_some()), beyond, shares }
        })
    })
}

fn share(role: &RoleView, size: u32, batch: u32) -> Option<Share> {
    let from = batch.saturating_mul(size);
    let to = from.saturating_add(size).min(role.desired).checked_sub(1).filter(|to| *to >= from)?;
    let count = |test: fn(&Replica) -> bool| {
        let passing = role.replicas.range(from..=to).filter(|(_, replica)| test(replica)).count();
        u32::try_from(passing).unwrap_or(u32::MAX)
    };
    Some(Share { ordinals: from..=to, released: count(Replica::is_released), ready: count(Replica::is_ready) })
}

fn state(shares: &[(&str, Share)], beyond: bool) -> BatchState {
    if shares.iter().all(|(_, share)| share.ready == share.desired()) {
        BatchState::Ready
    } else if beyond || shares.iter().any(|(_, share)| share.released < share.desired()) {
        BatchState::Held
    } else {
        BatchState::Released
    }
}

/// A batch that may go by its count, and waits for pods that do not exist.
fn incomplete(decision: &Decision, coordination: &Coordination, batch: u32) -> Option<HoldReason> {
    let name = coordination.display_name();
    let mut held = decision.held.iter().filter(|held| held.waits_for_own);
    held.find(|held| held.batch == Some(batch) && held.coordination.as_ref() == Some(&name)).map(|held| held.reason)
}

/// Why a batch may not go for the sake of one of its roles. Pods of a role are held under the first of its coordinations.
fn reason(
    group: &Group,
    view: &GroupView,
    decision: &Decision,
    (coordination, batching): (&Coordination, &Batching),
    role: &str,
) -> HoldReason {
    let said = |name: &str| decision.held.iter().find(|held| held.coordination.as_deref() == Some(name));
    let own = said(&coordination.display_name());
    let first = || group.batchings_of(role).find_map(|(coordination, _)| said(&coordination.display_name()));
    if let Some(held) = own.or_else(first) {
        return held.reason;
    }
    // Nothing is held that exists: the batch waits for what its coordination waits for.
    let target = decision.targets.coordinations.iter().find(|target| target.index == coordination.index);
    match target.map(|target| target.state) {
        _ if view.roles.get(role).is_none_or(|role| role.unknown) => HoldReason::GroupMissing,
        Some(ProgressState::Blocked) => HoldReason::BlockedByCoordination,
        _ => waiting(batching.progression()),
    }
}

/// What a batch waits for under this progression.
pub(in crate::plan) const fn waiting(progression: Progression) -> HoldReason {
    match progression {
        Progression::Scheduled => HoldReason::PreviousStepNotScheduled,
        Progression::Ordered => HoldReason::IncompleteBatch,
        Progression::OrderedReady | Progression::Parallel => HoldReason::PreviousSegmentNotReady,
    }
}
