//! Placement by devices: the objects of DRA as manifests, and where pods go.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::api::scheduling::SchedulingPod;
use crate::build::{self, typed as read, with};
use crate::plan::devices::DeviceObject;

/// A node of a rack; `allocatable` beside 110 pods.
fn node(name: &str, rack: &str, allocatable: &Value) -> crate::api::Node {
    let labels = json!({ "rack": rack, "kubernetes.io/hostname": name });
    read(build::node(name, &labels, &with(json!({ "pods": 110, "cpu": 64 }), allocatable)))
}

/// A slice with the only devices of a node, or of the nodes that `nodes` selects.
fn slice(pool_name: &str, nodes: &Value, devices: &Value) -> DeviceObject {
    let pool = json!({ "name": pool_name, "generation": 1, "resourceSliceCount": 1 });
    let spec = with(json!({ "driver": "gpu.example.com", "devices": devices, "pool": pool }), nodes);
    DeviceObject::Slice(read(json!({ "metadata": { "name": pool_name }, "spec": spec })))
}

fn on(node: &str, devices: &Value) -> DeviceObject {
    slice(node, &json!({ "nodeName": node }), devices)
}

/// As many GPUs, half of them at each of two roots.
fn gpus(count: u32) -> Value {
    let root = |number| if number < count / 2 { "a" } else { "b" };
    let gpu = |number| json!({ "name": format!("gpu-{number}"), "attributes": { "type": { "string": "gpu" }, "root": { "string": root(number) } } });
    (0..count).map(gpu).collect()
}

fn class(name: &str, resource: &str) -> DeviceObject {
    let cel = json!({ "cel": { "expression": "device.driver == 'gpu.example.com' && device.attributes['gpu.example.com'].type == 'gpu'" } });
    let spec = json!({ "selectors": [cel], "extendedResourceName": resource });
    DeviceObject::Class(read(json!({ "metadata": { "name": name }, "spec": spec })))
}

fn template(name: &str, claim: &Value) -> DeviceObject {
    let metadata = json!({ "name": name, "namespace": "ns" });
    DeviceObject::Template(read(json!({ "metadata": metadata, "spec": { "spec": { "devices": claim } } })))
}

fn claim(name: &str, devices: &[&str], pool: &str, user: &str) -> DeviceObject {
    let results = devices.iter().map(|device| json!({ "driver": "gpu.example.com", "pool": pool, "device": device }));
    let nodes = json!({ "nodeSelectorTerms": [{ "matchFields": [{ "key": "metadata.name", "operator": "In", "values": [pool] }] }] });
    let allocation = json!({ "devices": { "results": results.collect::<Vec<_>>() }, "nodeSelector": nodes });
    DeviceObject::Claim(read(json!({
        "metadata": { "name": name, "namespace": "ns" },
        "status": { "allocation": allocation, "reservedFor": [{ "uid": user }] },
    })))
}

fn exactly(count: u32) -> Value {
    json!({ "requests": [{ "name": "gpus", "exactly": { "deviceClassName": "gpu", "count": count } }] })
}

fn needs(spec: &Value) -> Arc<Needs> {
    let pod: SchedulingPod = read(json!({ "metadata": { "name": "p", "namespace": "ns" }, "spec": spec }));
    Arc::new(Needs::of(&pod).unwrap())
}

fn asks(resource: &str, count: u32) -> Arc<Needs> {
    needs(&json!({ "containers": [{ "name": "main", "resources": { "limits": { resource: count } } }] }))
}

fn claims(template: &str) -> Arc<Needs> {
    needs(
        &json!({ "resourceClaims": [{ "name": "gpus", "resourceClaimTemplateName": template }], "containers": [{ "name": "main" }] }),
    )
}

/// Four nodes, two in each of two racks, with these objects of DRA.
fn room(objects: &[DeviceObject]) -> Room {
    let mut room = Room::default();
    for (name, rack) in [("a1", "a"), ("a2", "a"), ("b1", "b"), ("b2", "b")] {
        room.apply_node(&node(name, rack, &json!({}))).unwrap();
    }
    room.devices_mut().apply_all(objects);
    room
}

/// Returns the rack and the nodes of the pods, or why they fit nowhere.
fn goes(room: &Room, pods: &[Arc<Needs>]) -> String {
    let used = BTreeMap::new();
    match place(room, &Question::new(pods, Some("rack"), &used)) {
        Fit::Fits(found) => format!("{}: {}", found.domain.unwrap(), found.nodes.join(" ")),
        Fit::Not(why) => why.describe(Some("rack"), "it"),
    }
}

fn is_held(goes: &str) -> bool {
    goes.starts_with("no rack fits it")
}

#[test]
fn a_resource_of_a_class_is_counted_in_devices_beside_nodes_that_have_it_by_themselves() {
    let of_class = |resource: &str| {
        let mut room =
            room(&[class("gpu", "nvidia.com/gpu"), on("a1", &gpus(8)), on("a2", &gpus(4)), on("b1", &gpus(8))]);
        // Devices do not count where the node has the resource.
        room.apply_node(&node("b1", "b", &json!({ "nvidia.com/gpu": 4 }))).unwrap();
        room.apply_node(&node("b2", "b", &json!({ "nvidia.com/gpu": 8 }))).unwrap();
        assert_eq!(not_modelled(&[asks(resource, 8)], &room), []);
        assert!(room.may_name_node_of(&asks(resource, 8)));
        room
    };
    let room = of_class("nvidia.com/gpu");
    assert_eq!(goes(&room, &[asks("nvidia.com/gpu", 8), asks("nvidia.com/gpu", 4)]), "a: a1 a2");
    let why = goes(&room, &[asks("nvidia.com/gpu", 8), asks("nvidia.com/gpu", 8)]);
    assert_eq!(why, "no rack fits it: best a fits 1 of 2 pods, short of 4 nvidia.com/gpu");
    let by_name = "deviceclass.resource.kubernetes.io/gpu";
    assert_eq!(goes(&of_class(by_name), &[asks(by_name, 8)]), "b: b1");
}

#[test]
fn devices_of_claims_are_taken_and_those_of_pods_that_are_to_come_as_well() {
    let objects = [
        class("gpu", ""),
        on("a1", &gpus(8)),
        on("b1", &gpus(8)),
        template("four", &exactly(4)),
        template("six", &exactly(6)),
        claim("other", &["gpu-0", "gpu-1", "gpu-2"], "a1", "other"),
    ];
    let mut room = room(&objects);
    let six = claims("six");
    assert_eq!(goes(&room, std::slice::from_ref(&six)), "b: b1");
    // A pod that is released takes its devices before the scheduler has allocated them, and once afterwards.
    room.apply_pod("released", "b1", claims("four").load.clone(), &Arc::default());
    let why = goes(&room, std::slice::from_ref(&six));
    assert_eq!(why, "no rack fits it: best b fits 0 of 1 pods, short of 2 gpu");
    assert_eq!(goes(&room, &[claims("four")]), "b: b1");
    let allocated = claim("released-gpus", &["gpu-0", "gpu-1", "gpu-2", "gpu-3"], "b1", "released");
    let DeviceObject::Claim(allocated) = &allocated else { unreachable!() };
    room.devices_mut().apply_claim(allocated);
    assert_eq!(goes(&room, &[claims("four")]), "b: b1");
    assert!(is_held(&goes(&room, &[six])));
    // Preempted pods give their devices back.
    assert_eq!(goes(&room.without_pods_below(1), &[claims("six")]), "b: b1");
    room.devices_mut().remove(crate::plan::devices::ObjectSort::Claim, &allocated.metadata);
    room.remove_pod("released");
    assert_eq!(goes(&room, &[claims("six")]), "b: b1");
}

#[test]
fn one_value_of_an_attribute_holds_for_the_devices_of_a_claim() {
    let mut same = exactly(4);
    same["constraints"] = json!([{ "matchAttribute": "gpu.example.com/root" }]);
    let objects = [
        class("gpu", ""),
        on("a1", &gpus(6)),
        on("b1", &gpus(8)),
        template("same", &same),
        template("two", &exactly(2)),
    ];
    let room = room(&objects);
    assert_eq!(goes(&room, &[claims("same")]), "b: b1", "three at each root are not enough");
    assert_eq!(goes(&room, &[claims("same"), claims("same")]), "b: b1 b1");
    // The scheduler may take up the pod of two first, which then has devices of the first root; the other is left.
    assert_eq!(goes(&room, &[claims("same"), claims("two")]), "b: b1 b1");
    let why = goes(&room, &[claims("same"), claims("same"), claims("two")]);
    assert_eq!(why, "no rack fits it: best b fits 2 of 3 pods, short of 2 gpu");
}

#[test]
fn all_devices_of_a_node_are_had_while_none_is_taken_and_an_alternative_otherwise() {
    let all =
        json!({ "requests": [{ "name": "gpus", "exactly": { "deviceClassName": "gpu", "allocationMode": "All" } }] });
    let sub = |name: &str, count: u32| json!({ "name": name, "deviceClassName": "gpu", "count": count });
    let either = json!({ "requests": [{ "name": "gpus", "firstAvailable": [sub("many", 8), sub("few", 2)] }] });
    let objects = [
        class("gpu", ""),
        on("a1", &gpus(4)),
        on("b1", &gpus(4)),
        template("all", &all),
        template("either", &either),
        claim("other", &["gpu-3"], "a1", "other"),
    ];
    let room = room(&objects);
    assert_eq!(goes(&room, &[claims("all")]), "b: b1");
    let why = "no rack fits it: best b fits 1 of 2 pods, its nodes have no more devices that its pods ask for, or room for pods \
               or their host ports";
    assert_eq!(goes(&room, &[claims("all"), claims("all")]), why);
    assert_eq!(goes(&room, &[claims("either"), claims("either")]), "b: b1 b1");
}

#[test]
fn a_taint_keeps_pods_away_that_do_not_tolerate_it() {
    let rule = json!({ "metadata": { "name": "bad" }, "spec": { "deviceSelector": { "pool": "a1" }, "taint": { "key": "bad", "effect": "NoExecute" } } });
    let mut tolerant = exactly(2);
    tolerant["requests"][0]["exactly"]["tolerations"] = json!([{ "key": "bad", "operator": "Exists" }]);
    let objects = [
        class("gpu", ""),
        on("a1", &gpus(4)),
        DeviceObject::TaintRule(read(rule)),
        template("two", &exactly(2)),
        template("tolerant", &tolerant),
    ];
    let room = room(&objects);
    assert!(is_held(&goes(&room, &[claims("two")])));
    assert_eq!(goes(&room, &[claims("tolerant")]), "a: a1");
}

#[test]
fn a_pool_that_changes_gives_no_devices() {
    let part = |name: &str, generation: u32, of: u32| {
        let pool = json!({ "name": "a1", "generation": generation, "resourceSliceCount": of });
        let spec = json!({ "driver": "gpu.example.com", "nodeName": "a1", "pool": pool, "devices": gpus(4) });
        DeviceObject::Slice(read(json!({ "metadata": { "name": name }, "spec": spec })))
    };
    let with = |slices: &[DeviceObject]| {
        let objects = [&[class("gpu", "nvidia.com/gpu")], slices].concat();
        !is_held(&goes(&room(&objects), &[asks("nvidia.com/gpu", 4)]))
    };
    assert!(with(&[part("one", 1, 1)]));
    assert!(!with(&[part("one", 1, 2)]), "a slice of the generation is missing");
    assert!(with(&[part("one", 1, 2), part("two", 2, 1)]), "the older generation does not count");
    assert!(!with(&[part("one", 1, 2), part("two", 1, 2)]), "two devices have one name");
}

#[test]
fn what_is_not_modelled_is_said_and_its_pods_are_bound_to_no_node() {
    let odd =
        json!([{ "name": "gpu-0", "attributes": { "type": { "string": "gpu" } }, "allowMultipleAllocations": true }]);
    let says = |objects: &[DeviceObject], pod: Arc<Needs>| {
        let room = room(objects);
        let said = not_modelled(std::slice::from_ref(&pod), &room);
        assert_eq!(room.may_name_node_of(&pod), said.is_empty());
        said.iter().map(NotModelled::describe).collect::<Vec<_>>().join("; ")
    };
    let shared = slice("rack", &json!({ "allNodes": true }), &gpus(4));
    let known = [class("gpu", ""), template("two", &exactly(2)), on("a1", &gpus(4))];
    assert_eq!(says(&known, claims("two")), "");
    assert_eq!(says(&[], claims("two")), "ResourceClaimTemplate \"ns/two\", which is not there");
    let two = |why: &str| format!("ResourceClaimTemplate \"ns/two\": {why}");
    assert_eq!(says(&known[1..], claims("two")), two("DeviceClass \"gpu\", which is not there"));
    let consumable = two("devices with consumable capacity");
    assert_eq!(says(&[&known[..2], &[on("a1", &odd)]].concat(), claims("two")), consumable);
    assert_eq!(says(&[&known[..], std::slice::from_ref(&shared)].concat(), claims("two")), "");
    let mut same = exactly(2);
    same["constraints"] = json!([{ "matchAttribute": "gpu.example.com/root" }]);
    let said = says(&[class("gpu", ""), template("same", &same), shared], claims("same"));
    assert_eq!(said, "ResourceClaimTemplate \"ns/same\": conditions on devices that several nodes reach");
    let unseen = Room::default();
    let said = not_modelled(&[claims("two")], &unseen);
    assert_eq!(said, [NotModelled::Devices("resource claims".into())]);
}

/// What cannot be judged keeps no pod back.
#[test]
fn an_extended_resource_of_a_class_that_is_not_modelled_is_left_out() {
    let odd =
        json!([{ "name": "gpu-0", "attributes": { "type": { "string": "gpu" } }, "allowMultipleAllocations": true }]);
    let room = room(&[class("gpu", "nvidia.com/gpu"), on("a1", &odd)]);
    let pod = asks("nvidia.com/gpu", 4);
    let said = not_modelled(std::slice::from_ref(&pod), &room);
    assert_eq!(said.iter().map(NotModelled::describe).collect::<Vec<_>>(), ["devices with consumable capacity"]);
    assert!(!is_held(&goes(&room, std::slice::from_ref(&pod))));
    assert!(!room.may_name_node_of(&pod));
}

/// A pool of channels that the nodes of a rack reach.
fn channels(rack: &str, count: u32) -> DeviceObject {
    let devices = (0..count)
        .map(|number| json!({ "name": format!("channel-{number}"), "attributes": { "type": { "string": "gpu" } } }));
    let term = json!({ "matchExpressions": [{ "key": "rack", "operator": "In", "values": [rack] }] });
    slice(rack, &json!({ "nodeSelector": { "nodeSelectorTerms": [term] } }), &devices.collect())
}

#[test]
fn devices_that_the_nodes_of_a_rack_share_are_counted_once() {
    let objects = [class("gpu", ""), channels("a", 3), channels("b", 4), template("two", &exactly(2))];
    let mut room = room(&objects);
    let two = || claims("two");
    assert_eq!(goes(&room, &[two()]), "a: a1");
    assert!(goes(&room, &[two(), two()]).starts_with("b: "));
    assert!(is_held(&goes(&room, &[two(), two(), two()])));
    // A pod that is to come takes its channels from all nodes of the rack.
    room.apply_pod("released", "b1", two().load.clone(), &Arc::default());
    assert!(is_held(&goes(&room, &[two(), two()])));
    assert_eq!(goes(&room, &[two()]), "a: a1");
}

fn shares(claim: &str) -> Arc<Needs> {
    needs(
        &json!({ "resourceClaims": [{ "name": "gpus", "resourceClaimName": claim }], "containers": [{ "name": "main", "resources": { "requests": { "cpu": 24 } } }] }),
    )
}

fn open(name: &str, claim: &Value) -> DeviceObject {
    DeviceObject::Claim(read(json!({ "metadata": { "name": name, "namespace": "ns" }, "spec": { "devices": claim } })))
}

#[test]
fn pods_that_share_a_claim_go_where_all_reach_its_devices() {
    let of_node = [class("gpu", ""), on("a1", &gpus(2)), on("b2", &gpus(4)), open("shared", &exactly(4))];
    let mut room_of_node = room(&of_node);
    assert_eq!(goes(&room_of_node, &[shares("shared"), shares("shared")]), "b: b2 b2");
    let why = goes(&room_of_node, &[shares("shared"), shares("shared"), shares("shared")]);
    assert_eq!(
        why,
        "no rack fits it: best b fits 2 of 3 pods, short of 8 cpu, nodes from which claim \"ns/shared\" cannot be reached: 1"
    );
    // The second of two pods follows the first before the claim is allocated.
    room_of_node.apply_pod("released", "b2", shares("shared").load.clone(), &Arc::default());
    assert_eq!(goes(&room_of_node, &[shares("shared")]), "b: b2");
    let of_rack = [class("gpu", ""), channels("a", 1), channels("b", 2), open("shared", &exactly(2))];
    assert_eq!(goes(&room(&of_rack), &[shares("shared"), shares("shared"), shares("shared")]), "b: b1 b1 b2");
    let none = [class("gpu", ""), on("a1", &gpus(2)), open("shared", &exactly(4))];
    assert_eq!(
        goes(&room(&none), &[shares("shared")]),
        "no rack fits it: no node has the devices of claim \"ns/shared\""
    );
}

#[test]
fn equal_devices_of_two_pools_are_two() {
    // The claim is allocated on the node that has room for all pods that share it, and not on the equal one before it.
    let mut nodes = room(&[class("gpu", ""), on("a1", &gpus(4)), on("b1", &gpus(4)), open("shared", &exactly(2))]);
    let other = needs(&json!({ "containers": [{ "name": "main", "resources": { "requests": { "cpu": 32 } } }] }));
    nodes.apply_pod("other", "a1", other.load.clone(), &Arc::default());
    assert_eq!(goes(&nodes, &[shares("shared"), shares("shared")]), "b: b1 b1");
    // Each of two nodes reaches one device, by a selector.
    let far = |node: &str| {
        let term =
            json!({ "matchExpressions": [{ "key": "kubernetes.io/hostname", "operator": "In", "values": [node] }] });
        let device = json!([{ "name": "far", "attributes": { "type": { "string": "gpu" } } }]);
        slice(node, &json!({ "nodeSelector": { "nodeSelectorTerms": [term] } }), &device)
    };
    let room = room(&[class("gpu", ""), far("a1"), far("a2"), template("one", &exactly(1))]);
    assert_eq!(goes(&room, &[claims("one"), claims("one")]), "a: a1 a2");
    assert!(is_held(&goes(&room, &[claims("one"), claims("one"), claims("one")])));
}

#[test]
fn claims_of_different_pods_are_allocated_each_on_a_node_of_its_own() {
    let objects = [
        on("b2", &gpus(2)),
        class("gpu", ""),
        on("b1", &gpus(2)),
        open("one", &exactly(2)),
        open("other", &exactly(2)),
    ];
    let pods = [shares("one"), shares("one"), shares("other")];
    assert_eq!(goes(&room(&objects), &pods), "b: b1 b1 b2");
    assert!(is_held(&goes(&room(&objects[1..]), &pods)), "one node has two devices, and both claims want two");
}
