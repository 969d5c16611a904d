//! Adds objects of each kind to the world of the rules.

use serde_json::Value;

use super::carrier::read_group;
use super::decode::{DecodeError, decode};
use super::{Need, World};
use crate::api::autoscaler::Autoscaler;
use crate::api::disruption_budget::PodDisruptionBudget;
use crate::api::pod_group::{self, Topology};
use crate::api::service::Service;
use crate::api::{CoordinatedPolicy, ObjectKind, Pod, PodGroup};
use crate::model::{AwaitedKind, Dialect, GangTree, Layers, Levels, WorkloadObject, identify};

/// Decodes an object of one kind into the world.
pub(super) type AddJson = fn(ObjectKind, &str, &mut World) -> Result<(), DecodeError>;

/// Adds a RoleCoordination without its sources, which may come later: its claims and references are in the object itself.
pub(super) fn add_carrier(kind: ObjectKind, object: &str, world: &mut World) -> Result<(), DecodeError> {
    read_group(kind, object, &()).map(|group| world.add_group(group))
}

pub(super) fn add_topology(kind: ObjectKind, object: &str, world: &mut World) -> Result<(), DecodeError> {
    decode(object).map(|topology| world.add_topology(Layers::parse(kind, &topology)))
}

pub(super) fn add_policy(_: ObjectKind, object: &str, world: &mut World) -> Result<(), DecodeError> {
    decode::<CoordinatedPolicy>(object).map(|policy| world.add_policy(policy))
}

pub(super) fn add_workload<T: WorkloadObject>(
    _: ObjectKind,
    object: &str,
    world: &mut World,
) -> Result<(), DecodeError> {
    decode::<T>(object).map(|read| world.add_workload(read.workload()))
}

pub(super) fn add_budget(_: ObjectKind, object: &str, world: &mut World) -> Result<(), DecodeError> {
    decode::<PodDisruptionBudget>(object).map(|budget| world.add_budget(budget))
}

pub(super) fn add_autoscaler(_: ObjectKind, object: &str, world: &mut World) -> Result<(), DecodeError> {
    decode::<Autoscaler>(object).map(|autoscaler| world.add_autoscaler(autoscaler))
}

pub(super) fn add_service(_: ObjectKind, object: &str, world: &mut World) -> Result<(), DecodeError> {
    decode::<Service>(object).map(|service| world.add_service(service))
}

pub(super) fn add_pod(_: ObjectKind, object: &str, world: &mut World) -> Result<(), DecodeError> {
    let pod: Pod = decode(object)?;
    if let Some(identity) = identify(&pod, pod.metadata.namespace(), &()).filter(|_| !pod.is_gone())
        && let Some(role) = identity.role
    {
        world.add_pod(identity.group, &*role);
    }
    Ok(())
}

pub(super) fn add_pod_group(_: ObjectKind, object: &str, world: &mut World) -> Result<(), DecodeError> {
    let group: PodGroup = decode(object)?;
    let dialect = world.options.kai_dialect.resolve(world.kai_crd, &group.spec);
    world.add_pod_group(GangTree::from_pod_group(&group, dialect));
    Ok(())
}

pub(super) fn add_levels(_: ObjectKind, object: &str, world: &mut World) -> Result<(), DecodeError> {
    let topology: Topology = decode(object)?;
    world.add_levels(topology.metadata.display_name(), Levels::from_topology(&topology));
    Ok(())
}

/// Adds the dialect of PodGroups, which the fields of their definition tell, and whether its kind has namespaces.
pub(super) fn add_definition(_: ObjectKind, object: &str, world: &mut World) -> Result<(), DecodeError> {
    let definition: Value = decode(object)?;
    let name = definition.pointer("/metadata/name").and_then(Value::as_str);
    let text = |path: &str| definition.pointer(path).and_then(Value::as_str);
    if let (Some(group), Some(kind), Some(scope)) = (text("/spec/group"), text("/spec/names/kind"), text("/spec/scope"))
    {
        let kind = AwaitedKind { group: group.to_owned(), kind: kind.to_owned() };
        world.answer(Need::ClusterScoped(kind), scope == "Cluster");
    }
    if name == Some(&pod_group::POD_GROUP.crd_name()) {
        world.kai_crd = Dialect::of_crd(&definition);
    }
    Ok(())
}
