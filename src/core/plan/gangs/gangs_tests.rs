//! The examples and stories of the hierarchical PodGroup, on nodes in racks and blocks.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::api::scheduling::SchedulingPod;
use crate::api::{Node, PodGroup};
use crate::build::{self, typed, with};
use crate::model::{Dialect, GangTree, GroupKey, HoldReason, Placement};
use crate::plan::placement::Capacity;
use crate::plan::view::PodRef;

const GPU: &str = "nvidia.com/gpu";
/// All pods of example 3.
const THREE: [(&str, u32); 3] = [("replica-1", 3), ("replica-2", 3), ("replica-3", 3)];

/// A PodGroup, its pods and nodes; released pods are bound to their place.
struct World {
    spec: Value,
    placement: Placement,
    capacity: Capacity,
    pods: Vec<TreePod>,
}

impl World {
    /// Returns two blocks of two racks of two nodes; `gpus` holds the devices on each node by rack.
    fn new(spec: Value, gpus: [u32; 4]) -> Self {
        let mut world = Self { spec, placement: Placement::default(), capacity: Capacity::default(), pods: Vec::new() };
        for (rack, gpus) in gpus.iter().enumerate() {
            for at in 0..2 {
                world.node(&format!("n{rack}{at}"), &format!("b{}", rack / 2), &format!("r{rack}"), *gpus);
            }
        }
        world
    }

    /// Returns such a world for one of the examples of the design, with so many pods of each leaf.
    fn of(number: usize, gpus: [u32; 4], pods: &[(&str, u32)]) -> Self {
        let mut world = Self::new(example(number), gpus);
        pods.iter().for_each(|(leaf, count)| world.make(leaf, 0, *count));
        world
    }

    /// Returns such a world for example 1, in which all go.
    fn running_1(gpus: [u32; 4]) -> Self {
        let mut world = Self::of(1, gpus, &[("decode", 4), ("prefill", 1)]);
        assert_eq!(world.go(), []);
        world
    }

    fn node(&mut self, name: &str, block: &str, rack: &str, gpus: u32) {
        let labels = json!({ "block": block, "rack": rack, "kubernetes.io/hostname": name });
        let node: Node = typed(build::node(name, &labels, &json!({ "pods": "110", GPU: gpus.to_string() })));
        self.capacity.apply_node(&node).unwrap();
    }

    fn object(name: &str, node: Option<&str>) -> SchedulingPod {
        let labels = json!({ "rolegate.dev/pod-group": "job" });
        let metadata = json!({ "labels": labels, "annotations": { "pod-group-name": "job" } });
        let more = json!({ "metadata": metadata, "spec": { "nodeName": node } });
        typed(with(build::pod(name, node.is_none(), &json!({ GPU: "1" })), &more))
    }

    fn make(&mut self, leaf: &str, from: u32, to: u32) {
        for at in from..to {
            let name = format!("{leaf}-pod-{at}");
            self.capacity.apply_pod(&Self::object(&name, None)).unwrap();
            let pod = PodRef { name: name.as_str().into(), uid: name.as_str().into() };
            self.pods.push(TreePod { pod, leaf: Some(leaf.to_owned()), held: true, scheduled: false });
        }
    }

    fn remove(&mut self, name: &str) {
        self.capacity.remove_pod(name);
        self.pods.retain(|pod| *pod.pod.name != *name);
    }

    fn snapshot(&self) -> TreeSnapshot {
        let object = json!({ "metadata": { "name": "job", "namespace": "ns" }, "spec": self.spec });
        let group: PodGroup = serde_json::from_value(object).unwrap();
        let mut tree = GangTree::from_pod_group(&group, Some(Dialect::Proposal));
        tree.placement = self.placement.clone();
        let level = |name: &str| (Level { topology: None, name: name.to_owned() }, name.to_owned());
        TreeSnapshot {
            key: GroupKey::new("ns", "job"),
            tree: Some(Arc::new(tree)),
            pods: self.pods.clone(),
            keys: BTreeMap::from([level("rack"), level("block")]),
            stance: crate::model::Stance::default(),
            rests: false,
            served: true,
        }
    }

    /// Releases the pods that may go; returns the reasons why the others are held.
    fn go(&mut self) -> Vec<(HoldReason, String, usize)> {
        let decision = decide(&self.snapshot(), &self.capacity, &[]);
        if let Some(plan) = decision.plan {
            for (pod, node, _) in &plan.pods {
                let node = node.as_deref().unwrap_or("nowhere");
                self.capacity.apply_pod(&Self::object(&pod.name, Some(node))).unwrap();
                let own = self.pods.iter_mut().find(|known| known.pod == *pod).unwrap();
                (own.held, own.scheduled) = (false, true);
            }
            self.placement = plan.placement;
        }
        decision.held.into_iter().map(|held| (held.reason, held.message, held.pods.len())).collect()
    }

    /// Returns the running pods by leaf, with their racks.
    fn running(&self) -> BTreeMap<String, (usize, Vec<String>)> {
        let mut all: BTreeMap<String, (usize, Vec<String>)> = BTreeMap::new();
        for pod in self.pods.iter().filter(|pod| !pod.held) {
            let of = all.entry(pod.leaf.clone().unwrap()).or_default();
            let room = self.capacity.room();
            let rack = room.node_of(&pod.pod.uid).and_then(|node| room.facts(node)?.label("rack")).unwrap_or("-");
            of.0 += 1;
            of.1.push(rack.to_owned());
            of.1.sort();
            of.1.dedup();
        }
        all
    }

    fn count(&self) -> usize {
        self.pods.iter().filter(|pod| !pod.held).count()
    }

    fn racks(&self, leaf: &str) -> Vec<String> {
        self.running().get(leaf).map(|(_, racks)| racks.clone()).unwrap_or_default()
    }
}

fn rack() -> Value {
    json!({ "requiredTopologyLevel": "rack" })
}

/// Returns the spec of one of the examples of the design, counted from 1, from the cases of its rules.
fn example(number: usize) -> Value {
    let file: Value =
        serde_saphyr::from_str(include_str!("../../../../tests/cases/designs/kai-podgroup.yaml")).unwrap();
    let name = format!("example {number}: ");
    let is_it = |case: &&Value| case["name"].as_str().is_some_and(|known| known.starts_with(&name));
    file["cases"].as_array().unwrap().iter().find(is_it).unwrap()["object"]["spec"].clone()
}

#[test]
fn example_1_goes_at_once_each_gang_in_one_rack() {
    let mut world = World::of(1, [1, 1, 2, 0], &[("decode", 4)]);
    let waits = (HoldReason::IncompleteBatch, "it has 1 of 2 gangs: gang prefill has 0 of 1 pods".to_owned(), 4);
    assert_eq!(world.go(), [waits]);
    world.make("prefill", 0, 1);
    assert_eq!(world.go(), []);
    assert_eq!((world.racks("decode"), world.racks("prefill").len()), (vec!["r2".to_owned()], 1));
    let within = |leaf: &str| world.placement.of(leaf).map(|of| (of.pods, of.within["rack"].clone()));
    assert_eq!(within("decode"), Some((4, "r2".to_owned())));
}

#[test]
fn nothing_of_example_1_goes_when_one_gang_has_no_rack() {
    let mut world = World::of(1, [1, 1, 1, 1], &[("decode", 4), ("prefill", 1)]);
    let why = "no rack fits gang decode: best r0 fits 2 of 4 pods, short of 2 nvidia.com/gpu";
    assert_eq!(world.go(), [(HoldReason::NoRoom, why.to_owned(), 5)]);
    let kept = |world: &World| decide(&world.snapshot(), &world.capacity, &[]).best;
    assert_eq!(kept(&world), Some(("rack".to_owned(), "r0".to_owned())), "kept for it when it has waited for long");
    world.node("new", "b1", "r3", 2);
    assert_eq!(world.go(), []);
    assert_eq!((world.count(), world.racks("decode")), (5, vec!["r3".to_owned()]));
}

#[test]
fn example_2_keeps_leaders_in_the_block_of_their_workers() {
    let leaves = [("decode-workers", 4), ("decode-leaders", 1), ("prefill-workers", 4), ("prefill-leaders", 1)];
    let mut world = World::of(2, [2, 1, 2, 1], &leaves);
    assert_eq!(world.go(), []);
    for of in ["decode", "prefill"] {
        let (workers, leaders) = (world.racks(&format!("{of}-workers")), world.racks(&format!("{of}-leaders")));
        let block = |rack: &str| ["r0", "r1"].contains(&rack);
        assert_eq!((workers.len(), leaders.len()), (1, 1));
        assert_eq!(block(&workers[0]), block(&leaders[0]), "{of}: {workers:?} {leaders:?}");
    }
    assert_ne!(world.racks("decode-workers"), world.racks("prefill-workers"));
}

#[test]
fn example_3_begins_with_two_replicas_and_takes_the_third_when_there_is_room() {
    let mut world = World::of(3, [2, 1, 0, 0], &THREE);
    let held = world.go();
    assert_eq!((held.len(), held[0].0, held[0].2, world.count()), (1, HoldReason::NoRoom, 3, 6), "{held:?}");
    assert_eq!(decide(&world.snapshot(), &world.capacity, &[]).best, None, "what runs keeps nothing from others");
    world.node("small", "b1", "r3", 2);
    assert_eq!((world.go()[0].0, world.count()), (HoldReason::NoRoom, 6), "two of three are none");
    world.node("more", "b1", "r3", 1);
    assert_eq!((world.go(), world.count()), (vec![], 9));
}

#[test]
fn a_replica_that_fits_is_taken_in_place_of_one_that_does_not() {
    let mut world = World::of(3, [2, 2, 0, 0], &THREE);
    world.spec["topologyConstraints"] = json!({ "subGroups": { "replica-1": { "requiredTopologyLevel": "nowhere" } } });
    let why = "level \"nowhere\" is no node label, and no topology is named that defines it";
    assert_eq!(world.go(), [(HoldReason::TopologyMissing, why.to_owned(), 9)]);
    world.spec["topologyConstraints"] = json!({ "subGroups": { "replica-1": rack() } });
    world.make("replica-1", 3, 30);
    world.spec["subGroups"][0]["minMember"] = json!(30);
    let held = world.go();
    assert_eq!((world.count(), held[0].2), (6, 30), "{held:?}");
}

#[test]
fn example_4_grows_by_whole_replicas() {
    let mut world = World::of(4, [1, 1, 0, 0], &[("leaders-1", 1), ("workers-1", 2)]);
    let waits = "it has 0 of 1 gangs: gang replica-1 has 1 of 2 gangs: gang workers-1 has 2 of 3 pods";
    assert_eq!(world.go(), [(HoldReason::IncompleteBatch, waits.to_owned(), 3)]);
    world.make("workers-1", 2, 3);
    assert_eq!((world.go(), world.count()), (vec![], 4));
    world.make("leaders-2", 0, 1);
    assert_eq!((world.go()[0].0, world.count()), (HoldReason::IncompleteBatch, 4));
    world.make("workers-2", 0, 3);
    assert_eq!((world.go()[0].0, world.count()), (HoldReason::NoRoom, 4));
    world.node("more", "b1", "r3", 4);
    assert_eq!((world.go(), world.count()), (vec![], 8));
}

/// Story 1: ten pods at once, four of decode together.
#[test]
fn more_than_the_minimum_goes_one_by_one_as_it_fits() {
    let spec = json!({
        "minMember": 2, "subGroups": [{ "name": "decode", "minMember": 4 }, { "name": "prefill", "minMember": 2 }],
    });
    let mut world = World::new(spec, [2, 1, 1, 0]);
    world.make("decode", 0, 7);
    world.make("prefill", 0, 3);
    let held = world.go();
    let running = world.running();
    assert_eq!((running["decode"].0, running["prefill"].0, held[0].0), (6, 2, HoldReason::NoRoom), "{held:?}");
}

/// Story 2: one subgroup in a rack, another anywhere.
#[test]
fn one_gang_shares_a_rack_and_another_goes_where_there_is_room() {
    let mut world = World::of(1, [2, 1, 1, 0], &[("decode", 4), ("prefill", 4)]);
    world.spec["topologyConstraints"] = json!({ "subGroups": { "decode": rack() } });
    assert_eq!(world.go(), []);
    assert_eq!((world.racks("decode").len(), world.racks("prefill").len()), (1, 2));
}

#[test]
fn what_has_no_constraint_of_its_own_shares_that_of_the_whole() {
    let mut world = World::of(3, [3, 3, 0, 0], &THREE);
    world.spec["topologyConstraints"] = json!({
        "global": { "requiredTopologyLevel": "rack" }, "subGroups": { "replica-1": { "requiredTopologyLevel": "block" } },
    });
    assert_eq!(world.go(), []);
    assert_eq!(world.racks("replica-2"), world.racks("replica-3"));
    assert_eq!(world.racks("replica-2").len(), 1);
}

#[test]
fn a_pod_that_is_made_again_follows_its_gang_and_a_gang_that_is_lost_goes_elsewhere() {
    let mut world = World::running_1([2, 2, 0, 0]);
    let (first, others) = (world.racks("decode"), world.racks("prefill"));
    world.remove("decode-pod-3");
    world.make("decode", 3, 4);
    assert_eq!((world.go(), world.racks("decode")), (vec![], first.clone()));
    for at in 0..4 {
        world.remove(&format!("decode-pod-{at}"));
    }
    let gone = first[0].strip_prefix('r').unwrap().to_owned();
    (0..2).for_each(|at| world.capacity.remove_node(&format!("n{gone}{at}")));
    world.node("new", "b1", "r3", 4);
    world.make("decode", 0, 4);
    assert_eq!((world.go(), world.racks("decode")), (vec![], vec!["r3".to_owned()]));
    assert_eq!(world.racks("prefill"), others);
}

#[test]
fn a_pod_made_again_goes_to_its_own_where_others_have_taken_its_room() {
    let mut world = World::running_1([2, 1, 0, 0]);
    world.remove("decode-pod-3");
    let node = world.capacity.room().node_of("decode-pod-2").unwrap().to_string();
    let free = if node == "n00" { "n01" } else { "n00" };
    for (at, node) in [&node, free].iter().enumerate() {
        world.capacity.apply_pod(&World::object(&format!("other-{at}"), Some(node))).unwrap();
    }
    world.make("decode", 3, 4);
    let decision = decide(&world.snapshot(), &world.capacity, &[]);
    let plan = decision.plan.unwrap();
    assert_eq!((plan.pods.len(), &plan.pods[0].1), (1, &None));
    assert_eq!(plan.pods[0].2, BTreeMap::from([("rack".to_owned(), "r0".to_owned())]));
}

#[test]
fn pods_of_no_leaf_are_told_apart() {
    let mut world = World::of(4, [8; 4], &[("replica-1", 1)]);
    let why = "\"replica-1\" is no leaf of it; its leaves are leaders-1, workers-1, leaders-2, workers-2";
    assert_eq!(world.go(), [(HoldReason::UnknownRole, why.to_owned(), 1)]);
}

/// Story 6: a PodGroup without subgroups is one gang.
#[test]
fn a_pod_group_without_subgroups_is_one_gang() {
    let mut world = World::new(json!({ "minMember": 3 }), [1, 1, 0, 0]);
    world.make("any", 0, 2);
    assert_eq!(world.go(), [(HoldReason::IncompleteBatch, "it has 2 of 3 pods".to_owned(), 2)]);
    world.make("any", 2, 3);
    assert_eq!((world.go(), world.count()), (vec![], 3));
    assert_eq!(world.placement.of("").map(|of| of.pods), Some(3));
}

/// A hundred gangs on a thousand nodes, of which half fit: an exhaustive search would never end.
#[test]
fn what_fits_of_a_hundred_gangs_is_found_one_by_one() {
    let gang = |at: u32| json!({ "name": format!("g{at}"), "minMember": 8, "topologyConstraint": rack() });
    let mut world = World::new(json!({ "minMember": 1, "subGroups": (0..100).map(gang).collect::<Vec<_>>() }), [0; 4]);
    for at in 0..1000_u32 {
        world.node(&format!("x{at}"), &format!("b{}", at / 100), &format!("r{}", at / 10), u32::from(at < 500));
    }
    (0..100).for_each(|at| world.make(&format!("g{at}"), 0, 8));
    let held = world.go();
    assert_eq!((world.count(), held[0].0, held[0].2), (400, HoldReason::NoRoom, 400));
}

#[test]
fn gangs_within_gangs_beyond_reason_are_held_and_not_walked() {
    let held = |levels: usize| {
        let gang = |at: usize| json!({ "name": format!("g{at}"), "parent": at.checked_sub(1).map(|above| format!("g{above}")) });
        let mut world = World::new(json!({ "subGroups": (0..levels).map(gang).collect::<Vec<_>>() }), [2, 0, 0, 0]);
        world.make(&format!("g{}", levels - 1), 0, 1);
        world.go()
    };
    assert_eq!(held(65), []);
    let held = held(30_000);
    assert!(held.iter().any(|(_, why, _)| why.contains("nested deeper than 64 levels")), "{held:?}");
}
