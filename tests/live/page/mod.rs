//! The status page: what it is told, and what people see of it.

mod browser;
mod drawn;
mod stream;

use crate::common::prelude::*;

const GPU: &str = "nvidia.com/gpu";
/// The racks of the scene.
const RACKS: [&str; 2] = ["rack-a", "rack-b"];

/// A service of three segments, each of 4 prefills and 2 decodes with a GPU for each pod, which share a rack; two racks of 8
/// GPUs; and a router beside. Pods do not become ready by themselves.
async fn scene(stage: &Stage) -> Group {
    // A label of its own: all nodes of the cluster are looked at.
    let label = format!("example.com/{}", stage.namespace);
    for rack in RACKS {
        let has = json!({ (GPU): "8" });
        let status = json!({ "allocatable": has, "capacity": has });
        stage.add_node_like(rack, 50, &json!({ "metadata": { "labels": { &label: rack } }, "status": status })).await;
    }
    let asks = json!({ "requests": { (GPU): "1" }, "limits": { (GPU): "1" } });
    let group = Group::three_segments().template(&asking(&asks));
    let affinity = json!({ "strategy": "RequireSegmentAffinity", "topologyKey": label });
    let placement = json!({ "segmentSize": { "prefill": 4, "decode": 2 }, "topologyAffinity": affinity });
    let segments = json!([{ "name": "segments", "strategy": { "segmentPlacement": placement } }]);
    stage.create(group.coordinated(&segments)).await;
    stage.create_claimed_sets(&group).await;
    group
}
