//! PodGroups of batches (podGroupPolicy). They are created before their pods are released, and relaxed once these were
//! scheduled; otherwise the next rollout would wait for all pods at once (KEP-32, Rolling Update Stall).

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use crate::api::ObjectKind;
use crate::model::batch::{Batch, PodGroupOf};
use crate::model::{GangLevel, Gangs, Group, HoldReason, MEMBER_KEYS, MemberKey, Members, PodGroupPolicy};
use crate::plan::decide::decision::Release;
use crate::plan::decide::held::Held;
use crate::plan::decide::held_pods::HeldPods;
use crate::plan::recovery::entry::{Phase, of_batch};
use crate::plan::view::{GroupView, HeldPod, PodFacts, ReplicaIs, RoleView, count};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchPodGroup {
    /// The name that its pods carry.
    pub name: String,
    /// The policy that states the kind of the PodGroup.
    pub policy: PodGroupPolicy,
    /// The number of pods that start together: all its pods, or those of its smallest replica once they were scheduled. Pods
    /// that were released without it, as before an edit of the policy, do not count.
    pub min_member: u32,
    /// Whether a lower `minMember` rises: the batch is being recreated, or all its pods exist and none was released with it, or
    /// the PodGroup is that of one replica, which always starts together.
    pub renewed: bool,
    /// Whether each of its roles has a pod, which tells the number of pods in a replica.
    pub is_sized: bool,
}

/// The replicas of a batch that share a PodGroup.
struct Gang<'a> {
    batch: Batch<'a>,
    gangs: &'a Gangs,
    key: MemberKey,
    members: Members<'a>,
    replicas: Vec<(&'a RoleView, Range<u32>)>,
}

/// Returns all PodGroups of the batches that these replicas of each role make. `absent` is the size of a replica without pods.
fn gangs<'a>(
    group: &'a Group,
    view: &'a GroupView,
    count: impl Fn(&str, &RoleView) -> Option<u32>,
    absent: u32,
) -> Vec<Gang<'a>> {
    let mut all = Vec::new();
    let policies = group.batched().filter_map(|(coordination, batching)| {
        let gangs = batching.gangs.as_ref()?;
        Some((coordination, batching, gangs, gangs.policy.member_key()?))
    });
    for (coordination, batching, gangs, key) in policies {
        let counted = |role: &str| count(role, view.roles.get(role)?);
        for index in 0..batching.total(counted) {
            let batch = Batch { group, coordination, batching, index };
            let gang = |members, replicas| Gang { batch, gangs, key, members, replicas };
            let is_there =
                |(role, view, range): &(&str, &RoleView, Range<u32>)| count(role, view).is_some() && !range.is_empty();
            let roles = view.ranges(batching, index).filter(is_there);
            match gangs.level {
                GangLevel::Batch => {
                    let replicas = roles.map(|(_, view, ordinals)| (view, ordinals)).collect();
                    all.push(gang(Members::Batch, replicas));
                }
                GangLevel::Role => {
                    all.extend(roles.map(|(role, view, ordinals)| gang(Members::Role(role), vec![(view, ordinals)])));
                }
                GangLevel::Replica => all.extend(roles.flat_map(|(role, view, ordinals)| {
                    ordinals.filter_map(move |ordinal| {
                        let size = view.replicas.get(ordinal).map_or(absent, |replica| replica.size);
                        let members = gangs.level.members(role, ordinal, size)?;
                        Some(gang(members, vec![(view, ordinal..ordinal + 1)]))
                    })
                })),
            }
        }
    }
    all
}

impl Gang<'_> {
    fn name(&self) -> String {
        self.batch.pod_group_name(self.members, self.key)
    }

    /// Returns the PodGroup; `None` if all its pods were released without it.
    fn pod_group(&self) -> Option<BatchPodGroup> {
        let name = self.name();
        let sum = |of: &dyn Fn(&RoleView, Range<u32>) -> u32| {
            let numbers = self.replicas.iter().map(|(view, ordinals)| of(view, ordinals.clone()));
            numbers.fold(0, u32::saturating_add)
        };
        let is_replica = matches!(self.members, Members::Replica { .. });
        let pods = sum(&|view, ordinals| {
            if is_replica {
                view.pods_in(ordinals)
            } else {
                (ordinals.end - ordinals.start).saturating_mul(view.replica_size())
            }
        });
        let names_another = |pod: &&Arc<PodFacts>| pod.pod_group(self.key) != Some(&name);
        let without = sum(&|view, ordinals| count(view.replicas.let_go(ordinals).filter(names_another).count()));
        let held = sum(&|view, ordinals| view.replicas.pods_in(ordinals).held);
        let own = Some(pods.saturating_sub(without).max(held.min(1))).filter(|own| *own > 0)?;
        let all_are = |what| self.replicas.iter().all(|(view, ordinals)| view.all_in(ordinals.clone(), what));
        let is_scheduled = all_are(ReplicaIs::Scheduled);
        let own_let_go = |(view, ordinals): &(&RoleView, Range<u32>)| {
            view.replicas.let_go(ordinals.clone()).any(|pod| !names_another(&pod))
        };
        let starts = all_are(ReplicaIs::Complete) && !self.replicas.iter().any(own_let_go);
        let smallest = self.replicas.iter().map(|(view, _)| view.replica_size()).min().unwrap_or(1);
        let Batch { group, coordination, index, .. } = self.batch;
        let recovery = of_batch(&group.status.recoveries, coordination, index);
        let is_made_anew = recovery.is_some_and(|(phase, _)| matches!(phase, Phase::Recreating | Phase::Releasing));
        Some(BatchPodGroup {
            name,
            policy: self.gangs.policy.clone(),
            min_member: if is_scheduled && !is_replica { smallest.min(own) } else { own },
            renewed: is_replica || starts || is_made_anew && !is_scheduled,
            is_sized: self.replicas.iter().all(|(view, _)| view.replicas.largest().is_some()),
        })
    }
}

/// Returns the PodGroups of all batches that may have released pods, without those that no pod is in.
pub fn batch_pod_groups(group: &Group, view: &GroupView, released: &BTreeMap<String, u32>) -> Vec<BatchPodGroup> {
    let may_run = |role: &str, _: &RoleView| released.get(role).copied();
    gangs(group, view, may_run, 0).iter().filter_map(Gang::pod_group).collect()
}

/// Returns the name and kind of the PodGroups of all desired batches, released or not. Other PodGroups are leftovers and may be
/// deleted once they are empty. A replica without pods may come back.
pub fn lasting_pod_groups(group: &Group, view: &GroupView) -> BTreeSet<(ObjectKind, String)> {
    let all = gangs(group, view, |_, view| Some(view.desired), u32::MAX);
    all.iter().filter_map(|gang| Some((gang.gangs.policy.kind()?, gang.name()))).collect()
}

/// An owned object whose creation failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingOwned {
    pub name: String,
    pub why: String,
}

/// Returns the PodGroup that a pod waits for; `None` for a pod beyond the desired replicas, which is in no batch.
pub fn pod_group_of<'a>(group: &'a Group, view: &GroupView, pod: &'a HeldPod) -> Option<PodGroupOf<'a>> {
    let is_desired = view.roles.get(pod.role()).is_none_or(|role| pod.ordinal < role.desired);
    is_desired.then(|| group.pod_group_of(pod.role(), pod.ordinal, pod.identity.replica_size)).flatten()
}

/// A change of the PodGroup that a pod names; `None` removes it.
pub type MemberEdit = (MemberKey, Option<String>);

/// Returns the changes by which a release puts a pod into the PodGroup that it has now, `wanted`. Admission named the one of that time:
/// the pod may be older than the policy or the group, or the level or the batch size may have changed. PodGroups that are not
/// of this group stay, unless the pod has one now.
pub fn edits(group: &Group, pod: &HeldPod, wanted: Option<&PodGroupOf<'_>>) -> Vec<MemberEdit> {
    let edit = |key: &MemberKey| {
        let named = pod.pod_group(*key);
        match wanted.filter(|wanted| wanted.key == *key) {
            Some(wanted) => (named != Some(&wanted.name)).then(|| (*key, Some(wanted.name.clone()))),
            None => named.filter(|name| is_of_group(group, pod, *key, name)).map(|_| (*key, None)),
        }
    };
    MEMBER_KEYS.iter().filter_map(edit).collect()
}

/// Reports whether the group gives or gave this name to the PodGroup of a pod: at any level, in its batch or in that of its
/// labels.
fn is_of_group(group: &Group, pod: &HeldPod, key: MemberKey, name: &str) -> bool {
    let role = pod.role();
    let levels = [Members::Batch, Members::Role(role), Members::Replica { role, ordinal: pod.ordinal }];
    let labelled = pod.labelled.map(|place| place.segment);
    group.batches_of(role, pod.ordinal).any(|batch| {
        let indexes = [Some(batch.index), labelled.filter(|index| *index != batch.index)];
        let mut names = indexes.into_iter().flatten().flat_map(|index| {
            let batch = Batch { index, ..batch };
            levels.map(|members| batch.pod_group_name(members, key))
        });
        names.any(|known| known == name)
    })
}

/// Returns the PodGroups that pods to release wait for, with their kinds.
pub fn awaited(group: &Group, view: &GroupView, release: &[Release]) -> BTreeMap<String, ObjectKind> {
    let committed = release.iter().filter(|release| release.at_once).map(|release| &release.pod);
    let named = committed.filter_map(|pod| pod_group_of(group, view, pod));
    named.filter_map(|of| Some((of.name, of.policy.kind()?))).collect()
}

/// Returns one entry for each batch with pods that may go and wait for PodGroups that could not be created. It names the first.
pub(super) fn explain(group: &Group, view: &GroupView, release: &[Release], missing: &[MissingOwned]) -> Vec<Held> {
    let mut all = BTreeMap::<_, (Held, BTreeSet<String>)>::new();
    for Release { pod, .. } in release.iter().filter(|release| release.at_once && !missing.is_empty()) {
        let Some(of) = pod_group_of(group, view, pod) else { continue };
        let Some(MissingOwned { name, why }) = missing.iter().find(|missing| missing.name == of.name) else {
            continue;
        };
        let batch = of.batch;
        let (held, names) = all.entry((batch.coordination.index, batch.index)).or_insert_with(|| {
            let message = format!("{} is held without PodGroup {name:?}: {why}", of.words());
            let place = (Some(batch.coordination), Some(batch.index));
            (Held::of(place, HoldReason::PodGroupMissing, message, HeldPods::default()), BTreeSet::new())
        });
        names.insert(of.name);
        held.pods.push(pod.clone());
    }
    let told = |(mut held, names): (Held, BTreeSet<String>)| {
        if names.len() > 1 {
            held.message = format!("{} ({} PodGroups of the batch are missing)", held.message, names.len());
        }
        held
    };
    all.into_values().map(told).collect()
}

#[cfg(test)]
#[path = "pod_groups_tests.rs"]
mod tests;
