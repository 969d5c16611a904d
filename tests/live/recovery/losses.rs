//! Replicas are lost in every way that there is.

use super::scene::{Scene, group, launch, ready, recovery, recreate, two_segments};
use crate::common::prelude::*;

#[tokio::test]
async fn a_segment_that_loses_a_pod_is_made_anew_as_a_whole_and_the_others_stay() {
    let (rolegate, scene) = two_segments("recovery-deleted", &recreate()).await;
    let status = scene.loses("llm-decode-0", 0).await;
    let entry = recovery(&status, 0).unwrap();
    assert_eq!((&entry["reason"], &entry["lost"]["pod"]), (&json!("PodDeleted"), &json!("llm-decode-0")), "{entry}");
    assert_eq!(entry["lost"]["node"], json!("recovery-deleted-all"), "{entry}");
    assert_eq!(status.0["recoveries"].as_array().unwrap().len(), 1);
    rolegate.until_metric(r#"rolegate_recoveries{state="Complete"}"#, 1).await;
    assert_eq!(rolegate.metric(r#"rolegate_recovery_deletions_total{why="recovery",outcome="deleted"}"#).await, 2);
    let broke = "segment 1 broke: pod llm-decode-0 of node recovery-deleted-all was deleted; it is made anew";
    scene.stage.until_event("BatchBroken", &[broke]).await;
    scene.stage.until_event("BatchRecovered", &["segment 1 is complete again"]).await;
}

/// Two segments, of which the first is on node `a`, for there was no other yet.
async fn on_two_nodes(namespace: &str) -> (Rolegate, Scene) {
    let stage = Stage::new(namespace).await;
    stage.add_node("a", 3).await;
    let rolegate = launch(&stage).start().await;
    let Scene { stage, statuses, .. } = Scene::of(stage, group(2, 1), &recreate()).await;
    stage.add_node("b", 6).await;
    let grown = group(4, 2);
    stage.scale(&grown).await;
    (rolegate, Scene::complete(stage, grown, statuses).await)
}

#[tokio::test]
async fn segments_on_a_node_that_is_gone_come_back_elsewhere() {
    let (_rolegate, scene) = on_two_nodes("recovery-node-gone").await;
    let node = "recovery-node-gone-a";
    scene.stage.nodes().delete(node, &DeleteParams::default()).await.unwrap();
    // The pod garbage collector gives a node the time to come back.
    let gone = |now: &View| !now.all().any(|pod| pod.node.as_deref() == Some(node));
    scene.stage.pods.until_within(PATIENT * 2, "its pods are collected", gone).await;
    let status = scene.comes_back(&[0]).await;
    assert_eq!(recovery(&status, 0).unwrap()["reason"], json!("NodeGone"));
}

#[tokio::test]
async fn a_replica_that_is_not_ready_for_too_long_is_lost_and_no_sooner() {
    let unready_for = json!({ "policy": "Recreate", "unreadyFor": "3s" });
    let (_rolegate, scene) = two_segments("recovery-unready", &unready_for).await;
    ready(&scene, &["llm-decode-1"], false).await;
    ready(&scene, &["llm-decode-1"], true).await;
    stays(Duration::from_secs(4), "a moment is not too long", async || scene.stage.pods.uids(), scene.first.clone())
        .await;
    ready(&scene, &["llm-decode-1"], false).await;
    let status = scene.comes_back(&[1]).await;
    assert_eq!(recovery(&status, 1).unwrap()["reason"], json!("NotReady"));
}

mod tier2 {
    use super::*;

    #[tokio::test]
    async fn what_a_container_said_last_is_kept() {
        let (_rolegate, scene) = two_segments("recovery-failed", &recreate()).await;
        let ended = json!({ "exitCode": 137, "reason": "OOMKilled", "message": "lost the peer", "startedAt": null });
        let container = json!({
            "name": "main", "image": "x", "imageID": "", "ready": false, "restartCount": 0, "state": { "terminated": ended },
        });
        let failed = json!({ "status": { "phase": "Failed", "containerStatuses": [container] } });
        scene.stage.patch_status::<ApiPod>("llm-prefill-3", &failed).await;
        let status = scene.comes_back(&[1]).await;
        let entry = recovery(&status, 1).unwrap();
        let lost = &entry["lost"];
        assert_eq!((&entry["reason"], &lost["exitCode"]), (&json!("PodFailed"), &json!(137)), "{entry}");
        assert_eq!((&lost["reason"], &lost["message"]), (&json!("OOMKilled"), &json!("lost the peer")), "{entry}");
    }

    #[tokio::test]
    async fn the_segments_of_a_node_that_is_drained_come_back_elsewhere() {
        let (_rolegate, scene) = on_two_nodes("recovery-drained").await;
        scene.stage.plane.must(&["drain", "recovery-drained-a", "--timeout=60s"], "");
        let status = scene.comes_back(&[0]).await;
        assert_eq!(recovery(&status, 0).unwrap()["reason"], json!("PodEvicted"));
    }

    #[tokio::test]
    async fn two_segments_are_made_anew_at_once_also_the_last_which_is_partial() {
        let stage = Stage::new("recovery-two").await.with_room(12).await;
        let _rolegate = launch(&stage).flag("max-recoveries", "2").start().await;
        // The third segment has one prefill and one decode.
        let at_once = json!({ "policy": "Recreate", "maxConcurrent": 2 });
        let scene = Scene::of(stage, group(5, 3), &at_once).await;
        scene.delete("llm-decode-0").await;
        scene.delete("llm-prefill-4").await;
        scene.comes_back(&[0, 2]).await;
        scene.stage.pods.now(|now| assert_eq!(now.count_all(Pod::is_ready), 8, "{now}"));
    }
}
