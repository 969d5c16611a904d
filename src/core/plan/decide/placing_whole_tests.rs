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

/// Segments of two coordinations that share the prefills: with a decode and with a router.
fn two_of_one_role(second: &serde_json::Value) -> Scene {
    let of = |sizes: serde_json::Value| json!({ "segmentSize": sizes, "progression": "Parallel", "whole": true });
    let first = json!({ "segmentPlacement": of(json!({ "prefill": 2, "decode": 1 })) });
    let mut shared = of(json!({ "prefill": 2, "router": 1 }));
    json_patch::merge(&mut shared, second);
    Scene::with_routers(1, &first, &json!({ "segmentPlacement": shared }))
}

#[test]
fn segments_of_several_coordinations_over_one_role_go_when_there_is_room_for_all() {
    for second in
        [json!({}), json!({ "topologyAffinity": { "topologyKey": "rack", "strategy": "RequireSegmentAffinity" } })]
    {
        let mut scene = two_of_one_role(&second).node("a", "r1", 3, false).store();
        let seen = scene.decide(DecisionContext::default());
        assert_eq!(going(&seen), [], "{second}");
        let reasons: Vec<_> = held(&seen).into_iter().map(|(reason, pods, _)| (reason, pods)).collect();
        // Pods that share a rack are placed first.
        let without = if second == json!({}) { 3 } else { 1 };
        let expected = [(HoldReason::NoRoom, without), (HoldReason::BlockedByCoordination, 4 - without)];
        assert_eq!(reasons, expected, "{second}");
        assert!(
            scene.capacity.room().nodes().all(|(_, room, _)| room.free("cpu") == 3000),
            "the room is free for others"
        );
        let domains = seen.status.coordination_state.iter().map(|state| state.domains.len()).sum::<usize>();
        let released = |role: &str| seen.decision.released[role];
        assert_eq!((domains, released("prefill"), released("decode"), released("router")), (0, 0, 0, 0));
        let mut scene = two_of_one_role(&second).node("a", "r1", 4, false).store();
        let seen = scene.decide(DecisionContext::default());
        assert_eq!((going(&seen).len(), held(&seen)), (4, vec![]), "{second}");
    }
}

/// The first coordination alone would put the decode where only the router fits.
#[test]
fn room_is_asked_for_all_coordinations_of_the_pods_together() {
    let scene = two_of_one_role(&json!({})).node("a", "r1", 1, false).node("b", "r2", 3, false);
    let mut scene = scene.asking_of("router-0", &json!({ "nodeSelector": { "rack": "r1" } })).store();
    assert_eq!(going(&scene.decide(DecisionContext::default())).len(), 4);
}
