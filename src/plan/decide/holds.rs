//! Why pods are held, in one sentence for each coordination.

use std::collections::BTreeMap;

use crate::model::{Batching, Coordination, Group, HoldReason, ProgressState};
use crate::plan::decide::DecisionContext;
use crate::plan::decide::decision::Release;
use crate::plan::decide::held::{CoordinationRef, Held};
use crate::plan::decide::progression::{CoordinationTarget, Targets, requirement};
use crate::plan::rollout::{RolloutPlan, Rollouts, WaitReason, waits_for};
use crate::plan::view::{GroupView, HeldPod, PodRef};

/// What says whose turn it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turns<'a> {
    pub(super) group: &'a Group,
    pub(super) view: &'a GroupView,
    pub(super) targets: &'a Targets,
    /// Released counts by batched role.
    pub(super) released: &'a BTreeMap<String, u32>,
    pub(super) context: DecisionContext<'a>,
}

/// Held pods that may not go by their count, sorted by what that means.
#[derive(Debug)]
pub(super) struct Kept<'a> {
    /// Their batch waits for its turn.
    waiting: Vec<&'a HeldPod>,
    /// There are more of them than the group declares.
    surplus: Vec<&'a HeldPod>,
    /// Nobody knows how many replicas their role has.
    unknown: Vec<&'a HeldPod>,
}

impl<'a> Kept<'a> {
    pub(super) fn of(view: &GroupView, pods: &[&'a HeldPod]) -> Self {
        let role = |pod: &HeldPod| view.roles.get(pod.role());
        let (unknown, known): (Vec<_>, Vec<_>) =
            pods.iter().copied().partition(|pod| role(pod).is_none_or(|role| role.unknown));
        let (surplus, waiting) = known.into_iter().partition(|pod| role(pod).is_none_or(|r| pod.ordinal >= r.desired));
        Self { waiting, surplus, unknown }
    }

    /// Of the pods that no batch waits for: one entry for those beyond the desired replicas, one for unknown roles.
    pub(super) fn explain_others(&self, group: &Group, view: &GroupView) -> impl Iterator<Item = Held> {
        let surplus = self.surplus.first().map(|first| {
            let desired = view.roles.get(first.role()).map_or(0, |role| role.desired);
            let (ordinal, role) = (first.ordinal, first.role());
            let message = format!("replica {ordinal} of role {role:?} is held: the group declares {desired} replicas");
            Held::new(HoldReason::BeyondDesired, message, names(&self.surplus))
        });
        let (strangers, unknown): (Vec<_>, Vec<_>) =
            self.unknown.iter().copied().partition(|pod| view.strangers.contains_key(pod.role()));
        let entry = |reason, pods: &[&HeldPod]| {
            let first = pods.first()?;
            let message = format!("role {:?} is held: {}", first.role(), absent(group, first.role()));
            Some(Held::new(reason, message, names(pods)))
        };
        let (unknown, strangers) =
            (entry(HoldReason::GroupMissing, &unknown), entry(HoldReason::UnknownRole, &strangers));
        surplus.into_iter().chain(unknown).chain(strangers)
    }
}

impl Turns<'_> {
    /// One entry for each coordination whose next batch waits for its turn, whether the pods of that batch are there or not.
    /// A pod of two coordinations is counted once, under the first of them.
    pub(super) fn explain(&self, kept: &Kept<'_>) -> Vec<Held> {
        let mut pods: BTreeMap<usize, (u32, Vec<&HeldPod>)> = BTreeMap::new();
        for pod in &kept.waiting {
            let Some(batch) = self.group.batches_of(pod.role(), pod.ordinal).next() else { continue };
            let (lowest, pods) = pods.entry(batch.coordination.index).or_insert((batch.index, Vec::new()));
            *lowest = batch.index.min(*lowest);
            pods.push(pod);
        }
        let entry = |(coordination, batching): (&Coordination, &Batching)| {
            let (seen, pods) = pods.remove(&coordination.index).unzip();
            let batch = seen.or_else(|| self.next_batch(batching))?;
            let (reason, why) = self.why(coordination, batching, batch)?;
            Some(Held {
                coordination: Some(CoordinationRef::from(coordination)),
                batch: Some(batch),
                reason,
                message: format!("{} is held: {why}", batching.batch_name(batch)),
                pods: names(&pods.unwrap_or_default()),
            })
        };
        self.group.batched().filter_map(entry).collect()
    }

    /// The lowest batch with replicas that may not run.
    fn next_batch(&self, batching: &Batching) -> Option<u32> {
        self.next_ordinals(batching).filter_map(|(role, ordinal)| batching.batch_of(role, ordinal)).min()
    }

    /// The lowest ordinal of each role that may not run.
    fn next_ordinals<'b>(&self, batching: &'b Batching) -> impl Iterator<Item = (&'b str, u32)> {
        batching.sizes.keys().filter_map(|role| {
            let (seen, released) = (self.view.roles.get(role)?, *self.released.get(role)?);
            (released < seen.desired).then_some((role.as_str(), released))
        })
    }

    /// Why a batch waits for its turn, as reason and in words.
    fn why(&self, coordination: &Coordination, batching: &Batching, batch: u32) -> Option<(HoldReason, String)> {
        let target = self.targets.coordination(coordination.index)?;
        let unknown =
            |role: &str| batching.size(role).is_some() && self.view.roles.get(role).is_some_and(|r| r.unknown);
        Some(if let Some(fault) = self.context.faults.first() {
            (HoldReason::InvalidCoordination, format!("{}: {fault}", fault.rule))
        } else if let Some(missing) = self.group.roles.iter().find(|role| unknown(&role.name)) {
            (HoldReason::GroupMissing, absent(self.group, &missing.name))
        } else if let Some(why) = self.missing_layer(coordination, batching) {
            (HoldReason::TopologyMissing, why)
        } else if let (ProgressState::Blocked, Some(blocker)) = (target.state, target.blocked_by) {
            let name = self.group.coordination(blocker).map(Coordination::display_name).unwrap_or_default();
            (HoldReason::BlockedByCoordination, format!("coordination {name:?} waits"))
        } else if let Some(why) = self.limited_by_another(batching, target) {
            (HoldReason::BlockedByCoordination, why)
        } else {
            let earlier = format!("{} {batch} has {}", batching.kind.word(), self.counts(batching, batch));
            (requirement(batching.progression()).reason, earlier)
        })
    }

    fn missing_layer(&self, coordination: &Coordination, batching: &Batching) -> Option<String> {
        missing_layer(batching).filter(|_| self.context.missing_layers.contains(&coordination.index))
    }

    /// The coordination itself would let the next pod of a role go; another one that shares the role is not that far.
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

    /// `8/10 prefill and 5/5 decode ready` for the batch before the one that is held (shown from 1, so its number is the
    /// same).
    fn counts(&self, batching: &Batching, held_batch: u32) -> String {
        let Some(before) = held_batch.checked_sub(1) else { return "no predecessor".to_owned() };
        let requirement = requirement(batching.progression());
        let roles = self.group.roles.iter().filter_map(|role| {
            let name = &role.name;
            let seen = self.view.roles.get(name)?;
            let ordinals = batching.ordinals(name, before, seen.desired);
            let passing = seen.count_in(ordinals.clone(), requirement.test);
            (!ordinals.is_empty()).then(|| format!("{passing}/{} {name}", ordinals.len()))
        });
        format!("{} {}", roles.collect::<Vec<_>>().join(" and "), requirement.word)
    }
}

fn names(pods: &[&HeldPod]) -> Vec<PodRef> {
    pods.iter().map(|pod| pod.pod.clone()).collect()
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

/// That the layer which the batches of a coordination share is not there.
pub(super) fn missing_layer(batching: &Batching) -> Option<String> {
    let (topology, layer) = batching.layer()?;
    Some(format!("layer {layer:?} of ClusterTopology {topology:?} is not there"))
}

/// Pods that may go and were refused.
pub(super) fn refused(release: &[Release], refused: &[PodRef]) -> Option<Held> {
    let pods = release.iter().map(|release| &release.pod.pod).filter(|pod| refused.contains(pod));
    let pods: Vec<_> = pods.cloned().collect();
    let message = format!("pod {:?} is held: its release was refused and is tried again", &*pods.first()?.name);
    Some(Held::new(HoldReason::PatchFailed, message, pods))
}

/// Rollouts whose workloads wait for held replicas.
pub(super) fn rollouts(plan: &RolloutPlan, rollouts: &Rollouts) -> impl Iterator<Item = Held> {
    plan.iter().filter_map(|(name, role)| {
        let wait = role.waits.as_ref().filter(|wait| wait.reason == WaitReason::HeldBatch)?;
        let message = waits_for(name, wait, &rollouts.roles);
        Some(Held::new(HoldReason::RolloutBehindHeldBatch, message, Vec::new()))
    })
}
