//! What rolegate may do: each right with its reason. One table for the roles of `manifests` and the questions of `doctor`.
//! The tests run under exactly these, and find one that is missing and one that is not used.

use crate::cli::allow::Allow;

/// Where a right holds, and for which objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Everywhere.
    Cluster,
    /// In our own namespace.
    Own,
    /// The webhook configurations, by name.
    Webhooks,
    /// In our own namespace, the object of our name: the Lease, the Deployment.
    OwnLease,
    /// In our own namespace, the Secret of the self-managed certificates.
    OwnSecret,
}

/// Some verbs on some resources.
#[derive(Clone, Copy, Debug)]
pub struct Right {
    /// API groups.
    pub groups: &'static [&'static str],
    /// Resources, with their subresource after a slash.
    pub resources: &'static [&'static str],
    /// Verbs.
    pub verbs: &'static [&'static str],
    /// Where, and for which objects.
    pub scope: Scope,
    /// What it is for.
    pub why: &'static str,
}

const READ: &[&str] = &["get", "list", "watch"];
const RBG: &[&str] = &["workloads.x-k8s.io", "workloads.instai.io"];
const TOPOLOGIES: &[&str] = &["rolegate.dev", "workloads.x-k8s.io"];
const POD_GROUPS: &[&str] = &["scheduling.x-k8s.io", "scheduling.volcano.sh"];

/// For the loop and the webhook, however certificates are kept.
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

/// For self-managed certificates; with cert-manager there is no need of them.
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

/// For `--namespace-selector`.
pub const OF_SELECTION: &[Right] = &[of(
    &["admissionregistration.k8s.io"],
    &["mutatingwebhookconfigurations"],
    &["list", "watch"],
    "What is held in namespaces that are not selected is let go, unless another rolegate serves them.",
)];

/// For `--recreate-mis-stamped`.
pub const OF_RECREATION: &[Right] =
    &[of(&[""], &["pods"], &["delete"], "Held pods that were made for another batch are made again.")];

/// For `--allow scale`.
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

/// For `--allow recovery`.
pub const OF_RECOVERY: &[Right] =
    &[of(&[""], &["pods"], &["delete"], "The pods of a batch that broke are made again together.")];

/// What each word of `--allow` takes.
pub const OF_ALLOWED: &[(Allow, &[Right])] = &[(Allow::Scale, OF_SCALE), (Allow::Recovery, OF_RECOVERY)];
/// For `doctor`, as `helm test` runs it, beside the Secret of the certificates and a pod that is tried.
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
/// For `uninstall`, as the hook of `helm uninstall` runs it.
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

/// For people, in the roles that a cluster has for them: part of the name of the role, the roles that it is added to, and what it
/// allows. Nobody is to write a status.
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
    /// The namespace in which the right must hold, and the one object for which.
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
