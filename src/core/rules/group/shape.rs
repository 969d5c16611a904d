//! Form of a carrier: exclusive fields, names and numbers of roles.

use std::collections::{BTreeMap, BTreeSet};

use crate::api::role_coordination::ROLE_COORDINATION;
use crate::model::names::LABEL_VALUE_MAX;
use crate::model::object_name::{label_fault, subdomain_fault};
use crate::model::{FieldPath, Group, Role, WorkloadKind, names};
use crate::rules::violation::{quoted, supported};
use crate::rules::{Cause, Known, Report, World};

/// Requires unique names, replicas and own workloads of roles.
pub(super) fn shape(group: &Group, _: &World, report: &mut Report) {
    if let Some((name, fault)) = group.coordinated_by.as_ref().and_then(|name| Some((name, subdomain_fault(name)?))) {
        report.error(name, FieldPath::annotation(names::GROUP), Cause::Invalid, quoted(name), fault);
    }
    length_of_name(group, report);
    let roles_at = FieldPath::new("spec").child("roles");
    if let Some(reference) = &group.reference {
        if group.has_own_roles {
            report.forbid("", roles_at, "may not be set together with `groupRef`");
        }
        if reference.name.is_empty() {
            report.require("", reference.at.child("name"), "must name a RoleBasedGroup");
        } else if let Some(fault) = subdomain_fault(&reference.name) {
            let name = &reference.name;
            report.error(name, reference.at.child("name"), Cause::Invalid, quoted(name), fault);
        }
        return;
    }
    if !group.has_own_roles {
        report.require("", roles_at, "must be set, unless `groupRef` is");
    }
    let is_rbg =
        group.roles.iter().all(|role| role.workload.reference.is_none()) && group.carrier.kind.group != "rolegate.dev";
    let mut names = BTreeSet::new();
    for role in &group.roles {
        name(role, &mut names, report);
        if let Some(replicas) = role.replicas.filter(|replicas| *replicas < 0) {
            let detail = "must be greater than or equal to 0";
            report.error(&role.name, role.at.child("replicas"), Cause::Invalid, Some(replicas.to_string()), detail);
        }
        if !is_rbg {
            source(role, report);
        }
    }
    shared_workloads(group, report);
}

/// Requires of a RoleCoordination with roles of its own that its name fits the label of its pods.
fn length_of_name(group: &Group, report: &mut Report) {
    let by_label = group.carrier.kind.group == ROLE_COORDINATION.group && group.reference.is_none();
    let name = &*group.carrier.name;
    if by_label && name.len() > LABEL_VALUE_MAX {
        let label = names::GROUP;
        let detail =
            format!("must be no more than {LABEL_VALUE_MAX} characters: label {label} of its pods has this value");
        report.error(name, FieldPath::new("metadata").child("name"), Cause::Invalid, quoted(name), detail);
    }
}

fn name<'a>(role: &'a Role, names: &mut BTreeSet<&'a str>, report: &mut Report) {
    let (name, at) = (role.name.as_str(), role.at.child("name"));
    if name.is_empty() {
        report.require(name, at, "must name the role");
    } else if !names.insert(name) {
        report.error(name, at, Cause::Duplicate, quoted(name), "");
    } else if let Some(fault) = label_fault(name) {
        report.error(name, at, Cause::Invalid, quoted(name), fault);
    }
}

/// Checks the source of the desired replicas of a role of a RoleCoordination.
fn source(role: &Role, report: &mut Report) {
    let replicas_at = role.at.child("replicas");
    let Some((reference, at)) = &role.workload.reference else {
        if role.replicas.is_none() {
            report.require(&role.name, replicas_at, "must be set, unless `workloadRef` is");
        }
        return;
    };
    if role.replicas.is_some() {
        report.forbid(&role.name, replicas_at, "may not be set together with `workloadRef`");
    }
    if reference.name.is_empty() {
        report.require(&role.name, at.child("name"), "must name a workload");
    } else if let Some(fault) = subdomain_fault(&reference.name) {
        report.error(&role.name, at.child("name"), Cause::Invalid, quoted(&reference.name), fault);
    }
    let kinds = supported(WorkloadKind::ALL.iter().map(|kind| kind.as_str()));
    let kind = WorkloadKind::parse(&reference.kind);
    match (reference.kind.as_str(), kind) {
        ("", _) => report.require(&role.name, at.child("kind"), kinds),
        (word, None) => {
            let detail = format!("{kinds}; a role of another kind is declared by `replicas`");
            report.error(&role.name, at.child("kind"), Cause::NotSupported, quoted(word), detail);
        }
        (_, Some(kind)) => {
            let expected = kind.object_kind().api_version();
            if let Some(written) = reference.api_version.as_deref().filter(|written| **written != *expected) {
                let (path, detail) = (at.child("apiVersion"), supported([expected.as_str()]));
                report.error(&role.name, path, Cause::NotSupported, quoted(written), detail);
            }
        }
    }
}

fn shared_workloads(group: &Group, report: &mut Report) {
    let mut taken = BTreeMap::new();
    for role in &group.roles {
        let Some((reference, at)) = &role.workload.reference else { continue };
        let workload = (reference.kind.as_str(), reference.name.as_str());
        if let Some(other) = taken.insert(workload, role.name.as_str()) {
            let detail = format!("role {other:?} has the same workload");
            let value = format!("{}/{}", workload.0, workload.1);
            report.error(&role.name, at.clone(), Cause::Duplicate, quoted(&value), detail);
        }
    }
}

/// Warns where the referenced group does not exist. Manifests may come in any order.
pub(super) fn reference(group: &Group, world: &World, report: &mut Report) {
    let possible = |name: &str| subdomain_fault(name).is_none();
    let Some(reference) = group.reference.as_ref().filter(|reference| possible(&reference.name)) else { return };
    let path = reference.at.child("name");
    match world.role_based_group(&group.key) {
        Known::Present(_) => {}
        Known::Absent => {
            let detail = "no RoleBasedGroup has this name: what it will coordinate is held until there is one";
            report.warn(&reference.name, path, Cause::NotFound, quoted(&reference.name), detail);
        }
        Known::Unknown => {
            report.not_judged(&reference.name, path, &crate::rules::Need::RoleBasedGroup(group.key.clone()));
        }
    }
}
