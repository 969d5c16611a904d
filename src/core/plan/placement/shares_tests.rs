//! Nested domains: single cases, and a comparison with an exhaustive search.

use serde_json::json;

use super::*;
use crate::api::Node;
use crate::api::scheduling::SchedulingPod;
use crate::build::{self, typed};

const BLOCK: &str = "block";
const RACK: &str = "rack";
const GPU: &str = "nvidia.com/gpu";

fn gpus(count: u32) -> Arc<Needs> {
    let container = json!({ "resources": { "requests": { GPU: count.to_string() } } });
    let pod: SchedulingPod = serde_json::from_value(json!({ "spec": { "containers": [container] } })).unwrap();
    Arc::new(Needs::of(&pod).unwrap())
}

/// Returns nodes with this name, block, rack and number of devices.
fn room(nodes: &[(&str, &str, &str, u32)]) -> Room {
    let mut room = Room::default();
    for (name, block, rack, gpus) in nodes {
        let labels = json!({ BLOCK: block, RACK: rack });
        let node: Node = typed(build::node(name, &labels, &json!({ "pods": "110", GPU: gpus.to_string() })));
        room.apply_node(&node).unwrap();
    }
    room
}

fn share(key: &str, parts: &[usize]) -> Share {
    Share { key: key.to_owned(), parts: parts.to_vec(), required: true, fixed: None, hint: None }
}

fn preferred(key: &str, parts: &[usize]) -> Share {
    Share { required: false, ..share(key, parts) }
}

fn place(room: &Room, parts: &[Vec<Arc<Needs>>], shares: &[Share]) -> Result<Shared, NotShared> {
    place_shared(room, parts, shares, &[])
}

fn domains(found: &Shared) -> Vec<&str> {
    found.domains.iter().map(|domain| domain.as_deref().unwrap_or("-")).collect()
}

/// Returns two blocks of two racks with one node each.
fn two_blocks(gpus: [u32; 4]) -> Room {
    let [a, b, c, d] = gpus;
    room(&[("a", "b1", "r1", a), ("b", "b1", "r2", b), ("c", "b2", "r3", c), ("d", "b2", "r4", d)])
}

#[test]
fn racks_are_found_within_one_block() {
    // Each part fits into r1 as well; only the second block holds both.
    let room = two_blocks([8, 2, 5, 6]);
    let parts = [vec![gpus(1); 5], vec![gpus(1); 6]];
    let shares = [share(RACK, &[0]), share(RACK, &[1]), share(BLOCK, &[0, 1])];
    let found = place(&room, &parts, &shares).unwrap();
    assert_eq!(domains(&found), ["r3", "r4", "b2"]);
    assert!(found.nodes[0].iter().all(|node| &**node == "c") && found.nodes[1].len() == 6);
}

#[test]
fn a_choice_that_leaves_no_room_for_the_next_part_is_taken_back() {
    // The first part fits best where the second part has its only place.
    let room = two_blocks([4, 0, 9, 0]);
    let parts = [vec![gpus(4)], vec![gpus(2), gpus(2)]];
    let first = [share(RACK, &[0]), share(RACK, &[1])];
    assert_eq!(domains(&place(&room, &parts, &first).unwrap()), ["r1", "r3"]);
    let bound = [first[0].clone(), Share { fixed: Some("r1".to_owned()), ..share(RACK, &[1]) }];
    assert_eq!(domains(&place(&room, &parts, &bound).unwrap()), ["r3", "r1"]);
}

#[test]
fn what_is_preferred_gives_way_and_what_is_required_does_not() {
    let room = two_blocks([4, 4, 2, 2]);
    let parts = [vec![gpus(1); 6]];
    let both = [share(BLOCK, &[0]), preferred(RACK, &[0])];
    assert_eq!(domains(&place(&room, &parts, &both).unwrap()), ["b1", "-"]);
    let fewer = [vec![gpus(1); 4]];
    let found = place(&room, &fewer, &both).unwrap();
    assert!(["r1", "r2"].contains(&domains(&found)[1]), "one rack of {found:?}");
    assert_eq!(place(&room, &parts, &[share(RACK, &[0])]), Err(NotShared { bounded: false }));
}

#[test]
fn sets_may_cross_what_is_above_them() {
    // Parts 0 and 1 share a block, parts 1 and 2 a rack.
    let room = two_blocks([3, 1, 1, 9]);
    let parts = [vec![gpus(1)], vec![gpus(1); 2], vec![gpus(1); 3]];
    let found = place(&room, &parts, &[share(BLOCK, &[0, 1]), share(RACK, &[1, 2])]).unwrap();
    assert_eq!(domains(&found), ["b2", "r4"]);
}

#[test]
fn parts_that_share_nothing_go_anywhere_and_none_goes_when_one_does_not_fit() {
    let room = two_blocks([1, 1, 1, 1]);
    let found = place(&room, &[vec![gpus(1); 4], Vec::new()], &[share(RACK, &[1])]).unwrap();
    assert_eq!((found.nodes[0].len(), domains(&found)), (4, vec!["-"]));
    assert!(place(&room, &[vec![gpus(1); 4], vec![gpus(1)]], &[]).is_err());
}

#[test]
fn the_hint_goes_before_the_best_fit() {
    let room = two_blocks([2, 4, 0, 0]);
    let hinted = [Share { hint: Some("r2".to_owned()), ..share(RACK, &[0]) }];
    assert_eq!(domains(&place(&room, &[vec![gpus(1)]], &hinted).unwrap()), ["r2"]);
}

#[test]
fn what_is_kept_for_others_is_not_taken() {
    let room = two_blocks([4, 0, 0, 8]);
    let found =
        place_shared(&room, &[vec![gpus(1)]], &[share(RACK, &[0])], &[Arc::new((RACK.to_owned(), "r1".to_owned()))])
            .unwrap();
    assert_eq!(domains(&found), ["r4"]);
}
