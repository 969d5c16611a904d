//! A cluster without nodes, Karpenter with nodes of kwok, and a NodePool for each rack.

use std::sync::{LazyLock, Mutex};

use k8s_openapi::api::core::v1::PodTemplate;

use super::KARPENTER;
use super::figures::Nodes;
use crate::common::prelude::*;
use crate::gangs;
use crate::program::Running;

pub const RACK: &str = "example.com/rack";
/// Three pods fill a node: 3.9 cpu of its 4 may be used.
pub const PODS_OF_A_NODE: u32 = 3;
/// Nodes of a segment of ten prefills and five decodes.
pub const NODES_OF_A_SEGMENT: u32 = 5;
const CLASS: &str = "default";

struct World {
    plane: Arc<ControlPlane>,
    program: Mutex<[Running; 1]>,
}

static WORLD: LazyLock<Arc<World>> = LazyLock::new(|| gangs::start(begin));

fn begin() -> World {
    let plane = gangs::plane(&KARPENTER, &["crds", "kwok-crds"]);
    let types = plane.dir.join("conf/instance-types.json");
    std::fs::write(&types, json!([instance_type()]).to_string()).unwrap();
    let class = object("karpenter.kwok.sh/v1alpha1", "KWOKNodeClass", CLASS);
    plane.must(&["create", "-f", "-"], &class.spec(json!({ "nodeRegistrationDelay": "1s" })).to_string());
    let environment = [
        ("KUBECONFIG", plane.kubeconfig.display().to_string()),
        ("FEATURE_GATES", "CapacityBuffer=true".to_owned()),
        ("DISABLE_LEADER_ELECTION", "true".to_owned()),
        ("SYSTEM_NAMESPACE", SYSTEM.to_owned()),
        ("INSTANCE_TYPES_FILE_PATH", types.display().to_string()),
    ];
    let environment = environment.each_ref().map(|(name, value)| (*name, value.as_str()));
    let program = KARPENTER.start("karpenter", &[], &environment);
    World { plane, program: Mutex::new([program]) }
}

fn instance_type() -> Value {
    let is = |key: &str, value: &str| json!({ "key": key, "operator": "In", "values": [value] });
    json!({
        "name": "box",
        "architecture": "amd64",
        "operatingSystems": ["linux"],
        "resources": { "cpu": "4", "memory": "16Gi", "ephemeral-storage": "20Gi", "pods": "20" },
        "offerings": [{ "Price": 1, "Available": true, "Requirements": [
            is("karpenter.sh/capacity-type", "on-demand"), is("topology.kubernetes.io/zone", "z1") ] }],
    })
}

/// A group of segments in racks whose nodes are asked for, and what was seen of it.
pub struct Scene {
    pub stage: Stage,
    pub group: Group,
    pub statuses: StatusLog,
    pub nodes: Nodes,
}

/// A namespace without nodes, with racks that may have so many.
pub async fn stage(namespace: &str, racks: &[(&str, u32)]) -> Stage {
    let world = tokio::task::spawn_blocking(|| WORLD.clone()).await.unwrap();
    gangs::all_run(&mut *world.program.lock().unwrap());
    let stage = Stage::on(world.plane.clone(), namespace).await;
    for (rack, most) in racks {
        add_rack(&stage, rack, *most);
    }
    stage
}

/// The limit is in cpu: that of nodes is not kept in one burst.
pub fn add_rack(stage: &Stage, rack: &str, most: u32) {
    let name = format!("{}-{rack}", stage.namespace);
    let class = json!({ "group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": CLASS });
    let amd64 = json!({ "key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"] });
    let labels = json!({ RACK: name, "rolegate.dev/stage": stage.namespace });
    let pool = object("karpenter.sh/v1", "NodePool", &name).spec(json!({
        "limits": { "cpu": (4 * most).to_string() },
        "disruption": { "consolidationPolicy": "WhenEmpty", "consolidateAfter": "5s", "budgets": [{ "nodes": "100%" }] },
        "template": {
            "metadata": { "labels": labels },
            "spec": { "nodeClassRef": class, "expireAfter": "Never", "requirements": [amd64] },
        },
    }));
    stage.plane.must(&["create", "-f", "-"], &pool.to_string());
}

pub fn launch(stage: &Stage) -> Launch {
    stage.launch().flag("allow", "provision")
}

/// So many segments, each in one rack; a third of a node for each pod.
pub fn group(name: &str, segments: u32) -> Group {
    let template = asking(&json!({ "requests": { "cpu": "1300m", "memory": "1Gi" } }));
    Group::new(name).role("prefill", 10 * segments, 10).role("decode", 5 * segments, 5).template(&template)
}

/// Its RoleCoordination, which asks for nodes after a second.
pub fn coordination(group: &Group, deadline: &str) -> Value {
    let mut object = group.coordination_of("StatefulSet", &near(RACK, "RequireSegmentAffinity"));
    let coordination = &mut object["spec"]["coordination"][0];
    coordination["whenNoFit"] = json!("provision");
    coordination["provision"] = json!({ "after": "1s", "deadline": deadline });
    object
}

impl Scene {
    pub async fn new(stage: Stage, segments: u32, deadline: &str) -> Self {
        let nodes = Nodes::watch(&stage).await;
        let (group, statuses) = (group("pd", segments), stage.coordination_statuses("pd"));
        stage.create(coordination(&group, deadline)).await;
        stage.create_sets(&group).await;
        Self { stage, group, statuses, nodes }
    }

    /// Waits until so many segments run.
    pub async fn until_ready(&self, segments: u32) {
        let pods = 15 * segments as usize;
        let all_run = |now: &View| now.count_all(Pod::is_ready) == pods;
        self.stage.pods.until_within(PATIENT * 3, "whole segments run", all_run).await;
    }

    /// Waits until there are so many nodes, and no more.
    pub async fn until_nodes(&self, wanted: u32) {
        self.nodes.until(&format!("{wanted} nodes"), |now| now.len() == wanted as usize).await;
    }

    /// The buffers that are there.
    pub async fn buffers(&self) -> Vec<DynamicObject> {
        let api = self.stage.objects("autoscaling.x-k8s.io", "v1beta1", "CapacityBuffer");
        api.list(&ListParams::default()).await.unwrap().items
    }

    /// Waits until nothing is left of what was asked for.
    pub async fn until_nothing_is_asked_for(&self) {
        let left = async || (self.buffers().await.len(), self.stage.list::<PodTemplate>().await.len());
        until_is("no buffer and no template", left, (0, 0)).await;
    }

    /// The rack of each segment; all of its pods are in it.
    pub fn racks(&self) -> Vec<String> {
        let rack_of = self.nodes.racks();
        let segments = self.group.find("prefill").replicas / 10;
        self.stage.pods.now(|now| {
            let rack = |segment: u32| {
                let is_of = |pod: &&Pod| pod.index / self.group.find(&pod.role).segment == segment;
                let racks: BTreeSet<_> =
                    now.all().filter(is_of).map(|pod| &rack_of[pod.node.as_ref().unwrap()]).collect();
                assert_eq!(racks.len(), 1, "segment {segment} in {racks:?}");
                (*racks.first().unwrap()).clone()
            };
            (0..segments).map(rack).collect()
        })
    }
}
