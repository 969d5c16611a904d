//! Rules on single values.

use crate::api::rbg::ROLE_BASED_GROUP;
use crate::model::{Batching, Domain, FieldPath, Group};
use crate::rules::names::label_key_fault;
use crate::rules::violation::quoted;
use crate::rules::{Cause, Report, World};

/// Requires that every role named in a coordination exists in the group.
pub(super) fn roles_exist(group: &Group, _: &World, report: &mut Report) {
    // The roles are in another object, which does not exist (yet).
    if group.reference.as_ref().is_some_and(|reference| !reference.found) {
        return;
    }
    let is_empty_rbg = group.roles.is_empty() && group.carrier.kind.kind == ROLE_BASED_GROUP.kind;
    if is_empty_rbg && group.coordinations.iter().any(|coordination| !coordination.role_names().is_empty()) {
        // An excerpt, like KEP-30's first example: it makes no pods that could be held for ever.
        let path = FieldPath::new("spec").child("roles");
        report.notice("", path, "the group has no roles, so that nothing is coordinated");
        return;
    }
    let names: Vec<_> = group.roles.iter().map(|role| role.name.as_str()).collect();
    let owner = match &group.reference {
        Some(reference) => format!("must name a role of RoleBasedGroup {:?}", reference.name),
        None => "must name an entry of `spec.roles`".to_owned(),
    };
    for coordination in &group.coordinations {
        let roles_at = coordination.at.child("roles");
        let listed = coordination.roles.iter().flatten().enumerate().map(|(index, role)| (role, roles_at.index(index)));
        let sized = coordination.batchings.iter();
        let sized = sized.flat_map(|one| one.sizes.keys().map(|role| (role, one.sizes_at.key(role.as_str()))));
        for (role, path) in listed.chain(sized).filter(|(role, _)| group.role(role).is_none()) {
            let detail = report.with_hint(&owner, role, names.iter().copied());
            report.error(role, path, Cause::NotFound, quoted(role), detail);
        }
    }
}

/// Requires sizes, ratios and steps from 1 to the largest number of replicas.
pub(super) fn sizes_are_positive(group: &Group, _: &World, report: &mut Report) {
    for (_, batching) in group.batchings() {
        for (role, size) in &batching.sizes {
            let detail = match *size {
                ..1 => "must be greater than or equal to 1",
                1..=2_147_483_647 => continue,
                _ => "must be less than or equal to 2147483647",
            };
            report.error(role, batching.sizes_at.key(role.as_str()), Cause::Invalid, Some(size.to_string()), detail);
        }
    }
}

/// Requires topology keys that are label keys.
pub(super) fn label_keys(group: &Group, _: &World, report: &mut Report) {
    for (coordination, batching) in group.batchings() {
        let Some(topology) = &batching.topology else { continue };
        let Domain::Key(key) = &topology.domain else { continue };
        if let Some(fault) = label_key_fault(key) {
            report.error(&coordination.display_name(), topology.domain_at.clone(), Cause::Invalid, quoted(key), fault);
        }
    }
}

/// Warns where `whenNoFit` has no effect: it applies only to batches that must share a domain or go whole.
pub(super) fn when_no_fit(group: &Group, _: &World, report: &mut Report) {
    for coordination in &group.coordinations {
        let Some(word) = coordination.when_no_fit else { continue };
        if coordination.batching().is_none_or(|batching| batching.placed_in().is_none()) {
            let would_place = |batching: &Batching| batching.whole || batching.hard_topology().is_some();
            let is_gang = coordination.batching().is_some_and(would_place);
            let why = if is_gang {
                "its PodGroups are placed by their scheduler"
            } else {
                "its batches neither share a domain nor go whole"
            };
            let (name, path) = (coordination.display_name(), coordination.at.child("whenNoFit"));
            report.warn(&name, path, Cause::Invalid, quoted(word.as_str()), format!("has no effect: {why}"));
        }
    }
}
