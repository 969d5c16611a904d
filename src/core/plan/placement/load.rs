use super::needs::{ALL_ADDRESSES, Amounts, HostPort, Load, add, amounts, most};
use crate::api::scheduling::{
    ContainerHas, ResourceList, ResourceRequests, SchedulingContainer, SchedulingPod, SchedulingSpec, SchedulingStatus,
};
use crate::model::quantity::NoQuantity;
use crate::plan::devices::claim_refs;

/// The condition of a pod whose requested resize is not done.
const RESIZE_PENDING: &str = "PodResizePending";
/// The reason of that condition if the node can never grant the resize.
const INFEASIBLE: &str = "Infeasible";

impl Load {
    /// Returns the load of a pod on its node as the scheduler counts it: the sum of containers and sidecars, or the greatest
    /// init container with the sidecars before it, whichever is more; plus the overhead. A pod that is resized takes the
    /// maximum of its requested, granted and running resources.
    ///
    /// # Errors
    ///
    /// Fails on an amount that is no quantity.
    pub fn of(pod: &SchedulingPod) -> Result<Self, NoQuantity> {
        let (spec, has) = (&pod.spec, Has::of(&pod.status));
        let mut running = Amounts::new();
        for container in &spec.containers {
            add(&mut running, &has.container(container)?);
        }
        let (mut sidecars, mut starting) = (Amounts::new(), Amounts::new());
        for container in &spec.init_containers {
            if container.is_sidecar() {
                add(&mut sidecars, &has.container(container)?);
                most(&mut starting, &sidecars);
            } else {
                let mut asked = requests(&container.resources)?;
                add(&mut asked, &sidecars);
                most(&mut starting, &asked);
            }
        }
        add(&mut running, &sidecars);
        most(&mut running, &starting);
        // Requests of the pod as a whole replace the sum of its containers.
        running.extend(has.pod(&spec.resources)?);
        add(&mut running, &amounts(&spec.overhead)?);
        running.retain(|_, amount| *amount > 0);
        let never_preempts = spec.preemption_policy.as_deref() == Some("Never");
        Ok(Self {
            claims: claim_refs(pod),
            amounts: running,
            ports: ports(spec),
            priority: spec.priority.unwrap_or_default(),
            never_preempts,
        })
    }
}

/// The resources in the status of a pod, which may be resized.
struct Has<'a> {
    status: &'a SchedulingStatus,
    /// Whether the node can never grant the request, which does not count then.
    is_infeasible: bool,
}

impl<'a> Has<'a> {
    fn of(status: &'a SchedulingStatus) -> Self {
        let pending = status.conditions.iter().find(|condition| condition.r#type == RESIZE_PENDING);
        Self { status, is_infeasible: pending.is_some_and(|condition| condition.reason == INFEASIBLE) }
    }

    fn container(&self, container: &SchedulingContainer) -> Result<Amounts, NoQuantity> {
        let mut all = self.status.container_statuses.iter().chain(&self.status.init_container_statuses);
        let has = |has: &'a ContainerHas| {
            let runs_with = has.resources.as_ref().filter(|_| has.name == container.name)?;
            Some((&runs_with.requests, &has.allocated_resources))
        };
        self.most(requests(&container.resources)?, all.find_map(has))
    }

    fn pod(&self, asked: &ResourceRequests) -> Result<Amounts, NoQuantity> {
        let asked = requests(asked)?;
        let has = self.status.resources.as_ref().map(|has| (&has.requests, &self.status.allocated_resources));
        let mut most = self.most(asked.clone(), has)?;
        most.retain(|name, _| asked.contains_key(name));
        Ok(most)
    }

    /// Returns the maximum of requested, granted and running resources.
    fn most(&self, asked: Amounts, has: Option<(&ResourceList, &ResourceList)>) -> Result<Amounts, NoQuantity> {
        let Some((runs_with, granted)) = has else { return Ok(asked) };
        let mut all = amounts(runs_with)?;
        most(&mut all, &amounts(granted)?);
        if !self.is_infeasible {
            most(&mut all, &asked);
        }
        Ok(all)
    }
}

/// Returns the requests; a limit without a request counts as one.
fn requests(resources: &ResourceRequests) -> Result<Amounts, NoQuantity> {
    let mut asked = amounts(&resources.limits)?;
    asked.extend(amounts(&resources.requests)?);
    Ok(asked)
}

fn ports(spec: &SchedulingSpec) -> Vec<HostPort> {
    let sidecars = spec.init_containers.iter().filter(|container| container.is_sidecar());
    let ports = spec.containers.iter().chain(sidecars).flat_map(|container| &container.ports);
    let mut ports: Vec<_> = ports
        .filter_map(|port| {
            let of_host = if spec.host_network { port.container_port } else { 0 };
            let number = Some(port.host_port).filter(|port| *port > 0).unwrap_or(of_host);
            let or = |text: &str, default: &str| if text.is_empty() { default.to_owned() } else { text.to_owned() };
            (number > 0).then(|| HostPort {
                ip: or(&port.host_ip, ALL_ADDRESSES),
                protocol: or(&port.protocol, "TCP"),
                port: number,
            })
        })
        .collect();
    ports.sort();
    ports.dedup();
    ports
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn cpu(pod: &Value) -> i64 {
        let pod: SchedulingPod = serde_json::from_value(pod.clone()).unwrap();
        Load::of(&pod).unwrap().amounts.get("cpu").copied().unwrap_or_default()
    }

    /// Returns a pod with a container and a sidecar, each with these requested, granted and running resources.
    fn pod(asked: u32, granted: u32, runs_with: Option<u32>, reason: &str) -> Value {
        let asks = |name: &str| json!({ "name": name, "restartPolicy": if name == "main" { Value::Null } else { json!("Always") }, "resources": { "requests": { "cpu": asked } } });
        let has = |name: &str| {
            let resources = runs_with.map(|cpu| json!({ "requests": { "cpu": cpu } }));
            json!({ "name": name, "allocatedResources": { "cpu": granted }, "resources": resources })
        };
        let start = json!({ "name": "start", "resources": { "requests": { "cpu": 1 } } });
        json!({
            "spec": { "containers": [asks("main")], "initContainers": [asks("side"), start] },
            "status": {
                "conditions": [{ "type": "PodResizePending", "status": "True", "reason": reason }],
                "containerStatuses": [has("main")],
                "initContainerStatuses": [has("side"), { "name": "start", "resources": { "requests": { "cpu": 99 } } }],
            },
        })
    }

    #[test]
    fn a_pod_that_is_resized_takes_the_most_of_what_it_asks_for_was_granted_and_runs_with() {
        let cases = [
            ((4, 2, Some(2), "Deferred"), 8, "it grows, and waits"),
            ((2, 2, Some(4), ""), 8, "it shrinks, and has not yet"),
            ((2, 4, Some(2), ""), 8, "it grew, and is asked to shrink before it did"),
            ((8, 2, Some(2), "Infeasible"), 4, "its node will never grant it"),
            ((8, 2, Some(3), "Infeasible"), 6, "nor does it count beside what it runs with"),
            ((8, 2, None, "Infeasible"), 16, "nobody says what it runs with"),
        ];
        for ((asked, granted, runs_with, reason), expected, why) in cases {
            assert_eq!(cpu(&pod(asked, granted, runs_with, reason)), expected * 1000, "{why}");
        }
    }

    #[test]
    fn a_pod_that_is_resized_as_a_whole_counts_as_a_whole() {
        let whole = |reason: &str| {
            json!({
                "spec": { "containers": [{ "name": "main" }], "resources": { "requests": { "cpu": 8 } } },
                "status": {
                    "conditions": [{ "type": "PodResizePending", "reason": reason }],
                    "allocatedResources": { "cpu": 2, "memory": 1 },
                    "resources": { "requests": { "cpu": 3 } },
                },
            })
        };
        assert_eq!((cpu(&whole("Deferred")), cpu(&whole("Infeasible"))), (8000, 3000));
    }
}
