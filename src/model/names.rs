//! Keys of labels, annotations and gates: ours, and those of the neighbours that are read.

/// The scheduling gate. A pod that carries it is held.
pub const GATE: &str = "rolegate.dev/hold";

/// Label that ties a pod or workload to a group, where no other label scheme does.
pub const GROUP: &str = "rolegate.dev/group";
/// Label that ties a pod or workload to a role of its group.
pub const ROLE: &str = "rolegate.dev/role";
/// Namespace label that takes a namespace out, whatever its value.
pub const IGNORE: &str = "rolegate.dev/ignore";
/// Annotation that switches discovery, `enabled` or `disabled`: on for Grove sets, off for groups.
pub const DISCOVERY: &str = "rolegate.dev/discovery";
/// Annotation on held pods, `<group>/<coordination>`: where to look for the reason.
pub const HELD_BY: &str = "rolegate.dev/held-by";

/// RBG ≥ v0.7: group of a pod.
pub const RBG_GROUP: &str = "rbg.workloads.x-k8s.io/group-name";
/// RBG ≥ v0.7: role of a pod.
pub const RBG_ROLE: &str = "rbg.workloads.x-k8s.io/role-name";
/// RBG ≥ v0.7: name of the RoleInstance, which ends in the ordinal (`role-instance-index` is wrong in real pods).
pub const RBG_INSTANCE: &str = "rbg.workloads.x-k8s.io/role-instance-name";
/// RBG ≥ v0.7: pods in one RoleInstance.
pub const RBG_INSTANCE_SIZE: &str = "rbg.workloads.x-k8s.io/component-size";

/// RBG ≤ v0.6 and KEP-75: group of a pod.
pub const KEP75_GROUP: &str = "rolebasedgroup.workloads.x-k8s.io/name";
/// RBG ≤ v0.6 and KEP-75: role of a pod.
pub const KEP75_ROLE: &str = "rolebasedgroup.workloads.x-k8s.io/role";
/// KEP-75: replicas of the pod's role in one batch.
pub const KEP75_SUBGROUP_SIZE: &str = "rolebasedgroup.workloads.x-k8s.io/role-subgroup-size";
/// KEP-75: ordinal of the pod's replica.
pub const KEP75_INSTANCE_INDEX: &str = "rolebasedgroup.workloads.x-k8s.io/role-instance-index";
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
/// KAI: leaf of its PodGroup that a pod is in.
pub const KAI_SUBGROUP: &str = "kai.scheduler/subgroup-name";

/// Label schemes that tie a pod to a group, in order of precedence: (group key, role key).
pub const LABEL_SCHEMES: &[(&str, &str)] = &[(GROUP, ROLE), (RBG_GROUP, RBG_ROLE), (KEP75_GROUP, KEP75_ROLE)];

/// Longest value of a label.
pub const LABEL_VALUE_MAX: usize = 63;

/// A text as a label value: unchanged when it fits, else cut and given a hash of the whole, so that two long names stay
/// two values. The same text gives the same value in every release.
pub fn label_value(text: &str) -> String {
    if text.len() <= LABEL_VALUE_MAX {
        return text.to_owned();
    }
    let hash = format!("{:08x}", fnv1a(text.as_bytes()));
    let head: String = text.chars().take(LABEL_VALUE_MAX - hash.len() - 1).collect();
    format!("{}-{hash}", head.trim_end_matches(['-', '.', '_']))
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
}
