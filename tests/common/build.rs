//! Objects as users, controllers and kubelets write them, with what a test says of them; the rest is merged in by [`with`].

#![allow(dead_code, reason = "each suite uses a part of it")]

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Returns the object merged with a patch (RFC 7386).
pub fn with(mut object: Value, patch: &Value) -> Value {
    json_patch::merge(&mut object, patch);
    object
}

/// Returns an object as its type.
pub fn typed<T: DeserializeOwned>(object: Value) -> T {
    serde_json::from_value(object).unwrap()
}

pub fn object(api_version: &str, kind: &str, name: &str, spec: &Value) -> Value {
    json!({ "apiVersion": api_version, "kind": kind, "metadata": { "name": name }, "spec": spec })
}

/// Returns a RoleBasedGroup with roles of so many replicas.
pub fn group(name: &str, roles: &[(&str, u32)], coordination: &Value) -> Value {
    let roles: Vec<_> = roles.iter().map(|(name, replicas)| role(name, *replicas)).collect();
    let spec = json!({ "roles": roles, "coordination": coordination });
    object("workloads.x-k8s.io/v1alpha1", "RoleBasedGroup", name, &spec)
}

pub fn role(name: &str, replicas: u32) -> Value {
    json!({ "name": name, "replicas": replicas })
}

/// Returns a RoleCoordination of workloads of a kind that have the names of their roles.
pub fn role_coordination(name: &str, kind: &str, roles: &[&str], coordination: &Value) -> Value {
    let role = |role: &&str| json!({ "name": role, "workloadRef": { "kind": kind, "name": role } });
    let roles: Vec<_> = roles.iter().map(role).collect();
    let spec = json!({ "roles": roles, "coordination": coordination });
    object("rolegate.dev/v1alpha1", "RoleCoordination", name, &spec)
}

/// Returns a coordination with a strategy.
pub fn coordination(name: &str, strategy: &Value) -> Value {
    json!({ "name": name, "strategy": strategy })
}

/// Returns the strategy of segments of these sizes; `more` is merged into it.
pub fn segments(sizes: &[(&str, u32)], more: &Value) -> Value {
    let sizes: serde_json::Map<_, _> = sizes.iter().map(|(role, size)| ((*role).to_owned(), json!(size))).collect();
    json!({ "segmentPlacement": with(json!({ "segmentSize": sizes }), more) })
}

/// Returns the labels by which a pod or workload says of which role of which group it is.
pub fn labels(group: &str, role: &str) -> Value {
    json!({ "rolegate.dev/group": group, "rolegate.dev/role": role })
}

/// Returns a pod template of a role.
pub fn template(group: &str, role: &str) -> Value {
    json!({
        "metadata": { "labels": labels(group, role) },
        "spec": { "containers": [{ "name": "main", "image": "registry.invalid/x:1" }] },
    })
}

/// Returns a StatefulSet; its template has the labels that it selects.
pub fn stateful_set(name: &str, replicas: u32, template: &Value) -> Value {
    let selector = json!({ "matchLabels": template["metadata"]["labels"] });
    let spec = json!({ "replicas": replicas, "serviceName": name, "selector": selector, "template": template });
    object("apps/v1", "StatefulSet", name, &with(spec, &json!({ "podManagementPolicy": "Parallel" })))
}

/// Returns a LeaderWorkerSet of so many groups of so many pods.
pub fn leader_worker_set(name: &str, replicas: u32, size: usize, template: &Value) -> Value {
    let spec = json!({ "replicas": replicas, "leaderWorkerTemplate": { "size": size, "workerTemplate": template } });
    object("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", name, &spec)
}

/// Returns a pod in the namespace `ns` whose container requests this, with our gate if it is held.
pub fn pod(name: &str, held: bool, requests: &Value) -> Value {
    let gates = if held { json!([{ "name": "rolegate.dev/hold" }]) } else { json!([]) };
    let container = json!({ "name": "main", "resources": { "requests": requests } });
    let pod = object("v1", "Pod", name, &json!({ "schedulingGates": gates, "containers": [container] }));
    with(pod, &json!({ "metadata": { "uid": name, "namespace": "ns" } }))
}

/// Returns a node that is ready.
pub fn node(name: &str, labels: &Value, allocatable: &Value) -> Value {
    let status = json!({ "allocatable": allocatable, "conditions": [{ "type": "Ready", "status": "True" }] });
    json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": name, "labels": labels }, "status": status })
}
