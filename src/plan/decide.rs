//! One decision for one group: what to commit, which pods to release, why the others are held, what the status says.

use std::collections::BTreeMap;

use super::absence::{self, Found};
use super::conditions::{self, Progress};
use super::decision::Decision;
use super::facts::{HeldPod, PodRef};
use super::fate::Release;
use super::holds;
use super::mismatch;
use super::progression::{State, Targets, targets};
use super::role::RoleView;
use super::rollout::{RolloutPlan, Rollouts, plan_rollout, waits_for};
use super::segments;
use super::surge;
use super::view::GroupView;
use super::wholes::{Incomplete, Whole};
use crate::api::status::{CoordinationState, GroupStatus, RoleProgress, Summary};
use crate::model::{Coordination, Group};
use crate::rules::Violation;

/// KEP-30's strategy, as the status spells it.
const ROLLING: &str = "rollingUpdate";

/// What is known of a group beside its pods.
#[derive(Clone, Copy, Debug, Default)]
pub struct Circumstances<'a> {
    /// Faults of the stored group: with any, no new batch is released.
    pub faults: &'a [Violation],
    /// Nothing moved for longer than the progress deadline.
    pub stalled: bool,
    /// Pods whose release was refused, and is tried again after a pause.
    pub refused: &'a [PodRef],
    /// Open rollouts.
    pub rollouts: Option<&'a Rollouts>,
    /// Why pods do not appear, as far as that was found out.
    pub found: &'a [Found],
    /// What has waited long enough for its pods: it goes without those that are missing.
    pub overdue: &'a [Whole],
    /// Pods beyond the desired replicas that a rollout made.
    pub surge: &'a [PodRef],
}

/// Decides for one group.
pub fn decide(group: &Group, view: &GroupView, circumstances: Circumstances<'_>) -> Decision {
    let targets = targets(group, &view.roles);
    let released = released_counts(view, &targets, circumstances);
    let (mut release, mut held) = (Vec::new(), Vec::new());
    let mut incomplete = Incomplete::new(group, view, circumstances.overdue);
    let sorted = mismatch::sort(group, view);
    for pod in &sorted.right {
        match fate(pod, view, &released) {
            Some(_) if incomplete.holds(pod) => {}
            Some(at_once) => release.push(Release { pod: (*pod).clone(), at_once }),
            None => held.push((*pod).clone()),
        }
    }
    let surplus = surge::surplus(view, &held, &released);
    let goes = |pod: &HeldPod| circumstances.surge.contains(&pod.pod) && surge::is_in(&surplus, pod);
    let (in_surge, held): (Vec<_>, Vec<_>) = held.into_iter().partition(goes);
    release.extend(in_surge.into_iter().map(|pod| Release { pod, at_once: true }));
    let mut held = holds::explain(group, view, &targets, &held, circumstances.faults);
    held.extend(sorted.explain(group));
    held.extend(incomplete.explain());
    let absent = absence::absences(group, view, &released);
    let found: Vec<_> =
        circumstances.found.iter().filter(|found| absence::of(&absent, found).is_some()).cloned().collect();
    absence::tell(group, &absent, &found, &mut held);
    held.extend(holds::refused(&release, circumstances.refused));
    let moves_on = release.iter().any(|release| !release.at_once)
        || released.iter().any(|(role, count)| view.roles.get(role).is_some_and(|role| *count > role.released()));
    let rollout = rollouts(circumstances, moves_on);
    held.extend(holds::rollouts(&rollout, circumstances.rollouts));
    let incomplete = incomplete.into_wholes();
    let mis_stamped = sorted.wrong.iter().map(|pod| pod.pod.clone()).collect();
    let mut decision = Decision {
        targets,
        released,
        release,
        mis_stamped,
        held,
        absent,
        found,
        rollout,
        incomplete,
        surplus,
        status: GroupStatus::default(),
    };
    decision.status = status(group, view, &decision, circumstances);
    decision
}

/// How far the roles may go. A pass that releases moves no partition, nor does one that looks at a faulty group.
fn rollouts(circumstances: Circumstances<'_>, releases: bool) -> RolloutPlan {
    let Some(rollouts) = circumstances.rollouts else { return RolloutPlan::default() };
    let mut plan = plan_rollout(&rollouts.bounds, &rollouts.roles);
    if releases || !circumstances.faults.is_empty() {
        for (name, decided) in &mut plan {
            decided.partition = rollouts.roles.get(name).map_or(decided.partition, |role| role.partition);
        }
    }
    plan
}

/// `Some(at once)` for a pod that may go, `None` for one that stays.
fn fate(pod: &HeldPod, view: &GroupView, released: &BTreeMap<String, u32>) -> Option<bool> {
    let (Some(role), Some(released)) = (view.roles.get(&pod.role), released.get(&pod.role)) else {
        // Nothing batches it: a role without coordination, or one that the group does not have.
        return Some(true);
    };
    (pod.ordinal < *released).then_some(pod.ordinal < role.committed.unwrap_or(0))
}

/// max(target, released count), never above desired. A group that breaks a rule keeps what it has.
fn released_counts(view: &GroupView, targets: &Targets, circumstances: Circumstances<'_>) -> BTreeMap<String, u32> {
    let count = |role: &str, target: u32| {
        let view = view.roles.get(role)?;
        let before = view.released();
        Some(if circumstances.faults.is_empty() { before.max(target).min(view.desired) } else { before })
    };
    targets.roles.iter().filter_map(|(role, target)| Some((role.clone(), count(role, *target)?))).collect()
}

fn status(group: &Group, view: &GroupView, decision: &Decision, circumstances: Circumstances<'_>) -> GroupStatus {
    let held = &decision.held;
    let before = &group.status;
    let segments = group.batched().next().map(|_| segments::count(group, &view.roles));
    let progress = progress(view, decision, circumstances);
    let in_rollout = decision.rollout.values().any(|role| matches!(role.state, State::Progressing | State::Waiting));
    let conditions = conditions::conditions(before, &view.roles, (segments, in_rollout), &progress);
    let ready = view.roles.values().map(RoleView::ready_pods).sum::<u32>();
    let desired = view.roles.values().map(RoleView::desired_pods).sum::<u32>();
    let mut status = GroupStatus {
        observed_generation: group.carrier.generation,
        conditions,
        coordination_state: coordination_states(
            group,
            view,
            (&decision.targets, &decision.rollout),
            &decision.released,
        ),
        first_ready_time: before.first_ready_time.clone(),
        last_ready_replicas: before.last_ready_replicas.clone(),
        summary: Some(Summary {
            segments: segments.map(|s| format!("{}/{}", s.ready, s.total)).unwrap_or_default(),
            ready: format!("{ready}/{desired}"),
            held: held.iter().map(|held| held.pods).sum(),
            reason: held.iter().map(|held| held.reason).min().map(|reason| reason.to_string()).unwrap_or_default(),
        }),
        other: before.other.clone(),
    };
    if conditions::is_ready(&view.roles) {
        status.last_ready_replicas = view.roles.iter().map(|(role, view)| (role.clone(), view.desired)).collect();
    }
    status
}

fn progress(view: &GroupView, decision: &Decision, circumstances: Circumstances<'_>) -> Progress {
    let (held, rollout) = (&decision.held, &decision.rollout);
    if let Some(fault) = circumstances.faults.first() {
        return Progress::Invalid(format!("{}: {fault}", fault.rule));
    }
    let mut open = rollout.iter().filter(|(_, role)| !matches!(role.state, State::Paused | State::Complete));
    if held.is_empty() && open.clone().next().is_none() && conditions::is_ready(&view.roles) {
        return Progress::Complete;
    }
    let lacks = decision.found_texts().map(|(_, text)| text).collect::<Vec<_>>().join("; ");
    if circumstances.stalled {
        let stalled = open.find_map(|(name, role)| Some((name, role.waits.as_ref()?)));
        if let Some(((name, wait), rollouts)) = stalled.zip(circumstances.rollouts) {
            return Progress::DeadlineExceeded(waits_for(name, wait, &rollouts.roles));
        }
        let waits = held.iter().min_by_key(|held| held.reason).map(|held| held.message.clone());
        let waits = waits.or_else(|| Some(lacks).filter(|text| !text.is_empty()));
        return Progress::DeadlineExceeded(waits.unwrap_or_else(|| "replicas are missing or not ready".to_owned()));
    }
    Progress::Moving(lacks)
}

fn coordination_states(
    group: &Group,
    view: &GroupView,
    (targets, rollout): (&Targets, &RolloutPlan),
    released: &BTreeMap<String, u32>,
) -> Vec<CoordinationState> {
    let by_index: BTreeMap<_, _> = targets.coordinations.iter().map(|target| (target.index, target)).collect();
    let state = |index: usize, role: &str| {
        let at_desired =
            released.get(role).zip(view.roles.get(role)).is_some_and(|(count, view)| *count >= view.desired);
        if at_desired {
            State::Complete
        } else {
            by_index.get(&index).map_or(State::Progressing, |target| target.state)
        }
    };
    let batched = |coordination: &Coordination, role: &str| {
        let batching = coordination.batching().filter(|batching| batching.sizes.contains_key(role))?;
        Some(RoleProgress {
            strategy: batching.kind.as_str().to_owned(),
            state: state(coordination.index, role).as_str().to_owned(),
            released: Some(*released.get(role)?),
        })
    };
    // A role that is batched and rolled by one coordination says where its rollout stands while there is one.
    let progress = |coordination: &Coordination, role: &str| {
        let batched = batched(coordination, role);
        let rolled = rollout.get(role).map(|role| role.state).filter(|_| coordination.rolling_update.is_some());
        let known = || coordination.rolling_update.is_some() && group.role(role).is_some();
        let state = rolled.or_else(|| (batched.is_none() && known()).then_some(State::Complete));
        let released = batched.as_ref().and_then(|batched| batched.released);
        let rolling =
            |state: State| RoleProgress { strategy: ROLLING.to_owned(), state: state.as_str().to_owned(), released };
        Some((role.to_owned(), state.map(rolling).or(batched)?))
    };
    let entry = |coordination: &Coordination| CoordinationState {
        name: coordination.display_name(),
        progress: coordination.role_names().into_iter().filter_map(|role| progress(coordination, role)).collect(),
        last_update_time: None,
    };
    let ours =
        |coordination: &&Coordination| coordination.batching().is_some() || coordination.rolling_update.is_some();
    group.coordinations.iter().filter(ours).map(entry).collect()
}

#[cfg(test)]
#[path = "decide_tests.rs"]
mod tests;
