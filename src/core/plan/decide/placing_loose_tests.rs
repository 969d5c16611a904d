use std::time::Duration;

use serde_json::{Value, json};

use super::tests::{RACK, Scene, going, held};
use crate::build::{self, typed, with};
use crate::model::{HoldReason, names};
use crate::plan::decide::DecisionContext;
use crate::plan::decide::placed::Awaits;

const OF_BATCH: [&str; 3] = ["prefill-0", "prefill-1", "decode-0"];
const WAITS: &str = "batch 2 is held: r1 waits for pods of group \"pd\" to be bound";

/// Two batches of three pods, of which those of the second differ, and a rack with room for both.
fn of_two_sorts() -> Scene {
    let scene = Scene::new(2, "hold").node("a", "r1", 4, false).node("b", "r1", 2, false);
    scene.asking_of("decode-1", &json!({ "priority": 6 }))
}

/// Returns the pins of the pods that go.
fn pins(scene: &mut Scene) -> Vec<Vec<String>> {
    let seen = scene.decide(DecisionContext::default());
    going(&seen).into_iter().map(|(_, _, pin)| pin.into_iter().map(str::to_owned).collect()).collect()
}

/// Returns the free processors of each node.
fn free(scene: &Scene) -> Vec<i64> {
    scene.capacity.room().nodes().map(|(_, room, _)| room.free("cpu") / 1000).collect()
}

#[test]
fn pods_that_differ_wait_until_a_domain_has_bound_those_that_name_no_node() {
    let mut scene = of_two_sorts();
    let seen = scene.decide(DecisionContext::default());
    assert!(going(&seen).iter().all(|(_, _, pin)| *pin == ["r1"]), "{:?}", going(&seen));
    assert_eq!((going(&seen).len(), held(&seen)), (3, vec![(HoldReason::NoRoom, 3, WAITS)]));
    assert_eq!(scene.line.in_order(), [scene.group.key.clone()], "it is looked at again");
    let freed = scene.capacity.freed();
    let mut scene = OF_BATCH.into_iter().fold(scene.store(), |scene, pod| scene.went(pod, Some("a")));
    assert!(scene.capacity.freed() > freed);
    let pins = pins(&mut scene);
    assert_eq!((pins.len(), pins.iter().filter(|pin| pin.len() == 2).count()), (3, 3), "named: {pins:?}");
}

#[test]
fn equal_pods_join_and_whoever_is_bound_first_the_others_have_room() {
    for nodes in [["a", "a", "b"], ["b", "a", "a"], ["a", "b", "b"], ["b", "b", "a"]] {
        let mut scene = Scene::new(2, "hold").node("a", "r1", 4, false).node("b", "r1", 2, false);
        assert_eq!(pins(&mut scene), vec![vec!["r1"]; 6]);
        for (pod, node) in OF_BATCH.into_iter().zip(nodes) {
            scene = scene.went(pod, Some(node));
            assert_eq!(free(&scene), [0, 0], "{nodes:?}");
        }
    }
}

/// The pods of the first batch were released before this process led, and nothing else tells of them.
#[test]
fn a_new_leader_knows_by_the_domain_of_a_pod_that_it_may_go_to_any_node_there() {
    let sent = json!({ "nodeSelector": { RACK: "r1" }, "priority": 5 });
    let scene = || of_two_sorts().committed(&[("0", "r1")]).went("prefill-0", Some("b")).went("decode-0", Some("b"));
    let mut new = scene().went("prefill-1", None).asking_of("prefill-1", &sent);
    let seen = new.decide(DecisionContext::default());
    assert_eq!((going(&seen).len(), held(&seen)), (0, vec![(HoldReason::NoRoom, 3, WAITS)]));
    let waited = &[(0, 0, Awaits::Node)];
    let seen = new.decide(DecisionContext { waited, ..DecisionContext::default() });
    assert_eq!(going(&seen).len(), 3, "its room is free for others after a while");
    let named = json!({ "nodeSelector": { RACK: "r1", "kubernetes.io/hostname": "a" }, "priority": 5 });
    let mut before = scene().went("prefill-1", None).asking_of("prefill-1", &named);
    assert_eq!(pins(&mut before).len(), 3, "a pod that names its node takes no other");
}

/// Its group is not there any more, or coordinates nothing.
#[test]
fn a_pod_that_no_group_looks_at_keeps_its_room() {
    let own = json!([{ "key": names::KEP75_BATCH, "operator": "In", "values": ["x"] }]);
    let term = json!([{ "topologyKey": RACK, "labelSelector": { "matchExpressions": own } }]);
    let affinity = json!({ "podAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": term } });
    let orphan = |selects: &Value| {
        let labels = json!({ (names::GROUP): "gone" });
        let spec = json!({ "nodeSelector": selects, "affinity": affinity });
        typed(with(
            build::pod("orphan", false, &json!({ "cpu": 1 })),
            &json!({ "metadata": { "labels": labels }, "spec": spec }),
        ))
    };
    let mut scene = Scene::new(1, "hold").node("a", "r1", 4, false);
    scene.capacity.apply_pod(&orphan(&json!({ RACK: "r1" }))).unwrap();
    assert_eq!((pins(&mut scene).len(), free(&scene)), (3, vec![0]));
    let mut scene = Scene::new(1, "hold").node("a", "r1", 3, false);
    scene.capacity.apply_pod(&orphan(&json!({ RACK: "r1" }))).unwrap();
    assert_eq!((pins(&mut scene).len(), free(&scene)), (0, vec![2]));
    scene.capacity.remove_pod("orphan");
    assert_eq!((pins(&mut scene).len(), free(&scene)), (3, vec![0]));
    // A pod that only selects nodes was placed by nobody.
    let mut scene = Scene::new(1, "hold").node("a", "r1", 3, false);
    scene.capacity.apply_pod(&orphan(&json!({ "disk": "ssd" }))).unwrap();
    assert_eq!(pins(&mut scene).len(), 3);
}

/// A node is cordoned, smaller or gone: the pods that were to go there go elsewhere in the domain.
#[test]
fn equal_pods_join_no_others_that_have_lost_their_place() {
    let placed = || {
        let mut scene = Scene::new(1, "hold").node("a", "r1", 3, false);
        assert_eq!(pins(&mut scene), vec![vec!["r1"]; 3]);
        scene.node("b", "r1", 9, false)
    };
    let closed = |scene: Scene| {
        let like = scene.capacity.needs("prefill-0").unwrap().without(&[RACK]);
        scene.capacity.closed_to((RACK, Some(&like)), &[], Duration::ZERO).len()
    };
    assert_eq!(closed(placed()), 0);
    assert_eq!(closed(placed().node("a", "r1", 3, true)), 1);
    assert_eq!(closed(placed().node("a", "r1", 2, false)), 1);
    let mut scene = placed();
    scene.capacity.remove_node("a");
    assert_eq!(closed(scene), 1);
}

#[test]
fn nodes_are_named_where_the_order_of_binding_matters() {
    let terms = json!([{ "topologyKey": "zone", "labelSelector": { "matchLabels": { "app": "x" } } }]);
    let apart = json!({ "podAntiAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": terms } });
    let spread = json!([{ "topologyKey": "kubernetes.io/hostname", "maxSkew": 9, "labelSelector": {} }]);
    let port =
        json!([{ "ports": [{ "containerPort": 80, "hostPort": 80 }], "resources": { "requests": { "cpu": 1 } } }]);
    let nodes =
        || ["a", "b", "c"].into_iter().fold(Scene::new(1, "hold"), |scene, name| scene.node(name, "r1", 1, false));
    let named = |spec: &Value| pins(&mut nodes().asking(spec)).iter().map(Vec::len).collect::<Vec<_>>();
    assert_eq!(named(&json!({ "tolerations": [{ "operator": "Exists" }] })), [1, 1, 1]);
    assert_eq!(named(&json!({ "containers": port })), [2, 2, 2]);
    assert_eq!(named(&json!({ "affinity": apart })), [2, 2, 2]);
    assert_eq!(named(&json!({ "topologySpreadConstraints": spread })), [2, 2, 2]);
}
