use serde_json::json;

use super::tests::{Scene, domains, going, held};
use crate::model::{GroupKey, HoldReason};
use crate::plan::decide::DecisionContext;
use crate::plan::placement::line::{KEEPS_AFTER, Turn};

/// Segments of two prefills and a decode that go whole, each pod with one processor.
fn whole(segments: u32, when_no_fit: &str) -> Scene {
    let segments_of = json!({ "segmentSize": { "prefill": 2, "decode": 1 }, "progression": "Parallel", "whole": true });
    Scene::of(segments, when_no_fit, &json!({ "segmentPlacement": segments_of }))
}

#[test]
fn a_segment_goes_over_all_racks_and_only_whole() {
    let mut scene = whole(2, "").node("a", "r1", 2, false).node("b", "r2", 2, false).store();
    let seen = scene.decide(DecisionContext::default());
    assert_eq!(domains(&seen), [("0".to_owned(), "cluster".to_owned())].into());
    let names: Vec<_> = going(&seen).into_iter().map(|(name, now, _)| (name, now)).collect();
    assert_eq!(names, [("decode-0", true), ("prefill-0", true), ("prefill-1", true)]);
    assert!(going(&seen).iter().all(|(_, _, pin)| pin.len() == 1), "a node, and no rack: {:?}", going(&seen));
    let why = "segment 2 does not fit: there is room for 1 of 3 pods, short of 2 cpu";
    assert_eq!(held(&seen), [(HoldReason::NoRoom, 3, why)]);
}

#[test]
fn a_pod_that_comes_back_joins_its_segment_wherever_that_runs() {
    let seen = |others: u32| {
        let scene = whole(1, "").node("a", "r1", 2, false).node("b", "r2", 1, false).other("a", others, 9);
        let mut scene = scene.committed(&[("0", "cluster")]).went("prefill-0", Some("a")).went("decode-0", Some("b"));
        scene.decide(DecisionContext::default())
    };
    assert_eq!(going(&seen(0)), [("prefill-1", true, vec!["a"])]);
    assert_eq!(going(&seen(1)), [("prefill-1", true, vec![])], "also where there is no room for it now");
}

#[test]
fn a_segment_without_a_status_is_taken_for_one_that_went() {
    let scene = whole(1, "").node("a", "r1", 3, false);
    let mut scene = scene.went("prefill-0", None).went("decode-0", None).went("prefill-1", None);
    let seen = scene.decide(DecisionContext::default());
    assert_eq!(domains(&seen), [("0".to_owned(), "cluster".to_owned())].into());
    assert!(scene.capacity.room().nodes().all(|(_, room, _)| room.free("cpu") == 0), "its room is kept");
}

#[test]
fn a_segment_that_waits_keeps_the_cluster_from_nobody() {
    let mut scene = whole(1, "").node("a", "r1", 2, false);
    assert_eq!(held(&scene.decide(DecisionContext::default()))[0].0, HoldReason::NoRoom);
    let other = GroupKey::new("ns", "other");
    assert_eq!(scene.line.turn(&other, 0, KEEPS_AFTER * 10, 0), Turn::Now { closed: None });
}

#[test]
fn a_segment_that_is_to_go_all_the_same_goes_in_part() {
    let mut scene = whole(1, "release").node("a", "r1", 2, false).store();
    let seen = scene.decide(DecisionContext::default());
    assert!(going(&seen).iter().all(|(_, now, pin)| *now && pin.is_empty()), "{:?}", going(&seen));
    assert_eq!(held(&seen), []);
}
