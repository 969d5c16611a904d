//! The Deployment's pods come up under the strictest Pod Security Standard.

use serde_json::Value;

use crate::common::control_plane::SYSTEM;
use crate::common::{ControlPlane, PATIENT, eventually, group::node};
use crate::install::support::{get, install};

#[tokio::test]
async fn the_pods_are_admitted_where_the_restricted_standard_is_enforced() {
    let plane = ControlPlane::start();
    for name in ["one", "two", "three"] {
        plane.must(&["create", "-f", "-"], &node(name, 10, "any").to_string());
    }
    plane.must(&["wait", "--for=condition=Ready", "node", "--all", "--timeout=60s"], "");
    let installed = install(plane, &["--spread", "required", "--replicas", "3"]).await;
    let plane = &installed.plane;
    let namespace: Value = serde_json::from_str(&plane.must(&["get", "namespace", SYSTEM, "-o", "json"], "")).unwrap();
    assert_eq!(namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"], "restricted");
    // It is enforced: a pod without a security context is refused there.
    let loose = plane.kubectl(&["run", "loose", "-n", SYSTEM, "--image=registry.invalid/x:1"], "");
    let refusal = String::from_utf8_lossy(&loose.stderr).into_owned();
    assert!(!loose.status.success() && refusal.contains(r#"violates PodSecurity "restricted"#), "{refusal}");

    // Fake nodes run what the controllers make; the webhook is registered and answers nobody.
    eventually(PATIENT, "all replicas are available", async || {
        let deployment = get(plane, "deployment");
        let status = &deployment["status"];
        if status["availableReplicas"] == 3 { Ok(()) } else { Err(status.to_string()) }
    })
    .await;
    let pods = plane.must(&["get", "pods", "-n", SYSTEM, "-o", "json"], "");
    let pods: Value = serde_json::from_str(&pods).unwrap();
    let mut nodes: Vec<_> =
        pods["items"].as_array().unwrap().iter().map(|pod| pod["spec"]["nodeName"].clone()).collect();
    nodes.sort_by_key(ToString::to_string);
    nodes.dedup();
    assert_eq!(nodes.len(), 3, "each has a node of its own: {nodes:?}");
    let budget = get(plane, "poddisruptionbudget");
    assert_eq!(budget["status"]["expectedPods"], 3, "{budget}");
}
