//! Keys of labels, annotations and gates: ours, and those of the neighbours that are read.

/// Label of pods that are about to be taken away with their segment: `true`.
pub const DRAINING: &str = "rolegate.dev/draining";
/// Label of one pod of each released segment: the name of its group, whose autoscalers count these pods.
pub const SCALE_POD: &str = "rolegate.dev/scale-pod";
/// Cost of a pod's deletion: of a Deployment's pods the cheapest go first.
pub const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";
/// The scheduling gate. A pod that carries it is held.
pub const GATE: &str = "rolegate.dev/hold";

/// Label that ties a pod or workload to a group, where no other label scheme does.
pub const GROUP: &str = "rolegate.dev/group";
/// Label that ties a pod or workload to a role of its group.
pub const ROLE: &str = "rolegate.dev/role";
/// Label of batched pods: the batch that they are in, from 0, whatever strategy makes it. Those of other roles with the same
/// value serve together.
pub const SEGMENT: &str = "rolegate.dev/segment";
/// Namespace label that takes a namespace out, whatever its value.
pub const IGNORE: &str = "rolegate.dev/ignore";
/// Namespace label that names the mode in which a namespace is served: `enforce`, `warn` or `observe`.
pub const MODE: &str = "rolegate.dev/mode";
/// Annotation of our own Lease: which namespaces are served, a LabelSelector as JSON.
pub const NAMESPACE_SELECTOR: &str = "rolegate.dev/namespace-selector";
/// Label of pods in a rollingUpdate coordination: the revision they were made at, whoever made them (KEP-30, Router).
pub const REVISION: &str = "rolegate.dev/revision";
/// Label of pods in a rollingUpdate coordination: equal for those of all roles that were rolled together, and another one
/// than that of the pods before.
pub const COHORT: &str = "rolegate.dev/cohort";
/// Annotation that claims a workload for rollouts in lockstep though another controller owns it.
pub const ROLLOUT: &str = "rolegate.dev/rollout";
/// Annotation of a workload with an open rollout: the partition that its user asked for.
pub const USER_PARTITION: &str = "rolegate.dev/user-partition";
/// Annotation of a workload whose claim was taken away in the middle of a rollout, `<group>/<role>`: it stays frozen for a
/// while, since the claim may come back.
pub const UNCLAIMED: &str = "rolegate.dev/unclaimed";
/// `USER_PARTITION` of a workload that a RoleBasedGroup controls: its operator takes an annotation that it has not written
/// for an edit, and begins the rollout anew, unless the key has this prefix.
pub const USER_PARTITION_IN_RBG: &str = "rolebasedgroup.workloads.x-k8s.io/rolegate-user-partition";
/// `UNCLAIMED` of such a workload.
pub const UNCLAIMED_IN_RBG: &str = "rolebasedgroup.workloads.x-k8s.io/rolegate-unclaimed";
/// Keys of the partition that a workload's user asked for.
pub const USER_PARTITIONS: &[&str] = &[USER_PARTITION, USER_PARTITION_IN_RBG];
/// Keys of a claim that was taken away.
pub const UNCLAIMEDS: &[&str] = &[UNCLAIMED, UNCLAIMED_IN_RBG];
/// Annotation of a KAI PodGroup that asks for its pods to be placed, `enabled`; of a pod that may come before its PodGroup.
pub const PLACE: &str = "rolegate.dev/place";
/// Annotation of a KAI PodGroup: how many pods of each leaf may go, and into which domains.
pub const PLACEMENT: &str = "rolegate.dev/placement";
/// Label of a pod that is held until its KAI PodGroup has a place for it: the name of that, or what stands for it.
pub const PLACED_BY: &str = "rolegate.dev/pod-group";
/// Annotation that switches discovery, `enabled` or `disabled`: on for Grove sets, off for groups.
pub const DISCOVERY: &str = "rolegate.dev/discovery";
/// Annotation on what carries a group, RFC 3339: what waited for a person by then goes on.
pub const RESUMED_AT: &str = "rolegate.dev/resumed-at";
/// Annotation on pods that were released to a place, `key=value,key=value`: the entries of `nodeSelector` that are ours.
pub const PINNED: &str = "rolegate.dev/pinned";
/// Annotation on held pods, `<group>/<coordination>`: where to look for the reason.
pub const HELD_BY: &str = "rolegate.dev/held-by";
/// Annotation on held pods, `<group>/<role>`: what they were born as, whatever their labels say since.
pub const BORN_AS: &str = "rolegate.dev/born-as";
/// Annotation on held pods, `RoleBasedGroup.v1alpha1.workloads.x-k8s.io`: kind of the object that carries their group. While
/// that kind is not served, nobody can say that the group is gone.
pub const CARRIER: &str = "rolegate.dev/carrier";

/// Finalizer of ClusterTopologies: they go when nothing refers to them any more.
pub const TOPOLOGY_FINALIZER: &str = "rolegate.dev/topology-protection";

/// RBG ≥ v0.7: group of a pod.
pub const RBG_GROUP: &str = "rbg.workloads.x-k8s.io/group-name";
/// RBG ≥ v0.7: role of a pod.
pub const RBG_ROLE: &str = "rbg.workloads.x-k8s.io/role-name";
/// RBG ≥ v0.7: name of the RoleInstance, which ends in the ordinal (`role-instance-index` is wrong in real pods).
pub const RBG_INSTANCE: &str = "rbg.workloads.x-k8s.io/role-instance-name";
/// RBG ≥ v0.7: one gang over all pods of a group (annotation of the group, `true`).
pub const RBG_GANG: &str = "rbg.workloads.x-k8s.io/group-gang-scheduling";
/// RBG ≥ v0.7: pods in one RoleInstance.
pub const RBG_INSTANCE_SIZE: &str = "rbg.workloads.x-k8s.io/component-size";

/// RBG ≥ v0.7: index of a pod in its RoleInstance; absent where an instance is one pod, or is made of custom components.
pub const RBG_MEMBER: &str = "rbg.workloads.x-k8s.io/component-index";

/// RBG ≤ v0.6 and KEP-75: group of a pod.
pub const KEP75_GROUP: &str = "rolebasedgroup.workloads.x-k8s.io/name";
/// RBG ≤ v0.6 and KEP-75: role of a pod.
pub const KEP75_ROLE: &str = "rolebasedgroup.workloads.x-k8s.io/role";
/// KEP-75: replicas of the pod's role in one batch.
pub const KEP75_SUBGROUP_SIZE: &str = "rolebasedgroup.workloads.x-k8s.io/role-subgroup-size";
/// KEP-75: ordinal of the pod's replica.
pub const KEP75_INSTANCE_INDEX: &str = "rolebasedgroup.workloads.x-k8s.io/role-instance-index";
/// KEP-75: coordination that keeps the pod's batch in one domain.
pub const KEP75_COORDINATION: &str = "rolebasedgroup.workloads.x-k8s.io/topology-coordination-name";
/// KEP-75: the pod's batch in that coordination, `<coordination>-<batch>`.
pub const KEP75_BATCH: &str = "rolebasedgroup.workloads.x-k8s.io/deploy-topology-coordination-name";
/// KEP-30: start of the label that says which coordination a pod is in; the coordination's name follows.
pub const KEP30_MEMBER_PREFIX: &str = "coordination.workloads.x-k8s.io/";
/// KEP-30: value of that label.
pub const KEP30_MEMBER: &str = "member";
/// RBG ≤ v0.6: name of the Instance, which ends in the ordinal.
pub const INSTANCE_NAME: &str = "instance.workloads.x-k8s.io/instance-name";

/// LeaderWorkerSet: name of the set; its pods carry it from the start.
pub const LWS_NAME: &str = "leaderworkerset.sigs.k8s.io/name";
/// LeaderWorkerSet: ordinal of the group. Workers are born with it, leaders get it from LWS's own webhook.
pub const LWS_GROUP_INDEX: &str = "leaderworkerset.sigs.k8s.io/group-index";
/// LeaderWorkerSet: ordinal in the group, `0` is the leader.
pub const LWS_WORKER_INDEX: &str = "leaderworkerset.sigs.k8s.io/worker-index";
/// LeaderWorkerSet: pods in one group (annotation).
pub const LWS_SIZE: &str = "leaderworkerset.sigs.k8s.io/size";

/// StatefulSet: index of the pod, counted from `spec.ordinals.start`.
pub const POD_INDEX: &str = "apps.kubernetes.io/pod-index";

/// Indexed Job: the completion index of a pod (annotation).
pub const COMPLETION_INDEX: &str = "batch.kubernetes.io/job-completion-index";

/// JobSet: name of the set; its pods carry it from the start.
pub const JOBSET_NAME: &str = "jobset.sigs.k8s.io/jobset-name";
/// JobSet: which of its templates (replicatedJobs) a pod's Job is made of.
pub const JOBSET_TEMPLATE: &str = "jobset.sigs.k8s.io/replicatedjob-name";
/// JobSet: how many Jobs are made of that template.
pub const JOBSET_REPLICAS: &str = "jobset.sigs.k8s.io/replicatedjob-replicas";
/// JobSet: its pods are made after the first of their Job has a node (annotation).
pub const JOBSET_EXCLUSIVE_TOPOLOGY: &str = "alpha.jobset.sigs.k8s.io/exclusive-topology";
/// Annotation of the pods of a JobSet that makes several Jobs of one template: how many pods run in each. Then a Job is a
/// replica.
pub const REPLICA_SIZE: &str = "rolegate.dev/replica-size";

/// StatefulSet: name of the pod, also where the pod itself has no name yet. RBG's RoleInstanceSets write it too, and wrong.
pub const STATEFUL_SET_POD: &str = "statefulset.kubernetes.io/pod-name";

/// Name of the application that an object is a part of: with Grove, the set.
pub const PART_OF: &str = "app.kubernetes.io/part-of";
/// Grove: PodClique of a pod, `<set>-<replica>[-<scaling group>-<replica>]-<clique>`.
pub const GROVE_CLIQUE: &str = "grove.io/podclique";
/// Grove: copy of the set that a pod is in; the second spelling is from before the kind was renamed.
pub const GROVE_SET_REPLICA: &[&str] = &["grove.io/podcliqueset-replica-index", "grove.io/podgangset-replica-index"];
/// Grove: scaling group of a pod, `<set>-<replica>-<scaling group>`; absent in standalone cliques.
pub const GROVE_SCALING_GROUP: &str = "grove.io/podcliquescalinggroup";
/// Grove: copy of the scaling group that a pod is in.
pub const GROVE_SCALING_GROUP_REPLICA: &str = "grove.io/podcliquescalinggroup-replica-index";
/// Grove: index of a pod in its clique; releases before v0.1.0-alpha.8 have it in the hostname only.
pub const GROVE_POD_INDEX: &str = "grove.io/podclique-pod-index";

/// KAI: PodGroup of a pod, in its own namespace (annotation, without a prefix).
pub const KAI_POD_GROUP: &str = "pod-group-name";
/// KAI v0.15 and later: its podgrouper leaves the pod in the PodGroup that it names (annotation, `true`).
pub const KAI_SKIP_PODGROUPER: &str = "kai.scheduler/skip-podgrouper";
/// KAI: leaf of its PodGroup that a pod is in.
pub const KAI_SUBGROUP: &str = "kai.scheduler/subgroup-name";

/// Scheduler plugins: PodGroup of a pod (label).
pub const KUBE_POD_GROUP: &str = "scheduling.x-k8s.io/pod-group";
/// Volcano: PodGroup of a pod (annotation).
pub const VOLCANO_POD_GROUP: &str = "scheduling.k8s.io/group-name";

/// Kueue: queue of an object, by which it says that it is queued (label).
pub const KUEUE_QUEUE: &str = "kueue.x-k8s.io/queue-name";
/// Kueue: on pods that it queues, `true` (label).
pub const KUEUE_MANAGED: &str = "kueue.x-k8s.io/managed";
/// Kueue: kind of the workload whose pods it queues together with this one (annotation).
pub const KUEUE_PARENT: &str = "kueue.x-k8s.io/pod-suspending-parent";
/// Kueue: what it queues this pod together with (annotation, before v0.17 a label).
pub const KUEUE_POD_GROUP: &str = "kueue.x-k8s.io/pod-group-name";
/// Kueue: who has to let go of an object before it asks for a quota, separated by commas (annotation, since v0.17; by default
/// since v0.19).
pub const KUEUE_GATED_BY: &str = "kueue.x-k8s.io/admission-gated-by";
/// Kueue: gates that it lifts when there is a quota for the pod, and when it has a place for it. With either it may write on
/// which nodes the pod runs.
pub const KUEUE_GATES: &[&str] = &["kueue.x-k8s.io/admission", "kueue.x-k8s.io/topology"];
/// Kueue: by any of these annotations a pod asks for a place in a topology.
pub const KUEUE_TOPOLOGY: &[&str] = &[
    "kueue.x-k8s.io/podset-required-topology",
    "kueue.x-k8s.io/podset-preferred-topology",
    "kueue.x-k8s.io/podset-unconstrained-topology",
    "kueue.x-k8s.io/podset-slice-required-topology",
    "kueue.x-k8s.io/podset-slice-required-topology-constraints",
];

/// StatefulSet, DaemonSet and RBG: revision that a pod was made at.
pub const CONTROLLER_REVISION: &str = "controller-revision-hash";

/// LeaderWorkerSet: revision of its templates, on its pods and on the StatefulSet of its leaders.
pub const LWS_REVISION: &str = "leaderworkerset.sigs.k8s.io/template-revision-hash";

/// Labels that name the revision a pod was made at, the more special first: the StatefulSets behind a LeaderWorkerSet have
/// revisions of their own, which differ from group to group.
pub const REVISION_LABELS: &[&str] =
    &[LWS_REVISION, CONTROLLER_REVISION, "grove.io/pod-template-hash", "pod-template-hash"];

/// Label schemes that tie a pod to a group, in order of precedence: (group key, role key).
pub const LABEL_SCHEMES: &[(&str, &str)] = &[(GROUP, ROLE), (RBG_GROUP, RBG_ROLE), (KEP75_GROUP, KEP75_ROLE)];

/// Labels by which a workload claims to be rolled in lockstep.
pub fn claims() -> Vec<&'static str> {
    LABEL_SCHEMES.iter().flat_map(|(group, role)| [*group, *role]).collect()
}

/// Annotations of a workload that say how it is rolled: of its claim, and our notes of an open rollout.
pub const NOTES_OF_WORKLOADS: &[&str] = &[ROLLOUT, USER_PARTITION, USER_PARTITION_IN_RBG, UNCLAIMED, UNCLAIMED_IN_RBG];

/// Annotations of groups, PodGroups and sets that rules look at. Labels of these are looked at by none.
pub const NOTES_OF_OBJECTS: &[&str] = &[GROUP, DISCOVERY, PLACE, PLACEMENT, RBG_GANG];

/// Labels of a pod that came before its group and names none: our loop found that the workload of a role made it, and so knows
/// its group and role.
pub const ADOPTED: (&str, &str) = ("rolegate.dev/adopted-group", "rolegate.dev/adopted-role");

/// Label schemes of pods: what a pod says itself goes before what was found.
pub fn pod_schemes() -> impl DoubleEndedIterator<Item = (&'static str, &'static str)> {
    LABEL_SCHEMES.iter().copied().chain([ADOPTED])
}

/// Labels that a maker gives to its pods: without an owner who has them is a copy.
pub const MAKERS_LABELS: &[&str] =
    &[STATEFUL_SET_POD, POD_INDEX, "pod-template-hash", CONTROLLER_REVISION, LWS_NAME, JOBSET_NAME];

/// Longest value of a label.
pub const LABEL_VALUE_MAX: usize = 63;

/// A text as a label value: unchanged when it is one, else cut and given a hash of the whole, so that two texts stay two
/// values. The same text gives the same value in every release.
pub fn label_value(text: &str) -> String {
    if is_label_value(text) {
        return text.to_owned();
    }
    let hash = format!("{:08x}", fnv1a(text.as_bytes()));
    let allowed = |letter: char| if is_inner(letter) { letter } else { '-' };
    let head: String = text.chars().map(allowed).take(LABEL_VALUE_MAX - hash.len() - 1).collect();
    let head = head.trim_matches(|letter: char| !letter.is_ascii_alphanumeric());
    if head.is_empty() { hash } else { format!("{head}-{hash}") }
}

/// True for what a label can say as it stands. No object carries anything else, and in a selector it may mean something
/// else.
pub fn is_label_value(text: &str) -> bool {
    text.len() <= LABEL_VALUE_MAX
        && text.chars().all(is_inner)
        && text.starts_with(|letter: char| letter.is_ascii_alphanumeric())
        && text.ends_with(|letter: char| letter.is_ascii_alphanumeric())
}

fn is_inner(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.')
}

/// 32-bit FNV-1a: stable across releases and platforms, which the standard library's hasher does not promise.
fn fnv1a(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_text_is_its_own_label_value() {
        assert_eq!(label_value("pd"), "pd");
        assert_eq!(label_value(&"a".repeat(63)), "a".repeat(63));
    }

    #[test]
    fn long_texts_fit_and_stay_apart() {
        let (one, two) = (label_value(&format!("{}1", "a".repeat(80))), label_value(&format!("{}2", "a".repeat(80))));
        assert_eq!(one.len(), 63);
        assert_ne!(one, two);
    }

    #[test]
    fn what_is_no_label_value_becomes_one() {
        for text in ["My Coordination!", "-a", "a.", "ä", "", &"é".repeat(100)] {
            let value = label_value(text);
            assert!(value.len() <= LABEL_VALUE_MAX && is_label_value(&value), "{text:?} became {value:?}");
        }
        assert_ne!(label_value("a b"), label_value("a-b"));
    }
}
