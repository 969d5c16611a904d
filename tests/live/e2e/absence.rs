//! Pods that do not appear: whoever waits for them is told why, and no longer when it is over.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Event, ResourceQuota};

use crate::common::prelude::*;

fn group() -> Group {
    Group::new("llm").role("prefill", 4, 2).role("decode", 4, 2)
}

async fn quota(stage: &Stage, pods: u32) {
    let quota = object("v1", "ResourceQuota", "small").spec(json!({ "hard": { "pods": pods.to_string() } }));
    let apply = PatchParams::apply("test").force();
    let patched = stage.api::<ResourceQuota>().patch("small", &apply, &Patch::Apply(quota)).await.unwrap();
    let hard = pods.to_string();
    let counted = |quota: &ResourceQuota| {
        let status = quota.status.clone().unwrap_or_default();
        status.hard.is_some_and(|known| known["pods"].0 == hard) && status.used.is_some()
    };
    if !counted(&patched) {
        until_found("a quota that counts", async || stage.api::<ResourceQuota>().get("small").await.unwrap(), counted)
            .await;
    }
}

/// An Event of this reason on the group, whose note contains a text.
async fn told(stage: &Stage, reason: &str, text: &str) {
    let params = ListParams::default().fields(&format!("involvedObject.name=llm,reason={reason}"));
    eventually(PATIENT, &format!("an Event {reason}"), async || {
        let events = stage.api::<Event>().list(&params).await.unwrap().items;
        let notes: Vec<_> = events.into_iter().filter_map(|event| event.message).collect();
        if notes.iter().any(|note| note.contains(text)) { Ok(()) } else { Err(format!("{notes:?}")) }
    })
    .await;
}

async fn explained(stage: &Stage) -> String {
    let arguments = ["explain", "group", "llm", "-n", &stage.namespace];
    let shown = ran(&stage.plane.kubeconfig, &arguments).await;
    assert_eq!(shown.code, 0, "{shown:?}");
    shown.out
}

fn reason(status: &Status) -> &Value {
    &status.0["summary"]["reason"]
}

#[tokio::test]
async fn held_pods_that_use_up_the_quota_of_those_they_wait_for_are_called_a_deadlock() {
    let (stage, rolegate) = Stage::new("quota").await.with_room(8).await.serve().await;
    quota(&stage, 4).await;
    let group = group();
    let statuses = stage.create_watched(&group).await;
    // All pods of prefill are made, two of them for a later segment, and none of decode.
    let set = |role| typed::<StatefulSet>(group.set(group.find(role), &stage.namespace));
    stage.api().create(&PostParams::default(), &set("prefill")).await.unwrap();
    stage.pods.until("prefill", |now| now.count_all(|_| true) == 4).await;
    stage.api().create(&PostParams::default(), &set("decode")).await.unwrap();

    let status = statuses.until("a deadlock", |status| reason(status) == "QuotaDeadlock").await;
    let why = r#"role "decode" lacks 2 of 2 replicas: pods "llm-decode-"#;
    let progressing = status.progressing();
    assert!(progressing.starts_with(&format!("True Progressing: {why}")), "{progressing}");
    assert!(progressing.ends_with("exceeded quota: small, requested: pods=1, used: pods=4, limited: pods=4"));
    told(&stage, "QuotaDeadlock", why).await;
    told(&stage, "QuotaExceeded", why).await;
    rolegate.until_metric(r#"rolegate_held_pods{reason="QuotaDeadlock"}"#, 2).await;
    let shown = explained(&stage).await;
    for text in ["QuotaDeadlock", why, "exceeded quota: small", "raise the quota"] {
        assert!(shown.contains(text), "{text:?} is not in\n{shown}");
    }

    quota(&stage, 8).await;
    let done = statuses.until("all ready", |status| status.ready().ends_with("8/8 pods ready")).await;
    assert_eq!((done.progressing().as_str(), reason(&done)), ("True Complete", &json!("")));
    assert!(!explained(&stage).await.contains("lacks"));
}

#[tokio::test]
async fn fewer_replicas_than_declared_and_no_workload_at_all_are_told_apart() {
    let (stage, _rolegate) = Stage::new("fewer").await.with_room(8).await.serve().await;
    let group = group();
    let statuses = stage.create_watched(&group).await;
    let mut set = group.set(group.find("prefill"), &stage.namespace);
    set["spec"]["replicas"] = json!(1);
    stage.create(set).await;
    let fewer = r#"role "prefill" lacks 1 of 2 replicas: StatefulSet fewer/llm-prefill has 1 replicas, the group declares more"#;
    let none = r#"role "decode" lacks 2 of 2 replicas: StatefulSet fewer/llm-decode is not there, and no other workload makes such pods"#;
    let both = |status: &Status| [fewer, none].iter().all(|text| status.progressing().contains(text));
    statuses.until("both are told", both).await;
    told(&stage, "FewerReplicas", fewer).await;
    told(&stage, "WorkloadMissing", none).await;
    // Each is taken back by itself.
    stage.scale_set(&group, "prefill", 4).await;
    let only_one = |status: &Status| status.progressing() == format!("True Progressing: {none}");
    let status = statuses.until("one is left", only_one).await;
    assert!(reason(&status) == "PreviousSegmentNotReady", "{status}");
    let set = typed(group.set(group.find("decode"), &stage.namespace));
    stage.api::<StatefulSet>().create(&PostParams::default(), &set).await.unwrap();
    let done = statuses.until("all ready", |status| status.ready().ends_with("8/8 pods ready")).await;
    assert_eq!(done.progressing(), "True Complete");
}

mod tier2 {
    use super::*;

    #[tokio::test]
    async fn a_deployment_says_itself_that_the_quota_is_used_up_or_that_it_is_paused() {
        let (stage, _rolegate) = Stage::new("deployment-says").await.with_room(8).await.serve().await;
        quota(&stage, 1).await;
        let group = Group::new("llm").role("router", 2, 2);
        let statuses = stage.create_watched(&group).await;
        let set = group.set(group.find("router"), &stage.namespace);
        let spec = json!({
            "replicas": 2,
            "paused": true,
            "selector": set["spec"]["selector"],
            "template": set["spec"]["template"],
        });
        let deployment = json!({ "metadata": { "name": "any-name" }, "spec": spec });
        let deployments = stage.api::<Deployment>();
        deployments.create(&PostParams::default(), &typed(deployment)).await.unwrap();
        let says = |text: &'static str| move |status: &Status| status.progressing().contains(text);
        let paused = "lacks 2 of 2 replicas: Deployment deployment-says/any-name is paused";
        statuses.until("paused", says(paused)).await;
        told(&stage, "WorkloadPaused", paused).await;
        let resume = Patch::Merge(json!({ "spec": { "paused": false } }));
        deployments.patch("any-name", &PatchParams::default(), &resume).await.unwrap();
        statuses.until("the quota", says("exceeded quota: small")).await;
        told(&stage, "QuotaExceeded", "lacks 1 of 2 replicas").await;
        stage.api::<ResourceQuota>().delete("small", &DeleteParams::default()).await.unwrap();
        let done = statuses.until("all ready", |status| status.ready().ends_with("2/2 pods ready")).await;
        assert_eq!(done.progressing(), "True Complete");
    }

    #[tokio::test]
    async fn a_workload_that_makes_its_pods_one_by_one_fills_the_segment_and_says_so() {
        let (stage, _rolegate) = Stage::new("one-by-one").await.with_room(8).await.serve().await;
        let group = Group::new("llm").role("main", 4, 2).held_back();
        let statuses = stage.create_watched(&group).await;
        let mut set = group.set(group.find("main"), &stage.namespace);
        set["spec"]["podManagementPolicy"] = json!("OrderedReady");
        stage.create(set).await;
        let why = "lacks 1 of 2 replicas: StatefulSet one-by-one/llm-main makes each pod when the one before is ready";
        statuses.until("it is told", |status| status.progressing().contains(why)).await;
        told(&stage, "MadeOneByOne", why).await;
        for pods in 1..=4 {
            let ready = |now: &crate::common::pods::View| now.count_all(Pod::is_scheduled) == pods;
            stage.pods.until("one more", ready).await;
            stage.pods.now(|now| assert_eq!(now.count_all(|_| true), pods, "{now}"));
            stage.let_ready(|_| true).await;
        }
        statuses.until("all ready", |status| status.ready() == "True AllReplicasReady: 4/4 pods ready").await;
    }
}
