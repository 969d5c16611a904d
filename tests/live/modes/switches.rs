//! Modes that change in the middle of something.

use crate::common::prelude::*;
use crate::modes::stage;
use crate::rollouts::support::Duo;

/// The version of a group, which every write of its status changes.
async fn version(stage: &Stage, name: &str) -> String {
    stage.groups().get(name).await.unwrap().metadata.resource_version.unwrap()
}

#[tokio::test]
async fn pods_that_were_held_go_when_only_observed_and_nothing_else_is_written() {
    let (stage, rolegate) = stage("modes-go").await.with_room(18).await.serve().await;
    stage.deploy(&Group::three_segments()).await;
    stage.pods.until("the first segment runs", |now| now.count_all(Pod::is_scheduled) == 6).await;
    assert_eq!(stage.pods.now(|now| now.count_all(Pod::is_held)), 12);
    stage.label("rolegate.dev/mode=observe");
    stage.pods.until("all run", |now| now.count_all(Pod::is_scheduled) == 18).await;
    rolegate.until_metric(r#"rolegate_held_pods{reason="PreviousSegmentNotReady"}"#, 0).await;
    let before = version(&stage, "llm").await;
    stage.let_ready(|_| true).await;
    stage.pods.until("all are ready", |now| now.count_all(Pod::is_ready) == 18).await;
    // Whoever is made again is held by nobody.
    stage.delete::<ApiPod>("llm-prefill-0").await;
    let again = |pod: &Pod| pod.name == "llm-prefill-0" && pod.gates.is_empty() && pod.is_scheduled();
    stage.pods.until("it is made again", |now| now.count_all(again) == 1 && now.count_all(|_| true) == 18).await;
    assert_eq!(version(&stage, "llm").await, before, "something was written to the group");

    // What runs counts as released, and what comes is held in its turn.
    stage.label("rolegate.dev/mode=enforce");
    let group = async || stage.groups().get("llm").await.unwrap();
    until_found("the status is written again", group, |group| {
        group.data["status"]["summary"]["held"] == 0 && group.metadata.resource_version.as_deref() != Some(&before)
    })
    .await;
    stage.scale(&Group::three_segments().role("prefill", 20, 4).role("decode", 10, 2).held_back()).await;
    stage.pods.until("the fourth segment goes, or waits for the first", |now| now.count_all(|_| true) == 30).await;
    let of_fifth = |pod: &Pod| pod.is_held();
    stage.pods.until("the fifth is held", |now| now.count_all(of_fifth) >= 6).await;
}

#[tokio::test]
async fn a_rollout_that_is_open_is_let_go_when_only_observed() {
    let duo = Duo::serve("modes-roll", 8, 4, json!({ "maxSkew": "25%", "maxUnavailable": 1 }), &[]).await.ready().await;
    duo.edit_both_held_back("registry.invalid/x:2");
    duo.stage.pods.until("it has begun", |now| now.count_all(|pod| duo.is_new(pod)) > 0).await;
    assert!(duo.partition("prefill").await > 0);
    duo.stage.label("rolegate.dev/mode=observe");
    for role in ["prefill", "decode"] {
        until_is("nothing is frozen", async || duo.partition(role).await, 0).await;
    }
    // The next edit is nobody's business.
    let before = version(&duo.stage, "llm").await;
    duo.set_image("decode", "registry.invalid/x:3");
    assert_eq!(duo.partition("decode").await, 0);
    assert_eq!(version(&duo.stage, "llm").await, before);
    duo.stage.label("rolegate.dev/mode-");
    duo.stage.pods.until("it is served again", |_| true).await;
    let edited = async || {
        duo.set_image("prefill", &format!("registry.invalid/x:{}", std::process::id()));
        duo.partition("prefill").await
    };
    until_found("an edit is frozen again", edited, |partition| *partition != 0).await;
}
