//! The real scheduler as judge of placements: random clusters and batches of pods that differ in size, ports, tolerations,
//! selectors and in what they keep away from. What is said to fit is released with its pin, and every pod of it must be bound where it was to go.
//!
//! `ROLEGATE_PLACEMENTS=1000` tries as many (`make long`).

use futures::stream::{self, StreamExt};
use k8s_openapi::api::core::v1::Node as ApiNode;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngSeed, TestRunner};
use rolegate::api::Node;
use rolegate::api::scheduling::SchedulingPod;
use rolegate::plan::placement::{Fit, Needs, Placement, Question, Room, place};

use crate::common::prelude::*;

/// Clusters that are tried.
const CASES: usize = 60;
/// Requests at a time.
const AT_ONCE: usize = 16;
const RACK: &str = "example.com/rack";
/// Runs across the racks of a cluster.
const ROW: &str = "example.com/row";
const CASE: &str = "example.com/case";
const DEVICE: &str = "example.com/device";
const GATE: &str = "example.com/gate";
const HOSTNAME: &str = "kubernetes.io/hostname";

/// A node of a random cluster.
#[derive(Clone, Debug)]
struct NodeShape {
    rack: u8,
    cpu: u8,
    devices: u8,
    pods: u8,
    tainted: bool,
    cordoned: bool,
}

/// A pod of a random batch.
#[derive(Clone, Debug)]
struct PodShape {
    cpu: u8,
    devices: u8,
    /// What an init container asks for.
    start: u8,
    port: bool,
    tolerates: bool,
    /// It goes to nodes of even number only: by affinity.
    even: bool,
    app: u8,
    /// The app of which no pod may be on the same node (or in the same row) with it.
    apart: Option<(u8, &'static str)>,
    /// The app whose pods it is spread with, and whether nodes count that it does not select.
    spread: Option<(u8, &'static str, bool)>,
}

#[derive(Clone, Debug)]
struct Cluster {
    nodes: Vec<NodeShape>,
    /// Pods that run already, by node.
    bound: Vec<(usize, PodShape)>,
    batch: Vec<PodShape>,
}

fn pod_shape() -> impl Strategy<Value = PodShape> {
    let rarely = || prop::bool::weighted(0.2);
    let key = || prop::sample::select(vec![HOSTNAME, ROW]);
    let apart = prop::option::weighted(0.25, (0..2_u8, key()));
    let spread = prop::option::weighted(0.25, (0..2_u8, key(), any::<bool>()));
    let of_others = (0..2_u8, apart, spread);
    (0..5_u8, 0..4_u8, 0..6_u8, rarely(), any::<bool>(), rarely(), of_others).prop_map(
        |(cpu, devices, start, port, tolerates, even, (app, apart, spread))| PodShape {
            cpu,
            devices,
            start,
            port,
            tolerates,
            even,
            app,
            apart,
            spread,
        },
    )
}

fn cluster() -> impl Strategy<Value = Cluster> {
    let rarely = || prop::bool::weighted(0.15);
    let node = (0..2_u8, 2..14_u8, 0..9_u8, 2..6_u8, rarely(), rarely()).prop_map(
        |(rack, cpu, devices, pods, tainted, cordoned)| NodeShape { rack, cpu, devices, pods, tainted, cordoned },
    );
    let bound = prop::collection::vec((0..5_usize, pod_shape()), 0..4);
    let batch = prop::collection::vec((pod_shape(), 1..3_usize), 1..4)
        .prop_map(|shapes| shapes.into_iter().flat_map(|(shape, count)| vec![shape; count]).collect());
    (prop::collection::vec(node, 2..8), bound, batch).prop_map(|(nodes, bound, batch)| Cluster { nodes, bound, batch })
}

fn node_object(case: usize, number: usize, shape: &NodeShape) -> Value {
    let name = node_name(case, number);
    let taint = json!({ "key": "example.com/special", "value": "yes", "effect": "NoSchedule" });
    let room = json!({ "cpu": shape.cpu.to_string(), "memory": "64Gi", "pods": shape.pods.to_string(), DEVICE: shape.devices.to_string() });
    json!({
        "metadata": {
            "name": name,
            "annotations": { "kwok.x-k8s.io/node": "fake" },
            "labels": {
                HOSTNAME: name, CASE: case.to_string(), RACK: format!("{case}-{}", shape.rack),
                "example.com/even": number.is_multiple_of(2).to_string(),
                ROW: format!("{case}-{}", number % 3),
            },
        },
        "spec": { "unschedulable": shape.cordoned, "taints": if shape.tainted { vec![taint] } else { Vec::new() } },
        "status": { "allocatable": room, "capacity": room },
    })
}

fn node_name(case: usize, number: usize) -> String {
    format!("placement-{case}-{number}")
}

fn pod_object(case: usize, name: &str, shape: &PodShape, node: Option<&str>) -> Value {
    let limits = json!({ "cpu": shape.cpu.to_string(), DEVICE: shape.devices.to_string() });
    let about = |app: u8| json!({ "matchLabels": { "app": format!("{case}-{app}") } });
    let apart = shape.apart.iter().map(|(app, key)| json!({ "topologyKey": key, "labelSelector": about(*app) }));
    let mut affinity = json!({ "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": apart.collect::<Vec<_>>() } });
    if shape.even && node.is_none() {
        affinity["nodeAffinity"] = json!({ "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": [
            { "matchExpressions": [{ "key": "example.com/even", "operator": "In", "values": ["true"] }] }] } });
    }
    let spread = shape.spread.iter().map(|(app, key, any_node)| {
        json!({
            "topologyKey": key, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": about(*app),
            "nodeAffinityPolicy": if *any_node { "Ignore" } else { "Honor" },
        })
    });
    let container =
        |name: &str, resources: Value| json!({ "name": name, "image": "registry.invalid/x:1", "resources": resources });
    let mut main = container("main", json!({ "limits": limits }));
    if shape.port {
        main["ports"] = json!([{ "containerPort": 80, "hostPort": 8080 }]);
    }
    json!({
        "metadata": { "name": name, "labels": { CASE: case.to_string(), "app": format!("{case}-{}", shape.app) } },
        "spec": {
            "nodeName": node,
            "schedulingGates": if node.is_some() { json!([]) } else { json!([{ "name": GATE }]) },
            "nodeSelector": { CASE: case.to_string() },
            "affinity": affinity,
            "topologySpreadConstraints": spread.collect::<Vec<_>>(),
            "tolerations": if shape.tolerates { json!([{ "key": "example.com/special", "operator": "Exists" }]) } else { json!([]) },
            "terminationGracePeriodSeconds": 0,
            "automountServiceAccountToken": false,
            "initContainers": [container("start", json!({ "requests": { "cpu": shape.start.to_string() } }))],
            "containers": [main],
        },
    })
}

async fn create<K>(api: &Api<K>, objects: Vec<Value>)
where
    K: Clone + std::fmt::Debug + serde::de::DeserializeOwned + serde::Serialize,
{
    let params = PostParams::default();
    let all = objects.into_iter().map(|object| {
        let params = &params;
        async move { api.create(params, &typed(object)).await.unwrap() }
    });
    stream::iter(all).buffer_unordered(AT_ONCE).for_each(async |_| ()).await;
}

/// What releases a pod and binds it to its node.
fn release(placement: &Placement, pod: usize) -> Value {
    let gates = json!([{ "$patch": "delete", "name": GATE }]);
    let pin = json!({ RACK: placement.domain, HOSTNAME: &*placement.nodes[pod] });
    json!({ "spec": { "schedulingGates": gates, "nodeSelector": pin } })
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_is_placed_is_bound_where_it_was_to_go() {
    let count = std::env::var("ROLEGATE_PLACEMENTS").map_or(CASES, |count| count.parse().expect("a number of cases"));
    let mut runner = TestRunner::new(Config { rng_seed: RngSeed::Fixed(7), ..Config::default() });
    let clusters: Vec<_> = (0..count).map(|_| cluster().new_tree(&mut runner).unwrap().current()).collect();

    // Hundreds of nodes are no company for other tests.
    let stage = Stage::on(ControlPlane::own_with_groups().await, "placement").await;
    let (nodes, pods) = (Api::<ApiNode>::all(stage.client.clone()), stage.api::<ApiPod>());
    let each = |case: usize, cluster: &Cluster| {
        let nodes = cluster.nodes.iter().enumerate();
        nodes.map(|(number, shape)| node_object(case, number, shape)).collect::<Vec<_>>()
    };
    create(&nodes, clusters.iter().enumerate().flat_map(|(case, cluster)| each(case, cluster)).collect()).await;
    let mut wanted = Vec::new();
    for (case, cluster) in clusters.iter().enumerate() {
        let bound = cluster.bound.iter().enumerate();
        for (number, (node, shape)) in bound.filter(|(_, (node, _))| *node < cluster.nodes.len()) {
            let node = node_name(case, *node);
            wanted.push(pod_object(case, &format!("bound-{case}-{number}"), shape, Some(&node)));
        }
        for (number, shape) in cluster.batch.iter().enumerate() {
            wanted.push(pod_object(case, &format!("batch-{case}-{number}"), shape, None));
        }
    }
    create(&pods, wanted).await;

    let ours = ListParams::default().labels(CASE);
    let room = eventually(PATIENT, "every node is ready", async || {
        let mut room = Room::default();
        for node in nodes.list(&ours).await.map_err(|error| error.to_string())? {
            let node: Node = serde_json::from_value(serde_json::to_value(node).unwrap()).unwrap();
            room.apply_node(&node).unwrap();
            let is_clear = node.spec.taints.iter().all(|taint| taint.key != "node.kubernetes.io/not-ready");
            (node.is_ready() && is_clear).then_some(()).ok_or("not yet")?;
        }
        Ok::<_, String>(room)
    })
    .await;
    let (placed, unplaced) = placements(room, &pods, clusters.len()).await;
    println!("{} batches fit, {unplaced} do not", placed.len());
    assert!(placed.len() > count / 4 && unplaced > count / 20, "the cases show nothing");

    let releases = placed.iter().flat_map(|(case, placement)| {
        (0..placement.nodes.len()).map(move |pod| (format!("batch-{case}-{pod}"), release(placement, pod)))
    });
    let params = PatchParams::default();
    let sent = releases.map(|(name, patch)| {
        let (pods, params) = (&pods, &params);
        async move { pods.patch(&name, params, &Patch::Strategic(patch)).await.unwrap() }
    });
    stream::iter(sent.collect::<Vec<_>>()).buffer_unordered(AT_ONCE).for_each(async |_| ()).await;
    eventually(PATIENT, "every placed pod is bound where it was to go", async || {
        let seen = pods.list(&ours).await.map_err(|error| error.to_string())?;
        let node_of = |pod: ApiPod| (pod.metadata.name.unwrap(), pod.spec.and_then(|spec| spec.node_name));
        let nodes: BTreeMap<_, _> = seen.items.into_iter().map(node_of).collect();
        let astray = |(case, placement): &(usize, Placement)| {
            let of = |pod: usize| nodes.get(&format!("batch-{case}-{pod}")).cloned().flatten();
            let is_there = |pod: usize| match of(pod) {
                None => Some(format!("batch-{case}-{pod} is not bound: {:?}, {placement:?}", clusters[*case])),
                Some(node) => (*node != *placement.nodes[pod])
                    .then(|| format!("batch-{case}-{pod} is on {node}, not on {}", placement.nodes[pod])),
            };
            (0..placement.nodes.len()).find_map(is_there)
        };
        placed.iter().find_map(astray).map_or(Ok(()), Err)
    })
    .await;
}

/// Where the batch of each case goes, as the API server shows its pods; and how many go nowhere.
async fn placements(mut room: Room, pods: &Api<ApiPod>, cases: usize) -> (Vec<(usize, Placement)>, usize) {
    let mut batches: BTreeMap<usize, BTreeMap<usize, Arc<Needs>>> = BTreeMap::new();
    for pod in pods.list(&ListParams::default().labels(CASE)).await.unwrap() {
        let pod: SchedulingPod = serde_json::from_value(serde_json::to_value(pod).unwrap()).unwrap();
        let needs = Needs::of(&pod).unwrap();
        let name = pod.metadata.display_name();
        if let Some(node) = pod.node() {
            room.apply_pod(name, node, needs.load, &needs.peer);
            continue;
        }
        let mut numbers = name.split('-').skip(1).map(|number| number.parse().unwrap());
        let (case, number) = (numbers.next().unwrap(), numbers.next().unwrap());
        assert_eq!(needs.not_modelled, [], "{name}");
        batches.entry(case).or_default().insert(number, Arc::new(needs));
    }
    assert_eq!(batches.len(), cases);
    let (mut placed, mut unplaced) = (Vec::new(), 0);
    for (case, batch) in batches {
        let batch: Vec<_> = batch.into_values().collect();
        match place(&room, &Question::new(&batch, Some(RACK), &BTreeMap::new())) {
            Fit::Fits(placement) => placed.push((case, placement)),
            Fit::Not(_) => unplaced += 1,
        }
    }
    (placed, unplaced)
}
