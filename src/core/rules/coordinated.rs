//! The workloads that a group coordinates.

use std::collections::BTreeMap;

use crate::model::{FieldPath, Group};

/// Namespace and name of a workload. Workloads of different kinds with one name count as one, since their pods bear the name.
pub(super) type WorkloadName = (String, String);

/// Returns the workloads that a group coordinates, with the role and the path for each.
pub(super) fn workloads(group: &Group) -> BTreeMap<WorkloadName, (&str, FieldPath)> {
    let mut workloads = BTreeMap::new();
    for coordination in &group.coordinations {
        for name in coordination.role_names() {
            let Some(role) = group.role(name) else { continue };
            let Some(key) = &role.workload.key else { continue };
            let path = role.workload.reference.as_ref().map_or(&role.at, |(_, at)| at).clone();
            workloads.entry((key.namespace.clone(), key.name.clone())).or_insert((name, path));
        }
    }
    workloads
}
