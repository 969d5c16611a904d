//! A pair of workloads that is scaled together, and what an observer makes of their pods.

use k8s_openapi::api::core::v1::Event;

use crate::common::prelude::*;

/// Replicas of each role in a segment.
pub const SIZES: [(&str, u32); 2] = [("prefill", 2), ("decode", 1)];

/// Two workloads of one kind under a RoleCoordination, `pd`.
pub struct Pair {
    pub stage: Stage,
    pub statuses: StatusLog,
    kind: &'static str,
}

/// One that may scale.
pub fn launch(stage: &Stage) -> Launch {
    stage.launch().flag("allow", "scale")
}

/// A stage with room for so many pods, and such a rolegate.
pub async fn served(namespace: &str, room: u32) -> (Stage, Rolegate) {
    let stage = Stage::new(namespace).await.with_room(room).await;
    let rolegate = launch(&stage).start().await;
    (stage, rolegate)
}

impl Pair {
    /// Creates the RoleCoordination, and workloads without replicas. `template` is merged into that of the pods.
    pub async fn create(stage: Stage, kind: &'static str, spec: &Value, template: &Value) -> Self {
        let statuses = stage.coordination_statuses("pd");
        let pair = Self { stage, statuses, kind };
        pair.stage.create(pair.coordination(spec)).await;
        for (role, _) in SIZES {
            pair.stage.create(pair.workload(role, template)).await;
        }
        pair
    }

    /// Two StatefulSets of so many segments, which are there.
    pub async fn scaled(stage: Stage, segments: u32) -> Self {
        let pair = Self::create(stage, "StatefulSet", &json!({ "segments": segments }), &json!({})).await;
        pair.until_scaled(segments).await;
        pair
    }

    /// Asks for so many segments, and waits until they are there.
    pub async fn scale(&self, segments: u32) {
        self.want(segments).await;
        self.until_scaled(segments).await;
    }

    fn coordination(&self, spec: &Value) -> Value {
        let group = Group::new("pd").role("prefill", 0, 2).role("decode", 0, 1).bare_names();
        let mut object = group.coordination_of(self.kind, &json!({}));
        json_patch::merge(&mut object, &json!({ "spec": spec }));
        object
    }

    fn workload(&self, role: &str, template: &Value) -> Value {
        let (group, stage) = (Group::new("pd").role(role, 0, 1).bare_names().template(template), &self.stage.namespace);
        let mut object = match self.kind {
            "Deployment" => group.deployment(role, stage, &json!({})),
            "LeaderWorkerSet" => group.leader_worker_set(role, 1, stage, &json!({})),
            _ => group.set(group.find(role), stage),
        };
        object["metadata"]["labels"] = json!({ "rolegate.dev/group": "pd", "rolegate.dev/role": role });
        object
    }

    /// The API of the workloads.
    pub fn workloads(&self) -> Api<DynamicObject> {
        match self.kind {
            "LeaderWorkerSet" => self.stage.objects("leaderworkerset.x-k8s.io", "v1", self.kind),
            kind => self.stage.objects("apps", "v1", kind),
        }
    }

    /// Asks for so many segments, as people do.
    pub async fn want(&self, segments: u32) {
        self.kubectl(&["scale", "rcoord/pd", &format!("--replicas={segments}")]).await;
    }

    /// Runs kubectl here, beside proxies of this test.
    pub async fn kubectl(&self, arguments: &[&str]) {
        let (plane, namespace) = (self.stage.plane.clone(), self.stage.namespace.clone());
        let arguments: Vec<_> = ["-n", &namespace].iter().chain(arguments).map(ToString::to_string).collect();
        let run = move || _ = plane.must(&arguments.iter().map(String::as_str).collect::<Vec<_>>(), "");
        tokio::task::spawn_blocking(run).await.unwrap();
    }

    /// Replicas that a workload is to have.
    pub async fn replicas(&self, role: &str) -> u64 {
        self.workloads().get(role).await.unwrap().data["spec"]["replicas"].as_u64().unwrap()
    }

    /// Replicas that both workloads are to have.
    pub async fn both(&self) -> (u64, u64) {
        (self.replicas("prefill").await, self.replicas("decode").await)
    }

    /// Waits until both workloads and the status say so many segments.
    pub async fn until_scaled(&self, segments: u32) {
        eventually(PATIENT, &format!("{segments} segments"), async || {
            let (replicas, status) = (self.both().await, self.statuses.now().0);
            let is_so = replicas == (u64::from(2 * segments), u64::from(segments));
            let settled = status["segments"] == segments && status["draining"].is_null();
            if is_so && settled { Ok(()) } else { Err(format!("{replicas:?}, {status:#}")) }
        })
        .await;
        let pods = (segments * SIZES.iter().map(|(_, size)| size).sum::<u32>()) as usize;
        self.stage.pods.until("their pods, all ready", |now| now.count_all(|_| true) == pods && all_ready(now)).await;
    }

    /// E1: at no time were the roles' pods further from their ratio than one segment.
    pub fn ratio_was_kept(&self) {
        let mut seen = View::default();
        for event in self.stage.pods.events() {
            seen.take(&event);
            let counts = SIZES.map(|(role, size)| (u32::try_from(seen.count(role, |_| true)).unwrap(), size));
            let most = counts.iter().map(|(count, size)| count.div_ceil(*size)).max().unwrap();
            let least = counts.iter().map(|(count, size)| count / size).min().unwrap();
            assert!(most <= least + 1, "E1: {counts:?} after {event:?}");
        }
    }

    /// E3: no pod was made before all earlier segments were ready.
    pub fn nobody_waited_for_a_turn(&self) {
        let mut seen = View::default();
        for event in self.stage.pods.events() {
            if event.step == Step::Born {
                let size = |role: &str| SIZES.iter().find(|(known, _)| *known == role).unwrap().1;
                let segment = event.pod.index / size(&event.pod.role);
                for (role, size) in SIZES {
                    let (name, bound) = (&event.pod.name, segment * size);
                    let earlier = seen.all_in(role, 0..bound, Pod::is_ready);
                    assert!(earlier, "E3: {name} is made, and not all {role} below {bound} are ready");
                }
            }
            seen.take(&event);
        }
    }

    /// E4: so many scales were written, as the Events count them.
    pub async fn scales(&self, reason: &str) -> usize {
        let params = ListParams::default().fields(&format!("reason={reason},involvedObject.kind=RoleCoordination"));
        let found = self.stage.api::<Event>().list(&params).await.unwrap();
        let count = |event: &Event| event.series.as_ref().map_or(1, |series| series.count.unwrap_or(1));
        usize::try_from(found.items.iter().map(count).sum::<i32>()).unwrap()
    }

    /// Waits until the RoleCoordination says so, in its `Elastic` condition.
    pub async fn until_told(&self, text: &str) {
        self.statuses.until(text, |status| status.condition("Elastic").contains(text)).await;
    }
}

pub fn all_ready(now: &View) -> bool {
    now.count_all(|pod| !pod.is_ready()) == 0
}
