//! The status page: what it is told, and what people see of it.

mod browser;
mod drawn;
mod stream;

use crate::common::prelude::*;
use crate::rollouts::support::create;

const GPU: &str = "nvidia.com/gpu";
/// The racks of the scene.
const RACKS: [&str; 2] = ["rack-a", "rack-b"];

/// A service of three segments, each of 4 prefills and 2 decodes with a GPU for each pod, which share a rack; two racks of 8
/// GPUs; and a router beside. Pods do not become ready by themselves.
async fn scene(stage: &Stage) -> Group {
    let nodes: Api<Node> = Api::all(stage.client.clone());
    // A label of its own: all nodes of the cluster are looked at.
    let label = format!("example.com/{}", stage.namespace);
    for rack in RACKS {
        let mut node = node(&format!("{}-{rack}", stage.namespace), 50, &stage.namespace);
        node["metadata"]["labels"][&label] = json!(rack);
        for list in ["allocatable", "capacity"] {
            node["status"][list][GPU] = json!("8");
        }
        nodes.create(&PostParams::default(), &typed(node)).await.unwrap();
    }
    let resources = json!({ "requests": { (GPU): "1" }, "limits": { (GPU): "1" } });
    let container = json!({ "name": "main", "image": "registry.invalid/x:1", "resources": resources });
    let group = Group::three_segments().template(&json!({ "spec": { "containers": [container] } }));
    let affinity = json!({ "strategy": "RequireSegmentAffinity", "topologyKey": label });
    let placement = json!({ "segmentSize": { "prefill": 4, "decode": 2 }, "topologyAffinity": affinity });
    create(stage, &group, &json!([{ "name": "segments", "strategy": { "segmentPlacement": placement } }])).await;
    group
}
