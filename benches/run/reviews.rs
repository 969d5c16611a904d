//! The reviews: a recorded one, changed so that its StatefulSet is a role of a group.

use bytes::Bytes;
use serde_json::{Value, json};

/// The review of a pod of a StatefulSet, recorded from a real API server.
const RECORDED: &str = include_str!("../../tests/fixtures/reviews/sts-parallel/pod-create.json");

/// Namespace of the recorded review.
pub const NAMESPACE: &str = "sts-parallel";

/// Returns reviews for the creation of `decode-0`, `decode-1`, … of the group `llm`.
pub fn of_decode_pods() -> Vec<Bytes> {
    (0..50).map(of_pod).collect()
}

/// Returns a review for the creation of a group with the maximum number of roles, each of which depends on the one
/// before.
pub fn of_wide_group() -> Bytes {
    let role = |number: usize| match number {
        0 => json!({ "name": "role-0", "replicas": 2 }),
        _ => {
            json!({ "name": format!("role-{number}"), "replicas": 2, "dependencies": [format!("role-{}", number - 1)] })
        }
    };
    let names = || (0..1000).map(|number| format!("role-{number}"));
    let sizes: serde_json::Map<_, _> = names().map(|name| (name, json!(2))).collect();
    let update = json!({ "name": "u", "roles": names().collect::<Vec<_>>(), "strategy": { "rollingUpdate": { "maxSkew": "10%" } } });
    let segments = json!({ "name": "s", "strategy": { "segmentPlacement": { "segmentSize": sizes } } });
    let (api, version) = ("workloads.x-k8s.io", "v1alpha1");
    let group = json!({
        "apiVersion": format!("{api}/{version}"),
        "kind": "RoleBasedGroup",
        "metadata": { "name": "wide", "namespace": NAMESPACE },
        "spec": { "roles": (0..1000).map(role).collect::<Vec<_>>(), "coordination": [segments, update] },
    });
    let review = json!({ "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "42", "operation": "CREATE", "namespace": NAMESPACE, "object": group, "userInfo": { "username": "bench" },
        "kind": { "group": api, "version": version, "kind": "RoleBasedGroup" },
        "resource": { "group": api, "version": version, "resource": "rolebasedgroups" },
    }});
    review.to_string().into()
}

fn of_pod(ordinal: u32) -> Bytes {
    let text = RECORDED.replace("decode-0", &format!("decode-{ordinal}"));
    let mut review: Value = serde_json::from_str(&text).unwrap();
    let labels = &mut review["request"]["object"]["metadata"]["labels"];
    labels["apps.kubernetes.io/pod-index"] = json!(ordinal.to_string());
    labels["rolegate.dev/group"] = json!("llm");
    labels["rolegate.dev/role"] = json!("decode");
    review.to_string().into()
}
