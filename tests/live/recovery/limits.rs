//! What is not recovered, and what says so.

use super::scene::{Scene, group, launch, object, phase, recreate, two_segments};
use crate::common::prelude::*;

#[tokio::test]
async fn a_segment_is_made_anew_so_often_and_then_left_until_all_its_pods_are_ready_again() {
    let (rolegate, scene) = two_segments("recovery-limit", &json!({ "policy": "Recreate", "limit": 2 })).await;
    scene.delete("llm-decode-0").await;
    scene.until_recovered(&[0], 1).await;
    scene.delete("llm-decode-0").await;

    scene.statuses.until("it waits a while", phase("Waiting")).await;
    scene.until_recovered(&[0], 2).await;
    scene.made_anew(&[0]);
    let before = scene.stage.pods.uids();
    scene.delete("llm-decode-0").await;
    let status = scene.statuses.until("it is left as it is", phase("Exhausted")).await;
    let told = status.condition("RecoveryExhausted");
    let said = "True LimitReached: segment 1 of \"segments\" is left as it is, for it was made anew 2 times already: pod llm-decode-0";
    assert!(told.starts_with(said), "{told}");
    let is_over = |status: &Status| status.condition("RecoveryExhausted").is_empty();
    scene.statuses.until("and no longer when all are ready", is_over).await;
    let now = scene.stage.pods.uids();
    let others = |uids: &BTreeMap<String, String>| {
        uids.iter().filter(|(name, _)| *name != "llm-decode-0").map(|(_, uid)| uid.clone()).collect::<Vec<_>>()
    };
    assert_eq!(others(&now), others(&before), "its other pods stay");
    assert_ne!(now["llm-decode-0"], before["llm-decode-0"]);
    rolegate.until_metric(r#"rolegate_recoveries{state="Exhausted"}"#, 0).await;
}

mod tier2 {
    use super::*;

    #[tokio::test]
    async fn a_rollout_takes_its_pods_one_by_one_and_nothing_is_recovered() {
        let (_rolegate, scene) = two_segments("recovery-rollout", &recreate()).await;
        let edit = json!({ "spec": { "template": { "metadata": { "annotations": { "edited": "1" } } } } });
        for role in ["prefill", "decode"] {
            scene.stage.patch::<StatefulSet>(&scene.group.set_name(role), &edit).await;
        }
        let renewed = |pod: &Pod| pod.is_ready() && pod.annotations.get("edited").is_some_and(|edited| edited == "1");
        scene.stage.pods.until("all are new", |now| now.count_all(renewed) == 6).await;
        let known = |status: &Status| {
            status.0["coordinationState"][0]["completeBatches"] == json!("0-1") && status.ready().starts_with("True")
        };
        let status = scene.statuses.until("all are complete again", known).await;
        assert!(status.0["recoveries"].is_null(), "{status}");
        let born = scene.stage.pods.events().into_iter().skip(scene.from).filter(|event| event.step == Step::Born);
        assert_eq!(born.count(), 6, "each was made anew once");
    }

    #[tokio::test]
    async fn a_scale_in_loses_nothing() {
        let stage = Stage::new("recovery-scale-in").await.with_room(12).await;
        let _rolegate = launch(&stage).start().await;
        let scene = Scene::of(stage, group(6, 3), &recreate()).await;
        // The workloads first: their pods go before the group says so, and in the middle of the last two segments.
        scene.stage.scale_set(&scene.group, "prefill", 3).await;
        scene.stage.pods.until("they are gone", |now| now.count("prefill", |_| true) == 3).await;
        scene.stage.scale(&group(3, 2)).await;
        scene.stage.pods.until("those as well", |now| now.count_all(|_| true) == 5).await;
        let are_first = |now: &BTreeMap<_, _>| now.iter().all(|(name, uid)| scene.first.get(name) == Some(uid));
        holds(Duration::from_secs(3), "the others stay", async || scene.stage.pods.uids(), are_first).await;
        let all = "True AllReplicasReady: 5/5 pods ready";
        let status = scene.statuses.until("it is ready", |status| status.ready() == all).await;
        assert!(status.0["recoveries"].is_null(), "{status}");
    }

    #[tokio::test]
    async fn a_rolegate_that_may_not_recover_says_so_and_lets_the_pods_come_back_one_by_one() {
        let (stage, _rolegate) = Stage::new("recovery-off").await.with_room(12).await.serve().await;
        let group = group(4, 2);
        let statuses = stage.deploy_with(&group, &object(&group, &recreate())["spec"]["coordination"]).await;
        let off = "the recovery of coordination \"segments\" has no effect: rolegate runs without `--allow recovery`";
        statuses.until("it is said", |status| status.progressing().contains(off)).await;
        let first = stage.pods.uids();
        stage.replace_pod("llm-decode-0", Pod::is_ready).await;
        let now = stage.pods.uids();
        assert_eq!(now.iter().filter(|(name, uid)| first.get(*name) != Some(uid)).count(), 1, "{now:?}");
        stage.until_event("RecoveryOff", &[]).await;
    }
}
