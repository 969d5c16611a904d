//! A group that serves grows by a segment, and shrinks.

use crate::common::prelude::*;

mod tier2 {
    use super::*;

    #[tokio::test]
    async fn a_group_grows_by_a_segment_and_shrinks_while_it_serves() {
        let (stage, _rolegate) = Stage::new("scaling").await.with_room(150).await.serve().await;
        let group = Group::story_1("llm");
        let statuses = stage.deploy_watched(&group).await;
        statuses.until("deployed", |status| status.ready() == "True AllReplicasReady: 150/150 pods ready").await;
        let deployed = statuses.all().len();

        // There is no room for the eleventh segment: the ten others go on.
        let larger = group.clone().role("prefill", 110, 10).role("decode", 55, 5);
        stage.scale(&larger).await;
        stage.pods.until("15 more, released", |now| now.count_all(Pod::is_released) == 165).await;
        let scaling = statuses.until("scaling", |status| status.released("decode") == 55).await;
        assert_eq!(scaling.ready(), "False ScalingInProgress: 150/165 pods ready");
        assert_eq!(scaling.minimum(), "True MinimumMet: 10/11 segments ready (150/165 pods)");
        assert_eq!(scaling.progressing(), "True Progressing");
        stage.add_node("more", 15).await;
        let grown = statuses.until("grown", |status| status.ready().starts_with("True")).await;
        assert_eq!(grown.ready(), "True AllReplicasReady: 165/165 pods ready");
        assert_eq!(grown.minimum(), "True AllSegmentsReady: 11/11 segments ready (165/165 pods)");
        for status in &statuses.all()[deployed..] {
            assert!(status.minimum().starts_with("True"), "it served all the time: {status}");
        }
        assert_eq!(invariants::all_born_held(&stage.pods), 165);
        invariants::released_in_order(&stage.pods, &larger);
        invariants::released_counts_never_fell(&statuses, &group);

        // Fewer pods are wanted: nothing is to be waited for, and nothing becomes false.
        let before = statuses.all().len();
        let smaller = group.clone().role("prefill", 62, 10).role("decode", 31, 5);
        stage.scale(&smaller).await;
        stage.pods.until("93 pods", |now| now.count_all(|_| true) == 93).await;
        let shrunk = statuses.until("shrunk", |status| status.released("prefill") == 62).await;
        assert_eq!(shrunk.ready(), "True AllReplicasReady: 93/93 pods ready");
        assert_eq!(shrunk.minimum(), "True AllSegmentsReady: 7/7 segments ready (93/93 pods)");

        // What comes after is growth again, held until its turn.
        let again = group.clone().role("prefill", 72, 10).role("decode", 36, 5);
        stage.scale(&again).await;
        statuses.until("grown again", |status| status.ready() == "True AllReplicasReady: 108/108 pods ready").await;
        assert_eq!(statuses.now().minimum(), "True AllSegmentsReady: 8/8 segments ready (108/108 pods)");
        for status in &statuses.all()[before..] {
            let ready = status.ready();
            assert!(ready.starts_with("True") || ready.starts_with("False ScalingInProgress"), "{status}");
            assert!(status.minimum().starts_with("True"), "{status}");
        }
        invariants::all_born_held(&stage.pods);
        invariants::nobody_was_held_again(&stage.pods);
    }

    #[tokio::test]
    async fn pods_beyond_what_the_group_declares_stay_held() {
        let (stage, _rolegate) = Stage::new("beyond").await.with_room(30).await.serve().await;
        let group = Group::new("llm").role("prefill", 8, 4);
        let statuses = stage.create_watched(&group).await;
        // The workload is scaled first, as an autoscaler may do it.
        stage.create_sets(&group.clone().role("prefill", 12, 4)).await;
        let beyond =
            |status: &Status| status.0["summary"]["held"] == 4 && status.0["summary"]["reason"] == "BeyondDesired";
        statuses.until("4 surplus pods", beyond).await;
        let status = statuses.until("8 ready", |status| status.ready().starts_with("True")).await;
        assert_eq!(status.ready(), "True AllReplicasReady: 8/8 pods ready");
        stage.pods.now(|now| assert!(now.all_in("prefill", 8..12, Pod::is_held), "{now}"));

        stage.scale(&group.clone().role("prefill", 12, 4)).await;
        statuses.until("12 ready", |status| status.ready() == "True AllReplicasReady: 12/12 pods ready").await;
        invariants::all_born_held(&stage.pods);
    }
}
