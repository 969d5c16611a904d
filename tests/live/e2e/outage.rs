//! The webhook is away, or behind: whatever is made meanwhile is refused or held, never let through.

use std::time::Duration;

use k8s_openapi::api::core::v1::Event as ApiEvent;
use kube::api::ListParams;
use serde_json::json;

use crate::common::pods::{Event, Pod, Step};
use crate::common::proxy::Proxy;
use crate::common::stage::CORE;
use crate::common::{Group, PATIENT, Stage, eventually, invariants};

#[tokio::test]
async fn while_the_webhook_is_down_pods_are_refused_and_none_slips_in() {
    let stage = Stage::new("webhook-down").await;
    stage.add_node("all", 46).await;
    let launch = stage.launch();
    let rolegate = launch.start().await;
    let group = Group::new("llm").role("prefill", 20, 10).role("decode", 10, 5);
    let statuses = stage.statuses(&group);
    stage.deploy(&group).await;
    statuses.until("deployed", |status| status.ready().starts_with("True")).await;
    rolegate.kill().await;

    let refused = stage.post(CORE, "pods", &group.pod("prefill", "by-hand", &stage.namespace)).await;
    assert_eq!(refused.code, 500, "{refused:?}");
    let message = refused.body["message"].as_str().unwrap();
    assert!(message.contains(r#"failed calling webhook "pods.rolegate.dev""#), "{message}");
    // Whoever names no group is not our business, and can go on without us.
    let mut other = group.pod("prefill", "of-others", &stage.namespace);
    other["metadata"]["labels"] = json!({ "app": "other" });
    assert_eq!(stage.post(CORE, "pods", &other).await.code, 201);

    // The group cannot be written either, so the workload is what is scaled.
    let larger = group.clone().role("prefill", 30, 10).role("decode", 15, 5);
    stage.scale_set(&group, "prefill", 30).await;
    eventually(PATIENT, "the controller's pods are refused", async || {
        let events = stage.api::<ApiEvent>().list(&ListParams::default()).await.unwrap().items;
        let of_set = |event: &&ApiEvent| event.involved_object.name.as_deref() == Some("llm-prefill");
        let reasons: Vec<_> = events.iter().filter(of_set).filter_map(|event| event.reason.as_deref()).collect();
        if reasons.contains(&"FailedCreate") { Ok(()) } else { Err(format!("{reasons:?}")) }
    })
    .await;
    stage.pods.now(|now| assert_eq!(now.count("prefill", |_| true), 20, "{now}"));

    let _rolegate = launch.start().await;
    stage.scale(&larger).await;
    statuses.until("grown", |status| status.ready() == "True AllReplicasReady: 45/45 pods ready").await;
    assert_eq!(stage.pods.births().iter().filter(|pod| !pod.role.is_empty() && !pod.is_held()).count(), 0);
    invariants::released_in_order(&stage.pods, &larger);
    invariants::released_counts_never_fell(&statuses, &larger);
}

#[tokio::test]
async fn a_scale_up_by_500_with_a_cache_that_lags_lets_no_pod_slip_in() {
    let stage = Stage::new("lagging").await;
    stage.add_node("all", 600).await;
    let proxy = Proxy::before(stage.plane.server.trim_start_matches("https://").parse().unwrap()).await;
    let launch = stage.launch().through(&proxy);
    let rolegate = launch.start().await;
    let group = Group::new("llm").role("prefill", 20, 10);
    let statuses = stage.statuses(&group);
    stage.deploy(&group).await;
    statuses.until("deployed", |status| status.ready() == "True AllReplicasReady: 20/20 pods ready").await;

    // Groups are judged by what is read live, and that would be late: it is not the subject.
    launch.stop_judging().await;
    // For these seconds rolegate believes that 20 pods are all there is to be.
    let lag = Duration::from_secs(4);
    proxy.delay(lag);
    let larger = group.clone().role("prefill", 520, 100);
    let segments = json!({ "segmentSize": { "prefill": 100 } });
    let coordination = json!([{ "name": "segments", "strategy": { "segmentPlacement": segments } }]);
    stage.patch_group(&group, json!({ "spec": { "coordination": coordination } })).await;
    stage.scale(&larger).await;
    let scaled = std::time::Instant::now();
    stage.pods.until("500 more", |now| now.count("prefill", |_| true) == 520).await;
    // The point of the test: they came while it could not know.
    let events = stage.pods.events();
    let blind = |event: &&Event| event.step == Step::Born && event.pod.index >= 20 && event.at < scaled + lag;
    let blind = events.iter().filter(blind).count();
    assert!(blind >= 50, "only {blind} came while the cache lagged");
    assert_eq!(invariants::all_born_held(&stage.pods), 520);
    assert_eq!(rolegate.metric(r#"rolegate_held_pods{reason="GroupMissing"}"#).await, 0);

    proxy.delay(Duration::ZERO);
    statuses
        .until_within(2 * PATIENT, "grown", |status| status.ready() == "True AllReplicasReady: 520/520 pods ready")
        .await;
    invariants::released_counts_never_fell(&statuses, &larger);
    invariants::nobody_was_held_again(&stage.pods);
}

#[tokio::test]
async fn a_run_survives_a_network_that_breaks() {
    let stage = Stage::new("broken-network").await;
    stage.add_node("all", 60).await;
    let proxy = Proxy::before(stage.plane.server.trim_start_matches("https://").parse().unwrap()).await;
    let _rolegate = stage.launch().through(&proxy).start().await;
    let group = Group::new("llm").role("prefill", 40, 10).role("decode", 20, 5).held_back();
    let statuses = stage.statuses(&group);
    stage.deploy(&group).await;
    for segment in 1..=4 {
        stage.pods.until("the next released", |now| now.count_all(Pod::is_released) == 15 * segment).await;
        // Every watch breaks, and every request that is on its way.
        proxy.cut();
        stage.let_ready(Pod::is_released).await;
        proxy.cut();
    }
    statuses.until("all ready", |status| status.ready() == "True AllReplicasReady: 60/60 pods ready").await;
    assert_eq!(invariants::all_born_held(&stage.pods), 60);
    invariants::released_in_order(&stage.pods, &group);
    invariants::committed_before_released(&stage.pods, &statuses);
    invariants::released_counts_never_fell(&statuses, &group);
}
