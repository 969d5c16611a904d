//! Each progression at full size, its order judged from outside at every event.

use crate::common::prelude::*;

/// What every run must fulfil that waits for anything.
fn check(stage: &Stage, group: &Group) {
    assert_eq!(invariants::all_born_held(&stage.pods), 150);
    invariants::released_in_order(&stage.pods, group);
    invariants::nobody_was_held_again(&stage.pods);
}

#[tokio::test]
async fn ordered_ready_waits_for_the_last_pod_of_each_segment() {
    let (stage, _rolegate) = Stage::new("ordered-ready").await.with_room(150).await.serve().await;
    let group = Group::story_1("llm").held_back();
    let statuses = stage.deploy_watched(&group).await;
    stage.pods.until("all pods", |now| now.count_all(|_| true) == 150).await;

    for segment in 0..10 {
        let (prefill, decode) = (segment * 10..segment * 10 + 10, segment * 5..segment * 5 + 5);
        let mine = |pod: &Pod| if pod.role == "prefill" { &prefill } else { &decode }.contains(&pod.index);
        let released = format!("segment {segment} released");
        stage.pods.until(&released, |now| now.count_all(|pod| mine(pod) && pod.is_released()) == 15).await;
        if segment < 2 {
            // One straggler, in either role: once the loop has counted the 14 others, the next segment is still held.
            let straggler = if segment == 0 { ("prefill", 9) } else { ("decode", 5) };
            let is_straggler = |pod: &Pod| (pod.role.as_str(), pod.index) == straggler;
            stage.let_ready(|pod| mine(pod) && !is_straggler(pod)).await;
            let counted = format!("{}/150 pods ready", segment * 15 + 14);
            let held = 150 - 15 * (segment + 1);
            let all = |status: &Status| {
                let summary = &status.0["summary"];
                let waits = summary["held"] == held && summary["reason"] == "PreviousSegmentNotReady";
                waits && status.ready().ends_with(&counted) && status.state("prefill") == "Waiting"
            };
            statuses.until(&counted, all).await;
            let released = 15 * (segment as usize + 1);
            stage.pods.now(|now| assert_eq!(now.count_all(Pod::is_released), released, "{now}"));
        }
        stage.let_ready(mine).await;
    }
    statuses.until("all ready", |status| status.ready() == "True AllReplicasReady: 150/150 pods ready").await;
    check(&stage, &group);
    assert_eq!(statuses.released_counts("prefill"), [0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100]);
    assert_eq!(statuses.released_counts("decode"), [0, 5, 10, 15, 20, 25, 30, 35, 40, 45, 50]);
}

mod tier2 {
    use super::*;

    #[tokio::test]
    async fn ordered_releases_one_segment_after_the_other_and_waits_for_no_readiness() {
        let (stage, _rolegate) = Stage::new("ordered").await.with_room(150).await.serve().await;
        let group = Group::story_1("llm").progression(Progression::Ordered).held_back();
        let statuses = stage.deploy_watched(&group).await;

        stage.pods.until("all released", |now| now.count_all(Pod::is_released) == 150).await;
        stage.pods.now(|now| assert_eq!(now.count_all(Pod::is_ready), 0));
        let status = statuses.until("complete", |status| status.state("prefill") == "Complete").await;
        assert_eq!(status.ready(), "False DeploymentInProgress: 0/150 pods ready");
        assert_eq!(status.minimum(), "False NoSegmentsReady: 0/10 segments ready (0/150 pods)");
        check(&stage, &group);
        assert_eq!(statuses.released_counts("prefill"), [0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100]);

        stage.let_ready(|_| true).await;
        statuses.until("all ready", |status| status.minimum().starts_with("True AllSegmentsReady: 10/10")).await;
    }

    #[tokio::test]
    async fn pods_of_parallel_segments_never_wait() {
        let (stage, _rolegate) = Stage::new("parallel").await.with_room(150).await.serve().await;
        let group = Group::story_1("llm").progression(Progression::Parallel).held_back();
        let statuses = stage.deploy_watched(&group).await;

        stage.pods.until("all pods", |now| now.count_all(|_| true) == 150).await;
        stage.pods.now(|now| assert_eq!(now.count_all(Pod::is_ready), 0));
        statuses.until("complete", |status| status.state("prefill") == "Complete").await;
        assert_eq!(statuses.released_counts("prefill"), [0, 100]);
        assert_eq!(statuses.released_counts("decode"), [0, 50]);
        // Nobody has to let them go, and they say where they belong all the same.
        let births = stage.pods.births();
        for pod in &births {
            let segment = pod.index / (if pod.role == "prefill" { 10 } else { 5 });
            assert_eq!(pod.labels["rolegate.dev/segment"], segment.to_string(), "{pod:?}");
            assert!(pod.is_released() && !pod.annotations.contains_key("rolegate.dev/held-by"), "{pod:?}");
        }
        assert_eq!(births.len(), 150);
        invariants::nobody_was_held_again(&stage.pods);

        // Segments are counted all the same: the third alone is enough to serve.
        stage.let_ready(|pod| pod.index / (if pod.role == "prefill" { 10 } else { 5 }) == 2).await;
        let status = statuses.until("15 ready", |status| status.ready().ends_with("15/150 pods ready")).await;
        assert_eq!(status.ready(), "False PartialDeployment: 15/150 pods ready");
        assert_eq!(status.minimum(), "True MinimumSegmentReady: 1/10 segments ready (15/150 pods)");
    }

    /// Who was born before an edit that makes batches wait runs; who comes after it waits for its turn.
    #[tokio::test]
    async fn an_edit_that_makes_segments_wait_holds_the_pods_that_come_after_it() {
        let (stage, _rolegate) = Stage::new("parallel-no-more").await.with_room(60).await.serve().await;
        let parallel = Group::new("llm").role("decode", 20, 5).progression(Progression::Parallel).held_back();
        let statuses = stage.create_watched(&parallel).await;
        // Half of the pods are made; the group wants twice as many.
        stage.create_sets(&parallel.clone().role("decode", 10, 5)).await;
        stage.pods.until("half of them", |now| now.count_all(Pod::is_released) == 10).await;
        statuses.until("a commit", |status| status.released("decode") == 20).await;

        let ordered = parallel.progression(Progression::OrderedReady).role("decode", 40, 5);
        stage.patch_group(&ordered, json!({ "spec": ordered.object()["spec"] })).await;
        stage.scale_set(&ordered, "decode", 40).await;
        stage.pods.until("all are made", |now| now.count_all(|_| true) == 40).await;
        let is_old = |pod: &Pod| pod.index < 10;
        for pod in stage.pods.births() {
            assert_eq!(pod.is_held(), !is_old(&pod), "{pod:?}");
        }
        // What was committed before the edit may run; the rest waits for it.
        stage.pods.until("what was committed", |now| now.count_all(Pod::is_released) == 20).await;
        let waits = |status: &Status| status.0["summary"]["held"] == 20;
        statuses.until("the rest waits", waits).await;
        for released in [25, 30, 35, 40] {
            stage.let_ready(Pod::is_released).await;
            stage.pods.until("the next segment", |now| now.count_all(Pod::is_released) >= released).await;
            stage.pods.now(|now| {
                assert_eq!(now.count_all(Pod::is_released), released, "{now}");
                assert!(now.all_in("decode", 0..u32::try_from(released).unwrap(), Pod::is_released), "{now}");
            });
        }
        assert_eq!(statuses.released_counts("decode"), [0, 20, 25, 30, 35, 40]);
        invariants::nobody_was_held_again(&stage.pods);
        invariants::committed_before_released(&stage.pods, &statuses);
    }
}
