//! What a group claims: its roles and their workloads.

use std::collections::BTreeMap;

use crate::model::{Coordination, FieldPath, Group, GroupKey};

/// Something that only one object may coordinate.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Claim {
    /// A role of a group.
    Role(GroupKey, String),
    /// A workload, by name: whatever its kind, its pods bear the name.
    Workload(String, String),
}

/// What a group claims, with the role and the path for each.
pub(super) fn claims(group: &Group) -> BTreeMap<Claim, (&str, FieldPath)> {
    let mut claims = BTreeMap::new();
    for coordination in &group.coordinations {
        for name in coordination.role_names() {
            let path = match group.role(name) {
                Some(role) => role.workload.reference.as_ref().map_or_else(|| role.at.clone(), |(_, at)| at.clone()),
                None => role_path(coordination, name),
            };
            claims.entry(Claim::Role(group.key.clone(), name.to_owned())).or_insert((name, path.clone()));
            if let Some(key) = group.role(name).and_then(|role| role.workload.key.as_ref()) {
                claims.entry(Claim::Workload(key.namespace.clone(), key.name.clone())).or_insert((name, path));
            }
        }
    }
    claims
}

/// Where a coordination names a role: in `roles`, else in its size map.
pub(super) fn role_path(coordination: &Coordination, role: &str) -> FieldPath {
    let listed = coordination.roles.iter().flatten().position(|name| name == role);
    let sized = coordination.batchings.iter().find(|batching| batching.sizes.contains_key(role));
    match (listed, sized) {
        (Some(index), _) => coordination.at.child("roles").index(index),
        (None, Some(batching)) => batching.sizes_at.key(role),
        (None, None) => coordination.at.clone(),
    }
}
