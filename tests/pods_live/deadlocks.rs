//! Makers of pods that wait for pods which are held: each combination is refused, warned about, or runs to its end.

use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use crate::common::pods::{Pod, Step, View};
use crate::common::stage::{Answer, typed};
use crate::common::{Group, PATIENT, Stage, eventually, invariants};
use crate::support::{RACK, add_rack, coordinations, stage};

const LWS: &str = "/apis/leaderworkerset.x-k8s.io/v1";
const OURS: &str = "/apis/rolegate.dev/v1alpha1";
const EXCLUSIVE: &str = "leaderworkerset.sigs.k8s.io/exclusive-topology";

/// A LeaderWorkerSet of two groups of three.
fn set(stage: &Stage, change: &Value) -> Value {
    let group = Group::new("llm").role("main", 2, 1).held_back();
    let template = group.set(group.find("main"), &stage.namespace)["spec"]["template"].clone();
    let mut set = json!({
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": { "name": "llm-main" },
        "spec": { "replicas": 2, "leaderWorkerTemplate": { "size": 3, "workerTemplate": template } },
    });
    json_patch::merge(&mut set, change);
    set
}

/// Each of its groups a segment of its own, with or without a domain that is shared.
fn coordination(kind: &str, workload: &str, size: u32, topology: Option<&str>) -> Value {
    let mut segments = json!({ "segmentSize": { "main": size } });
    if let Some(key) = topology {
        segments["topologyAffinity"] = json!({ "topologyKey": key, "strategy": "RequireSegmentAffinity" });
    }
    json!({
        "apiVersion": "rolegate.dev/v1alpha1",
        "kind": "RoleCoordination",
        "metadata": { "name": "llm" },
        "spec": {
            "roles": [{ "name": "main", "workloadRef": { "kind": kind, "name": workload } }],
            "coordination": [{ "name": "segments", "strategy": { "segmentPlacement": segments } }],
        },
    })
}

async fn coordinate(stage: &Stage, topology: Option<&str>) -> Answer {
    let object = coordination("LeaderWorkerSet", "llm-main", 1, topology);
    stage.post(OURS, "rolecoordinations", &object).await
}

/// Leaders first, then workers; the second group after the first.
async fn comes_up_leader_by_leader(stage: &Stage, change: &Value, why: &str) {
    add_rack(stage, "a", &["1"], 3).await;
    add_rack(stage, "b", &["1"], 3).await;
    let _rolegate = stage.launch().start().await;
    let made = stage.post(LWS, "leaderworkersets", &set(stage, change)).await;
    assert_eq!(made.code, 201, "{made:?}");
    // Before anything else: the loop would wait for pods that are made only when others have been released.
    let refused = coordinate(stage, Some(RACK)).await;
    assert_eq!(refused.code, 422, "{refused:?}");
    let message = refused.body["message"].as_str().unwrap();
    assert!(message.contains(&format!("makes its pods one after another ({why})")), "{message}");
    let warned = coordinate(stage, None).await;
    assert_eq!(warned.code, 201, "{warned:?}");
    assert!(warned.warnings.iter().any(|warning| warning.contains(why)), "{warned:?}");
    for group in 0..2_usize {
        // The leader goes as it is, its workers as they appear.
        let seen = |now: &View| now.count_all(Pod::is_scheduled) > group * 3;
        stage.pods.until("a leader has a node", seen).await;
        eventually(PATIENT, "the group is ready", async || {
            stage.let_ready(Pod::is_scheduled).await;
            stage
                .pods
                .now(|now| if now.count_all(Pod::is_ready) == group * 3 + 3 { Ok(()) } else { Err(now.to_string()) })
        })
        .await;
    }
    assert_eq!(invariants::all_born_held(&stage.pods), 6);
}

#[tokio::test]
async fn workers_that_are_made_when_their_leader_is_ready() {
    let stage = stage("leader-ready").await;
    let policy = json!({ "spec": { "startupPolicy": "LeaderReady" } });
    comes_up_leader_by_leader(&stage, &policy, "startupPolicy LeaderReady").await;
}

#[tokio::test]
async fn workers_that_are_made_when_their_leader_has_a_node() {
    let stage = stage("exclusive").await;
    let exclusive = json!({ "metadata": { "annotations": { EXCLUSIVE: RACK } } });
    comes_up_leader_by_leader(&stage, &exclusive, "exclusive topology").await;
}

/// How long the successor of a pod was held.
fn held_for(stage: &Stage, which: impl Fn(&Pod) -> bool) -> Vec<Duration> {
    let events = stage.pods.events();
    let born = events.iter().filter(|event| event.step == Step::Born && which(&event.pod));
    let out = |uid: &str| events.iter().find(|event| event.step == Step::Released && event.pod.uid == uid).unwrap().at;
    born.map(|born| out(&born.pod.uid) - born.at).collect()
}

const SOON: Duration = Duration::from_secs(1);

#[tokio::test]
async fn a_group_of_a_leader_worker_set_that_is_made_again_runs_at_once() {
    let stage = stage("lws-again").await;
    stage.add_node("all", 12).await;
    let _rolegate = stage.launch().start().await;
    let three = json!({ "spec": { "replicas": 3 } });
    let made = stage.post(LWS, "leaderworkersets", &set(&stage, &three)).await;
    assert_eq!(made.code, 201, "{made:?}");
    assert_eq!(coordinate(&stage, None).await.code, 201);
    // Two of three groups may run; the second is not ready.
    stage.pods.until("the first group", |now| now.count_all(Pod::is_scheduled) == 3).await;
    stage.let_ready(Pod::is_scheduled).await;
    stage.pods.until("the second group", |now| now.count_all(Pod::is_scheduled) == 6).await;
    let old: Vec<_> = stage.pods.now(|now| now.all().map(|pod| pod.uid.clone()).collect());
    // LWS makes the whole group again when one of its pods is lost.
    let pods = stage.api::<k8s_openapi::api::core::v1::Pod>();
    pods.delete("llm-main-0-1", &DeleteParams::default()).await.unwrap();
    let is_new = |pod: &Pod| !old.contains(&pod.uid);
    let again = |now: &View| now.count_all(|pod| is_new(pod) && pod.is_scheduled()) == 3;
    stage.pods.until("the group again", |now| now.count_all(|_| true) == 9 && again(now)).await;
    let held = held_for(&stage, |pod| {
        is_new(pod) && stage.pods.now(|now| now.named(&pod.name).is_some_and(|p| p.uid == pod.uid))
    });
    assert!(held.len() == 3 && held.iter().all(|held| *held < SOON), "{held:?}");
    println!("held for {held:?}");
    stage.pods.now(|now| assert_eq!(now.count_all(Pod::is_held), 3, "{now}"));
}

/// A Deployment whose controller gives up after ten seconds.
async fn deployment(stage: &Stage, replicas: u32) -> Api<Deployment> {
    let group = Group::new("llm").role("main", replicas, 1);
    let set = group.set(group.find("main"), &stage.namespace);
    let spec = json!({
        "replicas": replicas,
        "progressDeadlineSeconds": 10,
        "selector": set["spec"]["selector"],
        "template": set["spec"]["template"],
    });
    let object = coordination("Deployment", "router", 1, None);
    coordinations(stage).create(&PostParams::default(), &typed(object)).await.unwrap();
    let api = stage.api::<Deployment>();
    api.create(&PostParams::default(), &typed(json!({ "metadata": { "name": "router" }, "spec": spec })))
        .await
        .unwrap();
    stage.pods.until("all run", |now| now.count_all(Pod::is_ready) == replicas as usize).await;
    api
}

async fn progressing(api: &Api<Deployment>) -> (String, String) {
    let status = api.get("router").await.unwrap().status.unwrap();
    let condition = status.conditions.unwrap().into_iter().find(|condition| condition.type_ == "Progressing").unwrap();
    (condition.status, condition.reason.unwrap())
}

#[tokio::test]
async fn a_pod_of_a_deployment_that_is_made_again_runs_at_once() {
    let stage = stage("deployment-again").await;
    stage.add_node("all", 12).await;
    let _rolegate = stage.launch().start().await;
    let api = deployment(&stage, 3).await;
    let old: Vec<_> = stage.pods.now(|now| now.all().map(|pod| pod.uid.clone()).collect());
    let name = stage.pods.now(|now| now.all().next().unwrap().name.clone());
    let pods = stage.api::<k8s_openapi::api::core::v1::Pod>();
    pods.delete(&name, &DeleteParams::default()).await.unwrap();
    let again = |now: &View| now.named(&name).is_none() && now.count_all(Pod::is_ready) == 3;
    stage.pods.until("one more", again).await;
    let held = held_for(&stage, |pod| !old.contains(&pod.uid));
    println!("held for {held:?}");
    assert!(held.len() == 1 && held[0] < SOON, "{held:?}");
    assert_eq!(progressing(&api).await.0, "True");
}

/// With two replicas a Deployment may take none away (25 % of them): it makes one more, and waits until that is ready.
#[tokio::test]
async fn a_rollout_of_a_deployment_is_not_held_up() {
    let stage = stage("deployment-rolls").await;
    stage.add_node("all", 12).await;
    let _rolegate = stage.launch().start().await;
    let api = deployment(&stage, 2).await;
    let image = json!({ "spec": { "template": { "metadata": { "annotations": { "example.com/turn": "2" } } } } });
    api.patch("router", &PatchParams::default(), &Patch::Merge(image)).await.unwrap();
    let new = |pod: &Pod| pod.annotations.contains_key("example.com/turn");
    let done = |now: &View| now.count_all(|_| true) == 2 && now.count_all(|pod| new(pod) && pod.is_ready()) == 2;
    stage.pods.until_within(Duration::from_secs(30), "the new ones run", done).await;
    let held = held_for(&stage, new);
    println!("held for {held:?}");
    assert!(held.len() == 2 && held.iter().all(|held| *held < SOON), "{held:?}");
    eventually(PATIENT, "the rollout is over", async || {
        let found = progressing(&api).await;
        let done = found == ("True".to_owned(), "NewReplicaSetAvailable".to_owned());
        if done { Ok(()) } else { Err(format!("{found:?}")) }
    })
    .await;
}
