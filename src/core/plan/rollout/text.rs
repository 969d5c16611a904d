//! Texts on what a role in a rollout waits for, and on the steps of a rollout.

use std::collections::BTreeMap;
use std::fmt;

use super::behind::Behind;
use super::{
    PauseEnd, ProgressState, RolePlan, RoleRollout, RolloutPlan, Rollouts, Stage, StepNumber, Wait, WaitReason, floor,
};
use crate::model::rolled::deletion;
use crate::model::{Group, RollingBounds, RolloutStep, wording};

/// `step 2 of 3`, or `step 2 of 3 back` after an edit was taken back.
impl fmt::Display for StepNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { step, steps, back } = self;
        write!(f, "step {step} of {steps}{}", if *back { " back" } else { "" })
    }
}

/// `until it is resumed`, or `for 10m, or until it is resumed`.
impl fmt::Display for PauseEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Resume => {}
            Self::At(moment) => write!(f, "until {}, or ", moment.text())?,
            Self::After(time) => write!(f, "for {}, or ", wording::time(*time))?,
        }
        f.write_str("until it is resumed")
    }
}

/// Returns the word for a replica that has come to where its role goes.
fn to(role: &RoleRollout) -> &'static str {
    if role.returns { "back" } else { "updated" }
}

/// Returns one sentence: the waiting role, what it waits for, and the object to look at.
pub fn waits_for(name: &str, wait: &Wait, rollouts: &Rollouts) -> String {
    let roles = &rollouts.roles;
    let other = &wait.role;
    let counts = |role: &RoleRollout| format!("{}/{} {} and ready", role.done(), role.desired(), to(role));
    let counts = roles.get(other).map(counts).unwrap_or_default();
    let replica = wait.ordinal.map(|ordinal| format!(", next is {other}-{ordinal}")).unwrap_or_default();
    match wait.reason {
        WaitReason::Barred => {
            format!("{name} is not rolled: {}", rollouts.barred.get(name).map(String::as_str).unwrap_or_default())
        }
        WaitReason::NotObserved => format!("{name} waits: the controller of {other} has not seen its last change yet"),
        WaitReason::Settling => format!("{name} waits: {other} may be edited as well"),
        WaitReason::Skew => format!("{name} waits for {other}: {counts}{replica}"),
        WaitReason::LastOld => {
            format!("{name} keeps its last old replica until all roles can go: {other} is at {counts}{replica}")
        }
        WaitReason::Step(number) => format!("{name} waits for the end of {number}: {other} is at {counts}{replica}"),
        WaitReason::Object(number) => {
            let mut lacking = rollouts.stages.iter().filter(|stage| stage.number == number);
            let why = lacking.find_map(|stage| stage.lacks.as_ref()).map(|lack| lack.why.as_str());
            format!("{name} waits after {number}: {}", why.unwrap_or("for the object of `readyWhen`"))
        }
        WaitReason::Pause(number, end) => format!("{name} pauses after {number} {end}"),
        WaitReason::Segment(number) => {
            let replica = wait.ordinal.map(|ordinal| lacks(other, ordinal, rollouts)).unwrap_or_default();
            format!("{name} waits for segment {number}: {replica} ({other} is at {counts})")
        }
        WaitReason::Unavailable if wait.ordinal.is_some_and(|ordinal| serves_old(other, ordinal, rollouts)) => {
            let replica = wait.ordinal.map(|ordinal| lacks(other, ordinal, rollouts)).unwrap_or_default();
            format!("{name} waits: {replica} ({counts})")
        }
        WaitReason::Unavailable => {
            let replica =
                wait.ordinal.map(|ordinal| format!(": {}", lacks(other, ordinal, rollouts))).unwrap_or_default();
            format!("{name} has as many replicas unavailable as it may{replica} ({counts})")
        }
        WaitReason::HeldBatch => {
            let role = roles.get(other);
            let next = role.zip(wait.ordinal).and_then(|(role, held)| {
                let is_next = |ordinal: &u32| !role.at(*ordinal).updated && !role.at(*ordinal).held;
                let workload = rollouts.workloads.get(other).filter(|_| role.at_once.is_some())?;
                (0..held).rev().find(is_next).map(|ordinal| workload.deletion_of(ordinal))
            });
            behind_held(name, &next.unwrap_or_default(), role.map_or(0, RoleRollout::below_held))
        }
        WaitReason::OldReplica => {
            let replica = wait.ordinal.map(|ordinal| lacks(other, ordinal, rollouts)).unwrap_or_default();
            format!("{name} cannot be rolled: its workload waits for an old replica: {replica} ({counts})")
        }
    }
}

/// Returns why a role that nothing rolls in step is not updated, with the ways out.
pub fn behind_text(name: &str, behind: &Behind) -> String {
    let namespace = &behind.next.identity.group.namespace;
    behind_held(name, &deletion(namespace, &behind.next.pod.name), behind.released)
}

/// Returns why a role cannot be rolled while replicas on top are held. `deletion` is the command that replaces its next pod.
fn behind_held(name: &str, deletion: &str, released: u32) -> String {
    let replaces = if deletion.is_empty() { String::new() } else { format!("{deletion} replaces the next pod; or ") };
    format!("{}; {replaces}scale it to {released} replicas to go on", is_behind_held(name))
}

/// Returns that a role cannot be rolled while replicas on top are held.
pub fn is_behind_held(name: &str) -> String {
    format!("{name} cannot be rolled: its workload waits for held replicas on top")
}

/// Reports whether a replica serves, and is to be replaced.
fn serves_old(name: &str, ordinal: u32, rollouts: &Rollouts) -> bool {
    let role = rollouts.roles.get(name).filter(|role| !role.returns);
    role.map(|role| role.at(ordinal)).is_some_and(|replica| replica.ready && !replica.updated)
}

/// Returns what a replica lacks, such as `prefill-5 is not ready`. An old one that may not be replaced yet and stays so is made again by
/// its deletion.
fn lacks(name: &str, ordinal: u32, rollouts: &Rollouts) -> String {
    let role = rollouts.roles.get(name).filter(|role| !role.returns);
    let replica = role.map(|role| role.at(ordinal)).unwrap_or_default();
    if serves_old(name, ordinal, rollouts) {
        return format!("{name}-{ordinal} is not replaced yet");
    }
    let stays = role.is_some_and(|role| role.stuck && !role.is_granted(ordinal)) && !replica.updated && !replica.held;
    let workload = rollouts.workloads.get(name).filter(|_| stays);
    let again = workload.map(|workload| format!(", and {} makes it again", workload.deletion_of(ordinal)));
    format!("{name}-{ordinal} is not ready{}", again.unwrap_or_default())
}

/// Returns a sentence such as `"roll" is in step 2 of 3, which ends with decode 4/4 updated and ready`, or `"roll" pauses after
/// step 1 of 3 until it is resumed`, or `"roll" was sent back: prefill-9 did not get ready within 10m`.
pub fn stage_text(stage: &Stage, roles: &BTreeMap<String, RoleRollout>) -> String {
    let Stage { name, number, pause, lacks, limits, behind, stays, state, .. } = stage;
    if let Some(back) = &state.rolled_back {
        return format!("{name:?} was sent back: {}", back.message);
    }
    if let Some(why) = stays {
        return format!("{name:?} failed: {why}");
    }
    if let Some(end) = pause {
        return format!("{name:?} pauses after {number} {end}");
    }
    if let Some(lack) = lacks {
        return format!("{name:?} waits after {number}: {}", lack.why);
    }
    let goal = |role: &String| {
        let (limit, rollout) = (limits.get(role)?, roles.get(role)?);
        Some(format!("{role} {limit}/{}", rollout.shared()))
    };
    let goals: Vec<_> = behind.iter().filter_map(goal).collect();
    let ends = if goals.is_empty() {
        String::new()
    } else {
        format!(", which ends with {} updated and ready", goals.join(", "))
    };
    format!("{name:?} is in {number}{ends}")
}

/// One step of a rollout, as it will be for the desired replicas of its roles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedStep {
    /// The name of the coordination.
    pub coordination: String,
    pub number: StepNumber,
    /// Updated and desired replicas of each role at the end of the step.
    pub roles: BTreeMap<String, (u32, u32)>,
    /// The end of the pause after the step.
    pub pause: Option<PauseEnd>,
}

/// Returns the steps of a group's rollouts.
pub fn planned_steps(group: &Group) -> Vec<PlannedStep> {
    let of = |bounds: RollingBounds| {
        let steps = crate::plan::view::count(bounds.steps.len());
        let planned = |(step, one): (u32, &RolloutStep)| {
            let role = |name: &String| {
                let desired = group.role(name)?.desired;
                let goal = bounds.goal((step, one), name, desired).min(desired - bounds.kept_old(desired));
                Some((name.clone(), (goal, desired)))
            };
            PlannedStep {
                coordination: bounds.name.clone(),
                number: StepNumber { step, steps, back: false },
                roles: bounds.roles.iter().filter_map(role).collect(),
                pause: one.pause.map(|pause| pause.duration.map_or(PauseEnd::Resume, PauseEnd::After)),
            }
        };
        (1..).zip(&bounds.steps).map(planned).collect::<Vec<_>>()
    };
    RollingBounds::all_of(group).into_iter().flat_map(of).collect()
}

/// `rollout "roll", step 1 of 3: decode 0/4, prefill 3/10, then a pause until it is resumed`.
impl fmt::Display for PlannedStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { coordination, number, roles, pause } = self;
        let roles: Vec<_> = roles.iter().map(|(role, (goal, of))| format!("{role} {goal}/{of}")).collect();
        write!(f, "rollout {coordination:?}, {number}: {}", roles.join(", "))?;
        pause.map_or(Ok(()), |end| write!(f, ", then a pause {end}"))
    }
}

/// Returns one line for each rollout in steps and each role with an open rollout, such as `rollout of prefill: 10/40 updated, 10
/// of them ready, partition 30, Waiting`, with the reason to wait.
pub fn rollouts(plan: &RolloutPlan, rollouts: &Rollouts) -> Vec<String> {
    let told = rollouts.stages.iter().filter(|stage| stage.is_told());
    let stages = told.map(|stage| format!("rollout {}", stage_text(stage, &rollouts.roles)));
    let line = |(name, decided): (&String, &RolePlan)| {
        let role = rollouts.roles.get(name)?;
        let (desired, partition) = (role.desired(), decided.partition.min(role.desired()));
        let waits = decided.waits.as_ref().map(|wait| format!(": {}", waits_for(name, wait, rollouts)));
        let of_user = role.floor > 0 && floor(&rollouts.bounds, name, role) <= role.floor;
        let kept = || format!(": its user asked for partition {}, and replicas below stay old", role.floor);
        let waits = waits.or_else(|| (decided.state == ProgressState::Paused && of_user).then(kept));
        let mut again = decided.made_again.clone();
        again.sort_unstable();
        let again = match wording::numbers(&again) {
            none if none.is_empty() => String::new(),
            ordinals => format!(", {ordinals} made again"),
        };
        Some(format!(
            "rollout of {name}: {}/{desired} {}, {} of them ready, partition {partition}{again}, {}{}",
            role.updated(),
            to(role),
            role.done(),
            decided.state.as_str(),
            waits.unwrap_or_default()
        ))
    };
    stages.chain(plan.iter().filter_map(line)).collect()
}
