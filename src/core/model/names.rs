//! Keys of labels, annotations and gates: rolegate's own, and those of other projects that it reads.

/// Label of pods that are about to be removed with their segment: `true`.
pub const DRAINING: &str = "rolegate.dev/draining";
/// Label of one pod of each released segment, which autoscalers count: the name of the group.
pub const SCALE_POD: &str = "rolegate.dev/scale-pod";
/// Annotation with the cost of a pod's deletion: a Deployment deletes its cheapest pods first.
pub const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";
/// The scheduling gate; a pod that carries it is held.
pub const GATE: &str = "rolegate.dev/hold";

/// The node label with a unique value for each node.
pub const HOSTNAME: &str = "kubernetes.io/hostname";

/// Label that ties a pod or workload to a group, where no other label scheme does.
pub const GROUP: &str = "rolegate.dev/group";
/// Label that ties a pod or workload to a role of its group.
pub const ROLE: &str = "rolegate.dev/role";
/// Label of batched pods: the number of the batch, from 0, for every strategy. Pods of other roles with the same value serve
/// together.
pub const SEGMENT: &str = "rolegate.dev/segment";
/// Label that excludes a namespace, with any value.
pub const IGNORE: &str = "rolegate.dev/ignore";
/// Label with the mode of a namespace: `enforce`, `warn` or `observe`.
pub const MODE: &str = "rolegate.dev/mode";
/// Annotation of rolegate's own Lease: the served namespaces, a LabelSelector as JSON.
pub const NAMESPACE_SELECTOR: &str = "rolegate.dev/namespace-selector";
/// Annotation of rolegate's own Lease: the kinds whose objects `readyWhen` may name.
pub const READY_KINDS: &str = "rolegate.dev/ready-kinds";
/// Annotation of rolegate's own Lease: the resources that need not be on a node.
pub const IGNORED_RESOURCES: &str = "rolegate.dev/ignored-resources";
/// Label of pods in a rollingUpdate coordination: the revision that they were created at, under any controller (KEP-30,
/// Router).
pub const REVISION: &str = "rolegate.dev/revision";
/// Label of pods in a rollingUpdate coordination: equal for all roles that were rolled together, and different from that of
/// earlier pods.
pub const COHORT: &str = "rolegate.dev/cohort";
/// Annotation that claims a workload for rollouts in lockstep although another controller owns it.
pub const ROLLOUT: &str = "rolegate.dev/rollout";
/// Annotation of a workload with an open rollout: the partition that its user set.
pub const USER_PARTITION: &str = "rolegate.dev/user-partition";
/// Annotation beside `USER_PARTITION`: the field manager that applies that partition server-side. Each step of the rollout takes
/// the field from it, so only this tells that its next apply leaves the partition out.
pub const USER_PARTITION_BY: &str = "rolegate.dev/user-partition-by";
/// Annotation of a workload whose claim was removed during a rollout, `<group>/<role>`: it stays frozen for a while, since the
/// claim may come back.
pub const UNCLAIMED: &str = "rolegate.dev/unclaimed";
/// `USER_PARTITION` of a workload that a RoleBasedGroup controls: RBG's operator takes an annotation of others for an edit and
/// restarts the rollout, unless the key has this prefix.
pub const USER_PARTITION_IN_RBG: &str = "rolebasedgroup.workloads.x-k8s.io/rolegate-user-partition";
/// `UNCLAIMED` of a workload that a RoleBasedGroup controls.
pub const UNCLAIMED_IN_RBG: &str = "rolebasedgroup.workloads.x-k8s.io/rolegate-unclaimed";
/// Keys of the partition that a workload's user set.
pub const USER_PARTITIONS: &[&str] = &[USER_PARTITION, USER_PARTITION_IN_RBG];
/// Keys of a removed claim.
pub const UNCLAIMEDS: &[&str] = &[UNCLAIMED, UNCLAIMED_IN_RBG];
/// Annotation of a KAI PodGroup that asks for its pods to be placed, `enabled`; also of a pod that may be created before its
/// PodGroup.
pub const PLACE: &str = "rolegate.dev/place";
/// Annotation of a KAI PodGroup: the number of released pods of each leaf, and their domains.
pub const PLACEMENT: &str = "rolegate.dev/placement";
/// Label of a pod that is held until its KAI PodGroup has a place for it: the name of the PodGroup as a label value.
pub const PLACED_BY: &str = "rolegate.dev/pod-group";
/// Annotation that switches discovery, `enabled` or `disabled`; on by default for Grove sets, off for groups.
pub const DISCOVERY: &str = "rolegate.dev/discovery";
/// Annotation of a Grove set: how far its pods find each other, one of [`super::clique_set::DISCOVERY_SCOPES`].
pub const DISCOVERY_SCOPE: &str = "rolegate.dev/discovery-scope";
/// Annotation of a pod, on its template: the engines in it and their settings, `vllm; scope=role`.
pub const ENGINE: &str = "rolegate.dev/engine";
/// Annotation of a pod, `container=NAME,NAME;…`: the variables that each of its containers has for its engine. It tells them
/// from the user's own when the pod is reviewed again.
pub const ENGINE_VARIABLES: &str = "rolegate.dev/engine-variables";
/// Annotation of a pod whose engine meets pods of other replicas, `role=4`: the scope, and the number of pods that met when it was
/// created. A scale outdates it.
pub const ENGINE_PODS: &str = "rolegate.dev/engine-pods";
/// Label of a pod with an engine: its place among the pods of its process group, from 0. A router selects leaders by it.
pub const NODE_RANK: &str = "rolegate.dev/node-rank";
/// Label of a pod with an engine: the phase that it serves, `prefill` or `decode`.
pub const SERVES: &str = "rolegate.dev/serves";
/// llm-d: the phase that a pod serves.
pub const LLM_D_ROLE: &str = "llm-d.ai/role";
/// llm-d's router, and `DisaggregatedSet`: role of a pod.
pub const DISAGGREGATED_ROLE: &str = "disaggregatedset.x-k8s.io/role";
/// llm-d's router, and `DisaggregatedSet`: revision of all roles, equal for pods that may serve together.
pub const DISAGGREGATED_REVISION: &str = "disaggregatedset.x-k8s.io/revision";
/// llm-d's router, and `DisaggregatedSet`: copy of all roles, whose pods are to serve together.
pub const DISAGGREGATED_SLICE: &str = "disaggregatedset.x-k8s.io/slice";
/// SGLang's router: port of the bootstrap server of a prefill (annotation).
pub const SGLANG_BOOTSTRAP_PORT: &str = "sglang.ai/bootstrap-port";

/// Annotation of the object that carries a group, RFC 3339: recoveries that waited for a person at that time go on.
pub const RESUMED_AT: &str = "rolegate.dev/resumed-at";
/// Annotation of the object that carries a group, RFC 3339: rollouts that paused at that time go on.
pub const ROLLOUT_RESUMED_AT: &str = "rolegate.dev/rollout-resumed-at";
/// Annotation of the object that carries a group, RFC 3339: rollouts that were under way at that time go back.
pub const ROLLED_BACK_AT: &str = "rolegate.dev/rollout-rolled-back-at";
/// Annotation of pods that were released to a place, `key=value,key=value`: rolegate's entries in `nodeSelector`.
pub const PINNED: &str = "rolegate.dev/pinned";
/// Annotation of held pods, `<group>/<coordination>`: the coordination that tells the reason.
pub const HELD_BY: &str = "rolegate.dev/held-by";
/// Annotation of held pods, `<group>/<role>`: their group and role at creation, whatever their labels say later.
pub const BORN_AS: &str = "rolegate.dev/born-as";
/// Annotation of held pods, `RoleBasedGroup.v1alpha1.workloads.x-k8s.io`: kind of the object that carries their group. While
/// that kind is not served, it is unknown whether the group is gone.
pub const CARRIER: &str = "rolegate.dev/carrier";

/// Label of the objects that request nodes, and of the pods that they are for: the name of the request.
pub const REQUEST: &str = "rolegate.dev/request";
/// cluster-autoscaler: the ProvisioningRequest whose nodes a pod uses (annotation).
pub const CONSUME_REQUEST: &str = "autoscaling.x-k8s.io/consume-provisioning-request";
/// cluster-autoscaler: the class of that ProvisioningRequest (annotation).
pub const REQUEST_CLASS: &str = "autoscaling.x-k8s.io/provisioning-class-name";

/// Finalizer of ClusterTopologies: it keeps a topology until nothing refers to it.
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

/// RBG ≥ v0.7: index of a pod in its RoleInstance; absent if an instance is one pod, or has custom components.
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
/// KEP-30: prefix of the label that tells a pod's coordination; the name of the coordination follows.
pub const KEP30_MEMBER_PREFIX: &str = "coordination.workloads.x-k8s.io/";
/// KEP-30: value of that label.
pub const KEP30_MEMBER: &str = "member";
/// RBG ≤ v0.6: name of the Instance, which ends in the ordinal.
pub const INSTANCE_NAME: &str = "instance.workloads.x-k8s.io/instance-name";

/// LeaderWorkerSet: name of the set; its pods carry it from creation.
pub const LWS_NAME: &str = "leaderworkerset.sigs.k8s.io/name";
/// Annotation of a LeaderWorkerSet: workers follow their leader into its domain.
pub const LWS_EXCLUSIVE_TOPOLOGY: &str = "leaderworkerset.sigs.k8s.io/exclusive-topology";
/// Annotation of a LeaderWorkerSet: each subgroup has a domain for itself.
pub const LWS_SUBGROUP_EXCLUSIVE_TOPOLOGY: &str = "leaderworkerset.sigs.k8s.io/subgroup-exclusive-topology";
/// LeaderWorkerSet: ordinal of the group. Workers carry it from creation, leaders get it from LWS's own webhook.
pub const LWS_GROUP_INDEX: &str = "leaderworkerset.sigs.k8s.io/group-index";
/// LeaderWorkerSet: ordinal in the group, `0` is the leader.
pub const LWS_WORKER_INDEX: &str = "leaderworkerset.sigs.k8s.io/worker-index";
/// LeaderWorkerSet: pods in one group (annotation).
pub const LWS_SIZE: &str = "leaderworkerset.sigs.k8s.io/size";

/// StatefulSet: index of the pod, counted from `spec.ordinals.start`.
pub const POD_INDEX: &str = "apps.kubernetes.io/pod-index";

/// Indexed Job: the completion index of a pod (annotation).
pub const COMPLETION_INDEX: &str = "batch.kubernetes.io/job-completion-index";

/// JobSet: name of the set; its pods carry it from creation.
pub const JOBSET_NAME: &str = "jobset.sigs.k8s.io/jobset-name";
/// JobSet: template (replicatedJob) of a pod's Job.
pub const JOBSET_TEMPLATE: &str = "jobset.sigs.k8s.io/replicatedjob-name";
/// JobSet: number of Jobs of that template.
pub const JOBSET_REPLICAS: &str = "jobset.sigs.k8s.io/replicatedjob-replicas";
/// JobSet: the pods of a Job are created after its first pod has a node (annotation).
pub const JOBSET_EXCLUSIVE_TOPOLOGY: &str = "alpha.jobset.sigs.k8s.io/exclusive-topology";
/// Annotation of the pods of a JobSet with several Jobs of one template: the number of pods in each Job. A Job then is a
/// replica.
pub const REPLICA_SIZE: &str = "rolegate.dev/replica-size";

/// StatefulSet: name of the pod, even before the pod itself has one. RBG's RoleInstanceSets write it too, with wrong values.
pub const STATEFUL_SET_POD: &str = "statefulset.kubernetes.io/pod-name";

/// Name of the application of an object; with Grove, the set.
pub const PART_OF: &str = "app.kubernetes.io/part-of";
/// Grove: PodClique of a pod, `<set>-<replica>[-<scaling group>-<replica>]-<clique>`.
pub const GROVE_CLIQUE: &str = "grove.io/podclique";
/// Grove: index of the set's copy that a pod is in; the second key is from before the kind was renamed.
pub const GROVE_SET_REPLICA: &[&str] = &["grove.io/podcliqueset-replica-index", "grove.io/podgangset-replica-index"];
/// Grove: scaling group of a pod, `<set>-<replica>-<scaling group>`; absent in standalone cliques.
pub const GROVE_SCALING_GROUP: &str = "grove.io/podcliquescalinggroup";
/// Grove: index of the scaling group's copy that a pod is in.
pub const GROVE_SCALING_GROUP_REPLICA: &str = "grove.io/podcliquescalinggroup-replica-index";
/// Grove: index of a pod in its clique; releases before v0.1.0-alpha.8 have it in the hostname only.
pub const GROVE_POD_INDEX: &str = "grove.io/podclique-pod-index";

/// KAI: PodGroup of a pod, in its own namespace (annotation, without a prefix).
pub const KAI_POD_GROUP: &str = "pod-group-name";
/// KAI ≥ v0.15: its podgrouper leaves the pod in the PodGroup that the pod names (annotation, `true`).
pub const KAI_SKIP_PODGROUPER: &str = "kai.scheduler/skip-podgrouper";
/// KAI: leaf of its PodGroup that a pod is in.
pub const KAI_SUBGROUP: &str = "kai.scheduler/subgroup-name";

/// Scheduler plugins: PodGroup of a pod (label).
pub const KUBE_POD_GROUP: &str = "scheduling.x-k8s.io/pod-group";
/// Volcano: PodGroup of a pod (annotation).
pub const VOLCANO_POD_GROUP: &str = "scheduling.k8s.io/group-name";

/// Kueue: queue of an object, which marks the object as queued (label).
pub const KUEUE_QUEUE: &str = "kueue.x-k8s.io/queue-name";
/// Kueue: mark of the pods that it queues, `true` (label).
pub const KUEUE_MANAGED: &str = "kueue.x-k8s.io/managed";
/// Kueue: kind of the workload whose pods it queues together with this one (annotation).
pub const KUEUE_PARENT: &str = "kueue.x-k8s.io/pod-suspending-parent";
/// Kueue: group of pods that are queued together (annotation, before v0.17 a label).
pub const KUEUE_POD_GROUP: &str = "kueue.x-k8s.io/pod-group-name";
/// Kueue: comma-separated gates that must be lifted before it asks for a quota (annotation, since v0.17; by default since
/// v0.19).
pub const KUEUE_GATED_BY: &str = "kueue.x-k8s.io/admission-gated-by";
/// Kueue: the gate that it lifts when it has a quota for the pod, and the gate that it lifts when it has a place for it. With
/// either it may set the nodes of the pod.
pub const KUEUE_GATES: &[&str] = &["kueue.x-k8s.io/admission", "kueue.x-k8s.io/topology"];
/// Kueue: annotations by which a pod asks for a place in a topology.
pub const KUEUE_TOPOLOGY: &[&str] = &[
    "kueue.x-k8s.io/podset-required-topology",
    "kueue.x-k8s.io/podset-preferred-topology",
    "kueue.x-k8s.io/podset-unconstrained-topology",
    "kueue.x-k8s.io/podset-slice-required-topology",
    "kueue.x-k8s.io/podset-slice-required-topology-constraints",
];

/// StatefulSet, DaemonSet and RBG: revision that a pod was created at.
pub const CONTROLLER_REVISION: &str = "controller-revision-hash";

/// LeaderWorkerSet: revision of its templates, on its pods and on the StatefulSet of its leaders.
pub const LWS_REVISION: &str = "leaderworkerset.sigs.k8s.io/template-revision-hash";

/// Labels with the revision of a pod, the more specific first: the StatefulSets of a LeaderWorkerSet have revisions of their
/// own, which differ from group to group.
pub const REVISION_LABELS: &[&str] =
    &[LWS_REVISION, CONTROLLER_REVISION, "grove.io/pod-template-hash", "pod-template-hash"];

/// Label schemes that tie a pod to a group, in order of precedence: (group key, role key).
pub const LABEL_SCHEMES: &[(&str, &str)] = &[(GROUP, ROLE), (RBG_GROUP, RBG_ROLE), (KEP75_GROUP, KEP75_ROLE)];

/// Returns the labels by which a workload claims to be rolled in lockstep.
pub fn claims() -> Vec<&'static str> {
    LABEL_SCHEMES.iter().flat_map(|(group, role)| [*group, *role]).collect()
}

/// Rolegate's notes of an open rollout on a workload.
pub const NOTES_OF_ROLLOUTS: &[&str] =
    &[USER_PARTITION, USER_PARTITION_BY, USER_PARTITION_IN_RBG, UNCLAIMED, UNCLAIMED_IN_RBG];

/// Annotations of a workload that concern its rollout: its claim, and rolegate's notes of an open rollout.
pub fn notes_of_workloads() -> Vec<&'static str> {
    [ROLLOUT].iter().chain(NOTES_OF_ROLLOUTS).copied().collect()
}

/// Annotations of groups, PodGroups and Grove sets that rules read. Rules read no labels of these objects.
pub const NOTES_OF_OBJECTS: &[&str] =
    &[GROUP, DISCOVERY, DISCOVERY_SCOPE, PLACE, PLACEMENT, RBG_GANG, ROLLED_BACK_AT, RESUMED_AT, ROLLOUT_RESUMED_AT];

/// Labels of a pod that was created before its group and names none: the loop found the role by the workload that created the
/// pod.
pub const ADOPTED: (&str, &str) = ("rolegate.dev/adopted-group", "rolegate.dev/adopted-role");

/// Returns the label schemes of pods; the pod's own labels take precedence over labels from the loop.
pub fn pod_schemes() -> impl DoubleEndedIterator<Item = (&'static str, &'static str)> {
    LABEL_SCHEMES.iter().copied().chain([ADOPTED])
}

/// Labels that controllers put on their pods; a pod with one of them and without an owner is a copy.
pub const MAKERS_LABELS: &[&str] =
    &[STATEFUL_SET_POD, POD_INDEX, "pod-template-hash", CONTROLLER_REVISION, LWS_NAME, JOBSET_NAME];

pub const LABEL_VALUE_MAX: usize = 63;

/// Returns a text as a label value: unchanged if it is valid, else cut and followed by a hash of the whole, so that two texts
/// stay distinct. A text has the same value in every release.
pub fn label_value(text: &str) -> String {
    if is_label_value(text) {
        return text.to_owned();
    }
    let hash = digest(text);
    let allowed = |letter: char| if is_inner(letter) { letter } else { '-' };
    let head: String = text.chars().map(allowed).take(LABEL_VALUE_MAX - hash.len() - 1).collect();
    let head = head.trim_matches(|letter: char| !letter.is_ascii_alphanumeric());
    if head.is_empty() { hash } else { format!("{head}-{hash}") }
}

/// Reports whether a text is a valid label value. No object carries another one, and a selector may give it another meaning.
pub fn is_label_value(text: &str) -> bool {
    text.len() <= LABEL_VALUE_MAX
        && text.chars().all(is_inner)
        && text.starts_with(|letter: char| letter.is_ascii_alphanumeric())
        && text.ends_with(|letter: char| letter.is_ascii_alphanumeric())
}

fn is_inner(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.')
}

/// Returns a short hash of a text, the same in every release.
pub fn digest(text: &str) -> String {
    format!("{:08x}", fnv1a(text.as_bytes()))
}

/// 32-bit FNV-1a: stable across releases and platforms, unlike the standard library's hasher.
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
