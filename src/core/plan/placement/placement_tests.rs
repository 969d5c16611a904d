use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::needs::Load;
use super::peers::Peer;
use super::*;
use crate::api::Node;
use crate::api::scheduling::SchedulingPod;
use crate::build::{self, typed};
use crate::model::{IgnoredResources, names};
use crate::plan::devices::DeviceSight;

const RACK: &str = "example.com/rack";
const GPU: &str = "nvidia.com/gpu";

fn pod(spec: &Value) -> Arc<Needs> {
    let pod: SchedulingPod = serde_json::from_value(json!({ "spec": spec })).unwrap();
    Arc::new(Needs::of(&pod).unwrap())
}

/// Returns a peer that no constraint selects.
fn nobody() -> Arc<Peer> {
    Arc::default()
}

fn gpus(count: u32) -> Arc<Needs> {
    pod(&json!({ "containers": [{ "resources": { "requests": { GPU: count } } }] }))
}

fn node(name: &str, rack: &str, gpus: u32) -> Node {
    let room = json!({ "cpu": "64", "memory": "256Gi", "pods": "110", GPU: gpus.to_string() });
    typed(build::node(name, &json!({ RACK: rack }), &room))
}

fn room(nodes: &[(&str, &str, u32)]) -> Room {
    let mut room = Room::default();
    nodes.iter().for_each(|(name, rack, gpus)| _ = room.apply_node(&node(name, rack, *gpus)).unwrap());
    room
}

fn asked(room: &Room, pods: &[Arc<Needs>]) -> Fit {
    place(room, &Question::new(pods, Some(RACK), &BTreeMap::new()))
}

fn domain(fit: &Fit) -> Option<&str> {
    fit.placement().and_then(|placement| placement.domain.as_deref())
}

fn says(fit: &Fit) -> String {
    match fit {
        Fit::Fits(placement) => format!("fits {:?}", placement.domain),
        Fit::Not(no_fit) => no_fit.describe(Some("rack"), "step 3"),
    }
}

#[test]
fn a_batch_goes_into_the_domain_with_the_least_room_that_holds_it() {
    let room = room(&[("a", "r1", 8), ("b", "r1", 8), ("c", "r2", 8), ("d", "r3", 4)]);
    let fit = asked(&room, &vec![gpus(2); 4]);
    assert_eq!(domain(&fit), Some("r2"));
    assert_eq!(domain(&asked(&room, &vec![gpus(2); 5])), Some("r1"));
}

#[test]
fn another_domain_is_taken_for_each_batch_where_batches_are_spread() {
    let room = room(&[("a", "r1", 8), ("b", "r2", 16)]);
    let used = BTreeMap::from([("r1".to_owned(), 1)]);
    let fit = place(&room, &Question::new(&[gpus(2)], Some(RACK), &used));
    assert_eq!(domain(&fit), Some("r2"));
}

#[test]
fn what_fits_nowhere_says_what_the_best_domain_lacks() {
    let both = room(&[("a", "rack-1", 4), ("b", "rack-2", 6), ("c", "rack-2", 3)]);
    assert_eq!(
        says(&asked(&both, &vec![gpus(1); 15])),
        "no rack fits step 3: best rack-2 fits 9 of 15 pods, short of 6 nvidia.com/gpu"
    );
    // Enough in total, and on no node enough for one more pod.
    let split = room(&[("a", "r", 6), ("b", "r", 6), ("c", "r", 6)]);
    assert_eq!(
        says(&asked(&split, &vec![gpus(4); 4])),
        "no rack fits step 3: best r fits 3 of 4 pods, a pod asks for 4 nvidia.com/gpu and no node has more than 2"
    );
    assert_eq!(says(&asked(&Room::default(), &[gpus(1)])), "no rack fits step 3: no node has one");
}

#[test]
fn nodes_that_a_pod_cannot_go_to_are_no_room_and_are_counted() {
    let mut room = room(&[("a", "r", 8), ("b", "r", 8), ("c", "r", 8), ("d", "r", 8)]);
    let mut change = |name: &str, field: &str, value: Value| {
        let mut node = serde_json::to_value(node(name, "r", 8)).unwrap();
        node[field] = value;
        room.apply_node(&serde_json::from_value(node).unwrap()).unwrap();
    };
    change(
        "a",
        "spec",
        json!({ "unschedulable": true, "taints": [
        { "key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule" }] }),
    );
    change("b", "spec", json!({ "taints": [{ "key": "gpu", "value": "yes", "effect": "NoSchedule" }] }));
    change("c", "status", json!({ "allocatable": { GPU: "8", "pods": "9" } }));
    assert_eq!(
        says(&asked(&room, &vec![gpus(8); 2])),
        "no rack fits step 3: best r fits 1 of 2 pods, short of 8 nvidia.com/gpu, nodes with taints that its pods do not \
         tolerate: 1, nodes that are not ready: 1, cordoned nodes: 1"
    );
    assert!(asked(&room.without_cordons(), &vec![gpus(8); 2]).placement().is_some());
    let tolerant = pod(&json!({
        "tolerations": [{ "key": "gpu", "operator": "Exists" }],
        "containers": [{ "resources": { "limits": { GPU: 8 } } }],
    }));
    assert_eq!(asked(&room, &[tolerant.clone(), tolerant]).placement().unwrap().nodes, ["b".into(), "d".into()]);
}

/// Two nodes of eight: one pod of eight and four of two fit only if the small pods leave one node free.
#[test]
fn small_pods_leave_the_room_that_a_large_one_needs() {
    let room = room(&[("a", "r", 8), ("b", "r", 8)]);
    let pods = [gpus(2), gpus(2), gpus(8), gpus(2), gpus(2)];
    let fit = asked(&room, &pods);
    let placement = fit.placement().unwrap();
    let of_large = &placement.nodes[2];
    assert!([0, 1, 3, 4].iter().all(|small| placement.nodes[*small] != *of_large), "{placement:?}");
}

/// Pods of 7, 6, 5, 5, 4 and 3 on nodes of 10: the greedy way leaves one out.
#[test]
fn where_the_simple_way_leaves_some_out_the_others_are_tried() {
    let room = room(&[("a", "r", 10), ("b", "r", 10), ("c", "r", 10)]);
    let pods = [gpus(6), gpus(4), gpus(5), gpus(5), gpus(3), gpus(7)];
    assert!(asked(&room, &pods).placement().is_some());
    assert!(asked(&room, &[&pods[..], &[gpus(1)]].concat()).placement().is_none());
}

#[test]
fn a_host_port_is_given_once_on_a_node() {
    let with_port = |ip: &str| {
        pod(&json!({ "containers": [{ "ports": [{ "containerPort": 80, "hostPort": 8080, "hostIP": ip }] }] }))
    };
    let mut room = room(&[("a", "r", 0), ("b", "r", 0)]);
    assert!(asked(&room, &vec![with_port(""); 2]).placement().is_some());
    assert!(asked(&room, &vec![with_port(""); 3]).placement().is_none());
    room.apply_pod("other", "a", with_port("10.0.0.1").load.clone(), &nobody());
    assert_eq!(asked(&room, &[with_port("")]).placement().unwrap().nodes, ["b".into()]);
    assert!(asked(&room, &[with_port("10.0.0.2")]).placement().is_some());
}

#[test]
fn a_pod_takes_what_its_containers_or_its_start_need_whichever_is_more() {
    let asks = |memory: &str| json!({ "resources": { "requests": { "memory": memory } } });
    let init = |memory: &str, restart: Option<&str>| {
        let mut container = asks(memory);
        container["restartPolicy"] = json!(restart);
        container
    };
    let needs = pod(&json!({
        "containers": [asks("1Gi"), asks("1Gi")],
        "initContainers": [init("1Gi", Some("Always")), init("4Gi", None), init("512Mi", Some("Always"))],
        "overhead": { "memory": "256Mi", "cpu": "250m" },
    }));
    let amounts: Vec<_> = needs.load.amounts.iter().map(|(name, amount)| (&**name, *amount)).collect();
    assert_eq!(amounts, [("cpu", 250), ("memory", (5 << 30) + (256 << 20))]);
    let whole = pod(&json!({ "containers": [asks("1Gi")], "resources": { "requests": { "memory": "3Gi" } } }));
    assert_eq!(whole.load.amounts.get("memory"), Some(&(3 << 30)));
}

#[test]
fn pods_may_be_told_of_before_their_nodes_and_outlive_them() {
    let mut room = Room::default();
    let load = gpus(3).load.clone();
    room.apply_pod("early", "a", load.clone(), &nobody());
    room.apply_node(&node("a", "r", 8)).unwrap();
    let free = |room: &Room| room.nodes().map(|(_, node, _)| (node.free(GPU), node.free_pods())).collect::<Vec<_>>();
    assert_eq!(free(&room), [(5, 109)]);
    room.remove_node("a");
    assert_eq!(free(&room), []);
    room.apply_node(&node("a", "r", 8)).unwrap();
    room.apply_pod("early", "b", load, &nobody());
    assert_eq!(free(&room), [(8, 110)]);
    room.remove_pod("early");
    room.remove_pod("nobody");
    room.remove_node("a");
    assert_eq!(room, Room::default());
}

#[test]
fn pods_of_lower_priority_are_room_for_those_who_may_take_it() {
    let mut room = room(&[("a", "r", 8)]);
    room.apply_pod("low", "a", Load { priority: -5, ..gpus(8).load.clone() }, &nobody());
    assert!(asked(&room, &[gpus(1)]).placement().is_none());
    assert!(asked(&room.without_pods_below(0), &[gpus(1)]).placement().is_some());
}

#[test]
fn what_the_scheduler_looks_at_beside_is_said() {
    let required = |term: &Value| json!({ "requiredDuringSchedulingIgnoredDuringExecution": [term] });
    let own = json!({ "labelSelector": { "matchExpressions": [
        { "key": names::KEP75_BATCH, "operator": "In", "values": ["x"] }] }, "topologyKey": RACK });
    let numbered = json!({ "matchLabels": { "apps.kubernetes.io/pod-index": "0" } });
    let spread = |selector: &Value, when: &str| json!([{ "topologyKey": RACK, "maxSkew": 1, "labelSelector": selector, "whenUnsatisfiable": when }]);
    let understood = pod(&json!({
        "affinity": { "podAffinity": required(&own), "podAntiAffinity": required(&own) },
        "topologySpreadConstraints": spread(&json!({}), "DoNotSchedule"),
    }));
    assert_eq!(understood.not_modelled, []);
    assert_eq!(pod(&json!({ "topologySpreadConstraints": spread(&numbered, "ScheduleAnyway") })).not_modelled, []);
    let elsewhere = json!({ "topologyKey": RACK, "namespaceSelector": { "matchLabels": { "team": "a" } } });
    let other = pod(&json!({
        "affinity": { "podAntiAffinity": required(&elsewhere), "podAffinity": required(&json!({ "topologyKey": RACK })) },
        "schedulerName": "volcano",
        "topologySpreadConstraints": spread(&numbered, "DoNotSchedule"),
        "volumes": [{ "persistentVolumeClaim": { "claimName": "c" } }],
    }));
    assert_eq!(other.not_modelled.len(), 5, "{:?}", other.not_modelled);
    let device =
        pod(&json!({ "containers": [{ "resources": { "requests": { "cpu": 1, "example.com/device": 1 } } }] }));
    let said = |room: &Room| not_modelled(std::slice::from_ref(&device), room);
    let mut nodes = room(&[("a", "r", 8)]);
    nodes.ignored = IgnoredResources::parse_list("example.com/*");
    assert_eq!(said(&nodes), [NotModelled::Resource("example.com/device".into())]);
    assert!(asked(&nodes, std::slice::from_ref(&device)).placement().is_some());
}

/// Processors in r1, and a pool of devices that is at zero.
#[test]
fn a_resource_that_no_node_has_is_lacking_unless_someone_else_may_give_it() {
    let asks = |resource: &str, more: Value| {
        let mut spec = json!({ "containers": [{ "resources": { "limits": { "cpu": 1, resource: 1 } } }] });
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        pod(&spec)
    };
    let (device, page, cpu) = ("example.com/device", "hugepages-2Mi", "ephemeral-storage");
    let fits = |room: &Room, pod: &Arc<Needs>| asked(room, std::slice::from_ref(pod)).placement().is_some();
    let said = |room: &Room, pod: &Arc<Needs>| not_modelled(std::slice::from_ref(pod), room).len();
    let mut nodes = room(&[("a", "r1", 8)]);
    for (resource, is_lacking) in [(device, true), (page, true), (cpu, false), ("kubernetes.io/odd", false)] {
        let pod = asks(resource, json!({}));
        assert_eq!((fits(&nodes, &pod), said(&nodes, &pod)), (!is_lacking, usize::from(!is_lacking)), "{resource}");
        assert!(!nodes.may_name_node_of(&pod));
    }
    let of_default = asks(device, json!({ "schedulerName": "default-scheduler" }));
    assert_eq!(
        says(&asked(&nodes, &[of_default.clone(), of_default.clone()])),
        "no rack fits step 3: best r1 fits 0 of 2 pods, short of 2 example.com/device, which no node has in its allocatable and \
         no DeviceClass names (if an extender of the scheduler gives it: `serve --ignore-resources=example.com/device`)"
    );
    // Another scheduler has rules of its own, unless nodes are requested with the resource.
    let of_another = asks(device, json!({ "schedulerName": "volcano" }));
    assert_eq!((fits(&nodes, &of_another), said(&nodes, &of_another)), (true, 2));
    let requested = Arc::new(Needs { awaits: vec![device.into()], ..(*of_another).clone() });
    assert_eq!((fits(&nodes, &requested), said(&nodes, &requested)), (false, 1));
    // Whether a class gives it is not known.
    for sight in [DeviceSight::Awaited, DeviceSight::Refused("forbidden".into())] {
        nodes.devices_mut().sight = sight;
        assert_eq!((fits(&nodes, &of_default), said(&nodes, &of_default)), (true, 1));
        assert!(!fits(&nodes, &requested) && !fits(&nodes, &asks(page, json!({}))));
    }
    assert_eq!(
        nodes.blind_to(&of_default).unwrap(),
        "resource example.com/device, which no node has: whether a DeviceClass names it is not known (forbidden)"
    );
    assert_eq!(nodes.blind_to(&of_another), None);
    nodes.devices_mut().sight = DeviceSight::Known;
    assert!(!fits(&nodes, &of_default) && nodes.blind_to(&of_default).is_none());
    nodes.ignored = IgnoredResources::parse_list(device);
    assert!(fits(&nodes, &of_default) && fits(&nodes, &requested), "an extender of the scheduler gives it");
    // A node that has it counts, ignored or not, and in a part of the nodes as in all.
    let mut with = serde_json::to_value(node("b", "r2", 8)).unwrap();
    with["status"]["allocatable"][device] = json!("1");
    nodes.apply_node(&serde_json::from_value(with).unwrap()).unwrap();
    assert_eq!(domain(&asked(&nodes, std::slice::from_ref(&of_default))), Some("r2"));
    assert!(asked(&nodes, &[of_default.clone(), of_default]).placement().is_none());
    nodes.ignored = IgnoredResources::default();
    let of_default = asks(device, json!({}));
    assert!(!fits(&nodes.of_nodes([&Arc::from("a")]), &of_default));
}

/// Returns a pod of an app that must not share a node, or a rack, with pods of another app.
fn apart(app: &str, from: &str, key: &str) -> Arc<Needs> {
    let term = json!({ "topologyKey": key, "labelSelector": { "matchLabels": { "app": from } } });
    let anti_affinity = json!({ "requiredDuringSchedulingIgnoredDuringExecution": [term] });
    let pod = json!({
        "metadata": { "namespace": "ns", "labels": { "app": app } },
        "spec": {
            "affinity": { "podAntiAffinity": anti_affinity },
            "containers": [{ "resources": { "requests": { GPU: 1 } } }],
        },
    });
    Arc::new(Needs::of(&serde_json::from_value(pod).unwrap()).unwrap())
}

#[test]
fn pods_that_keep_apart_take_a_node_each() {
    let mut room = room(&[("a", "r1", 8), ("b", "r1", 8), ("c", "r2", 8), ("d", "r2", 8), ("e", "r2", 8)]);
    let decode = apart("decode", "decode", "kubernetes.io/hostname");
    let three = vec![decode.clone(); 3];
    // Nodes without the label are not told apart by it.
    assert!(asked(&room, &vec![decode.clone(); 9]).placement().is_some());
    for name in ["a", "b", "c", "d", "e"] {
        let mut labelled = node(name, if name < "c" { "r1" } else { "r2" }, 8);
        labelled.metadata.labels.insert("kubernetes.io/hostname".to_owned(), name.to_owned());
        room.apply_node(&labelled).unwrap();
    }
    assert_eq!(asked(&room, &three).placement().unwrap().nodes, ["c".into(), "d".into(), "e".into()]);
    assert_eq!(
        says(&asked(&room, &vec![decode.clone(); 4])),
        "no rack fits step 3: best r2 fits 3 of 4 pods, its nodes have no more room for pods that required anti-affinity or \
         spread keeps apart"
    );
    // An existing pod keeps others away, and they keep away from it.
    room.apply_pod("there", "d", decode.load.clone(), &decode.peer);
    assert!(asked(&room, &three).placement().is_none());
    let two = asked(&room, &three[..2]);
    assert!(two.placement().is_some(), "{}", says(&two));
    let wary = apart("router", "decode", RACK);
    room.apply_pod("wary", "a", wary.load.clone(), &wary.peer);
    assert_eq!(asked(&room, &three[..2]).placement().unwrap().nodes, ["c".into(), "e".into()], "a router is in r1");
    room.remove_pod("wary");
    assert_eq!(domain(&asked(&room, &three[..2])), Some("r1"));
}

/// A pod that names its node is not checked before it is bound.
#[test]
fn what_nobody_can_have_is_given_back_whole() {
    let mut room = room(&[("a", "r", 8)]);
    let before = room.clone();
    let absurd = pod(&json!({ "containers": [{ "resources": { "requests": { "memory": "9Ei" } } }] }));
    for uid in ["x", "y", "z"] {
        room.apply_pod(uid, "a", absurd.load.clone(), &nobody());
    }
    assert!(says(&asked(&room, &vec![absurd.clone(); 3])).contains("fits 0 of 3 pods, short of "));
    assert!(asked(&room, &[gpus(8)]).placement().is_some(), "no memory is asked for");
    ["x", "y", "z"].iter().for_each(|uid| _ = room.remove_pod(uid));
    assert_eq!(room, before);
}

/// Pods of 5, 3, 2 and 1 on nodes of 7: no way is complete, and there are too many to try all.
#[test]
fn a_search_that_would_take_too_long_ends_and_says_so() {
    let nodes: Vec<_> = (0..500).map(|number| format!("n{number}")).collect();
    let nodes: Vec<_> = nodes.iter().map(|name| (name.as_str(), "r", 7)).collect();
    let room = room(&nodes);
    let pods = [vec![gpus(5); 300], vec![gpus(3); 401], vec![gpus(2); 300], vec![gpus(1); 100]].concat();
    let fit = asked(&room, &pods);
    assert!(says(&fit).ends_with("; not every way to place the pods was tried"), "{}", says(&fit));
}

#[test]
fn a_pod_goes_where_kubelets_declare_the_features_that_it_needs() {
    let declares = |name: &str, rack: &str, features: &[&str]| {
        typed::<Node>(build::with(json!(node(name, rack, 1)), &json!({ "status": { "declaredFeatures": features } })))
    };
    let restarts = |action: &str| {
        pod(&json!({ "initContainers": [{ "restartPolicyRules": [{ "action": "Restart" }, { "action": action }] }] }))
    };
    let in_user_namespace = |host_network: bool| pod(&json!({ "hostUsers": false, "hostNetwork": host_network }));
    let mut room = Room::default();
    room.apply_node(&declares("a", "r1", &["ExtendWebSocketsToKubelet"])).unwrap();
    let why =
        "no rack fits step 3: best r1 fits 0 of 1 pods, nodes without features of the kubelet that its pods need: 1";
    assert_eq!(says(&asked(&room, &[restarts("RestartAllContainers")])), why);
    assert_eq!(says(&asked(&room, &[in_user_namespace(true)])), why);
    for needs in [restarts("Restart"), in_user_namespace(false)] {
        assert_eq!(domain(&asked(&room, &[needs])), Some("r1"));
    }
    room.apply_node(&declares("b", "r2", &["RestartAllContainersOnContainerExits"])).unwrap();
    assert_eq!(domain(&asked(&room, &[restarts("RestartAllContainers")])), Some("r2"));
    assert_eq!(says(&asked(&room, &[in_user_namespace(true)])), why);
    // A kubelet before 1.36 declares nothing, and its scheduler does not look.
    room.apply_node(&declares("c", "r3", &[])).unwrap();
    assert_eq!(domain(&asked(&room, &[in_user_namespace(true)])), Some("r3"));
}
