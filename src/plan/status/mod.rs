//! What the carrier of a group says of it: conditions, counts and committed numbers (KEP-32, RBG Readiness Model; KEP-30,
//! CoordinationState).

pub mod conditions;
mod segments;
pub mod transition_times;

use std::collections::BTreeMap;

use crate::api::status::{CoordinationState, GroupStatus, RoleProgress, Summary};
use crate::model::{Coordination, Group, ProgressState};
use crate::plan::decide::DecisionContext;
use crate::plan::decide::decision::Decision;
use crate::plan::decide::held::Held;
use crate::plan::decide::progression::Targets;
use crate::plan::rollout::{RolloutPlan, Rollouts, waits_for};
use crate::plan::status::conditions::Progress;
use crate::plan::view::{GroupView, RoleView};

/// KEP-30's strategy, as the status spells it.
const ROLLING: &str = "rollingUpdate";

/// The status of the carrier after a decision, without times.
pub fn status(
    group: &Group,
    view: &GroupView,
    rollouts: &Rollouts,
    decision: &Decision,
    context: DecisionContext<'_>,
) -> GroupStatus {
    let held = &decision.held;
    let before = &group.status;
    let segments = group.batched().next().map(|_| segments::count(group, &view.roles));
    let progress = progress(view, rollouts, decision, context);
    let in_rollout =
        decision.rollout.values().any(|role| matches!(role.state, ProgressState::Progressing | ProgressState::Waiting));
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
            held: held.iter().map(Held::count).sum(),
            reason: held.iter().map(|held| held.reason).min().map(|reason| reason.to_string()).unwrap_or_default(),
        }),
        other: before.other.clone(),
    };
    if conditions::is_ready(&view.roles) {
        status.last_ready_replicas = view.roles.iter().map(|(role, view)| (role.clone(), view.desired)).collect();
    }
    status
}

fn progress(view: &GroupView, rollouts: &Rollouts, decision: &Decision, context: DecisionContext<'_>) -> Progress {
    let (held, rollout) = (&decision.held, &decision.rollout);
    if let Some(fault) = context.faults.first() {
        return Progress::Invalid(format!("{}: {fault}", fault.rule));
    }
    let mut open =
        rollout.iter().filter(|(_, role)| !matches!(role.state, ProgressState::Paused | ProgressState::Complete));
    if held.is_empty() && open.clone().next().is_none() && conditions::is_ready(&view.roles) {
        return Progress::Complete;
    }
    let lacks = decision.diagnosis_texts().map(|(_, text)| text).collect::<Vec<_>>().join("; ");
    if context.stalled {
        let stalled = open.find_map(|(name, role)| Some((name, role.waits.as_ref()?)));
        if let Some((name, wait)) = stalled {
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
    let state = |index: usize, role: &str| {
        let at_desired =
            released.get(role).zip(view.roles.get(role)).is_some_and(|(count, view)| *count >= view.desired);
        if at_desired {
            ProgressState::Complete
        } else {
            targets.coordination(index).map_or(ProgressState::Progressing, |target| target.state)
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
        let state = rolled.or_else(|| (batched.is_none() && known()).then_some(ProgressState::Complete));
        let released = batched.as_ref().and_then(|batched| batched.released);
        let rolling = |state: ProgressState| RoleProgress {
            strategy: ROLLING.to_owned(),
            state: state.as_str().to_owned(),
            released,
        };
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

/// True when the released counts differ from what the stored status keeps: they are committed before anything is released.
pub fn needs_commit(decided: &GroupStatus, stored: &GroupStatus) -> bool {
    committed_counts(decided) != committed_counts(stored)
}

fn committed_counts(status: &GroupStatus) -> BTreeMap<(&str, &str), u32> {
    let entries = status.coordination_state.iter();
    let roles = entries.flat_map(|entry| entry.progress.iter().map(move |(role, progress)| (entry, role, progress)));
    roles
        .filter_map(|(entry, role, progress)| Some(((entry.name.as_str(), role.as_str()), progress.released?)))
        .collect()
}
