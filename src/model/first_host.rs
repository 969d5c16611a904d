//! Where the first pod of a RoleBasedGroup's role is found: `<hostname>.<governing Service>`, as RBG names them. The names
//! are those of RBG v0.6 to v0.8; that of an instance's pod is only known where the pods of an instance are numbered.

use serde_json::Value;

use super::WorkloadKind;
use crate::api::rbg::Role;

/// Longest name of a Service.
const SERVICE_NAME_MAX: usize = 63;
/// Annotation of a v1alpha2 role: its instances are numbered, or have random names.
const INSTANCE_PATTERN: &str = "rbg.workloads.x-k8s.io/role-instance-pattern";

/// `workload` is the name of the role's workload, `kind` its kind where that is none of RBG's own. `None` where pods have
/// no hostnames, or none that is known beforehand.
pub(super) fn of_rbg_role(group: &str, workload: &str, kind: Option<WorkloadKind>, role: &Role) -> Option<String> {
    let service: String = format!("s-{group}-{}", role.name).chars().take(SERVICE_NAME_MAX).collect();
    let service = service.trim_end_matches('-');
    match kind {
        Some(WorkloadKind::StatefulSet) => Some(format!("{workload}-0.{service}")),
        Some(WorkloadKind::LeaderWorkerSet) => Some(format!("{workload}-0.{workload}")),
        Some(WorkloadKind::Deployment) => None,
        None if is_stateless(role) => None,
        None if role.leader_worker_pattern.is_some() => Some(format!("{workload}-0-0.{service}")),
        None => role.standalone_pattern.map(|_| format!("{workload}-0.{service}")),
    }
}

fn is_stateless(role: &Role) -> bool {
    let pattern = role.annotations.as_ref().and_then(|annotations| annotations.get(INSTANCE_PATTERN));
    pattern.and_then(Value::as_str) == Some("Stateless")
}
