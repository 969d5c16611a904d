//! A group whose segments are made anew when they lose a replica, and what became of its pods.

use crate::common::group::Role;
use crate::common::prelude::*;
use crate::common::request_proxy::RequestProxy;

/// Two prefills and a decode in each segment.
pub fn group(prefill: u32, decode: u32) -> Group {
    Group::new("llm").role("prefill", prefill, 2).role("decode", decode, 1)
}

/// The group's object, with this recovery.
pub fn object(group: &Group, recovery: &Value) -> Value {
    let mut object = group.object();
    object["spec"]["coordination"][0]["strategy"]["segmentPlacement"]["recovery"] = recovery.clone();
    object
}

pub fn recreate() -> Value {
    json!({ "policy": "Recreate" })
}

/// A group that is complete.
pub struct Scene {
    pub stage: Stage,
    pub group: Group,
    pub statuses: StatusLog,
    /// Unique ids of its first pods, by name.
    pub first: BTreeMap<String, String>,
    /// How many things had happened by then.
    pub from: usize,
}

pub fn launch(stage: &Stage) -> Launch {
    stage.launch().flag("allow", "recovery")
}

/// Two segments on one node, made anew by this recovery.
pub async fn two_segments(namespace: &str, recovery: &Value) -> (Rolegate, Scene) {
    let stage = Stage::new(namespace).await.with_room(12).await;
    let rolegate = launch(&stage).start().await;
    (rolegate, Scene::of(stage, group(4, 2), recovery).await)
}

/// The same, behind a proxy that may lose requests.
pub async fn behind_a_proxy(namespace: &str) -> (RequestProxy, Rolegate, Scene) {
    let stage = Stage::new(namespace).await.with_room(12).await;
    let proxy = RequestProxy::before(&stage.plane).await;
    let rolegate = launch(&stage).through_requests(&proxy).start().await;
    (proxy, rolegate, Scene::of(stage, group(4, 2), &recreate()).await)
}

impl Scene {
    /// Deploys a group, and waits until it is complete, and known to be so.
    pub async fn of(stage: Stage, group: Group, recovery: &Value) -> Self {
        let object = object(&group, recovery);
        Self::deployed(stage, group, object).await
    }

    /// The same with an object of its own.
    pub async fn deployed(stage: Stage, group: Group, object: Value) -> Self {
        let statuses = stage.statuses(&group);
        stage.create(object).await;
        stage.create_sets(&group).await;
        Self::complete(stage, group, statuses).await
    }

    /// Waits until it is complete, and known to be so.
    pub async fn complete(stage: Stage, group: Group, statuses: StatusLog) -> Self {
        let segments = group.roles.iter().map(|role| role.replicas.div_ceil(role.segment)).max().unwrap();
        let all = if segments == 1 { "0".to_owned() } else { format!("0-{}", segments - 1) };
        let known = |status: &Status| status.0["coordinationState"][0]["completeBatches"] == json!(all);
        statuses.until("it is known to be complete", known).await;
        statuses.until("all are ready", |status| status.ready().starts_with("True")).await;
        let (first, from) = (stage.pods.uids(), stage.pods.events().len());
        Self { stage, group, statuses, first, from }
    }

    /// Gives a pod finalizers: with any, it is long in going.
    pub async fn finalizers(&self, name: &str, all: &[&str]) {
        self.stage.patch::<ApiPod>(name, &json!({ "metadata": { "finalizers": all } })).await;
    }

    pub async fn delete(&self, name: &str) {
        self.stage.delete::<ApiPod>(name).await;
    }

    /// Deletes this pod, and its segment is made anew.
    pub async fn loses(&self, name: &str, segment: u32) -> Status {
        self.delete(name).await;
        self.comes_back(&[segment]).await
    }

    /// These segments are made anew for the first time, and no other.
    pub async fn comes_back(&self, segments: &[u32]) -> Status {
        let status = self.until_recovered(segments, 1).await;
        self.made_anew(segments);
        status
    }

    /// Waits until the recoveries of these batches are complete, and all pods are ready.
    pub async fn until_recovered(&self, batches: &[u32], attempt: u32) -> Status {
        let is_over = |status: &Status| {
            let over = |batch: &u32| {
                recovery(status, *batch).is_some_and(|r| r["phase"] == "Complete" && r["attempt"] == json!(attempt))
            };
            batches.iter().all(over) && status.ready().starts_with("True")
        };
        let status = self.statuses.until("recovered", is_over).await;
        self.stage.pods.until("all ready", |now| now.count_all(Pod::is_ready) == self.group.pods() as usize).await;
        status
    }

    fn segment(&self, pod: &Pod) -> u32 {
        pod.index / self.group.find(&pod.role).segment
    }

    /// Every pod of these segments is another one, and every pod of the others is the same; and of those that were made anew
    /// none was let go before all were there, and all old ones gone.
    pub fn made_anew(&self, segments: &[u32]) {
        let now = self.stage.pods.uids();
        self.stage.pods.now(|view| {
            for pod in view.all() {
                let is_same = self.first.get(&pod.name) == Some(&pod.uid);
                assert_eq!(is_same, !segments.contains(&self.segment(pod)), "{} {now:?} {:?}", pod.name, self.first);
            }
        });
        assert_eq!(now.len(), self.first.len());
        self.went_together(segments);
    }

    /// Of pods that are made anew none goes before all are there, and all old ones gone.
    pub fn went_together(&self, segments: &[u32]) {
        let mut view = View::default();
        let mut released = BTreeSet::new();
        let events = self.stage.pods.events();
        for (number, event) in events.iter().enumerate() {
            view.take(event);
            let is_new = !self.first.values().any(|uid| *uid == event.pod.uid);
            let segment = self.segment(&event.pod);
            let goes = number >= self.from && event.step == Step::Released && is_new;
            if !goes || !segments.contains(&segment) || !released.insert(segment) {
                continue;
            }
            let of_segment = |pod: &&Pod| self.segment(pod) == segment;
            let there = view.all().filter(of_segment).count();
            let old = view.all().filter(of_segment).filter(|pod| self.first.values().any(|uid| *uid == pod.uid));
            let old: Vec<_> = old.map(|pod| &pod.name).collect();
            let born = events.iter().filter(|e| e.step == Step::Born && self.segment(&e.pod) == segment);
            assert!(old.is_empty(), "{} goes, and {old:?} are there", event.pod.name);
            let pods = |role: &Role| {
                let from = (segment * role.segment).min(role.replicas);
                ((from + role.segment).min(role.replicas) - from) * role.size
            };
            let size = self.group.roles.iter().map(pods).sum::<u32>() as usize;
            assert_eq!(there, size, "{} goes before others are there: {view} {}", event.pod.name, born.count());
        }
        let all: BTreeSet<_> = segments.iter().copied().collect();
        assert_eq!(released, all, "each of them was let go");
    }
}

/// Makes these pods ready or not, and waits until they are.
pub async fn ready(scene: &Scene, names: &[&str], ready: bool) {
    let value = if ready { Value::Null } else { json!("") };
    let patch = json!({ "metadata": { "annotations": { "kwok.rolegate.dev/not-ready": value } } });
    for name in names {
        scene.stage.patch::<ApiPod>(name, &patch).await;
    }
    let are = |now: &View| names.iter().all(|name| now.named(name).is_some_and(|pod| pod.ready == ready));
    scene.stage.pods.until("they are as they are told", are).await;
}

/// The recovery of the first batch is in this phase.
pub fn phase(phase: &'static str) -> impl Fn(&Status) -> bool {
    move |status| recovery(status, 0).is_some_and(|entry| entry["phase"] == phase)
}

/// What a status says of the recovery of a batch.
pub fn recovery(status: &Status, batch: u32) -> Option<Value> {
    let all = status.0["recoveries"].as_array()?;
    all.iter().find(|entry| entry["batch"] == json!(batch)).cloned()
}
