//! Rules of topology and gangs (KEP-75).

use crate::model::{Domain, Group};
use crate::rules::names::hint;
use crate::rules::topology::is_valid;
use crate::rules::violation::quoted;
use crate::rules::{Cause, Known, Need, Report, World};

/// The ClusterTopology exists, is valid and has the layer. One that does not exist (yet) only warns.
pub(super) fn reference(group: &Group, world: &World, report: &mut Report) {
    for coordination in &group.coordinations {
        let topologies = coordination.batchings.iter().filter_map(|batching| batching.topology.as_ref());
        for topology in topologies {
            let Domain::Layer { topology: name, layer } = &topology.domain else { continue };
            let subject = coordination.display_name();
            let name_at = topology.at.child("clusterTopologyName");
            match world.topology(name) {
                Known::Present(layers) if !is_valid(layers) => {
                    let detail = "must name a ClusterTopology that is valid";
                    report.error(&subject, name_at, Cause::Invalid, quoted(name), detail);
                }
                Known::Present(layers) if layers.layer(layer).is_none() => {
                    let names: Vec<_> = layers.narrow_to_wide().into_iter().map(|layer| layer.name).collect();
                    let hint = hint(layer, names.iter().map(String::as_str));
                    let detail = format!("must name a layer of ClusterTopology {name:?}: {}{hint}", names.join(", "));
                    report.error(&subject, topology.domain_at.clone(), Cause::NotFound, quoted(layer), detail);
                }
                // It waits for its finalizers, and may be gone before this group is seen to refer to it.
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

/// The author may create the PodGroups that the loop will make: what somebody may not do, they may not have us do.
pub(super) fn rights(group: &Group, world: &World, report: &mut Report) {
    let namespace = &*group.key.namespace;
    for coordination in &group.coordinations {
        let policies = coordination.batchings.iter().filter_map(|batching| batching.pod_group.as_ref());
        for (policy, path) in policies {
            let Some((api_group, resource)) = policy.resource() else { continue };
            let subject = coordination.display_name();
            match world.may_create_pod_groups(namespace, api_group) {
                Known::Present(()) => {}
                Known::Absent => {
                    let detail = format!(
                        "whoever sets it must be allowed to create {resource}.{api_group} in namespace {namespace:?}"
                    );
                    report.error(&subject, path.clone(), Cause::Forbidden, None, detail);
                }
                Known::Unknown => {
                    let need = Need::MayCreatePodGroups { namespace: namespace.to_owned(), api_group };
                    report.not_judged(&subject, path.clone(), &need);
                }
            }
        }
    }
}
