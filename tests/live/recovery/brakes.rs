//! One cause is not taken for many: recoveries are bounded, and pause while much looks broken.

use kube::api::Preconditions;

use super::scene::{Scene, group, launch, object, ready, recreate, two_segments};
use crate::common::prelude::*;

/// Three segments, of which a pod that is not ready for so long is lost.
async fn three_segments(namespace: &str) -> (Rolegate, Scene) {
    let stage = Stage::new(namespace).await.with_room(12).await;
    let rolegate = launch(&stage).start().await;
    (rolegate, Scene::of(stage, group(6, 3), &json!({ "policy": "Recreate", "unreadyFor": "3s" })).await)
}

async fn nothing_is_deleted(scene: &Scene) {
    stays(Duration::from_secs(6), "nothing is deleted", async || scene.stage.pods.uids(), scene.first.clone()).await;
}

const DECODES: [&str; 3] = ["llm-decode-0", "llm-decode-1", "llm-decode-2"];

fn is_paused(status: &Status) -> bool {
    status.condition("RecoveryPaused").starts_with("True ManyBatchesBroken: 3 of 3 batches look broken at once")
}

#[tokio::test]
async fn while_every_segment_looks_broken_nothing_is_deleted_and_they_come_back_by_themselves() {
    let (rolegate, scene) = three_segments("recovery-one-cause").await;
    ready(&scene, &DECODES, false).await;
    scene.statuses.until("it is paused", is_paused).await;
    scene.stage.until_event("RecoveryPaused", &["3 of 3 batches look broken at once"]).await;
    rolegate.until_metric(r#"rolegate_recoveries{state="Paused"}"#, 3).await;
    nothing_is_deleted(&scene).await;
    ready(&scene, &DECODES, true).await;
    scene.statuses.until("and no longer", |status| status.condition("RecoveryPaused").is_empty()).await;
    rolegate.until_metric(r#"rolegate_recoveries{state="Paused"}"#, 0).await;
    assert_eq!(scene.stage.pods.uids(), scene.first);
}

#[tokio::test]
async fn pods_of_a_node_that_does_not_answer_are_not_lost_until_they_are_deleted() {
    let stage = Stage::new("recovery-silent").await;
    stage.add_node("a", 3).await;
    let _rolegate = launch(&stage).start().await;
    // On a busy machine neither the silence of the node nor what is made anew may come in time.
    let recovery = |unready_for: &str| json!({ "policy": "Recreate", "unreadyFor": unready_for });
    let Scene { stage, statuses, .. } = Scene::of(stage, group(2, 1), &recovery("10m")).await;
    stage.add_node("b", 9).await;
    let grown = group(4, 2);
    stage.scale(&grown).await;
    let scene = Scene::complete(stage, grown, statuses).await;
    let unready_for = async |time: &str| {
        let edited = object(&scene.group, &recovery(time));
        scene.stage.recoordinate(&scene.group, &edited["spec"]["coordination"]).await;
    };
    let on_node = ["llm-prefill-0", "llm-prefill-1", "llm-decode-0"];
    ready(&scene, &on_node, false).await;
    // Nothing answers for it any more, and it says nothing.
    let nodes = scene.stage.nodes();
    let left = json!({ "metadata": { "annotations": { "kwok.x-k8s.io/node": null } } });
    scene.stage.patch_node("recovery-silent-a", &left).await;
    let unknown = json!({ "type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown" });
    let silent = Patch::Strategic(json!({ "status": { "conditions": [unknown] } }));
    nodes.patch_status("recovery-silent-a", &PatchParams::default(), &silent).await.unwrap();
    unready_for("10s").await;
    let told = "segment 1 is not made anew: node recovery-silent-a of pod";
    scene.stage.until_said(&["explain", "group", "llm"], told).await;
    nothing_is_deleted(&scene).await;
    unready_for("10m").await;
    // The fourth generation: the group was scaled once.
    let is_patient = |status: &Status| status.0["observedGeneration"] == 4;
    scene.statuses.until("the edit is seen", is_patient).await;
    // The first that goes has the others deleted, and not one that has been made since is to go.
    let first = |name: &str| Preconditions { uid: scene.first.get(name).cloned(), ..Preconditions::default() };
    let delete = async |name: &str, params: DeleteParams| {
        let params = DeleteParams { preconditions: Some(first(name)), ..params };
        _ = scene.stage.api::<ApiPod>().delete(name, &params).await;
    };
    for name in on_node {
        delete(name, DeleteParams::default()).await;
    }
    nodes.delete("recovery-silent-a", &DeleteParams::default()).await.unwrap();
    for name in on_node {
        delete(name, DeleteParams::default().grace_period(0)).await;
    }
    scene.comes_back(&[0]).await;
}

mod tier2 {
    use super::*;

    #[tokio::test]
    async fn a_person_has_the_segments_made_anew_all_the_same_one_after_the_other() {
        let (_rolegate, scene) = three_segments("recovery-resumed").await;
        ready(&scene, &DECODES, false).await;
        scene.statuses.until("it is paused", is_paused).await;
        let said = scene.stage.said(&["resume", "llm"]).await;
        assert!(said.contains("/llm goes on (RecoveryPaused)"), "{said}");
        let status = scene.comes_back(&[0, 1, 2]).await;
        assert!(status.condition("RecoveryPaused").is_empty(), "{status}");
        let two = |status: &Status| {
            let under_way = |entry: &&Value| entry["phase"] == "Recreating" || entry["phase"] == "Releasing";
            status.0["recoveries"].as_array().into_iter().flatten().filter(under_way).count() > 1
        };
        assert!(!scene.statuses.all().iter().any(two), "one at a time");
        assert_eq!(scene.stage.said(&["resume", "llm"]).await, "no group waits\n");
    }

    #[tokio::test]
    async fn two_segments_that_lose_a_pod_are_made_anew_one_after_the_other() {
        let (_rolegate, scene) = two_segments("recovery-in-turn", &recreate()).await;
        scene.delete("llm-decode-0").await;
        scene.delete("llm-decode-1").await;
        let waits = |status: &Status| status.0["summary"]["message"].to_string().contains("`maxConcurrent: 1`");
        scene.statuses.until("the second waits", waits).await;
        scene.comes_back(&[0, 1]).await;
    }
}
