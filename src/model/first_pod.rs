//! Where pod 0 of a role is found: `<hostname>.<governing Service>`, the part of its DNS name before the namespace.

use serde_json::Value;

use super::workload::WorkloadKind;
use crate::api;
use crate::api::workload::{LeaderWorkerSet, StatefulSet};

/// Longest name of a Service.
const SERVICE_NAME_MAX: usize = 63;
/// Annotation of a v1alpha2 role: its instances have names of their own, or random ones.
const INSTANCE_PATTERN: &str = "rbg.workloads.x-k8s.io/role-instance-pattern";

/// `None` without a governing Service.
pub(super) fn of_stateful_set(set: &StatefulSet) -> Option<String> {
    let service = set.spec.service_name.as_deref().filter(|service| !service.is_empty())?;
    Some(format!("{}-{}.{service}", set.metadata.display_name(), set.spec.ordinals.start))
}

/// The leader of group 0.
pub(super) fn of_leader_worker_set(set: &LeaderWorkerSet) -> String {
    let name = set.metadata.display_name();
    let policy = set.spec.network_config.subdomain_policy.as_deref();
    if policy == Some("UniquePerReplica") { format!("{name}-0.{name}-0") } else { format!("{name}-0.{name}") }
}

/// As RBG names the pods and Services of its roles; `None` where pods have no hostnames.
pub(super) fn of_rbg_role(
    group: &str,
    workload: &str,
    kind: Option<WorkloadKind>,
    role: &api::rbg::Role,
) -> Option<String> {
    let service: String = format!("s-{group}-{}", role.name).chars().take(SERVICE_NAME_MAX).collect();
    let service = service.trim_end_matches('-');
    match kind {
        Some(WorkloadKind::StatefulSet) => Some(format!("{workload}-0.{service}")),
        Some(WorkloadKind::LeaderWorkerSet) => Some(format!("{workload}-0.{workload}")),
        Some(WorkloadKind::Deployment) => None,
        None if is_stateless(role) || role.custom_components_pattern.is_some() => None,
        None if role.leader_worker_pattern.is_some() => Some(format!("{workload}-0-0.{service}")),
        None if role.standalone_pattern.is_some() => Some(format!("{workload}-0.{service}")),
        None => None,
    }
}

fn is_stateless(role: &api::rbg::Role) -> bool {
    let pattern = role.annotations.as_ref().and_then(|annotations| annotations.get(INSTANCE_PATTERN));
    pattern.and_then(Value::as_str) == Some("Stateless")
}
