//! Objects of a schema that rolegate does not know yet.

use crate::common::prelude::*;
use crate::rules::desk::{put, refused, stage, warned};

/// Members by name, where a list is known.
fn newer() -> Value {
    object("grove.io/v1alpha1", "PodCliqueSet", "newer")
        .spec(json!({ "template": { "cliques": { "leader": { "roleName": "LEADER" } } } }))
}

#[tokio::test]
async fn a_field_of_another_type_passes_with_a_warning_and_is_counted() {
    let (stage, rolegate) = stage("skew").await.serve().await;
    let before = rolegate.metric("rolegate_schema_skew_total").await;
    let why = "rolegate cannot read this PodCliqueSet and lets it pass: spec.template.cliques: must be a list, and is an object";
    warned(&stage, &newer(), &[why]);
    let after = rolegate.metric("rolegate_schema_skew_total").await;
    assert!(after > before, "{before} {after}");
    // What has a place in no known schema is none of ours.
    let mut known = newer();
    known["metadata"]["name"] = json!("known");
    known["spec"]["template"] =
        json!({ "cliques": [{ "name": "leader", "spec": { "roleName": "LEADER", "new": [1] } }], "newer": {} });
    put(&stage, &known);
}

#[tokio::test]
async fn strict_refuses_it_and_says_where() {
    let stage = stage("skew-strict").await;
    let _rolegate = stage.launch().switch("strict").start().await;
    refused(&stage, &newer(), "spec.template.cliques: Invalid value: must be a list, and is an object");
}

#[tokio::test]
async fn what_no_rule_is_for_passes_and_is_counted() {
    let stage = stage("skew-unknown").await;
    let launch = stage.launch().switch("strict");
    let rolegate = launch.start().await;
    put(&stage, &json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "any" } }));
    // Also when somebody else's configuration sends it here.
    let resource = |version: &str, plural: &str| json!({ "group": "grove.io", "version": version, "resource": plural });
    let mut caller = launch.caller(&rolegate).await;
    for (version, plural) in [("v1alpha1", "somethings"), ("v9", "podcliquesets")] {
        let review = json!({
            "apiVersion": "admission.k8s.io/v1",
            "kind": "AdmissionReview",
            "request": {
                "uid": plural,
                "kind": { "group": "grove.io", "version": version, "kind": "Something" },
                "resource": resource(version, plural),
                "operation": "CREATE",
                "userInfo": {},
                "object": newer(),
            },
        });
        let (code, body) = caller.post("/validate", review.to_string()).await.unwrap();
        let answer: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!((code, &answer["response"]["allowed"]), (200, &json!(true)), "{answer:#}");
    }
    assert_eq!(rolegate.metric("rolegate_unknown_reviews_total").await, 2);
}
