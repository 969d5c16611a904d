//! The Deployment's pods come up under the strictest Pod Security Standard, and where platforms limit what pods may say.

use crate::common::account::manifests;
use crate::common::prelude::*;
use crate::install::support::{apply, define, get, get_named, install};

fn pods(plane: &ControlPlane) -> Vec<Value> {
    let pods: Value = serde_json::from_str(&plane.must(&["get", "pods", "-n", SYSTEM, "-o", "json"], "")).unwrap();
    pods["items"].as_array().unwrap().clone()
}

#[tokio::test]
async fn the_pods_are_admitted_where_the_restricted_standard_is_enforced() {
    let plane = ControlPlane::start();
    for name in ["one", "two", "three"] {
        plane.must(&["create", "-f", "-"], &node(name, 10, "any").to_string());
    }
    plane.must(&["wait", "--for=condition=Ready", "node", "--all", "--timeout=60s"], "");
    let installed = install(plane, &["--spread", "required", "--replicas", "3"]).await;
    let plane = &installed.plane;
    let namespace = get_named(plane, "namespace", SYSTEM);
    assert_eq!(namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"], "restricted");
    // It is enforced: a pod without a security context is refused there.
    let loose = plane.kubectl(&["run", "loose", "-n", SYSTEM, "--image=registry.invalid/x:1"], "");
    let refusal = String::from_utf8_lossy(&loose.stderr).into_owned();
    assert!(!loose.status.success() && refusal.contains(r#"violates PodSecurity "restricted"#), "{refusal}");

    // Fake nodes run what the controllers make; the webhook is registered and answers nobody.
    let status = async || get(plane, "deployment")["status"].take();
    until_found("all replicas are available", status, |status| status["availableReplicas"] == 3).await;
    let nodes: BTreeSet<_> = pods(plane).iter().map(|pod| pod["spec"]["nodeName"].to_string()).collect();
    assert_eq!(nodes.len(), 3, "each has a node of its own: {nodes:?}");
    let budget = get(plane, "poddisruptionbudget");
    assert_eq!(budget["status"]["expectedPods"], 3, "{budget}");
}

/// As some platforms have it: pods of the system's classes are admitted where a quota is for them, and users are the platform's to
/// choose. Besides, some nodes are not Linux.
#[tokio::test]
async fn the_pods_are_admitted_where_their_class_takes_a_quota() {
    let api = "apiserver.config.k8s.io/v1";
    let class = json!({ "scopeName": "PriorityClass", "operator": "In", "values": ["system-cluster-critical"] });
    let limited = json!([{ "resource": "pods", "matchScopes": [class] }]);
    let quotas = json!({ "apiVersion": api, "kind": "ResourceQuotaConfiguration", "limitedResources": limited });
    let plugins = json!([{ "name": "ResourceQuota", "configuration": quotas }]);
    let limits = json!({ "apiVersion": api, "kind": "AdmissionConfiguration", "plugins": plugins });
    let file = scratch_dir().join("limits.json");
    std::fs::write(&file, limits.to_string()).unwrap();
    let flag = format!("admission-control-config-file={}", file.display());
    let plane = ControlPlane::own(move || ControlPlane::start_with("kwok", &["--apiserver-flag", &flag])).await;
    for (name, system) in [("one", "linux"), ("two", "windows"), ("three", "windows")] {
        let mut node = node(name, 10, "any");
        node["metadata"]["labels"]["kubernetes.io/os"] = json!(system);
        plane.must(&["create", "-f", "-"], &node.to_string());
    }
    plane.must(&["wait", "--for=condition=Ready", "node", "--all", "--timeout=60s"], "");
    define(&plane);
    apply(&plane, &manifests(&["--without", "resource-quota,user-ids"]));
    let report = async || ran(&plane.kubeconfig, &["doctor", "-o", "json"]).await.json();
    until_found("the doctor quotes why there are no pods", report, |report| {
        let mut findings = report["findings"].as_array().unwrap().iter();
        let found = findings.find(|finding| finding["check"] == "replicas").map(Value::to_string).unwrap_or_default();
        let words = ["are not made: FailedCreate: ", "insufficient quota", "resourceQuota.enabled"];
        words.iter().all(|word| found.contains(word))
    })
    .await;

    apply(&plane, &manifests(&["--without", "user-ids", "--part", "workload"]));
    // The controller tries again later and later.
    plane.must(&["rollout", "restart", "deployment/rolegate", "-n", SYSTEM], "");
    plane.must(&["rollout", "status", "deployment/rolegate", "-n", SYSTEM, "--timeout=120s"], "");
    let pods = pods(&plane);
    assert!(pods.len() >= 2, "{pods:?}");
    for pod in pods.iter().filter(|pod| pod["metadata"]["deletionTimestamp"].is_null()) {
        assert_eq!(pod["spec"]["nodeName"], "one");
        let security = json!({ "runAsNonRoot": true, "seccompProfile": { "type": "RuntimeDefault" } });
        assert_eq!(pod["spec"]["securityContext"], security);
    }
}
