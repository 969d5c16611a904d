//! The reasons why pods are held, one sentence for each coordination.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashSet};
use std::iter;
use std::ops::Bound::{Excluded, Included, Unbounded};
use std::sync::Arc;

use crate::model::wording::answer;
use crate::model::{Batching, Coordination, Group, HoldReason, ProgressState};
use crate::plan::decide::DecisionContext;
use crate::plan::decide::acceptance::AcceptanceWait;
use crate::plan::decide::decision::Release;
use crate::plan::decide::held::Held;
use crate::plan::decide::held_pods::{HeldPods, Ordinals};
use crate::plan::decide::progression::{CoordinationTarget, Targets, requirement_of};
use crate::plan::decide::queued::{InQueue, in_queue};
use crate::plan::elastic::{ElasticPlan, RoomWait};
use crate::plan::rollout::{RolloutPlan, Rollouts, WaitReason, behind_text, waits_for};
use crate::plan::view::{GroupView, HeldPod, PodFacts, PodRef, RoleView};

/// The inputs that decide whose turn it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turns<'a> {
    pub(super) group: &'a Group,
    pub(super) view: &'a GroupView,
    pub(super) targets: &'a Targets,
    /// The counts by batched role that the progressions allow, whether their batches have a place or not.
    pub(super) released: &'a BTreeMap<String, u32>,
    /// The wait of the next batch of an elastic group, which has only one coordination with batches.
    pub(super) room_wait: Option<&'a RoomWait>,
    pub(super) context: DecisionContext<'a>,
}

/// Held pods that their count does not allow, by kind; each kind with its first pod by ordinal.
#[derive(Debug, Default)]
pub(super) struct Kept {
    /// Pods whose batch waits for its turn, by role.
    waiting: Vec<(HeldPod, HeldPods)>,
    /// Pods beyond the replicas that the group declares.
    surplus: Option<(HeldPod, HeldPods)>,
    /// Pods of roles whose number of replicas is not known.
    unknown: Option<(HeldPod, HeldPods)>,
    /// Pods of roles that the group does not have.
    strangers: Vec<HeldPod>,
}

impl Kept {
    /// Sorts the pods that the counts do not allow. Pods in `apart` are left out: they stay or go for other reasons.
    pub(super) fn of(
        view: &GroupView,
        released: &BTreeMap<String, u32>,
        strangers: Vec<HeldPod>,
        apart: &HashSet<Arc<str>>,
    ) -> Self {
        let pods = |name: &String, role: &RoleView, ordinals: Ordinals| {
            let mut held = role.replicas.held(ordinals).filter(|pod| !apart.contains(&pod.pod.uid));
            let first = held.next()?;
            let pods = if apart.is_empty() {
                HeldPods::run(view, name, ordinals)
            } else {
                iter::once(first.clone()).chain(held).collect::<Vec<_>>().into()
            };
            Some((first, pods))
        };
        let mut kept = Self { strangers, ..Self::default() };
        for (name, role) in &view.roles {
            let Some(released) = released.get(name) else { continue };
            if role.unknown {
                kept.unknown = together(kept.unknown, pods(name, role, (Included(*released), Unbounded)));
                continue;
            }
            kept.waiting.extend(pods(name, role, (Included(*released), Excluded(role.desired))));
            let beyond = (Included(role.desired.max(*released)), Unbounded);
            kept.surplus = together(kept.surplus, pods(name, role, beyond));
        }
        kept
    }

    /// Returns the entries of pods that wait for no batch: one for pods beyond the desired replicas, one for roles with an
    /// unknown number of replicas, one for roles that the group does not have, and one for pods that are no replica.
    pub(super) fn explain_others(self, group: &Group, view: &GroupView) -> impl Iterator<Item = Held> {
        let surplus = self.surplus.map(|(first, pods)| {
            let desired = view.roles.get(first.role()).map_or(0, |role| role.desired);
            let (ordinal, role) = (first.ordinal, first.role());
            let message = format!("replica {ordinal} of role {role:?} is held: the group declares {desired} replicas");
            Held::new(HoldReason::BeyondDesired, message, pods)
        });
        let entry = |reason, (first, pods): (HeldPod, HeldPods)| {
            let message = format!("role {:?} is held: {}", first.role(), absent(group, first.role()));
            Held::new(reason, message, pods)
        };
        let unknown = self.unknown.map(|pods| entry(reason_of_absent(group, pods.0.role()), pods));
        let strangers = self.strangers.first().cloned().map(|first| (first, HeldPods::from(self.strangers)));
        let strangers = strangers.map(|pods| entry(HoldReason::UnknownRole, pods));
        let apart: Vec<_> = view.held_apart().collect();
        let none_of_it =
            apart.first().map(|first| format!("pod {:?} is held: {}", &*first.pod.name, no_replica(group, first)));
        let none_of_it = none_of_it.map(|message| Held::new(HoldReason::NotAReplica, message, apart));
        surplus.into_iter().chain(unknown).chain(strangers).chain(none_of_it)
    }
}

type FirstAndAll = Option<(HeldPod, HeldPods)>;

fn together(one: FirstAndAll, other: FirstAndAll) -> FirstAndAll {
    match (one, other) {
        (Some((first, pods)), Some((second, more))) => {
            let first = if second.in_order(&first) == Ordering::Less { second } else { first };
            Some((first, pods.and(more)))
        }
        (one, other) => one.or(other),
    }
}

impl Turns<'_> {
    /// Returns one entry for each coordination whose next batch waits for its turn, even if that batch has no pods yet. A pod
    /// of two coordinations counts for the first of them.
    pub(super) fn explain(&self, kept: &mut Kept) -> Vec<Held> {
        let mut pods: BTreeMap<usize, (u32, HeldPods)> = BTreeMap::new();
        for (first, of_role) in kept.waiting.drain(..) {
            let Some(batch) = self.group.batches_of(first.role(), first.ordinal).next() else { continue };
            let (lowest, all) = pods.remove(&batch.coordination.index).unwrap_or((batch.index, HeldPods::default()));
            pods.insert(batch.coordination.index, (lowest.min(batch.index), all.and(of_role)));
        }
        let entry = |(coordination, batching): (&Coordination, &Batching)| {
            let (seen, pods) = pods.remove(&coordination.index).unzip();
            let batch = seen.or_else(|| self.next_batch(batching))?;
            let wait = self.room_wait.filter(|wait| wait.batch == batch);
            let (reason, message) = if let Some(wait) = wait {
                (wait.reason, wait.message.clone())
            } else {
                let (reason, why) = self.why(coordination, batching, batch)?;
                (reason, format!("{} is held: {why}", batching.batch_name(batch)))
            };
            Some(Held::of((Some(coordination), Some(batch)), reason, message, pods.unwrap_or_default()))
        };
        self.group.batched().filter_map(entry).collect()
    }

    /// Returns the lowest batch with replicas that may not run.
    fn next_batch(&self, batching: &Batching) -> Option<u32> {
        self.next_ordinals(batching).filter_map(|(role, ordinal)| batching.batch_of(role, ordinal)).min()
    }

    /// Returns the lowest ordinal of each role that may not run.
    fn next_ordinals<'b>(&self, batching: &'b Batching) -> impl Iterator<Item = (&'b str, u32)> {
        batching.sizes.keys().filter_map(|role| {
            let (seen, released) = (self.view.roles.get(role)?, *self.released.get(role)?);
            (released < seen.desired).then_some((role.as_str(), released))
        })
    }

    /// Returns the reason, and its text, why a batch waits for its turn.
    fn why(&self, coordination: &Coordination, batching: &Batching, batch: u32) -> Option<(HoldReason, String)> {
        let target = self.targets.coordination(coordination.index)?;
        let unknown =
            |role: &str| batching.size(role).is_some() && self.view.roles.get(role).is_some_and(|r| r.unknown);
        Some(if let Some(fault) = self.context.faults.first() {
            (HoldReason::InvalidCoordination, format!("{}: {fault}", fault.rule))
        } else if let Some(missing) = self.group.roles.iter().find(|role| unknown(&role.name)) {
            (reason_of_absent(self.group, &missing.name), absent(self.group, &missing.name))
        } else if let Some(why) = self.missing_layer(coordination, batching) {
            (HoldReason::TopologyMissing, why)
        } else if let (ProgressState::Blocked, Some(blocker)) = (target.state, target.blocked_by) {
            let name = self.group.coordination(blocker).map(Coordination::display_name).unwrap_or_default();
            (HoldReason::BlockedByCoordination, format!("coordination {name:?} waits"))
        } else if let Some(wait) = &target.acceptance.wait {
            let reason = match wait {
                AcceptanceWait::Canary(_) => HoldReason::CanaryPaused,
                AcceptanceWait::Object(_) => HoldReason::SegmentNotAccepted,
            };
            (reason, wait.text(&batching.batch_name(target.full.saturating_sub(1))))
        } else if let Some(why) = self.limited_by_another(batching, target) {
            (HoldReason::BlockedByCoordination, why)
        } else {
            // A batch far below may have lost a replica since: the target waits for that one.
            let lost = target.waits_for.as_ref().and_then(|lost| batching.batch_of(&lost.role, lost.ordinal));
            let before = lost.or(batch.checked_sub(1));
            let earlier = match before {
                Some(before) => format!("{} has {}", batching.batch_name(before), self.counts(batching, before)),
                None => format!("{} has no predecessor", batching.batch_name(batch)),
            };
            let reason = requirement_of(self.group, batching).reason;
            match before.and_then(|before| in_queue(self.view, batching, before)) {
                None => (reason, earlier),
                Some(InQueue { text, is_deadlock: false }) => (reason, format!("{earlier}; {text}")),
                Some(InQueue { text, .. }) => (HoldReason::QuotaDeadlock, format!("{earlier}; {text}")),
            }
        })
    }

    fn missing_layer(&self, coordination: &Coordination, batching: &Batching) -> Option<String> {
        missing_layer(batching).filter(|_| self.context.missing_layers.contains(&coordination.index))
    }

    /// Returns the text for a coordination that is held back by another one: it would allow the next pod of a role, and the
    /// other coordination of that role does not yet.
    fn limited_by_another(&self, batching: &Batching, target: &CoordinationTarget) -> Option<String> {
        let limit = |(role, next): (&str, u32)| {
            target.roles.get(role).filter(|own| **own > next)?;
            let limits = |other: &&CoordinationTarget| other.roles.get(role).is_some_and(|least| *least <= next);
            let limit = self.targets.coordinations.iter().find(limits)?;
            let name = self.group.coordination(limit.index).map(Coordination::display_name)?;
            Some((next, format!("coordination {name:?} lets {role} go to {} only", limit.roles.get(role)?)))
        };
        let limits = self.next_ordinals(batching).filter_map(limit);
        limits.min_by_key(|(next, _)| *next).map(|(_, why)| why)
    }

    /// Returns a text such as `8/10 prefill and 5/5 decode ready` for a batch.
    fn counts(&self, batching: &Batching, before: u32) -> String {
        let requirement = requirement_of(self.group, batching);
        let roles = self.group.roles.iter().filter_map(|role| {
            let name = &role.name;
            let seen = self.view.roles.get(name)?;
            let ordinals = batching.ordinals(name, before, seen.desired);
            let passing = seen.replicas.count_in(ordinals.clone(), requirement.test);
            (!ordinals.is_empty()).then(|| format!("{passing}/{} {name}", ordinals.len()))
        });
        format!("{} {}", roles.collect::<Vec<_>>().join(" and "), requirement.word)
    }
}

/// Returns why a pod is no replica of the role that it names.
pub(in crate::plan) fn no_replica(group: &Group, pod: &PodFacts) -> String {
    let role = pod.identity.role.as_deref().unwrap_or_default();
    let maker = group.role(role).and_then(|role| role.workload.key.as_ref()).map(ToString::to_string);
    let maker = maker.unwrap_or_else(|| "the workload".to_owned());
    format!("{maker}, which makes the replicas of role {role:?}, has not made it")
}

/// Returns why the number of replicas of a role is unknown: the referenced object is missing, or it does not have the role.
fn reason_of_absent(group: &Group, role: &str) -> HoldReason {
    let is_referred = group.reference.as_ref().is_some_and(|reference| !reference.found);
    let is_known = group.role(role).is_some();
    if is_referred || is_known { HoldReason::WorkloadMissing } else { HoldReason::GroupMissing }
}

/// Returns the missing object that would state the number of replicas of a role.
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

/// Returns the text on the missing layer of a coordination's batches.
pub(super) fn missing_layer(batching: &Batching) -> Option<String> {
    let (topology, layer) = batching.layer()?;
    Some(format!("layer {layer:?} of ClusterTopology {topology:?} is not there"))
}

/// Returns the entry for pods whose release was refused.
pub(super) fn refused(release: &[Release], refused: &BTreeMap<Arc<str>, Arc<str>>) -> Option<Held> {
    let pods = release.iter().map(|release| &release.pod).filter(|pod| refused.contains_key(&pod.pod.uid));
    let pods: Vec<_> = pods.cloned().collect();
    let PodRef { name, uid } = &pods.first()?.pod;
    let why = refused.get(uid).filter(|why| !why.is_empty());
    let why = why.map(|why| format!(": {}", answer(why))).unwrap_or_default();
    let message = format!("pod {:?} is held: its release was refused and is tried again{why}", &**name);
    Some(Held::new(HoldReason::PatchFailed, message, pods))
}

/// Returns the entry for a deferred scale-in.
pub(super) fn deferred(elastic: Option<&ElasticPlan>) -> Option<Held> {
    let plan = elastic?;
    let message = plan.deferred_text(plan.deferred?);
    Some(Held::new(HoldReason::ScaleInDeferred, message, HeldPods::default()))
}

/// Returns the entries for roles whose workloads wait for held replicas before they replace old ones, whether or not that is told.
pub(super) fn behind(plan: &RolloutPlan, rollouts: &Rollouts) -> impl Iterator<Item = (String, Held)> {
    let open = plan.iter().filter_map(|(name, role)| {
        let wait = role.waits.as_ref().filter(|wait| wait.reason == WaitReason::HeldBatch)?;
        Some((name.clone(), waits_for(name, wait, rollouts)))
    });
    let own = rollouts.behind.iter().map(|(name, behind)| (name.clone(), behind_text(name, behind)));
    open.chain(own)
        .map(|(name, message)| (name, Held::new(HoldReason::RolloutBehindHeldBatch, message, HeldPods::default())))
}
