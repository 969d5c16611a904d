//! Form of a coordination: its name, type, roles and strategies.

use std::collections::BTreeSet;

use crate::model::object_name::label_fault;
use crate::model::{BatchKind, Coordination, Group};
use crate::rules::violation::{quoted, supported};
use crate::rules::{Cause, Report, World};

/// Requires unique names that are DNS labels, and a name where something is named after the coordination.
pub(super) fn name(group: &Group, _: &World, report: &mut Report) {
    let is_rbg = group.carrier.kind.group != "rolegate.dev";
    let mut names = BTreeSet::new();
    for coordination in &group.coordinations {
        let (subject, path) = (coordination.display_name(), coordination.at.child("name"));
        match coordination.name.as_deref().unwrap_or_default() {
            "" if is_rbg && nothing_is_named_after(coordination) => {}
            "" => report.require(&subject, path, "must name the coordination"),
            name if !names.insert(name) => report.error(&subject, path, Cause::Duplicate, quoted(name), ""),
            name => {
                if let Some(fault) = label_fault(name) {
                    report.error(&subject, path, Cause::Invalid, quoted(name), fault);
                }
            }
        }
    }
}

/// Reports whether only the group's status uses the name: segments without topology (KEP-32's own examples have no name).
fn nothing_is_named_after(coordination: &Coordination) -> bool {
    coordination.rolling_update.is_none()
        && coordination.batchings.iter().all(|batching| {
            batching.kind == BatchKind::SegmentPlacement && batching.topology.is_none() && batching.gangs.is_none()
        })
}

type Has<T> = fn(&T) -> bool;

/// Values of `type` (KEP-30), with the strategy that each requires.
const TYPES: &[(&str, &str, Has<Coordination>)] = &[
    ("RollingUpdate", "rollingUpdate", |coordination| coordination.rolling_update.is_some()),
    ("AffinityScheduling", "affinityScheduling", |coordination| {
        coordination.batchings.iter().any(|batching| batching.kind == BatchKind::AffinityScheduling)
    }),
];

/// Requires that `type`, if set, is a known word and matches the strategy.
pub(super) fn kind(group: &Group, _: &World, report: &mut Report) {
    for coordination in &group.coordinations {
        let Some(word) = coordination.kind.as_deref().filter(|word| !word.is_empty()) else { continue };
        let (subject, path) = (coordination.display_name(), coordination.at.child("type"));
        match TYPES.iter().find(|(name, ..)| *name == word) {
            None => {
                let detail = supported(TYPES.iter().map(|(name, ..)| *name));
                report.error(&subject, path, Cause::NotSupported, quoted(word), detail);
            }
            Some((_, field, has)) if !has(coordination) => {
                let detail = format!("must match the strategy, which does not set `{field}`");
                report.error(&subject, path, Cause::Invalid, quoted(word), detail);
            }
            Some(_) => {}
        }
    }
}

/// Requires that `roles`, if set, equals the keys of the size map, and that a rolling update has two or more roles.
pub(super) fn roles(group: &Group, _: &World, report: &mut Report) {
    for coordination in &group.coordinations {
        let subject = coordination.display_name();
        let at = coordination.at.child("roles");
        let listed: Vec<_> = coordination.roles.iter().flatten().map(String::as_str).collect();
        let mut known = BTreeSet::new();
        for (index, role) in listed.iter().enumerate() {
            if !known.insert(*role) {
                report.error(role, at.index(index), Cause::Duplicate, quoted(role), "");
            }
        }
        if coordination.rolling_update.is_some() && coordination.role_names().len() < 2 {
            if coordination.roles.is_none() {
                report.require(&subject, at.clone(), "must name at least 2 roles to update together");
            } else {
                let detail = "must name at least 2 roles to update together";
                report.error(&subject, at.clone(), Cause::Invalid, Some(format!("{listed:?}")), detail);
            }
        }
        if coordination.roles.is_none() {
            continue;
        }
        for batching in coordination.batchings.iter().filter(|batching| !batching.sizes.is_empty()) {
            for (index, role) in listed.iter().enumerate().filter(|(_, role)| !batching.sizes.contains_key(**role)) {
                let detail = format!("must be a key of `{}`", batching.sizes_at);
                report.error(role, at.index(index), Cause::Invalid, quoted(role), detail);
            }
            for (role, size) in batching.sizes.iter().filter(|(role, _)| !known.contains(role.as_str())) {
                let (path, detail) = (batching.sizes_at.key(role), format!("role {role:?} must be an entry of `{at}`"));
                report.error(role, path, Cause::Invalid, Some(size.to_string()), detail);
            }
        }
    }
}

/// Requires at least one strategy, at most one that makes batches, and the required fields of each.
pub(super) fn strategy(group: &Group, _: &World, report: &mut Report) {
    for coordination in &group.coordinations {
        let (subject, at) = (coordination.display_name(), coordination.at.child("strategy"));
        let has_update = coordination.rolling_update.is_some();
        if coordination.batchings.is_empty() && !has_update && coordination.scaling.is_none() {
            let detail = "must set rollingUpdate, segmentPlacement, rollingDeploy or affinityScheduling";
            report.require(&subject, at.clone(), detail);
        }
        if let Some((_, path)) = coordination.rolling_update.as_ref().filter(|(update, _)| update.is_empty()) {
            let detail = "must set at least one of `by`, `maxSkew`, `maxUnavailable`, `partition` and `steps`";
            report.require(&subject, path.clone(), detail);
        }
        if let Some((first, others)) = coordination.batchings.split_first() {
            for batching in others {
                let detail = format!("may not be set together with `{}`: each makes batches", first.kind.as_str());
                report.forbid(&subject, batching.at.clone(), detail);
            }
        }
    }
}
