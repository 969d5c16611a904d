//! An operator that lets nobody else write to its pods, unless it is told whom.

use std::sync::atomic::Ordering;

use serde_json::{Value, json};

use super::{stage, writes};
use crate::common::pods::Pod;
use crate::common::stage::CORE;
use crate::common::{Group, PATIENT, Stage, eventually, invariants};

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
        "message": "admission denied: no permission to update managed resource",
        "reason": "Forbidden",
    });
    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": { "name": name },
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": { "resourceRules": [rule], "namespaceSelector": here, "objectSelector": managed },
            "validations": [validation],
        },
    });
    let binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": { "name": name },
        "spec": { "policyName": name, "validationActions": ["Deny"] },
    });
    json!({ "apiVersion": "v1", "kind": "List", "items": [policy, binding] })
}

/// Waits until the authorizer refuses, or does not refuse, an account.
async fn until_it(stage: &Stage, user: &str, refuses: bool) {
    let probe = json!({ "apiVersion": "v1", "kind": "Pod", "metadata": {
        "name": "probe", "labels": { "app.kubernetes.io/managed-by": "grove-operator" },
    }, "spec": { "containers": [{ "name": "main", "image": "none" }], "schedulingGates": [{ "name": "example.com/probe" }] } });
    let made = stage.post(CORE, "pods", &probe).await;
    assert!([201, 409].contains(&made.code), "{made:?}");
    eventually(PATIENT, "the authorizer is in force", async || {
        let shown = stage.plane.kubectl(
            &[
                "-n",
                &stage.namespace,
                "annotate",
                "pod",
                "probe",
                "example.com/x=y",
                "--overwrite",
                "--dry-run=server",
                "--as",
                user,
            ],
            "",
        );
        if shown.status.success() == refuses {
            Err(String::from_utf8_lossy(&shown.stderr).into_owned())
        } else {
            Ok(())
        }
    })
    .await;
}

#[tokio::test]
async fn an_authorizer_that_refuses_releases_is_named_and_asked_more_and_more_seldom() {
    let stage = stage("authorized").await;
    stage.add_node("all", 8).await;
    let _rolegate = stage.launch().start().await;
    let user = format!("system:serviceaccount:rolegate-system:{}", stage.namespace);
    stage.plane.must(&["apply", "-f", "-"], &authorizer(&stage, &[]).to_string());
    until_it(&stage, &user, true).await;
    let group = Group::new("llm").role("prefill", 2, 1).role("decode", 2, 1);
    let managed = json!({ "metadata": { "labels": { "app.kubernetes.io/managed-by": "grove-operator" } } });
    let group = group.template(&managed);
    let statuses = stage.statuses(&group);
    stage.deploy(&group).await;
    let end = statuses.until("it is said", |status| status.reason() == "PatchFailed").await;
    println!("{end}");
    tokio::time::sleep(std::time::Duration::from_secs(5)).await;
    println!("{:?}", writes(&stage));
    println!(
        "{}",
        stage.plane.must(
            &[
                "-n",
                &stage.namespace,
                "get",
                "events",
                "-o",
                "custom-columns=R:.reason,O:.involvedObject.name,M:.message"
            ],
            ""
        )
    );
    println!("{}", stage.plane.must(&["-n", &stage.namespace, "get", "pods"], ""));
    let refused = writes(&stage)["patch pods"];
    assert!(refused <= 20, "{refused} in seconds");
    assert_eq!(stage.pods.now(|now| now.count_all(Pod::is_scheduled)), 0);
    stage.plane.must(&["apply", "-f", "-"], &authorizer(&stage, &[user.clone()]).to_string());
    until_it(&stage, &user, false).await;
    stage.pods.until("all run", |now| now.count_all(Pod::is_ready) == 4).await;
    invariants::released_in_order(&stage.pods, &group);
    _ = Ordering::SeqCst;
}
