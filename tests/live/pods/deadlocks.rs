//! Makers of pods that wait for pods which are held: each combination is refused, warned about, or runs to its end.

use k8s_openapi::api::core::v1::ResourceQuota;

use crate::common::prelude::*;
use crate::pods::support::{RACK, add_rack, stage};

const OURS: &str = "/apis/rolegate.dev/v1alpha1";
const EXCLUSIVE: &str = "leaderworkerset.sigs.k8s.io/exclusive-topology";

/// A LeaderWorkerSet of two groups of three.
fn set(stage: &Stage, change: &Value) -> Value {
    let group = Group::new("llm").role("main", 2, 1).held_back();
    group.leader_worker_set("main", 3, &stage.namespace, change)
}

/// Each of its groups a segment of its own, with or without a domain that is shared.
async fn coordinate(stage: &Stage, topology: Option<&str>) -> Answer {
    let placed = topology.map_or(json!({}), |key| near(key, "RequireSegmentAffinity"));
    let object = Group::new("llm").role("main", 2, 1).coordination_of("LeaderWorkerSet", &placed);
    stage.post(OURS, "rolecoordinations", &object).await
}

/// Leaders first, then workers; the second group after the first.
async fn comes_up_leader_by_leader(stage: &Stage, change: &Value, why: &str) {
    add_rack(stage, "a", &["1"], 3).await;
    add_rack(stage, "b", &["1"], 3).await;
    let _rolegate = stage.launch().start().await;
    stage.create(set(stage, change)).await;
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
        stage.let_ready_until(Pod::is_scheduled, |now| now.count_all(Pod::is_ready) == group * 3 + 3).await;
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
    let finalizers = |finalizers: Value| json!({ "metadata": { "finalizers": finalizers } });
    let leads = pods.get(leader).await.unwrap().metadata.uid.unwrap();
    stage.patch::<ApiPod>(worker, &finalizers(json!(["example.com/until-seen"]))).await;
    pods.delete(worker, &DeleteParams::default()).await.unwrap();
    let look = async || pods.get_metadata_opt(leader).await.unwrap().map(|leader| leader.metadata);
    until_found("LWS takes the leader away", look, |now| {
        now.as_ref().is_none_or(|now| now.uid.as_ref() != Some(&leads) || now.deletion_timestamp.is_some())
    })
    .await;
    stage.patch::<ApiPod>(worker, &finalizers(Value::Null)).await;
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
    let group = Group::new("llm").role("main", replicas, 1);
    stage.create(group.coordination_of("Deployment", &json!({}))).await;
    stage.create(group.deployment("main", &stage.namespace, &json!({ "progressDeadlineSeconds": 10 }))).await;
    stage.pods.until("all run", |now| now.count_all(Pod::is_ready) == replicas as usize).await;
    stage.api::<Deployment>()
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
    stage.quota(3).await;
    stage.create(set(&stage, &json!({}))).await;
    assert_eq!(coordinate(&stage, None).await.code, 201);
    rolegate.until_metric(r#"rolegate_held_pods{reason="QuotaDeadlock"}"#, 3).await;
    stage.delete::<ResourceQuota>("small").await;
    stage.let_ready_until(Pod::is_scheduled, |now| now.count_all(Pod::is_ready) == 6).await;
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
            let mut pod = group.pod(role, &instance, &stage.namespace);
            for (key, value) in [("group-name", "llm"), ("role-name", role), ("role-instance-name", &instance)] {
                pod["metadata"]["labels"][format!("rbg.workloads.x-k8s.io/{key}")] = json!(value);
            }
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
        stage.delete::<ApiPod>(&name).await;
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
        stage.patch::<Deployment>("llm-main", &image).await;
        let new = |pod: &Pod| pod.annotations.contains_key("example.com/turn");
        let done = |now: &View| now.count_all(|_| true) == 2 && now.count_all(|pod| new(pod) && pod.is_ready()) == 2;
        stage.pods.until("the new ones run", done).await;
        let held = held_for(&stage, new);
        println!("held for {held:?}");
        assert_eq!(held.len(), 2, "{held:?}");
        let look = async || progressing(&api).await;
        until_is("the rollout is over", look, ("True".to_owned(), "NewReplicaSetAvailable".to_owned())).await;
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
        stage.create(object).await;
        let statuses = stage.statuses(&group);
        stage.create_set(&group, "prefill").await;
        let told = r#"True Progressing: role "decode" lacks 2 of 2 replicas: its workload is made when role "prefill" is ready"#;
        statuses.until("it is told", |status| status.progressing() == told).await;
        stage.let_ready(Pod::is_scheduled).await;
        stage.pods.until("prefill", |now| now.count("prefill", Pod::is_ready) == 2).await;
        stage.create_set(&group, "decode").await;
        stage.pods.until("decode", |now| now.count("decode", Pod::is_scheduled) == 2).await;
        stage.let_ready(Pod::is_scheduled).await;
        statuses.until("all ready", |status| status.progressing() == "True Complete").await;
    }
}
