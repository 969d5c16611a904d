//! What our own account may change of pods and workloads, whatever its rights say: RBAC knows verbs, not fields. Whoever
//! steals its token can run nothing by it.

use serde_json::{Value, json};

use super::settings::Settings;
use crate::api::ObjectKind;
use crate::api::pod::POD;
use crate::model::{WorkloadKind, names};

/// Everything of ours begins so.
const PREFIX: &str = "rolegate.dev/";
/// Labels and annotations of pods that are not under our prefix and that we write.
const OF_PODS: &[&str] = &[
    names::KEP75_GROUP,
    names::KEP75_ROLE,
    names::KEP75_SUBGROUP_SIZE,
    names::KEP75_INSTANCE_INDEX,
    names::KEP75_COORDINATION,
    names::KEP75_BATCH,
    names::KUBE_POD_GROUP,
    names::VOLCANO_POD_GROUP,
    names::KAI_POD_GROUP,
    names::KAI_SUBGROUP,
];

/// A policy and its binding for pods, and for each kind of workload with a partition.
pub fn objects(settings: &Settings) -> Vec<Value> {
    let workloads = WorkloadKind::with_partition().map(|kind| (kind.object_kind(), of_workload(kind)));
    [(POD, of_pods())]
        .into_iter()
        .chain(workloads)
        .flat_map(|(kind, changed)| policy(settings, kind, &changed))
        .collect()
}

/// What differs of a pod and may not: gates can only be taken away, and labels of nodes only be added, as the API server has
/// it for everybody; nodes are chosen with the release, and at no other time.
fn of_pods() -> Vec<String> {
    let keys = OF_PODS.iter().map(|key| format!("'{key}'")).collect::<Vec<_>>().join(", ");
    let ours =
        format!("key in [{keys}] || key.startsWith('{PREFIX}') || key.startsWith('{}')", names::KEP30_MEMBER_PREFIX);
    let gates = |object: &str| format!("{object}.?spec.?schedulingGates.orValue([])");
    let others =
        |object: &str| format!("{}.map(gate, gate.name).filter(name, name != '{}')", gates(object), names::GATE);
    let held = |object: &str| format!("{}.exists(gate, gate.name == '{}')", gates(object), names::GATE);
    let released = format!("{} && !{}", held("oldObject"), held("object"));
    vec![
        differing(&["metadata", "labels"], Compared::All, &ours),
        differing(&["metadata", "annotations"], Compared::All, &ours),
        differing(
            &["spec"],
            Compared::All,
            &format!("key == 'schedulingGates' || (key == 'nodeSelector' && {released})"),
        ),
        format!("({} == {} ? [] : ['spec.schedulingGates'])", others("object"), others("oldObject")),
    ]
}

/// What differs of a workload and may not. Defaults may be filled in beside the partition.
fn of_workload(kind: WorkloadKind) -> Vec<String> {
    let notes =
        [names::USER_PARTITION_IN_RBG, names::UNCLAIMED_IN_RBG].map(|key| format!("key == '{key}'")).join(" || ");
    let mut changed = vec![
        differing(&["metadata", "labels"], Compared::All, "false"),
        differing(&["metadata", "annotations"], Compared::All, &format!("key.startsWith('{PREFIX}') || {notes}")),
    ];
    let partition = kind.row().rollout.map_or(&[][..], |fields| fields.partition);
    for depth in 1..partition.len() {
        let (at, next) = partition.split_at(depth);
        let compared = if depth == 1 { Compared::All } else { Compared::WhatWas };
        changed.extend(next.first().map(|next| differing(at, compared, &format!("key == '{next}'"))));
    }
    changed
}

/// Which fields are compared.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Compared {
    /// All of both objects.
    All,
    /// Those that the old object has.
    WhatWas,
}

/// The fields at a path that differ and are not allowed to, as a list of their paths.
fn differing(path: &[&str], compared: Compared, allowed: &str) -> String {
    let at = |object: &str| format!("dyn({object}).?{}.orValue({{}})", path.join(".?"));
    let keys = |object: &str| format!("{}.map(key, string(key))", at(object));
    let keys = match compared {
        Compared::All => format!("({} + {}).distinct()", keys("oldObject"), keys("object")),
        Compared::WhatWas => keys("oldObject"),
    };
    format!(
        "{keys}.filter(key, !({allowed}) && {}[?key] != {}[?key]).map(key, '{}[' + key + ']')",
        at("oldObject"),
        at("object"),
        path.join(".")
    )
}

fn policy(settings: &Settings, kind: ObjectKind, changed: &[String]) -> [Value; 2] {
    let name = format!("{}-{}", settings.name, kind.plural);
    let user = format!("system:serviceaccount:{}:{}", settings.namespace, settings.name);
    let metadata = json!({ "name": name, "labels": super::labels(settings) });
    let of_metadata = "['finalizers', 'ownerReferences'].filter(key, dyn(oldObject.metadata)[?key] != \
                       dyn(object.metadata)[?key]).map(key, 'metadata.' + key)";
    let parts = changed.iter().map(String::as_str).chain([of_metadata]).enumerate();
    let mut variables: Vec<_> =
        parts.map(|(index, part)| json!({ "name": format!("part{index}"), "expression": part })).collect();
    let all: Vec<_> = (0..variables.len()).map(|index| format!("variables.part{index}")).collect();
    variables.push(json!({ "name": "changed", "expression": all.join(" + ") }));
    let policy = json!({
        "#": format!("What our own account may change of {}: a stolen token runs no code.", kind.plural),
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": metadata,
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": { "resourceRules": [{
                "apiGroups": [kind.group],
                "apiVersions": ["*"],
                "operations": ["UPDATE"],
                "resources": [kind.plural],
            }] },
            "matchConditions": [{
                "name": "by-rolegate",
                "expression": format!("request.userInfo.username == '{user}'"),
            }],
            "variables": variables,
            "validations": [{
                "expression": "variables.changed.size() == 0",
                "messageExpression": "'rolegate itself may not change ' + variables.changed.join(', ')",
                "message": "rolegate itself may not change this",
                "reason": "Forbidden",
            }],
        },
    });
    let binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": metadata,
        "spec": { "policyName": name, "validationActions": ["Deny"] },
    });
    [policy, binding]
}
