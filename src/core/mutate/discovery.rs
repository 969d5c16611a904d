//! Discovery by environment (Grove, pod discovery, proposal 2): each pod of a scope gets its own role and index, and for
//! every role of the scope the address of pod 0 and the number of pods.
//!
//! A scope is one replica of a scaling group, or all cliques without a scaling group in one replica of the set. Scopes do not
//! see each other, unless the set joins them: then the cliques without a scaling group find all roles, and all find theirs. No
//! pod is looked up: the set and the pod's labels are enough.

use std::collections::BTreeSet;

use super::Patch;
use super::additions::Additions;
use super::env::{Variable, prepend};
use crate::api::Pod;
use crate::model::clique_set::{Clique, clique_name, env_name, is_role_name};
use crate::model::{CliquePod, CliqueSet};
use crate::mutate::context::{Coordinated, MutationContext};

/// The result of discovery for a pod.
#[derive(Debug, Default)]
pub struct Discovery {
    /// Empty when the pod needs no change.
    pub patch: Patch,
    /// Shown to the creator of the pod.
    pub warnings: Vec<String>,
}

/// A role that pods of a scope can discover.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    pub role: String,
    /// DNS name of its pod 0; of a role in all copies of a scaling group, that in copy 0.
    pub address: String,
    /// DNS name of the Service under which all its pods have their names, where pods of other copies may be looked for.
    pub service: Option<String>,
    /// Number of pods of the role, in all copies that may be found.
    pub replicas: u32,
}

/// The role of the discovering pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Own<'a> {
    pub role: &'a str,
    /// Index of the pod in its role, from 0, where it is known.
    pub index: Option<u32>,
}

/// Returns the discovery variables of a Grove pod. `set` is `None` when a live read proves that it does not exist;
/// `namespace` is that of the request, since a pod may omit its own; `cluster_domain` is the suffix of every DNS name,
/// `cluster.local`.
pub fn discover(
    pod: &Pod,
    namespace: &str,
    place: &CliquePod,
    set: Option<&CliqueSet>,
    cluster_domain: &str,
) -> Discovery {
    let mut discovery = Discovery::default();
    match set {
        Some(set) => {
            let variables = variables_in(set, pod, namespace, place, cluster_domain);
            discovery.warnings = prepend(&mut discovery.patch, pod, &variables);
        }
        None => discovery.warnings.push(absent(place)),
    }
    discovery
}

/// Adds the variables of a Grove pod.
pub(super) fn of_clique(context: &MutationContext<'_>, additions: &mut Additions) {
    let Some(place) = context.subject.place.as_ref().filter(|_| context.settings.discovery) else { return };
    let (namespace, domain) = (context.subject.namespace(), &*context.settings.cluster_domain);
    match context.lookups.clique_set {
        Some(set) => additions.variables.extend(variables_in(set, context.pod, namespace, place, domain)),
        None => additions.warnings.push(absent(place)),
    }
}

/// Adds the variables of a pod whose group opted in. All roles are one scope; a role whose workload is unknown or has no
/// governing Service is left out.
pub(super) fn of_group(context: &MutationContext<'_>, additions: &mut Additions) {
    let Some(Coordinated { group, role, ordinal }) = context.coordinated else { return };
    if !context.settings.discovery || !group.discovery || context.subject.place.is_some() {
        return;
    }
    let (namespace, domain) = (context.subject.namespace(), &*context.settings.cluster_domain);
    let mut seen = BTreeSet::new();
    let with_host = group.roles.iter().filter_map(|role| Some((role, role.workload.hosts.as_ref()?.first()?)));
    let peers: Vec<_> = with_host
        .filter(|(role, _)| is_role_name(&role.name) && seen.insert(env_name(&role.name)))
        .map(|(role, host)| Peer {
            role: role.name.clone(),
            address: format!("{host}.{namespace}.svc.{domain}"),
            service: None,
            replicas: role.desired,
        })
        .collect();
    let own = is_role_name(role).then_some(Own { role, index: ordinal });
    // The variables of Grove itself are not overwritten.
    let all = variables(own, &peers).into_iter().filter(|(name, _)| !name.starts_with("GROVE_"));
    additions.variables.extend(all);
}

fn absent(place: &CliquePod) -> String {
    format!("Grove set {:?} is not there: the pod gets no discovery variables", place.set)
}

/// Returns the variables of a pod of this set; none when the set opted out.
pub(super) fn variables_in(
    set: &CliqueSet,
    pod: &Pod,
    namespace: &str,
    place: &CliquePod,
    cluster_domain: &str,
) -> Vec<Variable> {
    let scaling_group = place.scaling_group.as_ref().map(|(group, _)| group.as_str());
    let Some(scope) = set.scope(scaling_group).filter(|_| set.discovery) else { return Vec::new() };
    let own = scope.iter().find(|clique| clique.name == place.clique).and_then(|clique| role(clique));
    let own = own.map(|role| Own { role, index: place.index });
    let found = scope.into_iter().chain(set.beyond(scaling_group));
    variables(own, &peers(set, found, pod, namespace, place, cluster_domain))
}

/// Returns the role of a clique; `None` for a stored one with an invalid name.
fn role(clique: &Clique) -> Option<&str> {
    clique.role.as_deref().filter(|role| is_role_name(role))
}

/// Returns the roles of the cliques that a pod finds; of two roles with one variable name, the first.
fn peers<'a>(
    set: &'a CliqueSet,
    found: impl Iterator<Item = &'a Clique>,
    pod: &Pod,
    namespace: &str,
    place: &CliquePod,
    cluster_domain: &str,
) -> Vec<Peer> {
    let service = format!("{}.{namespace}.svc.{cluster_domain}", place.service(pod));
    let joined = set.joins_scopes();
    let mut seen = BTreeSet::new();
    let with_roles = found.filter_map(|clique| Some((clique, role(clique)?)));
    with_roles
        .filter(|(_, role)| seen.insert(env_name(role)))
        .map(|(clique, role)| {
            let (group, copies) = copies(set, clique, place);
            let full_name = clique_name(&place.set, place.set_replica, group, &clique.name);
            Peer {
                role: role.to_owned(),
                address: format!("{full_name}-0.{service}"),
                service: joined.then(|| service.clone()),
                replicas: clique.replicas.saturating_mul(copies),
            }
        })
        .collect()
}

/// Returns the copy of a clique's scaling group whose first pod is found, and the number of copies whose pods are counted: for
/// a pod of that scaling group its own copy, for others all from copy 0.
fn copies<'a>(set: &'a CliqueSet, clique: &Clique, place: &'a CliquePod) -> (Option<(&'a str, u32)>, u32) {
    match (set.group_of(clique), &place.scaling_group) {
        (None, _) => (None, 1),
        (Some(_), Some((own, copy))) => (Some((own, *copy)), 1),
        (Some(group), None) => (Some((&group.name, 0)), group.replicas),
    }
}

/// Returns the variables of a pod, in order. None without a role in scope.
pub fn variables(own: Option<Own<'_>>, peers: &[Peer]) -> Vec<Variable> {
    let own_env = own.map(|own| env_name(own.role));
    let mut variables = Vec::new();
    let mut set = |name: String, value: String| variables.push((name, value));
    if let Some(own) = own {
        set("ROLE_NAME".to_owned(), own.role.to_owned());
        if let Some(index) = own.index {
            set("ROLE_INDEX".to_owned(), index.to_string());
        }
    }
    for peer in peers {
        let env = env_name(&peer.role);
        set(format!("{env}_ADDR"), peer.address.clone());
        if let Some(service) = &peer.service {
            set(format!("{env}_HEADLESS"), service.clone());
        }
    }
    if let (Some(own), Some(env)) = (own, &own_env) {
        set("GROVE_ROLE".to_owned(), own.role.to_owned());
        set("GROVE_IS_LEADER".to_owned(), (env == "LEADER" || env.ends_with("_LEADER")).to_string());
    }
    for (peer, env) in peers.iter().map(|peer| (peer, env_name(&peer.role))) {
        if own_env.as_ref() != Some(&env) {
            set(format!("GROVE_ROLE_{env}_COUNT"), peer.replicas.to_string());
        }
    }
    variables
}
