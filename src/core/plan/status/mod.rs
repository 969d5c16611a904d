//! Status of a group on its carrier: conditions, counts and committed numbers (KEP-32, RBG Readiness Model; KEP-30,
//! CoordinationState).

pub mod conditions;
pub(in crate::plan) mod segments;
pub mod transition_times;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::api::status::{Condition, CoordinationState, Draining, GroupStatus, RoleProgress, RolloutState, Summary};
use crate::model::wording::counted;
use crate::model::{Coordination, Fact, Group, HoldReason, ProgressState};
use crate::plan::decide::DecisionContext;
use crate::plan::decide::decision::Decision;
use crate::plan::decide::held::Held;
use crate::plan::decide::no_replica;
use crate::plan::decide::placed::Placed;
use crate::plan::decide::progression::Targets;
use crate::plan::elastic::{self, ElasticPlan};
use crate::plan::recovery::text::recovery_is_off;
use crate::plan::rollout::{RolePlan, Rollouts, Stage, Wait, stage_text, waits_for};
use crate::plan::status::conditions::Progress;
use crate::plan::view::{GroupView, PodFacts, ReplicaIs, RoleView};

/// The reason of a rollout that has not moved for longer than the progress deadline.
pub const STALLED: &str = "RolloutStalled";

/// The rule on the size of groups: the status of one that breaks it would cost all users of the API server.
const TOO_LARGE: &str = "group-bounds";

/// The strategy of KEP-30, as the status spells it.
const ROLLING: &str = "rollingUpdate";

/// Returns the status of the carrier after a decision, without times. It is empty if nothing is coordinated (any more).
pub fn status(
    group: &Group,
    view: &GroupView,
    rollouts: &Rollouts,
    decision: &Decision,
    context: DecisionContext<'_>,
) -> GroupStatus {
    let held = &decision.held;
    let before = &group.status;
    let context = DecisionContext { stalled: context.stalled && !turns(group, rollouts), ..context };
    if !group.is_claim() {
        let (observed_generation, other) = (before.observed_generation, before.other.clone());
        return GroupStatus { observed_generation, other, ..GroupStatus::default() };
    }
    let segments = group.batched().next().map(|_| segments::count(group, &view.roles));
    let progress = progress(group, view, rollouts, decision, context);
    let lacks = decision.lacking.iter().map(|lacks| lacks.reason).min();
    let standings = rollouts.standings(&decision.rollout);
    let mut conditions = conditions::conditions(before, &view.roles, (segments, &standings), lacks, &progress);
    conditions.extend(conditions::rollout_complete(&standings, &rollouts.unclaimed));
    conditions.extend(conditions::rollout_paused(group, &rollouts.stages, &decision.targets));
    conditions.extend(conditions::rolled_back(rollouts));
    conditions.extend(elastic_condition(group, decision));
    conditions.extend(conditions::exhausted(group, &decision.recovery));
    conditions.extend(conditions::paused(group, &decision.recovery));
    conditions.extend(conditions::room_unknown(before, &decision.placed.unjudged));
    let ready = view.roles.values().map(RoleView::ready_pods).fold(0, u32::saturating_add);
    let desired = view.roles.values().map(RoleView::desired_pods).fold(0, u32::saturating_add);
    let (reason, message) = why(rollouts, decision, context);
    let mut status = GroupStatus {
        observed_generation: group.carrier.generation,
        conditions,
        coordination_state: coordination_states(group, view, decision, rollouts),
        first_ready_time: before.first_ready_time.clone(),
        last_moved_time: before.last_moved_time.clone(),
        last_ready_replicas: before.last_ready_replicas.clone(),
        served: served(group, view),
        cohorts: rollouts.cohorts.clone(),
        observed_workloads: rollouts.observed.clone(),
        succeeded: view.succeeded.clone(),
        segments: segments_released(group, decision),
        selector: group.elastic.is_some().then(|| elastic::scale_pods::selector(group)),
        draining: draining(group, view, decision),
        recoveries: decision.recovery.entries.clone(),
        provisioning: decision.provision.entries.clone(),
        summary: Some(Summary {
            segments: segments.map(|s| format!("{}/{}", s.ready, s.total)).unwrap_or_default(),
            ready: format!("{ready}/{desired}"),
            held: held.iter().map(Held::count).fold(0, u32::saturating_add),
            reason,
            message,
        }),
        other: before.other.clone(),
    };
    if context.faults.iter().any(|fault| fault.rule == TOO_LARGE) {
        return of_too_large(before, status);
    }
    if conditions::is_ready(&view.roles) {
        status.last_ready_replicas = view.roles.iter().map(|(role, view)| (role.clone(), view.desired)).collect();
    }
    status
}

/// Returns the replicas of each role that have served: those that are added later have not.
fn served(group: &Group, view: &GroupView) -> BTreeMap<String, u32> {
    let served = |(name, role): (&String, &RoleView)| {
        let desired = if role.unknown { u32::MAX } else { role.desired };
        (name.clone(), role.served(group.status.replicas_served(name)).min(desired))
    };
    view.roles.iter().map(served).filter(|(_, served)| *served > 0).collect()
}

/// Returns the status of a group that is too large to be judged: what is committed stays, and only the fault is told.
fn of_too_large(before: &GroupStatus, status: GroupStatus) -> GroupStatus {
    let is_told = |condition: &&Condition| condition.r#type == conditions::PROGRESSING;
    let kept = before.conditions.iter().filter(|condition| !is_told(condition));
    GroupStatus {
        conditions: kept.chain(status.conditions.iter().filter(is_told)).cloned().collect(),
        observed_generation: status.observed_generation,
        summary: status.summary,
        ..before.clone()
    }
}

/// Reports whether a rollout is sent back now: it moves, and did not fail to.
fn turns(group: &Group, rollouts: &Rollouts) -> bool {
    let went_back = |stage: &&Stage| {
        let stored = group.status.coordination(&stage.name).and_then(|state| state.rollout.as_ref());
        stored.is_some_and(|stored| stored.rolled_back.is_some())
    };
    let mut back = rollouts.stages.iter().filter(|stage| stage.state.rolled_back.is_some());
    !back.all(|stage| went_back(&stage))
}

/// Returns the reason and the message why pods are held, else why an open rollout has stalled, went back or pauses; both empty if
/// none applies. A rollout that goes back has that reason also when nothing moves.
fn why(rollouts: &Rollouts, decision: &Decision, context: DecisionContext<'_>) -> (String, String) {
    if let Some(held) = decision.held.iter().min_by_key(|held| held.reason) {
        return (held.reason.to_string(), held.message.clone());
    }
    let is_open = |(_, role): &(&String, &RolePlan)| context.stalled && !role.state.rests();
    let stalled = decision.rollout.iter().filter(is_open);
    let waits = stalled.filter_map(|(name, role)| Some((name, role.waits.as_ref()?)));
    let (back, forth): (Vec<_>, Vec<_>) = waits.partition(|(name, _)| rollouts.returns(name));
    let text = |waits: &[(&String, &Wait)]| waits.first().map(|(name, wait)| waits_for(name, wait, rollouts));
    let told = text(&forth).map(|text| (STALLED.to_owned(), text));
    let stage = |reason: &str, is: fn(&Stage) -> bool| {
        let stage = rollouts.stages.iter().find(|stage| is(stage))?;
        Some((reason.to_owned(), stage_text(stage, &rollouts.roles)))
    };
    let back = || {
        let (reason, message) = stage(conditions::ROLLED_BACK, |stage| stage.state.rolled_back.is_some())?;
        Some((reason, text(&back).into_iter().fold(message, |message, wait| message + "; " + &wait)))
    };
    let pause = || stage(conditions::ROLLOUT_PAUSED, |stage| stage.pause.is_some());
    told.or_else(back).or_else(pause).unwrap_or_default()
}

/// Returns the number of whole released segments of an elastic group. It is kept while a workload is not known.
fn segments_released(group: &Group, decision: &Decision) -> Option<u32> {
    group.elastic.as_ref()?;
    decision.elastic.as_ref().map(|plan| plan.released).or(group.status.segments).or(Some(0))
}

/// Returns the scale-in to commit. It ends when it is done, or, if the group is no longer scaled, when no pod is marked any
/// longer; it is kept while a workload is not known.
fn draining(group: &Group, view: &GroupView, decision: &Decision) -> Option<Draining> {
    if let Some(plan) = &decision.elastic {
        return plan.draining;
    }
    let marked = || view.roles.values().any(|role| role.replicas.draining(..).next().is_some());
    group.status.draining.filter(|_| group.elastic.is_some() || marked())
}

/// Returns the condition on the wanted segments; it is kept while a workload is not known.
fn elastic_condition(group: &Group, decision: &Decision) -> Option<Condition> {
    let elastic = group.elastic.as_ref()?;
    if let Some((reason, message)) = elastic::ineffective(&elastic.standing) {
        return Some(conditions::elastic(false, reason, message));
    }
    let known = decision.elastic.as_ref().map(ElasticPlan::told);
    let kept = || group.status.condition(conditions::ELASTIC).cloned();
    known.map(|(reason, message)| conditions::elastic(true, reason, message)).or_else(kept)
}

/// Reports whether a status has a field that only rolegate writes. A `Ready` condition is no sign: operators give the same
/// reasons.
pub fn has_ours(status: &GroupStatus) -> bool {
    status.summary.is_some() || status.condition(conditions::CONFLICTED).is_some()
}

/// Returns the fields of rolegate that differ in the answer to a write: the definition of the carrier does not keep them, or
/// another client changes every write. Another write would not help.
pub fn dropped(written: &GroupStatus, answer: &GroupStatus) -> Vec<&'static str> {
    let fields = [
        ("observedGeneration", written.observed_generation == answer.observed_generation),
        ("conditions", written.conditions == answer.conditions),
        ("coordinationState", written.coordination_state == answer.coordination_state),
        ("firstReadyTime", written.first_ready_time == answer.first_ready_time),
        ("lastReadyReplicas", written.last_ready_replicas == answer.last_ready_replicas),
        ("served", written.served == answer.served),
        ("cohorts", written.cohorts == answer.cohorts),
        ("observedWorkloads", written.observed_workloads == answer.observed_workloads),
        ("succeeded", written.succeeded == answer.succeeded),
        ("segments", written.segments == answer.segments),
        ("selector", written.selector == answer.selector),
        ("draining", written.draining == answer.draining),
        ("recoveries", written.recoveries == answer.recoveries),
        ("provisioning", written.provisioning == answer.provisioning),
        ("summary", figures(written) == figures(answer)),
    ];
    fields.into_iter().filter(|(_, kept)| !kept).map(|(field, _)| field).collect()
}

/// Returns the summary without its message, which an older definition may not keep.
fn figures(status: &GroupStatus) -> Option<Summary> {
    Some(Summary { message: String::new(), ..status.summary.clone()? })
}

fn progress(
    group: &Group,
    view: &GroupView,
    rollouts: &Rollouts,
    decision: &Decision,
    context: DecisionContext<'_>,
) -> Progress {
    let (held, rollout) = (&decision.held, &decision.rollout);
    if let Some(fault) = context.faults.first() {
        return Progress::Invalid(format!("{}: {fault}", fault.rule));
    }
    let mut open = rollout.iter().filter(|(_, role)| !role.state.rests() && role.state != ProgressState::Complete);
    // Running pods count, whatever the templates of their workloads say.
    let nothing_waits = held.iter().all(|held| held.reason == HoldReason::WorkloadNotLabelled);
    if nothing_waits && open.clone().next().is_none() && conditions::is_ready(&view.roles) {
        let unclaimed = rollouts.unclaimed.iter();
        let unclaimed = unclaimed.map(|role| conditions::not_claimed(role));
        let off = decision.recovery.without_effect.iter().map(|name| recovery_is_off(name));
        let what = strangers(view).chain(apart(group, view)).chain(doubled(view));
        let unlabelled = held.iter().map(|held| held.message.clone());
        return Progress::Complete(what.chain(unlabelled).chain(unclaimed).chain(off).collect::<Vec<_>>().join("; "));
    }
    let failed = group.roles.iter().filter(|role| role.workload.is_overdue);
    let failed = failed.filter_map(|role| {
        let key = role.workload.key.as_ref()?;
        let waits = view.roles.get(&role.name)?.replicas.pods_in(..).held;
        let pods = counted(waits, "held pod");
        let text =
            format!("{key} says that its own progress deadline is over: it has {pods}, and goes on when they go");
        (waits > 0).then_some(text)
    });
    let stuck = held.iter().filter(|held| held.reason.is(Fact::EndsByPerson)).map(|held| held.message.clone());
    let lacks = decision
        .diagnosis_texts()
        .map(|(_, text)| text)
        .chain(strangers(view))
        .chain(apart(group, view))
        .chain(doubled(view))
        .chain(failed)
        .chain(stuck);
    let lacks = lacks.collect::<Vec<_>>().join("; ");
    if context.stalled {
        let stalled = open.find_map(|(name, role)| Some((name, role.waits.as_ref()?)));
        if let Some((name, wait)) = stalled {
            return Progress::DeadlineExceeded(waits_for(name, wait, rollouts));
        }
        let waits = held.iter().min_by_key(|held| held.reason).map(|held| held.message.clone());
        let waits = waits.or_else(|| Some(lacks).filter(|text| !text.is_empty()));
        return Progress::DeadlineExceeded(waits.unwrap_or_else(|| "replicas are missing or not ready".to_owned()));
    }
    Progress::Moving(lacks)
}

/// Returns texts on pods that name a role which the group does not have.
fn strangers(view: &GroupView) -> impl Iterator<Item = String> {
    view.strangers.iter().map(|(role, pods)| {
        let pods = if *pods == 1 { "1 pod names".to_owned() } else { format!("{pods} pods name") };
        format!("{pods} role {role:?}, which the group does not have")
    })
}

/// Returns a text on running pods that name a role and are no replica of it. Held ones have a reason of their own.
fn apart(group: &Group, view: &GroupView) -> impl Iterator<Item = String> {
    let running = view.apart.iter().filter(|pod| !pod.held);
    let text = |pod: &Arc<PodFacts>| format!("pod {:?} is not counted: {}", &*pod.pod.name, no_replica(group, pod));
    let first = running.clone().next().map(text);
    let more = running.count().saturating_sub(1);
    first
        .map(|first| if more == 0 { first } else { format!("{first}; {more} more are not counted either") })
        .into_iter()
}

/// Returns texts on roles where several workloads give the same number to their pods.
fn doubled(view: &GroupView) -> impl Iterator<Item = String> {
    view.roles.iter().filter_map(|(role, seen)| {
        let doubled = seen.replicas.count_in(.., ReplicaIs::Doubled);
        let replicas = counted(doubled, "replica");
        (doubled > 0).then(|| format!("several makers number their pods of role {role:?} alike ({replicas})"))
    })
}

fn coordination_states(
    group: &Group,
    view: &GroupView,
    decision: &Decision,
    rollouts: &Rollouts,
) -> Vec<CoordinationState> {
    let Decision { targets, rollout, released, placed, recovery, .. } = decision;
    let state = |index: usize, role: &str| {
        let at_desired =
            released.get(role).zip(view.roles.get(role)).is_some_and(|(count, view)| *count >= view.desired);
        // A pod that was made again may find no room.
        if at_desired && !decision.holds(index, role) {
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
    // The open rollout of a role hides its batches, if one coordination has both.
    let progress = |coordination: &Coordination, role: &str| {
        let batched = batched(coordination, role);
        let rolled = rollout.get(role).map(|role| role.state).filter(|_| coordination.rolling_update.is_some());
        let known = || coordination.rolling_update.is_some() && group.role(role).is_some();
        let at_rest =
            if rollouts.unclaimed.contains(role) { ProgressState::NotCoordinated } else { ProgressState::Complete };
        let state = rolled.or_else(|| (batched.is_none() && known()).then_some(at_rest));
        let released = batched.as_ref().and_then(|batched| batched.released);
        let rolling = |state: ProgressState| RoleProgress {
            strategy: ROLLING.to_owned(),
            state: state.as_str().to_owned(),
            released,
        };
        Some((role.to_owned(), state.map(rolling).or(batched)?))
    };
    let entry = |coordination: &Coordination| {
        let under_way = rollouts.stages.iter().find(|stage| stage.index == coordination.index);
        let complete = recovery.complete.get(&coordination.index).cloned().unwrap_or_default();
        CoordinationState {
            name: coordination.display_name(),
            progress: coordination.role_names().into_iter().filter_map(|role| progress(coordination, role)).collect(),
            domains: domains_of(placed, coordination.index),
            complete_batches: complete.batches,
            complete_replicas: complete.replicas,
            complete_sizes: complete.sizes,
            accepted: accepted(group, coordination, targets),
            rollout: under_way.map(|stage| stage.state.clone()),
            last_update_time: None,
        }
    };
    let ours =
        |coordination: &&Coordination| coordination.batching().is_some() || coordination.rolling_update.is_some();
    group.coordinations.iter().filter(ours).map(entry).collect()
}

/// Returns the number of accepted batches; it is kept where the replicas or the layer are not known.
fn accepted(group: &Group, coordination: &Coordination, targets: &Targets) -> Option<u32> {
    coordination.batching().filter(|batching| batching.asks_acceptance())?;
    let decided = targets.coordination(coordination.index).and_then(|target| target.acceptance.accepted);
    decided.or_else(|| group.status.coordination(&coordination.display_name())?.accepted)
}

/// Returns the domains of a coordination by batch; those that were lost are empty.
fn domains_of(placed: &Placed, coordination: usize) -> BTreeMap<String, String> {
    let domains = placed.domains.get(&coordination).into_iter().flatten();
    let displaced = placed.displaced.iter().filter(|(index, _)| *index == coordination);
    let displaced = displaced.map(|(_, batch)| (batch.to_string(), String::new()));
    domains.map(|(batch, domain)| (batch.to_string(), domain.clone())).chain(displaced).collect()
}

/// Reports whether the decided status must be committed: released counts, domains, cohorts, succeeded replicas, the scale-in,
/// recoveries, requests for nodes, complete or accepted batches or the states of rollouts differ from the stored status. They are committed before
/// pods are released, recreated, updated or deleted.
pub fn needs_commit(decided: &GroupStatus, stored: &GroupStatus) -> bool {
    committed_counts(decided) != committed_counts(stored)
        || domains(decided) != domains(stored)
        || decided.cohorts != stored.cohorts
        || decided.succeeded != stored.succeeded
        || decided.draining != stored.draining
        || decided.recoveries != stored.recoveries
        || decided.provisioning != stored.provisioning
        || complete(decided) != complete(stored)
        || accepted_batches(decided) != accepted_batches(stored)
        || steps(decided) != steps(stored)
}

fn accepted_batches(status: &GroupStatus) -> BTreeMap<&str, u32> {
    status.coordination_state.iter().filter_map(|state| Some((state.name.as_str(), state.accepted?))).collect()
}

fn steps(status: &GroupStatus) -> BTreeMap<&str, &RolloutState> {
    let rolled = status.coordination_state.iter();
    rolled.filter_map(|state| Some((state.name.as_str(), state.rollout.as_ref()?))).collect()
}

type Counts = BTreeMap<String, u32>;

fn complete(status: &GroupStatus) -> BTreeMap<&str, (&str, &Counts, &Counts)> {
    let marked = status.coordination_state.iter().filter(|state| !state.complete_batches.is_empty());
    let all = marked.map(|state| {
        (state.name.as_str(), (state.complete_batches.as_str(), &state.complete_replicas, &state.complete_sizes))
    });
    all.collect()
}

fn domains(status: &GroupStatus) -> BTreeMap<&str, &BTreeMap<String, String>> {
    let with_domains = status.coordination_state.iter().filter(|state| !state.domains.is_empty());
    with_domains.map(|state| (state.name.as_str(), &state.domains)).collect()
}

fn committed_counts(status: &GroupStatus) -> BTreeMap<(&str, &str), u32> {
    let entries = status.coordination_state.iter();
    let roles = entries.flat_map(|entry| entry.progress.iter().map(move |(role, progress)| (entry, role, progress)));
    roles
        .filter_map(|(entry, role, progress)| Some(((entry.name.as_str(), role.as_str()), progress.released?)))
        .collect()
}

#[cfg(test)]
#[path = "stalled_tests.rs"]
mod tests;
