//! What holds of every placement: it is one that the nodes have room for, and no two are together that may not be; where the search
//! says that there is none, trying every way finds none either; and the room kept event by event is the room that a fresh count
//! finds.

use std::sync::Arc;

use rolegate::api::Node;
use rolegate::api::scheduling::SchedulingPod;
use rolegate::plan::placement::{Fit, Needs, Question, Room, place};

use crate::build::{self, typed};
use crate::prelude::*;
use crate::tried;

const RACK: &str = "rack";
const HOST: &str = "kubernetes.io/hostname";
/// Runs across the racks.
const ROW: &str = "row";
const KEYS: [&str; 2] = [HOST, ROW];
const DEVICE: &str = "example.com/device";

/// A node: its rack, its row (none for the last), and the processors, devices and pods that it has room for.
type NodeShape = (u8, u8, [i64; 3]);

/// A pod: its app, the processors and devices that it asks for, and the constraints that it has, each with the position of its key
/// and the app that it is about.
#[derive(Clone, Debug, PartialEq)]
struct PodShape {
    app: u8,
    asks: [i64; 2],
    apart: Option<(usize, u8)>,
    spread: Option<Spread>,
    /// It goes only to nodes of even number.
    even: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Spread {
    key: usize,
    app: u8,
    skew: usize,
    least: usize,
    any_node: bool,
}

fn node(number: usize, (rack, row, [cpu, devices, pods]): NodeShape) -> Node {
    let even = number.is_multiple_of(2).to_string();
    let mut labels = json!({ RACK: format!("r{rack}"), HOST: format!("n{number}"), "even": even });
    if row < 2 {
        labels[ROW] = row.to_string().into();
    }
    let room = json!({ "cpu": cpu.to_string(), DEVICE: devices.to_string(), "pods": pods.to_string() });
    typed(build::node(&format!("n{number}"), &labels, &room))
}

fn needs(shape: &PodShape, at: Option<usize>) -> Arc<Needs> {
    let about = |app: u8| json!({ "matchLabels": { "app": app.to_string() } });
    let apart = shape.apart.map(|(key, app)| json!([{ "topologyKey": KEYS[key], "labelSelector": about(app) }]));
    let spread = shape.spread.map(|spread| {
        json!([{
            "topologyKey": KEYS[spread.key], "maxSkew": spread.skew, "minDomains": spread.least,
            "whenUnsatisfiable": "DoNotSchedule", "labelSelector": about(spread.app),
            "nodeAffinityPolicy": if spread.any_node { "Ignore" } else { "Honor" },
        }])
    });
    let [cpu, devices] = shape.asks;
    let more = json!({
        "metadata": { "labels": { "app": shape.app.to_string() } },
        "spec": {
            "nodeName": at.map(|at| format!("n{at}")),
            "nodeSelector": if shape.even { json!({ "even": "true" }) } else { json!({}) },
            "affinity": { "podAntiAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": apart } },
            "topologySpreadConstraints": spread,
        },
    });
    let pod: SchedulingPod = typed(build::with(build::pod("p", false, &json!({ "cpu": cpu, DEVICE: devices })), &more));
    Arc::new(Needs::of(&pod).unwrap())
}

/// The domain of a node, by the position of the key.
fn domain(nodes: &[NodeShape], key: usize, at: usize) -> Option<usize> {
    let row = nodes[at].1;
    if KEYS[key] == HOST { Some(at) } else { (row < 2).then_some(usize::from(row)) }
}

/// True when every node has room for what is on it.
fn has_room<'a>(nodes: &[NodeShape], all: impl Iterator<Item = &'a (PodShape, usize)>) -> bool {
    let mut left: Vec<_> = nodes.iter().map(|(.., room)| *room).collect();
    for (pod, at) in all {
        let [cpu, devices] = pod.asks;
        left[*at].iter_mut().zip([cpu, devices, 1]).for_each(|(left, taken)| *left -= taken);
    }
    left.iter().flatten().all(|left| *left >= 0)
}

fn selects(nodes: &[NodeShape], rack: u8, pod: &PodShape, at: usize) -> bool {
    nodes[at].0 == rack && (!pod.even || at.is_multiple_of(2))
}

/// True when nothing is where it may not be.
fn holds(nodes: &[NodeShape], rack: u8, there: &[(PodShape, usize)], placed: &[(PodShape, usize)]) -> bool {
    let all: Vec<_> = there.iter().chain(placed).collect();
    let selects = |pod: &PodShape, at: usize| selects(nodes, rack, pod, at);
    let together = |(first, second): (usize, usize)| {
        let ((one, one_at), (other, other_at)) = (all[first], all[second]);
        one.apart.is_some_and(|(key, app)| {
            let own = domain(nodes, key, *one_at);
            other.app == app && own.is_some() && own == domain(nodes, key, *other_at)
        })
    };
    // Those that were there before are nobody's fault.
    let new = |(first, second): &(usize, usize)| first != second && (*first >= there.len() || *second >= there.len());
    let mut pairs = (0..all.len()).flat_map(|one| (0..all.len()).map(move |other| (one, other))).filter(new);
    let is_spread = |(pod, at): &(PodShape, usize)| {
        pod.spread.is_none_or(|spread| {
            let counts = |node: usize| spread.any_node || selects(pod, node);
            let domains: BTreeSet<_> = (0..nodes.len())
                .filter(|node| counts(*node))
                .filter_map(|node| domain(nodes, spread.key, node))
                .collect();
            let count = |of: usize| {
                let in_it = |node: usize| counts(node) && domain(nodes, spread.key, node) == Some(of);
                all.iter().filter(|(other, node)| other.app == spread.app && in_it(*node)).count()
            };
            let fewest =
                if domains.len() < spread.least { 0 } else { domains.iter().map(|of| count(*of)).min().unwrap_or(0) };
            domain(nodes, spread.key, *at).is_some_and(|own| count(own) <= fewest + spread.skew)
        })
    };
    // A node that was full before stays so; one that a placed pod is on has room.
    let of_placed = |at: &usize| placed.iter().any(|(_, placed)| placed == at);
    placed.iter().all(|(pod, at)| selects(pod, *at))
        && has_room(nodes, all.iter().copied().filter(|(_, at)| of_placed(at)))
        && !pairs.any(together)
        && placed.iter().all(is_spread)
}

/// Tries every node for every pod.
fn fits_somehow(
    nodes: &[NodeShape],
    rack: u8,
    there: &[(PodShape, usize)],
    pods: &[PodShape],
    placed: &mut Vec<(PodShape, usize)>,
) -> bool {
    let Some(pod) = pods.get(placed.len()) else { return holds(nodes, rack, there, placed) };
    (0..nodes.len()).filter(|at| selects(nodes, rack, pod, *at)).any(|at| {
        placed.push((pod.clone(), at));
        let found = has_room(nodes, placed.iter()) && fits_somehow(nodes, rack, there, pods, placed);
        placed.pop();
        found
    })
}

/// A placement of pods beside those that are there is one that holds, and where there is none, trying finds none.
fn is_placed(nodes: &[NodeShape], there: &[(PodShape, usize)], pods: &[PodShape]) -> Result<(), TestCaseError> {
    let mut room = Room::default();
    for (number, shape) in nodes.iter().enumerate() {
        room.apply_node(&node(number, *shape)).unwrap();
    }
    for (number, (shape, at)) in there.iter().enumerate() {
        let needs = needs(shape, Some(*at));
        room.apply_pod(&number.to_string(), &format!("n{at}"), needs.load.clone(), &needs.peer);
    }
    let asked: Vec<_> = pods.iter().map(|shape| needs(shape, None)).collect();
    match place(&room, &Question::new(&asked, Some(RACK), &BTreeMap::new())) {
        Fit::Fits(placement) => {
            let rack: u8 = placement.domain.unwrap()[1..].parse().unwrap();
            let at = |name: &Arc<str>| name[1..].parse::<usize>().unwrap();
            let placed: Vec<_> = pods.iter().cloned().zip(placement.nodes.iter().map(at)).collect();
            prop_assert_eq!(placed.len(), pods.len());
            prop_assert!(holds(nodes, rack, there, &placed), "{:?}", placed);
        }
        Fit::Not(no_fit) => {
            prop_assert!(!no_fit.bounded, "such small ones are searched to their end");
            for rack in 0..2 {
                prop_assert!(!fits_somehow(nodes, rack, there, pods, &mut Vec::new()), "r{} holds them", rack);
            }
            let is_plain = there.is_empty() && pods.iter().all(|pod| pod.apart.is_none() && pod.spread.is_none());
            prop_assert!(no_fit.best.map_or(!is_plain, |best| best.fits < best.of));
        }
    }
    Ok(())
}

/// Nodes and pods that have resources alone.
fn plain_node() -> impl Strategy<Value = NodeShape> {
    (0..2_u8, 0..12_i64, 0..9_i64).prop_map(|(rack, cpu, devices)| (rack, 2, [cpu, devices, 6]))
}

fn plain_pod() -> impl Strategy<Value = PodShape> {
    let devices = prop_oneof![Just(0), Just(1), Just(2), Just(4)];
    let pod = |(cpu, devices, even)| PodShape { app: 0, asks: [cpu, devices], apart: None, spread: None, even };
    (1..7_i64, devices, any::<bool>()).prop_map(pod)
}

/// Nodes and pods that are apart or spread, and of which nodes take a few.
fn apart_node() -> impl Strategy<Value = NodeShape> {
    (0..2_u8, prop_oneof![4 => 0..2_u8, 1 => Just(2)], 1..4_i64).prop_map(|(rack, row, pods)| (rack, row, [0, 0, pods]))
}

fn apart_pod() -> impl Strategy<Value = PodShape> {
    let apart = prop::option::weighted(0.4, (0..2_usize, 0..2_u8));
    let spread = (0..2_usize, 0..2_u8, 1..3_usize, 1..4_usize, any::<bool>())
        .prop_map(|(key, app, skew, least, any_node)| Spread { key, app, skew, least, any_node });
    (0..2_u8, apart, prop::option::weighted(0.4, spread), prop::bool::weighted(0.2))
        .prop_map(|(app, apart, spread, even)| PodShape { app, asks: [0, 0], apart, spread, even })
}

/// Some of each of these.
fn several(pod: impl Strategy<Value = PodShape>, most: usize) -> impl Strategy<Value = Vec<PodShape>> {
    prop::collection::vec((pod, 1..4_usize), 1..4).prop_map(move |shapes| {
        shapes.iter().flat_map(|(shape, count)| vec![shape.clone(); *count]).take(most).collect()
    })
}

proptest! {
    #![proptest_config(tried(1500))]

    #[test]
    fn a_placement_has_room_and_none_means_none(
        nodes in prop::collection::vec(plain_node(), 1..5), pods in several(plain_pod(), 7),
    ) {
        is_placed(&nodes, &[], &pods)?;
    }
}

proptest! {
    #![proptest_config(tried(2500))]

    #[test]
    fn no_two_are_together_that_may_not_be_and_none_means_none(
        nodes in prop::collection::vec(apart_node(), 1..6),
        there in prop::collection::vec((apart_pod(), 0..6_usize), 0..3),
        pods in several(apart_pod(), 5),
    ) {
        let there: Vec<_> = there.into_iter().filter(|(_, at)| *at < nodes.len()).collect();
        is_placed(&nodes, &there, &pods)?;
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
        (0..4_usize, plain_node()).prop_map(|(number, shape)| Event::Node(number, shape)),
        (0..4_usize).prop_map(Event::NoNode),
        (0..8_usize, 0..4_usize, plain_pod()).prop_map(|(pod, node, shape)| Event::Pod(pod, node, shape)),
        (0..8_usize).prop_map(Event::NoPod),
    ]
}

proptest! {
    #![proptest_config(tried(400))]

    #[test]
    fn the_room_kept_event_by_event_is_the_room_of_a_fresh_count(events in prop::collection::vec(event(), 0..60)) {
        let (mut kept, mut nodes, mut pods) = (Room::default(), BTreeMap::new(), BTreeMap::new());
        let put = |room: &mut Room, pod: usize, at: usize, shape: &PodShape| {
            room.apply_pod(&pod.to_string(), &format!("n{at}"), needs(shape, None).load.clone(), &Arc::default());
        };
        for event in events {
            match event {
                Event::Node(number, shape) => {
                    kept.apply_node(&node(number, shape)).unwrap();
                    nodes.insert(number, shape);
                }
                Event::NoNode(number) => {
                    kept.remove_node(&format!("n{number}"));
                    nodes.remove(&number);
                }
                Event::Pod(pod, at, shape) => {
                    put(&mut kept, pod, at, &shape);
                    pods.insert(pod, (at, shape));
                }
                Event::NoPod(pod) => {
                    kept.remove_pod(&pod.to_string());
                    pods.remove(&pod);
                }
            }
            let mut fresh = Room::default();
            nodes.iter().for_each(|(number, shape)| _ = fresh.apply_node(&node(*number, *shape)).unwrap());
            pods.iter().for_each(|(pod, (at, shape))| put(&mut fresh, *pod, *at, shape));
            prop_assert_eq!(&kept, &fresh);
        }
    }
}
