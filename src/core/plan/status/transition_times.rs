//! Timestamps of a status: set at a change, kept otherwise.

use std::collections::BTreeSet;

use crate::api::status::{Condition, CoordinationState, GroupStatus};
use crate::plan::status::conditions::{OURS, READY, READY_REASONS};

/// Sets the timestamps of a decided status, and keeps conditions of other controllers. `now` is RFC 3339.
#[must_use]
pub fn set(mut status: GroupStatus, before: &GroupStatus, now: &str) -> GroupStatus {
    let generation = status.observed_generation;
    for condition in &mut status.conditions {
        let old = before.conditions.iter().find(|old| old.r#type == condition.r#type);
        let since = old.filter(|old| old.status == condition.status).and_then(|old| old.last_transition_time.clone());
        condition.last_transition_time = Some(since.unwrap_or_else(|| now.to_owned()));
        condition.observed_generation = generation;
    }
    let is_ready = status.conditions.iter().any(|c| c.r#type == READY && c.status == "True");
    // The operator of the carrier may keep its own `Ready`: two writers would overwrite each other forever.
    let is_theirs = |ready: &&Condition| ready.r#type == READY && !READY_REASONS.contains(&ready.reason.as_str());
    if before.conditions.iter().any(|condition| is_theirs(&condition)) {
        status.conditions.retain(|condition| condition.r#type != READY);
    }
    let foreign = before.conditions.iter().filter(|c| !OURS.contains(&c.r#type.as_str()) || is_theirs(c)).cloned();
    status.conditions.extend(foreign.collect::<Vec<_>>());
    for state in &mut status.coordination_state {
        let old = before.coordination(&state.name);
        let same = old.filter(|old| is_state(old, state)).and_then(|old| old.last_update_time.clone());
        state.last_update_time = Some(same.unwrap_or_else(|| now.to_owned()));
    }
    if is_ready && status.first_ready_time.is_none() {
        status.first_ready_time = Some(now.to_owned());
    }
    status
}

/// Reports whether two statuses differ in more than counts: such changes are written at once, counts at most once a second. That a role
/// has served is one, to which replica it has is a count.
pub fn differs_in_substance(a: &GroupStatus, b: &GroupStatus) -> bool {
    shapes(&a.conditions, |_| true) != shapes(&b.conditions, |_| true)
        || a.first_ready_time != b.first_ready_time
        || a.served.keys().ne(b.served.keys())
}

/// Reports whether two statuses agree on what may run and on the state of the group, apart from counts and times.
pub fn says_the_same(a: &GroupStatus, b: &GroupStatus) -> bool {
    let known = |kind: &str| kind != READY && OURS.contains(&kind);
    let (one, other) = (&a.coordination_state, &b.coordination_state);
    one.len() == other.len()
        && one.iter().zip(other).all(|(a, b)| is_state(a, b))
        && shapes(&a.conditions, known) == shapes(&b.conditions, known)
}

/// Compares two states without times.
fn is_state(a: &CoordinationState, b: &CoordinationState) -> bool {
    let CoordinationState {
        name,
        progress,
        domains,
        complete_batches,
        complete_replicas,
        complete_sizes,
        accepted,
        rollout,
        last_update_time: _,
    } = a;
    *name == b.name
        && *progress == b.progress
        && *domains == b.domains
        && *complete_batches == b.complete_batches
        && *complete_replicas == b.complete_replicas
        && *complete_sizes == b.complete_sizes
        && *accepted == b.accepted
        && *rollout == b.rollout
}

/// Returns conditions of these kinds without messages, times and order.
fn shapes(conditions: &[Condition], is_asked: impl Fn(&str) -> bool) -> BTreeSet<(&str, &str, &str)> {
    let asked = conditions.iter().filter(|condition| is_asked(&condition.r#type));
    asked.map(|condition| (condition.r#type.as_str(), condition.status.as_str(), condition.reason.as_str())).collect()
}

#[cfg(test)]
#[path = "transition_times_tests.rs"]
mod tests;
