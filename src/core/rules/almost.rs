//! Objects that resemble a judged kind: with a typing mistake, an unknown version, or an unknown kind. No rule judges them,
//! so a file with one would look faultless.

use serde_json::Value;

use super::kinds::{known_kinds, row_of};
use crate::api::ObjectKind;
use crate::api::cluster_topology::CLUSTER_TOPOLOGY;
use crate::api::role_coordination::ROLE_COORDINATION;

/// Largest number of typing mistakes in a recognizable name.
const MISTAKES: usize = 2;
/// Shortest kind for which that many mistakes are allowed.
const LONG: usize = 8;

/// Returns a text on the kind that the object was most likely meant to have: `rolegate knows no Rolecoordination of
/// rolegate.dev/v1alpha1; did you mean kind: RoleCoordination?` `None` for a known or a foreign kind.
pub fn almost_ours(api_version: &str, kind: &str, object: &Value) -> Option<String> {
    if row_of(api_version, kind).is_some() {
        return None;
    }
    let meant = meant(api_version, kind, object)?;
    let mut fields = Vec::new();
    if api_version != meant.api_version() {
        fields.push(format!("apiVersion: {}", meant.api_version()));
    }
    if kind != meant.kind {
        fields.push(format!("kind: {}", meant.kind));
    }
    let why = match (api_version, kind) {
        (_, "") => "it has no kind".to_owned(),
        ("", kind) => format!("rolegate knows no {kind} without an apiVersion"),
        _ => format!("rolegate knows no {kind} of {api_version}"),
    };
    Some(format!("{why}; did you mean {}?", fields.join(", ")))
}

fn meant(api_version: &str, kind: &str, object: &Value) -> Option<ObjectKind> {
    let group = api_version.rsplit_once('/').map_or("", |(group, _)| group);
    let ours = [ROLE_COORDINATION, CLUSTER_TOPOLOGY];
    if kind.is_empty() {
        let has_layers = object.pointer("/spec/layers").is_some();
        let meant = if has_layers { CLUSTER_TOPOLOGY } else { ROLE_COORDINATION };
        return (has_our_fields(object) || is_near(group, meant.group)).then_some(meant);
    }
    if is_near(group, ROLE_COORDINATION.group) {
        return ours.into_iter().min_by_key(|known| distance(kind, known.kind));
    }
    // The kind name is unique to rolegate, unlike ClusterTopology.
    if is_kind(kind, ROLE_COORDINATION.kind) {
        return Some(ROLE_COORDINATION);
    }
    known_kinds().find(|known| known.api_version() == api_version && is_kind(kind, known.kind))
}

/// Reports whether the object has fields that no other kind has.
fn has_our_fields(object: &Value) -> bool {
    let has = |path| object.pointer(path).is_some_and(Value::is_array);
    has("/spec/coordination") || has("/spec/coordinationRequirements")
}

/// Reports whether the API group equals the known one, up to typing mistakes.
fn is_near(group: &str, known: &str) -> bool {
    let first = |text: &str| text.split('.').next().unwrap_or_default().to_lowercase();
    !group.is_empty() && (distance(group, known) <= MISTAKES || distance(&first(group), &first(known)) < MISTAKES)
}

fn is_kind(kind: &str, known: &str) -> bool {
    kind.eq_ignore_ascii_case(known) || (known.len() >= LONG && distance(kind, known) <= MISTAKES)
}

/// Returns the edit distance; a name beyond the longest possible one is not compared.
fn distance(one: &str, other: &str) -> usize {
    const LONGEST: usize = 63;
    if one.len() > LONGEST {
        return usize::MAX;
    }
    strsim::damerau_levenshtein(&one.to_lowercase(), &other.to_lowercase())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_almost_ours_is_told_with_what_was_meant() {
        let cases = [
            ("rolegate.dev/v1alpha1", "Rolecoordination", "kind: RoleCoordination?"),
            ("rolegate.dev/v1alpha1", "RoleCordination", "kind: RoleCoordination?"),
            ("rolegate.dev/v1alpha1", "RoleCoordinations", "kind: RoleCoordination?"),
            ("rolegate.dev/v1alpha1", "ClusterTopolgy", "kind: ClusterTopology?"),
            ("rolegate.dev/v1", "RoleCoordination", "apiVersion: rolegate.dev/v1alpha1?"),
            ("rolegate.dev/v2", "ClusterTopology", "apiVersion: rolegate.dev/v1alpha1?"),
            ("rolegates.dev/v1alpha1", "RoleCoordination", "apiVersion: rolegate.dev/v1alpha1?"),
            ("rolegate.io/v1alpha1", "ClusterTopology", "apiVersion: rolegate.dev/v1alpha1?"),
            ("v1alpha1", "RoleCoordination", "apiVersion: rolegate.dev/v1alpha1?"),
            ("", "RoleCoordination", "apiVersion: rolegate.dev/v1alpha1?"),
            ("example.com/v1", "rolecoordination", "apiVersion: rolegate.dev/v1alpha1, kind: RoleCoordination?"),
            ("rolegate.dev/v1alpha1", "", "kind: RoleCoordination?"),
            ("apps/v1", "Statefulset", "kind: StatefulSet?"),
            ("apps/v1", "StatefullSet", "kind: StatefulSet?"),
            ("v1", "pod", "kind: Pod?"),
            ("workloads.x-k8s.io/v1alpha1", "RolebasedGroup", "kind: RoleBasedGroup?"),
        ];
        for (api_version, kind, meant) in cases {
            let told = almost_ours(api_version, kind, &Value::Null);
            assert!(told.as_ref().is_some_and(|told| told.ends_with(meant)), "{api_version} {kind}: {told:?}");
        }
        let without = json!({ "metadata": { "name": "pd" }, "spec": { "coordination": [] } });
        let told = almost_ours("", "", &without).unwrap();
        assert_eq!(told, "it has no kind; did you mean apiVersion: rolegate.dev/v1alpha1, kind: RoleCoordination?");
    }

    #[test]
    fn what_is_known_or_foreign_is_not_told() {
        let known = known_kinds().map(|kind| (kind.api_version(), kind.kind.to_owned()));
        let foreign = [
            ("v1", "Node"),
            ("v1", "Service"),
            ("v1", "ConfigMap"),
            ("apps/v1", "DaemonSet"),
            ("apps/v1", "ReplicaSet"),
            ("apps.kruise.io/v1beta1", "StatefulSet"),
            ("grove.io/v1alpha1", "ClusterTopology"),
            ("grove.io/v1alpha1", "PodClique"),
            ("grove.io/v1alpha1", "PodGang"),
            ("workloads.x-k8s.io/v1alpha1", "RoleBasedGroupSet"),
            ("workloads.x-k8s.io/v1beta3", "RoleBasedGroup"),
            ("scheduling.x-k8s.io/v1alpha1", "PodGroup"),
            ("", ""),
            ("v2", ""),
            ("apps/v1", ""),
        ];
        let foreign = foreign.map(|(api_version, kind)| (api_version.to_owned(), kind.to_owned()));
        for (api_version, kind) in known.chain(foreign) {
            let told = almost_ours(&api_version, &kind, &json!({ "roles": {}, "metadata": {} }));
            assert_eq!(told, None, "{api_version} {kind}");
        }
    }
}
