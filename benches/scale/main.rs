//! `make bench-scale`: measures large groups on a real API server, with the real scheduler and fake nodes, each in a
//! control plane of its own:
//!
//! - pods that nothing holds, against the same pods beside rolegate, which does not review them because they are of no
//!   group, behind a constant webhook, and in a Parallel coordination;
//! - pods that nothing holds, against ordered segments: by rolegate, by a bare loop that sends the same PATCHes without
//!   planning, and by rolegate with ten viewers of its status page;
//! - one segment of 510 pods that must share one of two racks: placed by rolegate, placed by the scheduler, and not held.
//!
//! Afterwards, measures the cost of lifting one gate for the API server, by kind of patch.
//!
//! `ROLEGATE_SCALE` is the number of pods of the large groups (3,000). `ROLEGATE_SCALE_ROWS` selects rows that contain it,
//! such as `510`, and only prints them; `patches` selects no rows, only the kinds of patches.

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
#[path = "../constant.rs"]
mod constant;
#[path = "../held.rs"]
mod held;
mod lease;
mod patches;
mod pods;
#[path = "../process.rs"]
mod process;
#[path = "../section.rs"]
mod section;
mod table;
mod viewers;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::Node;
use kube::api::{DynamicObject, PostParams};
use kube::{Api, Client};
use serde_json::json;

use common::control_plane::client_of;
use common::group::{Progression, node};
use common::rolegate::{Launch, Rolegate};
use common::stage::{groups, make_namespace, typed};
use common::{ControlPlane, Group, PATIENT, eventually};
use constant::ConstantWebhook;
use lease::LeaseHeld;
use pods::{Bare, Pods};
use process::{components, cpu};
use section::Section;
use viewers::Viewers;

/// Prefill and decode replicas per segment.
const SEGMENT: (u32, u32) = (10, 5);
const NODES: u32 = 100;
/// Pods that share a rack.
const ONE_RACK: u32 = 510;
const RACK: &str = "example.com/rack";
const NAMESPACE: &str = "scale";
/// Open streams of the status page.
const VIEWERS: usize = 10;
/// Duration below a fifth of a CPU after which the components count as idle.
const REST: Duration = Duration::from_secs(1);
/// Time limit for a group to become ready.
const LONG: Duration = Duration::from_secs(900);

/// The measurements of one group.
struct Row {
    what: String,
    pods: u32,
    time: Duration,
    spent: Spent,
    /// Times from the last ready pod of a batch to the last PATCH of the next, where batches wait.
    steps: Vec<Duration>,
    /// Time from the last created pod to the last pod with a node.
    bound: Duration,
    /// Number and duration of rolegate's passes, if it ran.
    passes: Option<String>,
}

/// CPU time and requests since the start.
struct Spent {
    /// CPU time of the API server, of each other component, and of rolegate if it runs.
    server: Duration,
    others: BTreeMap<String, Duration>,
    rolegate: Option<Duration>,
    /// Requests to the API server of the kinds that only rolegate or the bare loop sends, and Events.
    requests: BTreeMap<String, u64>,
}

impl Spent {
    fn since(mut self, before: &Self) -> Self {
        self.server = self.server.saturating_sub(before.server);
        self.others.iter_mut().for_each(|(name, time)| *time = time.saturating_sub(before.others[name]));
        self.rolegate = self.rolegate.zip(before.rolegate).map(|(now, before)| now.saturating_sub(before));
        self.requests.iter_mut().for_each(|(what, count)| *count -= before.requests.get(what).copied().unwrap_or(0));
        self.requests.retain(|_, count| *count > 0);
        self
    }
}

#[tokio::main]
async fn main() {
    let large: u32 = std::env::var("ROLEGATE_SCALE").ok().and_then(|pods| pods.parse().ok()).unwrap_or(3_000);
    let half = large / 2;
    // In turns, each round in another order: disturbances only add time, so the fastest run counts.
    let born_free = [
        ("ungated", half, Way::Ungated),
        ("beside", half, Way::Beside),
        ("constant webhook", half, Way::Constant),
        ("Parallel", half, Way::Coordinated(Progression::Parallel)),
    ];
    let in_order = [
        ("ungated", large, Way::Ungated),
        ("bare loop", large, Way::Bare),
        ("bare loop, same admission", large, Way::BareBehind),
        ("OrderedReady", large, Way::Coordinated(Progression::OrderedReady)),
        ("OrderedReady, looked at", large, Way::LookedAt),
    ];
    let one_rack = [
        ("ungated", ONE_RACK, Way::Ungated),
        ("one rack, placed", ONE_RACK, Way::OneRack { placed: true }),
        ("one rack, not placed", ONE_RACK, Way::OneRack { placed: false }),
    ];
    let runs = [in_turns(&born_free, 4), in_turns(&in_order, 2), in_turns(&one_rack, 2)].concat();
    let mut rows = Vec::new();
    let only = std::env::var("ROLEGATE_SCALE_ROWS").ok();
    let is_asked_for = |row: &str| only.as_ref().is_none_or(|only| row.contains(only.as_str()));
    for (what, pods, way) in runs.into_iter().filter(|(what, pods, _)| is_asked_for(&format!("{pods} {what}"))) {
        // An API server that has served tens of thousands of pods is several times slower than a new one.
        let scale = Scale::start(pods).await;
        let launch = Launch::new(scale.plane.clone(), scale.client.clone(), NAMESPACE).flag("lease-duration", "15s");
        let placement = if matches!(way, Way::OneRack { placed: false }) { "off" } else { "on" };
        let launch = launch.flag("placement", placement);
        let lease = matches!(way, Way::BareBehind).then(|| LeaseHeld::hold(&scale.client, NAMESPACE));
        let mut rolegate = if matches!(way, Way::Ungated | Way::Bare) { None } else { Some(launch.start().await) };
        let replaced = rolegate.take_if(|_| matches!(way, Way::Constant));
        let constant = match replaced {
            Some(rolegate) => Some(scale.replace(rolegate, &group_of(what, pods, way)).await),
            None => None,
        };
        let mut row = scale.run(what, pods, way, &launch, rolegate.as_ref()).await;
        if let Some(constant) = &constant {
            row.passes = Some(format!("asked about {} pods", constant.asked()));
        }
        drop((lease, constant));
        if let Some(rolegate) = rolegate {
            let seen = row.passes.map(|seen| format!("; {seen}")).unwrap_or_default();
            row.passes = Some(passes(&rolegate).await + &seen);
            rolegate.terminate().await;
        }
        rows.push(row);
    }
    assert!(!rows.is_empty() || only.as_deref() == Some("patches"), "no row has this in its name: {only:?}");
    let mut out = Section::new("bench-scale");
    table::print(&mut out, &rows);
    table::enter_figures(&mut out, &rows);
    if only.is_some_and(|only| only != "patches") {
        return;
    }
    let scale = Scale::start(0).await;
    patches::compare(&mut out, &scale.client, NAMESPACE, scale.apiserver).await;
    let rolegate = Launch::new(scale.plane.clone(), scale.client.clone(), NAMESPACE).start().await;
    rolegate.terminate().await;
    out.finish();
}

/// Returns the runs repeated; each round begins one run later.
fn in_turns<T: Clone>(runs: &[T], rounds: usize) -> Vec<T> {
    let turned = |round: usize| runs.iter().cycle().skip(round % runs.len()).take(runs.len()).cloned();
    (0..rounds).flat_map(turned).collect()
}

/// The treatment of a group's pods.
#[derive(Clone, Copy)]
enum Way {
    /// No webhook.
    Ungated,
    /// rolegate runs, but the pods are of no group.
    Beside,
    /// The pods are of a group that holds none; a constant webhook replaces rolegate.
    Constant,
    /// The pods are created with a gate, which the bare loop lifts.
    Bare,
    /// rolegate's webhook adds the gate; the bare loop lifts it, with rolegate's account.
    BareBehind,
    /// rolegate coordinates the pods.
    Coordinated(Progression),
    /// The segments of the group wait for each other, and viewers read its page.
    LookedAt,
    /// The pods are of a group, and must share a rack.
    OneRack { placed: bool },
}

struct Scale {
    plane: Arc<ControlPlane>,
    client: Client,
    apiserver: u32,
    /// Pids of the other components, by name.
    others: BTreeMap<String, u32>,
}

impl Scale {
    async fn start(pods: u32) -> Self {
        let plane = ControlPlane::own(ControlPlane::start).await;
        plane.define_groups();
        let client = plane.client().await;
        make_namespace(&client, NAMESPACE, &json!({})).await;
        let room = pods.div_ceil(NODES) + 10;
        for number in 0..NODES {
            let mut node = node(&format!("node-{number}"), room, NAMESPACE);
            node["metadata"]["labels"][RACK] = json!(format!("rack-{}", number % 2));
            Api::<Node>::all(client.clone()).create(&PostParams::default(), &typed(node)).await.unwrap();
        }
        let mut components = components(&plane.dir);
        let apiserver = components.remove("kube-apiserver").expect("the API server runs");
        Self { plane, client, apiserver, others: components }
    }

    fn spent(&self, rolegate: Option<u32>) -> Spent {
        let others = self.others.iter().map(|(name, pid)| (name.clone(), cpu(*pid))).collect();
        Spent { server: cpu(self.apiserver), others, rolegate: rolegate.map(cpu), requests: self.requests() }
    }

    /// Waits until all components are idle: after an installation they compile and check policies and publish
    /// definitions, which is not part of the measurement.
    async fn settle(&self) {
        let spent = || cpu(self.apiserver) + self.others.values().map(|pid| cpu(*pid)).sum::<Duration>();
        eventually(PATIENT, "the components rest", async || {
            let before = spent();
            tokio::time::sleep(REST).await;
            let spent = spent().saturating_sub(before);
            if spent < REST / 5 { Ok(()) } else { Err(format!("{spent:?} of {REST:?} on processors")) }
        })
        .await;
    }

    /// Brings up a group.
    async fn run(&self, what: &str, pods: u32, way: Way, launch: &Launch, rolegate: Option<&Rolegate>) -> Row {
        let group = group_of(what, pods, way);
        let mut object = group.object();
        if matches!(way, Way::OneRack { .. }) {
            let affinity = json!({ "topologyKey": RACK, "strategy": "RequireSegmentAffinity" });
            object["spec"]["coordination"][0]["strategy"]["segmentPlacement"]["topologyAffinity"] = affinity;
        }
        let seen = Pods::watch(&self.client, NAMESPACE).await;
        if !matches!(way, Way::Ungated | Way::Beside | Way::Constant) {
            self.groups().create(&PostParams::default(), &typed(object)).await.unwrap();
        }
        let account = match way {
            Way::Bare => Some(self.client.clone()),
            Way::BareBehind => Some(client_of(&launch.kubeconfig().await).await),
            _ => None,
        };
        let bare = account.map(|account| Bare::start(&account, NAMESPACE, &group.name, &seen, SEGMENT));
        let viewers = match rolegate {
            Some(rolegate) if matches!(way, Way::LookedAt) => {
                let path = format!("/page/groups/{NAMESPACE}/{}", group.name);
                Some(Viewers::look(rolegate.admin, &path, VIEWERS).await)
            }
            _ => None,
        };
        let rolegate = rolegate.map(Rolegate::pid);
        self.settle().await;
        let before = self.spent(rolegate);
        let start = Instant::now();
        let sets: Api<StatefulSet> = Api::namespaced(self.client.clone(), NAMESPACE);
        for role in &group.roles {
            let mut set = group.set(role, NAMESPACE);
            if matches!(way, Way::Beside) {
                // Pods that name a group would wait for it.
                set = held::of_no_group(&set);
            }
            sets.create(&PostParams::default(), &typed(set)).await.unwrap();
        }
        seen.until_ready(group.pods() as usize, LONG).await;
        let time = start.elapsed();
        let row = Row {
            what: what.to_owned(),
            pods: group.pods(),
            time,
            spent: self.spent(rolegate).since(&before),
            steps: match way {
                Way::Bare | Way::BareBehind | Way::Coordinated(_) | Way::LookedAt => seen.steps(SEGMENT),
                Way::Ungated | Way::Beside | Way::Constant | Way::OneRack { .. } => Vec::new(),
            },
            bound: seen.made_to_bound(),
            passes: viewers.map(Viewers::seen),
        };
        eprintln!("{} {}: {:.1?}", row.pods, row.what, row.time);
        drop(bare);
        row
    }

    /// Returns the number of requests by kind, from the metrics of the API server.
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
            let counts = match &*verb {
                "POST" | "PUT" | "PATCH" | "DELETE" => resource != "leases",
                "WATCH" => false,
                _ => resource.starts_with("role"),
            };
            if counts {
                let part = if part.is_empty() { part } else { format!("/{part}") };
                *all.entry(format!("{verb} {resource}{part}")).or_default() += count.parse::<f64>().unwrap() as u64;
            }
        }
        all
    }

    /// Replaces this rolegate by a constant webhook.
    async fn replace(&self, rolegate: Rolegate, group: &Group) -> ConstantWebhook {
        self.groups().create(&PostParams::default(), &typed(group.object())).await.unwrap();
        ConstantWebhook::replace(&self.client, NAMESPACE, rolegate, group).await
    }

    fn groups(&self) -> Api<DynamicObject> {
        groups(&self.client, NAMESPACE)
    }
}

/// Returns a group with this number of pods.
fn group_of(what: &str, pods: u32, way: Way) -> Group {
    let segments = pods / (SEGMENT.0 + SEGMENT.1);
    let group = Group::new(&what.replace([' ', ','], "-").to_lowercase());
    let group = group.role("prefill", segments * SEGMENT.0, SEGMENT.0).role("decode", segments * SEGMENT.1, SEGMENT.1);
    match way {
        Way::Ungated | Way::Beside => group,
        Way::Bare => group.template(&json!({ "spec": { "schedulingGates": [{ "name": common::pods::GATE }] } })),
        Way::Coordinated(progression) => group.progression(progression),
        Way::Constant => group.progression(Progression::Parallel),
        Way::LookedAt | Way::BareBehind => group.progression(Progression::OrderedReady),
        Way::OneRack { .. } => Group::new(&group.name).role("main", pods, pods),
    }
}

/// Describes the number and the duration of rolegate's passes.
async fn passes(rolegate: &Rolegate) -> String {
    match rolegate.metric("rolegate_plan_seconds_count").await {
        0 => "0 passes".to_owned(),
        count => {
            let sum = rolegate.seconds("rolegate_plan_seconds_sum").await.unwrap();
            format!("{count} passes, {:.3} ms each", sum / count as f64 * 1e3)
        }
    }
}
