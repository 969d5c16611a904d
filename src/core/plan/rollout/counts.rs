//! Open rollouts given as counts, for planning without a cluster (`plan --state`).

use std::collections::{BTreeMap, BTreeSet};

use super::standing::REPLICAS_NOT_READY;
use super::{Ordinal, Pauses, RoleRollout, Rollouts, Stage, stages};
use crate::api::status::{RolledBack, RolloutState};
use crate::model::rolling::FROZEN;
use crate::model::{Group, Role, RollingBounds};
use crate::plan::view::counts::{ObservedCounts, RoleCounts};

impl ObservedCounts {
    /// Returns the rollouts of the roles that state a number of updated replicas, including zero.
    pub fn rollouts(&self, group: &Group) -> Rollouts {
        let bounds = RollingBounds::all_of(group);
        let rolled = group.roles.iter().filter(|role| bounds.iter().any(|bounds| bounds.has(&role.name)));
        let roles = rolled.filter_map(|role| {
            let batched = group.batch_size(&role.name).is_some();
            let mut rollout = rollout(role, self.roles.get(&role.name)?, batched)?;
            if self.rolled_back {
                turn(&mut rollout);
            }
            Some((role.name.clone(), rollout))
        });
        let mut roles: BTreeMap<_, _> = roles.collect();
        let mut pauses = Pauses::of(group, &bounds, None);
        pauses.objects.clone_from(&self.objects);
        let past = stages(&bounds, &roles, &pauses).into_iter().map(|stage| (stage.index, self.past(stage.state)));
        pauses.past = past.collect();
        if self.failed {
            pauses.late = stages(&bounds, &roles, &pauses).into_iter().flat_map(|stage| stage.late).collect();
            // As the loop decides once that is committed.
            let back = stages(&bounds, &roles, &pauses).into_iter().filter(|stage| stage.state.rolled_back.is_some());
            for Stage { index, state, .. } in back {
                let goes = |name: &String| state.revisions.contains_key(name);
                roles.iter_mut().filter(|(name, role)| goes(name) && !role.returns).for_each(|(_, role)| turn(role));
                pauses.past.insert(index, state);
            }
        }
        Rollouts { bounds, roles, pauses, ..Rollouts::default() }
    }

    /// Returns the state of a rollout as the status would have it.
    fn past(&self, state: RolloutState) -> RolloutState {
        let (reason, message) = (REPLICAS_NOT_READY.to_owned(), "it failed before".to_owned());
        let rolled_back = RolledBack { reason, message, ..RolledBack::default() };
        let revisions = state.revisions;
        RolloutState { revisions, rolled_back: self.rolled_back.then_some(rolled_back), ..RolloutState::default() }
    }
}

/// Turns a rollout round: what is updated goes back.
fn turn(role: &mut RoleRollout) {
    role.ordinals.iter_mut().for_each(|replica| replica.updated = !replica.updated);
    (role.partition, role.back, role.returns) = (FROZEN, true, true);
}

/// Builds a rollout from counts: the highest replicas are updated, and the highest of these are ready. Other unavailable
/// replicas come right below, since these are replaced first. The partition of the workload is the lowest of the updated
/// replicas on top.
fn rollout(role: &Role, counts: &RoleCounts, batched: bool) -> Option<RoleRollout> {
    let desired = role.desired;
    let highest = |count: u32| (desired.saturating_sub(count)..desired).collect::<BTreeSet<_>>();
    let updated = match (&counts.updated_ordinals, counts.updated) {
        (Some(ordinals), _) => ordinals.iter().copied().filter(|ordinal| *ordinal < desired).collect(),
        (None, Some(count)) => highest(count),
        (None, None) => return None,
    };
    let done: BTreeSet<_> = updated.iter().rev().take(counts.updated_ready as usize).copied().collect();
    let starting = updated.len() - done.len();
    let down = (counts.unavailable as usize).saturating_sub(starting);
    let old = (0..desired).rev().filter(|ordinal| !updated.contains(ordinal));
    let down: BTreeSet<_> = old.take(down).collect();
    let created = counts.created.unwrap_or(desired);
    let released = counts.released.max(counts.scheduled).max(counts.ready);
    let ordinal = |ordinal: u32| {
        let held = batched && ordinal >= released;
        let up = if updated.contains(&ordinal) { done.contains(&ordinal) } else { !down.contains(&ordinal) };
        let there = ordinal < created;
        Ordinal {
            updated: there && updated.contains(&ordinal),
            ready: there && up && !held,
            held: there && held,
            new: false,
            displaced: false,
            given_up: false,
        }
    };
    let partition = (0..desired).rev().take_while(|ordinal| updated.contains(ordinal)).last().unwrap_or(FROZEN);
    Some(RoleRollout {
        partition,
        floor: 0,
        ordinals: (0..desired).map(ordinal).collect(),
        judged: true,
        round: 0,
        settled: true,
        stuck: false,
        may_run: 0,
        revision: None,
        back: false,
        remade: false,
        at_once: None,
        ordered: false,
        can_return: updated.len() < desired as usize,
        resized: false,
        returns: false,
    })
}
