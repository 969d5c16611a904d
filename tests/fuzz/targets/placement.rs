//! PodGroups of any shape, on nodes of any size: what is placed has room, and nobody else's is given away.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rolegate::api::scheduling::SchedulingPod;
use rolegate::api::{Node, PodGroup};
use rolegate::fit::{Cluster, domain_keys, fit};
use rolegate::model::quantity::amount;
use rolegate::model::{Dialect, GangTree, Stance};
use rolegate::plan::PodRef;
use rolegate::plan::gangs::{Shape, TreePod, TreeSnapshot, decide};
use rolegate::plan::placement::Capacity;
use rolegate::rules::{Options, World, read_group};
use serde::Deserialize;
use serde_json::{Value, json};

use super::plan::carriers;
use super::scenario::{self, Scenario, text, type_of};

/// Held pods that are made of each leaf.
const OF_A_LEAF: usize = 3;
const MOST_LEAVES: usize = 8;

/// Tries one input.
pub fn run(data: &[u8]) {
    let Some(scenario) = Scenario::read(data) else { return };
    scenario.all().for_each(quantities);
    groups(&scenario);
    for object in scenario.all().filter(|object| type_of(object).1 == "PodGroup") {
        let Ok(group) = PodGroup::deserialize(object) else { continue };
        for dialect in [None, Some(Dialect::Proposal), Some(Dialect::Upstream), Some(Dialect::Pods)] {
            tree(&scenario, GangTree::from_pod_group(&group, dialect));
        }
    }
}

/// Every text may be an amount: whole units are at most as many as thousandths, and a sign changes nothing else.
fn quantities(value: &Value) {
    match value {
        Value::String(text) => {
            let (units, parts) = (amount(text, 1), amount(text, 1000));
            assert_eq!(units.is_ok(), parts.is_ok(), "{text}");
            if let (Ok(units), Ok(parts)) = (units, parts) {
                assert!(units.unsigned_abs() <= parts.unsigned_abs(), "{text}: {units}, {parts}");
                if let Some(negated) = text.strip_prefix('-') {
                    assert_eq!(amount(negated, 1), Ok(-units), "{text}");
                }
            }
        }
        Value::Array(list) => list.iter().for_each(quantities),
        Value::Object(fields) => fields.values().for_each(quantities),
        _ => {}
    }
}

fn groups(scenario: &Scenario) {
    let (mut cluster, mut world) = (Cluster::new(2_000), World::of_manifests(Options::default()));
    for object in scenario.all() {
        let (api_version, kind) = type_of(object);
        _ = world.add_json(api_version, kind, &object.to_string());
        _ = cluster.add(api_version, kind, object, &());
    }
    cluster.complete();
    for (kind, object) in carriers(scenario) {
        let Ok(group) = read_group(kind, &object.to_string(), &world) else { continue };
        let keys = domain_keys(&group, |topology, layer| world.layer_key(topology, layer));
        for fitted in fit(&group, &keys, &cluster, 50) {
            let Ok(answer) = fitted.answer else { continue };
            let nodes = answer.outlook.fits.iter().flat_map(|(_, placement)| &placement.nodes);
            nodes.for_each(|node| assert!(cluster.room.facts(node).is_some(), "{node}"));
        }
    }
}

/// A pod as those of a PodGroup are: the first that the input has, or a plain one.
fn pod(scenario: &Scenario, tree: &GangTree, uid: &str) -> Option<SchedulingPod> {
    let first = scenario.all().find(|object| type_of(object) == ("v1", "Pod"));
    let plain = || json!({ "spec": { "containers": [{ "resources": { "requests": { "cpu": 1 } } }] } });
    let mut object = first.cloned().unwrap_or_else(plain);
    object["spec"].as_object_mut()?.remove("nodeName");
    object["metadata"] = json!({
        "name": uid, "uid": uid, "namespace": &*tree.key.namespace,
        "labels": { "rolegate.dev/pod-group": "any", "app": "any" }, "annotations": { "pod-group-name": &*tree.key.name },
    });
    object.as_object_mut()?.remove("status");
    serde_json::from_value(object).ok()
}

fn tree(scenario: &Scenario, tree: GangTree) {
    let Some(shape) = Shape::of(&tree) else { return };
    let mut capacity = Capacity::default();
    for object in scenario.all() {
        match type_of(object) {
            ("v1", "Node") => _ = Node::deserialize(object).map(|node| capacity.apply_node(&node)),
            ("v1", "Pod") if !text(object, "/spec/nodeName").is_empty() => {
                _ = SchedulingPod::deserialize(object).map(|pod| capacity.apply_pod(&pod));
            }
            _ => {}
        }
    }
    let mut pods = Vec::new();
    for (number, leaf) in shape.leaves.iter().take(MOST_LEAVES).enumerate() {
        for at in 0..OF_A_LEAF {
            let uid = format!("held-{number}-{at}");
            let Some(pod) = pod(scenario, &tree, &uid) else { return };
            if capacity.apply_pod(&pod).is_err() {
                return;
            }
            let pod = PodRef { name: uid.as_str().into(), uid: uid.as_str().into() };
            let leaf = Some(leaf.clone()).filter(|leaf| !leaf.is_empty());
            pods.push(TreePod { pod, leaf, held: true, scheduled: false });
        }
    }
    let keys = shape.shares.iter().map(|share| (share.level.clone(), share.level.name.clone())).collect();
    let key = tree.key.clone();
    let (stance, tree) = (Stance::default(), Some(Arc::new(tree)));
    let snapshot = TreeSnapshot { key, tree, pods, keys, stance, rests: false, served: true };
    let decision = decide(&snapshot, &capacity, &[]);
    let going = decision.plan.as_ref().map(|plan| plan.pods.as_slice()).unwrap_or_default();
    let held = decision.held.iter().flat_map(|held| &held.pods);
    let mut seen = BTreeSet::new();
    for pod in going.iter().map(|(pod, _, _)| pod).chain(held) {
        assert!(snapshot.held().any(|held| held == pod) && seen.insert(&pod.uid), "{pod:?}: {decision:?}");
    }
    has_room(&capacity, &snapshot, going.iter().filter_map(|(pod, node, _)| Some((pod, node.as_ref()?))));
}

/// No node gives what it does not have.
fn has_room<'a>(
    capacity: &Capacity,
    snapshot: &TreeSnapshot,
    placed: impl Iterator<Item = (&'a PodRef, &'a Arc<str>)>,
) {
    let mut taken: BTreeMap<(Arc<str>, Arc<str>), i128> = BTreeMap::new();
    for (pod, node) in placed {
        let needs = capacity.needs(&pod.uid).expect("what is placed was told of");
        // No API server takes a container that asks for pods.
        let amounts = needs.load.amounts.iter().filter(|(resource, _)| &***resource != "pods");
        let ones = amounts.map(|(resource, amount)| (resource.clone(), *amount));
        for (resource, amount) in ones.chain([("pods".into(), 1)]) {
            *taken.entry((node.clone(), resource)).or_default() += i128::from(amount);
        }
    }
    for ((node, resource), amount) in taken.into_iter().filter(|(_, amount)| *amount > 0) {
        let (_, room, _) = capacity.room().nodes().find(|(name, _, _)| **name == node).expect("a node that is there");
        let free = if &*resource == "pods" { room.free_pods() } else { room.free(&resource) };
        assert!(i128::from(free) >= amount, "{node} has {free} {resource} for {amount}: {:?}", snapshot.tree);
    }
}

/// The golden cases, and trees of gangs beside nodes.
pub fn seeds() -> Vec<Vec<u8>> {
    let node = |name: &str, rack: &str, block: &str, cpu: &str| {
        json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": { "name": name, "labels": { "rack": rack, "block": block, "kubernetes.io/hostname": name } },
            "status": { "allocatable": { "cpu": cpu, "pods": "9" }, "conditions": [{ "type": "Ready", "status": "True" }] },
        })
    };
    let leaf = |name: &str, parent: &str, least: u32| json!({ "name": name, "parent": parent, "minMember": least, "topologyConstraint": { "requiredTopologyLevel": "rack" } });
    let replica = json!({ "name": "a", "minSubGroup": 2, "topologyConstraint": { "requiredTopologyLevel": "block" } });
    let whole = json!({
        "apiVersion": "scheduling.run.ai/v2alpha2", "kind": "PodGroup",
        "metadata": { "name": "job", "namespace": "ns", "annotations": { "rolegate.dev/place": "enabled" } },
        "spec": { "minSubGroup": 1, "subGroups": [replica, leaf("leaders", "a", 1), leaf("workers", "a", 3)] },
    });
    let spread = json!({ "topologyKey": "rack", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": { "matchLabels": { "app": "any" } } });
    let apart =
        json!({ "topologyKey": "kubernetes.io/hostname", "labelSelector": { "matchLabels": { "app": "any" } } });
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "spec": {
            "containers": [{ "resources": { "requests": { "cpu": "500m", "example.com/x": "1e3" } }, "ports": [{ "hostPort": 80 }] }],
            "topologySpreadConstraints": [spread],
            "affinity": { "podAntiAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": [apart] } },
        },
    });
    let nodes = |cpu| {
        [
            node("n1", "r1", "b1", cpu),
            node("n2", "r1", "b1", "3"),
            node("n3", "r2", "b1", "2500m"),
            node("n4", "r3", "b2", "1e999"),
        ]
    };
    let scenarios = [
        json!({ "objects": [whole], "with": nodes("4") }),
        json!({ "objects": [whole, pod], "with": nodes("-4") }),
        json!({ "objects": [{ "apiVersion": "scheduling.run.ai/v2alpha2", "kind": "PodGroup", "metadata": { "name": "j", "namespace": "ns" }, "spec": { "minMember": 2 } }], "with": nodes("9223372036854775807") }),
    ];
    scenario::seeds().into_iter().chain(scenarios.map(|scenario| scenario.to_string().into_bytes())).collect()
}
