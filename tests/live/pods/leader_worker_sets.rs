//! Pods that the real controllers of LeaderWorkerSets make, with their webhook before and after ours.

use crate::common::prelude::*;
use crate::pods::support::{BATCH, HOST, INDEX, stage, stored, verdicts};

const GROUP_INDEX: &str = "leaderworkerset.sigs.k8s.io/group-index";
/// `MutatingWebhookConfiguration` of LWS; the API server asks in order of names.
const WEBHOOK_OF_LWS: &str = "mutating-webhook-configuration";
const REPLICAS: usize = 3;
const SIZE: usize = 3;

/// A LeaderWorkerSet of three groups of three, each group a segment of its own.
async fn deploy(stage: &Stage) {
    let group = Group::new("llm").role("main", 3, 1).held_back();
    stage.create(group.coordination_of("LeaderWorkerSet", &near(HOST, "PreferSegmentAffinity"))).await;
    stage.create(group.leader_worker_set("main", SIZE, &stage.namespace, &json!({}))).await;
}

async fn groups_come_up_one_after_another(stage: &Stage) {
    stage.add_node("all", 9).await;
    deploy(stage).await;
    stage.pods.until("all pods", |now| now.count_all(|_| true) == REPLICAS * SIZE).await;
    for group in 0..REPLICAS {
        let of_group = |pod: &Pod| pod.labels[GROUP_INDEX] == group.to_string();
        let released = |pod: &Pod| of_group(pod) && pod.is_scheduled();
        stage.pods.until("the next group has nodes", |now| now.count_all(released) == SIZE).await;
        stage.pods.now(|now| assert_eq!(now.count_all(Pod::is_released), (group + 1) * SIZE, "{now}"));
        stage.let_ready(of_group).await;
    }
    stage.pods.until("all ready", |now| now.count_all(Pod::is_ready) == REPLICAS * SIZE).await;

    assert_eq!(invariants::all_born_held(&stage.pods), REPLICAS * SIZE);
    let mut places = BTreeSet::new();
    for pod in stage.pods.births() {
        assert_eq!(pod.gates, [GATE], "{pod:?}");
        let group = &pod.labels[GROUP_INDEX];
        assert_eq!((&pod.labels[INDEX], &pod.labels[BATCH]), (group, &format!("segments-{group}")), "{pod:?}");
        assert_eq!(pod.labels["rolebasedgroup.workloads.x-k8s.io/role-subgroup-size"], "1");
        places.insert((group.clone(), pod.labels["leaderworkerset.sigs.k8s.io/worker-index"].clone()));
    }
    assert_eq!(places.len(), REPLICAS * SIZE);
    for pod in stored(stage).await {
        let affinity = serde_json::to_value(pod.spec.unwrap().affinity).unwrap();
        let terms = &affinity["podAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"];
        assert_eq!(terms.as_array().map(Vec::len), Some(1), "{affinity}");
    }
}

#[tokio::test]
async fn asked_before_the_webhook_of_leader_worker_sets() {
    let stage = stage("before-lws").await;
    assert!(*stage.namespace < *WEBHOOK_OF_LWS);
    let rolegate = stage.launch().start().await;
    let before = verdicts(&rolegate).await;
    groups_come_up_one_after_another(&stage).await;
    // LWS changes what we have seen: each pod comes by once more, and is as it should be.
    let [patched, unchanged] = verdicts(&rolegate).await;
    assert_eq!([patched - before[0], unchanged - before[1]], [9, 9]);
}

#[tokio::test]
async fn asked_after_the_webhook_of_leader_worker_sets() {
    let stage = stage("zz-after-lws").await;
    assert!(*stage.namespace > *WEBHOOK_OF_LWS);
    let _rolegate = stage.launch().start().await;
    groups_come_up_one_after_another(&stage).await;
}
