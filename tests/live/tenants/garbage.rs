//! A status that somebody wrote by hand: it is as good as lost, and written anew.

use crate::common::prelude::*;
use crate::tenants::stage;

#[tokio::test]
async fn garbage_in_a_status_stops_no_pod_and_is_written_anew() {
    let (stage, rolegate) = stage("garbage").await.with_room(6).await.serve().await;
    let group = Group::new("llm").role("prefill", 6, 2).held_back();
    let statuses = stage.deploy_watched(&group).await;
    statuses.until("the first segment is committed", |status| status.released("prefill") == 2).await;
    stage.pods.until("the first segment", |now| now.count_all(Pod::is_released) == 2).await;

    let released = |count: Value| json!([{ "name": "segments", "progress": { "prefill": { "state": 7, "released": count }, "ghost": "x" } }]);
    let garbage = [
        json!({ "coordinationState": released(json!(1_u64 << 62)), "summary": { "held": -1 } }),
        json!({ "coordinationState": released(json!(-1)), "conditions": "x", "observedGeneration": "new" }),
        json!({ "coordinationState": "x", "lastReadyReplicas": { "prefill": "all" }, "summary": [] }),
    ];
    for (round, status) in garbage.into_iter().enumerate() {
        let patch = Patch::Merge(json!({ "status": status }));
        stage.groups().patch_status("llm", &PatchParams::default(), &patch).await.unwrap();
        // It was released before, and so it is when it is made again.
        stage.replace_pod("llm-prefill-0", Pod::is_released).await;
        let status = async || stage.groups().get("llm").await.unwrap().data["status"].clone();
        until_found(&format!("the status is written anew after round {round}"), status, |status| {
            let role = &status["coordinationState"][0]["progress"]["prefill"];
            let anew = role["released"] == 2 && role["state"].is_string() && status["summary"]["held"] == 4;
            anew && status["conditions"].is_array()
        })
        .await;
        stage.pods.until("the first segment again", |now| now.count_all(Pod::is_released) == 2).await;
    }
    assert!(!rolegate.log().contains("does not have the expected shape"), "{}", rolegate.log());
}
