//! Rules on roles and their variables.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use crate::model::CliqueSet;
use crate::model::clique_set::{Clique, ROLE_NAME_MAX, env_name, is_role_name};
use crate::rules::violation::quoted;
use crate::rules::{Cause, Report, World};

/// Prefixes of variables that others set, with their owners.
const RESERVED: &[(&str, &str)] = &[
    ("GROVE_", "Grove"),
    ("LWS_", "LeaderWorkerSet"),
    ("RBG_", "RBG"),
    ("KUBERNETES_", "Kubernetes"),
    ("ROLEGATE_", "rolegate"),
];

fn with_roles(set: &CliqueSet) -> impl Iterator<Item = (&Clique, &str)> {
    set.cliques.iter().filter_map(|clique| Some((clique, clique.role.as_deref()?)))
}

/// Requires a role that makes a valid variable name.
pub(super) fn names(set: &CliqueSet, _: &World, report: &mut Report) {
    for (clique, role) in with_roles(set).filter(|(_, role)| !is_role_name(role)) {
        if role.len() > ROLE_NAME_MAX {
            let detail = format!("may not be more than {ROLE_NAME_MAX} bytes");
            report.error(&clique.name, clique.role_at.clone(), Cause::TooLong, None, detail);
        } else {
            let detail =
                "must be letters, digits, '-' and '_', starting with a letter and ending with a letter or digit";
            report.error(&clique.name, clique.role_at.clone(), Cause::Invalid, quoted(role), detail);
        }
    }
}

/// Earlier cliques with one environment name: the first of each scope.
#[derive(Default)]
struct Earlier<'a> {
    standalone: Option<&'a Clique>,
    member: Option<&'a Clique>,
    by_group: BTreeMap<usize, &'a Clique>,
}

/// Refuses roles of one scope that make the same variable.
pub(super) fn duplicates(set: &CliqueSet, world: &World, report: &mut Report) {
    let mut by_env: BTreeMap<String, Earlier<'_>> = BTreeMap::new();
    for (clique, role) in with_roles(set) {
        let env = env_name(role);
        let earlier = by_env.entry(env.clone()).or_default();
        if let Some((other, within)) = clash(set, clique, earlier, world.options.strict_roles) {
            let detail = format!("must be unique {within}: clique {:?} has variable {env}_ADDR too", other.name);
            report.error(&clique.name, clique.role_at.clone(), Cause::Duplicate, quoted(role), detail);
        } else if let Some(other) = earlier.member.filter(|other| other.role.as_deref() != Some(role)) {
            let spelled = other.role.as_deref().unwrap_or_default();
            let detail = format!("is spelled {spelled:?} in clique {:?} of another scaling group", other.name);
            report.warn(&clique.name, clique.role_at.clone(), Cause::Invalid, quoted(role), detail);
        }
        let first = if clique.group.is_some() { &mut earlier.member } else { &mut earlier.standalone };
        first.get_or_insert(clique);
        if let Some(group) = clique.group {
            earlier.by_group.entry(group).or_insert(clique);
        }
    }
}

/// Returns the earlier clique with a clashing role, and their common scope. Two scaling groups do not see each other, but a
/// clique without one sees both where the set joins scopes.
fn clash<'a>(
    set: &CliqueSet,
    clique: &Clique,
    earlier: &Earlier<'a>,
    strict: bool,
) -> Option<(&'a Clique, Cow<'static, str>)> {
    const BETWEEN: &str = "between scaling groups and the cliques without one";
    const JOINED: &str = "in the set, as its discovery-scope is `set`";
    let Some(group) = clique.group else {
        let among = earlier.standalone.zip(Some(Cow::Borrowed("among the cliques without a scaling group")));
        return among.or_else(|| earlier.member.zip(Some(Cow::Borrowed(BETWEEN))));
    };
    let in_group = || {
        let group = set.scaling_groups.get(group)?;
        Some(Cow::Owned(format!("in scaling group {:?}", group.name)))
    };
    let siblings = earlier.by_group.get(&group).copied().zip(in_group());
    let standalone = || earlier.standalone.zip(Some(Cow::Borrowed(BETWEEN)));
    let joined = set.joins_scopes();
    let in_set = Cow::Borrowed(if joined { JOINED } else { "in the set" });
    let strictly = || earlier.member.filter(|_| strict || joined).zip(Some(in_set));
    siblings.or_else(standalone).or_else(strictly)
}

/// Refuses a role whose address variable is reserved. Other variables of two roles coincide only when the roles do.
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
        report.error(&clique.name, clique.role_at.clone(), Cause::Invalid, quoted(role), detail);
    }
}

/// Reports whether a variable matches `<SERVICE>_PORT_<number>_<protocol>_ADDR`, which the kubelet sets for every Service.
fn is_of_service(variable: &str) -> bool {
    let port = || {
        let (service_port, protocol) = variable.strip_suffix("_ADDR")?.rsplit_once('_')?;
        let (service, number) = service_port.rsplit_once("_PORT_")?;
        let digits = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        Some(!service.is_empty() && digits && matches!(protocol, "TCP" | "UDP" | "SCTP"))
    };
    port().unwrap_or(false)
}

/// Warns of a clique without a role beside others that have one and would find its pods.
pub(super) fn missing(set: &CliqueSet, _: &World, report: &mut Report) {
    let with_roles: BTreeSet<_> = with_roles(set).map(|(clique, _)| clique.group).collect();
    let joined = |in_group: bool| set.joins_scopes() && with_roles.iter().any(|group| group.is_some() == in_group);
    for clique in set.cliques.iter().filter(|clique| clique.role.is_none()) {
        let of_own_scope = with_roles.contains(&clique.group);
        let others: Cow<'_, str> = match set.group_of(clique) {
            Some(group) if of_own_scope => format!("other cliques of scaling group {:?}", group.name).into(),
            None if of_own_scope => "other cliques without a scaling group".into(),
            Some(_) if joined(false) => "cliques without a scaling group".into(),
            None if joined(true) => "cliques of scaling groups".into(),
            _ => continue,
        };
        let detail = format!("{others} have one and will not find its pods");
        report.warn(&clique.name, clique.role_at.clone(), Cause::Required, None, detail);
    }
}
