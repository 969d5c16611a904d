//! The API server takes requests and never answers them. Whatever is lost so is tried again, and no group stands still for
//! longer than a write may take.

use std::time::{Duration, Instant};

use kube::api::DeleteParams;
use serde_json::json;

use crate::common::pods::Pod;
use crate::common::proxy::Proxy;
use crate::common::rolegate::{Launch, Rolegate};
use crate::common::stage::CORE;
use crate::common::{Group, PATIENT, Stage, eventually, invariants};

type ApiPod = k8s_openapi::api::core::v1::Pod;

/// A rolegate behind a proxy, which waits a second for the answer to a write, and leads however long there is none.
async fn behind_proxy(stage: &Stage) -> (Proxy, Launch) {
    let proxy = Proxy::before(stage.plane.server.trim_start_matches("https://").parse().unwrap()).await;
    let launch = stage.launch().through(&proxy).flag("write-timeout", "1s").flag("lease-duration", "2m");
    (proxy, launch)
}

/// For so long a group may stand still: the time of a write, and a pause before it is tried again.
const GOES_ON: Duration = Duration::from_secs(10);

async fn logged(rolegate: &Rolegate, text: &str) {
    eventually(PATIENT, text, async || if rolegate.log().contains(text) { Ok(()) } else { Err("not logged") }).await;
}

async fn released(stage: &Stage, pods: usize) {
    let all = |now: &crate::common::pods::View| now.count_all(Pod::is_released) == pods;
    stage.pods.until_within(GOES_ON, "released", all).await;
}

#[tokio::test]
async fn writes_that_are_never_answered_are_tried_again() {
    let stage = Stage::new("silence").await;
    stage.add_node("all", 6).await;
    let (proxy, launch) = behind_proxy(&stage).await;
    let rolegate = launch.start().await;
    let group = Group::new("llm").role("prefill", 6, 2).held_back();
    let statuses = stage.statuses(&group);
    stage.deploy(&group).await;
    stage.pods.until("the first segment", |now| now.count_all(Pod::is_released) == 2).await;

    // The commit of the second segment gets lost.
    proxy.silence();
    stage.let_ready(Pod::is_released).await;
    rolegate.until_metric(r#"rolegate_status_writes_total{outcome="failed"}"#, 1).await;
    proxy.speak();
    released(&stage, 4).await;
    statuses.until("committed", |status| status.released("prefill") == 4).await;

    // The release of a pod that is made again, for which nothing has to be committed.
    proxy.silence();
    stage.api::<ApiPod>().delete("llm-prefill-0", &DeleteParams::default()).await.unwrap();
    rolegate.until_metric(r#"rolegate_releases_total{outcome="failed"}"#, 1).await;
    stage.pods.now(|now| assert!(now.named("llm-prefill-0").is_some_and(Pod::is_held), "{now}"));
    proxy.speak();
    released(&stage, 4).await;

    // Events wait in a queue, one behind the other.
    eventually(PATIENT, "Events", async || match rolegate.metric(r#"rolegate_events_total{outcome="failed"}"#).await {
        0 => Err("no Event was lost"),
        _ => Ok(()),
    })
    .await;
    stage.let_ready(Pod::is_released).await;
    released(&stage, 6).await;
    stage.let_ready(Pod::is_released).await;
    statuses.until("all ready", |status| status.ready() == "True AllReplicasReady: 6/6 pods ready").await;
    invariants::released_in_order(&stage.pods, &group);
    invariants::committed_before_released(&stage.pods, &statuses);
    invariants::released_counts_never_fell(&statuses, &group);
}

#[tokio::test]
async fn a_look_at_a_group_that_is_gone_is_tried_again() {
    let stage = Stage::new("silent-look").await;
    stage.add_node("all", 6).await;
    let (proxy, launch) = behind_proxy(&stage).await;
    let rolegate = launch.flag("vanished-grace", "1s").start().await;
    let group = Group::new("llm").role("prefill", 6, 2).held_back();
    stage.deploy(&group).await;
    stage
        .pods
        .until("the first segment", |now| now.count_all(Pod::is_released) == 2 && now.count_all(Pod::is_held) == 4)
        .await;
    proxy.silence();
    stage.groups().delete("llm", &DeleteParams::default()).await.unwrap();
    logged(&rolegate, "failed, will be tried again: look at whether the group is gone").await;
    stage.pods.now(|now| assert_eq!(now.count_all(Pod::is_held), 4, "{now}"));
    proxy.speak();
    released(&stage, 6).await;
}

#[tokio::test]
async fn a_pod_is_answered_in_time_however_slow_each_read_is() {
    let stage = Stage::new("slow-reads").await;
    let (proxy, launch) = behind_proxy(&stage).await;
    let _rolegate = launch.start().await;
    // It names one object of each kind that is looked up, and none of them is there.
    let mut pod = Group::new("nobody").pod("prefill", "slow", &stage.namespace);
    json_patch::merge(
        &mut pod,
        &json!({ "metadata": {
            "annotations": { "pod-group-name": "nobody" },
            "labels": {
                "app.kubernetes.io/part-of": "set",
                "grove.io/podclique": "set-0-leader",
                "grove.io/podcliqueset-replica-index": "0",
            },
            "ownerReferences": [
                { "apiVersion": "apps/v1", "kind": "StatefulSet", "name": "nobody", "uid": "nobody", "controller": true },
            ],
        } }),
    );
    // Each is answered late, but none so late that it alone would be given up.
    proxy.delay(Duration::from_millis(700));
    let asked = Instant::now();
    let answer = stage.post(CORE, "pods", &pod).await;
    let time = asked.elapsed();
    let message = answer.body["message"].as_str().unwrap_or_default();
    assert!(answer.code == 500 && message.contains("no answer in time"), "after {time:?}: {answer:?}");
    assert!(time < Duration::from_secs(3), "{time:?}");
}
