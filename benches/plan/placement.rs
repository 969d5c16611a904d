//! Measures the placement of batches on clusters whose nodes have eight devices each, in partly used blocks of 125.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rolegate::api::Node;
use rolegate::api::device::ResourceClaimTemplate;
use rolegate::api::scheduling::SchedulingPod;
use rolegate::plan::devices::DeviceSight;
use rolegate::plan::placement::{BatchPods, Needs, Question, Room, outlook, place};
use serde_json::{Value, json};

use super::shown;
use crate::section::Section;

const BLOCK: &str = "block";
const HOSTNAME: &str = "kubernetes.io/hostname";
const DEVICE: &str = "nvidia.com/gpu";
/// Nodes of the clusters.
const NODES: [u32; 2] = [1_000, 5_000];
/// Repetitions; the median is printed.
const ROUNDS: usize = 15;

/// Prints the memory of 5,000 nodes and 20,000 bound pods. It runs first, before other memory is freed; the caller
/// keeps the room until all is measured.
pub fn memory(out: &mut Section) -> Room {
    let resident = || u64::from(crate::process::resident(std::process::id())) * 1024;
    let before = resident();
    let (mut room, _) = cluster(5_000);
    let of_nodes = (resident() - before) / 5_000;
    let before = resident();
    for pod in 0..20_000 {
        let uid = format!("00000000-0000-0000-0000-{pod:012}");
        // Ten pods per workload.
        let needs = labelled(1, &format!("workload-{}", pod / 10));
        room.apply_pod(&uid, &format!("node-{}", pod % 5_000), needs.load.clone(), &needs.peer);
    }
    let of_pods = (resident() - before) / 20_000;
    let shape = "nodes with 13 labels";
    writeln!(
        out,
        "{of_nodes} bytes for each of 5,000 {shape}, {of_pods} bytes for each of 20,000 bound pods, ten of a workload\n"
    )
    .unwrap();
    let before = resident();
    let room = with_devices(room, 5_000);
    let of_devices = (resident() - before) / 5_000;
    writeln!(
        out,
        "{of_devices} bytes for the eight devices (DRA) of each of 5,000 nodes, a third of them half allocated\n"
    )
    .unwrap();
    room
}

/// Measures placements, and prints a row for each cluster.
pub fn run(out: &mut Section) {
    writeln!(
        out,
        "\n| nodes | a pod event | 512 pods alike | 256 + 256 pods | 100 pods, a node each | 100 segments of 10 + 5 | 512 pods, 8 devices of a claim each | 512 of 4 at one root |"
    )
    .unwrap();
    writeln!(out, "|---|---|---|---|---|---|---|---|").unwrap();
    for nodes in NODES {
        let (room, event) = cluster(nodes);
        let (small, large) = (needs(1), needs(2));
        let alike = vec![small.clone(); 512];
        let mixed = [vec![small.clone(); 256], vec![large.clone(); 256]].concat();
        let alike = median(|| ask(&room, &alike));
        let mixed = median(|| ask(&room, &mixed));
        let apart = vec![apart(); 100];
        let apart = median(|| ask(&room, &apart));
        let segments = median(|| {
            let segment = [vec![small.clone(); 10], vec![large.clone(); 5]].concat();
            let batches = (0..100).map(|index| BatchPods { index, pods: segment.clone(), domain: None });
            let seen = outlook(&room, batches, Some(BLOCK), Some(BTreeMap::new()));
            assert_eq!(seen.fits.len(), 100, "all segments fit");
        });
        let with_devices = with_devices(room, nodes);
        let of_claims = |template: &str| {
            let pods = vec![claiming(template); 512];
            median(|| {
                let fit = place(&with_devices, &Question::new(&pods, None, &BTreeMap::new()));
                assert!(fit.placement().is_some(), "{fit:?}");
            })
        };
        let (whole, halves) = (of_claims("eight"), of_claims("four-at-a-root"));
        let figures = [event, alike, mixed, apart, segments, whole, halves].map(shown);
        writeln!(out, "| {nodes} | {} |", figures.join(" | ")).unwrap();
    }
}

/// Returns the cluster with eight devices of DRA on each node, half of them allocated in every third block.
fn with_devices(mut room: Room, nodes: u32) -> Room {
    let class = "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'gpu'";
    let request = |count: u32| json!({ "name": "gpus", "exactly": { "deviceClassName": "gpu", "count": count } });
    let metadata = |name: &str| json!({ "name": name, "namespace": "ns" });
    let template = |name: &str, claim: Value| {
        read::<ResourceClaimTemplate>(json!({ "metadata": metadata(name), "spec": { "spec": { "devices": claim } } }))
    };
    let at_a_root = json!([{ "matchAttribute": "resource.kubernetes.io/pcieRoot" }]);
    // One object after the other, as watches bring them: none is kept.
    let devices = room.devices_mut();
    devices.apply_class(&read(json!({
        "metadata": { "name": "gpu" }, "spec": { "selectors": [{ "cel": { "expression": class } }] },
    })));
    devices.apply_template(&template("eight", json!({ "requests": [request(8)] })));
    devices.apply_template(&template("four-at-a-root", json!({ "requests": [request(4)], "constraints": at_a_root })));
    devices.keep_named_attributes();
    for number in 0..nodes {
        let node = format!("node-{number}");
        let gpus: Vec<_> = (0..8).map(|device| gpu(number, device)).collect();
        let pool = json!({ "name": node, "generation": 1, "resourceSliceCount": 1 });
        let spec = json!({ "driver": "gpu.nvidia.com", "nodeName": node, "pool": pool, "devices": gpus });
        devices.apply_slice(&read(json!({ "metadata": { "name": node }, "spec": spec })));
        if number / 125 % 3 == 0 {
            let taken = |device| json!({ "driver": "gpu.nvidia.com", "pool": node, "device": format!("gpu-{device}") });
            let allocation = json!({ "devices": { "results": (0..4).map(taken).collect::<Vec<_>>() } });
            devices.apply_claim(&read(json!({ "metadata": metadata(&node), "status": { "allocation": allocation } })));
        }
    }
    devices.sight = DeviceSight::Known;
    room
}

/// Returns a device with the attributes that a driver gives it.
fn gpu(node: u32, device: u32) -> Value {
    let text = |text: String| json!({ "string": text });
    json!({
        "name": format!("gpu-{device}"),
        "attributes": {
            "type": text("gpu".to_owned()), "productName": text("NVIDIA GB200".to_owned()), "brand": text("Nvidia".to_owned()),
            "architecture": text("Blackwell".to_owned()), "driverVersion": { "version": "580.65.6" },
            "uuid": text(format!("GPU-{node:08x}-0000-0000-0000-{device:012x}")), "index": { "int": device },
            "resource.kubernetes.io/pcieRoot": text(format!("pci0000:{:02x}", device / 4)),
            "pciBusID": text(format!("0000:{device:02x}:00.0")),
        },
        "capacity": { "memory": { "value": "189471Mi" } },
    })
}

fn claiming(template: &str) -> Arc<Needs> {
    let claims = json!([{ "name": "gpus", "resourceClaimTemplateName": template }]);
    let pod = json!({
        "metadata": { "namespace": "ns" }, "spec": { "resourceClaims": claims, "containers": [{ "name": "main" }] },
    });
    Arc::new(Needs::of(&read(pod)).unwrap())
}

fn read<T: serde::de::DeserializeOwned>(object: Value) -> T {
    serde_json::from_value(object).unwrap()
}

fn needs(devices: u32) -> Arc<Needs> {
    labelled(devices, "x")
}

/// Returns a pod with anti-affinity to its own app by node.
fn apart() -> Arc<Needs> {
    let other =
        json!({ "topologyKey": HOSTNAME, "labelSelector": { "matchLabels": { "app.kubernetes.io/name": "x" } } });
    let affinity = json!({ "podAntiAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": [other] } });
    let mut pod = labelled_pod(1, "x");
    pod["spec"]["affinity"] = affinity;
    Arc::new(Needs::of(&serde_json::from_value(pod).unwrap()).unwrap())
}

fn labelled(devices: u32, app: &str) -> Arc<Needs> {
    let pod: SchedulingPod = serde_json::from_value(labelled_pod(devices, app)).unwrap();
    Arc::new(Needs::of(&pod).unwrap())
}

fn labelled_pod(devices: u32, app: &str) -> Value {
    let container = json!({ "resources": { "requests": { DEVICE: devices, "cpu": "2", "memory": "8Gi" } } });
    let labels = json!({ "app.kubernetes.io/name": app, "app.kubernetes.io/instance": app, "pod-template-hash": app });
    json!({ "metadata": { "namespace": "ns", "labels": labels }, "spec": { "containers": [container] } })
}

/// Returns a cluster with two pods on each node, in which every third block is half used; and the mean time of a pod
/// event.
fn cluster(nodes: u32) -> (Room, Duration) {
    let mut room = Room::default();
    for number in 0..nodes {
        let labels: BTreeMap<_, _> = (0..11)
            .map(|label| (format!("example.com/label-{label}"), format!("value-{label}")))
            .chain([
                (BLOCK.to_owned(), format!("block-{}", number / 125)),
                (HOSTNAME.to_owned(), format!("node-{number}")),
            ])
            .collect();
        let node: Node = serde_json::from_value(json!({
            "metadata": { "name": format!("node-{number}"), "labels": labels },
            "status": {
                "allocatable": { "cpu": "96", "memory": "1024Gi", "pods": "110", "ephemeral-storage": "1Ti", DEVICE: "8" },
                "conditions": [{ "type": "Ready", "status": "True" }],
            },
        }))
        .unwrap();
        room.apply_node(&node).unwrap();
    }
    let taken = needs(2);
    let bound: Vec<_> = (0..nodes).filter(|number| number / 125 % 3 == 0).flat_map(|number| [number; 2]).collect();
    let started = Instant::now();
    for (pod, node) in bound.iter().enumerate() {
        room.apply_pod(&pod.to_string(), &format!("node-{node}"), taken.load.clone(), &taken.peer);
    }
    (room, started.elapsed() / u32::try_from(bound.len()).unwrap())
}

fn ask(room: &Room, pods: &[Arc<Needs>]) {
    let fit = place(room, &Question::new(pods, Some(BLOCK), &BTreeMap::new()));
    assert!(fit.placement().is_some(), "{fit:?}");
}

fn median(ask: impl Fn()) -> Duration {
    let mut times: Vec<_> = (0..ROUNDS)
        .map(|_| {
            let started = Instant::now();
            ask();
            started.elapsed()
        })
        .collect();
    times.sort_unstable();
    times[ROUNDS / 2]
}
