//! Other objects needed to judge a group.

use super::bounds::is_too_large;
use super::{by_hand, discovery, on_failure, provision, rollout_by};
use crate::model::{AwaitedObject, Coordination, Group, Role};
use crate::rules::Need;

pub fn needs_of_group(group: &Group) -> Vec<Need> {
    needs(group, None)
}

/// Returns the needs of a group. The workloads of a group reference appear once the referenced group is known.
pub(super) fn needs(group: &Group, old: Option<&Group>) -> Vec<Need> {
    if is_too_large(group) {
        return Vec::new();
    }
    let namespace = group.key.namespace.to_string();
    let mut needs = Vec::new();
    if group.reference.is_some() {
        needs.push(Need::RoleBasedGroup(group.key.clone()));
    }
    if group.is_claim() {
        needs.push(Need::Groups { namespace: namespace.clone() });
    }
    if group.batched().next().is_some() {
        needs.push(Need::DisruptionBudgets { namespace: namespace.clone() });
        needs.push(Need::CoordinatedPolicy(group.key.clone()));
    }
    for name in group.coordinations.iter().flat_map(|coordination| coordination.role_names()) {
        let key = group.role(name).and_then(|role| role.workload.key.clone());
        needs.extend(key.map(Need::Workload));
    }
    let referred = |role: &Role| role.workload.reference.as_ref().and(role.workload.key.clone());
    needs.extend(group.roles.iter().filter_map(referred).map(Need::Workload));
    needs.extend(discovery::needs(group));
    if group.elastic.is_some() {
        let sized = group.batched().flat_map(|(_, batching)| batching.sizes.keys());
        let keys = sized.filter_map(|name| group.role(name)?.workload.key.clone());
        needs.extend(keys.map(Need::MayScale));
    }
    for batching in group.coordinations.iter().flat_map(|coordination| &coordination.batchings) {
        needs.extend(batching.layer().map(|(topology, _)| Need::ClusterTopology(topology.to_owned())));
        let kind = batching.gangs.as_ref().and_then(|gangs| gangs.policy.kind());
        needs.extend(kind.map(Need::Served));
        needs.extend(batching.recovers().map(|_| Need::MayDeletePods { namespace: namespace.clone() }));
        needs.extend(kind.map(|kind| Need::MayCreate { namespace: namespace.clone(), kind }));
    }
    for (_, provision) in provision::that_request(group) {
        let kind = provision.by.kind();
        needs.extend([Need::Served(kind), Need::MayCreate { namespace: namespace.clone(), kind }]);
    }
    if on_failure::goes_back(group) || rollout_by::is_by_segment(group) || by_hand::is_asked(group) {
        needs.push(Need::MayDeletePods { namespace: namespace.clone() });
    }
    let awaited = group.coordinations.iter().flat_map(Coordination::ready_when).filter_map(|when| when.object.as_ref());
    needs.extend(awaited.flat_map(|AwaitedObject { kind, .. }| {
        [Need::MayGet { namespace: namespace.clone(), kind: kind.clone() }, Need::ClusterScoped(kind.clone())]
    }));
    if let Some(old) = old {
        let coordinations = || group.coordinations.iter().chain(&old.coordinations);
        if coordinations().flat_map(|c| &c.batchings).any(|batching| batching.topology.is_some()) {
            let roles = coordinations().flat_map(|coordination| coordination.role_names());
            needs.extend(roles.map(|role| Need::Pods { group: group.key.clone(), role: role.to_owned() }));
        }
    }
    needs.sort();
    needs.dedup();
    needs
}
