//! One decision for one group: which batches may run (the released counts, to be written into the group's status first),
//! from which pods the gate is taken now, and why each of the other pods keeps it.
//!
//! `progression` says how far each role may go, `stamp_mismatch`, `all_or_nothing` and `surplus` which pods are excepted,
//! `holds` and `missing_pods` why pods are held; `batches`, `waits` and `pod_groups` are read off a decision.

pub mod all_or_nothing;
pub mod batches;
pub mod decision;
pub mod held;
mod holds;
pub mod missing_pods;
pub mod pod_groups;
pub mod progression;
mod stamp_mismatch;
pub mod surplus;
pub mod waits;

use std::collections::BTreeMap;

use self::all_or_nothing::{AllOrNothing, Incomplete};
use self::decision::{Decision, Release};
use self::held::Held;
use self::holds::{Kept, Turns};
use self::missing_pods::Diagnosis;
use self::pod_groups::MissingPodGroup;
use self::progression::{Targets, targets};
use crate::model::Group;
use crate::plan::rollout::{RolloutPlan, Rollouts, plan_rollout};
use crate::plan::view::{GroupView, HeldPod, PodRef};
use crate::rules::Violation;

/// What is known of a group beside its pods.
#[derive(Clone, Copy, Debug, Default)]
pub struct DecisionContext<'a> {
    /// Faults of the stored group: with any, no new batch is released.
    pub faults: &'a [Violation],
    /// Coordinations whose layer is not there, by their place in the group's list: they go no further.
    pub missing_layers: &'a [usize],
    /// Nothing moved for longer than the progress deadline.
    pub stalled: bool,
    /// Pods whose release was refused, and is tried again after a pause.
    pub refused: &'a [PodRef],
    /// PodGroups that could not be made, and are tried again after a pause.
    pub missing_pod_groups: &'a [MissingPodGroup],
    /// Why pods do not appear, as far as that was found out.
    pub diagnoses: &'a [Diagnosis],
    /// What has waited long enough for its pods: it goes without those that are missing.
    pub overdue: &'a [AllOrNothing],
    /// Pods beyond the desired replicas that a rollout made.
    pub surge: &'a [PodRef],
    /// Pods go whose role their group does not have.
    pub frees_unknown_roles: bool,
}

/// Decides for one group.
pub(in crate::plan) fn decide(
    group: &Group,
    view: &GroupView,
    rollouts: &Rollouts,
    context: DecisionContext<'_>,
) -> Decision {
    let targets = targets(group, &view.roles, context.missing_layers);
    let released = released_counts(view, &targets, context);
    let (mut release, mut kept) = (Vec::new(), Vec::new());
    let mut incomplete = Incomplete::new(group, view, context.overdue);
    let sorted = stamp_mismatch::sort(group, view, context.missing_layers);
    for pod in &sorted.right {
        match release_of(pod, view, &released) {
            Some(_)
                if !context.frees_unknown_roles
                    && pod.identity.named_by_us
                    && view.strangers.contains_key(pod.role()) =>
            {
                kept.push(*pod);
            }
            Some(_) if incomplete.holds(pod) => {}
            Some(goes) => release.push(goes),
            None => kept.push(*pod),
        }
    }
    let surplus = surplus::surplus(view, &kept, &released);
    let goes = |pod: &&HeldPod| context.surge.contains(&pod.pod) && surplus::is_in(&surplus, pod);
    let (in_surge, kept): (Vec<_>, Vec<_>) = kept.into_iter().partition(goes);
    release.extend(in_surge.into_iter().map(|pod| Release { pod: pod.clone(), at_once: true }));
    let kept = Kept::of(view, &kept);
    let mut turns = Turns { group, view, targets: &targets, released: &released, context }.explain(&kept);
    let mut held: Vec<_> = kept.explain_others(group, view).collect();
    held.extend(sorted.explain(group));
    held.extend(incomplete.explain());
    let missing_pods = missing_pods::missing_pods(group, view, &released);
    let is_open = |diagnosis: &&Diagnosis| missing_pods::of(&missing_pods, diagnosis).is_some();
    let diagnoses: Vec<_> = context.diagnoses.iter().filter(is_open).cloned().collect();
    missing_pods::explain(group, &missing_pods, &diagnoses, turns.iter_mut().chain(&mut held));
    let reason = |held: &Held| Some((held.coordination.as_ref()?.index, held.reason));
    let reasons = turns.iter().filter_map(reason).collect();
    let mut held: Vec<_> = turns.into_iter().filter(|held| !held.pods.is_empty()).chain(held).collect();
    held.extend(holds::refused(&release, context.refused));
    held.extend(pod_groups::explain(group, &release, context.missing_pod_groups));
    let moves_on = release.iter().any(|release| !release.at_once)
        || released.iter().any(|(role, count)| view.roles.get(role).is_some_and(|role| *count > role.released()));
    let rollout = rollout(rollouts, context, moves_on);
    held.extend(holds::rollouts(&rollout, rollouts));
    let mis_stamped = sorted.wrong.iter().map(|pod| pod.pod.clone()).collect();
    Decision {
        incomplete: incomplete.into_units(),
        turns: reasons,
        targets,
        released,
        release,
        mis_stamped,
        held,
        rollout,
        missing_pods,
        diagnoses,
        surplus,
    }
}

/// How far the roles may go. Where pods are released no partition moves, nor does one of a faulty group.
fn rollout(rollouts: &Rollouts, context: DecisionContext<'_>, releases: bool) -> RolloutPlan {
    let mut plan = plan_rollout(&rollouts.bounds, &rollouts.roles);
    if releases || !context.faults.is_empty() {
        for (name, decided) in &mut plan {
            decided.partition = rollouts.roles.get(name).map_or(decided.partition, |role| role.partition);
        }
    }
    plan
}

/// The release of a pod that may go by its count; `None` for one that stays.
fn release_of(pod: &HeldPod, view: &GroupView, released: &BTreeMap<String, u32>) -> Option<Release> {
    let at_once = match (view.roles.get(pod.role()), released.get(pod.role())) {
        (Some(role), Some(released)) => {
            (pod.ordinal < *released).then_some(pod.ordinal < role.committed.unwrap_or(0))?
        }
        // Nothing batches it: a role without coordination, or one that the group does not have.
        _ => true,
    };
    Some(Release { pod: pod.clone(), at_once })
}

/// max(target, released count), never above desired. A group that breaks a rule keeps what it has.
fn released_counts(view: &GroupView, targets: &Targets, context: DecisionContext<'_>) -> BTreeMap<String, u32> {
    let count = |role: &str, target: u32| {
        let view = view.roles.get(role)?;
        let before = view.released();
        Some(if context.faults.is_empty() { before.max(target).min(view.desired) } else { before })
    };
    targets.roles.iter().filter_map(|(role, target)| Some((role.clone(), count(role, *target)?))).collect()
}

#[cfg(test)]
#[path = "decide_tests.rs"]
mod tests;
