//! The control plane of this suite, a service on it, and what is looked at when it serves.

use std::path::Path;

use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointSlice};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;

use crate::common::prelude::*;

pub const RACK: &str = "example.com/rack";
/// Label of nodes by which the examples choose theirs.
const GPU: &str = "nvidia.com/gpu.product";

/// One that nobody else uses: routers of the services go to any node.
static PLANE: Shared = Shared::new(|| ControlPlane::start_with_groups("kwok,lws", &[]));

/// A namespace on the control plane that all tests of this suite share.
pub async fn stage(namespace: &str) -> Stage {
    Stage::on(PLANE.get(), namespace).await
}

/// One file and what it brings up.
pub struct Example {
    /// Below `examples/services`.
    pub file: &'static str,
    /// Which GPUs it asks for.
    pub gpu: &'static str,
    /// Nodes of eight GPUs, by rack.
    pub racks: &'static [(&'static str, u32)],
    /// The RoleCoordination and its roles with segments.
    pub group: Group,
    /// Pods of the roles without.
    pub others: usize,
}

/// A service, applied and ready.
pub struct Served {
    pub stage: Stage,
    pub group: Group,
    pub statuses: StatusLog,
    _rolegate: Rolegate,
}

impl Example {
    fn pods(&self) -> usize {
        usize::try_from(self.group.pods()).unwrap() + self.others
    }

    /// Applies the file and waits until all its pods are ready, released in whole segments.
    pub async fn serve(self) -> Served {
        let stage = stage(&format!("example-{}", self.group.name)).await;
        let rolegate = stage.launch().start().await;
        let statuses = stage.coordination_statuses(&self.group.name);
        self.add_nodes(&stage).await;
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/services").join(self.file);
        let arguments = ["-n", &stage.namespace, "apply", "-f", file.to_str().unwrap()];
        let applied = stage.plane.kubectl(&arguments, "");
        let said = String::from_utf8(applied.stderr).unwrap();
        assert!(applied.status.success() && said.is_empty(), "{said}");

        let (total, segments) = (self.pods(), self.group.roles.iter().map(|role| role.replicas / role.segment).max());
        let whole = format!("{0}/{0}", segments.unwrap());
        let serves = |status: &Status| {
            status.ready().starts_with("True AllReplicasReady") && status.0["summary"]["segments"] == *whole
        };
        statuses.until("all segments serve", serves).await;
        stage.pods.until("all pods are ready", |now| now.count_all(Pod::is_ready) == total).await;
        stage.pods.now(|now| assert_eq!(now.count_all(|_| true), total, "{now}"));

        let Self { group, .. } = self;
        in_whole_segments(&stage, &group, &statuses);
        Served { stage, group, statuses, _rolegate: rolegate }
    }

    async fn add_nodes(&self, stage: &Stage) {
        for (rack, count) in self.racks {
            for number in 0..*count {
                let mut node = node(&format!("{}-{rack}-{number}", stage.namespace), 100, &stage.namespace);
                node["metadata"]["labels"][RACK] = json!(rack);
                node["metadata"]["labels"][GPU] = json!(self.gpu);
                for amount in ["allocatable", "capacity"] {
                    node["status"][amount]["nvidia.com/gpu"] = json!("8");
                }
                stage.create_node(node).await;
            }
        }
    }
}

/// Pods of segments were held from their birth and released in order, each segment committed first; others were never held.
fn in_whole_segments(stage: &Stage, group: &Group, statuses: &StatusLog) {
    let in_segments = |pod: &Pod| group.roles.iter().any(|role| role.name == pod.role);
    for pod in stage.pods.births() {
        assert_eq!(pod.is_held(), in_segments(&pod), "{}", pod.name);
    }
    invariants::released_in_order(&stage.pods, group);
    invariants::released_counts_never_fell(statuses, group);
    invariants::committed_before_released(&stage.pods, statuses);
    invariants::nobody_was_held_again(&stage.pods);
}

impl Served {
    /// The pods as the API server has them.
    pub async fn stored(&self) -> Vec<ApiPod> {
        self.stage.api::<ApiPod>().list(&ListParams::default()).await.unwrap().items
    }

    /// Ready pods that these labels select.
    fn selected(&self, labels: &BTreeMap<String, String>) -> usize {
        let selects = |pod: &Pod| labels.iter().all(|(key, value)| pod.labels.get(key) == Some(value));
        self.stage.pods.now(|now| now.count_all(|pod| selects(pod) && pod.is_ready()))
    }

    /// Every Service leads to all pods that it selects. Returns how many Services there are.
    pub async fn services_have_endpoints(&self) -> usize {
        let services = self.stage.api::<Service>().list(&ListParams::default()).await.unwrap().items;
        for service in &services {
            let name = service.metadata.name.clone().unwrap();
            let pods = self.selected(&service.spec.clone().unwrap().selector.unwrap());
            assert!(pods > 0, "Service {name} selects nothing");
            let of_service = ListParams::default().labels(&format!("kubernetes.io/service-name={name}"));
            eventually(PATIENT, &format!("{pods} endpoints of {name}"), async || {
                let slices = self.stage.api::<EndpointSlice>().list(&of_service).await.unwrap().items;
                let endpoints = slices.into_iter().filter_map(|slice| slice.endpoints).flatten();
                let is_ready = |endpoint: &Endpoint| endpoint.conditions.as_ref().and_then(|now| now.ready);
                let ready = endpoints.filter(|endpoint| is_ready(endpoint) == Some(true)).count();
                if ready == pods { Ok(()) } else { Err(ready) }
            })
            .await;
        }
        services.len()
    }

    /// Every disruption budget sees all its pods healthy and lets at least one go. Returns how many there are.
    pub async fn budgets_allow_a_drain(&self) -> usize {
        let api = self.stage.api::<PodDisruptionBudget>();
        let budgets = api.list(&ListParams::default()).await.unwrap().items;
        for budget in &budgets {
            let name = budget.metadata.name.clone().unwrap();
            let labels = budget.spec.clone().unwrap().selector.unwrap().match_labels.unwrap();
            let pods = i32::try_from(self.selected(&labels)).unwrap();
            assert!(pods > 0, "PodDisruptionBudget {name} selects nothing");
            eventually(PATIENT, &format!("budget {name} over {pods} pods"), async || {
                let status = api.get(&name).await.unwrap().status.unwrap_or_default();
                let healthy = (status.expected_pods, status.current_healthy) == (Some(pods), Some(pods));
                let well = healthy && status.disruptions_allowed > Some(0);
                if well { Ok(()) } else { Err(format!("{status:?}")) }
            })
            .await;
        }
        budgets.len()
    }

    /// Every autoscaler can scale what it names: only metrics are missing here. Returns how many there are.
    pub async fn autoscalers_find_their_targets(&self) -> usize {
        let api = self.stage.api::<HorizontalPodAutoscaler>();
        let names = api.list(&ListParams::default()).await.unwrap().items.into_iter();
        let names: Vec<_> = names.map(|scaler| scaler.metadata.name.unwrap()).collect();
        for name in &names {
            eventually(PATIENT, &format!("autoscaler {name} finds its target"), async || {
                let status = api.get(name).await.unwrap().status.unwrap_or_default();
                let conditions = status.conditions.unwrap_or_default();
                let able = conditions.iter().any(|now| now.type_ == "AbleToScale" && now.status == "True");
                if able { Ok(()) } else { Err(format!("{conditions:?}")) }
            })
            .await;
        }
        names.len()
    }

    /// All of these; the numbers are those of objects in the namespace.
    pub async fn is_whole(&self, services: usize, budgets: usize, autoscalers: usize) {
        assert_eq!(self.services_have_endpoints().await, services);
        assert_eq!(self.budgets_allow_a_drain().await, budgets);
        assert_eq!(self.autoscalers_find_their_targets().await, autoscalers);
    }
}
