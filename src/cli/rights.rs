//! The rights of rolegate, each with its reason: one table for the roles of `manifests` and the checks of `doctor`.
//! The tests run with exactly these rights, and find missing and unused ones.

use crate::cli::allow::Allow;
use crate::model::installation::HOLD_POLICY;

/// The namespace and the objects of a right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The whole cluster.
    Cluster,
    /// All objects in our own namespace.
    Own,
    /// Our webhook configurations, by name.
    Webhooks,
    /// The objects with our name in our own namespace: the Lease, the Deployment.
    OwnLease,
    /// The Secret of the self-managed certificates in our own namespace.
    OwnSecret,
    /// The policy that holds pods without the webhook, and its binding.
    Hold,
}

/// Verbs on resources, with the reason.
#[derive(Clone, Copy, Debug)]
pub struct Right {
    pub groups: &'static [&'static str],
    /// Resources, with their subresource after a slash.
    pub resources: &'static [&'static str],
    pub verbs: &'static [&'static str],
    pub scope: Scope,
    /// Purpose of the right.
    pub why: &'static str,
}

const READ: &[&str] = &["get", "list", "watch"];
const RBG: &[&str] = &["workloads.x-k8s.io", "workloads.instai.io"];
const TOPOLOGIES: &[&str] = &["rolegate.dev", "workloads.x-k8s.io"];
const DEVICES: &[&str] =
    &["deviceclasses", "devicetaintrules", "resourceclaims", "resourceclaimtemplates", "resourceslices"];
const STORAGE: &[&str] = &["csidrivers", "csistoragecapacities"];
const POD_GROUPS: &[&str] = &["scheduling.x-k8s.io", "scheduling.volcano.sh"];

/// Rights of the loop and the webhook, regardless of where certificates come from.
pub const RIGHTS: &[Right] = &[
    of(&[""], &["pods"], &["list", "watch", "patch"], "Pods of groups are watched; lifting a gate is a patch."),
    of(&[""], &["nodes"], &["list", "watch"], "Batches that must share a domain go to one with room."),
    of(&[""], &["persistentvolumeclaims", "persistentvolumes"], &["list", "watch"], "The same, for pods with claims."),
    of(&["storage.k8s.io"], &["storageclasses"], &["list", "watch"], "The same, for new volumes."),
    of(&["storage.k8s.io"], STORAGE, &["list", "watch"], "The same, where drivers tell what room they have."),
    of(&["resource.k8s.io"], DEVICES, &["list", "watch"], "The same, for pods that ask for devices (DRA)."),
    of(&[""], &["namespaces"], &["list", "watch"], "Namespaces that have opted out."),
    of(&["apps"], &["deployments", "statefulsets"], READ, "Desired replicas of a role, and the owner of its pods."),
    of(&["leaderworkerset.x-k8s.io"], &["leaderworkersets"], READ, "The same."),
    of(&["apps"], &["statefulsets"], &["patch"], "Partitions of claimed workloads."),
    of(&["leaderworkerset.x-k8s.io"], &["leaderworkersets"], &["patch"], "The same."),
    of(RBG, &["rolebasedgroups"], READ, "Groups."),
    of(RBG, &["rolebasedgroups/status"], &["patch"], "Releases are committed in the status."),
    of(&["rolegate.dev"], &["rolecoordinations"], READ, "Groups."),
    of(&["rolegate.dev"], &["rolecoordinations/status"], &["patch"], "The same."),
    of(TOPOLOGIES, &["clustertopologies"], &["get", "list", "watch", "patch"], "Finalizer."),
    of(TOPOLOGIES, &["clustertopologies/status"], &["patch"], "Validity."),
    of(&["workloads.x-k8s.io"], &["coordinatedpolicies"], &["get"], "Policies of groups."),
    of(&["grove.io"], &["podcliquesets", "podgangsets"], READ, "Discovery between roles of Grove sets."),
    of(
        &["scheduling.run.ai"],
        &["podgroups"],
        &["get", "list", "watch", "create", "patch", "delete"],
        "Subgroups and placement of pods of a KAI PodGroup; PodGroups of batches.",
    ),
    of(POD_GROUPS, &["podgroups"], &["get", "list", "create", "patch", "delete"], "PodGroups of batches."),
    of(&["kai.scheduler"], &["topologies"], READ, "Levels of PodGroups."),
    of(&[""], &["services"], &["get"], "A warning for addresses of groups with discovery that do not resolve."),
    of(&["policy"], &["poddisruptionbudgets"], &["list"], "A warning, since held pods count as unavailable."),
    of(
        &["apiextensions.k8s.io"],
        &["customresourcedefinitions"],
        READ,
        "Installed kinds; a deleted definition must not open every hold.",
    ),
    of(&["authorization.k8s.io"], &["subjectaccessreviews"], &["create"], "Rights of authors."),
    of(&["events.k8s.io"], &["events"], &["get", "create", "patch"], "Reasons of held pods."),
    of(&[""], &["events"], &["list"], "Causes of missing pods."),
    Right {
        groups: &["coordination.k8s.io"],
        resources: &["leases"],
        verbs: &["get", "create", "update"],
        scope: Scope::OwnLease,
        why: "Leader election. The first Lease is made by PUT: a right to create by POST cannot name it.",
    },
];

/// Rights for self-managed certificates; not needed with cert-manager.
pub const OF_CERTIFICATES: &[Right] = &[
    Right {
        groups: &[""],
        resources: &["secrets"],
        verbs: &["list", "watch", "create", "patch", "update"],
        scope: Scope::OwnSecret,
        why: "Certificates shared by the replicas. The first Secret is made by server-side apply: a right to create by POST cannot \
              name it. No other Secret can be read.",
    },
    Right {
        groups: &["admissionregistration.k8s.io"],
        resources: &["mutatingwebhookconfigurations", "validatingwebhookconfigurations"],
        verbs: &["list", "watch", "patch"],
        scope: Scope::Webhooks,
        why: "Repair of the caBundle.",
    },
];

/// Rights for `--namespace-selector`.
pub const OF_SELECTION: &[Right] = &[of(
    &["admissionregistration.k8s.io"],
    &["mutatingwebhookconfigurations"],
    &["list", "watch"],
    "Namespaces of other rolegates, in which no held pods are released.",
)];

/// Rights for `--recreate-mis-stamped`.
pub const OF_RECREATION: &[Right] =
    &[of(&[""], &["pods"], &["delete"], "Held pods that were created for another batch are recreated.")];

/// Rights for `--allow scale`.
pub const OF_SCALE: &[Right] = &[
    of(
        &["apps"],
        &["deployments/scale", "statefulsets/scale"],
        &["patch"],
        "Claimed workloads of groups with segments are scaled together.",
    ),
    of(&["leaderworkerset.x-k8s.io"], &["leaderworkersets/scale"], &["patch"], "The same."),
    of(&["autoscaling"], &["horizontalpodautoscalers"], &["list"], "A warning for autoscalers of such workloads."),
];

/// Rights for `--allow recovery`.
pub const OF_RECOVERY: &[Right] = &[of(
    &[""],
    &["pods"],
    &["delete"],
    "Pods of a broken batch are recreated together, and old pods of a segment that is updated as a whole and updated pods of a \
     rollout that goes back are deleted.",
)];

/// Rights for `--allow provision`.
pub const OF_PROVISION: &[Right] = &[
    of(
        &["autoscaling.x-k8s.io"],
        &["capacitybuffers", "provisioningrequests"],
        &["get", "list", "watch", "create", "delete"],
        "Nodes are requested for batches that fit nowhere.",
    ),
    of(
        &["autoscaling.x-k8s.io"],
        &["capacitybuffers"],
        &["patch"],
        "A buffer is emptied before it is deleted, or its nodes would stay.",
    ),
    of(&[""], &["pods"], &["get"], "The shape of a pod, which only its spec has."),
    of(&[""], &["podtemplates"], &["get", "list", "create", "delete"], "The shapes of the pods that they are for."),
];

/// Rights for each value of `--allow`.
pub const OF_ALLOWED: &[(Allow, &[Right])] =
    &[(Allow::Scale, OF_SCALE), (Allow::Recovery, OF_RECOVERY), (Allow::Provision, OF_PROVISION)];
/// Rights for `doctor` as run by `helm test`, besides the Secret of the certificates and the dry-run pod.
pub const OF_DOCTOR: &[Right] = &[
    of(&["apiextensions.k8s.io"], &["customresourcedefinitions"], &["get"], "Installed kinds and their fields."),
    of(
        &["admissionregistration.k8s.io"],
        &["mutatingwebhookconfigurations", "validatingwebhookconfigurations"],
        &["list"],
        "Webhooks of rolegate, and others that may interfere.",
    ),
    of(
        &["admissionregistration.k8s.io"],
        &["validatingadmissionpolicies", "validatingadmissionpolicybindings"],
        &["list"],
        "Containment of a stolen token.",
    ),
    of(&["authorization.k8s.io"], &["subjectaccessreviews"], &["create"], "Rights of the replicas."),
    of(&[""], &["namespaces"], &["get", "list"], "Namespaces of the webhooks."),
    of(&[""], &["pods"], &["list"], "Pods that are held for a missing group."),
    of(&["apps"], &["deployments", "statefulsets"], &["list"], "The groups of these pods."),
    of(&["leaderworkerset.x-k8s.io"], &["leaderworkersets"], &["list"], "The same."),
    of(RBG, &["rolebasedgroups"], &["list"], "The same."),
    of(&["rolegate.dev"], &["rolecoordinations"], &["list"], "The same."),
    of(TOPOLOGIES, &["clustertopologies"], &["list"], "The same."),
    of(&["scheduling.run.ai"], &["podgroups"], &["list"], "The same."),
    of(&["kai.scheduler"], &["topologies"], &["list"], "The same."),
    of(&["autoscaling"], &["horizontalpodautoscalers"], &["list"], "Conflicting autoscalers."),
    of(&[""], &["services"], &["list"], "Addresses of pods."),
    of(&["resource.k8s.io"], DEVICES, &["list"], "Devices that placement counts."),
    Right {
        groups: &[""],
        resources: &["serviceaccounts", "services"],
        verbs: &["get"],
        scope: Scope::Own,
        why: "Existence.",
    },
    Right {
        groups: &["apps"],
        resources: &["deployments"],
        verbs: &["get"],
        scope: Scope::Own,
        why: "Options of the replicas.",
    },
    Right {
        groups: &["discovery.k8s.io"],
        resources: &["endpointslices"],
        verbs: &["list"],
        scope: Scope::Own,
        why: "Ready replicas.",
    },
    Right {
        groups: &["coordination.k8s.io"],
        resources: &["leases"],
        verbs: &["get"],
        scope: Scope::OwnLease,
        why: "The leader.",
    },
];
/// Rights for `uninstall` as run by the hook of `helm uninstall`.
pub const OF_UNINSTALL: &[Right] = &[
    of(
        &["admissionregistration.k8s.io"],
        &["mutatingwebhookconfigurations"],
        &["list"],
        "Namespaces of other rolegates, which are left alone.",
    ),
    Right {
        groups: &["admissionregistration.k8s.io"],
        resources: &["mutatingwebhookconfigurations", "validatingwebhookconfigurations"],
        verbs: &["get", "delete"],
        scope: Scope::Webhooks,
        why: "Removal before all else.",
    },
    Right {
        groups: &["admissionregistration.k8s.io"],
        resources: &["mutatingadmissionpolicies", "mutatingadmissionpolicybindings"],
        verbs: &["get", "delete"],
        scope: Scope::Hold,
        why: "The policy that holds pods without the webhook. No policy can judge its deletion: the right names it.",
    },
    of(&[""], &["namespaces"], &["list"], "Namespaces of other rolegates."),
    of(&[""], &["pods"], &["list", "patch"], "Gates of held pods."),
    of(&["apps"], &["statefulsets"], &["list", "patch"], "Partitions of frozen workloads."),
    of(&["leaderworkerset.x-k8s.io"], &["leaderworkersets"], &["list", "patch"], "The same."),
    of(TOPOLOGIES, &["clustertopologies"], &["list", "patch"], "Finalizer of rolegate."),
    of(
        &["autoscaling.x-k8s.io"],
        &["capacitybuffers", "provisioningrequests"],
        &["list", "delete"],
        "Requests for nodes, which nobody would take back.",
    ),
    of(&[""], &["podtemplates"], &["list", "delete"], "The same."),
    of(&["autoscaling.x-k8s.io"], &["capacitybuffers"], &["get", "patch"], "A buffer is emptied before it is deleted."),
    Right {
        groups: &["apps"],
        resources: &["deployments"],
        verbs: &["get", "delete"],
        scope: Scope::OwnLease,
        why: "Running replicas would hold pods again.",
    },
    Right {
        groups: &["coordination.k8s.io"],
        resources: &["leases"],
        verbs: &["get", "delete"],
        scope: Scope::OwnLease,
        why: "Whether a replica still leads.",
    },
    Right {
        groups: &[""],
        resources: &["secrets"],
        verbs: &["get", "delete"],
        scope: Scope::OwnSecret,
        why: "The certificates.",
    },
];

/// Rights for users, aggregated into the cluster's roles: name suffix, roles to aggregate to, rights. Users may write
/// no status.
pub const OF_PEOPLE: &[(&str, &[&str], &[Right])] = &[
    (
        "view",
        &["view"],
        &[of(
            &["rolegate.dev"],
            &["rolecoordinations", "rolecoordinations/status", "rolecoordinations/scale", "clustertopologies"],
            READ,
            "Whoever may look at workloads may look at what coordinates them.",
        )],
    ),
    (
        "edit",
        &["edit", "admin"],
        &[
            of(
                &["rolegate.dev"],
                &["rolecoordinations"],
                &["create", "update", "patch", "delete", "deletecollection"],
                "Whoever may make StatefulSets may make what coordinates them.",
            ),
            of(&["rolegate.dev"], &["rolecoordinations/scale"], &["update", "patch"], "And scale it."),
        ],
    ),
];

const fn of(
    groups: &'static [&'static str],
    resources: &'static [&'static str],
    verbs: &'static [&'static str],
    why: &'static str,
) -> Right {
    Right { groups, resources, verbs, scope: Scope::Cluster, why }
}

impl Scope {
    /// Returns the namespace and the object name of the scope.
    pub fn place(self, namespace: &str, name: &str) -> (Option<String>, Option<String>) {
        match self {
            Self::Cluster => (None, None),
            Self::Own => (Some(namespace.to_owned()), None),
            Self::Webhooks => (None, Some(name.to_owned())),
            Self::OwnLease => (Some(namespace.to_owned()), Some(name.to_owned())),
            Self::OwnSecret => (Some(namespace.to_owned()), Some(format!("{name}-certificates"))),
            Self::Hold => (None, Some(HOLD_POLICY.to_owned())),
        }
    }
}
