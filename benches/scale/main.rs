//! `make bench-scale`: what large groups cost on a real API server, with the real scheduler and fake nodes, in one run:
//!
//! - pods that nobody holds against the same in a Parallel coordination;
//! - pods that nobody holds against segments in order, once as rolegate does it, once as a bare loop does that plans nothing:
//!   it sends the same PATCHes on the same readiness.
//!
//! `ROLEGATE_SCALE` is the number of pods of the large groups (3,000).

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a benchmark stops where it fails, and shows rounded times"
)]

#[path = "../../tests/common/mod.rs"]
mod common;
mod pods;
#[path = "../process.rs"]
mod process;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{Namespace, Node, Pod, ServiceAccount};
use kube::api::{DeleteParams, DynamicObject, ListParams, PostParams, PropagationPolicy};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Api, Client};
use serde_json::json;

use common::group::{Progression, node};
use common::rolegate::Launch;
use common::stage::typed;
use common::{ControlPlane, Group, PATIENT, eventually};
use pods::{Bare, Pods};
use process::cpu;

/// Replicas of prefill and of decode in a segment.
const SEGMENT: (u32, u32) = (10, 5);
const NODES: u32 = 100;
const NAMESPACE: &str = "scale";
/// Longest time for one group to get ready, or to go.
const LONG: Duration = Duration::from_secs(900);

/// What one group cost.
struct Row {
    what: String,
    pods: u32,
    time: Duration,
    /// Time on processors: of the API server, and of rolegate where it ran.
    server: Duration,
    rolegate: Option<Duration>,
    /// Requests that the API server answered meanwhile which nobody but rolegate, or the bare loop, sends.
    requests: BTreeMap<String, u64>,
    /// From the last pod of a batch being ready to the last PATCH of the next, where batches wait.
    steps: Vec<Duration>,
}

#[tokio::main]
async fn main() {
    let large: u32 = std::env::var("ROLEGATE_SCALE").ok().and_then(|pods| pods.parse().ok()).unwrap_or(3_000);
    let scale = Scale::start(large).await;
    let half = large / 2;
    let mut rows = Vec::new();
    // Nobody asks a webhook yet.
    rows.push(scale.run("ungated", half, Way::Ungated, None).await);
    rows.push(scale.run("ungated", large, Way::Ungated, None).await);
    rows.push(scale.run("bare loop", large, Way::Bare, None).await);
    let launch = Launch::new(scale.plane.clone(), scale.client.clone(), NAMESPACE);
    let rolegate = launch.flag("lease-duration", "15s").start().await;
    let pid = Some(rolegate.pid());
    rows.push(scale.run("Parallel", half, Way::Coordinated(Progression::Parallel), pid).await);
    rows.push(scale.run("OrderedReady", large, Way::Coordinated(Progression::OrderedReady), pid).await);
    print(&rows);
    println!("{}", passes(&rolegate.metrics().await));
    rolegate.terminate().await;
}

/// How the pods of a group are treated.
#[derive(Clone, Copy)]
enum Way {
    Ungated,
    Bare,
    Coordinated(Progression),
}

struct Scale {
    plane: Arc<ControlPlane>,
    client: Client,
    apiserver: u32,
}

impl Scale {
    async fn start(pods: u32) -> Self {
        let plane = Arc::new(ControlPlane::start());
        plane.define_groups();
        let client = plane.client().await;
        let namespaces: Api<Namespace> = Api::all(client.clone());
        namespaces.create(&PostParams::default(), &typed(json!({ "metadata": { "name": NAMESPACE } }))).await.unwrap();
        let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), NAMESPACE);
        eventually(PATIENT, "the service account of the namespace", async || accounts.get("default").await).await;
        let room = pods.div_ceil(NODES) + 10;
        for number in 0..NODES {
            let node = node(&format!("node-{number}"), room, NAMESPACE);
            Api::<Node>::all(client.clone()).create(&PostParams::default(), &typed(node)).await.unwrap();
        }
        let apiserver = pid_of("kube-apiserver", &plane.dir.display().to_string());
        Self { plane, client, apiserver }
    }

    /// Brings a group of so many pods up, and takes it away again.
    async fn run(&self, what: &str, pods: u32, way: Way, rolegate: Option<u32>) -> Row {
        let segments = pods / (SEGMENT.0 + SEGMENT.1);
        let group = Group::new(&what.replace(' ', "-").to_lowercase());
        let group =
            group.role("prefill", segments * SEGMENT.0, SEGMENT.0).role("decode", segments * SEGMENT.1, SEGMENT.1);
        let group = match way {
            Way::Ungated => group,
            Way::Bare => group.template(&json!({ "spec": { "schedulingGates": [{ "name": common::pods::GATE }] } })),
            Way::Coordinated(progression) => group.progression(progression),
        };
        let seen = Pods::watch(&self.client, NAMESPACE).await;
        if matches!(way, Way::Coordinated(_)) {
            self.groups().create(&PostParams::default(), &typed(group.object())).await.unwrap();
        }
        let bare = matches!(way, Way::Bare).then(|| Bare::start(&self.client, NAMESPACE, &group.name, &seen, SEGMENT));
        let before = (cpu(self.apiserver), rolegate.map(cpu), self.requests());
        let start = Instant::now();
        let sets: Api<StatefulSet> = Api::namespaced(self.client.clone(), NAMESPACE);
        for role in &group.roles {
            sets.create(&PostParams::default(), &typed(group.set(role, NAMESPACE))).await.unwrap();
        }
        seen.until_ready(group.pods() as usize, LONG).await;
        let time = start.elapsed();
        let row = Row {
            what: what.to_owned(),
            pods: group.pods(),
            time,
            server: cpu(self.apiserver).saturating_sub(before.0),
            rolegate: rolegate.zip(before.1).map(|(pid, before)| cpu(pid).saturating_sub(before)),
            requests: difference(self.requests(), &before.2),
            steps: if matches!(way, Way::Ungated) { Vec::new() } else { seen.steps(SEGMENT) },
        };
        eprintln!("{} {}: {:.1?}", row.pods, row.what, row.time);
        drop(bare);
        self.clear(&group).await;
        row
    }

    async fn clear(&self, group: &Group) {
        let sets: Api<StatefulSet> = Api::namespaced(self.client.clone(), NAMESPACE);
        let orphan = DeleteParams { propagation_policy: Some(PropagationPolicy::Orphan), ..DeleteParams::default() };
        for role in &group.roles {
            sets.delete(&group.set_name(&role.name), &orphan).await.unwrap();
        }
        let gone = async || match sets.list(&ListParams::default()).await.unwrap().items.len() {
            0 => Ok(()),
            left => Err(format!("{left} sets are left")),
        };
        eventually(LONG, "the sets are gone", gone).await;
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), NAMESPACE);
        let at_once = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() };
        _ = pods.delete_collection(&at_once, &ListParams::default()).await.unwrap();
        let gone = async || match pods.list_metadata(&ListParams::default()).await.unwrap().items.len() {
            0 => Ok(()),
            left => Err(format!("{left} pods are left")),
        };
        eventually(LONG, "the pods are gone", gone).await;
        _ = self.groups().delete(&group.name, &DeleteParams::default()).await;
    }

    /// Requests by what is asked for, as the API server counts them.
    fn requests(&self) -> BTreeMap<String, u64> {
        let mut all = BTreeMap::new();
        for line in self.plane.must(&["get", "--raw", "/metrics"], "").lines() {
            let Some((labels, count)) =
                line.strip_prefix("apiserver_request_total{").and_then(|line| line.split_once("} "))
            else {
                continue;
            };
            let label = |name: &str| {
                let (_, rest) = labels.split_once(&format!("{name}=\"")).unwrap_or_default();
                rest.split('"').next().unwrap_or_default().to_owned()
            };
            let (verb, resource, part) = (label("verb"), label("resource"), label("subresource"));
            let ours = resource.starts_with("role") || (resource == "pods" && verb == "PATCH" && part.is_empty());
            if ours && verb != "WATCH" {
                let part = if part.is_empty() { part } else { format!("/{part}") };
                *all.entry(format!("{verb} {resource}{part}")).or_default() += count.parse::<f64>().unwrap() as u64;
            }
        }
        all
    }

    fn groups(&self) -> Api<DynamicObject> {
        let kind = GroupVersionKind::gvk("workloads.x-k8s.io", "v1alpha1", "RoleBasedGroup");
        Api::namespaced_with(self.client.clone(), NAMESPACE, &ApiResource::from_gvk(&kind))
    }
}

fn difference(now: BTreeMap<String, u64>, before: &BTreeMap<String, u64>) -> BTreeMap<String, u64> {
    let since = now.into_iter().map(|(what, count)| {
        let more = count - before.get(&what).copied().unwrap_or_default();
        (what, more)
    });
    since.filter(|(_, more)| *more > 0).collect()
}

/// The component of this name that was given this folder.
fn pid_of(name: &str, folder: &str) -> u32 {
    let processes =
        std::fs::read_dir("/proc").unwrap().filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok());
    let is_it = |pid: &u32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).into_owned();
        line.split('\0').nth(1) == Some(name) && line.contains(folder)
    };
    processes.into_iter().find(is_it).expect("the API server runs")
}

fn print(rows: &[Row]) {
    println!("| pods | | all ready | against ungated | CPU of the API server | of rolegate | step p50 | p99 |");
    println!("|---|---|---|---|---|---|---|---|");
    for row in rows {
        let ungated = rows.iter().find(|other| other.what == "ungated" && other.pods == row.pods);
        let ratio = ungated.map_or(1.0, |ungated| row.time.as_secs_f64() / ungated.time.as_secs_f64());
        let at = |percent: usize| {
            row.steps.get(row.steps.len() * percent / 100).map_or_else(String::new, |time| format!("{time:.0?}"))
        };
        let of_rolegate = row.rolegate.map_or_else(String::new, |cpu| format!("{:.1} s", cpu.as_secs_f64()));
        println!(
            "| {} | {} | {:.1} s | {ratio:.2} × | {:.1} s | {of_rolegate} | {} | {} |",
            row.pods,
            row.what,
            row.time.as_secs_f64(),
            row.server.as_secs_f64(),
            at(50),
            at(99),
        );
    }
    println!();
    for row in rows.iter().filter(|row| !row.requests.is_empty()) {
        let asked = row.requests.iter().map(|(what, count)| format!("{count} {what}"));
        println!("{} {}: {}", row.pods, row.what, asked.collect::<Vec<_>>().join(", "));
    }
}

/// How often rolegate planned, and how long it took.
fn passes(metrics: &str) -> String {
    let value = |name: &str| {
        let line = metrics.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
        line.trim().parse::<f64>().unwrap_or_default()
    };
    let (sum, count) = (value("rolegate_plan_seconds_sum"), value("rolegate_plan_seconds_count"));
    format!("{count} passes, {:.3} ms each", sum / count * 1e3)
}
