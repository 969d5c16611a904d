//! The batches of a group: their replicas and their state.

use std::collections::BTreeMap;
use std::ops::{Range, RangeInclusive};

use crate::model::words::words;
use crate::model::{Batching, Coordination, Group, HoldReason};
use crate::plan::decide::decision::Decision;
use crate::plan::decide::held::Held;
use crate::plan::view::{GroupView, ReplicaIs, RoleView};

words! {
/// The state of a batch.
pub enum BatchState {
    /// Every replica is ready.
    Ready,
    /// Every replica may run.
    Released,
    /// At least one replica may not run.
    Held,
}
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// The position of the coordination in the list of the group.
    pub coordination: usize,
    /// The number of the batch, from 0.
    pub index: u32,
    /// Its replicas by role, without the roles that have no replicas left for it.
    pub roles: BTreeMap<String, Share>,
    pub state: BatchState,
    /// The reason why the batch may not go yet; `None` if it may, even if its gates are not lifted yet.
    pub reason: Option<HoldReason>,
}

/// The replicas of one role in a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Share {
    pub ordinals: RangeInclusive<u32>,
    /// Replicas without the gate of rolegate.
    pub released: u32,
    pub ready: u32,
}

impl Share {
    pub fn desired(&self) -> u32 {
        self.ordinals.end() - self.ordinals.start() + 1
    }
}

impl Batch {
    /// Reports whether it is held and replicas of it run: it has lost others, or has no room for them.
    pub fn is_held_in_part(&self) -> bool {
        self.state == BatchState::Held && self.roles.values().any(|share| share.released > 0)
    }
}

/// Returns the batches of all coordinations, in order.
pub fn batches(group: &Group, view: &GroupView, decision: &Decision) -> Vec<Batch> {
    let holds = Holds::of(view, decision);
    let batch = |counted: Counted<'_>| Batch {
        coordination: counted.coordination.index,
        index: counted.index,
        state: counted.state,
        reason: holds.reason(&counted),
        roles: counted.shares.into_iter().map(|(role, share)| (role.to_owned(), share)).collect(),
    };
    each(group, view, decision).map(batch).collect()
}

/// Counts the batches of all coordinations by state. Batches beyond the existing replicas, of which there may be any number,
/// are counted without looking at each.
pub(in crate::plan) fn states(group: &Group, view: &GroupView, decision: &Decision) -> BTreeMap<BatchState, u32> {
    let (mut states, mut left) = (BTreeMap::new(), MOST_BATCHES);
    let mut count = |state, more| *states.entry(state).or_default() += more;
    for (_, batching) in group.batched() {
        let total = view.desired_batches(batching).min(left);
        left -= total;
        let begun = batching.total(|role| Some(view.roles.get(role)?.replicas.end())).min(total);
        (0..begun).for_each(|index| count(Look { batching, view, decision }.state(index), 1));
        if total > begun {
            count(BatchState::Held, total - begun);
        }
    }
    states
}

/// The maximum number of batches to count: more than a cluster has pods.
const MOST_BATCHES: u32 = 1_000_000;

struct Counted<'a> {
    coordination: &'a Coordination,
    index: u32,
    state: BatchState,
    /// Whether some of its replicas may not run.
    beyond: bool,
    shares: Vec<(&'a str, Share)>,
}

fn each<'a>(group: &'a Group, view: &'a GroupView, decision: &'a Decision) -> impl Iterator<Item = Counted<'a>> {
    let all = group.batched().flat_map(move |(coordination, batching)| {
        of_coordination(coordination, batching, view, decision, 0..view.desired_batches(batching))
    });
    (0..MOST_BATCHES).zip(all).map(|(_, counted)| counted)
}

/// Returns the given batches of one coordination.
fn of_coordination<'a>(
    coordination: &'a Coordination,
    batching: &'a Batching,
    view: &'a GroupView,
    decision: &'a Decision,
    batches: Range<u32>,
) -> impl Iterator<Item = Counted<'a>> {
    let look = Look { batching, view, decision };
    batches.map(move |index| {
        let ranges = look.ranges(index);
        let shares = ranges.map(|(name, role, ordinals)| (name, share(role, ordinals))).collect();
        Counted { coordination, index, state: look.state(index), beyond: look.is_beyond(index), shares }
    })
}

/// The batches of one coordination. Each state is found without an allocation: there are thousands, at every pass.
#[derive(Clone, Copy)]
struct Look<'a> {
    batching: &'a Batching,
    view: &'a GroupView,
    decision: &'a Decision,
}

impl<'a> Look<'a> {
    /// Returns the replicas of a batch by role, without the roles that have none left for it.
    fn ranges(self, batch: u32) -> impl Iterator<Item = (&'a str, &'a RoleView, Range<u32>)> {
        self.view.ranges(self.batching, batch).filter(|(.., ordinals)| !ordinals.is_empty())
    }

    /// Reports whether some of the replicas may not run.
    fn is_beyond(self, batch: u32) -> bool {
        let ends = |(name, _, ordinals): (&str, _, Range<u32>)| {
            self.decision.released.get(name).is_some_and(|released| ordinals.end > *released)
        };
        self.ranges(batch).any(ends)
    }

    fn state(self, batch: u32) -> BatchState {
        let all = |what| self.ranges(batch).all(|(_, role, ordinals)| role.all_in(ordinals, what));
        if all(ReplicaIs::Ready) {
            BatchState::Ready
        } else if self.is_beyond(batch) || !all(ReplicaIs::Released) {
            BatchState::Held
        } else {
            BatchState::Released
        }
    }
}

fn share(role: &RoleView, ordinals: Range<u32>) -> Share {
    let count = |what| role.replicas.count_in(ordinals.clone(), what);
    let (released, ready) = (count(ReplicaIs::Released), count(ReplicaIs::Ready));
    Share { ordinals: ordinals.start..=ordinals.end.saturating_sub(1), released, ready }
}

/// The reasons why the pods of each replica are held.
struct Holds<'a> {
    by_role: BTreeMap<String, BTreeMap<u32, Vec<&'a Held>>>,
    turns: &'a BTreeMap<usize, HoldReason>,
}

impl<'a> Holds<'a> {
    fn of(view: &GroupView, decision: &'a Decision) -> Self {
        let mut by_role: BTreeMap<String, BTreeMap<u32, Vec<&Held>>> = BTreeMap::new();
        for held in &decision.held {
            for pod in held.pods.each(view) {
                let of_role = match by_role.get_mut(pod.role()) {
                    Some(of_role) => of_role,
                    None => by_role.entry(pod.role().to_owned()).or_default(),
                };
                of_role.entry(pod.ordinal).or_default().push(held);
            }
        }
        Self { by_role, turns: &decision.turns }
    }

    /// Returns the reason why a batch may not go: the reason of its pods that its own coordination holds, else the turn of the
    /// coordination, else the reason of its pods that another coordination holds.
    fn reason(&self, batch: &Counted<'_>) -> Option<HoldReason> {
        let mut held: Vec<&Held> = Vec::new();
        for (role, share) in &batch.shares {
            let replicas = self.by_role.get(*role).into_iter().flat_map(|all| all.range(share.ordinals.clone()));
            held.extend(replicas.flat_map(|(_, held)| held.iter().copied()));
        }
        let is_own = |held: &Held| held.coordination.as_ref().is_some_and(|own| own.index == batch.coordination.index);
        let own = held.iter().filter(|held| is_own(held)).map(|held| held.reason).min();
        let turn = || self.turns.get(&batch.coordination.index).copied().filter(|_| batch.beyond);
        own.or_else(turn).or_else(|| held.iter().map(|held| held.reason).min())
    }
}
