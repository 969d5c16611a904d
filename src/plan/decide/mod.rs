//! One decision for one group: what to commit, which pods to release, and why the others are held.

pub mod all_or_nothing;
pub mod batches;
pub mod decision;
mod holds;
pub mod missing_pods;
pub mod outcome;
pub mod pod_groups;
pub mod progression;
mod stamp_mismatch;
pub mod surplus;
pub mod waits;

use std::collections::BTreeMap;

use self::all_or_nothing::{AllOrNothing, Incomplete};
use self::decision::Decision;
use self::missing_pods::Found;
use self::outcome::Release;
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
    /// Nothing moved for longer than the progress deadline.
    pub stalled: bool,
    /// Pods whose release was refused, and is tried again after a pause.
    pub refused: &'a [PodRef],
    /// Why pods do not appear, as far as that was found out.
    pub found: &'a [Found],
    /// What has waited long enough for its pods: it goes without those that are missing.
    pub overdue: &'a [AllOrNothing],
    /// Pods beyond the desired replicas that a rollout made.
    pub surge: &'a [PodRef],
}

/// Decides for one group.
pub fn decide(group: &Group, view: &GroupView, rollouts: &Rollouts, context: DecisionContext<'_>) -> Decision {
    let targets = targets(group, &view.roles);
    let released = released_counts(view, &targets, context);
    let (mut release, mut held) = (Vec::new(), Vec::new());
    let mut incomplete = Incomplete::new(group, view, context.overdue);
    let sorted = stamp_mismatch::sort(group, view);
    for pod in &sorted.right {
        match fate(pod, view, &released) {
            Some(_) if incomplete.holds(pod) => {}
            Some(at_once) => release.push(Release { pod: (*pod).clone(), at_once }),
            None => held.push((*pod).clone()),
        }
    }
    let surplus = surplus::surplus(view, &held, &released);
    let goes = |pod: &HeldPod| context.surge.contains(&pod.pod) && surplus::is_in(&surplus, pod);
    let (in_surge, held): (Vec<_>, Vec<_>) = held.into_iter().partition(goes);
    release.extend(in_surge.into_iter().map(|pod| Release { pod, at_once: true }));
    let mut held = holds::explain(group, view, &targets, &held, context.faults);
    held.extend(sorted.explain(group));
    held.extend(incomplete.explain());
    let absent = missing_pods::missing_pods(group, view, &released);
    let found: Vec<_> =
        context.found.iter().filter(|found| missing_pods::of(&absent, found).is_some()).cloned().collect();
    missing_pods::tell(group, &absent, &found, &mut held);
    held.extend(holds::refused(&release, context.refused));
    let moves_on = release.iter().any(|release| !release.at_once)
        || released.iter().any(|(role, count)| view.roles.get(role).is_some_and(|role| *count > role.released()));
    let rollout = rollout(rollouts, context, moves_on);
    held.extend(holds::rollouts(&rollout, rollouts));
    let incomplete = incomplete.into_units();
    let mis_stamped = sorted.wrong.iter().map(|pod| pod.pod.clone()).collect();
    Decision { targets, released, release, mis_stamped, held, rollout, absent, found, incomplete, surplus }
}

/// How far the roles may go. A pass that releases moves no partition, nor does one that looks at a faulty group.
fn rollout(rollouts: &Rollouts, context: DecisionContext<'_>, releases: bool) -> RolloutPlan {
    let mut plan = plan_rollout(&rollouts.bounds, &rollouts.roles);
    if releases || !context.faults.is_empty() {
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
