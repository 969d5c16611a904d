//! Rules of topology and gangs (KEP-75).

use std::collections::BTreeMap;

use crate::api::ObjectKind;
use crate::model::object_name::subdomain_fault;
use crate::model::{Batching, Coordination, Domain, FieldPath, GangLevel, Group, Layers, Topology, Workload, names};
use crate::rules::names::listed;
use crate::rules::topology::is_valid;
use crate::rules::violation::quoted;
use crate::rules::{Cause, Known, Need, Report, World};

/// Requires that the ClusterTopology is valid and has the layer. A missing one only causes a warning.
pub(super) fn reference(group: &Group, world: &World, report: &mut Report) {
    // Each topology is judged once, however many coordinations refer to it.
    let mut valid = BTreeMap::new();
    for coordination in &group.coordinations {
        let topologies = coordination.batchings.iter().filter_map(|batching| batching.topology.as_ref());
        for topology in topologies {
            let Domain::Layer { topology: name, layer } = &topology.domain else { continue };
            let subject = coordination.display_name();
            let name_at = topology.at.child("clusterTopologyName");
            if let Some(fault) = subdomain_fault(name) {
                report.error(&subject, name_at, Cause::Invalid, quoted(name), fault);
                continue;
            }
            match world.topology(name) {
                Known::Present(layers) if !*valid.entry(name).or_insert_with(|| is_valid(layers)) => {
                    let detail = "must name a ClusterTopology that is valid";
                    report.error(&subject, name_at, Cause::Invalid, quoted(name), detail);
                }
                Known::Present(layers) if layers.layer(layer).is_none() => {
                    let names: Vec<_> = layers.narrow_to_wide().into_iter().map(|layer| layer.name).collect();
                    let names = || names.iter().map(String::as_str);
                    let must = format!("must name a layer of ClusterTopology {name:?}: {}", listed(names()));
                    let detail = report.with_hint(&must, layer, names());
                    report.error(&subject, topology.domain_at.clone(), Cause::NotFound, quoted(layer), detail);
                }
                // It waits for its finalizers, and may be gone before the reference from this group counts.
                Known::Present(layers) if layers.deleting => {
                    let detail = "this ClusterTopology is being deleted: the batches are held once it is gone";
                    report.warn(&subject, name_at, Cause::NotFound, quoted(name), detail);
                }
                Known::Present(_) => {}
                Known::Absent => {
                    let detail = "no ClusterTopology has this name: the batches are held until there is one";
                    report.warn(&subject, name_at, Cause::NotFound, quoted(name), detail);
                }
                Known::Unknown => report.not_judged(&subject, name_at, &Need::ClusterTopology(name.clone())),
            }
        }
    }
}

/// Returns roles whose pods lack the ordinals that a batching needs, with their maker.
fn without_ordinals<'a>(group: &'a Group, batching: &'a Batching) -> impl Iterator<Item = (&'a str, &'static str)> {
    let roles = batching.sizes.keys().filter_map(|name| group.role(name));
    roles.filter_map(|role| Some((role.name.as_str(), role.workload.without_ordinals()?)))
}

/// Requires ordinals for pods with a PodGroup: it is set at creation, and the batch of a pod without an ordinal is unknown
/// then.
pub(super) fn gang_ordinals(group: &Group, world: &World, report: &mut Report) {
    for (_, batching) in group.batched() {
        let Some(gangs) = &batching.gangs else { continue };
        let needs_none = |role: &str| gangs.level == GangLevel::Replica && has_single_pods(group, role, world);
        for (role, maker) in without_ordinals(group, batching).filter(|(role, _)| !needs_none(role)) {
            let detail = format!(
                "a role with podGroupPolicy must have ordinals: the pods of a {maker} are made before their batch is known"
            );
            report.forbid(role, batching.sizes_at.key(role), detail);
        }
    }
}

/// Requires that a PodGroup for each replica has several pods: a replica of one pod has none.
pub(super) fn gang_level(group: &Group, world: &World, report: &mut Report) {
    for (coordination, batching) in group.batched() {
        let Some(gangs) = batching.gangs.as_ref().filter(|gangs| gangs.level == GangLevel::Replica) else { continue };
        let mut roles = batching.sizes.keys();
        if !batching.sizes.is_empty() && roles.all(|role| has_single_pods(group, role, world)) {
            let batch = batching.kind.word();
            let detail = format!(
                "has no effect: each replica is one pod; level Batch starts the pods of a {batch} together, level Role those of a \
                 role of it"
            );
            let (name, path) = (coordination.display_name(), gangs.at.child("level"));
            report.error(&name, path, Cause::Invalid, quoted("Replica"), detail);
        }
    }
}

/// Reports whether each replica of a role is known to be one pod.
fn has_single_pods(group: &Group, role: &str, world: &World) -> bool {
    let Some(workload) = group.role(role).map(|role| &role.workload) else { return false };
    let known = || world.workload(workload.key.as_ref()?).present().map(|known| known.replica_size);
    workload.has_single_pods() || known() == Some(1)
}

/// Warns where pods that must share a domain have no ordinals: their affinity is set at creation.
pub(super) fn topology_ordinals(group: &Group, _: &World, report: &mut Report) {
    let is_hard = |batching: &Batching| batching.topology.as_ref().is_some_and(Topology::is_hard);
    for (_, batching) in group.batched().filter(|(_, batching)| is_hard(batching)) {
        for (role, maker) in without_ordinals(group, batching) {
            let detail = format!(
                "the pods of a {maker} have no ordinals: they are made before their batch is known, and only their release \
                 keeps them in its domain, with `--placement off` nothing"
            );
            report.notice(role, batching.sizes_at.key(role), detail);
        }
    }
}

/// Warns where the kind of the PodGroups to be created is not served.
pub(super) fn gang_definition(group: &Group, world: &World, report: &mut Report) {
    for (coordination, kind, path) in gangs(group) {
        let subject = coordination.display_name();
        match world.known(&Need::Served(kind)) {
            Known::Present(()) => {}
            Known::Absent => {
                let detail =
                    format!("{} are not served: the batches are held until their definition is there", kind.crd_name());
                report.warn(&subject, path.clone(), Cause::NotFound, None, detail);
            }
            Known::Unknown => report.not_judged(&subject, path.clone(), &Need::Served(kind)),
        }
    }
}

/// Returns the requested PodGroups: the coordination, the kind, and the path.
fn gangs(group: &Group) -> impl Iterator<Item = (&Coordination, ObjectKind, &FieldPath)> {
    group.batchings().filter_map(|(coordination, batching)| {
        let gangs = batching.gangs.as_ref()?;
        Some((coordination, gangs.policy.kind()?, &gangs.at))
    })
}

/// Requires that the author may create the PodGroups that the loop will create: rolegate lends no rights.
pub(super) fn rights(group: &Group, world: &World, report: &mut Report) {
    let namespace = &*group.key.namespace;
    for (coordination, kind, path) in gangs(group) {
        let subject = coordination.display_name();
        let need = Need::MayCreate { namespace: namespace.to_owned(), kind };
        let detail =
            format!("whoever sets it must be allowed to create {} in namespace {namespace:?}", kind.crd_name());
        world.right(&need, (&subject, path.clone()), detail, report);
    }
}

/// Warns of Kueue, and refuses subgroups that cannot share a domain.
pub(super) fn placed_twice(group: &Group, world: &World, report: &mut Report) {
    placed_by_kueue(group, world, report);
    for (coordination, batching) in group.batched() {
        let Some(topology) = batching.hard_topology() else { continue };
        // Whoever is alone in a domain is alone in those within it.
        let keys = match &topology.domain {
            Domain::Key(key) => vec![key.clone()],
            Domain::Layer { topology, layer } => {
                let layers = world.topology(topology).present().map(Layers::narrow_to_wide).unwrap_or_default();
                layers.into_iter().skip_while(|one| one.name != *layer).map(|one| one.key).collect()
            }
        };
        let known = |name: &String| world.workload(group.role(name)?.workload.key.as_ref()?).present();
        let roles: Vec<_> = batching.sizes.keys().filter_map(|name| Some((name, known(name)?))).collect();
        let of_batch =
            |(name, set): &(&String, &Workload)| batching.size(name).unwrap_or(0).saturating_mul(set.subgroups);
        let all = roles.iter().map(of_batch).fold(0, u32::saturating_add);
        let is_alone = |set: &Workload| set.subgroup_topology.as_ref().is_some_and(|key| keys.contains(key));
        for (name, set) in roles.iter().filter(|(_, set)| all > 1 && set.subgroups > 0 && is_alone(set)) {
            let detail = format!(
                "each subgroup of {} {:?} wants a domain for itself ({}: {}), and the {all} subgroups of a {} must share one",
                set.key.kind.as_str(),
                set.key.name,
                names::LWS_SUBGROUP_EXCLUSIVE_TOPOLOGY,
                set.subgroup_topology.as_deref().unwrap_or_default(),
                batching.kind.word()
            );
            report.forbid(name, coordination.path_of(name), detail);
        }
    }
}

/// Warns where Kueue chooses nodes for pods that must share a domain. Kueue places the pods of one workload, and knows
/// nothing of a batch of several workloads. Its choice comes first, and a batch that it splits over domains stays held.
fn placed_by_kueue(group: &Group, world: &World, report: &mut Report) {
    let placed = |batching: &Batching| batching.topology.is_some();
    for (coordination, batching) in group.batched().filter(|(_, batching)| placed(batching)) {
        for role in batching.sizes.keys().filter_map(|name| group.role(name)) {
            let Some(key) = &role.workload.key else { continue };
            let Some(asks) = world.workload(key).present().and_then(|workload| workload.asks_kueue) else { continue };
            let detail = format!(
                "pods of {} {:?} ask Kueue for a place as well ({asks}): Kueue's word comes first, and a batch whose pods it puts \
                 into several domains is held with NoRoom; take the annotation or the topology away",
                key.kind.as_str(),
                key.name
            );
            report.notice(&role.name, coordination.path_of(&role.name), detail);
        }
    }
}
