//! What else happens while a pair is scaled: another target, another hand, a rollout.

use crate::common::prelude::*;
use crate::elastic::support::{Pair, SIZES, served};

async fn patch(pair: &Pair, role: &str, change: Value) {
    pair.stage.patch::<StatefulSet>(role, &change).await;
}

#[tokio::test]
async fn what_is_wanted_again_while_it_drains_stays() {
    let (stage, _rolegate) = served("elastic-turn-down", 60).await;
    let spec = json!({ "segments": 5, "scaleIn": { "drainSeconds": 5 } });
    let pair = Pair::create(stage, "StatefulSet", &spec, &json!({})).await;
    pair.until_scaled(5).await;
    let all: Vec<_> = pair.stage.pods.now(|now| now.all().map(|pod| pod.uid.clone()).collect());
    let marked = |pod: &Pod| pod.labels.contains_key("rolegate.dev/draining");
    pair.want(2).await;
    pair.stage.pods.until("nine are marked", |now| now.count_all(marked) == 9).await;
    pair.want(4).await;
    pair.stage.pods.until("three of them stay marked", |now| now.count_all(marked) == 3).await;
    pair.until_scaled(4).await;
    pair.scale(6).await;
    pair.stage.pods.now(|now| {
        let kept = now.count_all(|pod| all.contains(&pod.uid));
        assert_eq!(kept, 12, "E2: four segments were wanted all the time");
        assert_eq!(now.count_all(marked), 0);
    });
    pair.ratio_was_kept();
}

#[tokio::test]
async fn what_somebody_else_scales_is_scaled_back_and_told() {
    let (stage, _rolegate) = served("elastic-foreign", 60).await;
    let pair = Pair::scaled(stage, 3).await;
    let running: Vec<_> = pair.stage.pods.now(|now| now.all().map(|pod| pod.uid.clone()).collect());
    patch(&pair, "prefill", json!({ "spec": { "replicas": 12 } })).await;
    let scaled_back = async |times: usize| {
        until_found("an Event", async || pair.scales("ScaledBack").await, |found| *found >= times).await;
    };
    scaled_back(1).await;
    pair.until_scaled(3).await;
    // What ran goes on; what was too much never did.
    pair.stage.pods.now(|now| assert!(now.all().all(|pod| running.contains(&pod.uid))));
    let strange = |pod: &Pod| !running.contains(&pod.uid) && pod.is_released();
    assert_eq!(pair.stage.pods.events().iter().filter(|event| strange(&event.pod)).count(), 0);
    patch(&pair, "decode", json!({ "spec": { "replicas": 1 } })).await;
    scaled_back(2).await;
    pair.until_scaled(3).await;
}

#[tokio::test]
async fn nothing_is_made_anew_while_segments_are_taken_away() {
    let stage = Stage::new("elastic-loss").await.with_room(60).await;
    let _rolegate = stage.launch().flag("allow", "scale,recovery").start().await;
    let sizes: Value = SIZES.iter().map(|(role, size)| ((*role).to_owned(), json!(size))).collect();
    let placement = json!({ "segmentSize": sizes, "recovery": { "policy": "Recreate" } });
    let spec = json!({
        "segments": 3,
        "scaleIn": { "drainSeconds": 10 },
        "coordination": [{ "name": "segments", "strategy": { "segmentPlacement": placement } }],
    });
    let pair = Pair::create(stage, "StatefulSet", &spec, &json!({})).await;
    pair.until_scaled(3).await;
    let complete = |status: &Status| status.0["coordinationState"][0]["completeBatches"] == json!("0-2");
    pair.statuses.until("all are known to be complete", complete).await;
    let first = pair.stage.pods.uids();
    pair.want(2).await;
    let marked = |pod: &Pod| pod.labels.contains_key("rolegate.dev/draining");
    pair.stage.pods.until("the last segment is marked", |now| now.count_all(marked) == 3).await;
    // One of a segment that stays.
    pair.kubectl(&["delete", "pod", "decode-0", "--wait=false"]).await;
    let is_back = |now: &View| now.named("decode-0").is_some_and(|pod| pod.is_ready() && pod.uid != first["decode-0"]);
    pair.stage.pods.until("it is back by itself", is_back).await;
    assert!(!pair.statuses.now().0["draining"].is_null(), "the drain was over before: nothing is shown");
    pair.until_scaled(2).await;
    let status = pair.statuses.until("it is ready", |status| status.ready().starts_with("True")).await;
    assert!(status.0["recoveries"].is_null(), "{status}");
    pair.stage.pods.now(|now| {
        let others: Vec<_> = now.all().filter(|pod| pod.name != "decode-0").collect();
        assert!(others.iter().all(|pod| first[&pod.name] == pod.uid), "its segment stays as it is");
        assert_eq!(others.len(), 5);
    });
}

mod tier2 {
    use super::*;

    #[tokio::test]
    async fn another_target_is_followed_in_the_middle_of_the_way_up() {
        let (stage, _rolegate) = served("elastic-turn-up", 60).await;
        let held_back = json!({ "metadata": { "annotations": { "kwok.rolegate.dev/not-ready": "" } } });
        let pair = Pair::create(stage, "StatefulSet", &json!({ "segments": 8 }), &held_back).await;
        for segments in 1..=4 {
            pair.stage.pods.until("the next segment", |now| now.count_all(Pod::is_released) == 3 * segments).await;
            if segments < 4 {
                pair.stage.let_ready(Pod::is_released).await;
            }
        }
        // The fourth is not ready, and not wanted any more; the third is the last.
        pair.want(3).await;
        pair.stage.pods.until("nine pods", |now| now.count_all(|_| true) == 9).await;
        pair.until_scaled(3).await;
        pair.want(5).await;
        pair.stage.pods.until("the fourth again", |now| now.count_all(Pod::is_released) == 12).await;
        pair.want(4).await;
        pair.stage.let_ready(Pod::is_released).await;
        pair.until_scaled(4).await;
        pair.ratio_was_kept();
        pair.nobody_waited_for_a_turn();
    }

    #[tokio::test]
    async fn nothing_is_taken_away_while_a_rollout_is_open() {
        let (stage, _rolegate) = served("elastic-rollout", 60).await;
        let rolling = json!({ "maxSkew": "50%", "maxUnavailable": 1 });
        let sizes: Value = SIZES.iter().map(|(role, size)| ((*role).to_owned(), json!(size))).collect();
        let spec = json!({ "segments": 4, "coordination": [
        { "name": "segments", "strategy": { "segmentPlacement": { "segmentSize": sizes } } },
        { "name": "roll", "roles": ["prefill", "decode"], "strategy": { "rollingUpdate": rolling } },
    ] });
        let pair = Pair::create(stage, "StatefulSet", &spec, &json!({})).await;
        pair.until_scaled(4).await;
        pair.statuses.until("ready once", |status| !status.0["firstReadyTime"].is_null()).await;
        // The new pods do not get ready by themselves.
        let template = json!({ "metadata": { "annotations": { "kwok.rolegate.dev/not-ready": "" } } });
        for (role, _) in SIZES {
            patch(&pair, role, json!({ "spec": { "template": template } })).await;
        }
        pair.stage.pods.until("the rollout has begun", |now| now.count_all(|pod| !pod.is_ready()) > 0).await;
        pair.want(2).await;
        pair.until_told("ScaleInDeferred: 2 segments are wanted, and none is taken away while a rollout is open").await;
        pair.statuses.until("a reason", |status| status.reason() == "ScaleInDeferred").await;
        assert_eq!(pair.both().await, (8, 4));
        let replicas = async || {
            pair.stage.try_let_ready(Pod::is_released).await;
            pair.both().await
        };
        until_is("the rollout ends, and then two segments go", replicas, (4, 2)).await;
        let renewed = |pod: &Pod| pod.annotations.contains_key("kwok.rolegate.dev/not-ready") || pod.is_ready();
        pair.stage.pods.until("six pods", |now| now.count_all(renewed) == 6 && now.count_all(|_| true) == 6).await;
        pair.ratio_was_kept();
    }
}
