//! The DNS name of the first pod of a RoleBasedGroup's role: `<hostname>.<governing Service>`, as RBG v0.6 to v0.8 names it.
//! With instances, the name is known only if the pods of an instance are numbered.

use super::WorkloadKind;
use crate::api::rbg::Role;

const SERVICE_NAME_MAX: usize = 63;

/// Returns the DNS name of a role's first pod. `workload` is the name of the role's workload; `kind` is its kind, `None` for
/// RBG's own kinds, whose instances may have random names. Returns `None` if no hostname is known beforehand.
pub(super) fn of_rbg_role(
    group: &str,
    workload: &str,
    kind: Option<WorkloadKind>,
    has_random_names: bool,
    role: &Role,
) -> Option<String> {
    let service: String = format!("s-{group}-{}", role.name).chars().take(SERVICE_NAME_MAX).collect();
    let service = service.trim_end_matches('-');
    match kind {
        Some(WorkloadKind::StatefulSet) => Some(format!("{workload}-0.{service}")),
        Some(WorkloadKind::LeaderWorkerSet) => Some(format!("{workload}-0.{workload}")),
        Some(WorkloadKind::Deployment) => None,
        None if has_random_names => None,
        None if role.leader_worker_pattern.is_some() => Some(format!("{workload}-0-0.{service}")),
        None => role.standalone_pattern.map(|_| format!("{workload}-0.{service}")),
    }
}
