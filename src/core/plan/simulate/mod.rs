//! Simulation of a group without a cluster: a whole run from nothing, or one decision from observed counts. Both use the
//! decisions of the loop.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::api::status::GroupStatus;
use crate::model::{Group, ProgressState, Role, RolloutClaim, ScaledWorkload};
use crate::plan::decide::decision::Decision;
use crate::plan::decide::{DecisionContext, decide};
use crate::plan::elastic::ElasticContext;
use crate::plan::evaluate::{Evaluation, Observation, evaluate};
use crate::plan::rollout::Rollouts;
use crate::plan::status::conditions;
use crate::plan::view::counts::{RoleCounts, TooLarge};
use crate::plan::view::{GroupView, HeldPod, ObservedCounts, PodFacts, RoleView};
use crate::rules::Violation;

/// The result of a simulation.
#[derive(Clone, Debug)]
pub struct Run {
    /// The released replicas of the batched roles after each release.
    pub steps: Vec<BTreeMap<String, u32>>,
    /// The evaluation after the last step.
    pub seen: Evaluation,
    /// Whether every desired replica is released and ready.
    pub complete: bool,
}

/// The error of a run that cannot be simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// The group has too many pods.
    #[error(transparent)]
    TooLarge(#[from] TooLarge),
    /// The run takes too many steps for the number of pods.
    #[error("the run has too many steps to be simulated: gave up after {0}; `--state` plans a single one")]
    TooLong(usize),
}

/// The maximum work of all steps together, in released pods: some seconds.
const MOST_WORK: usize = 10_000_000;
/// The number of pods of the group that make a step cost as much as one released pod, whatever it releases.
const PER_STEP: usize = 1_000;

/// Simulates the whole run from nothing: all pods exist and are held, and each released replica becomes ready before the next
/// decision. A group with faults does not start.
///
/// # Errors
///
/// Fails when the group or the run is too large.
pub fn simulate(group: &Group, faults: &[Violation], sizes: &BTreeMap<String, u32>) -> Result<Run, RunError> {
    let group = without_past(group, false);
    // Roles without a gate run from the start.
    let free = group.roles.iter().filter(|role| group.batch_size(&role.name).is_none());
    let runs = |role: &Role| (role.name.clone(), RoleCounts { ready: role.desired, ..RoleCounts::default() });
    let observed = ObservedCounts { roles: free.map(runs).collect(), ..ObservedCounts::default() };
    let mut view = observed.view(&group, sizes)?;
    let pods: usize = view.roles.values().map(|role| role.replicas.pods().count()).sum();
    let (mut steps, mut before, mut work) = (Vec::new(), BTreeMap::new(), 0_usize);
    before.extend(group.batched().flat_map(|(_, batching)| batching.sizes.keys()).map(|role| (role.clone(), 0)));
    loop {
        // The workloads have the committed replicas.
        let workloads = workloads(&group, &view, |role| role.committed.unwrap_or(0));
        let elastic = ElasticContext { workloads: &workloads, ..ElasticContext::default() };
        let context = DecisionContext { faults, elastic, ..DecisionContext::default() };
        let decision = decide(&group, &view, &mut Rollouts::default(), context, None);
        if decision.release.is_empty() {
            let observation = Observation { view, rollouts: Rollouts::default() };
            return Ok(finish(steps, evaluate(&group, observation, context, None), faults));
        }
        work = work.saturating_add(decision.release.len()).saturating_add(pods / PER_STEP);
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

/// Makes one decision from observed counts. A release becomes the only step.
///
/// # Errors
///
/// Fails when the group is too large.
pub fn decide_once(
    group: &Group,
    faults: &[Violation],
    observed: &ObservedCounts,
    sizes: &BTreeMap<String, u32>,
) -> Result<Run, RunError> {
    let mut group = without_past(group, observed.ever_ready);
    group.status.recoveries.clone_from(&observed.recoveries);
    group.desire_beside(&observed.released());
    let view = observed.view(&group, sizes)?;
    let workloads = workloads(&group, &view, |role| role.replicas.pods_in(..).replicas);
    let elastic = ElasticContext { workloads: &workloads, ..ElasticContext::default() };
    let context = DecisionContext { faults, elastic, ..DecisionContext::default() };
    let observation = Observation { rollouts: observed.rollouts(&group), view };
    let seen = evaluate(&group, observation, context, None);
    let more = |(role, count): (&String, &u32)| seen.view.roles.get(role).is_some_and(|role| *count > role.released());
    let released = &seen.decision.released;
    let steps = if released.iter().any(more) { vec![released.clone()] } else { Vec::new() };
    Ok(finish(steps, seen, faults))
}

/// Returns the workloads of a scaled group, with these replicas.
fn workloads(group: &Group, view: &GroupView, replicas: impl Fn(&RoleView) -> u32) -> Vec<ScaledWorkload> {
    let roles = group.scaled().into_iter().flat_map(|(_, batching)| batching.sizes.keys());
    let workload = |name: &String| {
        let key = group.role(name)?.workload.key.clone()?;
        let claim = RolloutClaim { group: group.key.clone(), role: name.clone() };
        Some(ScaledWorkload::of_nothing(key, claim, replicas(view.roles.get(name)?)))
    };
    roles.filter_map(workload).collect()
}

/// Returns the group without its status, or with a status that says only that the group was complete once. The status in a
/// manifest may be outdated.
fn without_past(group: &Group, ever_ready: bool) -> Group {
    let first_ready_time = ever_ready.then(String::new);
    let mut group = group.clone();
    group.status = GroupStatus { first_ready_time, ..GroupStatus::default() };
    group.desire_from_nothing();
    group
}

fn finish(steps: Vec<BTreeMap<String, u32>>, seen: Evaluation, faults: &[Violation]) -> Run {
    let rolled = seen.decision.rollout.values().all(|role| role.state == ProgressState::Complete);
    let view = &seen.view;
    let complete = faults.is_empty() && view.held().is_empty() && rolled && conditions::is_ready(&view.roles);
    Run { steps, seen, complete }
}

/// Commits a decision, releases its pods and makes them ready.
fn let_ready(view: &mut GroupView, decision: &Decision) {
    for release in &decision.release {
        let HeldPod { facts, ordinal } = &release.pod;
        if let Some(role) = view.roles.get_mut(release.pod.role()) {
            role.replicas.remove(&facts.pod, *ordinal);
            let runs = PodFacts { held: false, scheduled: true, ready: true, ..PodFacts::clone(facts) };
            role.replicas.add(&Arc::new(runs), *ordinal);
        }
    }
    for (role, count) in &decision.released {
        if let Some(role) = view.roles.get_mut(role) {
            role.committed = Some(*count);
        }
    }
}

#[cfg(test)]
#[path = "simulate_tests.rs"]
mod tests;
