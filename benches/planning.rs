//! Takes a group of prefill and decode in segments of 10 + 5 from all held to all ready, with the real index and
//! reconciler, and without an API server.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use rolegate::api::rbg::ROLE_BASED_GROUP;
use rolegate::api::status::GroupStatus;
use rolegate::api::{Pod, RoleBasedGroup};
use rolegate::cluster::index::{CarrierObject, Change, Index};
use rolegate::model::{GroupKey, names, place_labels};
use rolegate::plan::{Action, LoopOptions, Question, Reconciler, StatusWrite};
use serde_json::json;

const NOW: &str = "2026-01-01T00:00:00Z";

/// Returns a group with this number of segments.
pub fn group(segments: u32, version: &str, status: &GroupStatus) -> RoleBasedGroup {
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

/// A group on its way from all held to all ready, with measured times.
pub struct Loop {
    pub segments: u32,
    index: Index,
    reconciler: Reconciler,
    now: Duration,
    version: u64,
    asked: VecDeque<Action>,
    /// Time of each pod event.
    pub events: Vec<Duration>,
    /// Time of each pass.
    pub passes: Vec<Duration>,
    /// Number of ready pods.
    pub ready: u32,
}

impl Loop {
    pub fn new(segments: u32) -> Self {
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

    /// Applies a pod event to the index.
    fn tell(&mut self, role: &str, ordinal: u32, held: bool) {
        self.version += 1;
        let owner =
            json!({ "apiVersion": "apps/v1", "kind": "StatefulSet", "name": role, "uid": role, "controller": true });
        let gates = if held { json!([{ "name": names::GATE }]) } else { json!([]) };
        let size = if role == "prefill" { 10 } else { 5 };
        // The labels at creation.
        let mut labels = json!({ (names::GROUP): "pd", (names::ROLE): role });
        place_labels(size, ordinal).into_iter().for_each(|(key, value)| labels[key] = json!(value));
        labels[names::KEP75_INSTANCE_INDEX] = json!(ordinal.to_string());
        let pod: Pod = serde_json::from_value(json!({
            "metadata": {
                "name": format!("{role}-{ordinal}"), "namespace": "ns", "uid": format!("{role}-{ordinal}"),
                "resourceVersion": self.version.to_string(), "ownerReferences": [owner],
                "creationTimestamp": NOW, "labels": labels,
            },
            "spec": { "schedulingGates": gates, "nodeName": if held { None } else { Some("n") } },
            "status": { "conditions": [{ "type": "Ready", "status": if held { "False" } else { "True" } }] },
        }))
        .unwrap();
        let started = Instant::now();
        self.index.pod_change(0, Change::Applied(pod));
        self.events.push(started.elapsed());
    }

    pub fn pass(&mut self) {
        self.now += Duration::from_millis(10);
        self.reconciler.changed(self.index.take_dirty(), self.now);
        let started = Instant::now();
        let snapshot = self.index.snapshot(&key());
        let actions = self.reconciler.pass(&key(), &snapshot, None, self.now, NOW);
        drop(snapshot);
        self.passes.push(started.elapsed());
        self.asked.extend(actions);
    }

    /// Applies the oldest pending action; a released pod is ready at once.
    pub fn write(&mut self) {
        let Some(action) = self.asked.pop_front() else { return };
        match &action {
            Action::Release { pod, .. } => {
                let (role, ordinal) = pod.name.split_once('-').unwrap();
                self.tell(role, ordinal.parse().unwrap(), false);
                self.ready += 1;
            }
            Action::WriteStatus(StatusWrite::Group { status, .. }) => self.store(status),
            Action::Read(Question::Group) | Action::Publish { .. } => {}
            other => panic!("nobody asks for {other:?} here"),
        }
        if let Some(ended) = action.ended(None) {
            self.reconciler.ended(key(), ended, self.now);
        }
    }
}

fn key() -> GroupKey {
    GroupKey::new("ns", "pd")
}
