//! Room as the scheduler counts it: nominated pods, preemption, and resources that only the scheduler knows.

use serde_json::{Value, json};

use super::tests::{RACK, Scene, domains, going, held, unjudged};
use crate::build::{self, typed, with};
use crate::model::{HoldReason, IgnoredResources, names};
use crate::plan::decide::DecisionContext;
use crate::plan::decide::placed::Awaits;
use crate::plan::placement::{Capacity, VolumeSight};
use crate::plan::test_support;

/// A pod without a node that the scheduler has nominated to `node`; with or without a group.
fn nominated(uid: &str, node: Option<&str>, (cpu, priority): (u32, i32), of_group: bool) -> Value {
    let labels = if of_group { json!({ (names::GROUP): "pd" }) } else { json!({}) };
    let more = json!({
        "metadata": { "labels": labels }, "spec": { "priority": priority }, "status": { "nominatedNodeName": node },
    });
    with(build::pod(uid, false, &json!({ "cpu": cpu })), &more)
}

fn show(scene: &mut Scene, pod: Value) {
    scene.capacity.apply_pod(&typed(pod)).unwrap();
}

fn free(scene: &Scene, node: &str) -> i64 {
    scene.capacity.room().nodes().find(|(name, _, _)| ***name == *node).unwrap().1.free("cpu") / 1000
}

#[test]
fn room_that_the_scheduler_keeps_for_a_pod_as_important_is_no_room() {
    let with = |priority: i32| {
        let mut scene = Scene::new(1, "hold").node("a", "r1", 3, false);
        show(&mut scene, nominated("other", Some("a"), (1, priority), false));
        scene
    };
    for priority in [5, 6] {
        let mut scene = with(priority);
        let why = "no rack fits batch 1: best r1 fits 2 of 3 pods, short of 1 cpu";
        assert_eq!(held(&scene.decide(DecisionContext::default())), [(HoldReason::NoRoom, 3, why)], "{priority}");
        // It may go elsewhere: its nomination ends, and the batch is worth another look.
        let freed = scene.capacity.freed();
        show(&mut scene, nominated("other", None, (1, priority), false));
        assert!(scene.capacity.freed() > freed);
        assert_eq!(going(&scene.decide(DecisionContext::default())).len(), 3, "{priority}");
    }
    let seen = with(4).decide(DecisionContext::default());
    assert_eq!(going(&seen).len(), 3, "of a less important one it is taken: {:?}", held(&seen));
}

#[test]
fn one_that_is_bound_elsewhere_or_goes_leaves_what_was_kept_for_it() {
    let mut scene = Scene::new(1, "hold").node("a", "r1", 3, false).node("b", "r2", 1, false);
    let before = scene.capacity.room().clone();
    show(&mut scene, nominated("x", Some("a"), (2, 9), false));
    assert_eq!(free(&scene, "a"), 1);
    let mut bound = nominated("x", Some("a"), (2, 9), false);
    bound["spec"]["nodeName"] = json!("b");
    let freed = scene.capacity.freed();
    show(&mut scene, bound);
    assert_eq!((free(&scene, "a"), free(&scene, "b"), scene.capacity.freed()), (3, -1, freed + 1));
    show(&mut scene, nominated("y", Some("a"), (2, 9), false));
    ["x", "y"].iter().for_each(|uid| scene.capacity.remove_pod(uid));
    assert_eq!(*scene.capacity.room(), before);
}

#[test]
fn a_pod_that_has_shrunk_leaves_room_that_is_worth_another_look() {
    let mut scene = Scene::new(1, "hold").node("a", "r1", 4, false);
    let mut runs = |cpu: u32| {
        let mut pod = nominated("x", None, (1, 9), false);
        pod["spec"]["nodeName"] = json!("a");
        pod["status"] =
            json!({ "containerStatuses": [{ "name": "main", "resources": { "requests": { "cpu": cpu } } }] });
        show(&mut scene, pod);
        (free(&scene, "a"), scene.capacity.freed())
    };
    let (before, freed) = runs(3);
    assert_eq!((before, runs(1)), (1, (3, freed + 1)));
}

/// The pods preempted others and wait for these to end: the room is theirs, however long that takes.
#[test]
fn room_that_is_kept_for_our_own_pods_is_counted_once_and_not_given_up() {
    let mut scene = Scene::new(1, "preempt").node("a", "r1", 4, false).committed(&[("0", "r1")]);
    for name in ["prefill-0", "prefill-1", "decode-0"] {
        scene = scene.went(name, None);
        show(&mut scene, nominated(name, Some("a"), (1, 5), true));
    }
    assert_eq!(free(&scene, "a"), 1);
    let kept = scene.decide(DecisionContext::default());
    assert_eq!((held(&kept), free(&scene, "a")), (vec![], 1), "each once");
    let late = DecisionContext { waited: &[(0, 0, Awaits::Node)], ..DecisionContext::default() };
    assert_eq!(held(&scene.decide(late))[0].0, HoldReason::PlacedNotBound);
    assert_eq!(free(&scene, "a"), 1, "the scheduler keeps it all the same");
    show(&mut scene, nominated("decode-0", None, (1, 5), true));
    assert_eq!(free(&scene, "a"), 2, "until it does not");
}

#[test]
fn pods_that_never_preempt_are_not_let_go_onto_a_full_rack() {
    let crowded = || Scene::new(1, "preempt").node("a", "r1", 2, false).node("b", "r2", 3, false).other("b", 3, 4);
    let mut scene = crowded().asking(&json!({ "preemptionPolicy": "Never" }));
    let why = "no rack fits batch 1: best r1 fits 2 of 3 pods, short of 1 cpu; pods with preemptionPolicy Never take no \
               other's place";
    assert_eq!(held(&scene.decide(DecisionContext::default())), [(HoldReason::NoRoom, 3, why)]);
    let seen =
        crowded().asking(&json!({ "preemptionPolicy": "PreemptLowerPriority" })).decide(DecisionContext::default());
    assert_eq!(going(&seen).len(), 3);
}

#[test]
fn what_asks_for_a_resource_of_an_extender_goes_by_its_domain() {
    let asks = json!({ "containers": [{ "resources": { "requests": { "cpu": 1, "example.com/gpu": 1 } } }] });
    let mut scene = Scene::new(1, "hold");
    scene.capacity = Capacity::ignoring(IgnoredResources::parse_list("example.com/gpu"));
    let mut scene = scene.asking(&asks).node("a", "r1", 2, false).node("b", "r2", 3, false).store();
    let seen = scene.decide(DecisionContext::default());
    assert!(going(&seen).iter().all(|(_, now, pin)| *now && *pin == ["r2"]), "{:?}", going(&seen));
    assert_eq!(going(&seen).len(), 3);
    // One node reports the resource: then it is known that there is too little.
    let node = |gpus: &str, labels: &Value| {
        build::node("c", labels, &json!({ "cpu": "3", "pods": "9", "example.com/gpu": gpus }))
    };
    let mut scene = Scene::new(1, "hold").asking(&asks).node("b", "r2", 3, false);
    scene.capacity.apply_node(&typed(node("0", &json!({ RACK: "r3" })))).unwrap();
    assert_eq!(held(&scene.decide(DecisionContext::default()))[0].0, HoldReason::NoRoom);
    scene.capacity.apply_node(&typed(node("3", &json!({ RACK: "r3", "kubernetes.io/hostname": "c" })))).unwrap();
    let seen = scene.decide(DecisionContext::default());
    assert!(going(&seen).iter().all(|(_, _, pin)| *pin == ["r3"]), "{:?}", going(&seen));
}

/// The affinity that the webhook gives to pods with a number.
fn own_batch() -> Value {
    let selector =
        json!({ "matchExpressions": [{ "key": names::KEP75_BATCH, "operator": "In", "values": ["pd-pair-0"] }] });
    let terms = json!([{ "topologyKey": RACK, "labelSelector": selector }]);
    json!({ "affinity": { "podAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": terms } } })
}

#[test]
fn where_no_node_has_the_label_a_batch_that_is_to_go_all_the_same_goes_without_a_domain() {
    let mut scene = Scene::new(1, "release").asking(&own_batch()).store();
    let seen = scene.decide(DecisionContext::default());
    assert!(going(&seen).iter().all(|(_, now, pin)| *now && pin.is_empty()), "{:?}", going(&seen));
    let why = "batch 1 goes without a place: no node has the label rack, and its affinity keeps it together";
    assert_eq!((going(&seen).len(), held(&seen)), (3, vec![(HoldReason::RoomUnknown, 0, why)]));
    assert!(domains(&seen).is_empty());
    let mut gone = Scene::new(1, "release").asking(&own_batch()).store();
    for name in ["prefill-0", "prefill-1", "decode-0"] {
        gone = gone.went(name, None);
    }
    let lasts = gone.decide(DecisionContext::default());
    assert_eq!((held(&lasts), unjudged(&lasts)), (vec![], Some(why)));
    let lasts = gone.node("a", "r1", 9, false).decide(DecisionContext::default());
    assert_eq!(unjudged(&lasts), None, "a node has the label");
    // Two pods were released, and nodes appear: the scheduler may put them anywhere, and the third follows them.
    let mut scene = scene.went("prefill-0", None).went("prefill-1", None).node("a", "r1", 9, false);
    let seen = scene.decide(DecisionContext::default());
    assert_eq!(going(&seen), [("decode-0", true, vec![])]);
    let mut scene = scene.node("b", "r2", 9, false).went("prefill-0", Some("b"));
    assert_eq!(domains(&scene.decide(DecisionContext::default())), [("0".to_owned(), "r2".to_owned())].into());
}

#[test]
fn without_an_affinity_or_with_another_word_it_waits_for_a_node_with_the_label() {
    let why = "no rack fits batch 1: no node has one";
    for mut scene in [
        Scene::new(1, "release"),
        Scene::new(1, "hold").asking(&own_batch()),
        Scene::new(1, "preempt").asking(&own_batch()),
    ] {
        assert_eq!(held(&scene.decide(DecisionContext::default())), [(HoldReason::NoRoom, 3, why)]);
    }
}

/// Shows a pod of the batch with its gate and a claim of its own.
fn claims(scene: &mut Scene, uid: &str) {
    claims_on(scene, uid, None);
}

fn claims_on(scene: &mut Scene, uid: &str, node: Option<&str>) {
    let data = json!({ "name": "data", "persistentVolumeClaim": { "claimName": format!("data-{uid}") } });
    let volumes = json!([data, { "name": "scratch", "ephemeral": {} }]);
    let spec = json!({ "priority": 5, "volumes": volumes, "nodeName": node });
    test_support::show(&mut scene.capacity, uid, node.is_none(), &spec);
}

fn volumes(scene: &mut Scene, what: &str, object: &Value) {
    let object = object.clone();
    scene.capacity.change_volumes(|volumes| match what {
        "claim" => volumes.apply_claim(&typed(object)),
        "volume" => volumes.apply_volume(&typed(object)),
        "class" => volumes.apply_class(&typed(object)),
        "driver" => volumes.apply_driver(&typed(object)),
        "space" => volumes.apply_space(&typed(object)),
        _ => {
            volumes.sight = serde_json::from_value(object).map_or(VolumeSight::Known, |why: Option<String>| {
                why.map_or(VolumeSight::Awaited, |why| VolumeSight::Refused(why.into()))
            });
            true
        }
    });
}

/// A batch with claims, where the claim of `decode-0` is bound to a volume of this rack.
fn with_volumes(rack: &str) -> Scene {
    let mut scene = Scene::new(1, "hold").node("a", "r1", 9, false).node("b", "r2", 3, false);
    ["prefill-0", "prefill-1", "decode-0"].iter().for_each(|uid| claims(&mut scene, uid));
    let terms = json!([{ "matchExpressions": [{ "key": RACK, "operator": "In", "values": [rack] }] }]);
    let volume = json!({ "metadata": { "name": "v" }, "spec": { "nodeAffinity": { "required": { "nodeSelectorTerms": terms } } } });
    volumes(&mut scene, "volume", &volume);
    let claim = json!({ "metadata": { "name": "data-decode-0", "namespace": "ns" }, "spec": { "volumeName": "v", "storageClassName": "slow" } });
    volumes(&mut scene, "claim", &claim);
    scene
}

#[test]
fn a_batch_goes_where_its_volumes_are() {
    let mut scene = with_volumes("r1");
    volumes(&mut scene, "sight", &Value::Null);
    let why = "batch 1 is held: what room there is, is not known yet";
    assert_eq!(held(&scene.decide(DecisionContext::default())), [(HoldReason::RoomUnknown, 3, why)]);
    volumes(&mut scene, "sight", &json!(1));
    let seen = scene.decide(DecisionContext::default());
    assert_eq!(domains(&seen), [("0".to_owned(), "r1".to_owned())].into(), "r2 would be the better fit");
    assert!(going(&seen).iter().all(|(_, _, pin)| *pin == ["r1"]), "how many a node takes is not known");
    // Volumes that may not be read are reported, and hold nothing back.
    let mut scene = with_volumes("r1");
    volumes(&mut scene, "sight", &json!("persistentvolumes may not be read"));
    let seen = scene.decide(DecisionContext::default());
    let why = "batch 1 goes without a look at the claims of its pods: persistentvolumes may not be read";
    assert_eq!((going(&seen).len(), held(&seen)), (3, vec![(HoldReason::RoomUnknown, 0, why)]));
    assert_eq!(unjudged(&seen), Some(why));
    // As long as it is so, and while nobody knows.
    let mut scene = scene.committed(&[("0", "r1")]);
    for name in ["prefill-0", "prefill-1", "decode-0"] {
        scene = scene.went(name, Some("a"));
        claims_on(&mut scene, name, Some("a"));
    }
    let seen = scene.decide(DecisionContext::default());
    assert_eq!((held(&seen), unjudged(&seen)), (vec![], Some(why)));
    let mut scene = scene.store();
    volumes(&mut scene, "sight", &Value::Null);
    assert_eq!(unjudged(&scene.decide(DecisionContext::default())), Some(why));
    volumes(&mut scene, "sight", &json!(1));
    assert_eq!(unjudged(&scene.decide(DecisionContext::default())), None);
}

#[test]
fn a_claim_that_waits_is_bound_where_its_class_makes_volumes() {
    let mut scene = with_volumes("r1");
    volumes(&mut scene, "sight", &json!(1));
    let topologies = |rack: &str| json!([{ "matchLabelExpressions": [{ "key": RACK, "values": [rack] }] }]);
    let class = |mode: &str, rack: &str| {
        json!({
            "metadata": { "name": "fast" }, "provisioner": "csi.example.com", "volumeBindingMode": mode, "allowedTopologies": topologies(rack),
        })
    };
    let ephemeral = json!({ "metadata": { "name": "prefill-0-scratch", "namespace": "ns" }, "spec": { "storageClassName": "fast" } });
    volumes(&mut scene, "claim", &ephemeral);
    volumes(&mut scene, "class", &class("WaitForFirstConsumer", "r2"));
    let why = "no rack fits batch 1: best r2 fits 2 of 3 pods, short of 1 cpu, nodes from which claim \
               \"ns/data-decode-0\" cannot be reached: 1";
    assert_eq!(held(&scene.decide(DecisionContext::default())), [(HoldReason::NoRoom, 3, why)]);
    let freed = scene.capacity.freed();
    volumes(&mut scene, "class", &class("WaitForFirstConsumer", "r1"));
    assert!(scene.capacity.freed() > freed, "it is worth another look");
    assert_eq!(going(&scene.decide(DecisionContext::default())).len(), 3);
    // A claim with immediate binding is bound already, or will be: where is not known.
    volumes(&mut scene, "class", &class("Immediate", "r2"));
    assert_eq!(going(&scene.decide(DecisionContext::default())).len(), 3);
}

#[test]
fn a_new_volume_is_made_where_its_driver_has_room_for_it() {
    let mut scene = with_volumes("r1");
    volumes(&mut scene, "sight", &json!(1));
    let claim = json!({ "storageClassName": "fast", "resources": { "requests": { "storage": "10Gi" } } });
    let claim = json!({ "metadata": { "name": "prefill-0-scratch", "namespace": "ns" }, "spec": claim });
    volumes(&mut scene, "claim", &claim);
    let class = json!({ "metadata": { "name": "fast" }, "provisioner": "csi.example.com", "volumeBindingMode": "WaitForFirstConsumer" });
    volumes(&mut scene, "class", &class);
    let count = |scene: &mut Scene| going(&scene.decide(DecisionContext::default())).len();
    assert_eq!(count(&mut scene), 3, "the driver tells nothing");
    let tells =
        |tells: bool| json!({ "metadata": { "name": "csi.example.com" }, "spec": { "storageCapacity": tells } });
    let space = |class: &str, nodes: Value, most: &str| {
        let room =
            json!({ "storageClassName": class, "nodeTopology": nodes, "capacity": "1Ti", "maximumVolumeSize": most });
        build::with(json!({ "metadata": { "name": "s", "namespace": "csi" } }), &room)
    };
    volumes(&mut scene, "driver", &tells(true));
    let rack = |rack: &str| json!({ "matchLabels": { RACK: rack } });
    for (told, goes) in [
        (Value::Null, 0),
        (space("fast", rack("r2"), "10Gi"), 0),
        (space("fast", rack("r1"), "9Gi"), 0),
        (space("slow", rack("r1"), "10Gi"), 0),
        (space("fast", Value::Null, "10Gi"), 0),
        (space("fast", rack("r1"), "10Gi"), 3),
        (space("fast", json!({}), "10Gi"), 3),
    ] {
        let freed = scene.capacity.freed();
        if told != Value::Null {
            volumes(&mut scene, "space", &told);
        }
        assert_eq!(count(&mut scene), goes, "{told}");
        assert!(goes == 0 || scene.capacity.freed() > freed, "it is worth another look");
    }
    volumes(&mut scene, "space", &space("fast", rack("r2"), "10Gi"));
    volumes(&mut scene, "driver", &tells(false));
    assert_eq!(count(&mut scene), 3, "it tells nothing any more");
}

/// The pods were deleted, and their volumes stay: the committed domain is not reachable for them.
#[test]
fn a_batch_whose_volumes_are_elsewhere_leaves_its_domain() {
    let mut scene = with_volumes("r1").committed(&[("0", "r2")]);
    ["prefill-0", "prefill-1", "decode-0"].iter().for_each(|uid| claims(&mut scene, uid));
    volumes(&mut scene, "sight", &json!(1));
    assert_eq!(domains(&scene.decide(DecisionContext::default())), [("0".to_owned(), "r1".to_owned())].into());
}
