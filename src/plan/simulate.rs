//! The way of a group without a cluster: a whole run from nothing, or one decision from what is observed. Both are made of
//! the decisions that the loop makes.

use std::collections::BTreeMap;

use super::conditions;
use super::decide::{Circumstances, decide};
use super::decision::Decision;
use super::observed::{Observed, TooLarge};
use super::progression::State;
use super::role::Replica;
use super::rollout::Rollouts;
use super::view::GroupView;
use crate::api::status::GroupStatus;
use crate::model::Group;
use crate::rules::Violation;

/// Where a group gets.
#[derive(Clone, Debug)]
pub struct Run {
    /// The released counts of batched roles after each release.
    pub steps: Vec<BTreeMap<String, u32>>,
    /// What was seen at the end.
    pub view: GroupView,
    /// Open rollouts that were given.
    pub rollouts: Rollouts,
    /// What was decided at the end.
    pub decision: Decision,
    /// Every desired replica is released and ready.
    pub complete: bool,
}

/// A run that cannot be calculated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// Too many pods.
    #[error(transparent)]
    TooLarge(#[from] TooLarge),
    /// Too many steps for so many pods.
    #[error("the run has too many steps to be simulated: gave up after {0}; `--state` plans a single one")]
    TooLong(usize),
}

/// Most looks at one pod in all steps together: some seconds of work.
const MOST_WORK: usize = 50_000_000;

/// The whole run from nothing: all pods are there and held, and each replica that is released becomes ready before the
/// next decision. A group with faults does not start.
///
/// # Errors
///
/// When the group is too large.
pub fn simulate(group: &Group, faults: &[Violation], sizes: &BTreeMap<String, u32>) -> Result<Run, RunError> {
    let group = without_past(group, false);
    let mut view = Observed::default().view(&group, sizes)?;
    // What has no gate runs from the start.
    let free = view.roles.values_mut().flat_map(|role| role.replicas.values_mut()).filter(|replica| replica.held == 0);
    free.for_each(run_replica);
    let (mut steps, mut before, mut work) = (Vec::new(), BTreeMap::new(), 0_usize);
    before.extend(group.batched().flat_map(|(_, batching)| batching.sizes.keys()).map(|role| (role.clone(), 0)));
    loop {
        let decision = decide(&group, &view, Circumstances { faults, ..Circumstances::default() });
        if decision.release.is_empty() {
            return Ok(finish(steps, view, (Rollouts::default(), decision), faults));
        }
        work = work.saturating_add(view.roles.values().map(|role| role.replicas.len()).sum());
        if work > MOST_WORK {
            return Err(RunError::TooLong(steps.len()));
        }
        if decision.released.iter().any(|(role, count)| before.get(role) != Some(count)) {
            before.clone_from(&decision.released);
            steps.push(decision.released.clone());
        }
        let_ready(&mut view, &decision);
    }
}

/// One decision from what is observed. When it releases anything, that is its only step.
///
/// # Errors
///
/// When the group is too large.
pub fn decide_once(
    group: &Group,
    faults: &[Violation],
    observed: &Observed,
    sizes: &BTreeMap<String, u32>,
) -> Result<Run, RunError> {
    let group = without_past(group, observed.ever_ready);
    let view = observed.view(&group, sizes)?;
    let rollouts = observed.rollouts(&group);
    let decision =
        decide(&group, &view, Circumstances { faults, rollouts: Some(&rollouts), ..Circumstances::default() });
    let more = |(role, count): (&String, &u32)| view.roles.get(role).is_some_and(|role| *count > role.released());
    let steps = if decision.released.iter().any(more) { vec![decision.released.clone()] } else { Vec::new() };
    Ok(finish(steps, view, (rollouts, decision), faults))
}

/// The group before its status was ever written, or when all that is known is that it was complete once: the status that
/// a manifest may carry speaks of another time.
fn without_past(group: &Group, ever_ready: bool) -> Group {
    let first_ready_time = ever_ready.then(String::new);
    Group { status: GroupStatus { first_ready_time, ..GroupStatus::default() }, ..group.clone() }
}

fn finish(
    steps: Vec<BTreeMap<String, u32>>,
    view: GroupView,
    (rollouts, decision): (Rollouts, Decision),
    faults: &[Violation],
) -> Run {
    let rolled = decision.rollout.values().all(|role| role.state == State::Complete);
    let complete = faults.is_empty() && view.held.is_empty() && rolled && conditions::is_ready(&view.roles);
    Run { steps, view, rollouts, decision, complete }
}

fn run_replica(replica: &mut Replica) {
    (replica.held, replica.scheduled, replica.ready) = (0, replica.size, replica.size);
}

/// Commits a decision, releases its pods and lets them become ready.
fn let_ready(view: &mut GroupView, decision: &Decision) {
    for release in &decision.release {
        let replicas = view.roles.get_mut(&release.pod.role).map(|role| &mut role.replicas);
        let replica = replicas.and_then(|replicas| replicas.get_mut(&release.pod.ordinal));
        replica.into_iter().for_each(run_replica);
    }
    for (role, count) in &decision.released {
        if let Some(role) = view.roles.get_mut(role) {
            role.committed = Some(*count);
        }
    }
    let released = |role: &str| decision.released.get(role).copied().unwrap_or(u32::MAX);
    view.held.retain(|pod| pod.ordinal >= released(&pod.role));
}

#[cfg(test)]
#[path = "simulate_tests.rs"]
mod tests;
