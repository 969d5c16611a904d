//! rolegate away altogether, its webhooks registered as shipped: the cluster and rolegate itself can still start.

use crate::common::prelude::*;
use crate::install::support::{get, install};

#[tokio::test]
async fn with_all_replicas_gone_nothing_that_is_needed_to_come_back_is_refused() {
    let installed = install(ControlPlane::start(), &[]).await;
    installed.plane.define_groups();
    let plane = &installed.plane;
    let stage = Stage::on(plane.clone(), "llm").await.with_room(60).await;
    let group = Group::new("llm").role("prefill", 20, 10).role("decode", 10, 5);
    let statuses = stage.statuses(&group);

    // It has never run: there is no caBundle yet. Pods of groups and groups themselves are refused, and nothing else.
    for kind in ["mutatingwebhookconfiguration", "validatingwebhookconfiguration"] {
        for webhook in get(plane, kind)["webhooks"].as_array().unwrap() {
            let (policy, bundle) = (&webhook["failurePolicy"], &webhook["clientConfig"]["caBundle"]);
            assert_eq!((policy, bundle), (&json!("Fail"), &Value::Null));
        }
    }
    refused_and_admitted(&stage, &group).await;
    // The pods of the Deployment itself come up meanwhile.
    plane.must(&["rollout", "status", "deployment/rolegate", "-n", SYSTEM, "--timeout=60s"], "");

    let rolegate = installed.serve(&stage).await;
    stage.deploy(&group).await;
    statuses.until("deployed", |status| status.ready() == "True AllReplicasReady: 30/30 pods ready").await;

    // All replicas die.
    rolegate.kill().await;
    refused_and_admitted(&stage, &group).await;
    // Its own Deployment makes its pods anew, and so do workloads of kube-system, with whatever labels.
    plane.must(&["delete", "pods", "--all", "-n", SYSTEM], "");
    plane.must(&["rollout", "status", "deployment/rolegate", "-n", SYSTEM, "--timeout=60s"], "");
    // What runs goes on: the pods of the group are as they were.
    stage.pods.now(|now| assert_eq!(now.count_all(Pod::is_ready), 30, "{now}"));

    // A namespace that is taken out goes on at once.
    let out = Stage::on(plane.clone(), "left-out").await;
    out.label("rolegate.dev/ignore=");
    let created = async || out.post(CORE, "pods", &group.pod("prefill", "first", "left-out")).await.code;
    until_is("pods of groups pass there", created, 201).await;

    // Back, and what was refused is made.
    let _rolegate = installed.serve(&stage).await;
    let larger = group.clone().role("prefill", 30, 10).role("decode", 15, 5);
    stage.scale(&larger).await;
    statuses.until("grown", |status| status.ready() == "True AllReplicasReady: 45/45 pods ready").await;
}

fn path(namespace: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/pods")
}

/// Pods of groups and groups are refused in the stage; whatever the cluster needs is not.
async fn refused_and_admitted(stage: &Stage, group: &Group) {
    let mut pod = group.pod("prefill", "of-a-group", &stage.namespace);
    let refused = stage.send("POST", &path(&stage.namespace), &pod).await;
    let message = refused.body["message"].as_str().unwrap_or_default();
    assert!(refused.code == 500 && message.contains(r#"failed calling webhook "pods.rolegate.dev""#), "{refused:?}");
    let wrong = Group::new("other").role("main", 1, 0).object();
    let groups = format!("/apis/workloads.x-k8s.io/v1alpha1/namespaces/{}/rolebasedgroups?dryRun=All", stage.namespace);
    assert_eq!(stage.send("POST", &groups, &wrong).await.code, 500);

    // In kube-system and in our own namespace, even pods that name a group. These satisfy what is enforced there.
    let seccomp = json!({ "type": "RuntimeDefault" });
    pod["spec"]["securityContext"] = json!({ "runAsNonRoot": true, "runAsUser": 1, "seccompProfile": seccomp });
    let none = json!({ "allowPrivilegeEscalation": false, "capabilities": { "drop": ["ALL"] } });
    pod["spec"]["containers"][0]["securityContext"] = none;
    for namespace in ["kube-system", SYSTEM] {
        let admitted = stage.send("POST", &format!("{}?dryRun=All", path(namespace)), &pod).await;
        assert_eq!(admitted.code, 201, "{namespace}: {admitted:?}");
        assert!(admitted.body["spec"]["schedulingGates"].is_null(), "{admitted:?}");
    }
    // Nor are pods that name none, anywhere; nor is anything else that a cluster is made of.
    pod["metadata"]["labels"] = json!({ "app": "other" });
    assert_eq!(stage.send("POST", &format!("{}?dryRun=All", path("llm")), &pod).await.code, 201);
    let namespace = json!({ "metadata": { "name": "new" } });
    assert_eq!(stage.send("POST", "/api/v1/namespaces?dryRun=All", &namespace).await.code, 201);
}
