//! The way of a group without a cluster: a whole run from nothing, or one decision from what is observed. Both are made of
//! the decisions that the loop makes.

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

/// Where a group gets.
#[derive(Clone, Debug)]
pub struct Run {
    /// The released counts of batched roles after each release.
    pub steps: Vec<BTreeMap<String, u32>>,
    /// What was seen and decided at the end.
    pub seen: Evaluation,
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

/// Most work of all steps together, in released pods: some seconds of it.
const MOST_WORK: usize = 10_000_000;
/// A step costs as much as the release of one in so many pods of the group, whatever it releases.
const PER_STEP: usize = 1_000;

/// The whole run from nothing: all pods are there and held, and each replica that is released becomes ready before the
/// next decision. A group with faults does not start.
///
/// # Errors
///
/// When the group is too large.
pub fn simulate(group: &Group, faults: &[Violation], sizes: &BTreeMap<String, u32>) -> Result<Run, RunError> {
    let group = without_past(group, false);
    // What has no gate runs from the start.
    let free = group.roles.iter().filter(|role| group.batch_size(&role.name).is_none());
    let runs = |role: &Role| (role.name.clone(), RoleCounts { ready: role.desired, ..RoleCounts::default() });
    let observed = ObservedCounts { roles: free.map(runs).collect(), ..ObservedCounts::default() };
    let mut view = observed.view(&group, sizes)?;
    let pods: usize = view.roles.values().map(|role| role.replicas.pods().count()).sum();
    let (mut steps, mut before, mut work) = (Vec::new(), BTreeMap::new(), 0_usize);
    before.extend(group.batched().flat_map(|(_, batching)| batching.sizes.keys()).map(|role| (role.clone(), 0)));
    loop {
        // Its workloads have what may run.
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

/// One decision from what is observed. When it releases anything, that is its only step.
///
/// # Errors
///
/// When the group is too large.
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

/// The workloads of a group that is scaled, with these replicas.
fn workloads(group: &Group, view: &GroupView, replicas: impl Fn(&RoleView) -> u32) -> Vec<ScaledWorkload> {
    let roles = group.scaled().into_iter().flat_map(|(_, batching)| batching.sizes.keys());
    let workload = |name: &String| {
        let key = group.role(name)?.workload.key.clone()?;
        let claim = RolloutClaim { group: group.key.clone(), role: name.clone() };
        Some(ScaledWorkload::of_nothing(key, claim, replicas(view.roles.get(name)?)))
    };
    roles.filter_map(workload).collect()
}

/// The group before its status was ever written, or when all that is known is that it was complete once: the status that
/// a manifest may carry speaks of another time.
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

/// Commits a decision, releases its pods and lets them become ready.
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
