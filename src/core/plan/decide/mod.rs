//! One decision for one group: the batches that may run (the released counts, written into the status first), the pods whose
//! gate is lifted now, and the reason why each other pod keeps its gate.
//!
//! `progression` how far each role may go, and `acceptance` what it waits for beyond replicas;
//! `objections` exceptions for single pods: `mis_stamped`, `recovering`,
//! `growing`, `all_or_nothing`, `gated`; `together`, `without_place` batches that share replicas; `surplus` pods beyond the desired
//! replicas;
//! `placing` domains of released batches, and `strays` outside of them; `unmade` batches that are created only when they have
//! room; `holds`, `missing_pods`, `lacking` reasons why pods are held or do not appear; `batches`, `waits`, `pod_groups` views
//! of a decision.

pub mod acceptance;
pub mod all_or_nothing;
pub mod batches;
pub mod decision;
mod gated;
pub(in crate::plan) mod growing;
pub mod held;
pub mod held_pods;
mod holds;
pub mod lacking;
mod mis_stamped;
pub mod missing_pods;
mod objections;
pub mod placed;
mod placing;
pub mod pod_groups;
pub mod progression;
mod queued;
mod recovering;
mod strays;
pub mod surplus;
pub(in crate::plan) mod together;
mod unjudged;
pub mod unmade;
pub mod waits;
mod without_place;

use std::collections::{BTreeMap, HashSet};
use std::ops::Bound;
use std::sync::Arc;

use self::acceptance::Conditions;
use self::all_or_nothing::AllOrNothing;
use self::decision::{Decision, Release};
use self::held::Held;
pub(in crate::plan) use self::holds::no_replica;
use self::holds::{Kept, Turns};
use self::lacking::{Lacking, lacking};
use self::missing_pods::{Diagnosis, MissingPods};
use self::objections::Objections;
use self::placed::{GivenUp, Pin, Placed, PlacedWait, Refused};
use self::pod_groups::MissingOwned;
use self::progression::{Targets, targets};
use self::unmade::Unmade;
use crate::api::status::RecoveryState;
use crate::model::{Coordination, Fact, Group, HoldReason};
use crate::plan::elastic::{self, Deferral, ElasticContext, ElasticPlan, RoomWait};
use crate::plan::placement::Placer;
use crate::plan::provision::{ProvisionContext, ProvisionPlan, plan_provision};
use crate::plan::recovery::entry::Phase;
use crate::plan::recovery::{BatchId, RecoveryContext, plan_recovery};
use crate::plan::rollout::{RolloutPlan, Rollouts, plan_rollout, stages};
use crate::plan::view::{GroupView, HeldPod, PodRef};
use crate::rules::Violation;

/// The inputs of a decision beside the pods.
#[derive(Clone, Copy, Debug, Default)]
pub struct DecisionContext<'a> {
    /// Faults of the stored group: with any, no new batch is released.
    pub faults: &'a [Violation],
    /// Coordinations whose layer is missing, by position in the list of the group: they do not proceed.
    pub missing_layers: &'a [usize],
    /// Whether nothing moved for longer than the progress deadline.
    pub stalled: bool,
    /// The uids of pods whose release was refused and is tried again after a pause, each with the answer.
    pub refused: Option<&'a BTreeMap<Arc<str>, Arc<str>>>,
    /// The uids of objects with a write in flight: their release may be done by now.
    pub in_flight: Option<&'a HashSet<Arc<str>>>,
    /// PodGroups whose creation failed and is tried again after a pause.
    pub missing_owned: &'a [MissingOwned],
    /// The reasons why pods do not appear, as far as they are known.
    pub diagnoses: &'a [Diagnosis],
    /// Units that have waited long enough: they are released without their missing pods.
    pub overdue: &'a [AllOrNothing],
    /// Batches that wait for more replicas of their roles.
    pub growing: Option<&'a Vec<BatchId>>,
    /// Pods beyond the desired replicas that a rollout created.
    pub surge: &'a [PodRef],
    /// The node label of the domains of each coordination that has some, by position in the list of the group.
    pub domain_keys: &'a [(usize, String)],
    /// Placed batches that have waited for long.
    pub waited: &'a [PlacedWait],
    /// Domains in which batches got no node in time, and which they avoid for a while.
    pub given_up: &'a [((usize, u32), GivenUp)],
    /// Nodes that kubelets or the scheduler refused to pods of a batch, and which it avoids for a while.
    pub refusing: &'a [Refused],
    /// Missing workloads that are not reported yet, since files are applied in any order.
    pub not_yet_told: Option<&'a Vec<Lacking>>,
    /// Roles whose update has waited for held pods for long.
    pub behind: Option<&'a Vec<String>>,
    /// Whether pods of a role that their group does not have are released.
    pub frees_unknown_roles: bool,
    /// Whether pods get no variables of discovery, whatever their groups say.
    pub discovery_is_off: bool,
    /// The inputs for a group whose workloads are scaled.
    pub elastic: ElasticContext<'a>,
    /// The inputs for requests for nodes.
    pub provision: &'a ProvisionContext<'a>,
    /// The inputs for the recovery of batches.
    pub recovery: &'a RecoveryContext<'a>,
}

impl<'a> DecisionContext<'a> {
    /// Returns the node label of the domains of a coordination, by its position in the list of the group.
    fn domain_key(&self, coordination: usize) -> Option<&'a str> {
        self.domain_keys.iter().find(|(index, _)| *index == coordination).map(|(_, key)| key.as_str())
    }
}

/// Decides in four stages: which pods may go, where they go, why the others stay, and to what the fields of workloads step.
pub(in crate::plan) fn decide(
    group: &Group,
    view: &GroupView,
    rollouts: &mut Rollouts,
    context: DecisionContext<'_>,
    mut placer: Option<&mut Placer<'_>>,
) -> Decision {
    rollouts.bar(context.faults.first(), context.recovery.off);
    rollouts.pauses.off = context.recovery.off;
    let conditions = Conditions { missing_layers: context.missing_layers, pauses: Some(&rollouts.pauses) };
    let targets = targets(group, &view.roles, conditions);
    let mut released = released_counts(view, &targets, context);
    let unmade = if placer.is_some() { Unmade::of(group, view, &mut released, context) } else { None };
    let recovery = plan_recovery(group, view, rollouts, *context.recovery);
    let mut objections = Objections::of(group, view, rollouts, recovery, context);
    let (going, mut strangers) = going(view, &released, context);
    let may_go = going.into_iter().filter(|pod| !objections.hold(pod));
    let mut release: Vec<_> = may_go.map(|pod| release_of(pod, view, &released)).collect();

    let place = (context, &objections.recovering.plan);
    let (mut domains, mut without_place) = placing::place(group, view, &mut release, place, placer.as_deref_mut());
    let displaced = without_place::displaced(group, view, rollouts, &mut domains);
    let Objections { mis_stamped, mut recovering, growing, incomplete, gated } = objections;
    without_place.extend(gated.explain());
    let mut room_wait = unmade
        .zip(placer.as_deref_mut())
        .and_then(|(unmade, placer)| unmade.ask(&mut released, (&mut domains, &mut without_place), placer));
    let provision = provision(group, view, &domains, rollouts, context);
    let grows = group.batched().next().map(|(coordination, _)| coordination.index).zip(room_wait.as_mut());
    tell_of_requests(&provision, &mut without_place, grows);
    without_place.extend(growing.explain());
    recovering.go_together(view, &mut release, &without_place);
    let allowed = released.clone();
    let is_placed = |own: &Coordination| context.domain_key(own.index).is_some();
    let to_come = all_or_nothing::unmade_from(group, view, &released, is_placed);
    placing::keep_back(group, view, &mut released, (&release, &without_place), growing.batches().chain(to_come));
    let surplus = surplus::surplus(view, &released);
    let surge = surplus::in_surge(view, &surplus, context.surge).filter(|pod| !mis_stamped.has(pod));
    let mut surge: Vec<_> = surge.map(Release::at_once).collect();
    if let Some(placer) = placer {
        strays::place_surge((group, view), &mut surge, context, &mut domains, placer);
    }

    strangers.retain(|pod| !mis_stamped.has(pod));
    let apart = surge.iter().map(|release| &release.pod.pod.uid).chain(&mis_stamped.uids).cloned().collect();
    let kept = Kept::of(view, &allowed, strangers, &apart);
    let turns = Turns { group, view, targets: &targets, released: &allowed, room_wait: room_wait.as_ref(), context };
    let Explained { mut turns, mut held, missing_pods, diagnoses } =
        explain(&turns, kept, incomplete.explain(), |held| {
            held.reason == HoldReason::TopologyMissing && !mis_stamped.tells_layer_of(group, held)
        });
    placing::wait_for_room(group, &without_place, &mut turns);
    release.extend(surge);
    let (recovery, recreated) = recovering.end();
    held.extend(mis_stamped.explain(group).chain(without_place).chain(recreated));
    held.extend(context.refused.and_then(|refused| holds::refused(&release, refused)));
    held.extend(pod_groups::explain(group, view, &release, context.missing_owned));

    let elastic = scaled(group, view, &released, rollouts, context).map(|plan| ElasticPlan { room_wait, ..plan });
    let is_displaced = |role: &str, ordinal| {
        let mut batches = group.batches_of(role, ordinal);
        batches.any(|batch| displaced.contains(&(batch.coordination.index, batch.index)))
    };
    let rollout = rollout(rollouts, view, (&release, &released, elastic.as_ref()), is_displaced, context);
    let behind: BTreeMap<_, _> = holds::behind(&rollout, rollouts).collect();
    let for_long = |name: &String| context.behind.is_some_and(|behind| behind.contains(name));
    rollouts.behind.retain(|name, _| for_long(name));
    let is_told = |(name, _): &(&String, &Held)| for_long(name) && !rollouts.deletes_broken(name);
    held.extend(behind.iter().filter(is_told).map(|(_, held)| held.clone()).chain(holds::deferred(elastic.as_ref())));
    let is_new = |lacks: &Lacking| context.not_yet_told.is_some_and(|new| new.contains(lacks));
    let lacking: Vec<_> = lacking(group).into_iter().filter(|lacks| !is_new(lacks)).collect();
    lacking::explain(&lacking, &mut held);
    Decision {
        incomplete: incomplete.into_units(),
        mis_stamped: mis_stamped.to_recreate(),
        turns,
        targets,
        released,
        release,
        held,
        rollout,
        missing_pods,
        diagnoses,
        surplus,
        placed: domains,
        elastic,
        recovery,
        provision,
        lacking,
        behind: behind.into_keys().collect(),
    }
}

/// Plans the requests for nodes for the batches that have no room.
fn provision(
    group: &Group,
    view: &GroupView,
    placed: &Placed,
    rollouts: &Rollouts,
    context: DecisionContext<'_>,
) -> ProvisionPlan {
    let is_placed = |(index, batch): BatchId| placed.domains.get(&index).is_some_and(|own| own.contains_key(&batch));
    let missing: Vec<_> = context.missing_owned.iter().map(|missing| (&*missing.name, &*missing.why)).collect();
    let own = ProvisionContext { missing: &missing, ..*context.provision };
    let batches = (&placed.no_room, is_placed);
    plan_provision(group, view, batches, (context.domain_keys, &rollouts.pauses.objects), own)
}

/// Sets what is told of batches without room, for which nodes are requested or were in vain. `grows` is the coordination of an
/// elastic group, with the wait of its next batch.
fn tell_of_requests(plan: &ProvisionPlan, held: &mut [Held], grows: Option<(usize, &mut RoomWait)>) {
    for held in held.iter_mut().filter(|held| held.reason == HoldReason::NoRoom) {
        let id = held.coordination.as_ref().map(|of| of.index).zip(held.batch);
        if let Some(told) = id.and_then(|id| plan.told.get(&id)) {
            (held.reason, held.message) = (told.reason, told.message.clone());
        }
    }
    let Some((index, wait)) = grows.filter(|(_, wait)| wait.reason == HoldReason::NoRoom) else { return };
    if let Some(told) = plan.told.get(&(index, wait.batch)) {
        (wait.reason, wait.message) = (told.reason, told.message.clone());
    }
}

/// Pods that wait for their turn, for other pods of their unit, or have no turn; and pods that do not appear.
struct Explained {
    turns: BTreeMap<usize, HoldReason>,
    held: Vec<Held>,
    missing_pods: Vec<MissingPods>,
    diagnoses: Vec<Diagnosis>,
}

/// `lacks_layer` reports whether nothing else says that the layer of a batch is missing.
fn explain(
    turns: &Turns<'_>,
    mut kept: Kept,
    mut incomplete: Vec<Held>,
    lacks_layer: impl Fn(&Held) -> bool,
) -> Explained {
    let Turns { group, view, released, context, .. } = *turns;
    let missing_pods = missing_pods::missing_pods(group, view, released);
    let is_open = |diagnosis: &&Diagnosis| missing_pods::of(&missing_pods, diagnosis).is_some();
    let diagnoses: Vec<_> = context.diagnoses.iter().filter(is_open).cloned().collect();
    let mut held = turns.explain(&mut kept);
    missing_pods::explain(group, &missing_pods, &diagnoses, held.iter_mut().chain(&mut incomplete));
    let reason = |held: &Held| Some((held.coordination.as_ref()?.index, held.reason));
    let turns = held.iter().filter_map(reason).collect();
    // A batch without room or without its layer is reported even before its pods are created.
    held.retain(|held| !held.pods.is_empty() || held.reason.is(Fact::OfUnmade) || lacks_layer(held));
    held.extend(kept.explain_others(group, view).chain(incomplete));
    Explained { turns, held, missing_pods, diagnoses }
}

/// Plans the scaling of the workloads. A scale-in waits for rollouts, which replace pods from the top. A faulty group keeps its
/// replicas.
fn scaled(
    group: &Group,
    view: &GroupView,
    released: &BTreeMap<String, u32>,
    rollouts: &Rollouts,
    context: DecisionContext<'_>,
) -> Option<ElasticPlan> {
    if !context.faults.is_empty() || group.deleting {
        return None;
    }
    let wanted = group.scaled()?.0.wanted();
    // A batch that is taken away need not be complete before.
    let stays = |entry: &&RecoveryState| entry.batch < wanted;
    let mut recoveries = group.status.recoveries.iter().filter(stays).filter_map(Phase::of);
    let deferral = if rollouts.roles.is_empty() {
        recoveries.any(Phase::is_under_way).then_some(Deferral::Recovery)
    } else {
        Some(Deferral::Rollout)
    };
    elastic::plan(group, view, (released, deferral), context.elastic)
}

/// Plans the rollouts. No partition moves while pods are released or workloads scaled, nor of a role that is barred, nor of a rollout
/// that goes back.
fn rollout(
    rollouts: &mut Rollouts,
    view: &GroupView,
    (release, released, elastic): (&[Release], &BTreeMap<String, u32>, Option<&ElasticPlan>),
    is_displaced: impl Fn(&str, u32) -> bool,
    context: DecisionContext<'_>,
) -> RolloutPlan {
    let moves_on = release.iter().any(|release| !release.at_once)
        || released.iter().any(|(role, count)| view.roles.get(role).is_some_and(|role| *count > role.released()))
        || elastic.is_some_and(|plan| plan.draining.is_some() || !plan.scales.is_empty());
    let goes: HashSet<_> = release.iter().map(|release| &release.pod.pod.uid).collect();
    rollouts.decided(view, released, is_displaced, |pod| goes.contains(&pod.pod.uid));
    let may_delete = !context.recovery.off && context.faults.is_empty();
    rollouts.help(view, released, may_delete, release.is_empty());
    rollouts.stages = stages(&rollouts.bounds, &rollouts.roles, &rollouts.pauses);
    let mut plan = plan_rollout(&rollouts.bounds, &rollouts.roles, &rollouts.stages);
    let back = rollouts.stages.iter().map(|stage| &stage.state).filter(|state| state.rolled_back.is_some());
    for (name, decided) in &mut plan {
        if moves_on || back.clone().any(|state| state.revisions.contains_key(name)) {
            decided.partition = rollouts.roles.get(name).map_or(decided.partition, |role| role.partition);
        }
        if moves_on || context.recovery.off {
            decided.made_again.clear();
        }
        if let Some(role) = rollouts.roles.get(name).filter(|_| rollouts.barred.contains_key(name)) {
            decided.bar(name, role);
        }
    }
    plan
}

/// Returns the held pods that the counts of their roles allow, or that no coordination batches, lowest ordinal first; and the
/// pods that stay because the group does not have their role.
fn going(
    view: &GroupView,
    released: &BTreeMap<String, u32>,
    context: DecisionContext<'_>,
) -> (Vec<HeldPod>, Vec<HeldPod>) {
    let stays = |pod: &HeldPod| {
        let is_meant = pod.identity.named_by_us && view.strangers.contains_key(pod.role());
        is_meant && !context.frees_unknown_roles
    };
    let (mut strangers, mut going): (Vec<_>, Vec<_>) = view.others.iter().cloned().partition(stays);
    for (name, role) in &view.roles {
        let count = released.get(name).map_or(Bound::Unbounded, |count| Bound::Excluded(*count));
        going.extend(role.replicas.held((Bound::Unbounded, count)));
    }
    going.sort_by(HeldPod::in_order);
    strangers.sort_by(HeldPod::in_order);
    (going, strangers)
}

/// Returns the release of a pod that may go.
fn release_of(pod: HeldPod, view: &GroupView, released: &BTreeMap<String, u32>) -> Release {
    let batched = view.roles.get(pod.role()).filter(|_| released.contains_key(pod.role()));
    // A role without coordination, or one that the group does not have, needs no commit.
    let at_once = batched.is_none_or(|role| pod.ordinal < role.committed.unwrap_or(0));
    Release { pod, at_once, pin: Pin::new() }
}

/// Returns the released counts: max(target, released count), never above desired. A faulty group keeps its counts.
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
