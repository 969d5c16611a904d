//! What must be read before an object is judged.

use super::carrier::read_group;
use super::decode::{DecodeError, decode};
use super::question::{Operation, Question};
use super::{Need, World, group, podgroup};
use crate::api::{
    CoordinatedPolicy, ObjectKind, cluster_topology, coordinated_policy, pod, pod_group, rbg, role_coordination,
};
use crate::model::{Group, GroupKey};

/// Lists what the rules of one kind look up.
type NeedsOf = fn(Question<'_>, &World) -> Result<Vec<Need>, DecodeError>;

/// Kinds whose rules look at other objects.
const NEEDS: &[(ObjectKind, NeedsOf)] = &[
    (rbg::ROLE_BASED_GROUP, needs_of_carrier),
    (rbg::ROLE_BASED_GROUP_INSTAI, needs_of_carrier),
    (role_coordination::ROLE_COORDINATION, needs_of_carrier),
    (cluster_topology::CLUSTER_TOPOLOGY, needs_of_topology),
    (cluster_topology::CLUSTER_TOPOLOGY_KEP75, needs_of_topology),
    (coordinated_policy::COORDINATED_POLICY, needs_of_policy),
    (pod_group::POD_GROUP, podgroup::needs),
    (pod::POD, podgroup::needs_of_pod),
];

/// What has to be read to judge an object, without what the world knows already. Reading it may show further needs (the
/// workloads of a group that is referred to): ask again until nothing new is named. Whatever stays unknown is not judged.
///
/// # Errors
///
/// When the object does not have the shape of its kind.
pub fn needs(
    api_version: &str,
    kind: &str,
    operation: Operation,
    object: &str,
    old: Option<&str>,
    world: &World,
) -> Result<Vec<Need>, DecodeError> {
    let row = NEEDS.iter().find(|(known, _)| known.kind == kind && known.api_version() == api_version);
    let Some((kind, needs)) = row else { return Ok(Vec::new()) };
    let mut needs = needs(Question { kind: *kind, operation, object, old }, world)?;
    needs.retain(|need| !world.is_answered(need));
    Ok(needs)
}

/// What the rules look up of a stored group.
pub fn needs_of_group(group: &Group) -> Vec<Need> {
    group::needs(group, None)
}

fn needs_of_carrier(question: Question<'_>, world: &World) -> Result<Vec<Need>, DecodeError> {
    if question.operation == Operation::Delete {
        return Ok(Vec::new());
    }
    let group = read_group(question.kind, question.object, world)?;
    if group.deleting {
        return Ok(Vec::new());
    }
    let old = question.old.and_then(|old| read_group(question.kind, old, world).ok());
    Ok(group::needs(&group, old.as_ref()))
}

fn needs_of_topology(question: Question<'_>, _: &World) -> Result<Vec<Need>, DecodeError> {
    let topology: crate::api::ClusterTopology = decode(question.object)?;
    let name = topology.metadata.display_name().to_owned();
    Ok(if question.operation == Operation::Delete { vec![Need::TopologyReferrers(name)] } else { Vec::new() })
}

fn needs_of_policy(question: Question<'_>, _: &World) -> Result<Vec<Need>, DecodeError> {
    let policy: CoordinatedPolicy = decode(question.object)?;
    let key = GroupKey::new(policy.metadata.namespace(), policy.metadata.display_name());
    Ok(if question.operation == Operation::Delete { Vec::new() } else { vec![Need::RoleBasedGroup(key)] })
}
