//! The rights of rolegate, each with its reason: one table for the roles of `manifests` and the checks of `doctor`.
//! The tests run with exactly these rights, and find missing and unused ones.

use crate::cli::allow::Allow;

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
const POD_GROUPS: &[&str] = &["scheduling.x-k8s.io", "scheduling.volcano.sh"];

/// Rights of the loop and the webhook, regardless of where certificates come from.
pub const RIGHTS: &[Right] = &[
    of(&[""], &["pods"], &["list", "watch", "patch"], "Pods of groups are watched; lifting a gate is a patch."),
    of(&[""], &["nodes"], &["list", "watch"], "Batches that must share a domain go where there is room for them."),
    of(
        &[""],
        &["persistentvolumeclaims", "persistentvolumes"],
        &["list", "watch"],
        "The same, where their volumes can be reached from; read while pods with claims are to be placed.",
    ),
    of(&["storage.k8s.io"], &["storageclasses"], &["list", "watch"], "The same, where their volumes can be made."),
    of(&[""], &["namespaces"], &["list", "watch"], "Namespaces that have opted out."),
    of(&["apps"], &["deployments", "statefulsets"], READ, "How many replicas a role wants, and who makes its pods."),
    of(&["leaderworkerset.x-k8s.io"], &["leaderworkersets"], READ, "The same."),
    of(&["apps"], &["statefulsets"], &["patch"], "The partition of those that are claimed for rollouts in lockstep."),
    of(&["leaderworkerset.x-k8s.io"], &["leaderworkersets"], &["patch"], "The same."),
    of(RBG, &["rolebasedgroups"], READ, "Groups."),
    of(RBG, &["rolebasedgroups/status"], &["patch"], "What is released is committed in the status."),
    of(&["rolegate.dev"], &["rolecoordinations"], READ, "Groups of our own kind."),
    of(&["rolegate.dev"], &["rolecoordinations/status"], &["patch"], "The same."),
    of(TOPOLOGIES, &["clustertopologies"], &["get", "list", "watch", "patch"], "Their finalizer is put and taken."),
    of(TOPOLOGIES, &["clustertopologies/status"], &["patch"], "Whether they are valid."),
    of(&["workloads.x-k8s.io"], &["coordinatedpolicies"], &["get"], "Whether a group has one that is judged."),
    of(&["grove.io"], &["podcliquesets", "podgangsets"], READ, "Discovery between roles of Grove sets."),
    of(
        &["scheduling.run.ai"],
        &["podgroups"],
        &["get", "list", "watch", "create", "patch", "delete"],
        "Pods of a KAI PodGroup are told their subgroup, and placed where it asks for that; batches that ask for one get \
         theirs.",
    ),
    of(
        POD_GROUPS,
        &["podgroups"],
        &["get", "list", "create", "patch", "delete"],
        "PodGroups of batches that ask for one; they are removed with their batch.",
    ),
    of(&["kai.scheduler"], &["topologies"], READ, "Levels that PodGroups name."),
    of(&[""], &["services"], &["get"], "Addresses of groups with discovery that do not resolve: a warning."),
    of(&["policy"], &["poddisruptionbudgets"], &["list"], "Held pods count as unavailable: a warning."),
    of(
        &["apiextensions.k8s.io"],
        &["customresourcedefinitions"],
        READ,
        "A deleted definition must not open every hold; kinds that are installed later are found.",
    ),
    of(
        &["authorization.k8s.io"],
        &["subjectaccessreviews"],
        &["create"],
        "No PodGroup is made for somebody who may not make it.",
    ),
    of(
        &["events.k8s.io"],
        &["events"],
        &["get", "create", "patch"],
        "Why pods are held, on their group and on the first of them.",
    ),
    of(&[""], &["events"], &["list"], "Why pods that a batch waits for are not made."),
    Right {
        groups: &["coordination.k8s.io"],
        resources: &["leases"],
        verbs: &["create"],
        scope: Scope::Own,
        why: "The first Lease. A right to create knows no names.",
    },
    Right {
        groups: &["coordination.k8s.io"],
        resources: &["leases"],
        verbs: &["get", "update"],
        scope: Scope::OwnLease,
        why: "One replica leads.",
    },
];

/// Rights for self-managed certificates; not needed with cert-manager.
pub const OF_CERTIFICATES: &[Right] = &[
    Right {
        groups: &[""],
        resources: &["secrets"],
        verbs: &["create"],
        scope: Scope::Own,
        why: "The first Secret of certificates. A right to create knows no names.",
    },
    Right {
        groups: &[""],
        resources: &["secrets"],
        verbs: &["list", "watch", "update"],
        scope: Scope::OwnSecret,
        why: "Certificates shared by the replicas, and their renewal. No other Secret can be read.",
    },
    Right {
        groups: &["admissionregistration.k8s.io"],
        resources: &["mutatingwebhookconfigurations", "validatingwebhookconfigurations"],
        verbs: &["list", "watch", "patch"],
        scope: Scope::Webhooks,
        why: "Their caBundle, whoever overwrites it.",
    },
];

/// Rights for `--namespace-selector`.
pub const OF_SELECTION: &[Right] = &[of(
    &["admissionregistration.k8s.io"],
    &["mutatingwebhookconfigurations"],
    &["list", "watch"],
    "What is held in namespaces that are not selected is let go, unless another rolegate serves them.",
)];

/// Rights for `--recreate-mis-stamped`.
pub const OF_RECREATION: &[Right] =
    &[of(&[""], &["pods"], &["delete"], "Held pods that were made for another batch are made again.")];

/// Rights for `--allow scale`.
pub const OF_SCALE: &[Right] = &[
    of(
        &["apps"],
        &["deployments/scale", "statefulsets/scale"],
        &["patch"],
        "Claimed workloads of groups that say how many segments they want are scaled together.",
    ),
    of(&["leaderworkerset.x-k8s.io"], &["leaderworkersets/scale"], &["patch"], "The same."),
    of(&["autoscaling"], &["horizontalpodautoscalers"], &["list"], "One that scales such a workload too: a warning."),
];

/// Rights for `--allow recovery`.
pub const OF_RECOVERY: &[Right] =
    &[of(&[""], &["pods"], &["delete"], "The pods of a batch that broke are made again together.")];

/// Rights for each value of `--allow`.
pub const OF_ALLOWED: &[(Allow, &[Right])] = &[(Allow::Scale, OF_SCALE), (Allow::Recovery, OF_RECOVERY)];
/// Rights for `doctor` as run by `helm test`, besides the Secret of the certificates and the dry-run pod.
pub const OF_DOCTOR: &[Right] = &[
    of(
        &["apiextensions.k8s.io"],
        &["customresourcedefinitions"],
        &["get"],
        "Which kinds are there, and which fields they know.",
    ),
    of(
        &["admissionregistration.k8s.io"],
        &["mutatingwebhookconfigurations", "validatingwebhookconfigurations"],
        &["list"],
        "Our webhooks, and those of others that may be in the way.",
    ),
    of(
        &["admissionregistration.k8s.io"],
        &["validatingadmissionpolicies", "validatingadmissionpolicybindings"],
        &["list"],
        "What contains a stolen token.",
    ),
    of(&["authorization.k8s.io"], &["subjectaccessreviews"], &["create"], "What the account of the replicas may do."),
    of(&[""], &["namespaces"], &["get", "list"], "Which namespaces the webhooks are for."),
    of(&[""], &["pods"], &["list"], "Pods that are held for a group that is not there."),
    of(&["apps"], &["deployments", "statefulsets"], &["list"], "The groups of these pods."),
    of(&["leaderworkerset.x-k8s.io"], &["leaderworkersets"], &["list"], "The same."),
    of(RBG, &["rolebasedgroups"], &["list"], "The same."),
    of(&["rolegate.dev"], &["rolecoordinations"], &["list"], "The same."),
    of(TOPOLOGIES, &["clustertopologies"], &["list"], "The same."),
    of(&["scheduling.run.ai"], &["podgroups"], &["list"], "The same."),
    of(&["kai.scheduler"], &["topologies"], &["list"], "The same."),
    of(&["autoscaling"], &["horizontalpodautoscalers"], &["list"], "Those that are in each other's way."),
    of(&[""], &["services"], &["list"], "Those by which pods have their addresses."),
    Right {
        groups: &[""],
        resources: &["serviceaccounts", "services"],
        verbs: &["get"],
        scope: Scope::Own,
        why: "Are they there?",
    },
    Right {
        groups: &["apps"],
        resources: &["deployments"],
        verbs: &["get"],
        scope: Scope::Own,
        why: "What do the replicas run with?",
    },
    Right {
        groups: &["discovery.k8s.io"],
        resources: &["endpointslices"],
        verbs: &["list"],
        scope: Scope::Own,
        why: "Is a replica ready?",
    },
    Right {
        groups: &["coordination.k8s.io"],
        resources: &["leases"],
        verbs: &["get"],
        scope: Scope::OwnLease,
        why: "Does one lead?",
    },
];
/// Rights for `uninstall` as run by the hook of `helm uninstall`.
pub const OF_UNINSTALL: &[Right] = &[
    of(
        &["admissionregistration.k8s.io"],
        &["mutatingwebhookconfigurations"],
        &["list"],
        "Other rolegates: what is in their namespaces is theirs.",
    ),
    Right {
        groups: &["admissionregistration.k8s.io"],
        resources: &["mutatingwebhookconfigurations", "validatingwebhookconfigurations"],
        verbs: &["get", "delete"],
        scope: Scope::Webhooks,
        why: "What holds goes first.",
    },
    of(
        &["admissionregistration.k8s.io"],
        &["mutatingadmissionpolicies", "mutatingadmissionpolicybindings"],
        &["list", "delete"],
        "The policy that holds without the webhook.",
    ),
    of(&[""], &["namespaces"], &["list"], "Those that other rolegates serve."),
    of(&[""], &["pods"], &["list", "patch"], "The gate of held pods."),
    of(&["apps"], &["statefulsets"], &["list", "patch"], "The partition of frozen workloads."),
    of(&["leaderworkerset.x-k8s.io"], &["leaderworkersets"], &["list", "patch"], "The same."),
    of(TOPOLOGIES, &["clustertopologies"], &["list", "patch"], "Our finalizer."),
    Right {
        groups: &["apps"],
        resources: &["deployments"],
        verbs: &["get", "delete"],
        scope: Scope::OwnLease,
        why: "A replica that goes on would hold again.",
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
        }
    }
}
