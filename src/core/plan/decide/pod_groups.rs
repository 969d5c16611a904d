//! PodGroups of batches (KEP-75, podGroupPolicy). They are created before their batch is released, and relaxed once it was
//! scheduled; otherwise the next rollout would wait for all pods at once (KEP-32, Rolling Update Stall).

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crate::api::ObjectKind;
use crate::model::batch::Batch;
use crate::model::{Group, HoldReason, PodGroupPolicy};
use crate::plan::decide::decision::Release;
use crate::plan::decide::held::Held;
use crate::plan::decide::held_pods::HeldPods;
use crate::plan::recovery::entry::{Phase, of_batch};
use crate::plan::view::{GroupView, ReplicaIs, RoleView};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchPodGroup {
    /// The name that the pods of the batch carry.
    pub name: String,
    /// The policy that states the kind of the PodGroup.
    pub policy: PodGroupPolicy,
    /// The number of pods that start together: all pods of the batch, or those of its smallest replica once it was scheduled.
    pub min_member: u32,
    /// Whether the batch is being recreated and starts together again: a lowered `minMember` rises.
    pub renewed: bool,
}

/// Returns the PodGroups of all batches that may have released pods, by name.
pub fn batch_pod_groups(group: &Group, view: &GroupView, released: &BTreeMap<String, u32>) -> Vec<BatchPodGroup> {
    let with_policy = group.batched().filter_map(|(coordination, batching)| {
        let (policy, _) = batching.pod_group.as_ref().filter(|(policy, _)| *policy != PodGroupPolicy::Unknown)?;
        Some((coordination, batching, policy))
    });
    with_policy
        .flat_map(|(coordination, batching, policy)| {
            let may_run = |role: &str| view.roles.get(role).and_then(|_| released.get(role)).copied();
            (0..batching.total(may_run)).map(move |index| {
                let ranges = batching.sizes.keys().filter_map(|role| {
                    let view = view.roles.get(role).filter(|_| released.contains_key(role))?;
                    let ordinals = batching.ordinals(role, index, view.desired);
                    (!ordinals.is_empty()).then_some((view, ordinals))
                });
                let ranges: Vec<_> = ranges.collect();
                let size = |(view, ordinals): &(&RoleView, Range<u32>)| {
                    (ordinals.end - ordinals.start).saturating_mul(view.replica_size())
                };
                let pods = ranges.iter().map(size).fold(0, u32::saturating_add);
                let is_scheduled =
                    ranges.iter().all(|(view, ordinals)| view.all_in(ordinals.clone(), ReplicaIs::Scheduled));
                let smallest = ranges.iter().map(|(view, _)| view.replica_size()).min().unwrap_or(1);
                let batch = Batch { group, coordination, batching, index };
                let recovery = of_batch(&group.status.recoveries, coordination, index);
                let is_made_anew =
                    recovery.is_some_and(|(phase, _)| matches!(phase, Phase::Recreating | Phase::Releasing));
                BatchPodGroup {
                    name: batch.pod_group_name(),
                    policy: policy.clone(),
                    min_member: if is_scheduled { smallest } else { pods },
                    renewed: is_made_anew && !is_scheduled,
                }
            })
        })
        .collect()
}

/// Returns the name and kind of the PodGroups of all desired batches, released or not. Other PodGroups are leftovers and may be
/// deleted once they are empty.
pub fn lasting_pod_groups(group: &Group, view: &GroupView) -> BTreeSet<(ObjectKind, String)> {
    let desired = |role: &str| view.roles.get(role).map(|view| view.desired);
    let of_coordination = group.batched().filter_map(|(coordination, batching)| {
        let (policy, _) = batching.pod_group.as_ref()?;
        Some((coordination, batching, policy.kind()?))
    });
    of_coordination
        .flat_map(|(coordination, batching, kind)| {
            let batches = (0..batching.total(desired)).map(move |index| Batch { group, coordination, batching, index });
            batches.map(move |batch| (kind, batch.pod_group_name()))
        })
        .collect()
}

/// A PodGroup whose creation failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingPodGroup {
    pub name: String,
    pub why: String,
}

/// Returns the batch of a replica, if it has a PodGroup.
fn batch_of<'a>(group: &'a Group, role: &'a str, ordinal: u32) -> Option<Batch<'a>> {
    let known = |batch: &Batch<'_>| matches!(&batch.batching.pod_group, Some((policy, _)) if *policy != PodGroupPolicy::Unknown);
    group.batches_of(role, ordinal).find(known)
}

/// Returns the PodGroup that the pods of a replica wait for, with its kind.
pub fn pod_group_of(group: &Group, role: &str, ordinal: u32) -> Option<(ObjectKind, String)> {
    let batch = batch_of(group, role, ordinal)?;
    let (policy, _) = batch.batching.pod_group.as_ref()?;
    Some((policy.kind()?, batch.pod_group_name()))
}

/// Returns the PodGroups that pods to release wait for, with their kinds.
pub fn awaited(group: &Group, release: &[Release]) -> BTreeMap<String, ObjectKind> {
    let committed = release.iter().filter(|release| release.at_once).map(|release| &release.pod);
    let batches = committed.filter_map(|pod| batch_of(group, pod.role(), pod.ordinal));
    let kind = |batch: &Batch<'_>| batch.batching.pod_group.as_ref().and_then(|(policy, _)| policy.kind());
    batches.filter_map(|batch| Some((batch.pod_group_name(), kind(&batch)?))).collect()
}

/// Returns one entry for each batch whose pods may go and wait for a PodGroup that could not be created.
pub(super) fn explain(group: &Group, release: &[Release], missing: &[MissingPodGroup]) -> Vec<Held> {
    let mut all = BTreeMap::<String, Held>::new();
    for Release { pod, .. } in release.iter().filter(|release| release.at_once && !missing.is_empty()) {
        let Some(batch) = batch_of(group, pod.role(), pod.ordinal) else { continue };
        let name = batch.pod_group_name();
        let Some(MissingPodGroup { why, .. }) = missing.iter().find(|missing| missing.name == name) else { continue };
        let held = all.entry(name).or_insert_with_key(|name| {
            let message =
                format!("{} is held without PodGroup {name:?}: {why}", batch.batching.batch_name(batch.index));
            let place = (Some(batch.coordination), Some(batch.index));
            Held::of(place, HoldReason::PodGroupMissing, message, HeldPods::default())
        });
        held.pods.push(pod.clone());
    }
    all.into_values().collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::api::pod_group::KUBE_POD_GROUP;
    use crate::plan::test_support::{mk_group, mk_held, mk_role};
    use crate::plan::view::PodFacts;

    fn view(released: u32, scheduled: bool) -> GroupView {
        let mut prefill = mk_role(8, released, released);
        for (ordinal, pod) in mk_role(8, released, released).replicas.pods().filter(|_| !scheduled) {
            prefill.replicas.remove(&pod.pod, ordinal);
            prefill.replicas.add(&PodFacts { scheduled: false, ready: false, ..(**pod).clone() }.into(), ordinal);
        }
        GroupView {
            roles: [("prefill".to_owned(), prefill), ("decode".to_owned(), mk_role(4, released / 2, 0))].into(),
            ..GroupView::default()
        }
    }

    fn group() -> Group {
        let constraint = json!({"topologyLayerName": "host", "podGroupPolicy": {"kubeScheduling": {}}});
        let deploy = json!({"roleDeployStep": {"prefill": 4, "decode": 2}, "deployTopologyConstraint": constraint});
        mk_group(&[("prefill", 8), ("decode", 4)], &json!([{"name": "pd", "strategy": {"rollingDeploy": deploy}}]))
    }

    #[test]
    fn each_released_batch_has_a_gang_of_its_pods() {
        let released = [("prefill".to_owned(), 8), ("decode".to_owned(), 4)].into();
        let gangs = batch_pod_groups(&group(), &view(8, false), &released);
        let seen: Vec<_> = gangs.iter().map(|gang| (gang.name.as_str(), gang.min_member)).collect();
        assert_eq!(seen, [("pd-pd-0", 6), ("pd-pd-1", 6)]);
        assert_eq!(pod_group_of(&group(), "decode", 3), Some((KUBE_POD_GROUP, "pd-pd-1".to_owned())));
    }

    #[test]
    fn committed_pods_say_which_pod_group_they_lack() {
        let pod = |role: &str, ordinal: u32, at_once| {
            let name = format!("{role}-{ordinal}");
            Release { pod: mk_held(&name, role, ordinal), at_once, pin: BTreeMap::new() }
        };
        let release =
            [pod("prefill", 3, true), pod("prefill", 4, true), pod("decode", 3, true), pod("prefill", 7, false)];
        let missing = |name: &str| MissingPodGroup { name: name.to_owned(), why: "no such kind".to_owned() };
        let held = explain(&group(), &release, &[missing("pd-pd-1"), missing("pd-pd-2")]);
        let seen: Vec<_> = held.iter().map(|held| (held.batch, held.reason, held.message.as_str())).collect();
        let message = "step 2 is held without PodGroup \"pd-pd-1\": no such kind";
        assert_eq!(seen, [(Some(1), HoldReason::PodGroupMissing, message)]);
        let pods: Vec<_> = held[0].pods.each(&GroupView::default()).map(|pod| pod.pod.name.to_string()).collect();
        assert_eq!(pods, ["prefill-4", "decode-3"], "what is not committed waits for that first");
        let kinds = [("pd-pd-0".to_owned(), KUBE_POD_GROUP), ("pd-pd-1".to_owned(), KUBE_POD_GROUP)];
        assert_eq!(awaited(&group(), &release), BTreeMap::from(kinds));
    }

    #[test]
    fn a_scheduled_batch_is_loosened() {
        let released = [("prefill".to_owned(), 4), ("decode".to_owned(), 2)].into();
        let gangs = batch_pod_groups(&group(), &view(4, true), &released);
        assert_eq!(gangs.iter().map(|gang| gang.min_member).collect::<Vec<_>>(), [1]);
    }

    #[test]
    fn a_batch_that_is_made_anew_starts_together_again() {
        let mut group = group();
        let entry = |phase: &str| json!({ "coordination": "pd", "batch": 0, "phase": phase, "attempt": 1 });
        let released = [("prefill".to_owned(), 4), ("decode".to_owned(), 2)].into();
        let mut gang = |phase: &str, scheduled| {
            group.status.recoveries = vec![serde_json::from_value(entry(phase)).unwrap()];
            let gangs = batch_pod_groups(&group, &view(4, scheduled), &released);
            (gangs[0].min_member, gangs[0].renewed)
        };
        assert_eq!(gang("Recreating", false), (6, true));
        assert_eq!(gang("Releasing", false), (6, true));
        assert_eq!(gang("Releasing", true), (1, false), "it was scheduled again");
        assert_eq!(gang("Complete", false), (6, false), "what is lost afterwards comes back one by one");
    }

    #[test]
    fn those_of_desired_replicas_last_whether_they_were_made_or_not() {
        let mut view = view(4, false);
        let last = |view: &GroupView| -> Vec<_> {
            lasting_pod_groups(&group(), view).into_iter().map(|(_, name)| name).collect()
        };
        assert_eq!(last(&view), ["pd-pd-0", "pd-pd-1"]);
        view.roles.get_mut("prefill").unwrap().desired = 4;
        assert_eq!(last(&view), ["pd-pd-0", "pd-pd-1"], "the other role still has pods in the second");
        view.roles.get_mut("decode").unwrap().desired = 2;
        assert_eq!(last(&view), ["pd-pd-0"]);
    }

    #[test]
    fn a_batch_without_policy_has_none() {
        let plain = mk_group(
            &[("prefill", 8)],
            &json!([crate::plan::test_support::mk_segments("pd", "Ordered", &[("prefill", 4)])]),
        );
        assert!(batch_pod_groups(&plain, &view(8, true), &[("prefill".to_owned(), 8)].into()).is_empty());
        assert_eq!(pod_group_of(&plain, "prefill", 0), None);
    }
}
