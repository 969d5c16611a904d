//! Definitions of other projects' kinds, loose: only what tells releases apart is spelled out.

use serde_json::Map;

use crate::common::prelude::*;

/// A version of a kind: its name, whether it is the stored one, and the fields of `spec` that are spelled out.
type Version<'a> = (&'a str, bool, &'a [&'a str]);

/// A definition whose objects keep every field, known or not.
pub fn loose(group: &str, kind: &str, plural: &str, versions: &[Version<'_>]) -> Value {
    let version = |(name, stored, fields): &Version<'_>| {
        let any = || json!({ "x-kubernetes-preserve-unknown-fields": true });
        let fields: Map<_, _> = fields.iter().map(|field| ((*field).to_owned(), any())).collect();
        let spec = json!({ "type": "object", "properties": fields, "x-kubernetes-preserve-unknown-fields": true });
        self::version(name, *stored, &spec, &any_object())
    };
    namespaced(group, kind, plural, &versions.iter().map(version).collect())
}

/// A version of a kind whose objects have these schemas of spec and status.
pub fn version(name: &str, stored: bool, spec: &Value, status: &Value) -> Value {
    let schema = json!({ "type": "object", "properties": { "spec": spec, "status": status } });
    json!({
        "name": name, "served": true, "storage": stored,
        "schema": { "openAPIV3Schema": schema }, "subresources": { "status": {} },
    })
}

/// A definition with these versions.
pub fn namespaced(group: &str, kind: &str, plural: &str, versions: &Value) -> Value {
    let names =
        json!({ "kind": kind, "listKind": format!("{kind}List"), "plural": plural, "singular": kind.to_lowercase() });
    let approved = json!({ "api-approved.kubernetes.io": "unapproved, a stand-in for tests" });
    object("apiextensions.k8s.io/v1", "CustomResourceDefinition", &format!("{plural}.{group}")).with(&json!({
        "metadata": { "annotations": approved },
        "spec": { "group": group, "scope": "Namespaced", "names": names, "versions": versions },
    }))
}

fn any_object() -> Value {
    json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
}

/// PodGroups with these fields.
fn pod_groups(fields: &[&str]) -> Value {
    loose("scheduling.run.ai", "PodGroup", "podgroups", &[("v2alpha2", true, fields)])
}

/// As KAI v0.15 has them.
pub fn upstream_pod_groups() -> Value {
    pod_groups(&["minMember", "minSubGroup", "subGroups", "topologyConstraint", "preemptibility"])
}

/// As KAI v0.14 has them.
pub fn pod_groups_that_count_pods() -> Value {
    pod_groups(&["minMember", "subGroups"])
}

/// As the hierarchical PodGroup design has them.
pub fn proposal_pod_groups() -> Value {
    pod_groups(&["minMember", "subGroups", "topologyConstraints"])
}

/// What RBG's releases since v0.7 serve beside the old version: roles, and no coordination.
fn second_version_of_groups() -> Value {
    let roles = json!({ "type": "array", "items": any_object() });
    let spec = json!({ "type": "object", "properties": { "roles": roles } });
    json!([{ "op": "add", "path": "/spec/versions/-", "value": version("v1alpha2", false, &spec, &any_object()) }])
}

/// The control plane of this suite, with the definitions of all projects.
pub static PLANE: Shared = Shared::new(|| {
    let plane = ControlPlane::start_with_groups("kwok", &[]);
    let definitions = [
        upstream_pod_groups(),
        loose("grove.io", "PodCliqueSet", "podcliquesets", &[("v1alpha1", true, &[])]),
        loose("grove.io", "PodGangSet", "podgangsets", &[("v1alpha1", true, &[])]),
        loose("workloads.x-k8s.io", "CoordinatedPolicy", "coordinatedpolicies", &[("v1alpha2", true, &[])]),
        loose("leaderworkerset.x-k8s.io", "LeaderWorkerSet", "leaderworkersets", &[("v1", true, &[])]),
    ];
    let patch = second_version_of_groups().to_string();
    plane.must(&["patch", "crd", "rolebasedgroups.workloads.x-k8s.io", "--type=json", "-p", &patch], "");
    install(&plane, &definitions);
    plane
});

/// Installs definitions, and waits until they are served.
pub fn install(plane: &ControlPlane, definitions: &[Value]) {
    let list = json!({ "apiVersion": "v1", "kind": "List", "items": definitions });
    plane.must(&["apply", "--server-side", "-f", "-"], &list.to_string());
    plane.until_defined();
}
