//! Segments that share a rack: their pods are made when one has room for them.

use crate::common::prelude::*;
use crate::elastic::support::{Pair, SIZES, launch};
use crate::pods::support::{RACK, add_rack};

/// So many segments, each in one rack.
fn in_racks(segments: u32) -> Value {
    let sizes: Value = SIZES.iter().map(|(role, size)| ((*role).to_owned(), json!(size))).collect();
    let affinity = json!({ "strategy": "RequireSegmentAffinity", "topologyKey": RACK });
    let placement = json!({ "segmentSize": sizes, "topologyAffinity": affinity });
    json!({ "segments": segments, "coordination": [{ "name": "segments", "strategy": { "segmentPlacement": placement } }] })
}

/// No other test has nodes with it.
const POOL: &str = "example.com/pool-at-zero-of-segments";

/// Three pods of this kind fill a node.
fn a_third() -> Value {
    let requests = json!({ "requests": { "cpu": "300" } });
    json!({ "spec": { "containers": [{ "name": "main", "image": "registry.invalid/x:1", "resources": requests }] } })
}

#[tokio::test]
async fn a_segment_is_made_when_a_rack_has_room_for_it_and_until_then_it_is_told_that_none_has() {
    let stage = Stage::new("elastic-racks").await;
    add_rack(&stage, "r1", &["a"], 60).await;
    let rolegate = launch(&stage).start().await;
    let pair = Pair::create(stage, "StatefulSet", &in_racks(3), &a_third()).await;
    pair.until_told("True NoRoom: 1 of 3 segments released: no example.com/rack fits segment 2").await;
    let status = pair.statuses.until("a reason", |status| status.reason() == "NoRoom").await;
    assert_eq!(status.0["summary"]["held"], 0, "{status}");
    until_found("an Event", async || pair.scales("NoRoom").await, |count| *count > 0).await;
    pair.stage.pods.until("the first runs", |now| now.count_all(Pod::is_ready) == 3).await;
    let told = pair.stage.said(&["status", "pd"]).await;
    assert!(told.contains("segments: 3 wanted, 1 released, 1 there; no example.com/rack fits segment 2"), "{told}");
    let explained = pair.stage.said(&["explain", "group", "pd"]).await;
    assert!(explained.contains("NoRoom: no example.com/rack fits segment 2"), "{explained}");
    assert!(explained.contains("which an elastic group creates only then"), "{explained}");
    let look = async || (pair.both().await, pair.stage.pods.births().len());
    stays(Duration::from_secs(2), "no pod is made that has no room", look, ((2, 1), 3)).await;
    // One rack more is one segment more.
    add_rack(&pair.stage, "r2", &["a"], 60).await;
    pair.until_told("True NoRoom: 2 of 3 segments released: no example.com/rack fits segment 3").await;
    pair.stage.pods.until("the second runs", |now| now.count_all(Pod::is_ready) == 6).await;
    add_rack(&pair.stage, "r3", &["a"], 60).await;
    pair.until_scaled(3).await;
    pair.ratio_was_kept();
    pair.nobody_waited_for_a_turn();
    assert_eq!(pair.statuses.now().condition("Elastic"), "True AsWanted: 3 segments");
    assert_eq!(pair.stage.pods.births().len(), 9);
    rolegate.until_metric(r#"rolegate_held_groups{reason="NoRoom"}"#, 0).await;
}

mod tier2 {
    use super::*;

    /// A pool at zero: an autoscaler makes nodes for pods only that are there.
    #[tokio::test]
    async fn where_no_node_has_the_label_the_pods_of_a_segment_are_made_if_that_is_asked_for() {
        let stage = Stage::new("elastic-racks-zero").await;
        let _rolegate = launch(&stage).start().await;
        let mut spec = in_racks(1);
        spec["coordination"][0]["whenNoFit"] = json!("release");
        spec["coordination"][0]["strategy"]["segmentPlacement"]["topologyAffinity"]["topologyKey"] = json!(POOL);
        let pair = Pair::create(stage, "StatefulSet", &spec, &a_third()).await;
        pair.stage.pods.until("they wait for nodes", |now| now.count_all(Pod::is_released) == 3).await;
        pair.stage.add_node_with("a", 9, json!({ (POOL): "p" })).await;
        pair.until_scaled(1).await;
        pair.until_told("True AsWanted: 1 segment").await;
    }

    #[tokio::test]
    async fn a_segment_that_went_away_comes_back_where_there_is_room_and_a_rack_that_is_gone_makes_the_next_wait() {
        let stage = Stage::new("elastic-racks-gone").await;
        add_rack(&stage, "r1", &["a"], 60).await;
        add_rack(&stage, "r2", &["a"], 60).await;
        let _rolegate = launch(&stage).start().await;
        let pair = Pair::create(stage, "StatefulSet", &in_racks(2), &a_third()).await;
        pair.until_scaled(2).await;
        pair.scale(1).await;
        let left = pair.stage.pods.now(|now| now.all().next().unwrap().node.clone().unwrap());
        let free = if left.ends_with("r1-a") { "elastic-racks-gone-r2-a" } else { "elastic-racks-gone-r1-a" };
        pair.stage.nodes().delete(free, &DeleteParams::default()).await.unwrap();
        let before = pair.stage.pods.events().len();
        pair.want(2).await;
        pair.until_told("True NoRoom: 1 of 2 segments released").await;
        pair.want(1).await;
        pair.until_told("True AsWanted: 1 segment").await;
        pair.want(2).await;
        pair.until_told("True NoRoom: 1 of 2 segments released").await;
        let born = pair.stage.pods.events().into_iter().skip(before).filter(|event| event.step == Step::Born);
        assert_eq!(born.count(), 0);
        add_rack(&pair.stage, "r3", &["a"], 60).await;
        pair.until_scaled(2).await;
        pair.ratio_was_kept();
    }

    #[tokio::test]
    async fn deployments_wait_for_a_rack_as_well_and_follow_a_template_that_asks_for_less() {
        let stage = Stage::new("elastic-racks-less").await;
        add_rack(&stage, "r1", &["a"], 60).await;
        let _rolegate = launch(&stage).start().await;
        let too_much = json!({ "requests": { "cpu": "400" } });
        let container = |resources: &Value| json!({ "spec": { "containers": [{ "name": "main", "image": "registry.invalid/x:1", "resources": resources }] } });
        let pair = Pair::create(stage, "Deployment", &in_racks(1), &container(&too_much)).await;
        pair.until_told("True NoRoom: 0 of 1 segment released: no example.com/rack fits segment 1").await;
        assert_eq!(pair.stage.pods.births().len(), 0);
        // The prefills last: with theirs alone the segment would fit, and the decode would be rolled beside it without room.
        for (role, _) in SIZES.into_iter().rev() {
            let less = json!({ "spec": { "template": container(&json!({ "requests": { "cpu": "300" } })) } });
            pair.kubectl(&["patch", "deployment", role, "-p", &less.to_string()]).await;
        }
        pair.until_scaled(1).await;
    }
}
