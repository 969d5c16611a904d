//! Leaders that die on the way from a request to the pods that use it.

use super::KARPENTER;
use super::figures::Seen;
use super::world::{NODES_OF_A_SEGMENT, Scene, launch, stage};
use crate::common::prelude::*;

/// How far a request has come when the leader dies.
#[derive(Clone, Copy, Debug)]
enum Step {
    Committed,
    Asked,
    FirstNode,
    LastNode,
}

#[tokio::test]
#[ignore = "make neighbours builds karpenter"]
async fn a_leader_that_dies_at_any_step_leaves_neither_a_part_of_a_segment_nor_a_node_too_many() {
    let steps = [Step::Committed, Step::Asked, Step::FirstNode, Step::LastNode];
    let segments = u32::try_from(steps.len()).unwrap();
    let racks: Vec<_> = (0..segments).map(|rack| format!("r{rack}")).collect();
    let racks: Vec<_> = racks.iter().map(|rack| (rack.as_str(), NODES_OF_A_SEGMENT)).collect();
    let stage = stage("karpenter-leaders", &racks).await;
    let launch = launch(&stage);
    let mut leader = launch.start().await;
    let scene = Scene::new(stage, segments, "60s").await;
    for (done, step) in steps.into_iter().enumerate() {
        let before = done * NODES_OF_A_SEGMENT as usize;
        let requested = |status: &Status| status.reason() == "NodesRequested";
        match step {
            Step::Committed => _ = scene.statuses.until("it is committed", requested).await,
            Step::Asked => _ = until_found("a buffer", async || scene.buffers().await.len(), |left| *left > 0).await,
            Step::FirstNode => scene.nodes.until("a node", |now| now.len() > before).await,
            Step::LastNode => {
                let all = before + NODES_OF_A_SEGMENT as usize;
                let last = |now: &BTreeMap<_, Seen>| now.values().filter(|node| node.ready.is_some()).count() == all;
                scene.nodes.until("the last", last).await;
            }
        }
        leader.kill().await;
        leader = launch.start().await;
        scene.until_ready(u32::try_from(done + 1).unwrap()).await;
    }
    invariants::released_in_order(&scene.stage.pods, &scene.group);
    assert_eq!(scene.racks().into_iter().collect::<BTreeSet<_>>().len(), steps.len());
    scene.until_nothing_is_asked_for().await;
    scene.until_nodes(segments * NODES_OF_A_SEGMENT).await;
    let result = "works: the next leader goes on; no segment in part, no node too many";
    KARPENTER.record("the leader is killed: request committed, asked for, first node, last node", result);
}
