//! Batches that are released as a whole: they wait for all their pods, or for so long, and no pod of another batch joins them.

use crate::common::prelude::*;

const BATCH: &str = "rolebasedgroup.workloads.x-k8s.io/deploy-topology-coordination-name";

fn group() -> Group {
    Group::new("llm").role("prefill", 8, 4).role("decode", 4, 2)
}

/// The group in segments, each of which shares a node.
fn on_one_node(group: &Group, name: &str) -> Value {
    let mut object = group.object();
    let segments = &mut object["spec"]["coordination"][0];
    segments["name"] = json!(name);
    segments["strategy"]["segmentPlacement"]["topologyAffinity"] =
        json!({ "topologyKey": "kubernetes.io/hostname", "strategy": "RequireSegmentAffinity" });
    object
}

/// All pods of prefill, and none of decode but one.
async fn incomplete(stage: &Stage, launch: &Launch) -> (crate::common::rolegate::Rolegate, StatusLog) {
    for node in ["a", "b"] {
        stage.add_node(node, 6).await;
    }
    let rolegate = launch.start().await;
    let group = group();
    let statuses = stage.statuses(&group);
    stage.create(on_one_node(&group, "pd")).await;
    let few = group.role("decode", 1, 2);
    stage.create_sets(&few).await;
    (rolegate, statuses)
}

#[tokio::test]
async fn the_pods_of_a_batch_that_lacks_others_go_when_they_have_waited_for_so_long() {
    let stage = Stage::new("release-incomplete").await;
    let launch = stage.launch().flag("incomplete", "release-after=6s");
    let (_rolegate, statuses) = incomplete(&stage, &launch).await;
    let first = |pod: &Pod| pod.index < if pod.role == "prefill" { 4 } else { 2 };
    let released = |now: &View| now.count_all(|pod| first(pod) && pod.is_released());
    stage.pods.until("the pods that are there", |now| released(now) == 5).await;
    let events = stage.pods.events();
    let last = events.iter().filter(|event| event.step == Step::Born && first(&event.pod)).map(|event| event.at).max();
    let out = events.iter().filter(|event| event.step == Step::Released).map(|event| event.at).min().unwrap();
    let waited = out - last.unwrap();
    assert!(waited > Duration::from_secs(3), "released after {waited:?}");
    // What comes after it still waits: the segment is not ready without its second decode.
    let is_held = |now: &View| now.count_all(Pod::is_held) == 4;
    stage.pods.always(Duration::from_secs(1), "the second segment is held", is_held).await;
    stage.scale_set(&group(), "decode", 4).await;
    statuses.until("all ready", |status| status.ready() == "True AllReplicasReady: 12/12 pods ready").await;
}

/// The group is made anew under another name of its coordination, while its held pods carry the old one.
pub async fn mis_stamped(stage: &Stage) -> StatusLog {
    // Room for one batch of six, and for what a test puts beside.
    for node in ["a", "b"] {
        stage.add_node(node, 9).await;
    }
    let group = group().held_back();
    let statuses = stage.statuses(&group);
    stage.create(on_one_node(&group, "pd")).await;
    stage.create_sets(&group).await;
    let segment = |now: &View| now.count_all(|_| true) == 12 && now.count_all(Pod::is_released) == 6;
    stage.pods.until("the first segment", segment).await;
    stage.groups().delete("llm", &DeleteParams::default()).await.unwrap();
    stage.create(on_one_node(&group, "other")).await;
    statuses
}

#[tokio::test]
async fn pods_that_were_made_for_another_batch_are_made_again_if_told_so() {
    let stage = Stage::new("recreate").await;
    let _rolegate = stage.launch().switch("recreate-mis-stamped").start().await;
    let statuses = mis_stamped(&stage).await;
    let again = |pod: &Pod| pod.is_held() && pod.labels.get(BATCH).is_some_and(|batch| batch == "other-1");
    stage.pods.until("they are made again", |now| now.count_all(again) == 6).await;
    // None that ran was touched.
    let gone = stage.pods.events().into_iter().filter(|event| event.step == Step::Gone);
    let gone: Vec<_> = gone.map(|event| (event.pod.is_held(), event.pod.labels[BATCH].clone())).collect();
    assert_eq!(gone, vec![(true, "pd-1".to_owned()); 6]);
    for released in [6, 12] {
        stage.pods.until("released", |now| now.count_all(Pod::is_released) == released).await;
        stage.let_ready(Pod::is_released).await;
    }
    statuses.until("all ready", |status| status.ready() == "True AllReplicasReady: 12/12 pods ready").await;
}

mod tier2 {
    use super::*;

    #[tokio::test]
    async fn a_batch_that_lacks_pods_waits_and_says_for_what() {
        let stage = Stage::new("incomplete").await;
        let (rolegate, statuses) = incomplete(&stage, &stage.launch()).await;
        let why = "StatefulSet incomplete/llm-decode has 1 replicas, the group declares more";
        let status = statuses.until("it is told", |status| status.progressing().contains(why)).await;
        assert_eq!(status.reason(), "PreviousSegmentNotReady", "what comes later waits, too: {status}");
        rolegate.until_metric(r#"rolegate_held_pods{reason="IncompleteBatch"}"#, 5).await;
        stage.pods.now(|now| assert_eq!(now.count_all(Pod::is_held), 9, "{now}"));
        stage.scale_set(&group(), "decode", 4).await;
        statuses.until("all ready", |status| status.ready() == "True AllReplicasReady: 12/12 pods ready").await;
    }

    #[tokio::test]
    async fn pods_that_were_made_for_another_batch_are_held_and_a_person_may_delete_them() {
        let (stage, rolegate) = Stage::new("mis-stamped").await.serve().await;
        let statuses = mis_stamped(&stage).await;
        statuses.until("it is told", |status| status.reason() == "StampMismatch").await;
        rolegate.until_metric(r#"rolegate_held_pods{reason="StampMismatch"}"#, 6).await;
        // Their turn comes, and they stay.
        stage.let_ready(Pod::is_released).await;
        statuses.until("committed", |status| status.released("prefill") == 8).await;
        stage.pods.always(Duration::from_secs(2), "they are held", |now| now.count_all(Pod::is_held) == 6).await;
        let held = stage.pods.now(|now| now.all().filter(|pod| pod.is_held()).cloned().collect::<Vec<_>>());
        for pod in &held {
            assert_eq!(pod.labels[BATCH], "pd-1", "{pod:?}");
            // One after another: those that are new wait for the others of their batch.
            stage.pods.now(|now| assert!(now.named(&pod.name).is_some_and(Pod::is_held), "{now}"));
            stage.replace_pod(&pod.name, |_| true).await;
            stage.pods.now(|now| assert_eq!(now.named(&pod.name).unwrap().labels[BATCH], "other-1"));
        }
        stage.pods.until("all released", |now| now.count_all(Pod::is_released) == 12).await;
        stage.let_ready(Pod::is_released).await;
        statuses.until("all ready", |status| status.ready() == "True AllReplicasReady: 12/12 pods ready").await;
    }
}
