//! What holds of every placement: it is one that the nodes have room for; where the search says that there is none, trying
//! every way finds none either; and the room kept event by event is the room that a fresh count finds.

use std::sync::Arc;

use rolegate::api::Node;
use rolegate::api::scheduling::SchedulingPod;
use rolegate::plan::placement::{Fit, Needs, Question, Room, place};

use crate::prelude::*;
use crate::tried;

const RACK: &str = "rack";

/// A node: its rack, processors and devices.
type NodeShape = (u8, i64, i64);
/// A pod: processors and devices that it asks for, and whether it goes only to nodes of even number.
type PodShape = (i64, i64, bool);

fn node(number: usize, (rack, cpu, devices): NodeShape) -> Node {
    serde_json::from_value(json!({
        "metadata": { "name": format!("node-{number}"), "labels": { RACK: format!("r{rack}"), "even": number.is_multiple_of(2).to_string() } },
        "status": {
            "allocatable": { "cpu": cpu.to_string(), "pods": "6", "example.com/device": devices.to_string() },
            "conditions": [{ "type": "Ready", "status": "True" }],
        },
    }))
    .unwrap()
}

fn needs((cpu, devices, even): PodShape) -> Arc<Needs> {
    let selector = if even { json!({ "even": "true" }) } else { json!({}) };
    let pod: SchedulingPod = serde_json::from_value(json!({ "spec": {
        "nodeSelector": selector,
        "containers": [{ "resources": { "requests": { "cpu": cpu, "example.com/device": devices } } }],
    }}))
    .unwrap();
    Arc::new(Needs::of(&pod).unwrap())
}

/// What is left of each node: processors, devices, pods.
fn left(nodes: &[NodeShape], placed: &[(PodShape, usize)]) -> Vec<[i64; 3]> {
    let mut left: Vec<_> = nodes.iter().map(|(_, cpu, devices)| [*cpu, *devices, 6]).collect();
    for ((cpu, devices, _), at) in placed {
        left[*at][0] -= cpu;
        left[*at][1] -= devices;
        left[*at][2] -= 1;
    }
    left
}

/// Tries every node for every pod.
fn fits_somehow(nodes: &[NodeShape], rack: u8, pods: &[PodShape], placed: &mut Vec<(PodShape, usize)>) -> bool {
    let Some((pod, rest)) = pods.split_first() else { return true };
    for (at, shape) in nodes.iter().enumerate() {
        if shape.0 != rack || (pod.2 && !at.is_multiple_of(2)) {
            continue;
        }
        placed.push((*pod, at));
        let holds = left(nodes, placed)[at].iter().all(|left| *left >= 0);
        if holds && fits_somehow(nodes, rack, rest, placed) {
            return true;
        }
        placed.pop();
    }
    false
}

fn node_shape() -> impl Strategy<Value = NodeShape> {
    (0..2_u8, 0..12_i64, 0..9_i64)
}

fn pod_shape() -> impl Strategy<Value = PodShape> {
    (1..7_i64, prop_oneof![Just(0), Just(1), Just(2), Just(4)], any::<bool>())
}

proptest! {
    #![proptest_config(tried(1500))]

    #[test]
    fn a_placement_has_room_and_none_means_none(
        nodes in prop::collection::vec(node_shape(), 1..5),
        shapes in prop::collection::vec((pod_shape(), 1..4_usize), 1..4),
    ) {
        let pods: Vec<PodShape> = shapes.iter().flat_map(|(shape, count)| vec![*shape; *count]).take(7).collect();
        let mut room = Room::default();
        for (number, shape) in nodes.iter().enumerate() {
            room.apply_node(&node(number, *shape)).unwrap();
        }
        let asked: Vec<_> = pods.iter().map(|shape| needs(*shape)).collect();
        match place(&room, &Question::new(&asked, Some(RACK), &BTreeMap::new())) {
            Fit::Fits(placement) => {
                let rack = placement.domain.unwrap();
                let at = |name: &Arc<str>| name.strip_prefix("node-").unwrap().parse::<usize>().unwrap();
                let placed: Vec<_> = pods.iter().copied().zip(placement.nodes.iter().map(at)).collect();
                prop_assert_eq!(placed.len(), pods.len());
                prop_assert!(left(&nodes, &placed).iter().flatten().all(|left| *left >= 0), "{:?}", placed);
                for ((_, _, even), at) in placed {
                    prop_assert_eq!(format!("r{}", nodes[at].0), rack.clone());
                    prop_assert!(!even || at.is_multiple_of(2));
                }
            }
            Fit::Not(no_fit) => {
                prop_assert!(!no_fit.bounded, "such small ones are searched to their end");
                for rack in 0..2 {
                    prop_assert!(!fits_somehow(&nodes, rack, &pods, &mut Vec::new()), "r{} holds them", rack);
                }
                let best = no_fit.best.unwrap();
                prop_assert!(best.fits < best.of);
            }
        }
    }
}

/// Something that the watches tell.
#[derive(Clone, Debug)]
enum Event {
    Node(usize, NodeShape),
    NoNode(usize),
    Pod(usize, usize, PodShape),
    NoPod(usize),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        (0..4_usize, node_shape()).prop_map(|(number, shape)| Event::Node(number, shape)),
        (0..4_usize).prop_map(Event::NoNode),
        (0..8_usize, 0..4_usize, pod_shape()).prop_map(|(pod, node, shape)| Event::Pod(pod, node, shape)),
        (0..8_usize).prop_map(Event::NoPod),
    ]
}

proptest! {
    #![proptest_config(tried(400))]

    #[test]
    fn the_room_kept_event_by_event_is_the_room_of_a_fresh_count(events in prop::collection::vec(event(), 0..60)) {
        let (mut kept, mut nodes, mut pods) = (Room::default(), BTreeMap::new(), BTreeMap::new());
        for event in events {
            match event {
                Event::Node(number, shape) => {
                    kept.apply_node(&node(number, shape)).unwrap();
                    nodes.insert(number, shape);
                }
                Event::NoNode(number) => {
                    kept.remove_node(&format!("node-{number}"));
                    nodes.remove(&number);
                }
                Event::Pod(pod, at, shape) => {
                    kept.apply_pod(&pod.to_string(), &format!("node-{at}"), needs(shape).load.clone(), &Arc::default());
                    pods.insert(pod, (at, shape));
                }
                Event::NoPod(pod) => {
                    kept.remove_pod(&pod.to_string());
                    pods.remove(&pod);
                }
            }
            let mut fresh = Room::default();
            nodes.iter().for_each(|(number, shape)| _ = fresh.apply_node(&node(*number, *shape)).unwrap());
            for (pod, (at, shape)) in &pods {
                fresh.apply_pod(&pod.to_string(), &format!("node-{at}"), needs(*shape).load.clone(), &Arc::default());
            }
            prop_assert_eq!(&kept, &fresh);
        }
    }
}
