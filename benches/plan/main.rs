//! `make bench-plan`: what planning costs, without an API server. The real index and the real reconciler take a group of
//! prefill and decode in segments of 10 + 5 from all held to all ready; each pod event, each pass and the whole are timed.
//! Then `plan` simulates groups of rising size.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::cast_precision_loss,
    reason = "a benchmark stops where it fails, and shows rounded times"
)]

#[path = "../process.rs"]
mod process;

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use rolegate::api::rbg::ROLE_BASED_GROUP;
use rolegate::api::status::GroupStatus;
use rolegate::api::{Pod, RoleBasedGroup};
use rolegate::cluster::index::{CarrierObject, Change, Index};
use rolegate::model::{Group, GroupKey, names};
use rolegate::plan::{Action, Ended, LoopOptions, Reconciler, simulate};
use serde_json::json;

/// Pods of the groups that the loop takes to their end.
const LOOP: [u32; 4] = [300, 3_000, 9_990, 30_000];
/// Replicas of prefill of the groups that `plan` simulates; decode has half as many.
const SIMULATED: [u32; 3] = [1_000, 8_000, 100_000];
const NOW: &str = "2026-01-01T00:00:00Z";

fn main() {
    let resident = || u64::from(process::resident(std::process::id()));
    let before = resident();
    let kept = Loop::new(30_000 / 15);
    println!("{} bytes for each of 30,000 held pods\n", (resident() - before) * 1024 / 30_000);
    drop(kept);
    println!("| pods | event, mean | pass, mean | pass, p99 | longest | passes | all planning |");
    println!("|---|---|---|---|---|---|---|");
    for pods in LOOP {
        Loop::new(pods / 15).run();
    }
    println!("\n| replicas | steps | `plan` |");
    println!("|---|---|---|");
    for prefill in SIMULATED {
        let group = Group::from_rbg(ROLE_BASED_GROUP, &group(prefill / 10, "1", &GroupStatus::default()));
        let started = Instant::now();
        let run = simulate(&group, &[], &BTreeMap::new()).expect("it can be simulated");
        assert!(run.complete, "every group comes to its end");
        println!("| {prefill} + {} | {} | {} |", prefill / 2, run.steps.len(), shown(started.elapsed()));
    }
}

/// A group in so many segments.
fn group(segments: u32, version: &str, status: &GroupStatus) -> RoleBasedGroup {
    let sizes = json!({ "prefill": 10, "decode": 5 });
    let role = |name: &str, size: u32| json!({ "name": name, "replicas": segments * size });
    let object = json!({
        "metadata": { "name": "pd", "namespace": "ns", "uid": "pd", "resourceVersion": version },
        "spec": {
            "roles": [role("prefill", 10), role("decode", 5)],
            "coordination": [{ "name": "s", "strategy": { "segmentPlacement": { "segmentSize": sizes } } }],
        },
        "status": status,
    });
    serde_json::from_value(object).unwrap()
}

/// A group on its way from all held to all ready.
struct Loop {
    segments: u32,
    index: Index,
    reconciler: Reconciler,
    now: Duration,
    version: u64,
    asked: VecDeque<Action>,
    events: Vec<Duration>,
    passes: Vec<Duration>,
    ready: u32,
}

impl Loop {
    fn new(segments: u32) -> Self {
        let mut reconciler = Reconciler::new(LoopOptions::default());
        reconciler.sync([], Duration::ZERO);
        reconciler.lead(true, [key()], Duration::ZERO);
        let (index, asked) = (Index::default(), VecDeque::new());
        let (events, passes) = (Vec::new(), Vec::new());
        let mut new =
            Self { segments, index, reconciler, now: Duration::ZERO, version: 1, asked, events, passes, ready: 0 };
        new.store(&GroupStatus::default());
        for (role, size) in [("prefill", 10), ("decode", 5)] {
            (0..segments * size).for_each(|ordinal| new.tell(role, ordinal, true));
        }
        new.events.clear();
        new
    }

    fn store(&mut self, status: &GroupStatus) {
        self.version += 1;
        let object = group(self.segments, &self.version.to_string(), status);
        self.index.apply_carrier(None, CarrierObject::rbg(ROLE_BASED_GROUP, &object));
    }

    /// The watch tells of a pod.
    fn tell(&mut self, role: &str, ordinal: u32, held: bool) {
        self.version += 1;
        let owner =
            json!({ "apiVersion": "apps/v1", "kind": "StatefulSet", "name": role, "uid": role, "controller": true });
        let gates = if held { json!([{ "name": names::GATE }]) } else { json!([]) };
        let pod: Pod = serde_json::from_value(json!({
            "metadata": {
                "name": format!("{role}-{ordinal}"), "namespace": "ns", "uid": format!("{role}-{ordinal}"),
                "resourceVersion": self.version.to_string(), "ownerReferences": [owner],
                "creationTimestamp": NOW, "labels": { (names::GROUP): "pd", (names::ROLE): role },
            },
            "spec": { "schedulingGates": gates, "nodeName": if held { None } else { Some("n") } },
            "status": { "conditions": [{ "type": "Ready", "status": if held { "False" } else { "True" } }] },
        }))
        .unwrap();
        let started = Instant::now();
        self.index.pod_change(0, Change::Applied(pod));
        self.events.push(started.elapsed());
    }

    fn pass(&mut self) {
        self.now += Duration::from_millis(10);
        self.reconciler.changed(self.index.take_dirty(), self.now);
        let started = Instant::now();
        let snapshot = self.index.snapshot(&key());
        let actions = self.reconciler.pass(&key(), &snapshot, self.now, NOW);
        drop(snapshot);
        self.passes.push(started.elapsed());
        self.asked.extend(actions);
    }

    /// Does the oldest of what was asked for; a pod that is released is ready at once.
    fn write(&mut self) -> bool {
        let Some(action) = self.asked.pop_front() else { return false };
        let ended = match action {
            Action::Release { pod, .. } => {
                let (role, ordinal) = pod.name.split_once('-').unwrap();
                self.tell(role, ordinal.parse().unwrap(), false);
                self.ready += 1;
                Ended::Tried { object: pod.clone(), failed: false }
            }
            Action::WriteStatus { status, .. } => {
                self.store(&status);
                Ended::Written { failed: false }
            }
            Action::ConfirmGroup => Ended::Confirmed { failed: false },
            Action::Publish { .. } => return true,
            other => panic!("nobody asks for {other:?} here"),
        };
        self.reconciler.ended(key(), ended, self.now);
        true
    }

    /// One pass after every three writes: what the watch tells within 10 ms is planned together.
    fn run(mut self) {
        let pods = self.segments * 15;
        while self.ready < pods {
            self.pass();
            for _ in 0..3 {
                self.write();
            }
        }
        self.passes.sort();
        let planning: Duration = self.passes.iter().sum();
        let mean = |times: &[Duration]| times.iter().sum::<Duration>() / u32::try_from(times.len()).unwrap();
        println!(
            "| {pods} | {} | {} | {} | {} | {} | {} |",
            shown(mean(&self.events)),
            shown(mean(&self.passes)),
            shown(self.passes[self.passes.len() * 99 / 100]),
            shown(*self.passes.last().unwrap()),
            self.passes.len(),
            shown(planning + self.events.iter().sum::<Duration>()),
        );
    }
}

fn key() -> GroupKey {
    GroupKey::new("ns", "pd")
}

fn shown(time: Duration) -> String {
    match time.as_secs_f64() {
        seconds if seconds >= 1.0 => format!("{seconds:.2} s"),
        seconds if seconds >= 0.001 => format!("{:.2} ms", seconds * 1e3),
        seconds => format!("{:.1} µs", seconds * 1e6),
    }
}
