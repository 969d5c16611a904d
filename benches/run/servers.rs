//! The three servers: separate processes with the same certificate.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use bytes::Bytes;
use k8s_openapi::api::apps::v1::StatefulSet;
use kube::api::PostParams;
use rolegate::tls::authority::{LeafSpec, new_ca, new_leaf};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::common::http::Caller;
use crate::common::rolegate::Rolegate;
use crate::common::stage::typed;
use crate::common::{ControlPlane, Group, PATIENT, Stage, eventually};
use crate::process;
use crate::reviews::NAMESPACE;

pub struct Server {
    pub name: &'static str,
    pub address: SocketAddr,
    /// Requests in a closed loop: enough that the kernel's resolution of 1/100 s does not matter.
    pub count: usize,
    pid: u32,
}

/// The three servers; they end on drop.
pub struct Servers {
    pub all: [Server; 3],
    /// CA certificate of the servers.
    pub ca: Vec<u8>,
    floor: Child,
    peer: Child,
    rolegate: Rolegate,
    _stage: Stage,
    _folder: tempfile::TempDir,
}

impl Servers {
    pub async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (certificate, key) = (folder.path().join("tls.crt"), folder.path().join("tls.key"));
        let now = jiff::Timestamp::now();
        let ca = new_ca(now).unwrap();
        let mut spec = LeafSpec::for_names(["bench"]);
        spec.addresses.push(Ipv4Addr::LOCALHOST.into());
        let leaf = new_leaf(&ca, &spec, now).unwrap();
        std::fs::write(&certificate, leaf.cert_pem).unwrap();
        std::fs::write(&key, leaf.key_pem).unwrap();

        let stage = stage().await;
        let launch = [
            ("cert-file", certificate.to_str().unwrap()),
            ("key-file", key.to_str().unwrap()),
            // Only the benchmark sends reviews.
            ("webhooks", "off"),
            ("lease-duration", "15s"),
        ]
        .into_iter()
        .fold(stage.launch().flag("reach", "loopback"), |launch, (name, value)| launch.flag(name, value));
        let rolegate = launch.start().await;
        let (floor, floor_address) = floor(&certificate, &key).await;
        let (peer, peer_address) = peer(folder.path()).await;
        let all = [
            Server { name: "floor", address: floor_address, count: 40_000, pid: floor.id().unwrap() },
            Server { name: "rolegate", address: rolegate.webhook, count: 20_000, pid: rolegate.pid() },
            Server { name: "peer", address: peer_address, count: 2_000, pid: peer.id().unwrap() },
        ];
        Self { all, ca: ca.cert_pem.into_bytes(), floor, peer, rolegate, _stage: stage, _folder: folder }
    }

    /// Asserts that rolegate and the peer mutate a pod in the same way, and hold it.
    pub async fn answers_agree(&self, body: &Bytes) {
        let review: Value = serde_json::from_slice(body).unwrap();
        let mut pods = Vec::new();
        for server in &self.all[1..] {
            let mut caller = Caller::connect(server.address, &self.ca).await;
            let (status, answer) = caller.post("/mutate", body.clone()).await.unwrap();
            assert_eq!(status, 200, "{}: {answer:?}", server.name);
            let answer: Value = serde_json::from_slice(&answer).unwrap();
            let patch = answer["response"]["patch"].as_str().unwrap_or_else(|| panic!("{}: {answer}", server.name));
            let patch = base64::engine::general_purpose::STANDARD.decode(patch).unwrap();
            let patch: json_patch::Patch = serde_json::from_slice(&patch).unwrap();
            let mut pod = review["request"]["object"].clone();
            json_patch::patch(&mut pod, &patch).unwrap();
            assert_eq!(pod["spec"]["schedulingGates"], json!([{ "name": "rolegate.dev/hold" }]), "{}", server.name);
            pods.push(pod);
        }
        assert_eq!(pods[0], pods[1], "rolegate and the peer make different pods");
    }

    /// Ends all servers.
    pub async fn stop(mut self) {
        self.floor.kill().await.unwrap();
        self.peer.kill().await.unwrap();
        self.rolegate.terminate().await;
    }
}

/// Starts a control plane with the group `llm`, whose role `decode` comes up in segments, and with its StatefulSet
/// without pods.
async fn stage() -> Stage {
    let plane = ControlPlane::start();
    plane.define_groups();
    let stage = Stage::on(Arc::new(plane), NAMESPACE).await;
    let group = Group::new("llm").role("prefill", 100, 10).role("decode", 50, 5);
    stage.create_group(&group).await;
    let mut set = group.set(group.find("decode"), NAMESPACE);
    set["metadata"]["name"] = json!("decode");
    set["spec"]["replicas"] = json!(0);
    stage.api::<StatefulSet>().create(&PostParams::default(), &typed(set)).await.unwrap();
    stage
}

async fn floor(certificate: &Path, key: &Path) -> (Child, SocketAddr) {
    let binary = std::env::current_exe().unwrap().with_file_name("bench-floor");
    let mut process =
        Command::new(binary).args([certificate, key]).stdout(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
    let line = BufReader::new(process.stdout.take().unwrap()).lines().next_line().await.unwrap();
    let line = line.expect("the floor ended at once");
    let address = line.strip_prefix("serving webhook=https://").unwrap().parse().unwrap();
    (process, address)
}

async fn peer(certificates: &Path) -> (Child, SocketAddr) {
    let binary = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/bench/peer");
    // controller-runtime does not report its port, so a port that was just free is passed.
    let address = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap();
    let process = Command::new(binary)
        .arg(format!("--port={}", address.port()))
        .arg("--cert-dir")
        .arg(certificates)
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    eventually(PATIENT, "the peer listens", async || tokio::net::TcpStream::connect(address).await).await;
    (process, address)
}

impl Server {
    /// Returns the CPU time since the server started, user and system.
    pub fn cpu(&self) -> Duration {
        process::cpu(self.pid)
    }

    /// Returns the resident memory in KiB.
    pub fn resident(&self) -> u32 {
        process::resident(self.pid)
    }
}
