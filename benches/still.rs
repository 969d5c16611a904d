//! A control plane on which nobody but the benchmark makes pods, takes them away or writes to them.

use std::sync::Arc;

use kube::Client;
use serde_json::json;

use crate::common::ControlPlane;
use crate::common::stage::make_namespace;
use crate::process;

/// One that has these namespaces, with a client and the pid of its API server.
pub async fn start(namespaces: impl IntoIterator<Item = String>) -> (Arc<ControlPlane>, Client, u32) {
    let plane = Arc::new(ControlPlane::start());
    plane.define_groups();
    let client = plane.client().await;
    // Somebody has to give them their accounts.
    for namespace in namespaces {
        make_namespace(&client, &namespace, &json!({})).await;
    }
    // There are no nodes, and a scheduler that says so again and again is not nothing.
    for component in ["kube-controller-manager", "kube-scheduler"] {
        plane.command("stop", component).await;
    }
    let server = process::components(&plane.dir)["kube-apiserver"];
    (plane, client, server)
}
