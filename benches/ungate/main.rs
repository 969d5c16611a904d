//! `make bench-ungate`: measures the gates lifted per second, and the delay after the previous segment is ready, on a
//! real API server: by rolegate, and by a bare loop that sends the same PATCHes, up to 64 at a time, without planning,
//! committing or reporting.
//!
//! The pods exist before the group, held and labelled as by the webhook; there are no nodes, and a released pod is
//! made ready as soon as the release is seen. The measurement begins when the group is created (bare loop: with the
//! first PATCH), and ends when a watch has reported the release of the last pod.
//!
//! `ROLEGATE_UNGATE` lists the numbers of pods, `1000,10000`; 50,000 take an hour.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a benchmark stops where it fails"
)]

#[path = "../../tests/common/mod.rs"]
mod common;
#[path = "../held.rs"]
mod held;
#[path = "../process.rs"]
mod process;
#[path = "../section.rs"]
mod section;
#[path = "../still.rs"]
mod still;

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures::{StreamExt, stream};
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Patch, PatchParams, PostParams};
use kube::runtime::watcher;
use kube::{Api, Client};
use rolegate::api::rbg::ROLE_BASED_GROUP;
use rolegate::cluster::write::writer::{ReleaseEdits, release_patch};
use rolegate::mutate::late_labels;
use rolegate::plan::PodRef;
use serde_json::json;
use tokio::sync::{Notify, mpsc};

use common::Group;
use common::control_plane::client_of;
use common::group::Progression;
use common::rolegate::Launch;
use common::stage::{groups, typed};
use section::Section;

/// Prefill and decode replicas per segment.
const SEGMENT: (u32, u32) = (10, 5);
/// Concurrent requests of the bare loop, and of the setup.
const AT_ONCE: usize = 64;

const PROGRESSIONS: [Progression; 2] = [Progression::Ordered, Progression::OrderedReady];
/// Runs, alternating between the bare loop, the bare loop with rolegate's account, and rolegate: each twice, or once
/// where a run takes minutes.
fn turns(size: u32) -> u32 {
    if size < 10_000 { 6 } else { 3 }
}

fn namespace(size: u32, progression: Progression, turn: u32) -> String {
    format!("ungate-{size}-{progression:?}-{turn}").to_lowercase()
}

#[tokio::main]
async fn main() {
    let sizes = std::env::var("ROLEGATE_UNGATE").unwrap_or_else(|_| "1000,10000".to_owned());
    let sizes: Vec<u32> =
        sizes.split(',').map(|size| size.trim().parse().expect("ROLEGATE_UNGATE are numbers")).collect();
    let runs = sizes.iter().flat_map(|size| PROGRESSIONS.map(|progression| (*size, progression)));
    let namespaces =
        runs.flat_map(|(size, progression)| (0..turns(size)).map(move |turn| namespace(size, progression, turn)));
    let (plane, client, server) = still::start(namespaces).await;
    let mut out = Section::new("bench-ungate");
    writeln!(
        out,
        "| pods | progression | by | all lifted | a second | ready to lifted p50 | p99 | CPU of the API server | of rolegate |"
    )
    .unwrap();
    writeln!(out, "|---|---|---|---|---|---|---|---|---|").unwrap();
    for size in sizes {
        let segments = size.div_ceil(SEGMENT.0 + SEGMENT.1);
        for progression in PROGRESSIONS {
            let mut runs = BTreeMap::<By, Vec<(Duration, String)>>::new();
            // In turns, because the machine varies from minute to minute.
            for turn in 0..turns(size) {
                let by = By::ALL[turn as usize % By::ALL.len()];
                let namespace = namespace(size, progression, turn);
                let scene = Scene::new(&client, &namespace, segments, progression).await;
                let launch = Launch::new(plane.clone(), client.clone(), &namespace).flag("webhooks", "off");
                let launch = launch.flag("namespaces", &namespace);
                let (taken, of_server, own) = match by {
                    By::BareLoop => scene.by_bare_loop(&client, server).await,
                    By::BareLoopAsRolegate => {
                        scene.by_bare_loop(&client_of(&launch.kubeconfig().await).await, server).await
                    }
                    By::Rolegate => scene.by_rolegate(&launch, server).await,
                };
                let row = scene.row(by.words(), taken, of_server, own);
                eprintln!("{row}");
                runs.entry(by).or_default().push((taken, row));
            }
            let fastest: BTreeMap<_, _> = runs.iter().map(|(by, runs)| (*by, runs.iter().min().unwrap())).collect();
            for (_, row) in fastest.values() {
                writeln!(out, "{row}").unwrap();
            }
            let share = |of: By| 100.0 * fastest[&of].0.as_secs_f64() / fastest[&By::Rolegate].0.as_secs_f64();
            let (bare, same_account) = match progression {
                Progression::OrderedReady => FIGURES[1],
                _ => FIGURES[0],
            };
            let pods = segments * (SEGMENT.0 + SEGMENT.1);
            out.figure(bare, format!("{:.0} % at {pods} pods", share(By::BareLoop)));
            out.figure(same_account, format!("{:.0} % at {pods} pods", share(By::BareLoopAsRolegate)));
        }
    }
    out.finish();
}

/// The program that lifts the gates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum By {
    BareLoop,
    /// The bare loop with rolegate's account: its rights are checked, and the policy on its writes is evaluated.
    BareLoopAsRolegate,
    Rolegate,
}

impl By {
    const ALL: [Self; 3] = [Self::BareLoop, Self::BareLoopAsRolegate, Self::Rolegate];

    fn words(self) -> &'static str {
        match self {
            Self::BareLoop => "a bare loop",
            Self::BareLoopAsRolegate => "the same with rolegate's account",
            Self::Rolegate => "rolegate",
        }
    }
}

/// Rows of targets for Ordered and OrderedReady: relative to the bare loop, and to the bare loop with rolegate's
/// account.
const FIGURES: [(&str, &str); 2] = [
    (
        "gates lifted a second, Ordered, of a bare loop's",
        "gates lifted a second, Ordered, of a bare loop's with rolegate's account",
    ),
    (
        "gates lifted a second, OrderedReady, of a bare loop's",
        "gates lifted a second, OrderedReady, of a bare loop's with rolegate's account",
    ),
];

/// The times when a pod was seen released and ready.
#[derive(Clone, Copy, Debug, Default)]
struct Times {
    lifted: Option<Instant>,
    ready: Option<Instant>,
}

/// The times of all pods by name, as seen by a watch.
#[derive(Default)]
struct Seen {
    pods: Mutex<HashMap<String, Times>>,
    changed: Notify,
}

/// A group that is not created yet, and its held pods.
struct Scene {
    client: Client,
    namespace: String,
    group: Group,
    segments: u32,
    seen: Arc<Seen>,
    watch: tokio::task::JoinHandle<()>,
}

impl Drop for Scene {
    fn drop(&mut self) {
        self.watch.abort();
    }
}

impl Scene {
    async fn new(client: &Client, namespace: &str, segments: u32, progression: Progression) -> Self {
        let group = Group::new("llm").role("prefill", segments * SEGMENT.0, SEGMENT.0);
        let group = group.role("decode", segments * SEGMENT.1, SEGMENT.1).progression(progression);
        let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
        let sets: Api<StatefulSet> = Api::namespaced(client.clone(), namespace);
        let model = rolegate::model::Group::from_rbg(ROLE_BASED_GROUP, &typed(group.object()));
        for role in &group.roles {
            let set = sets.create(&PostParams::default(), &typed(group.set(role, namespace))).await.unwrap();
            let make = async |ordinal| {
                let mut pod = held::pod(&group, &role.name, &set, ordinal, namespace);
                for (key, value) in late_labels(&model, &role.name, ordinal, false, None) {
                    pod["metadata"]["labels"][&*key] = json!(value);
                }
                pods.create(&PostParams::default(), &typed(pod)).await.unwrap();
            };
            stream::iter(0..role.replicas).for_each_concurrent(AT_ONCE, make).await;
        }
        let seen = Arc::new(Seen::default());
        let watch = tokio::spawn(watch(pods, seen.clone(), progression == Progression::OrderedReady));
        let scene = Self { client: client.clone(), namespace: namespace.to_owned(), group, segments, seen, watch };
        scene.until(|seen| seen.len() == scene.group.pods() as usize).await;
        scene
    }

    async fn until(&self, holds: impl Fn(&HashMap<String, Times>) -> bool) {
        loop {
            let changed = self.seen.changed.notified();
            if holds(&self.seen.pods.lock().unwrap()) {
                return;
            }
            changed.await;
        }
    }

    async fn all_lifted(&self) {
        self.until(|seen| seen.values().all(|pod| pod.lifted.is_some())).await;
    }

    /// Returns the names of a segment's pods.
    fn names(&self, segment: u32) -> impl Iterator<Item = String> {
        let of = move |role: &str, size: u32| {
            let set = self.group.set_name(role);
            (segment * size..(segment + 1) * size).map(move |ordinal| format!("{set}-{ordinal}"))
        };
        of("prefill", SEGMENT.0).chain(of("decode", SEGMENT.1))
    }

    /// Runs rolegate; returns the elapsed time, and the CPU time of the API server with this pid and of rolegate.
    async fn by_rolegate(&self, launch: &Launch, server: u32) -> (Duration, Duration, Option<Duration>) {
        let rolegate = launch.start().await;
        let spent = || (process::cpu(server), process::cpu(rolegate.pid()));
        let (begun, before) = (Instant::now(), spent());
        let groups = groups(&self.client, &self.namespace);
        groups.create(&PostParams::default(), &typed(self.group.object())).await.unwrap();
        self.all_lifted().await;
        let (taken, after) = (begun.elapsed(), spent());
        rolegate.terminate().await;
        (taken, after.0.saturating_sub(before.0), Some(after.1.saturating_sub(before.1)))
    }

    async fn by_bare_loop(&self, account: &Client, server: u32) -> (Duration, Duration, Option<Duration>) {
        let pods: Api<Pod> = Api::namespaced(account.clone(), &self.namespace);
        let all = pods.list(&kube::api::ListParams::default()).await.unwrap().items.into_iter();
        let uids: HashMap<_, _> = all.map(|pod| (pod.metadata.name.unwrap(), pod.metadata.uid.unwrap())).collect();
        let lift = async |name: String| {
            let pod = PodRef { name: name.as_str().into(), uid: uids[&name].as_str().into() };
            let patch = Patch::Strategic(release_patch(&pod, ReleaseEdits::default()));
            pods.patch(&name, &PatchParams::default(), &patch).await.unwrap();
        };
        let (begun, before) = (Instant::now(), process::cpu(server));
        if self.group.progression == Progression::Ordered {
            let all = (0..self.segments).flat_map(|segment| self.names(segment));
            stream::iter(all).for_each_concurrent(AT_ONCE, lift).await;
        } else {
            for segment in 0..self.segments {
                stream::iter(self.names(segment)).for_each_concurrent(AT_ONCE, lift).await;
                let names: Vec<_> = self.names(segment).collect();
                self.until(|seen| names.iter().all(|name| seen[name].ready.is_some())).await;
            }
        }
        self.all_lifted().await;
        (begun.elapsed(), process::cpu(server).saturating_sub(before), None)
    }

    /// Returns the times from the last ready pod of a segment to the release of each pod of the next.
    fn ready_to_lifted(&self) -> Vec<Duration> {
        let seen = self.seen.pods.lock().unwrap();
        let ready = |segment| self.names(segment).map(|name| seen[&name].ready).max().unwrap();
        let mut times = Vec::new();
        for segment in 1..self.segments {
            let Some(ready) = ready(segment - 1) else { continue };
            times.extend(self.names(segment).map(|name| seen[&name].lifted.unwrap().saturating_duration_since(ready)));
        }
        times.sort_unstable();
        times
    }

    /// Returns the row of a run.
    fn row(&self, by: &str, taken: Duration, server: Duration, own: Option<Duration>) -> String {
        let times = if self.group.progression == Progression::OrderedReady { self.ready_to_lifted() } else { vec![] };
        let at = |percent: usize| match times.get(times.len() * percent / 100) {
            Some(time) => format!("{time:.0?}"),
            None => String::new(),
        };
        let (pods, own) = (self.group.pods(), own.map(|own| format!("{own:.1?}")).unwrap_or_default());
        format!(
            "| {pods} | {:?} | {by} | {taken:.1?} | {:.0} | {} | {} | {server:.1?} | {own} |",
            self.group.progression,
            f64::from(pods) / taken.as_secs_f64(),
            at(50),
            at(99),
        )
    }
}

/// Watches the pods, and makes released pods ready if requested.
async fn watch(pods: Api<Pod>, seen: Arc<Seen>, makes_ready: bool) {
    let (lifted, mut to_be_ready) = mpsc::unbounded_channel::<String>();
    let api = pods.clone();
    let kubelet = async move {
        let ready = json!({ "status": { "phase": "Running", "conditions": [
            { "type": "PodScheduled", "status": "True" }, { "type": "Ready", "status": "True" },
        ] } });
        let turns = stream::poll_fn(move |cx| to_be_ready.poll_recv(cx));
        turns
            .for_each_concurrent(AT_ONCE, async |name| {
                let patch = Patch::Strategic(&ready);
                api.patch_status(&name, &PatchParams::default(), &patch).await.unwrap();
            })
            .await;
    };
    let follow = async {
        let mut events = pin!(watcher(pods, watcher::Config::default()));
        while let Some(event) = events.next().await {
            let (watcher::Event::Apply(pod) | watcher::Event::InitApply(pod)) = event.unwrap() else { continue };
            let (name, now) = (pod.metadata.name.unwrap(), Instant::now());
            let is_held = pod.spec.is_some_and(|spec| spec.scheduling_gates.is_some_and(|gates| !gates.is_empty()));
            let conditions = pod.status.and_then(|status| status.conditions).unwrap_or_default();
            let is_ready = conditions.iter().any(|one| one.type_ == "Ready" && one.status == "True");
            let mut pods = seen.pods.lock().unwrap();
            let times = pods.entry(name.clone()).or_default();
            if !is_held && times.lifted.is_none() {
                times.lifted = Some(now);
                if makes_ready {
                    lifted.send(name).unwrap();
                }
            }
            if is_ready {
                times.ready.get_or_insert(now);
            }
            drop(pods);
            seen.changed.notify_waiters();
        }
    };
    tokio::join!(kubelet, follow);
}
