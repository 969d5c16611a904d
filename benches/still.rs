//! A control plane whose pods only the benchmark creates, writes and deletes.

#![allow(dead_code, reason = "one benchmark asks for more API servers")]

use std::net::{Ipv4Addr, TcpListener};
use std::process::Stdio;
use std::sync::Arc;

use http::Request;
use kube::Client;
use serde_json::json;
use tokio::process::{Child, Command};

use crate::common::control_plane::config_of;
use crate::common::stage::make_namespace;
use crate::common::{ControlPlane, PATIENT, eventually};
use crate::process;

/// Starts a control plane with these namespaces; returns a client and the pid of its API server.
pub async fn start(namespaces: impl IntoIterator<Item = String>) -> (Arc<ControlPlane>, Client, u32) {
    let plane = Arc::new(ControlPlane::start());
    plane.define_groups();
    let client = plane.client().await;
    // The controller manager must create their service accounts before it is stopped.
    for namespace in namespaces {
        make_namespace(&client, &namespace, &json!({})).await;
    }
    // Without nodes, the scheduler would keep reporting unschedulable pods, which costs time.
    for component in ["kube-controller-manager", "kube-scheduler"] {
        plane.command("stop", component).await;
    }
    let server = process::components(&plane.dir)["kube-apiserver"];
    (plane, client, server)
}

/// Starts another API server on the same etcd, with a client. The server ends when the process is dropped.
pub async fn another_api_server(plane: &ControlPlane, like: u32) -> (Client, Child) {
    let of = |file: &str| format!("/proc/{like}/{file}");
    let arguments = std::fs::read_to_string(of("cmdline")).unwrap();
    let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
    let (mut arguments, mut secure) = (arguments.split_terminator('\0'), String::new());
    let name = arguments.next().unwrap();
    let arguments: Vec<_> = arguments
        .map(|argument| match argument.strip_prefix("--secure-port=") {
            Some(first) => {
                first.clone_into(&mut secure);
                format!("--secure-port={port}")
            }
            None => argument.to_owned(),
        })
        .collect();
    let mut command = Command::new(std::fs::read_link(of("exe")).unwrap());
    let process = command
        .arg0(name)
        .args(arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut config = config_of(&plane.kubeconfig).await;
    config.cluster_url =
        config.cluster_url.to_string().replace(&format!(":{secure}"), &format!(":{port}")).parse().unwrap();
    let client = Client::try_from(config).unwrap();
    eventually(PATIENT, "the API server is ready", async || {
        let ready = Request::get("/readyz").body(Vec::new()).unwrap();
        client.request_text(ready).await.map_err(|error| error.to_string())
    })
    .await;
    (client, process)
}
