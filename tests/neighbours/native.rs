//! Gangs of Kubernetes itself (KEP-4671, `scheduling.k8s.io/v1alpha2` of 1.36, off by default): what a PodGroup over pods of
//! several controllers does while a gate holds some of them. Here is why there is no podGroupPolicy that makes them.

use crate::common::control_plane::programs;
use crate::common::prelude::*;
use crate::program;

const SCHEDULING: &str = "/apis/scheduling.k8s.io/v1alpha2";

static PLANE: Shared = Shared::new(|| {
    let gates = "feature-gates=GenericWorkload=true,GangScheduling=true,WorkloadWithJob=true";
    let [api_server, scheduler, controllers] =
        ["apiserver", "scheduler", "controller-manager"].map(|of| format!("--{of}-flag={gates}"));
    let api = "--apiserver-flag=runtime-config=scheduling.k8s.io/v1alpha2=true";
    let programs = format!("--programs={}", programs("1.36").display());
    ControlPlane::start_with_groups("kwok", &[&programs, &api_server, &scheduler, &controllers, api])
});

fn record(tried: &str, result: &str) {
    let version: Value = serde_json::from_str(&PLANE.get().must(&["version", "-o", "json"], "")).unwrap();
    let version = version["serverVersion"]["gitVersion"].as_str().unwrap();
    program::record("native", version, tried, result);
}

/// Pods by hand and their PodGroup.
struct Gang {
    stage: Stage,
    name: &'static str,
}

impl Gang {
    /// A PodGroup of so many pods, and a node with room for so many.
    async fn of(namespace: &str, members: u32, room: u32) -> Self {
        let gang = Self { stage: Stage::on(PLANE.get(), namespace).await, name: "llm-0" };
        gang.stage.add_node("a", room).await;
        assert_eq!(gang.make(members).await, 201);
        gang
    }

    /// Makes the PodGroup; the answer's code.
    async fn make(&self, members: u32) -> u16 {
        let object = pod_group(self.name, members);
        self.stage.post(SCHEDULING, "podgroups", &object).await.code
    }

    /// A member that is held by this gate, if any.
    async fn member(&self, pod: &str, gate: Option<&str>) {
        self.pod(pod, gate, Some(self.name)).await;
    }

    async fn pod(&self, pod: &str, gate: Option<&str>, of: Option<&str>) {
        let mut object = Group::new("llm").pod("worker", pod, &self.stage.namespace);
        // rolegate has no part in them.
        object["metadata"]["labels"] = json!({});
        if let Some(name) = of {
            object["spec"]["schedulingGroup"] = json!({ "podGroupName": name });
        }
        object["spec"]["schedulingGates"] = gate.map(|name| json!({ "name": name })).into_iter().collect();
        let answer = self.stage.post(CORE, "pods", &object).await;
        assert_eq!(answer.code, 201, "{}", answer.body);
        assert_eq!(answer.body["spec"]["schedulingGroup"]["podGroupName"].as_str(), of);
    }

    async fn of_three(&self) {
        for pod in ["a", "b", "c"] {
            self.member(pod, None).await;
        }
        self.until_bound(&["a", "b", "c"]).await;
    }

    async fn lift(&self, pod: &str) {
        self.stage.patch::<ApiPod>(pod, &json!({ "spec": { "schedulingGates": [] } })).await;
    }

    async fn delete(&self, pod: &str) {
        self.stage.delete::<ApiPod>(pod).await;
        let pods = self.stage.api::<ApiPod>();
        until_found("the pod is gone", async || pods.get_opt(pod).await.unwrap(), Option::is_none).await;
    }

    /// Waits until the scheduler has tried a pod, and could not place it.
    async fn until_tried(&self, pod: &str) {
        let pods = self.stage.api::<ApiPod>();
        let look = async || reason(&pods.get(pod).await.unwrap());
        until_is("the scheduler has tried it", look, Some("Unschedulable".to_owned())).await;
    }

    /// A pod of no gang that came later is bound: the scheduler has been through its queue.
    async fn until_later_pod_is_bound(&self) {
        self.pod("later", None, None).await;
        self.until_bound(&["later"]).await;
        self.delete("later").await;
    }

    async fn until_bound(&self, pods: &[&str]) {
        let bound = |pod: &&str, now: &View| now.named(pod).is_some_and(Pod::is_scheduled);
        self.stage.pods.until("all are bound", |now| pods.iter().all(|pod| bound(pod, now))).await;
    }

    fn bound(&self) -> usize {
        self.stage.pods.now(|now| now.count_all(Pod::is_scheduled))
    }

    async fn stored(&self) -> Option<DynamicObject> {
        self.stage.objects("scheduling.k8s.io", "v1alpha2", "PodGroup").get_opt(self.name).await.unwrap()
    }

    /// Waits until the PodGroup's condition says so.
    async fn until_scheduled(&self, status: &str) {
        let condition = async || self.stored().await.unwrap().data["status"]["conditions"][0].clone();
        until_found("the PodGroup says so", condition, |found| {
            found["type"] == "PodGroupScheduled" && found["status"] == status
        })
        .await;
    }
}

fn pod_group(name: &str, members: u32) -> Value {
    object("scheduling.k8s.io/v1alpha2", "PodGroup", name)
        .spec(json!({ "schedulingPolicy": { "gang": { "minCount": members } } }))
}

/// Why a pod is not scheduled.
fn reason(pod: &ApiPod) -> Option<String> {
    let conditions = pod.status.as_ref()?.conditions.as_ref()?;
    conditions.iter().find(|condition| condition.type_ == "PodScheduled" && condition.status == "False")?.reason.clone()
}

#[tokio::test]
#[ignore = "make neighbours runs it"]
async fn without_the_feature_gates_the_field_is_dropped_in_silence() {
    let stage = Stage::new("native-off").await;
    let mut pod = Group::new("llm").pod("worker", "a", &stage.namespace);
    pod["spec"]["schedulingGroup"] = json!({ "podGroupName": "llm-0" });
    let answer = stage.post(CORE, "pods", &pod).await;
    assert_eq!((answer.code, &answer.warnings[..]), (201, &[][..]));
    assert_eq!(answer.body["spec"]["schedulingGroup"], Value::Null);
    assert_eq!(stage.post(SCHEDULING, "podgroups", &pod_group("llm-0", 3)).await.code, 404);
    stage.add_node("a", 1).await;
    stage.pods.until("it is bound, alone", |now| now.count_all(Pod::is_scheduled) == 1).await;
    let result = "the API server drops `spec.schedulingGroup` of a pod, which is bound alone";
    record("the feature gates are off, as by default", result);
}

#[tokio::test]
#[ignore = "make neighbours runs it"]
async fn held_members_are_counted_as_there_and_nothing_is_bound_before_the_last_is_let_go() {
    let gang = Gang::of("native-held", 3, 10).await;
    gang.member("prefill-0", None).await;
    gang.member("prefill-1", Some(GATE)).await;
    gang.until_later_pod_is_bound().await;
    let first = gang.stage.api::<ApiPod>().get("prefill-0").await.unwrap();
    assert_eq!(reason(&first), None, "with two of three it is not even tried");
    gang.member("decode-0", Some(GATE)).await;
    gang.until_tried("prefill-0").await;
    gang.until_scheduled("False").await;
    gang.lift("prefill-1").await;
    gang.until_tried("prefill-1").await;
    gang.until_later_pod_is_bound().await;
    assert_eq!(gang.bound(), 0);
    gang.lift("decode-0").await;
    gang.until_bound(&["prefill-0", "prefill-1", "decode-0"]).await;
    gang.until_scheduled("True").await;
    record("members that a gate holds", "none is bound before the gate of the last is lifted, then all at once");
}

#[tokio::test]
#[ignore = "make neighbours runs it"]
async fn with_too_little_room_nothing_is_bound() {
    let gang = Gang::of("native-room", 3, 2).await;
    for pod in ["a", "b", "c"] {
        gang.member(pod, None).await;
    }
    gang.until_scheduled("False").await;
    gang.until_later_pod_is_bound().await;
    assert_eq!(gang.bound(), 0);
    gang.stage.add_node("b", 1).await;
    gang.until_bound(&["a", "b", "c"]).await;
    record("too little room", "nothing is bound; when a node comes, all of it");
}

#[tokio::test]
#[ignore = "make neighbours runs it"]
async fn a_pod_that_is_made_anew_needs_the_whole_number_again() {
    let gang = Gang::of("native-again", 3, 10).await;
    gang.of_three().await;
    gang.delete("a").await;
    gang.member("a", None).await;
    gang.until_bound(&["a"]).await;

    gang.delete("a").await;
    gang.delete("b").await;
    gang.member("a", None).await;
    gang.until_later_pod_is_bound().await;
    assert_eq!(gang.bound(), 1, "of three only c");
    gang.member("b", None).await;
    gang.until_bound(&["a", "b"]).await;
    let result = "one is bound at once; of several none before the last of them exists and fits";
    record("pods of a gang that runs are made anew", result);
}

#[tokio::test]
#[ignore = "make neighbours runs it"]
async fn a_batch_that_became_smaller_can_neither_be_told_so_nor_begun_anew() {
    let gang = Gang::of("native-shrunk", 3, 10).await;
    gang.of_three().await;
    // The batch has two pods from now on, and one of them is made anew.
    gang.delete("c").await;
    gang.delete("b").await;
    gang.member("b", None).await;
    gang.until_later_pod_is_bound().await;
    assert_eq!(gang.bound(), 1);

    let path = format!("{SCHEDULING}/namespaces/native-shrunk/podgroups/llm-0");
    let smaller = json!({ "spec": { "schedulingPolicy": { "gang": { "minCount": 2 } } } });
    let answer = gang.stage.send("PATCH", &path, &smaller).await;
    assert_eq!(answer.code, 422, "{}", answer.body);
    assert!(answer.body["message"].as_str().unwrap().contains("field is immutable"), "{}", answer.body);
    let pod = format!("{CORE}/namespaces/native-shrunk/pods/b");
    let other = json!({ "spec": { "schedulingGroup": { "podGroupName": "llm-1" } } });
    assert_eq!(gang.stage.send("PATCH", &pod, &other).await.code, 422);
    assert_eq!(gang.stage.send("PATCH", &pod, &json!({ "spec": { "schedulingGroup": null } })).await.code, 422);

    // What it was cannot make room for what it is to be.
    assert_eq!(gang.stage.send("DELETE", &path, &json!({})).await.code, 200);
    let left = gang.stored().await.unwrap().metadata;
    assert!(left.deletion_timestamp.is_some(), "{left:?}");
    assert_eq!(left.finalizers, Some(vec!["scheduling.k8s.io/podgroup-protection".to_owned()]));
    assert_eq!(gang.make(2).await, 409);
    gang.until_later_pod_is_bound().await;
    assert_eq!(gang.bound(), 1);
    gang.delete("a").await;
    assert!(gang.stored().await.is_some());
    gang.delete("b").await;
    until_found("with its last pod it is gone", async || gang.stored().await, Option::is_none).await;
    record(
        "a batch becomes smaller",
        "does not work: `minCount` and the `schedulingGroup` of a pod are immutable, and a deleted PodGroup stays until its last pod is gone, so that a recreated pod waits for good",
    );
    record("deletion", "the PodGroup goes after its last pod");
}

#[tokio::test]
#[ignore = "make neighbours runs it"]
async fn a_stateful_set_that_makes_its_pods_in_order_never_starts() {
    let gang = Gang::of("native-ordered", 2, 10).await;
    let group = Group::new("llm").role("prefill", 2, 2);
    let group = group.template(&json!({ "spec": { "schedulingGroup": { "podGroupName": gang.name } } }));
    let mut set = group.set(group.find("prefill"), &gang.stage.namespace);
    set["spec"]["podManagementPolicy"] = json!("OrderedReady");
    gang.stage.create(set).await;
    gang.stage.pods.until("its first pod", |now| now.all().count() == 1).await;
    gang.until_later_pod_is_bound().await;
    gang.stage.pods.now(|now| assert_eq!((now.all().count(), now.count_all(Pod::is_scheduled)), (1, 0), "{now}"));
    let result = "does not work: the first pod waits for the second, which is created when the first is ready";
    record("a StatefulSet with podManagementPolicy OrderedReady", result);
}

/// What somebody can do by hand: the template of each role names one PodGroup.
fn by_hand(gang: &Gang) -> Group {
    let group = Group::new("llm").role("prefill", 4, 2).role("decode", 2, 1);
    group.template(&json!({ "spec": { "schedulingGroup": { "podGroupName": gang.name } } }))
}

#[tokio::test]
#[ignore = "make neighbours runs it"]
async fn a_gang_over_several_batches_waits_for_those_that_wait_for_it() {
    let gang = Gang::of("native-batches", 6, 10).await;
    let _rolegate = gang.stage.launch().start().await;
    let group = by_hand(&gang);
    gang.stage.deploy(&group).await;
    gang.stage.pods.until("the first batch is released", |now| now.count_all(Pod::is_released) == 3).await;
    gang.until_tried("llm-prefill-0").await;
    gang.until_scheduled("False").await;
    gang.until_later_pod_is_bound().await;
    assert_eq!(gang.bound(), 0);
    let said = gang.stage.said(&["explain", "pod", "llm-prefill-0"]).await;
    assert!(said.contains("see whether PodGroup \"llm-0\" of scheduling.k8s.io"), "{said}");
    let result = "does not work: its first batch waits for the minimum, the others wait for the first";
    record("one gang over several batches", result);
}

#[tokio::test]
#[ignore = "make neighbours runs it"]
async fn a_gang_over_one_batch_of_several_controllers_goes() {
    let gang = Gang::of("native-batch", 6, 10).await;
    let _rolegate = gang.stage.launch().start().await;
    let mut group = by_hand(&gang);
    for role in &mut group.roles {
        role.segment = role.replicas;
    }
    gang.stage.deploy(&group).await;
    gang.stage.pods.until("all are bound", |now| now.count_all(Pod::is_scheduled) == 6).await;
    let result = "is released by rolegate and bound";
    record("a gang over the pods of two StatefulSets in one batch, named in their templates", result);
}

#[tokio::test]
#[ignore = "make neighbours runs it"]
async fn a_job_that_is_a_gang_of_its_own_waits_for_its_own_batches() {
    let gang = Gang::of("native-job", 2, 10).await;
    let _rolegate = gang.stage.launch().start().await;
    let group = Group::new("llm").role("worker", 4, 2);
    gang.stage.create_group(&group).await;
    let mut template = group.pod("worker", "x", &gang.stage.namespace);
    template["metadata"].as_object_mut().unwrap().remove("name");
    template["spec"]["restartPolicy"] = json!("Never");
    let job = object("batch/v1", "Job", "llm")
        .spec(json!({ "completionMode": "Indexed", "completions": 4, "parallelism": 4, "template": template }));
    gang.stage.create(job).await;
    gang.stage.pods.until("the first batch is released", |now| now.count_all(Pod::is_released) == 2).await;
    let first = gang.stage.pods.now(|now| now.all().find(|pod| pod.is_released()).unwrap().name.clone());
    gang.until_tried(&first).await;
    gang.until_later_pod_is_bound().await;
    assert_eq!(gang.bound(), 0);
    let result = "does not work: one gang of all its pods, whose first batch waits for the others";
    record("an Indexed Job in batches, feature gate WorkloadWithJob", result);
}
