//! What rolegate may do: each right with its reason. The tests run under exactly these, and find one that is missing and
//! one that is not used.

use serde_json::{Value, json};

use super::settings::Settings;

/// Where a right holds, and for which objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reach {
    /// Everywhere.
    Cluster,
    /// In our own namespace.
    Own,
    /// The webhook configurations, by name.
    Webhooks,
    /// In our own namespace, the object of our name.
    OwnLease,
    /// In our own namespace, the Secret of the self-managed certificates.
    OwnSecret,
}

/// A right.
struct Right {
    groups: &'static [&'static str],
    resources: &'static [&'static str],
    verbs: &'static [&'static str],
    reach: Reach,
    why: &'static str,
}

const READ: &[&str] = &["get", "list", "watch"];
const RBG: &[&str] = &["workloads.x-k8s.io", "workloads.instai.io"];
const TOPOLOGIES: &[&str] = &["rolegate.dev", "workloads.x-k8s.io"];
const POD_GROUPS: &[&str] = &["scheduling.x-k8s.io", "scheduling.volcano.sh"];

/// For the loop and the webhook, however certificates are kept.
const RIGHTS: &[Right] = &[
    of(&[""], &["pods"], &["list", "watch", "patch"], "Pods of groups are watched; lifting a gate is a patch."),
    of(&[""], &["namespaces"], &["list", "watch"], "Namespaces that have opted out."),
    of(&["apps"], &["deployments", "statefulsets"], READ, "How many replicas a role wants, and who makes its pods."),
    of(&["leaderworkerset.x-k8s.io"], &["leaderworkersets"], READ, "The same."),
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
        &["get", "list", "watch", "create", "patch"],
        "Pods of a KAI PodGroup are told their subgroup; batches that ask for one get theirs.",
    ),
    of(POD_GROUPS, &["podgroups"], &["get", "create", "patch"], "PodGroups of batches that ask for one."),
    of(&["kai.scheduler"], &["topologies"], &["get"], "Levels that PodGroups name."),
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
    of(&["events.k8s.io"], &["events"], &["create", "patch"], "Why pods are held, on their group."),
    Right {
        groups: &["coordination.k8s.io"],
        resources: &["leases"],
        verbs: &["create"],
        reach: Reach::Own,
        why: "The first Lease. A right to create knows no names.",
    },
    Right {
        groups: &["coordination.k8s.io"],
        resources: &["leases"],
        verbs: &["get", "update"],
        reach: Reach::OwnLease,
        why: "One replica leads.",
    },
];

/// For self-managed certificates; with cert-manager there is no need of them.
const OF_CERTIFICATES: &[Right] = &[
    Right {
        groups: &[""],
        resources: &["secrets"],
        verbs: &["create"],
        reach: Reach::Own,
        why: "The first Secret of certificates. A right to create knows no names.",
    },
    Right {
        groups: &[""],
        resources: &["secrets"],
        verbs: &["list", "watch", "update"],
        reach: Reach::OwnSecret,
        why: "Certificates shared by the replicas, and their renewal. No other Secret can be read.",
    },
    Right {
        groups: &["admissionregistration.k8s.io"],
        resources: &["mutatingwebhookconfigurations", "validatingwebhookconfigurations"],
        verbs: &["patch"],
        reach: Reach::Webhooks,
        why: "Their caBundle.",
    },
];

const fn of(
    groups: &'static [&'static str],
    resources: &'static [&'static str],
    verbs: &'static [&'static str],
    why: &'static str,
) -> Right {
    Right { groups, resources, verbs, reach: Reach::Cluster, why }
}

/// The ServiceAccount, its roles and bindings.
pub fn objects(settings: &Settings) -> Vec<Value> {
    let account = json!({
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": { "name": settings.name, "namespace": settings.namespace, "labels": super::labels(settings) },
        "#automountServiceAccountToken": "Whoever else runs under this account gets no token by accident.",
        "automountServiceAccountToken": false,
    });
    let certificates = format!("{}-certificates", settings.name);
    let mut objects = vec![account];
    for (name, rights, when) in [(&settings.name, RIGHTS, None), (&certificates, OF_CERTIFICATES, Some("self-managed"))]
    {
        let (cluster, own): (Vec<_>, Vec<_>) =
            rights.iter().partition(|right| matches!(right.reach, Reach::Cluster | Reach::Webhooks));
        for (kind, rights) in [("ClusterRole", cluster), ("Role", own)] {
            objects.extend(role_and_binding(settings, kind, name, &rights, when));
        }
    }
    objects
}

fn role_and_binding(settings: &Settings, kind: &str, name: &str, rights: &[&Right], when: Option<&str>) -> [Value; 2] {
    let namespace = if kind == "Role" { json!(settings.namespace) } else { Value::Null };
    let metadata = json!({ "name": name, "namespace": namespace, "labels": super::labels(settings) });
    let rules: Vec<_> = rights.iter().map(|right| rule(settings, right)).collect();
    let role = json!({
        "?": when,
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": kind,
        "metadata": metadata,
        "rules": rules,
    });
    let binding = json!({
        "?": when,
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": format!("{kind}Binding"),
        "metadata": metadata,
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name },
        "subjects": [{ "kind": "ServiceAccount", "name": settings.name, "namespace": settings.namespace }],
    });
    [role, binding]
}

fn rule(settings: &Settings, right: &Right) -> Value {
    let names = match right.reach {
        Reach::Cluster | Reach::Own => Value::Null,
        Reach::Webhooks | Reach::OwnLease => json!([settings.name]),
        Reach::OwnSecret => json!([format!("{}-certificates", settings.name)]),
    };
    json!({
        "#": right.why,
        "=": {
            "apiGroups": right.groups,
            "resources": right.resources,
            "resourceNames": names,
            "verbs": right.verbs,
        },
    })
}
