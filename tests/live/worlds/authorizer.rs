//! An operator that lets nobody else write to its pods, unless it is told whom.

use super::{make_probe, stage, tries_in, until_refused, writes};
use crate::common::prelude::*;

const REFUSAL: &str = "admission denied: no permission to update managed resource";

/// As Grove's authorizer: updates of the pods that it manages are for itself, for controllers, and for those that are exempt.
fn authorizer(stage: &Stage, exempt: &[String]) -> Value {
    let allowed = "request.userInfo.username.startsWith('system:serviceaccount:kube-system:') || \
                   'system:masters' in request.userInfo.groups";
    let exempt: Vec<_> = exempt.iter().map(|user| format!("'{user}'")).collect();
    let name = format!("authorizer-of-{}", stage.namespace);
    let rule = json!({ "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["UPDATE"] });
    let managed = json!({ "matchLabels": { "app.kubernetes.io/managed-by": "grove-operator" } });
    let here = json!({ "matchLabels": { "kubernetes.io/metadata.name": stage.namespace } });
    let validation = json!({
        "expression": format!("{allowed} || request.userInfo.username in [{}]", exempt.join(", ")),
        "message": REFUSAL,
        "reason": "Forbidden",
    });
    let policy = object("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", &name).spec(json!({
        "failurePolicy": "Fail",
        "matchConstraints": { "resourceRules": [rule], "namespaceSelector": here, "objectSelector": managed },
        "validations": [validation],
    }));
    let binding = object("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding", &name)
        .spec(json!({ "policyName": name, "validationActions": ["Deny"] }));
    json!({ "apiVersion": "v1", "kind": "List", "items": [policy, binding] })
}

#[tokio::test]
async fn an_authorizer_that_refuses_releases_is_named_and_asked_more_and_more_seldom() {
    let (stage, _rolegate) = stage("authorized").await.with_room(8).await.serve().await;
    let user = format!("system:serviceaccount:rolegate-system:{}", stage.namespace);
    stage.plane.must(&["apply", "-f", "-"], &authorizer(&stage, &[]).to_string());
    let labels = json!({ "app.kubernetes.io/managed-by": "grove-operator" });
    make_probe(&stage, &labels, &["rolegate.dev/hold"]).await;
    let release = json!({ "spec": { "schedulingGates": [{ "name": "example.com/probe" }] } });
    until_refused(&stage, &user, &release, Some(REFUSAL)).await;
    let group = Group::new("llm").role("prefill", 2, 1).role("decode", 2, 1);
    let group = group.template(&json!({ "metadata": { "labels": labels } }));
    let statuses = stage.deploy_watched(&group).await;
    statuses.until("it is said", |status| status.reason() == "PatchFailed").await;
    stage.until_event("PatchFailed", &[REFUSAL]).await;
    // What only the loop has been told it has written down, for whoever asks.
    for asked in [&["explain", "pod", "llm-prefill-0"][..], &["explain", "group", "llm"], &["status", "llm"]] {
        stage.until_said(asked, REFUSAL).await;
        stage.until_said(asked, "PatchFailed").await;
    }
    let since = Instant::now();
    let refused = || writes(&stage)["patch pods"];
    let before = refused();
    // Two pods of the first segment, each after 0.2, 0.4, 0.8, ... s.
    until_found("it is tried again", async || refused(), |now| *now > before).await;
    let most = 2 * (1 + tries_in(since.elapsed()));
    assert!(refused() - before <= most, "{} in {:?}", refused() - before, since.elapsed());
    stage.pods.now(|now| assert_eq!(now.count_all(Pod::is_scheduled), 0, "{now}"));
    stage.plane.must(&["apply", "-f", "-"], &authorizer(&stage, std::slice::from_ref(&user)).to_string());
    until_refused(&stage, &user, &release, None).await;
    stage.pods.until("all run", |now| now.count_all(Pod::is_ready) == 4).await;
    invariants::released_in_order(&stage.pods, &group);
}
