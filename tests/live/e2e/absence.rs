//! Pods that do not appear: whoever waits for them is told why, and no longer when it is over.

use k8s_openapi::api::core::v1::ResourceQuota;

use crate::common::prelude::*;

fn group() -> Group {
    Group::new("llm").role("prefill", 4, 2).role("decode", 4, 2)
}

async fn explained(stage: &Stage) -> String {
    stage.said(&["explain", "group", "llm"]).await
}

fn reason(status: &Status) -> &Value {
    &status.0["summary"]["reason"]
}

#[tokio::test]
async fn held_pods_that_use_up_the_quota_of_those_they_wait_for_are_called_a_deadlock() {
    let (stage, rolegate) = Stage::new("quota").await.with_room(8).await.serve().await;
    stage.quota(4).await;
    let group = group();
    let statuses = stage.create_watched(&group).await;
    // All pods of prefill are made, two of them for a later segment, and none of decode.
    stage.create_set(&group, "prefill").await;
    stage.pods.until("prefill", |now| now.count_all(|_| true) == 4).await;
    stage.create_set(&group, "decode").await;

    let status = statuses.until("a deadlock", |status| reason(status) == "QuotaDeadlock").await;
    let why = r#"role "decode" lacks 2 of 2 replicas: pods "llm-decode-"#;
    let progressing = status.progressing();
    assert!(progressing.starts_with(&format!("True Progressing: {why}")), "{progressing}");
    assert!(progressing.ends_with("exceeded quota: small, requested: pods=1, used: pods=4, limited: pods=4"));
    stage.until_event("QuotaDeadlock", &[why]).await;
    stage.until_event("QuotaExceeded", &[why]).await;
    rolegate.until_metric(r#"rolegate_held_pods{reason="QuotaDeadlock"}"#, 2).await;
    let shown = explained(&stage).await;
    for text in ["QuotaDeadlock", why, "exceeded quota: small", "raise the quota"] {
        assert!(shown.contains(text), "{text:?} is not in\n{shown}");
    }

    stage.quota(8).await;
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
    stage.until_event("FewerReplicas", &[fewer]).await;
    stage.until_event("WorkloadMissing", &[none]).await;
    // Each is taken back by itself.
    stage.scale_set(&group, "prefill", 4).await;
    let only_one = |status: &Status| status.progressing() == format!("True Progressing: {none}");
    let status = statuses.until("one is left", only_one).await;
    assert!(reason(&status) == "PreviousSegmentNotReady", "{status}");
    stage.create_set(&group, "decode").await;
    let done = statuses.until("all ready", |status| status.ready().ends_with("8/8 pods ready")).await;
    assert_eq!(done.progressing(), "True Complete");
}

mod tier2 {
    use super::*;

    #[tokio::test]
    async fn a_deployment_says_itself_that_the_quota_is_used_up_or_that_it_is_paused() {
        let (stage, _rolegate) = Stage::new("deployment-says").await.with_room(8).await.serve().await;
        stage.quota(1).await;
        let group = Group::new("llm").role("router", 2, 2);
        let statuses = stage.create_watched(&group).await;
        let mut deployment = group.deployment("router", &stage.namespace, &json!({ "paused": true }));
        deployment["metadata"]["name"] = json!("any-name");
        stage.create(deployment).await;
        let says = |text: &'static str| move |status: &Status| status.progressing().contains(text);
        let paused = "lacks 2 of 2 replicas: Deployment deployment-says/any-name is paused";
        statuses.until("paused", says(paused)).await;
        stage.until_event("WorkloadPaused", &[paused]).await;
        stage.patch::<Deployment>("any-name", &json!({ "spec": { "paused": false } })).await;
        statuses.until("the quota", says("exceeded quota: small")).await;
        stage.until_event("QuotaExceeded", &["lacks 1 of 2 replicas"]).await;
        stage.delete::<ResourceQuota>("small").await;
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
        stage.until_event("MadeOneByOne", &[why]).await;
        for pods in 1..=4 {
            stage.pods.until("one more", |now| now.count_all(Pod::is_scheduled) == pods).await;
            stage.pods.now(|now| assert_eq!(now.count_all(|_| true), pods, "{now}"));
            stage.let_ready(|_| true).await;
        }
        statuses.until("all ready", |status| status.ready() == "True AllReplicasReady: 4/4 pods ready").await;
    }
}
