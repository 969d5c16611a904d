//! Segments that go only when the cluster has room for all of their pods.

use crate::common::prelude::*;

#[tokio::test]
async fn a_segment_without_room_for_all_of_it_takes_no_place() {
    let stage = Stage::new("whole").await;
    stage.add_node("small", 8).await;
    let _rolegate = stage.launch().start().await;
    let group = Group::new("llm").role("prefill", 6, 2).role("decode", 3, 1);
    let segments = json!({ "segmentSize": { "prefill": 2, "decode": 1 }, "whole": true });
    let coordination = json!([{ "name": "pd", "strategy": { "segmentPlacement": segments } }]);
    let statuses = stage.deploy_with(&group, &coordination).await;
    // Nodes of others are in the same cluster.
    let waits = |status: &Status| {
        let mut summary = status.0["summary"].clone();
        let why = summary.as_object_mut().and_then(|summary| summary.remove("message")).unwrap_or_default();
        summary == json!({ "segments": "2/3", "ready": "6/9", "held": 3, "reason": "NoRoom" })
            && why.as_str().unwrap_or_default().starts_with("segment 3 does not fit: there is room for 2 of 3 pods, ")
    };
    statuses.until("two segments run and the third waits", waits).await;
    stage.pods.now(|now| {
        assert_eq!(now.count_all(Pod::is_scheduled), 6, "no pod of the third segment takes a place: {now}");
        assert_eq!(now.count_all(Pod::is_held), 3, "{now}");
    });

    stage.add_node("more", 1).await;
    statuses.until("all ready", |status| status.ready() == "True AllReplicasReady: 9/9 pods ready").await;
}
