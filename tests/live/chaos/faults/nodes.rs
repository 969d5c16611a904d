//! A node dies with the pods on it.

use crate::chaos::faults::story::{RECOVERY, Story, tell};
use crate::common::prelude::*;

#[tokio::test]
#[ignore = "minutes: make chaos"]
async fn a_node_dies_and_its_pods_are_evicted() {
    let story = Story::begin(Stage::new("faults-node").await).await;
    let stage = &story.stage;
    // What is on its way would be released beside pods that were ready when that was decided.
    story.rest().await;
    let name = format!("{}-one", stage.namespace);
    let is_there = |pod: &&Pod| pod.node.as_ref() == Some(&name);
    let lost: Vec<Pod> = stage.pods.now(|now| now.all().filter(is_there).cloned().collect());
    assert!(lost.len() >= 5, "only {} pods run there", lost.len());
    stage.add_node("three", 80).await;
    let died = Instant::now();
    stage.nodes().delete(&name, &DeleteParams::default()).await.unwrap();
    for pod in &lost {
        // Its kubelet is not there to confirm it.
        _ = stage.api::<ApiPod>().delete(&pod.name, &DeleteParams::default().grace_period(0)).await;
    }
    let runs = |now: &View, of: &Pod| {
        now.all().any(|pod| pod.name == of.name && pod.uid != of.uid && pod.is_released() && pod.is_scheduled())
    };
    let all_run = |now: &View| lost.iter().all(|pod| runs(now, pod));
    stage.pods.until_within(RECOVERY, "all of them run elsewhere", all_run).await;
    let time = died.elapsed();
    story.go_on();
    story.end().await;
    let how =
        format!("{} evicted pods were made anew, held, and released at once: their segments had been", lost.len());
    tell("node dies with its pods in the middle of a batch", time, &how);
}
