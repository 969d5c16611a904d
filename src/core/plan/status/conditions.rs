//! Conditions of a group, with the reasons of KEP-32.

use std::collections::{BTreeMap, BTreeSet};

use crate::api::status::{Condition, GroupStatus, RecoveryState};
use crate::model::{Group, GroupKey, HoldReason};
use crate::plan::decide::placed::Unjudged;
use crate::plan::decide::progression::{CoordinationTarget, Targets};
use crate::plan::recovery::entry::{Phase, loss_text};
use crate::plan::recovery::text::{is_left, many_text, pause};
use crate::plan::recovery::{PAUSED, RESUMED, RecoveryPlan};
use crate::plan::rollout::standing::{self, IN_PROGRESS, ROLLED, Standing, Standings};
use crate::plan::rollout::{PauseEnd, Rollouts, Stage, is_behind_held, stage_text};
use crate::plan::status::segments::Segments;
use crate::plan::view::{ReplicaIs, RoleView};

/// `Ready`: every desired replica of every role is ready, and none that is to be updated is of an old revision.
pub const READY: &str = "Ready";
/// The reasons that rolegate gives for `Ready`. With another reason, another controller wrote the condition and keeps it.
pub const READY_REASONS: &[&str] = &[
    "AllReplicasReady",
    ROLLOUT_PAUSED,
    ROLLED_BACK,
    "ScalingInProgress",
    IN_PROGRESS,
    "ReplicasNotReady",
    "PartialDeployment",
    "DeploymentInProgress",
    "WorkloadMissing",
    "WorkloadNotLabelled",
];
/// `MinimumSegmentsAvailable`: at least one complete segment is ready.
pub const MINIMUM: &str = "MinimumSegmentsAvailable";
/// `Progressing`: the group moves, or has no need to.
pub const PROGRESSING: &str = "Progressing";

/// The reason of `Progressing` when nothing moved for longer than the progress deadline.
pub const DEADLINE_EXCEEDED: &str = "ProgressDeadlineExceeded";

/// The reason while replicas stay old as asked for; as a condition, `RolloutPaused`: a rollout is at a pause of its steps, or
/// segments at the pause after their canary.
pub const ROLLOUT_PAUSED: &str = "RolloutPaused";

/// `RolledBack`: a rollout went back to the revision that it came from, or is on its way; False if it failed and could not.
pub const ROLLED_BACK: &str = "RolledBack";

/// `Conflicted`: another object, which was first, coordinates the same group.
pub const CONFLICTED: &str = "Conflicted";
/// `Elastic`: the wanted segments are in effect.
pub const ELASTIC: &str = "Elastic";
/// `RecoveryExhausted`: a batch was recreated as often as allowed, and has lost a replica again.
pub const EXHAUSTED: &str = "RecoveryExhausted";
/// `RoomUnknown`: batches that go as a whole went without a look at all that decides where they fit.
pub const ROOM_UNKNOWN: &str = "RoomUnknown";
/// The conditions that rolegate writes and removes.
pub const OURS: &[&str] = &[
    READY,
    MINIMUM,
    PROGRESSING,
    ROLLED,
    ROLLOUT_PAUSED,
    ROLLED_BACK,
    CONFLICTED,
    ELASTIC,
    EXHAUSTED,
    PAUSED,
    ROOM_UNKNOWN,
];

/// The conditions that are True while recoveries wait for a person.
pub const RECOVERIES_WAIT: &[&str] = &[PAUSED, EXHAUSTED];

/// Returns the condition on batches that went without a look, if there are any. While nodes are not watched, it stays as it was.
pub fn room_unknown(before: &GroupStatus, unjudged: &Unjudged) -> Option<Condition> {
    match unjudged {
        Unjudged::Nothing => None,
        Unjudged::NotKnown => before.condition(ROOM_UNKNOWN).cloned(),
        Unjudged::Told(what) => Some(condition(ROOM_UNKNOWN, true, "NotJudged", what.clone())),
    }
}

/// Returns the condition on batches that are not recreated any more, if there are any.
pub fn exhausted(group: &Group, recovery: &RecoveryPlan) -> Option<Condition> {
    let of = recovery.entries.iter().filter(|entry| Phase::of(entry) == Some(Phase::Exhausted));
    let text = |entry: &RecoveryState| {
        let name = group.batch_name(&entry.coordination, entry.batch);
        format!("{name} of {:?} {}: {}", entry.coordination, is_left(entry), loss_text(entry))
    };
    let texts: Vec<_> = of.map(text).collect();
    (!texts.is_empty()).then(|| condition(EXHAUSTED, true, "LimitReached", texts.join("; ")))
}

/// Returns the condition on paused recovery, or on recovery that a person resumed.
pub fn paused(group: &Group, recovery: &RecoveryPlan) -> Option<Condition> {
    let brake = &recovery.brake;
    if let Some((reason, text)) = pause(group, recovery) {
        return Some(condition(PAUSED, true, reason, text));
    }
    let text = || format!("{}; they are made anew, as a person has said", many_text(brake));
    (brake.resumed && brake.all().has_one_cause()).then(|| condition(PAUSED, false, RESUMED, text()))
}

/// Returns the status of an object that claims a group which another object controls.
pub fn conflicted(group: &Group, controls: &Group) -> GroupStatus {
    let carrier = &controls.carrier;
    let message = format!("{} {:?} coordinates this group already", carrier.kind.kind, carrier.name);
    GroupStatus {
        observed_generation: group.carrier.generation,
        conditions: vec![condition(CONFLICTED, true, "ClaimedByAnother", message)],
        ..group.status.clone()
    }
}

/// The progress of the group, for the `Progressing` condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Nothing is left to do; the text names pods and roles that are not coordinated all the same.
    Complete(String),
    /// The group moves; the text says why pods do not appear, if that is known.
    Moving(String),
    /// Nothing moved for longer than the progress deadline; the text names the wait.
    DeadlineExceeded(String),
    /// The stored group breaks a rule, which the text names.
    Invalid(String),
}

/// Returns the conditions of a group, without times. `status` is the previous status; `lacks` is the reason why roles lack
/// their workloads.
pub fn conditions(
    status: &GroupStatus,
    roles: &BTreeMap<String, RoleView>,
    (segments, standings): (Option<Segments>, &Standings),
    lacks: Option<HoldReason>,
    progress: &Progress,
) -> Vec<Condition> {
    let mut all = vec![ready(status, roles, (segments, standings), lacks)];
    // The size of a whole segment is unknown while a role is.
    let is_whole = !roles.values().any(|role| role.unknown && role.desired == 0);
    all.extend(segments.map(|segments| minimum(status, segments, is_whole, lacks)));
    all.push(progressing(progress));
    all
}

/// Reports whether the status has exceeded the progress deadline.
pub fn says_stalled(status: &GroupStatus) -> bool {
    status.condition(PROGRESSING).is_some_and(|condition| condition.reason == DEADLINE_EXCEEDED)
}

/// Reports whether the status says that a role cannot be rolled while replicas on top are held. Only the loop knows that nothing
/// deletes its old pods.
pub fn says_behind_held(status: &GroupStatus, name: &str) -> bool {
    let progress = status.condition(PROGRESSING).map(|condition| &condition.message);
    let summary = status.summary.as_ref().map(|summary| &summary.message);
    let mut told = progress.into_iter().chain(summary).flat_map(|text| text.split("; "));
    told.any(|text| text == is_behind_held(name))
}

/// Reports whether every desired pod of every role is ready.
pub fn is_ready(roles: &BTreeMap<String, RoleView>) -> bool {
    roles.values().all(|view| !view.unknown && view.all_in(0..view.desired, ReplicaIs::Ready))
}

fn ready(
    status: &GroupStatus,
    roles: &BTreeMap<String, RoleView>,
    (segments, standings): (Option<Segments>, &Standings),
    lacks: Option<HoldReason>,
) -> Condition {
    let ready = roles.values().map(RoleView::ready_pods).fold(0, u32::saturating_add);
    let desired = roles.values().map(RoleView::desired_pods).fold(0, u32::saturating_add);
    let message = format!("{ready}/{desired} pods ready");
    let in_rollout = standing::of_all(standings);
    let message = if in_rollout == Standing::Complete { message } else { format!("{message}; {}", updated(standings)) };
    if is_ready(roles) {
        return match in_rollout {
            Standing::Complete => condition(READY, true, "AllReplicasReady", message),
            Standing::Paused => condition(READY, true, ROLLOUT_PAUSED, message),
            Standing::RolledBack => condition(READY, true, ROLLED_BACK, message),
            Standing::InProgress => condition(READY, false, IN_PROGRESS, message),
        };
    }
    if let Some(lacks) = lacks {
        return condition(READY, false, lacks.as_str(), message);
    }
    let grown = roles
        .iter()
        .any(|(name, view)| status.last_ready_replicas.get(name).is_none_or(|replicas| view.desired > *replicas));
    let reason = match (status.first_ready_time.is_some(), grown) {
        (true, true) => "ScalingInProgress",
        _ if in_rollout == Standing::InProgress => IN_PROGRESS,
        (true, false) => "ReplicasNotReady",
        (false, _) if segments.is_some_and(|segments| segments.ready > 0) => "PartialDeployment",
        (false, _) => "DeploymentInProgress",
    };
    condition(READY, false, reason, message)
}

/// Returns the condition on the rollouts of the roles that are rolled in lockstep. It is `Unknown` at best while no workload
/// claims one of the roles: its updates are not observed.
pub fn rollout_complete(standings: &Standings, unclaimed: &BTreeSet<String>) -> Option<Condition> {
    if standings.is_empty() && unclaimed.is_empty() {
        return None;
    }
    let (known, reason) = match standing::of_all(standings) {
        Standing::InProgress => (Some(false), IN_PROGRESS),
        Standing::Paused => (Some(false), ROLLOUT_PAUSED),
        Standing::RolledBack => (Some(false), ROLLED_BACK),
        Standing::Complete if unclaimed.is_empty() => (Some(true), "AllReplicasUpdated"),
        Standing::Complete => (None, "NotCoordinated"),
    };
    let told = Some(updated(standings)).filter(|_| !standings.is_empty());
    let told: Vec<_> = told.into_iter().chain(unclaimed.iter().map(|role| not_claimed(role))).collect();
    let condition = condition(ROLLED, known == Some(true), reason, told.join("; "));
    Some(if known.is_some() { condition } else { Condition { status: "Unknown".to_owned(), ..condition } })
}

/// Returns the condition on pauses between steps and after canaries, if there is one. A reason that ends by a person goes first.
pub fn rollout_paused(group: &Group, stages: &[Stage], targets: &Targets) -> Option<Condition> {
    let canary = |(target, end): (&CoordinationTarget, PauseEnd)| {
        let name = group.coordination(target.index)?.display_name();
        Some((end, format!("{name:?} pauses after its canary {end}")))
    };
    let step = |stage: &Stage| {
        Some((stage.pause?, format!("{:?} pauses after {} {}", stage.name, stage.number, stage.pause?)))
    };
    let (ends, texts): (Vec<_>, Vec<_>) =
        stages.iter().filter_map(step).chain(targets.pauses().filter_map(canary)).unzip();
    let reason = |end: PauseEnd| if end == PauseEnd::Resume { "UntilResumed" } else { "ForDuration" };
    let reason = ends.into_iter().map(reason).max()?;
    let GroupKey { namespace, name } = &group.key;
    let within = if namespace.is_empty() { String::new() } else { format!(" -n {namespace}") };
    let message = format!("{}; `rolegate resume {name}{within}` resumes it", texts.join("; "));
    Some(condition(ROLLOUT_PAUSED, true, reason, message))
}

/// Returns the condition on rollouts that went back, or failed and could not. Those that went back go first.
pub fn rolled_back(rollouts: &Rollouts) -> Option<Condition> {
    let text = |stage: &Stage| stage_text(stage, &rollouts.roles);
    let back =
        rollouts.stages.iter().filter_map(|stage| Some((&stage.state.rolled_back.as_ref()?.reason, text(stage))));
    let (reasons, texts): (Vec<_>, Vec<_>) = back.unzip();
    if let Some(reason) = reasons.first() {
        let next = "the next edit of a template begins anew, with all roles that are not at their templates";
        return Some(condition(ROLLED_BACK, true, reason, format!("{}; {next}", texts.join("; "))));
    }
    let stay: Vec<_> = rollouts.stages.iter().filter(|stage| stage.stays.is_some()).map(text).collect();
    (!stay.is_empty()).then(|| condition(ROLLED_BACK, false, "NoWayBack", stay.join("; ")))
}

/// Returns the text `role "router" is not rolled in lockstep: no workload claims it`.
pub fn not_claimed(role: &str) -> String {
    format!("role {role:?} is not rolled in lockstep: no workload claims it")
}

/// Returns a text such as `updated: decode 1/4, prefill 2/8`.
fn updated(standings: &Standings) -> String {
    let role = |(name, role): (&String, &standing::RoleStanding)| format!("{name} {}/{}", role.updated, role.desired);
    format!("updated: {}", standings.iter().map(role).collect::<Vec<_>>().join(", "))
}

fn minimum(status: &GroupStatus, segments: Segments, is_whole: bool, lacks: Option<HoldReason>) -> Condition {
    let Segments { total, ready, ready_pods, total_pods } = segments;
    let message = format!("{ready}/{total} segments ready ({ready_pods}/{total_pods} pods)");
    let available = is_whole && ready > 0;
    let reason = if !available {
        lacks.map_or("NoSegmentsReady", HoldReason::as_str)
    } else if ready == total {
        "AllSegmentsReady"
    } else if status.first_ready_time.is_some() {
        "MinimumMet"
    } else {
        "MinimumSegmentReady"
    };
    condition(MINIMUM, available, reason, message)
}

fn progressing(progress: &Progress) -> Condition {
    match progress {
        Progress::Complete(text) => condition(PROGRESSING, true, "Complete", text.clone()),
        Progress::Moving(text) => condition(PROGRESSING, true, "Progressing", text.clone()),
        Progress::DeadlineExceeded(text) => condition(PROGRESSING, false, DEADLINE_EXCEEDED, text.clone()),
        Progress::Invalid(text) => condition(PROGRESSING, false, "InvalidCoordination", text.clone()),
    }
}

/// Returns the condition on the wanted segments.
pub fn elastic(status: bool, reason: &str, message: String) -> Condition {
    condition(ELASTIC, status, reason, message)
}

fn condition(kind: &str, status: bool, reason: &str, message: String) -> Condition {
    Condition {
        r#type: kind.to_owned(),
        status: if status { "True" } else { "False" }.to_owned(),
        reason: reason.to_owned(),
        message,
        ..Condition::default()
    }
}
