//! Both gates on one pod: whoever comes last to a pod, and whoever lets it go first.

use super::{ADMISSION, KUEUE, TOPOLOGY, create_queued_sets, drain, explain, is_in_queue, resume, set_quota, stage};
use crate::common::prelude::*;

/// Segments one after another, under both gates; the API server asks webhooks in the order of the names of their configurations.
async fn segments_come_up(stage: &Stage, order: [&str; 3]) {
    let group = Group::three_segments();
    stage.add_node("all", 40).await;
    set_quota(stage, 0);
    let _rolegate = stage.launch().start().await;
    stage.create_group(&group).await;
    create_queued_sets(stage, &group).await;
    stage.pods.until("all pods", |now| now.count_all(|_| true) == 18).await;
    stage.pods.until("the first segment is Kueue's alone", |now| now.count_all(Pod::is_released) == 6).await;
    stage.pods.now(|now| assert_eq!(now.count_all(is_in_queue), 18, "{now}"));
    for event in stage.pods.events().iter().filter(|event| event.step == Step::Born) {
        assert_eq!(event.pod.gates, order, "{}", event.pod.name);
    }
    let both = explain(stage, "llm-prefill-5").await;
    for gate in [ADMISSION, TOPOLOGY] {
        assert!(both.contains(&format!("{gate} (of Kueue)")), "{both}");
    }
    let why = "segment 1 has 0/4 prefill and 0/2 decode ready; 2 decode and 4 prefill wait for Kueue";
    assert!(both.contains(&format!("{GATE} (rolegate, this program)")) && both.contains(why), "{both}");
    let theirs = explain(stage, "llm-prefill-0").await;
    assert!(theirs.contains("gated by others") && theirs.contains("kubectl get workloads.kueue.x-k8s.io"), "{theirs}");

    set_quota(stage, 18);
    for segment in 1..=3 {
        let wanted = segment * 6;
        stage.pods.until("the next segment has nodes", |now| now.count_all(Pod::is_scheduled) == wanted).await;
        stage.pods.now(|now| assert_eq!(now.count_all(Pod::is_released), wanted, "{now}"));
        stage.let_ready(Pod::is_scheduled).await;
    }
    stage.pods.until("all are ready", |now| now.count_all(Pod::is_ready) == 18).await;
    assert_eq!(invariants::all_born_held(&stage.pods), 18);
}

#[tokio::test]
#[ignore = "make neighbours builds kueue"]
async fn two_gates_on_one_pod_in_either_order_of_the_webhooks() {
    // Kueue's configuration is kueue-mutating-webhook-configuration.
    segments_come_up(&stage("a-gates", 0).await, [GATE, ADMISSION, TOPOLOGY]).await;
    segments_come_up(&stage("z-gates", 0).await, [ADMISSION, TOPOLOGY, GATE]).await;
    KUEUE
        .record("both gates on one pod of a queued StatefulSet, webhooks in either order", "works: each lifts its own");
}

#[tokio::test]
#[ignore = "make neighbours builds kueue"]
async fn what_was_let_go_once_comes_back_whoever_has_taken_it_down() {
    let (stage, _rolegate) = stage("kueue-back", 18).await.with_room(40).await.serve().await;
    let group = Group::new("llm").role("prefill", 12, 4).role("decode", 6, 2);
    stage.create_group(&group).await;
    create_queued_sets(&stage, &group).await;
    stage.pods.until("all are ready", |now| now.count_all(Pod::is_ready) == 18).await;

    stage.replace_pod("llm-prefill-2", Pod::is_ready).await;
    KUEUE.record("a pod of a queued StatefulSet that is deleted", "recreated, and released by both at once");

    let before = stage.pods.uids();
    drain(&stage);
    let waits = |pod: &Pod| is_in_queue(pod) && pod.is_released() && before.get(&pod.name) != Some(&pod.uid);
    stage.pods.until("all are taken down, and made again", |now| now.count_all(waits) == 18).await;
    resume(&stage);
    stage.pods.until("all are ready again", |now| now.count_all(Pod::is_ready) == 18).await;
    let result = "its pods are recreated and wait for Kueue alone, without an order of segments";
    KUEUE.record("eviction of a running group (queue drained, opened again)", result);

    let before = stage.pods.uids();
    let patch = json!({ "spec": { "template": { "metadata": { "annotations": { "version": "2" } } } } });
    for role in ["llm-prefill", "llm-decode"] {
        stage.patch::<StatefulSet>(role, &patch).await;
    }
    let updated = |pod: &Pod| pod.is_ready() && before.get(&pod.name) != Some(&pod.uid);
    stage.pods.until("all are updated", |now| now.count_all(updated) == 18).await;
    KUEUE.record("an update of a queued StatefulSet's image or annotations", "works");

    for role in ["llm-prefill", "llm-decode"] {
        stage.delete::<StatefulSet>(role).await;
    }
    stage.pods.until("none is left", |now| now.count_all(|_| true) == 0).await;
    super::until_workloads(&stage, 0).await;
}

/// Kueue counts pods that rolegate holds among those that are not ready in time.
#[tokio::test]
#[ignore = "make neighbours builds kueue"]
async fn a_set_whose_segments_take_longer_than_kueue_waits_is_evicted() {
    let settings = json!({ "waitForPodsReady": {
        "timeout": "8s", "requeuingStrategy": { "backoffBaseSeconds": 600, "backoffMaxSeconds": 600 },
    } });
    let plane = super::start(&settings).await;
    let stage = Stage::on(plane, "kueue-late").await;
    super::queue(&stage, 18, &json!({}));
    stage.add_node("all", 40).await;
    let _rolegate = stage.launch().start().await;
    let group = Group::three_segments();
    stage.create_group(&group).await;
    create_queued_sets(&stage, &group).await;
    stage.pods.until("the first segment has nodes", |now| now.count_all(Pod::is_scheduled) == 6).await;
    stage.let_ready(Pod::is_scheduled).await;
    stage.pods.until("the second has nodes", |now| now.count_all(Pod::is_scheduled) == 12).await;
    // What was ready goes as well.
    stage.pods.until("all are taken down", |now| now.count_all(Pod::is_scheduled) == 0).await;
    stage.pods.until("and made again", |now| now.count_all(is_in_queue) == 18).await;
    KUEUE.record(
        "`waitForPodsReady`, segments that take longer than its timeout",
        "does not work: Kueue counts held pods as not ready and evicts the set; set the timeout for all segments together",
    );
}
