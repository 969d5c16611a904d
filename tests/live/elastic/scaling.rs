//! Up and down, for each kind of workload.

use crate::common::prelude::*;
use crate::elastic::support::{Pair, SIZES, launch, served};
use crate::pods::support::stage as with_leader_worker_sets;

async fn up_and_down(stage: Stage, kind: &'static str) -> Pair {
    stage.add_node("all", 60).await;
    let _rolegate = launch(&stage).start().await;
    let pair = Pair::create(stage, kind, &json!({ "segments": 2 }), &json!({})).await;
    pair.until_scaled(2).await;
    pair.scale(10).await;
    let kept: Vec<_> = pair.stage.pods.now(|now| now.all().map(|pod| pod.uid.clone()).collect());
    pair.scale(3).await;
    pair.ratio_was_kept();
    pair.stage.pods.now(|now| assert!(now.all().all(|pod| kept.contains(&pod.uid)), "E2: pods that stay are the same"));
    // Autoscalers count one pod of each segment: the first of the first role.
    let is_counted = |pod: &&Pod| pod.labels.get("rolegate.dev/scale-pod").is_some_and(|group| group == "pd");
    let place = |pod: &Pod| (pod.role.clone(), pod.labels["rolegate.dev/segment"].clone());
    let counted = |now: &View| now.all().filter(is_counted).map(place).collect::<BTreeSet<_>>();
    let one_each: BTreeSet<_> = (0..3).map(|segment| ("prefill".to_owned(), segment.to_string())).collect();
    pair.stage.pods.until("one pod of each segment", |now| counted(now) == one_each).await;
    let labelled = |pod: &Pod| pod.labels.contains_key("rolegate.dev/scale-pod");
    pair.stage.pods.now(|now| assert_eq!(now.count_all(labelled), 3, "and no other"));
    // From 0 to 10 and back to 3, one segment of one role at a time.
    until_is("an Event for each scale", async || pair.scales("Scaled").await, SIZES.len() * (10 + 7)).await;
    pair
}

#[tokio::test]
async fn two_stateful_sets_go_up_to_ten_segments_and_back_to_three_in_their_ratio() {
    let pair = up_and_down(Stage::new("elastic-sets").await, "StatefulSet").await;
    pair.nobody_waited_for_a_turn();
    let selector = pair.statuses.now().0["selector"].clone();
    assert_eq!(selector, "rolegate.dev/scale-pod=pd");
    assert_eq!(pair.statuses.now().condition("Elastic"), "True AsWanted: 3 segments");
}

#[tokio::test]
async fn two_deployments_do_as_well_and_lose_the_pods_of_their_last_segments() {
    up_and_down(Stage::new("elastic-deployments").await, "Deployment").await;
}

#[tokio::test]
async fn two_leader_worker_sets_do_as_well() {
    let pair = up_and_down(with_leader_worker_sets("elastic-lws").await, "LeaderWorkerSet").await;
    pair.nobody_waited_for_a_turn();
}

/// Pods that a rollout makes beyond the replicas are held while segments are taken away, and its controller waits for them.
#[tokio::test]
async fn a_rollout_of_a_deployment_and_segments_that_are_taken_away_do_not_wait_for_each_other() {
    let (stage, _rolegate) = served("elastic-rolled", 60).await;
    let pair = Pair::create(stage, "Deployment", &json!({ "segments": 4 }), &json!({})).await;
    pair.until_scaled(4).await;
    for (word, segments) in [("first", 3), ("second", 2)] {
        let old: BTreeSet<_> = pair.stage.pods.now(|now| now.of("prefill").map(|pod| pod.uid.clone()).collect());
        let edit = json!({ "spec": { "template": { "metadata": { "annotations": { "restarted": word } } } } });
        pair.kubectl(&["patch", "deploy/prefill", "-p", &edit.to_string()]).await;
        pair.scale(segments).await;
        let is_new = |pod: &Pod| !old.contains(&pod.uid);
        let all_new =
            |now: &View| now.of("prefill").all(is_new) && now.count("prefill", is_new) == segments as usize * 2;
        pair.stage.pods.until("all prefill is new", all_new).await;
        pair.until_scaled(segments).await;
    }
}

mod tier2 {
    use super::*;

    #[tokio::test]
    async fn marked_pods_have_their_time_before_they_go() {
        let (stage, _rolegate) = served("elastic-drain", 60).await;
        let spec = json!({ "segments": 3, "scaleIn": { "drainSeconds": 3 } });
        let pair = Pair::create(stage, "StatefulSet", &spec, &json!({})).await;
        pair.until_scaled(3).await;
        pair.want(1).await;
        let marked = |pod: &crate::common::pods::Pod| pod.labels.contains_key("rolegate.dev/draining");
        pair.stage.pods.until("six are marked", |now| now.count_all(marked) == 6).await;
        let began = std::time::Instant::now();
        assert_eq!(pair.statuses.now().condition("Elastic"), "True ScalingIn: segments 2 to 3 are taken away");
        pair.stage.pods.now(|now| assert_eq!(now.count_all(|_| true), 9));
        pair.until_scaled(1).await;
        assert!(began.elapsed() >= std::time::Duration::from_millis(2_500), "{:?}", began.elapsed());
        pair.stage.pods.now(|now| assert_eq!(now.count_all(marked), 0));
        pair.ratio_was_kept();
    }

    #[tokio::test]
    async fn no_segments_are_none() {
        let (stage, _rolegate) = served("elastic-none", 60).await;
        let pair = Pair::scaled(stage, 2).await;
        pair.scale(0).await;
        pair.scale(1).await;
        pair.ratio_was_kept();
    }

    #[tokio::test]
    async fn a_parallel_group_is_scaled_one_segment_at_a_time_as_well() {
        let (stage, _rolegate) = served("elastic-parallel", 60).await;
        let spec = json!({ "segments": 6, "coordination": [{
        "name": "segments",
        "strategy": { "segmentPlacement": { "segmentSize": { "prefill": 2, "decode": 1 }, "progression": "Parallel" } },
    }] });
        let pair = Pair::create(stage, "StatefulSet", &spec, &json!({})).await;
        pair.until_scaled(6).await;
        pair.ratio_was_kept();
    }
}
