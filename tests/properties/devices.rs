//! Devices that are known event by event are those of a fresh look: whatever order slices, classes, claims, templates and taints
//! come and go in, pods go to the same nodes, and the same is not modelled.

use std::sync::Arc;

use rolegate::api::scheduling::SchedulingPod;
use rolegate::api::{Meta, Object};
use rolegate::plan::devices::{DeviceObject, Devices, ObjectSort};
use rolegate::plan::placement::{Fit, Needs, Question, Room, not_modelled, place};

use crate::prelude::*;
use crate::tried;

const SORTS: [ObjectSort; 5] =
    [ObjectSort::Class, ObjectSort::Template, ObjectSort::Claim, ObjectSort::TaintRule, ObjectSort::Slice];
const NODES: [(&str, &str); 3] = [("a1", "a"), ("a2", "a"), ("b1", "b")];
const RESOURCE: &str = "example.com/gpu";

fn read<T: serde::de::DeserializeOwned>(object: Value) -> T {
    serde_json::from_value(object).unwrap()
}

/// Something that the watches tell of an object of a kind, by its number.
#[derive(Clone, Debug)]
enum Event {
    Applied(ObjectSort, u32, u64),
    Gone(ObjectSort, u32),
    /// All objects of a kind are listed once more.
    Listed(ObjectSort),
}

fn event() -> impl Strategy<Value = Event> {
    let sort = || prop::sample::select(SORTS.to_vec());
    prop_oneof![
        8 => (sort(), 0..4_u32, any::<u64>()).prop_map(|(sort, number, shape)| Event::Applied(sort, number, shape)),
        2 => (sort(), 0..4_u32).prop_map(|(sort, number)| Event::Gone(sort, number)),
        1 => sort().prop_map(Event::Listed),
    ]
}

/// The next of so many choices.
fn choice(shape: &mut u64, of: u64) -> u64 {
    let (rest, chosen) = (*shape / of, *shape % of);
    *shape = rest;
    chosen
}

fn chosen<'a>(shape: &mut u64, from: &[&'a str]) -> &'a str {
    from[usize::try_from(choice(shape, from.len() as u64)).unwrap()]
}

const SELECTORS: [&str; 4] = [
    "device.driver == 'gpu.example.com'",
    "has(device.attributes['gpu.example.com'].model) && device.attributes['gpu.example.com'].model == 'h100'",
    "device.capacity['gpu.example.com'].memory.compareTo(quantity('60Gi')) >= 0",
    "'gpu.example.com' in device.attributes",
];

fn object_of(sort: ObjectSort, number: u32, mut shape: u64) -> DeviceObject {
    let shape = &mut shape;
    match sort {
        ObjectSort::Class => {
            let cel = |text: &str| json!({ "cel": { "expression": text } });
            let selectors: Vec<_> = (0..choice(shape, 3)).map(|_| cel(chosen(shape, &SELECTORS))).collect();
            DeviceObject::Class(read(json!({
                "metadata": { "name": format!("class-{number}"), "creationTimestamp": format!("2026-01-0{}T00:00:00Z", 1 + choice(shape, 3)) },
                "spec": { "selectors": selectors, "extendedResourceName": chosen(shape, &["", RESOURCE, RESOURCE, "example.com/other"]) },
            })))
        }
        ObjectSort::Template => {
            let metadata = json!({ "name": format!("template-{number}"), "namespace": "ns" });
            DeviceObject::Template(read(json!({ "metadata": metadata, "spec": { "spec": claim_spec(shape) } })))
        }
        ObjectSort::Claim => {
            let device = |shape: &mut u64| json!({ "driver": "gpu.example.com", "pool": chosen(shape, &["a1", "a2", "b1"]), "device": format!("gpu-{}", choice(shape, 4)) });
            let spec = claim_spec(shape);
            let status = if choice(shape, 4) == 0 {
                json!({})
            } else {
                let results: Vec<_> = (0..choice(shape, 4)).map(|_| device(shape)).collect();
                let users: Vec<_> = (0..choice(shape, 3)).map(|user| json!({ "uid": user.to_string() })).collect();
                let here =
                    json!({ "key": "metadata.name", "operator": "In", "values": [chosen(shape, &["a1", "a2", "b1"])] });
                let nodes = json!({ "nodeSelectorTerms": [{ "matchFields": [here] }] });
                json!({ "allocation": { "devices": { "results": results }, "nodeSelector": nodes }, "reservedFor": users })
            };
            let metadata = json!({ "name": format!("claim-{number}"), "namespace": "ns" });
            DeviceObject::Claim(read(json!({ "metadata": metadata, "spec": spec, "status": status })))
        }
        ObjectSort::TaintRule => {
            let mut selector = json!({});
            if choice(shape, 2) == 0 {
                selector["pool"] = json!(chosen(shape, &["a1", "a2", "b1"]));
            }
            if choice(shape, 2) == 0 {
                selector["device"] = json!(format!("gpu-{}", choice(shape, 4)));
            }
            let effect = chosen(shape, &["NoSchedule", "NoExecute", "None"]);
            let mut spec = json!({ "taint": { "key": "bad", "effect": effect } });
            if choice(shape, 8) > 0 {
                spec["deviceSelector"] = selector;
            }
            DeviceObject::TaintRule(read(json!({ "metadata": { "name": format!("rule-{number}") }, "spec": spec })))
        }
        ObjectSort::Slice => DeviceObject::Slice(slice(number, shape)),
    }
}

fn slice(number: u32, shape: &mut u64) -> rolegate::api::device::ResourceSlice {
    let node = chosen(shape, &["a1", "a2", "b1"]);
    let count = 1 + choice(shape, 4);
    let from = choice(shape, 2) * 2;
    let of_own = choice(shape, 8) == 0;
    let device = |at: u64, shape: &mut u64| {
        let memory = json!({ "value": chosen(shape, &["40Gi", "80Gi"]) });
        let mut device =
            json!({ "name": format!("gpu-{}", from + at), "attributes": {}, "capacity": { "memory": memory } });
        if choice(shape, 4) > 0 {
            device["attributes"]["model"] = json!({ "string": chosen(shape, &["a100", "h100"]) });
            device["attributes"]["root"] = json!({ "int": choice(shape, 2) });
        }
        if choice(shape, 12) == 0 {
            device["allowMultipleAllocations"] = json!(true);
        }
        if choice(shape, 6) == 0 {
            device["taints"] = json!([{ "key": "bad", "effect": "NoSchedule" }]);
        }
        if of_own {
            device["nodeName"] = json!(chosen(shape, &["a1", "a2", "b1"]));
        }
        device
    };
    let devices: Vec<_> = (0..count).map(|at| device(at, shape)).collect();
    let pool = json!({
        "name": node, "generation": 1 + choice(shape, 2), "resourceSliceCount": 1 + choice(shape, 4) / 3,
    });
    let mut spec = json!({ "driver": "gpu.example.com", "pool": pool, "devices": devices });
    match choice(shape, 12) {
        _ if of_own => spec["perDeviceNodeSelection"] = json!(true),
        0 => spec["allNodes"] = json!(true),
        _ => spec["nodeName"] = json!(node),
    }
    read(json!({ "metadata": { "name": format!("slice-{number}") }, "spec": spec }))
}

fn claim_spec(shape: &mut u64) -> Value {
    let mut exactly = json!({ "deviceClassName": format!("class-{}", choice(shape, 3)) });
    match choice(shape, 4) {
        0 => exactly["allocationMode"] = json!("All"),
        count => exactly["count"] = json!(count),
    }
    if choice(shape, 3) == 0 {
        exactly["selectors"] = json!([{ "cel": { "expression": chosen(shape, &SELECTORS) } }]);
    }
    if choice(shape, 4) == 0 {
        exactly["tolerations"] = json!([{ "operator": "Exists" }]);
    }
    let mut devices = json!({ "requests": [{ "name": "r", "exactly": exactly }] });
    if choice(shape, 3) == 0 {
        devices["constraints"] = json!([{ "matchAttribute": "gpu.example.com/root" }]);
    }
    json!({ "devices": devices })
}

fn room() -> Room {
    let mut room = Room::default();
    for (name, rack) in NODES {
        let node = json!({
            "metadata": { "name": name, "labels": { "rack": rack } },
            "status": { "allocatable": { "pods": "20" }, "conditions": [{ "type": "Ready", "status": "True" }] },
        });
        room.apply_node(&read(node)).unwrap();
    }
    room
}

fn needs(spec: &Value) -> Arc<Needs> {
    let pod: SchedulingPod = read(json!({ "metadata": { "name": "p", "namespace": "ns" }, "spec": spec }));
    Arc::new(Needs::of(&pod).unwrap())
}

fn asked() -> Vec<Arc<Needs>> {
    let of_claim = |claim: Value| needs(&json!({ "resourceClaims": [claim], "containers": [{ "name": "main" }] }));
    let templates = (0..4).map(|at| json!({ "name": "c", "resourceClaimTemplateName": format!("template-{at}") }));
    let claims = (0..2).map(|at| json!({ "name": "c", "resourceClaimName": format!("claim-{at}") }));
    let of_resource = |resource: &str| {
        needs(&json!({ "containers": [{ "name": "main", "resources": { "limits": { resource: 2 } } }] }))
    };
    let resources = [RESOURCE, "deviceclass.resource.kubernetes.io/class-0"].into_iter().map(of_resource);
    templates.chain(claims).map(of_claim).chain(resources).collect()
}

/// Where pods go by what a room knows: for each, alone and together with one like it and the one after it, the nodes; and what is not modelled.
fn answers(room: &Room, asked: &[Arc<Needs>]) -> Vec<String> {
    let used = BTreeMap::new();
    let goes = |pods: &[Arc<Needs>]| {
        let pods: Vec<_> = pods.iter().map(|needs| room.reached(needs.clone()).unwrap()).collect();
        let said = not_modelled(&pods, room);
        match place(room, &Question::new(&pods, Some("rack"), &used)) {
            // Where something is not modelled, the rest is answered alike.
            Fit::Fits(found) => format!("{:?} {:?}, {said:?}", found.domain, found.nodes),
            Fit::Not(why) => format!("{}, {said:?}", why.describe(Some("rack"), "it")),
        }
    };
    let alone = asked.iter().map(|one| goes(std::slice::from_ref(one)));
    let next =
        asked.iter().zip(asked.iter().skip(1)).map(|(one, next)| goes(&[one.clone(), one.clone(), next.clone()]));
    let users = ["0", "1"].map(|user| format!("{}", room.devices().allocated_to(user)));
    alone.chain(next).chain(users).collect()
}

/// The numbers of what is known, but for what is kept to be compared.
fn sizes(devices: &Devices) -> Vec<(&'static str, usize)> {
    devices.sizes().filter(|(name, _)| !["selectors", "kinds_of_devices"].contains(name)).collect()
}

fn meta(object: &DeviceObject) -> &Meta {
    match object {
        DeviceObject::Class(class) => class.meta(),
        DeviceObject::Template(template) => template.meta(),
        DeviceObject::Claim(claim) => claim.meta(),
        DeviceObject::TaintRule(rule) => rule.meta(),
        DeviceObject::Slice(slice) => slice.meta(),
    }
}

fn apply(devices: &mut Devices, object: &DeviceObject) -> bool {
    match object {
        DeviceObject::Class(class) => devices.apply_class(class),
        DeviceObject::Template(template) => devices.apply_template(template),
        DeviceObject::Claim(claim) => devices.apply_claim(claim),
        DeviceObject::TaintRule(rule) => devices.apply_taint_rule(rule),
        DeviceObject::Slice(slice) => devices.apply_slice(slice),
    }
}

type Objects = BTreeMap<(ObjectSort, u32), DeviceObject>;

/// As the watch of a kind does when it has listed all.
fn list(devices: &mut Devices, sort: ObjectSort, objects: &Objects) {
    let all: Vec<_> = objects.iter().filter(|((of, _), _)| *of == sort).map(|(_, object)| object).collect();
    devices.retain(sort, &all.iter().map(|object| meta(object)).collect::<Vec<_>>());
    all.iter().for_each(|object| _ = apply(devices, object));
    devices.are_listed(sort);
}

proptest! {
    #![proptest_config(tried(400))]

    #[test]
    fn devices_known_event_by_event_are_those_of_a_fresh_look(events in prop::collection::vec(event(), 0..60)) {
        let asked = asked();
        let (mut kept, mut objects) = (room(), Objects::new());
        SORTS.into_iter().for_each(|sort| list(kept.devices_mut(), sort, &objects));
        for event in events {
            let devices = kept.devices_mut();
            match event {
                Event::Applied(sort, number, shape) => {
                    let object = object_of(sort, number, shape);
                    apply(devices, &object);
                    prop_assert!(!matches!(sort, ObjectSort::Slice) || !apply(devices, &object), "nothing has changed");
                    objects.insert((sort, number), object);
                }
                Event::Gone(sort, number) => {
                    let gone = objects.remove(&(sort, number));
                    let object = object_of(sort, number, 0);
                    prop_assert!(devices.remove(sort, meta(&object)) || gone.is_none() || matches!(sort, ObjectSort::TaintRule));
                }
                Event::Listed(sort) => list(devices, sort, &objects),
            }
            if devices.wants_slices() {
                list(devices, ObjectSort::Slice, &objects);
            }
        }
        let mut fresh = room();
        fresh.devices_mut().apply_all(&objects.values().cloned().collect::<Vec<_>>());
        prop_assert_eq!(answers(&kept, &asked), answers(&fresh, &asked));
        prop_assert_eq!(sizes(kept.devices()), sizes(fresh.devices()));
        // Nothing is left of what is gone.
        let devices = kept.devices_mut();
        SORTS.into_iter().for_each(|sort| devices.retain(sort, &[]));
        prop_assert!(devices.sizes().all(|(name, count)| name == "selectors" || count == 0), "{:?}", devices.sizes().collect::<Vec<_>>());
    }
}
