//! Makers of pods that wait for pods which are held: each combination is refused, warned about, or runs to its end.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ResourceQuota;

use crate::common::prelude::*;
use crate::common::stage::Answer;
use crate::pods::support::{RACK, add_rack, stage};

const LWS: &str = "/apis/leaderworkerset.x-k8s.io/v1";
const OURS: &str = "/apis/rolegate.dev/v1alpha1";
const EXCLUSIVE: &str = "leaderworkerset.sigs.k8s.io/exclusive-topology";

/// A LeaderWorkerSet of two groups of three.
fn set(stage: &Stage, change: &Value) -> Value {
    let group = Group::new("llm").role("main", 2, 1).held_back();
    group.leader_worker_set("main", 3, &stage.namespace, change)
}

/// Each of its groups a segment of its own, with or without a domain that is shared.
fn coordination(kind: &str, workload: &str, size: u32, topology: Option<&str>) -> Value {
    let mut segments = json!({ "segmentSize": { "main": size } });
    if let Some(key) = topology {
        segments["topologyAffinity"] = json!({ "topologyKey": key, "strategy": "RequireSegmentAffinity" });
    }
    object("rolegate.dev/v1alpha1", "RoleCoordination", "llm").spec(json!({
        "roles": [{ "name": "main", "workloadRef": { "kind": kind, "name": workload } }],
        "coordination": [{ "name": "segments", "strategy": { "segmentPlacement": segments } }],
    }))
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

/// How long the successors of pods were held. What had to wait for others to be ready would wait for ever.
fn held_for(stage: &Stage, which: impl Fn(&Pod) -> bool) -> Vec<Duration> {
    let events = stage.pods.events();
    let born = events.iter().filter(|event| event.step == Step::Born && which(&event.pod));
    let out = |uid: &str| events.iter().find(|event| event.step == Step::Released && event.pod.uid == uid).unwrap().at;
    born.map(|born| out(&born.pod.uid) - born.at).collect()
}

/// LWS makes the whole group again when it sees one of its pods on its way out; a pod that is gone before LWS looks is
/// replaced alone. So it stays on its way out until the leader is on its way too.
async fn lose_a_worker(stage: &Stage, worker: &str, leader: &str) {
    let pods = stage.api::<k8s_openapi::api::core::v1::Pod>();
    let finalizers = |finalizers: Value| Patch::Merge(json!({ "metadata": { "finalizers": finalizers } }));
    let params = PatchParams::default();
    let leads = pods.get(leader).await.unwrap().metadata.uid.unwrap();
    pods.patch(worker, &params, &finalizers(json!(["example.com/until-seen"]))).await.unwrap();
    pods.delete(worker, &DeleteParams::default()).await.unwrap();
    eventually(PATIENT, "LWS takes the leader away", async || {
        let now = pods.get_metadata_opt(leader).await.unwrap().map(|leader| leader.metadata);
        let is_there = now.is_some_and(|now| now.uid.as_ref() == Some(&leads) && now.deletion_timestamp.is_none());
        if is_there { Err("it is there") } else { Ok(()) }
    })
    .await;
    pods.patch(worker, &params, &finalizers(Value::Null)).await.unwrap();
}

#[tokio::test]
async fn a_group_of_a_leader_worker_set_that_is_made_again_runs_at_once() {
    let (stage, _rolegate) = stage("lws-again").await.with_room(12).await.serve().await;
    let three = json!({ "spec": { "replicas": 3 } });
    stage.create(set(&stage, &three)).await;
    assert_eq!(coordinate(&stage, None).await.code, 201);
    // Two of three groups may run; the second is not ready.
    stage.pods.until("the first group", |now| now.count_all(Pod::is_scheduled) == 3).await;
    stage.let_ready(Pod::is_scheduled).await;
    stage.pods.until("the second group", |now| now.count_all(Pod::is_scheduled) == 6).await;
    let old: Vec<_> = stage.pods.now(|now| now.all().map(|pod| pod.uid.clone()).collect());
    lose_a_worker(&stage, "llm-main-0-1", "llm-main-0").await;
    let is_new = |pod: &Pod| !old.contains(&pod.uid);
    let again = |now: &View| now.count_all(|pod| is_new(pod) && pod.is_scheduled()) == 3;
    stage.pods.until("the group again", |now| now.count_all(|_| true) == 9 && again(now)).await;
    let held = held_for(&stage, |pod| {
        is_new(pod) && stage.pods.now(|now| now.named(&pod.name).is_some_and(|p| p.uid == pod.uid))
    });
    assert_eq!(held.len(), 3, "{held:?}");
    println!("held for {held:?}");
    stage.pods.now(|now| assert_eq!(now.count_all(Pod::is_held), 3, "{now}"));
}

/// A Deployment whose controller gives up after ten seconds.
async fn deployment(stage: &Stage, replicas: u32) -> Api<Deployment> {
    create(stage, &Group::new("llm").role("main", replicas, 1)).await;
    stage.pods.until("all run", |now| now.count_all(Pod::is_ready) == replicas as usize).await;
    stage.api::<Deployment>()
}

async fn create(stage: &Stage, group: &Group) {
    stage.create(coordination("Deployment", "llm-main", 1, None)).await;
    stage.create(group.deployment("main", &stage.namespace, &json!({ "progressDeadlineSeconds": 10 }))).await;
}

async fn progressing(api: &Api<Deployment>) -> (String, String) {
    let status = api.get("llm-main").await.unwrap().status.unwrap();
    let condition = status.conditions.unwrap().into_iter().find(|condition| condition.type_ == "Progressing").unwrap();
    (condition.status, condition.reason.unwrap())
}

/// Held leaders use up the quota of their workers: no group is complete, and each waits for the other.
#[tokio::test]
async fn groups_of_a_leader_worker_set_that_lock_each_other_by_a_quota() {
    let (stage, rolegate) = stage("lws-quota").await.with_room(6).await.serve().await;
    let quota = json!({ "metadata": { "name": "small" }, "spec": { "hard": { "pods": "3" } } });
    let quotas = stage.api::<ResourceQuota>();
    quotas.create(&PostParams::default(), &typed(quota)).await.unwrap();
    until_found(
        "a quota that counts",
        async || quotas.get("small").await.unwrap().status.unwrap_or_default(),
        |status| status.used.is_some(),
    )
    .await;
    stage.create(set(&stage, &json!({}))).await;
    assert_eq!(coordinate(&stage, None).await.code, 201);
    rolegate.until_metric(r#"rolegate_held_pods{reason="QuotaDeadlock"}"#, 3).await;
    quotas.delete("small", &DeleteParams::default()).await.unwrap();
    eventually(PATIENT, "all run", async || {
        stage.let_ready(Pod::is_scheduled).await;
        stage.pods.now(|now| if now.count_all(Pod::is_ready) == 6 { Ok(()) } else { Err(now.to_string()) })
    })
    .await;
    rolegate.until_metric(r#"rolegate_held_pods{reason="QuotaDeadlock"}"#, 0).await;
}

/// RBG with a CoordinatedPolicy of kind `OrderScheduled`: one pod of each role, and the next when these have nodes. The
/// operator is not here; the test makes its pods as it does.
#[tokio::test]
async fn pods_that_an_operator_makes_one_and_one_as_they_get_nodes() {
    let (stage, _rolegate) = stage("one-and-one").await.with_room(12).await.serve().await;
    let group = Group::new("llm").role("prefill", 4, 2).role("decode", 4, 2);
    stage.create_group(&group).await;
    for ordinal in 0..4 {
        for role in ["prefill", "decode"] {
            let instance = format!("llm-{role}-{ordinal}");
            let labels = json!({
                "rbg.workloads.x-k8s.io/group-name": "llm",
                "rbg.workloads.x-k8s.io/role-name": role,
                "rbg.workloads.x-k8s.io/role-instance-name": instance,
            });
            let mut pod = group.pod(role, &instance, &stage.namespace);
            json_patch::merge(&mut pod, &json!({ "metadata": { "labels": labels } }));
            stage.create(pod).await;
        }
        let scheduled = 2 * (ordinal + 1);
        stage.pods.until("both have nodes", |now| now.count_all(Pod::is_scheduled) == scheduled).await;
    }
    stage.pods.until("all ready", |now| now.count_all(Pod::is_ready) == 8).await;
    assert_eq!(invariants::all_born_held(&stage.pods), 8);
}

mod tier2 {
    use super::*;

    #[tokio::test]
    async fn workers_that_are_made_when_their_leader_has_a_node() {
        let stage = stage("exclusive").await;
        let exclusive = json!({ "metadata": { "annotations": { EXCLUSIVE: RACK } } });
        comes_up_leader_by_leader(&stage, &exclusive, "exclusive topology").await;
    }

    #[tokio::test]
    async fn a_pod_of_a_deployment_that_is_made_again_runs_at_once() {
        let (stage, _rolegate) = stage("deployment-again").await.with_room(12).await.serve().await;
        let api = deployment(&stage, 3).await;
        let old: Vec<_> = stage.pods.now(|now| now.all().map(|pod| pod.uid.clone()).collect());
        let name = stage.pods.now(|now| now.all().next().unwrap().name.clone());
        let pods = stage.api::<k8s_openapi::api::core::v1::Pod>();
        pods.delete(&name, &DeleteParams::default()).await.unwrap();
        let again = |now: &View| now.named(&name).is_none() && now.count_all(Pod::is_ready) == 3;
        stage.pods.until("one more", again).await;
        let held = held_for(&stage, |pod| !old.contains(&pod.uid));
        println!("held for {held:?}");
        assert_eq!(held.len(), 1, "{held:?}");
        assert_eq!(progressing(&api).await.0, "True");
    }

    /// With two replicas a Deployment may take none away (25 % of them): it makes one more, and waits until that is ready.
    #[tokio::test]
    async fn a_rollout_of_a_deployment_is_not_held_up() {
        let (stage, _rolegate) = stage("deployment-rolls").await.with_room(12).await.serve().await;
        let api = deployment(&stage, 2).await;
        let image = json!({ "spec": { "template": { "metadata": { "annotations": { "example.com/turn": "2" } } } } });
        api.patch("llm-main", &PatchParams::default(), &Patch::Merge(image)).await.unwrap();
        let new = |pod: &Pod| pod.annotations.contains_key("example.com/turn");
        let done = |now: &View| now.count_all(|_| true) == 2 && now.count_all(|pod| new(pod) && pod.is_ready()) == 2;
        stage.pods.until("the new ones run", done).await;
        let held = held_for(&stage, new);
        println!("held for {held:?}");
        assert_eq!(held.len(), 2, "{held:?}");
        eventually(PATIENT, "the rollout is over", async || {
            let found = progressing(&api).await;
            let done = found == ("True".to_owned(), "NewReplicaSetAvailable".to_owned());
            if done { Ok(()) } else { Err(format!("{found:?}")) }
        })
        .await;
    }

    /// RBG makes the workload of a role when those are ready that it depends on.
    #[tokio::test]
    async fn roles_that_depend_on_each_other() {
        let (stage, _rolegate) = stage("dependencies").await.with_room(12).await.serve().await;
        let group = Group::new("llm").role("prefill", 2, 1).role("decode", 2, 1).held_back();
        let mut object = group.object();
        object["spec"]["roles"][1]["dependencies"] = json!(["prefill"]);
        let refused = stage.post(GROUPS, "rolebasedgroups", &object).await;
        let message = refused.body["message"].as_str().unwrap();
        let why = r#"role "decode" must not depend on "prefill""#;
        assert!(refused.code == 422 && message.contains(why), "{refused:?}");

        let segments = &mut object["spec"]["coordination"][0]["strategy"]["segmentPlacement"];
        segments["progression"] = json!("Parallel");
        let made = stage.post(GROUPS, "rolebasedgroups", &object).await;
        assert_eq!(made.code, 201, "{made:?}");
        let statuses = stage.statuses(&group);
        let set = |role| typed::<StatefulSet>(group.set(group.find(role), &stage.namespace));
        stage.api().create(&PostParams::default(), &set("prefill")).await.unwrap();
        let told = r#"True Progressing: role "decode" lacks 2 of 2 replicas: its workload is made when role "prefill" is ready"#;
        statuses.until("it is told", |status| status.progressing() == told).await;
        stage.let_ready(Pod::is_scheduled).await;
        stage.pods.until("prefill", |now| now.count("prefill", Pod::is_ready) == 2).await;
        stage.api().create(&PostParams::default(), &set("decode")).await.unwrap();
        stage.pods.until("decode", |now| now.count("decode", Pod::is_scheduled) == 2).await;
        stage.let_ready(Pod::is_scheduled).await;
        statuses.until("all ready", |status| status.progressing() == "True Complete").await;
    }
}
