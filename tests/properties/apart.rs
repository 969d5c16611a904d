//! What holds of placements of pods that keep away from others, or are spread: no two are together that may not be, and where
//! the search says that there is none, trying every way finds none either.

use std::sync::Arc;

use rolegate::api::Node;
use rolegate::api::scheduling::SchedulingPod;
use rolegate::plan::placement::{Fit, Needs, Question, Room, place};

use crate::prelude::*;
use crate::tried;

const RACK: &str = "rack";
const HOST: &str = "kubernetes.io/hostname";
/// Runs across the racks.
const ROW: &str = "row";
const KEYS: [&str; 2] = [HOST, ROW];

/// A node: its rack, its row (none for the last) and how many pods it takes.
type NodeShape = (u8, u8, i64);

/// A pod: its app, and the constraints that it has, each with the position of its key and the app that it is about.
#[derive(Clone, Debug, PartialEq)]
struct PodShape {
    app: u8,
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

fn node(number: usize, (rack, row, pods): NodeShape) -> Node {
    let mut node = json!({
        "metadata": { "name": format!("n{number}"), "labels": {
            RACK: format!("r{rack}"), HOST: format!("n{number}"), "even": number.is_multiple_of(2).to_string() } },
        "status": { "allocatable": { "pods": pods.to_string() }, "conditions": [{ "type": "Ready", "status": "True" }] },
    });
    if row < 2 {
        node["metadata"]["labels"][ROW] = row.to_string().into();
    }
    serde_json::from_value(node).unwrap()
}

fn needs(shape: &PodShape, at: Option<usize>) -> (SchedulingPod, Arc<Needs>) {
    let about = |app: u8| json!({ "matchLabels": { "app": app.to_string() } });
    let apart = shape.apart.map(|(key, app)| json!({ "topologyKey": KEYS[key], "labelSelector": about(app) }));
    let spread = shape.spread.map(|spread| {
        json!({
            "topologyKey": KEYS[spread.key], "maxSkew": spread.skew, "minDomains": spread.least,
            "whenUnsatisfiable": "DoNotSchedule", "labelSelector": about(spread.app),
            "nodeAffinityPolicy": if spread.any_node { "Ignore" } else { "Honor" },
        })
    });
    let pod: SchedulingPod = serde_json::from_value(json!({
        "metadata": { "namespace": "ns", "labels": { "app": shape.app.to_string() } },
        "spec": {
            "nodeName": at.map(|at| format!("n{at}")),
            "nodeSelector": if shape.even { json!({ "even": "true" }) } else { json!({}) },
            "affinity": { "podAntiAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": apart.map_or(Value::Null, |term| json!([term])) } },
            "topologySpreadConstraints": spread.map_or(Value::Null, |spread| json!([spread])),
        },
    }))
    .unwrap();
    let needs = Arc::new(Needs::of(&pod).unwrap());
    (pod, needs)
}

/// The domain of a node, by the position of the key.
fn domain(nodes: &[NodeShape], key: usize, at: usize) -> Option<usize> {
    let row = nodes[at].1;
    if KEYS[key] == HOST { Some(at) } else { (row < 2).then_some(usize::from(row)) }
}

/// True when nothing is where it may not be.
fn holds(nodes: &[NodeShape], rack: u8, there: &[(PodShape, usize)], placed: &[(PodShape, usize)]) -> bool {
    let all: Vec<_> = there.iter().chain(placed).collect();
    let has_room = |at: usize| {
        let pods = all.iter().filter(|(_, node)| *node == at).count();
        i64::try_from(pods).unwrap() <= nodes[at].2
    };
    let selects = |pod: &PodShape, at: usize| nodes[at].0 == rack && (!pod.even || at.is_multiple_of(2));
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
    placed.iter().all(|(pod, at)| selects(pod, *at) && has_room(*at))
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
    (0..nodes.len()).filter(|at| nodes[*at].0 == rack).any(|at| {
        placed.push((pod.clone(), at));
        let found = fits_somehow(nodes, rack, there, pods, placed);
        placed.pop();
        found
    })
}

fn node_shape() -> impl Strategy<Value = NodeShape> {
    (0..2_u8, prop_oneof![4 => 0..2_u8, 1 => Just(2)], 1..4_i64)
}

fn pod_shape() -> impl Strategy<Value = PodShape> {
    let apart = prop::option::weighted(0.4, (0..2_usize, 0..2_u8));
    let spread = prop::option::weighted(0.4, (0..2_usize, 0..2_u8, 1..3_usize, 1..4_usize, any::<bool>()));
    (0..2_u8, apart, spread, prop::bool::weighted(0.2)).prop_map(|(app, apart, spread, even)| PodShape {
        app,
        apart,
        spread: spread.map(|(key, app, skew, least, any_node)| Spread { key, app, skew, least, any_node }),
        even,
    })
}

proptest! {
    #![proptest_config(tried(2500))]

    #[test]
    fn no_two_are_together_that_may_not_be_and_none_means_none(
        nodes in prop::collection::vec(node_shape(), 1..6),
        there in prop::collection::vec((pod_shape(), 0..6_usize), 0..3),
        shapes in prop::collection::vec((pod_shape(), 1..4_usize), 1..4),
    ) {
        let pods: Vec<PodShape> = shapes.iter().flat_map(|(shape, count)| vec![shape.clone(); *count]).take(5).collect();
        let there: Vec<_> = there.into_iter().filter(|(_, at)| *at < nodes.len()).collect();
        let mut room = Room::default();
        for (number, shape) in nodes.iter().enumerate() {
            room.apply_node(&node(number, *shape)).unwrap();
        }
        for (number, (shape, at)) in there.iter().enumerate() {
            let (_, needs) = needs(shape, Some(*at));
            room.apply_pod(&number.to_string(), &format!("n{at}"), needs.load.clone(), &needs.peer);
        }
        let asked: Vec<_> = pods.iter().map(|shape| needs(shape, None).1).collect();
        match place(&room, &Question::new(&asked, Some(RACK), &BTreeMap::new())) {
            Fit::Fits(placement) => {
                let rack: u8 = placement.domain.unwrap()[1..].parse().unwrap();
                let at = |name: &Arc<str>| name[1..].parse::<usize>().unwrap();
                let placed: Vec<_> = pods.iter().cloned().zip(placement.nodes.iter().map(at)).collect();
                prop_assert_eq!(placed.len(), pods.len());
                prop_assert!(holds(&nodes, rack, &there, &placed), "{:?}", placed);
            }
            Fit::Not(no_fit) => {
                prop_assert!(!no_fit.bounded, "such small ones are searched to their end");
                for rack in 0..2 {
                    prop_assert!(!fits_somehow(&nodes, rack, &there, &pods, &mut Vec::new()), "r{} holds them", rack);
                }
            }
        }
    }
}
