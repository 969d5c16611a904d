//! A group of two StatefulSets that are claimed for rollouts, and what an observer makes of their pods.

use k8s_openapi::api::core::v1::Event;
use rolegate::model::names::USER_PARTITIONS;

use crate::common::http;
use crate::common::prelude::*;

pub const FROZEN: i64 = 2_147_483_647;
pub const USER_PARTITION: &str = "rolegate.dev/user-partition";
pub const REVISION: &str = "controller-revision-hash";
pub const LWS_REVISION: &str = "leaderworkerset.sigs.k8s.io/template-revision-hash";

/// A hundred and fifty pods are made again a few at a time.
const A_ROLLOUT: Duration = Duration::from_secs(400);
const NOT_READY: &str = "kwok.rolegate.dev/not-ready";

/// A group that serves, with a rollout in lockstep.
pub struct Duo {
    pub stage: Stage,
    pub group: Group,
    pub statuses: StatusLog,
    pub rolegate: Rolegate,
    /// Revisions of the pods that served first, by role.
    pub first: BTreeMap<String, String>,
}

impl Duo {
    /// Prefill and decode are there and ready. `bounds` are those of the rolling update.
    pub async fn serve(namespace: &str, prefill: u32, decode: u32, bounds: Value, flags: &[(&str, &str)]) -> Self {
        let group = Group::new("llm").role("prefill", prefill, 1).role("decode", decode, 1);
        Self::serve_group(namespace, group, &rolling(bounds), flags).await
    }

    /// A group with these coordinations is there and ready.
    pub async fn serve_group(namespace: &str, group: Group, coordination: &Value, flags: &[(&str, &str)]) -> Self {
        let stage = Stage::new(namespace).await;
        stage.add_node("all", group.pods()).await;
        Self::serve_on(stage, group, coordination, flags).await
    }

    /// The same where there is room already.
    pub async fn serve_on(stage: Stage, group: Group, coordination: &Value, flags: &[(&str, &str)]) -> Self {
        let launch = flags.iter().fold(stage.launch(), |launch, (name, value)| launch.flag(name, value));
        let rolegate = launch.start().await;
        Self::create(stage, rolegate, group, coordination).await
    }

    /// The same where one serves already.
    pub async fn create(stage: Stage, rolegate: Rolegate, group: Group, coordination: &Value) -> Self {
        let statuses = stage.statuses(&group);
        stage.create(group.coordinated(coordination)).await;
        stage.create_claimed_sets(&group).await;
        let first = BTreeMap::new();
        Self { stage, group, statuses, rolegate, first }
    }

    /// Waits until all is ready, and remembers what serves now as what was first.
    pub async fn ready(mut self) -> Self {
        self.statuses.until("it serves", |status| status.ready().starts_with("True")).await;
        for role in ["prefill", "decode"] {
            let revisions = self.stage.pods.now(|now| now.of(role).map(revision).collect::<BTreeSet<_>>());
            assert_eq!(revisions.len(), 1, "{role}: {revisions:?}");
            self.first.insert(role.to_owned(), revisions.into_iter().next().unwrap());
        }
        self
    }

    pub fn kubectl(&self, arguments: &[&str], stdin: &str) -> String {
        let namespaced: Vec<_> = [&["-n", &self.stage.namespace], arguments].concat();
        self.stage.plane.must(&namespaced, stdin)
    }

    /// `kubectl set image`.
    pub fn set_image(&self, role: &str, image: &str) {
        self.kubectl(&["set", "image", &self.target(role), &format!("main={image}")], "");
    }

    /// The same of both roles.
    pub fn set_images(&self, image: &str) {
        ["prefill", "decode"].iter().for_each(|role| self.set_image(role, image));
    }

    /// `statefulset/llm-prefill`.
    pub fn target(&self, role: &str) -> String {
        format!("statefulset/{}", self.group.set_name(role))
    }

    /// A new image; its pods run and do not become ready before they are let.
    pub fn edit_held_back(&self, role: &str, image: &str) {
        self.edit(role, image, &json!(""));
    }

    fn edit(&self, role: &str, image: &str, not_ready: &Value) {
        let spec = json!({ "containers": [{ "name": "main", "image": image }] });
        let template = json!({ "metadata": { "annotations": { NOT_READY: not_ready } }, "spec": spec });
        let patch = json!({ "spec": { "template": template } }).to_string();
        self.kubectl(&["patch", &self.target(role), "--type=strategic", "-p", &patch], "");
    }

    /// The same of both roles.
    pub fn edit_both_held_back(&self, image: &str) {
        ["prefill", "decode"].iter().for_each(|role| self.edit_held_back(role, image));
    }

    /// A new image in the place of one that was held back.
    pub fn edit_good(&self, role: &str, image: &str) {
        self.edit(role, image, &Value::Null);
    }

    /// `kubectl rollout undo` of both roles.
    pub fn undo(&self) {
        ["prefill", "decode"].iter().for_each(|role| _ = self.kubectl(&["rollout", "undo", &self.target(role)], ""));
    }

    pub async fn set(&self, role: &str) -> StatefulSet {
        self.stage.api::<StatefulSet>().get(&self.group.set_name(role)).await.unwrap()
    }

    /// The partition of a role's workload.
    pub async fn partition(&self, role: &str) -> i64 {
        let update = self.set(role).await.spec.unwrap().update_strategy.unwrap();
        i64::from(update.rolling_update.unwrap().partition.unwrap_or(0))
    }

    /// The partitions of both workloads.
    pub async fn partitions(&self) -> (i64, i64) {
        (self.partition("prefill").await, self.partition("decode").await)
    }

    /// What its user asked for, while a rollout is open.
    pub async fn user_partition(&self, role: &str) -> Option<String> {
        let annotations = self.set(role).await.metadata.annotations.unwrap_or_default();
        USER_PARTITIONS.iter().find_map(|key| annotations.get(*key)).cloned()
    }

    pub async fn until_partition(&self, role: &str, partition: i64) {
        until_is(&format!("partition {partition} of {role}"), async || self.partition(role).await, partition).await;
    }

    /// Waits until so many pods of a role are new, and ready.
    pub async fn until_new(&self, role: &str, pods: usize) {
        let new = |pod: &Pod| self.is_new(pod) && pod.is_ready();
        self.stage.pods.until(&format!("{pods} of {role} are new"), |now| now.count(role, new) == pods).await;
    }

    /// Waits until no rollout is open, and no pod is new.
    pub async fn until_back(&self) {
        for role in ["prefill", "decode"] {
            self.until_closed(role).await;
            assert_eq!(self.new_ordinals(role), [].into(), "{role}");
        }
    }

    /// Waits until both rollouts are over: all replicas at one other revision than the first and ready, nothing of ours left.
    pub async fn until_over(&self) {
        for role in ["prefill", "decode"] {
            self.until_closed(role).await;
            let first = &self.first[role];
            self.stage.pods.now(|now| assert!(now.of(role).all(|pod| revision(pod) != *first), "{role}: {now}"));
        }
        self.statuses.until("it serves again", |status| status.ready().starts_with("True")).await;
    }

    /// Waits until no rollout of a role is open.
    pub async fn until_closed(&self, role: &str) {
        eventually(A_ROLLOUT, &format!("{role} thawed"), async || match self.user_partition(role).await {
            None => Ok(()),
            Some(floor) => {
                let (partition, status) = (self.partition(role).await, self.statuses.now());
                Err(format!("floor {floor}, partition {partition}\n{status}"))
            }
        })
        .await;
    }

    /// Lets updated pods of a role become ready, as they come, while `done` does not hold.
    pub async fn let_ready_until(&self, which: impl Fn(&Pod) -> bool, done: impl Fn(&View) -> bool) {
        self.stage.let_ready_until(which, done).await;
    }

    pub fn is_new(&self, pod: &Pod) -> bool {
        self.first.get(&pod.role).is_some_and(|first| revision(pod) != *first)
    }

    /// New pods of a role, by index.
    pub fn new_ordinals(&self, role: &str) -> BTreeSet<u32> {
        self.stage.pods.now(|now| now.of(role).filter(|pod| self.is_new(pod)).map(|pod| pod.index).collect())
    }

    /// Waits until exactly these pods of a role are new.
    pub async fn until_new_ordinals(&self, role: &str, ordinals: std::ops::Range<u32>) {
        let expected: BTreeSet<u32> = ordinals.collect();
        let are = |now: &View| expected == now.of(role).filter(|pod| self.is_new(pod)).map(|pod| pod.index).collect();
        self.stage.pods.until(&format!("{expected:?} of {role} are new"), are).await;
    }

    /// What must hold at every event since the group served first.
    pub fn assert_bounds(&self, skew: u32, unavailable: &dyn Fn(u32) -> u32) -> usize {
        let roles = ["prefill", "decode"].map(|name| (name, self.group.find(name).replicas));
        invariants::rolled_in_step(&self.stage.pods, roles, |pod| self.is_new(pod), skew, unavailable)
    }

    /// Reasons and notes of the Events on the group.
    pub async fn events(&self) -> Vec<(String, String)> {
        let events = self.stage.api::<Event>().list(&ListParams::default()).await.unwrap();
        let of_group = events.items.into_iter().filter(|event| event.involved_object.name.as_deref() == Some("llm"));
        of_group.map(|event| (event.reason.unwrap_or_default(), event.message.unwrap_or_default())).collect()
    }

    /// Waits until a metric of the rollout has about this value.
    pub async fn until_metric(&self, name: &str, role: &str, value: f64) {
        let labels = format!("{{namespace=\"{}\",group=\"llm\",role=\"{role}\"}} ", self.stage.namespace);
        let start = format!("rolegate_rollout_{name}{labels}");
        let of_metric = |text: &str| text.lines().find_map(|line| line.strip_prefix(&start)?.parse::<f64>().ok());
        let found = async || of_metric(&http::get(self.rolegate.admin, "/metrics").await.unwrap().1);
        let is_about = |found: &Option<f64>| found.is_some_and(|found| (found - value).abs() < 0.001);
        until_found(&format!("{start} {value}"), found, is_about).await;
    }
}

pub fn revision(pod: &Pod) -> String {
    pod.labels.get(REVISION).cloned().unwrap_or_default()
}

/// The coordination of a rollout of both roles within these bounds.
pub fn rolling(bounds: impl serde::Serialize) -> Value {
    json!([{ "name": "roll", "roles": ["prefill", "decode"], "strategy": { "rollingUpdate": bounds } }])
}

/// Creates claimed LeaderWorkerSets, whose groups are of two; `more` is merged into each.
pub async fn create_leader_worker_sets(stage: &Stage, group: &Group, more: &Value) {
    for role in &group.roles {
        let labels = json!({ "rolegate.dev/group": "llm", "rolegate.dev/role": role.name });
        let mut set = group.leader_worker_set(&role.name, 2, &stage.namespace, more);
        set["metadata"]["labels"] = labels;
        stage.create(set).await;
    }
}

pub fn leader_worker_sets(stage: &Stage) -> Api<DynamicObject> {
    stage.objects("leaderworkerset.x-k8s.io", "v1", "LeaderWorkerSet")
}

/// The revisions of the groups that there are, by role.
pub fn revisions_of_groups(stage: &Stage) -> BTreeMap<String, String> {
    let of = |pod: &Pod| (pod.role.clone(), pod.labels[LWS_REVISION].clone());
    stage.pods.now(|now| now.all().map(of).collect())
}
