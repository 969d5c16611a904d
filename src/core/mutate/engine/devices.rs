//! The devices of a pod, each of which has a process of the engine.

use crate::api::Pod;
use crate::api::pod::Container;
use crate::model::quantity::amount;

/// Resources that are devices: a name, or with `*` the beginning of one.
const DEVICES: &[&str] = &[
    "nvidia.com/gpu",
    "nvidia.com/gpu.shared",
    "nvidia.com/mig-*",
    "amd.com/gpu",
    "gpu.intel.com/i915",
    "gpu.intel.com/xe",
    "habana.ai/gaudi",
    "google.com/tpu",
    "aws.amazon.com/neuron",
    "aws.amazon.com/neuroncore",
    "huawei.com/Ascend*",
];

/// Returns the devices of the container that has most of them; 0 without any. Devices that are claimed (DRA) have no number here.
pub(super) fn of_pod(pod: &Pod) -> u32 {
    pod.spec.containers.iter().map(of_container).max().unwrap_or(0)
}

fn of_container(container: &Container) -> u32 {
    let resources = &container.resources;
    let of = |amounts: &[(String, crate::api::quantity::Quantity)]| {
        let devices = amounts.iter().filter(|(name, _)| is_device(name));
        let numbers = devices.map(|(_, written)| amount(&written.0, 1).unwrap_or(0));
        u32::try_from(numbers.fold(0_i64, i64::saturating_add).max(0)).unwrap_or(u32::MAX)
    };
    match of(&resources.limits.0) {
        0 => of(&resources.requests.0),
        devices => devices,
    }
}

fn is_device(resource: &str) -> bool {
    DEVICES.iter().any(|device| match device.strip_suffix('*') {
        Some(beginning) => resource.starts_with(beginning),
        None => resource == *device,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn devices(containers: &Value) -> u32 {
        of_pod(&serde_json::from_value(json!({ "spec": { "containers": containers } })).unwrap())
    }

    #[test]
    fn the_container_with_most_devices_counts_and_nothing_else_is_a_device() {
        let limits = |limits: Value| json!({ "resources": { "limits": limits } });
        assert_eq!(devices(&json!([limits(json!({ "nvidia.com/gpu": "8", "rdma/hca": "4", "cpu": "16" }))])), 8);
        assert_eq!(devices(&json!([limits(json!({ "amd.com/gpu": 4 })), limits(json!({ "memory": "1Gi" }))])), 4);
        let mig = limits(json!({ "nvidia.com/mig-1g.5gb": "2", "nvidia.com/mig-2g.10gb": "1" }));
        assert_eq!(devices(&json!([mig])), 3);
        assert_eq!(devices(&json!([{ "resources": { "requests": { "google.com/tpu": "4" } } }])), 4);
        assert_eq!(devices(&json!([limits(json!({ "gpu.intel.com/millicores": "100" })), {}])), 0);
        assert_eq!(devices(&json!([limits(json!({ "nvidia.com/gpu": "many" })), { "resources": null }])), 0);
    }
}
