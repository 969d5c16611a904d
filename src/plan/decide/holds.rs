//! Why pods are held, in one sentence for each coordination.

use crate::model::{Batching, Coordination, Group, HoldReason, ProgressState, Progression};
use crate::plan::decide::batches::waiting;
use crate::plan::decide::outcome::{Held, Release};
use crate::plan::decide::progression::{CoordinationTarget, Targets};
use crate::plan::rollout::{RolloutPlan, Rollouts, WaitReason, waits_for};
use crate::plan::view::{GroupView, HeldPod, PodRef, Replica};
use crate::rules::Violation;

/// One entry for each coordination that holds pods, and one for pods that no batch waits for.
pub fn explain(
    group: &Group,
    view: &GroupView,
    targets: &Targets,
    held: &[HeldPod],
    faults: &[Violation],
) -> Vec<Held> {
    let role = |pod: &HeldPod| view.roles.get(&pod.role);
    let (unknown, known): (Vec<_>, Vec<_>) = held.iter().partition(|pod| role(pod).is_none_or(|role| role.unknown));
    let (surplus, waiting): (Vec<_>, Vec<_>) =
        known.into_iter().partition(|pod| role(pod).is_none_or(|role| pod.ordinal >= role.desired));
    let mut all: Vec<_> = group
        .batched()
        .filter_map(|(coordination, batching)| {
            // A pod of two coordinations is counted once, under the first of them.
            let first = |pod: &&&HeldPod| {
                group.batchings_of(&pod.role).next().is_some_and(|(c, _)| c.index == coordination.index)
            };
            let pods: Vec<_> = waiting.iter().filter(first).copied().collect();
            let target = targets.coordinations.iter().find(|target| target.index == coordination.index)?;
            explain_one(group, view, (coordination, batching), (target, targets), &pods, faults)
        })
        .collect();
    all.extend(surplus_of(view, &surplus));
    all.extend(unknown_of(group, &unknown));
    all
}

fn explain_one(
    group: &Group,
    view: &GroupView,
    (coordination, batching): (&Coordination, &Batching),
    (target, targets): (&CoordinationTarget, &Targets),
    pods: &[&HeldPod],
    faults: &[Violation],
) -> Option<Held> {
    let batch = pods.iter().filter_map(|pod| Some(pod.ordinal / batching.size(&pod.role)?)).min()?;
    let word = batching.kind.word();
    let (reason, why) = if let Some(fault) = faults.first() {
        (HoldReason::InvalidCoordination, format!("{}: {fault}", fault.rule))
    } else if let Some(missing) = group.roles.iter().find(|role| is_unknown(view, batching, &role.name)) {
        (HoldReason::GroupMissing, absent(group, &missing.name))
    } else if let (ProgressState::Blocked, Some(blocker)) = (target.state, target.blocked_by) {
        let name = group.coordinations.iter().find(|c| c.index == blocker).map(Coordination::display_name);
        (HoldReason::BlockedByCoordination, format!("coordination {:?} waits", name.unwrap_or_default()))
    } else if let Some(why) = limited_by_another(group, targets, target, pods) {
        (HoldReason::BlockedByCoordination, why)
    } else {
        let earlier = format!("{word} {batch} has {}", counts(group, view, batching, batch));
        (waiting(batching.progression()), earlier)
    };
    let message = format!("{word} {} is held: {why}", batch + 1);
    Some(Held {
        coordination: Some(coordination.display_name()),
        batch: Some(batch),
        reason,
        message,
        waits_for_own: false,
        pods: u32::try_from(pods.len()).unwrap_or(u32::MAX),
    })
}

/// The coordination itself would let the next pod go; another one that shares its role is not that far.
fn limited_by_another(
    group: &Group,
    targets: &Targets,
    target: &CoordinationTarget,
    pods: &[&HeldPod],
) -> Option<String> {
    let next = pods.iter().min_by_key(|pod| pod.ordinal)?;
    target.roles.get(&next.role).filter(|own| **own > next.ordinal)?;
    let limits = |other: &&CoordinationTarget| other.roles.get(&next.role).is_some_and(|least| *least <= next.ordinal);
    let limit = targets.coordinations.iter().find(limits)?;
    let name = group.coordinations.iter().find(|c| c.index == limit.index).map(Coordination::display_name)?;
    Some(format!("coordination {name:?} lets {} go to {} only", next.role, limit.roles.get(&next.role)?))
}

/// `8/10 prefill and 5/5 decode ready` for the batch before the one that is held (shown from 1, so its number is the same).
fn counts(group: &Group, view: &GroupView, batching: &Batching, held_batch: u32) -> String {
    let (test, word): (fn(&Replica) -> bool, _) = match batching.progression() {
        Progression::Scheduled => (Replica::is_scheduled, "scheduled"),
        Progression::Ordered => (Replica::is_released, "released"),
        Progression::OrderedReady | Progression::Parallel => (Replica::is_ready, "ready"),
    };
    let Some(before) = held_batch.checked_sub(1) else { return "no predecessor".to_owned() };
    let roles = group.roles.iter().filter_map(|role| {
        let name = &role.name;
        let (view, size) = (view.roles.get(name)?, batching.size(name)?);
        let from = before.saturating_mul(size).min(view.desired);
        let to = from.saturating_add(size).min(view.desired);
        let passing = view.replicas.range(from..to).filter(|(_, replica)| test(replica)).count();
        (to > from).then(|| format!("{passing}/{} {name}", to - from))
    });
    format!("{} {word}", roles.collect::<Vec<_>>().join(" and "))
}

/// The coordination makes batches of the role, and nobody knows how many replicas it has.
fn is_unknown(view: &GroupView, batching: &Batching, role: &str) -> bool {
    batching.size(role).is_some() && view.roles.get(role).is_some_and(|role| role.unknown)
}

/// What is not there that would say how many replicas a role has.
fn absent(group: &Group, role: &str) -> String {
    match (group.role(role), &group.reference) {
        (Some(role), _) => role.workload.key.as_ref().map(|key| format!("{key} is not there")),
        (None, Some(reference)) if !reference.found => {
            Some(format!("RoleBasedGroup {:?} is not there", reference.name))
        }
        (None, _) => None,
    }
    .unwrap_or_else(|| "the group does not have it".to_owned())
}

/// Pods of roles whose desired replicas stand in an object that is not there.
fn unknown_of(group: &Group, unknown: &[&HeldPod]) -> Option<Held> {
    let first = unknown.first()?;
    let message = format!("role {:?} is held: {}", first.role, absent(group, &first.role));
    Some(Held {
        coordination: None,
        batch: None,
        reason: HoldReason::GroupMissing,
        message,
        waits_for_own: false,
        pods: u32::try_from(unknown.len()).unwrap_or(u32::MAX),
    })
}

fn surplus_of(view: &GroupView, surplus: &[&HeldPod]) -> Option<Held> {
    let first = surplus.first()?;
    let desired = view.roles.get(&first.role).map_or(0, |role| role.desired);
    Some(Held {
        coordination: None,
        batch: None,
        reason: HoldReason::BeyondDesired,
        message: format!(
            "replica {} of role {:?} is held: the group declares {desired} replicas",
            first.ordinal, first.role
        ),
        waits_for_own: false,
        pods: u32::try_from(surplus.len()).unwrap_or(u32::MAX),
    })
}

/// Pods that may go and were refused.
pub fn refused(release: &[Release], refused: &[PodRef]) -> Option<Held> {
    let mut pods = release.iter().filter(|release| refused.contains(&release.pod.pod));
    let first = pods.next()?;
    Some(Held {
        coordination: None,
        batch: None,
        reason: HoldReason::PatchFailed,
        message: format!("pod {:?} is held: its release was refused and is tried again", &*first.pod.pod.name),
        waits_for_own: false,
        pods: u32::try_from(pods.count() + 1).unwrap_or(u32::MAX),
    })
}

/// Rollouts whose workloads wait for held replicas.
pub fn rollouts(plan: &RolloutPlan, rollouts: &Rollouts) -> Vec<Held> {
    let behind = plan.iter().filter_map(|(name, role)| {
        let wait = role.waits.as_ref().filter(|wait| wait.reason == WaitReason::HeldBatch)?;
        Some(Held {
            coordination: None,
            batch: None,
            reason: HoldReason::RolloutBehindHeldBatch,
            message: waits_for(name, wait, &rollouts.roles),
            pods: 0,
            waits_for_own: false,
        })
    });
    behind.collect()
}
