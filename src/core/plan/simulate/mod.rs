//! Simulation of a group without a cluster: a whole run, or one decision from observed counts. Both use the decisions of the
//! loop, and its placer where there are nodes (`site`).

mod site;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::api::status::{CoordinationState, GroupStatus};
use crate::model::moment::Moment;
use crate::model::{Group, ProgressState, Role, RolloutClaim, ScaledWorkload};
use crate::plan::decide::decision::{Decision, Release};
use crate::plan::decide::{DecisionContext, decide};
use crate::plan::elastic::ElasticContext;
use crate::plan::evaluate::{Evaluation, Observation, evaluate};
use crate::plan::placement::Placer;
use crate::plan::rollout::{Pauses, Rollouts};
use crate::plan::simulate::site::{Nodes, running};
use crate::plan::status::conditions;
use crate::plan::view::counts::{RoleCounts, TooLarge};
use crate::plan::view::{AwaitedObjects, GroupView, HeldPod, ObservedCounts, PodFacts, RoleView};
use crate::rules::Violation;

pub use self::site::{Occupied, Site, SitePod};

/// The result of a simulation.
#[derive(Clone, Debug)]
pub struct Run {
    /// The released replicas of the batched roles before the first release.
    pub begun: BTreeMap<String, u32>,
    /// The same after each release.
    pub steps: Vec<BTreeMap<String, u32>>,
    /// The evaluation after the last step.
    pub seen: Evaluation,
    /// Whether every desired replica is released and ready.
    pub complete: bool,
    /// The nodes at the end, if there were some.
    pub occupied: Option<Occupied>,
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
/// The number of pods of the group that make a step cost as much as one released pod, whatever it releases: without nodes, and
/// with nodes, which count as pods.
const PER_STEP: usize = 1_000;
const PER_STEP_ON_NODES: usize = 8;

/// Simulates the whole run: all pods exist and are held, and each released replica becomes ready before the next decision, with the
/// objects that batches wait for. A person ends the pause after a canary. With a site, only pods with room become ready, and pods
/// that have a node there run from the beginning. A group with faults does not start.
///
/// # Errors
///
/// Fails when the group or the run is too large.
pub fn simulate(
    group: &Group,
    faults: &[Violation],
    sizes: &BTreeMap<String, u32>,
    site: Option<Site>,
) -> Result<Run, RunError> {
    let mut group = without_past(group, false);
    // Roles without a gate run from the start.
    let free = group.roles.iter().filter(|role| site.is_none() && group.batch_size(&role.name).is_none());
    let runs = |role: &Role| (role.name.clone(), RoleCounts { ready: role.desired, ..RoleCounts::default() });
    let observed = ObservedCounts { roles: free.map(runs).collect(), ..ObservedCounts::default() };
    let (mut view, mut nodes) = begin(&group, &observed, sizes, site)?;
    nodes.iter_mut().for_each(|nodes| nodes.run_free(&group, &mut view));
    let pods: usize = view.roles.values().map(|role| role.replicas.pods().count()).sum();
    let per_step = nodes.as_ref().map_or(pods / PER_STEP, |nodes| (pods + nodes.count()) / PER_STEP_ON_NODES);
    let begun: BTreeMap<_, _> = batched(&group).map(|role| (role.clone(), released(&view, role))).collect();
    let (mut steps, mut before, mut work) = (Vec::new(), begun.clone(), 0_usize);
    loop {
        // The workloads have the committed replicas.
        let workloads = workloads(&group, &view, |role| role.committed.unwrap_or(0));
        let (missing, keys) = of_nodes(nodes.as_ref());
        let elastic = ElasticContext { workloads: &workloads, ..ElasticContext::default() };
        let context = DecisionContext {
            faults,
            missing_layers: &missing,
            domain_keys: &keys,
            elastic,
            ..DecisionContext::default()
        };
        let decide = |placer: Option<&mut Placer<'_>>| decide(&group, &view, &mut without_pauses(), context, placer);
        let decision = match &mut nodes {
            Some(nodes) => nodes.placing(|placer| decide(Some(placer))),
            None => decide(None),
        };
        if decision.release.is_empty() {
            let observation = Observation { view, rollouts: without_pauses() };
            let seen = evaluated(&group, observation, context, nodes.as_mut());
            return Ok(finish((begun, steps), seen, faults, nodes));
        }
        work = work.saturating_add(decision.release.len()).saturating_add(per_step);
        if work > MOST_WORK {
            return Err(RunError::TooLong(steps.len()));
        }
        if decision.released.iter().any(|(role, count)| before.get(role) != Some(count)) {
            before.clone_from(&decision.released);
            steps.push(decision.released.clone());
        }
        commit(&mut group, &decision);
        go(&group, &mut view, &decision, nodes.as_mut());
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
    site: Option<Site>,
) -> Result<Run, RunError> {
    let mut group = without_past(group, observed.ever_ready);
    group.status.recoveries.clone_from(&observed.recoveries);
    group.desire_beside(&observed.released());
    group.status.coordination_state = observed.accepted(&group);
    let (view, mut nodes) = begin(&group, observed, sizes, site)?;
    let workloads = workloads(&group, &view, |role| role.replicas.pods_in(..).replicas);
    let (missing, keys) = of_nodes(nodes.as_ref());
    let elastic = ElasticContext { workloads: &workloads, ..ElasticContext::default() };
    let context =
        DecisionContext { faults, missing_layers: &missing, domain_keys: &keys, elastic, ..DecisionContext::default() };
    let observation = Observation { rollouts: observed.rollouts(&group), view };
    let seen = evaluated(&group, observation, context, nodes.as_mut());
    if let Some(nodes) = &mut nodes {
        nodes.schedule(&group, going(&seen.decision, &keys));
    }
    let more = |(role, count): (&String, &u32)| seen.view.roles.get(role).is_some_and(|role| *count > role.released());
    let begun = batched(&group).map(|role| (role.clone(), released(&seen.view, role))).collect();
    let released = &seen.decision.released;
    let steps = if released.iter().any(more) { vec![released.clone()] } else { Vec::new() };
    Ok(finish((begun, steps), seen, faults, nodes))
}

/// Returns the observed pods, and the nodes on which those with a node run.
fn begin(
    group: &Group,
    observed: &ObservedCounts,
    sizes: &BTreeMap<String, u32>,
    site: Option<Site>,
) -> Result<(GroupView, Option<Nodes>), TooLarge> {
    let Some(site) = site else { return Ok((observed.view(group, sizes)?, None)) };
    let mut view = observed.view(group, &site.sizes(sizes))?;
    let mut nodes = Nodes::begin(site, group, &mut view);
    nodes.settle(group, &view);
    Ok((view, Some(nodes)))
}

/// Returns no rollouts, pauses that a person ends at once, and objects that have their conditions.
fn without_pauses() -> Rollouts {
    let resumed = Some(Moment(i64::MAX));
    let pauses = Pauses { resumed, objects: AwaitedObjects::AllHold, ..Pauses::default() };
    Rollouts { pauses, ..Rollouts::default() }
}

fn batched(group: &Group) -> impl Iterator<Item = &String> {
    group.batched().flat_map(|(_, batching)| batching.sizes.keys())
}

fn released(view: &GroupView, role: &str) -> u32 {
    view.roles.get(role).map(RoleView::released).unwrap_or_default()
}

/// Returns the coordinations whose layer is missing, and the node labels of domains.
fn of_nodes(nodes: Option<&Nodes>) -> (Vec<usize>, Vec<(usize, String)>) {
    nodes.map(|nodes| (nodes.missing_layers.clone(), nodes.domain_keys.clone())).unwrap_or_default()
}

fn evaluated(
    group: &Group,
    observation: Observation,
    context: DecisionContext<'_>,
    nodes: Option<&mut Nodes>,
) -> Evaluation {
    match nodes {
        Some(nodes) => nodes.placing(|placer| evaluate(group, observation, context, Some(placer))),
        None => evaluate(group, observation, context, None),
    }
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

fn finish(
    (begun, steps): (BTreeMap<String, u32>, Vec<BTreeMap<String, u32>>),
    seen: Evaluation,
    faults: &[Violation],
    nodes: Option<Nodes>,
) -> Run {
    let rolled = seen.decision.rollout.values().all(|role| role.state == ProgressState::Complete);
    let view = &seen.view;
    let complete = faults.is_empty() && view.held().is_empty() && rolled && conditions::is_ready(&view.roles);
    Run { begun, steps, seen, complete, occupied: nodes.map(Nodes::end) }
}

/// Commits the domains of a decision to the status.
fn commit(group: &mut Group, decision: &Decision) {
    let state = |(index, domains): (&usize, &BTreeMap<u32, String>)| {
        let name = group.coordination(*index)?.display_name();
        let domains = domains.iter().map(|(batch, domain)| (batch.to_string(), domain.clone())).collect();
        Some(CoordinationState { name, domains, ..CoordinationState::default() })
    };
    let states = decision.placed.domains.iter().filter_map(state).collect();
    group.status.coordination_state = states;
}

/// Returns the pods of a decision, each with the domain that it is bound to.
fn going(decision: &Decision, keys: &[(usize, String)]) -> Vec<(HeldPod, Option<String>)> {
    let domain = |release: &Release| keys.iter().find_map(|(_, key)| release.pin.get(key)).cloned();
    decision.release.iter().map(|release| (release.pod.clone(), domain(release))).collect()
}

/// Commits the counts of a decision and releases its pods. They become ready, where there are nodes only those with room.
fn go(group: &Group, view: &mut GroupView, decision: &Decision, mut nodes: Option<&mut Nodes>) {
    if let Some(nodes) = &mut nodes {
        nodes.schedule(group, going(decision, &nodes.domain_keys.clone()));
    }
    for release in &decision.release {
        let HeldPod { facts, ordinal } = &release.pod;
        if let Some(role) = view.roles.get_mut(release.pod.role()) {
            role.replicas.remove(&facts.pod, *ordinal);
            let has_room = nodes.as_ref().is_none_or(|nodes| nodes.has_node(&release.pod));
            let pod = if has_room { running(facts) } else { PodFacts { held: false, ..PodFacts::clone(facts) } };
            role.replicas.add(&Arc::new(pod), *ordinal);
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
