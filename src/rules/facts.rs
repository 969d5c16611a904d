//! Objects as JSON, taken into the world.

use serde_json::Value;

use super::World;
use super::carrier::read_group;
use super::decode::{DecodeError, decode};
use crate::api::crd::CUSTOM_RESOURCE_DEFINITION;
use crate::api::disruption_budget::{POD_DISRUPTION_BUDGET, PodDisruptionBudget};
use crate::api::pod::POD;
use crate::api::pod_group::{self, Topology};
use crate::api::workload::{DEPLOYMENT, Deployment, LEADER_WORKER_SET, LeaderWorkerSet, STATEFUL_SET, StatefulSet};
use crate::api::{
    ClusterTopology, CoordinatedPolicy, ObjectKind, Pod, PodGroup, cluster_topology, coordinated_policy, rbg,
    role_coordination,
};
use crate::model::{Dialect, GangTree, Layers, Levels, WorkloadObject, identify};

/// Reads objects of one kind into the world.
pub type AddJson = fn(ObjectKind, &str, &mut World) -> Result<(), DecodeError>;

/// Kinds that rules look at.
pub const FACTS: &[(ObjectKind, AddJson)] = &[
    (rbg::ROLE_BASED_GROUP, add_carrier),
    (rbg::ROLE_BASED_GROUP_INSTAI, add_carrier),
    (rbg::ROLE_BASED_GROUP_V1ALPHA2, add_carrier),
    (role_coordination::ROLE_COORDINATION, add_carrier),
    (cluster_topology::CLUSTER_TOPOLOGY, add_topology),
    (cluster_topology::CLUSTER_TOPOLOGY_KEP75, add_topology),
    (coordinated_policy::COORDINATED_POLICY, add_policy),
    (STATEFUL_SET, add_workload::<StatefulSet>),
    (LEADER_WORKER_SET, add_workload::<LeaderWorkerSet>),
    (DEPLOYMENT, add_workload::<Deployment>),
    (POD_DISRUPTION_BUDGET, add_budget),
    (POD, add_pod),
    (pod_group::POD_GROUP, add_pod_group),
    (pod_group::TOPOLOGY, add_levels),
    (CUSTOM_RESOURCE_DEFINITION, add_definition),
];

impl World {
    /// Takes in an object, if it is of a kind that rules look at. The object need not be valid.
    ///
    /// # Errors
    ///
    /// When the object does not have the shape of its kind.
    pub fn add_json(&mut self, api_version: &str, kind: &str, object: &str) -> Result<(), DecodeError> {
        let row = FACTS.iter().find(|(known, _)| known.kind == kind && known.api_version() == api_version);
        row.map_or(Ok(()), |(kind, add)| add(*kind, object, self))
    }
}

/// A RoleCoordination is read without its sources, which may come later: claims and references stand in the object itself.
fn add_carrier(kind: ObjectKind, object: &str, world: &mut World) -> Result<(), DecodeError> {
    world.add_group(read_group(kind, object, &())?);
    Ok(())
}

fn add_topology(kind: ObjectKind, object: &str, world: &mut World) -> Result<(), DecodeError> {
    world.add_topology(Layers::parse(kind, &decode::<ClusterTopology>(object)?));
    Ok(())
}

fn add_policy(_: ObjectKind, object: &str, world: &mut World) -> Result<(), DecodeError> {
    world.add_policy(decode::<CoordinatedPolicy>(object)?);
    Ok(())
}

fn add_workload<T: WorkloadObject>(_: ObjectKind, object: &str, world: &mut World) -> Result<(), DecodeError> {
    world.add_workload(decode::<T>(object)?.workload());
    Ok(())
}

fn add_budget(_: ObjectKind, object: &str, world: &mut World) -> Result<(), DecodeError> {
    world.add_budget(decode::<PodDisruptionBudget>(object)?);
    Ok(())
}

fn add_pod(_: ObjectKind, object: &str, world: &mut World) -> Result<(), DecodeError> {
    let pod: Pod = decode(object)?;
    if let Some(identity) = identify(&pod, pod.metadata.namespace(), &()).filter(|_| !pod.is_gone())
        && let Some(role) = identity.role
    {
        world.add_pod(identity.group, role);
    }
    Ok(())
}

fn add_pod_group(_: ObjectKind, object: &str, world: &mut World) -> Result<(), DecodeError> {
    let group: PodGroup = decode(object)?;
    let dialect = world.options.kai_dialect.resolve(world.kai_crd, &group.spec);
    world.add_pod_group(GangTree::from_pod_group(&group, dialect));
    Ok(())
}

fn add_levels(_: ObjectKind, object: &str, world: &mut World) -> Result<(), DecodeError> {
    let topology: Topology = decode(object)?;
    world.add_levels(topology.metadata.display_name(), Levels::from_topology(&topology));
    Ok(())
}

/// A definition tells which fields its objects keep: with PodGroups, their dialect.
fn add_definition(_: ObjectKind, object: &str, world: &mut World) -> Result<(), DecodeError> {
    let definition: Value = decode(object)?;
    let name = definition.pointer("/metadata/name").and_then(Value::as_str);
    if name == Some(&pod_group::POD_GROUP.crd_name()) {
        world.kai_crd = Dialect::of_crd(&definition);
    }
    Ok(())
}
