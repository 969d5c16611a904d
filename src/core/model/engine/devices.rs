//! The devices of a pod or a pod template, each of which has a process of the engine.

use crate::api::Pod;
use crate::api::quantity::Quantity;
use crate::api::scheduling::SchedulingSpec;
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
    // Devices of a class of DRA, which the scheduler claims by itself.
    "deviceclass.resource.kubernetes.io/*",
];

/// Returns the devices of the container that has most of them, sidecars included; `None` where they are those of claims, which
/// alone have the number.
pub fn devices_of(pod: &Pod) -> Option<u32> {
    let sidecars = || pod.spec.init_containers.iter().filter(|container| container.is_sidecar());
    let resources = || pod.spec.containers.iter().chain(sidecars()).map(|container| &container.resources);
    let counted = resources().map(|of| most(of.limits.0.iter().map(pair), of.requests.0.iter().map(pair))).max();
    counted.filter(|devices| *devices > 0).or_else(|| (!resources().any(|of| of.has_claims)).then_some(0))
}

/// Returns the same of a pod template.
pub(super) fn of_template(template: &SchedulingSpec) -> Option<u32> {
    let sidecars = template.init_containers.iter().filter(|container| container.is_sidecar());
    let resources = template.containers.iter().chain(sidecars).map(|container| &container.resources);
    let counted = resources.map(|of| most(of.limits.iter(), of.requests.iter())).max().unwrap_or(0);
    (counted > 0 || template.resource_claims.is_empty()).then_some(counted)
}

fn pair((name, amount): &(String, Quantity)) -> (&String, &Quantity) {
    (name, amount)
}

/// Returns the devices of a container: its limits count, else its requests.
fn most<'a>(
    limits: impl Iterator<Item = (&'a String, &'a Quantity)>,
    requests: impl Iterator<Item = (&'a String, &'a Quantity)>,
) -> u32 {
    match sum(limits) {
        0 => sum(requests),
        devices => devices,
    }
}

fn sum<'a>(amounts: impl Iterator<Item = (&'a String, &'a Quantity)>) -> u32 {
    let devices = amounts.filter(|(name, _)| is_device(name));
    let numbers = devices.map(|(_, written)| amount(&written.0, 1).unwrap_or(0));
    u32::try_from(numbers.fold(0_i64, i64::saturating_add).max(0)).unwrap_or(u32::MAX)
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

    fn devices(containers: &Value) -> Option<u32> {
        devices_of(&serde_json::from_value(json!({ "spec": { "containers": containers } })).unwrap())
    }

    fn limits(limits: &Value) -> Value {
        json!({ "resources": { "limits": limits } })
    }

    #[test]
    fn the_container_with_most_devices_counts_and_nothing_else_is_a_device() {
        assert_eq!(devices(&json!([limits(&json!({ "nvidia.com/gpu": "8", "rdma/hca": "4", "cpu": "16" }))])), Some(8));
        let two = json!([limits(&json!({ "amd.com/gpu": 4 })), limits(&json!({ "memory": "1Gi" }))]);
        assert_eq!(devices(&two), Some(4));
        let mig = limits(&json!({ "nvidia.com/mig-1g.5gb": "2", "nvidia.com/mig-2g.10gb": "1" }));
        assert_eq!(devices(&json!([mig])), Some(3));
        assert_eq!(devices(&json!([{ "resources": { "requests": { "google.com/tpu": "4" } } }])), Some(4));
        assert_eq!(devices(&json!([limits(&json!({ "gpu.intel.com/millicores": "100" })), {}])), Some(0));
        let odd = json!([limits(&json!({ "nvidia.com/gpu": "many" })), { "resources": null }]);
        assert_eq!(devices(&odd), Some(0));
        assert_eq!(devices(&json!([{ "resources": { "claims": [] } }, { "resources": { "claims": null } }])), Some(0));
        let begins = json!({ "containers": [{}], "initContainers": [limits(&json!({ "nvidia.com/gpu": 8 }))] });
        let (pod, template) = (json!({ "spec": begins }), serde_json::from_value(begins.clone()).unwrap());
        let counts = (devices_of(&serde_json::from_value(pod).unwrap()), of_template(&template));
        assert_eq!(counts, (Some(0), Some(0)), "one that ends before the others begin");
    }
}
