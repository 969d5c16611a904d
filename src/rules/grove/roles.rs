//! Roles: what variables they make, and who sees these.

use std::collections::BTreeMap;

use crate::model::clique_set::{Clique, ROLE_NAME_MAX, env_name, is_role_name};
use crate::model::{CliqueSet, FieldPath};
use crate::rules::violation::quoted;
use crate::rules::{Cause, Report, World};

/// Beginnings of variables that others set, and who.
const RESERVED: &[(&str, &str)] = &[
    ("GROVE_", "Grove"),
    ("LWS_", "LeaderWorkerSet"),
    ("RBG_", "RBG"),
    ("KUBERNETES_", "Kubernetes"),
    ("ROLEGATE_", "rolegate"),
];

fn path(clique: &Clique) -> FieldPath {
    clique.at.child("spec").child("roleName")
}

fn with_roles(set: &CliqueSet) -> impl Iterator<Item = (&Clique, &str)> {
    set.cliques.iter().filter_map(|clique| Some((clique, clique.role.as_deref()?)))
}

/// A role makes the name of a variable.
pub(super) fn names(set: &CliqueSet, _: &World, report: &mut Report) {
    for (clique, role) in with_roles(set).filter(|(_, role)| !is_role_name(role)) {
        if role.len() > ROLE_NAME_MAX {
            let detail = format!("may not be more than {ROLE_NAME_MAX} bytes");
            report.error(&clique.name, path(clique), Cause::TooLong, None, detail);
        } else {
            let detail =
                "must be letters, digits, '-' and '_', starting with a letter and ending with a letter or digit";
            report.error(&clique.name, path(clique), Cause::Invalid, quoted(role), detail);
        }
    }
}

/// Roles of cliques that find each other make different variables.
pub(super) fn duplicates(set: &CliqueSet, world: &World, report: &mut Report) {
    let mut by_env: BTreeMap<String, Vec<(&Clique, &str)>> = BTreeMap::new();
    for (clique, role) in with_roles(set) {
        let earlier = by_env.entry(env_name(role)).or_default();
        let clash = earlier.iter().find_map(|(other, _)| Some((other, clash(set, clique, other, world)?)));
        if let Some((other, within)) = clash {
            let variable = format!("{}_ADDR", env_name(role));
            let detail = format!("must be unique {within}: clique {:?} has variable {variable} too", other.name);
            report.error(&clique.name, path(clique), Cause::Duplicate, quoted(role), detail);
        } else if let Some((other, spelled)) = earlier.iter().find(|(_, spelled)| *spelled != role) {
            let detail = format!("is spelled {spelled:?} in clique {:?} of another scaling group", other.name);
            report.warn(&clique.name, path(clique), Cause::Invalid, quoted(role), detail);
        }
        earlier.push((clique, role));
    }
}

/// Where two cliques may not have one role; `None` when they may: two scaling groups do not see each other.
fn clash(set: &CliqueSet, one: &Clique, other: &Clique, world: &World) -> Option<String> {
    let shared = one.groups.iter().find(|group| other.groups.contains(group));
    if let Some(group) = shared.and_then(|group| set.scaling_groups.get(*group)) {
        return Some(format!("in scaling group {:?}", group.name));
    }
    match (one.is_standalone(), other.is_standalone()) {
        (true, true) => Some("among the cliques without a scaling group".to_owned()),
        (true, false) | (false, true) => Some("between scaling groups and the cliques without one".to_owned()),
        (false, false) => world.options.strict_roles.then(|| "in the set".to_owned()),
    }
}

/// The address of a role is in a variable that nobody else sets. (Beside this, variables of two roles are the same only
/// when the roles are.)
pub(super) fn reserved(set: &CliqueSet, _: &World, report: &mut Report) {
    for (clique, role) in with_roles(set) {
        let variable = format!("{}_ADDR", env_name(role));
        let detail = match RESERVED.iter().find(|(prefix, _)| variable.starts_with(prefix)) {
            Some((prefix, owner)) => format!("makes variable {variable}; `{prefix}*` is reserved for {owner}"),
            None if is_of_service(&variable) => {
                format!("makes variable {variable}; `*_PORT_*_ADDR` is reserved for Kubernetes Services")
            }
            None => continue,
        };
        report.error(&clique.name, path(clique), Cause::Invalid, quoted(role), detail);
    }
}

/// True for `<SERVICE>_PORT_<number>_<protocol>_ADDR`, which the kubelet sets for every Service.
fn is_of_service(variable: &str) -> bool {
    let port = || {
        let (service_port, protocol) = variable.strip_suffix("_ADDR")?.rsplit_once('_')?;
        let (service, number) = service_port.rsplit_once("_PORT_")?;
        let digits = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        Some(!service.is_empty() && digits && matches!(protocol, "TCP" | "UDP" | "SCTP"))
    };
    port().unwrap_or(false)
}

/// In a scaling group all cliques have a role, or none has.
pub(super) fn missing(set: &CliqueSet, _: &World, report: &mut Report) {
    for clique in set.cliques.iter().filter(|clique| clique.role.is_none()) {
        let has_roles = |group: &&usize| set.cliques.iter().any(|c| c.role.is_some() && c.groups.contains(group));
        let group = clique.groups.iter().find(has_roles).and_then(|group| set.scaling_groups.get(*group));
        if let Some(group) = group {
            let detail = format!("other cliques of scaling group {:?} have one and will not find its pods", group.name);
            report.warn(&clique.name, path(clique), Cause::Required, None, detail);
        }
    }
}
