//! JSON output of `plan`.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use super::Planned;
use crate::api::status::{Condition, RecoveryState};
use crate::cli::check::json::{Finding, finding};
use crate::fit::Fitted;
use crate::plan::decide::acceptance::{PlannedAcceptance, planned};
use crate::plan::rollout::{PlannedStep, Rollouts, planned_steps, stage_text};
use crate::report::{Segments, coordination};

#[derive(Serialize)]
struct Answer<'a> {
    groups: Vec<Group<'a>>,
}

#[derive(Serialize)]
struct Group<'a> {
    namespace: &'a str,
    name: &'a str,
    roles: BTreeMap<&'a str, Role>,
    /// Without times: they are of no cluster.
    conditions: Vec<Condition>,
    steps: &'a [BTreeMap<String, u32>],
    complete: bool,
    batches: Vec<Batch>,
    /// What batches and steps wait for beyond ready replicas.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    acceptance: Vec<Acceptance>,
    /// Steps of its rollouts, if they have some.
    #[serde(rename = "rolloutSteps", skip_serializing_if = "Vec::is_empty")]
    rollout_steps: Vec<Stage>,
    /// Desired segments of an elastic group.
    #[serde(skip_serializing_if = "Option::is_none")]
    elastic: Option<Segments>,
    /// Batches that broke within the window, if the state has some.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    recoveries: &'a [RecoveryState],
    /// Places of batches, in the form of `rolegate fit`; absent without nodes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    fit: Vec<Value>,
    /// Errors of the group; absent when it is admitted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    violations: Vec<Finding<'a>>,
    /// Warnings of the group.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<Finding<'a>>,
    /// Why there is no plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

#[derive(Serialize)]
struct Role {
    desired: u32,
    target: u32,
    partition: Option<u32>,
    /// Why not all pods of a role in no batch have room.
    #[serde(skip_serializing_if = "Option::is_none")]
    shortage: Option<String>,
}

/// A step of a rollout.
#[derive(Serialize)]
struct Stage {
    coordination: String,
    /// Counted from 1.
    step: u32,
    /// Updated replicas of each role at its end.
    roles: BTreeMap<String, u32>,
    /// The end of the pause after it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pause: Option<String>,
}

/// What the batches of a coordination, or the steps of its rollout, wait for.
#[derive(Serialize)]
struct Acceptance {
    coordination: String,
    /// Number of batches that are accepted, from the first on.
    #[serde(skip_serializing_if = "Option::is_none")]
    accepted: Option<u32>,
    /// The object of each batch or step.
    #[serde(skip_serializing_if = "Option::is_none")]
    object: Option<Object>,
    /// The end of the pause after the canary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pause: Option<String>,
    /// Why the last complete batch is not accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    waits: Option<String>,
}

#[derive(Serialize)]
struct Object {
    /// With its API group: `Job.batch`.
    kind: String,
    name: String,
    condition: String,
}

#[derive(Serialize)]
struct Batch {
    coordination: String,
    index: u32,
    roles: BTreeMap<String, [u32; 2]>,
    domain: Option<String>,
    reason: Option<&'static str>,
}

pub(super) fn answer<'a>(planned: &'a [Planned<'_>]) -> impl Serialize + 'a {
    Answer { groups: planned.iter().map(group).collect() }
}

fn group<'a>(planned: &'a Planned<'_>) -> Group<'a> {
    let (document, group) = (planned.document, planned.group());
    let run = planned.run();
    Group {
        namespace: &document.namespace,
        name: group.map_or(document.name.as_str(), |group| &group.key.name),
        roles: roles(planned),
        conditions: planned.conditions().iter().map(without_times).collect(),
        steps: run.map(|run| run.steps.as_slice()).unwrap_or_default(),
        complete: planned.is_complete(),
        batches: group.zip(run).map(|(group, run)| all_batches(group, run, planned.fitted())).unwrap_or_default(),
        acceptance: group.map(|group| acceptance(group, run)).unwrap_or_default(),
        rollout_steps: group.map(|group| planned_steps(group).into_iter().map(step).collect()).unwrap_or_default(),
        elastic: group.zip(run).and_then(|(group, run)| Segments::of(group, &run.seen)),
        recoveries: run.map(|run| run.seen.status.recoveries.as_slice()).unwrap_or_default(),
        fit: planned.fitted().iter().map(coordination).collect(),
        violations: planned.judged.errors.iter().map(|error| finding(error, true)).collect(),
        warnings: planned.judged.warnings.iter().map(|warning| finding(warning, false)).collect(),
        error: planned.error().map(ToString::to_string),
    }
}

fn acceptance(group: &crate::model::Group, run: Option<&crate::plan::Run>) -> Vec<Acceptance> {
    let entry = |planned: PlannedAcceptance| {
        let PlannedAcceptance { index, coordination, batches, object, pause } = planned;
        let decided = run.and_then(|run| run.seen.decision.targets.coordination(index)).filter(|_| batches.is_some());
        let waits = || match batches {
            None => run.and_then(|run| lacking(index, &run.seen.rollouts)),
            Some(_) => {
                decided?.acceptance.wait.as_ref().zip(group.coordination(index)?.batching()).map(|(wait, batching)| {
                    wait.text(&batching.batch_name(decided.map_or(0, |decided| decided.full.saturating_sub(1))))
                })
            }
        };
        Acceptance {
            waits: waits(),
            coordination,
            accepted: decided.and_then(|decided| decided.acceptance.accepted),
            object: object.map(|object| Object {
                kind: object.kind.to_string(),
                name: object.name,
                condition: object.condition,
            }),
            pause: pause.map(|end| end.to_string()),
        }
    };
    planned(group).into_iter().map(entry).collect()
}

/// Returns why a rollout waits for the object of its step.
fn lacking(index: usize, rollouts: &Rollouts) -> Option<String> {
    let stage = rollouts.stages.iter().find(|stage| stage.index == index)?;
    stage.lacks.as_ref().map(|_| stage_text(stage, &rollouts.roles))
}

fn step(planned: PlannedStep) -> Stage {
    let PlannedStep { coordination, number, roles, pause } = planned;
    let roles = roles.into_iter().map(|(role, (goal, _))| (role, goal)).collect();
    Stage { coordination, step: number.step, roles, pause: pause.map(|end| end.to_string()) }
}

/// Returns the roles. A role in no batch runs at once: its target is its desired number.
fn roles<'a>(planned: &'a Planned<'_>) -> BTreeMap<&'a str, Role> {
    let Ok(plan) = &planned.plan else { return BTreeMap::new() };
    let target = |name: &str| planned.run()?.seen.decision.released.get(name).copied();
    let shortage = |name: &str| {
        let mut all = planned.run()?.occupied.as_ref()?.without_batch.iter();
        let (role, no_fit) = all.find(|(role, _)| role == name)?;
        Some(no_fit.describe(None, &format!("role {role:?}")))
    };
    let entry = |role: &'a crate::model::Role| {
        let target = target(&role.name).unwrap_or(role.desired);
        // The partition of a frozen workload is above its replicas: none is updated.
        let partition = planned.run().and_then(|run| run.seen.decision.rollout.get(&role.name));
        let partition = partition.map(|plan| plan.partition.min(role.desired));
        (role.name.as_str(), Role { desired: role.desired, target, partition, shortage: shortage(&role.name) })
    };
    plan.group.roles.iter().map(entry).collect()
}

fn without_times(condition: &Condition) -> Condition {
    Condition { last_transition_time: None, observed_generation: None, ..condition.clone() }
}

fn all_batches(group: &crate::model::Group, run: &crate::plan::Run, fitted: &[Fitted]) -> Vec<Batch> {
    let domain = |coordination: usize, index: u32| {
        let own = fitted.iter().find(|fitted| fitted.index == coordination)?;
        let fits = &own.answer.as_ref().ok()?.outlook.fits;
        fits.iter().find(|(of, _)| *of == index)?.1.domain.clone()
    };
    let name = |index: usize| group.coordination(index).map(crate::model::Coordination::display_name);
    let batches = run.seen.batches(group).into_iter();
    batches
        .map(|batch| Batch {
            coordination: name(batch.coordination).unwrap_or_default(),
            index: batch.index,
            roles: batch
                .roles
                .into_iter()
                .map(|(role, share)| (role, [*share.ordinals.start(), *share.ordinals.end()]))
                .collect(),
            domain: domain(batch.coordination, batch.index),
            reason: batch.reason.map(crate::model::HoldReason::as_str),
        })
        .collect()
}
