//! Segments for which no node is there.

use super::KARPENTER;
use super::world::{NODES_OF_A_SEGMENT, PODS_OF_A_NODE, Scene, add_rack, coordination, group, launch, stage};
use crate::common::prelude::*;

/// Between the moment in which the last node of a segment can take pods, and the release of its first pod.
const RELEASED_WITHIN: Duration = Duration::from_secs(2);

/// For each segment, how long after its last node its first pod was let go.
fn waits(scene: &Scene, segments: u32) -> Vec<Duration> {
    let events = scene.stage.pods.events();
    let of = |segment: u32| {
        let is_of = |pod: &Pod| pod.index / scene.group.find(&pod.role).segment == segment;
        let released = events.iter().filter(|event| event.step == Step::Released && is_of(&event.pod));
        let first = released.map(|event| event.at).min().unwrap();
        let last = scene.stage.pods.now(|now| scene.nodes.last_ready(now.all().filter(|pod| is_of(pod))));
        first.saturating_duration_since(last)
    };
    (0..segments).map(of).collect()
}

#[tokio::test]
#[ignore = "make neighbours builds karpenter"]
async fn ten_segments_come_up_from_no_node_whole_and_with_no_node_too_many() {
    let racks: Vec<_> = (0..10).map(|rack| format!("r{rack}")).collect();
    let racks: Vec<_> = racks.iter().map(|rack| (rack.as_str(), NODES_OF_A_SEGMENT)).collect();
    let stage = stage("karpenter-story", &racks).await;
    let _rolegate = launch(&stage).start().await;
    let began = Instant::now();
    let scene = Scene::new(stage, 10, "120s").await;
    scene.until_ready(10).await;
    let took = began.elapsed();
    invariants::released_in_order(&scene.stage.pods, &scene.group);
    let used: BTreeSet<_> = scene.racks().into_iter().collect();
    assert_eq!(used.len(), 10, "{used:?}");
    scene.until_nothing_is_asked_for().await;
    // What an empty node lives, twice.
    let look = async || scene.nodes.now();
    holds(Duration::from_secs(12), "no node is left over, and none is missing", look, |now| now.len() == 50).await;
    let longest = waits(&scene, 10).into_iter().max().unwrap();
    assert!(longest <= RELEASED_WITHIN, "{:?}", waits(&scene, 10));
    assert_eq!(scene.nodes.made(), 50, "as many as planned were ever made");
    KARPENTER.record(
        "ten segments of 10 + 5 pods, each in a rack, from no node",
        &format!(
            "works: 50 nodes of {PODS_OF_A_NODE} pods in {:.0} s, none left over; pods go at most {:.1} s after the last node is ready",
            took.as_secs_f64(),
            longest.as_secs_f64()
        ),
    );
}

#[tokio::test]
#[ignore = "make neighbours builds karpenter"]
async fn a_rack_that_cannot_grow_as_far_is_left_for_the_next() {
    // Of NodePools of the same weight Karpenter takes the last by name.
    let stage = stage("karpenter-next", &[("r1", NODES_OF_A_SEGMENT), ("r2", 3), ("r3", 3)]).await;
    let _rolegate = launch(&stage).start().await;
    let scene = Scene::new(stage, 1, "10s").await;
    scene.until_ready(1).await;
    assert_eq!(scene.racks(), ["karpenter-next-r1"]);
    assert!(scene.nodes.made() > 5, "others were tried");
    scene.until_nothing_is_asked_for().await;
    scene.until_nodes(NODES_OF_A_SEGMENT).await;
    KARPENTER.record("racks that cannot grow as far", "works: the next attempt leaves them out; their nodes go again");
}

#[tokio::test]
#[ignore = "make neighbours builds karpenter"]
async fn nodes_that_come_in_part_are_given_back_and_it_is_said() {
    let stage = stage("karpenter-limits", &[("r1", 4)]).await;
    let _rolegate = launch(&stage).start().await;
    let scene = Scene::new(stage, 1, "8s").await;
    scene.until_nodes(4).await;
    scene.stage.until_event("NodesMissing", &[]).await;
    scene.until_nodes(0).await;
    scene.stage.pods.now(|now| assert_eq!(now.count_all(Pod::is_held), 15, "{now}"));
    add_rack(&scene.stage, "r2", NODES_OF_A_SEGMENT);
    scene.until_ready(1).await;
    KARPENTER.record(
        "limits of NodePools that let a part come (12 of 15)",
        "no pod goes; after `deadline` the nodes are given back, `NodesMissing` says what is missing, and it is asked for again",
    );
}

#[tokio::test]
#[ignore = "make neighbours builds karpenter"]
async fn two_groups_that_want_one_rack_get_it_one_after_the_other() {
    let stage = stage("karpenter-two", &[("r1", NODES_OF_A_SEGMENT)]).await;
    let _rolegate = launch(&stage).start().await;
    let scene = Scene::new(stage, 1, "10s").await;
    let other = group("second", 1);
    scene.stage.create(coordination(&other, "10s")).await;
    scene.stage.create_sets(&other).await;
    let ready = |now: &View, group: &str| now.count_all(|pod| pod.name.starts_with(group) && pod.is_ready());
    let one_runs = |now: &View| [ready(now, "pd-"), ready(now, "second-")].contains(&15);
    scene.stage.pods.until("one of both runs", one_runs).await;
    scene.stage.pods.now(|now| assert_eq!(now.count_all(Pod::is_held), 15, "{now}"));
    add_rack(&scene.stage, "r2", NODES_OF_A_SEGMENT);
    scene.stage.pods.until("both run", |now| now.count_all(Pod::is_ready) == 30).await;
    scene.until_nothing_is_asked_for().await;
    scene.until_nodes(2 * NODES_OF_A_SEGMENT).await;
    let result = "works: one goes as a whole, the other waits for the next rack";
    KARPENTER.record("two groups that want the nodes of one rack", result);
}

#[tokio::test]
#[ignore = "make neighbours builds karpenter"]
async fn scale_in_gives_nodes_back() {
    let racks = [("r1", NODES_OF_A_SEGMENT), ("r2", NODES_OF_A_SEGMENT)];
    let stage = stage("karpenter-scale-in", &racks).await;
    let _rolegate = launch(&stage).start().await;
    let scene = Scene::new(stage, 2, "60s").await;
    scene.until_ready(2).await;
    for (role, replicas) in [("prefill", 10), ("decode", 5)] {
        scene.stage.scale_set(&scene.group, role, replicas).await;
    }
    scene.until_nodes(NODES_OF_A_SEGMENT).await;
    scene.until_nothing_is_asked_for().await;
    KARPENTER.record("scale-in by a segment", "its nodes go");
}
