//! Pods beyond what a group declares: an update's are let go, others are held and explained.

use crate::common::prelude::*;

/// A group of six routers in segments of three, whose Deployment updates only by pods beyond them.
async fn deploy(stage: &Stage) {
    let group = Group::new("llm").role("router", 6, 3);
    let surge = json!({ "strategy": { "rollingUpdate": { "maxSurge": "20%", "maxUnavailable": 0 } } });
    stage.create(group.coordination_of("Deployment", &json!({}))).await;
    stage.create(group.deployment("router", &stage.namespace, &surge)).await;
}

#[tokio::test]
async fn an_update_by_pods_beyond_the_desired_ones_goes_to_its_end() {
    let (stage, rolegate) = crate::scale::stage("surge").await.with_room(12).await.serve().await;
    let statuses = stage.coordination_statuses("llm");
    deploy(&stage).await;
    statuses.until("deployed", |status| status.ready() == "True AllReplicasReady: 6/6 pods ready").await;
    let old = stage.pods.uids();
    let before = stage.pods.events().len();
    let change = json!({ "spec": { "template": { "metadata": { "annotations": { "version": "2" } } } } });
    stage.patch::<Deployment>("llm-router", &change).await;
    let is_new = |pod: &Pod| pod.ready && !old.contains_key(&pod.name);
    let done = |now: &View| now.count_all(|_| true) == 6 && now.count_all(is_new) == 6;
    stage.pods.until_within(2 * PATIENT, "six new pods and no more", done).await;
    invariants::all_born_held(&stage.pods);
    // Six served at any time, two more (20 % of 6, rounded up) at most.
    let mut now = View::default();
    for (number, event) in stage.pods.events().iter().enumerate() {
        now.take(event);
        let (ready, released) = (now.count_all(|pod| pod.ready), now.count_all(Pod::is_released));
        assert!(number < before || (ready >= 6 && released <= 8), "{ready} ready, {released} released");
    }
    assert_eq!(rolegate.metric(r#"rolegate_held_pods{reason="BeyondDesired"}"#).await, 0);
}

#[tokio::test]
async fn more_replicas_take_their_turn_although_they_could_be_an_update() {
    let (stage, _rolegate) = crate::scale::stage("no-surge").await.with_room(6).await.serve().await;
    let statuses = stage.coordination_statuses("llm");
    deploy(&stage).await;
    statuses.until("deployed", |status| status.ready() == "True AllReplicasReady: 6/6 pods ready").await;
    // No room for the next segment: of the one after no pod may go, whatever is seen first, pods or Deployment.
    let more = json!({ "spec": { "replicas": 12 } });
    stage.patch::<Deployment>("llm-router", &more).await;
    stage.pods.until("twelve pods", |now| now.count_all(|_| true) == 12).await;
    let held = |status: &Status| {
        let summary = &status.0["summary"];
        summary["held"] == 3 && summary["reason"] == "PreviousSegmentNotReady" && status.released("router") == 9
    };
    statuses.until("the last segment is held", held).await;
    stage.pods.until("the third segment is released", |now| now.count_all(Pod::is_released) == 9).await;
    stage.pods.now(|now| assert_eq!(now.count_all(Pod::is_held), 3, "{now}"));
    assert_eq!(invariants::all_born_held(&stage.pods), 12);
}
