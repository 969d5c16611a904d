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
    let lost: Vec<Pod> =
        stage.pods.now(|now| now.all().filter(|pod| pod.node.as_ref() == Some(&name)).cloned().collect());
    assert!(lost.len() >= 5, "only {} pods run there", lost.len());
    stage.add_node("three", 80).await;
    let died = Instant::now();
    Api::<Node>::all(stage.client.clone()).delete(&name, &DeleteParams::default()).await.unwrap();
    for pod in &lost {
        // Its kubelet is not there to confirm it.
        _ = stage.api::<ApiPod>().delete(&pod.name, &DeleteParams::default().grace_period(0)).await;
    }
    eventually(RECOVERY, "all of them run elsewhere", async || {
        let runs = |of: &&Pod| {
            let anew = |pod: &Pod| pod.name == of.name && pod.uid != of.uid && pod.is_released() && pod.is_scheduled();
            stage.pods.now(|now| now.all().any(anew))
        };
        let back = lost.iter().filter(runs).count();
        if back == lost.len() { Ok(()) } else { Err(format!("{back} of {}", lost.len())) }
    })
    .await;
    let time = died.elapsed();
    story.go_on();
    story.end().await;
    let how =
        format!("{} evicted pods were made anew, held, and released at once: their segments had been", lost.len());
    tell("node dies with its pods in the middle of a batch", time, &how);
}
