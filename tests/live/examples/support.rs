//! The control plane of this suite, a service on it, and what is looked at when it serves.

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
        let (stage, rolegate) = stage(&format!("example-{}", self.group.name)).await.serve().await;
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
                let labels = json!({ (RACK): rack, (GPU): self.gpu });
                let has = json!({ "nvidia.com/gpu": "8" });
                let more =
                    json!({ "metadata": { "labels": labels }, "status": { "allocatable": has, "capacity": has } });
                stage.add_node_like(&format!("{rack}-{number}"), 100, &more).await;
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
    /// Ready pods that these labels select.
    fn selected(&self, labels: &BTreeMap<String, String>) -> usize {
        let selects = |pod: &Pod| labels.iter().all(|(key, value)| pod.labels.get(key) == Some(value));
        self.stage.pods.now(|now| now.count_all(|pod| selects(pod) && pod.is_ready()))
    }

    /// Every Service leads to all pods that it selects. Returns how many Services there are.
    pub async fn services_have_endpoints(&self) -> usize {
        let services = self.stage.list::<Service>().await;
        for service in &services {
            let name = service.metadata.name.clone().unwrap();
            let pods = self.selected(&service.spec.clone().unwrap().selector.unwrap());
            assert!(pods > 0, "Service {name} selects nothing");
            let of_service = ListParams::default().labels(&format!("kubernetes.io/service-name={name}"));
            let ready = async || {
                let slices = self.stage.api::<EndpointSlice>().list(&of_service).await.unwrap().items;
                let endpoints = slices.into_iter().filter_map(|slice| slice.endpoints).flatten();
                let is_ready = |endpoint: &Endpoint| endpoint.conditions.as_ref().and_then(|now| now.ready);
                endpoints.filter(|endpoint| is_ready(endpoint) == Some(true)).count()
            };
            until_is(&format!("{pods} endpoints of {name}"), ready, pods).await;
        }
        services.len()
    }

    /// Every disruption budget sees all its pods healthy and lets at least one go. Returns how many there are.
    pub async fn budgets_allow_a_drain(&self) -> usize {
        let api = self.stage.api::<PodDisruptionBudget>();
        let budgets = self.stage.list::<PodDisruptionBudget>().await;
        for budget in &budgets {
            let name = budget.metadata.name.clone().unwrap();
            let labels = budget.spec.clone().unwrap().selector.unwrap().match_labels.unwrap();
            let pods = i32::try_from(self.selected(&labels)).unwrap();
            assert!(pods > 0, "PodDisruptionBudget {name} selects nothing");
            let status = async || api.get(&name).await.unwrap().status.unwrap_or_default();
            until_found(&format!("budget {name} over {pods} pods"), status, |status| {
                let healthy = (status.expected_pods, status.current_healthy) == (Some(pods), Some(pods));
                healthy && status.disruptions_allowed > Some(0)
            })
            .await;
        }
        budgets.len()
    }

    /// Every autoscaler can scale what it names: only metrics are missing here. Returns how many there are.
    pub async fn autoscalers_find_their_targets(&self) -> usize {
        let api = self.stage.api::<HorizontalPodAutoscaler>();
        let names = self.stage.list::<HorizontalPodAutoscaler>().await.into_iter();
        let names: Vec<_> = names.map(|scaler| scaler.metadata.name.unwrap()).collect();
        for name in &names {
            let status = async || api.get(name).await.unwrap().status.unwrap_or_default();
            until_found(&format!("autoscaler {name} finds its target"), status, |status| {
                let mut conditions = status.conditions.iter().flatten();
                conditions.any(|now| now.type_ == "AbleToScale" && now.status == "True")
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
