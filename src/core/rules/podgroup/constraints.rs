//! Rules on topology constraints.

use std::collections::BTreeMap;

use super::JudgedPodGroup;
use crate::model::gang::{Constraint, Gang, GangSet};
use crate::model::object_name::subdomain_fault;
use crate::model::{Dialect, FieldPath, GangTree, Levels};
use crate::rules::violation::quoted;
use crate::rules::{Cause, Report, World};

/// Requires that a constraint names a level and an existing subgroup. Warns where a wider level than another constraint has
/// no effect.
pub(super) fn levels(subject: &JudgedPodGroup, world: &World, report: &mut Report) {
    let tree = &subject.tree;
    dialect_has_field(tree, report);
    for (name, constraint) in &tree.by_name {
        if tree.gang(name).is_none() {
            let names = tree.gangs.iter().map(|gang| gang.name.as_str());
            let detail = report.with_hint("must name an entry of `spec.subGroups`", name, names);
            report.error(name, constraint.at.clone(), Cause::NotFound, quoted(name), detail);
        }
    }
    for (name, constraint) in all(tree) {
        if let Some((topology, fault)) =
            constraint.topology.as_ref().and_then(|name| Some((name, subdomain_fault(name)?)))
        {
            report.error(name, constraint.at.child("topology"), Cause::Invalid, quoted(topology), fault);
        }
        if !constraint.names_a_level() {
            report.require(name, constraint.at.clone(), "must set `requiredTopologyLevel` or `preferredTopologyLevel`");
        }
        if let (Some(required), Some(preferred)) = (&constraint.required, &constraint.preferred)
            && order(constraint, world).wider(preferred, required)
        {
            let detail = format!("is wider than the required level {required:?} and has no effect");
            report.warn(name, constraint.at.child("preferredTopologyLevel"), Cause::Invalid, quoted(preferred), detail);
        }
    }
    required_are_narrower(tree, world, report);
}

/// Warns about a field of another dialect, which the API server drops.
fn dialect_has_field(tree: &GangTree, report: &mut Report) {
    let proposal = tree.fallback.is_some() || !tree.sets.is_empty() || !tree.by_name.is_empty();
    let without = match tree.dialect {
        Some(Dialect::Upstream) => "KAI v0.15 and later",
        Some(Dialect::Pods) => "KAI v0.10 to v0.14",
        Some(Dialect::Proposal) | None => return,
    };
    if proposal {
        let path = FieldPath::new("spec").child("topologyConstraints");
        let detail = format!("is not a field of {without}; set `topologyConstraint` of the subgroups");
        report.warn("", path, Cause::Forbidden, None, detail);
    }
}

/// Returns every constraint once, with its subject.
pub(super) fn all(tree: &GangTree) -> impl Iterator<Item = (&str, &Constraint)> {
    let whole = tree.constraint.iter().chain(&tree.fallback).map(|constraint| ("", constraint));
    let named = tree.by_name.iter().map(|(name, constraint)| (name.as_str(), constraint));
    let sets = tree.sets.iter().map(|set| (subject_of(set), &set.constraint));
    let is_own = |gang: &&Gang| {
        gang.constraint.as_ref().is_some_and(|constraint| constraint.at == gang.at.child("topologyConstraint"))
    };
    let own = tree.gangs.iter().filter(is_own);
    let own = own.filter_map(|gang| Some((gang.name.as_str(), gang.constraint.as_ref()?)));
    whole.chain(named).chain(sets).chain(own)
}

/// Returns the subject of a set: its first member, since a set has no name. It identifies the set across an update.
fn subject_of(set: &GangSet) -> &str {
    set.members.first().map(String::as_str).unwrap_or_default()
}

/// Requires that no required level is wider than that of the surrounding set or the nearest ancestor. If it is wider than a
/// farther ancestor only, the ancestor between is wider too and is reported.
fn required_are_narrower(tree: &GangTree, world: &World, report: &mut Report) {
    let mut set_of: BTreeMap<&str, &Constraint> = BTreeMap::new();
    for set in &tree.sets {
        for member in &set.members {
            set_of.entry(member).or_insert(&set.constraint);
        }
    }
    let set_of = |gang: &Gang| set_of.get(gang.name.as_str()).copied();
    let required = |constraint: &&Constraint| constraint.required.is_some();
    let above =
        tree.nearest_above(|gang| gang.constraint.as_ref().filter(required).or_else(|| set_of(gang).filter(required)));
    let above: BTreeMap<&str, _> = tree.gangs.iter().map(|gang| gang.name.as_str()).zip(above).collect();
    let above = |name: &str| above.get(name).copied().flatten().or(tree.constraint.as_ref());
    for gang in &tree.gangs {
        if let Some(own) = &gang.constraint {
            let around = set_of(gang).filter(required).or_else(|| above(&gang.name));
            required_is_narrower(&gang.name, own, around, world, report);
        }
    }
    for set in &tree.sets {
        let name = subject_of(set);
        required_is_narrower(name, &set.constraint, above(name), world, report);
    }
}

fn required_is_narrower(name: &str, own: &Constraint, around: Option<&Constraint>, world: &World, report: &mut Report) {
    let Some((outer, (required, level))) =
        around.and_then(|outer| Some((outer, own.required.as_ref().zip(outer.required.as_ref())?)))
    else {
        return;
    };
    if same_topology(own, outer) && order(own, world).wider(required, level) {
        let detail = format!("is wider than {level:?}, required by `{}`, and has no effect", outer.at);
        report.warn(name, own.at.child("requiredTopologyLevel"), Cause::Invalid, quoted(required), detail);
    }
}

/// Reports whether two levels are comparable: a missing topology may be any.
fn same_topology(one: &Constraint, other: &Constraint) -> bool {
    one.topology.is_none() || other.topology.is_none() || one.topology == other.topology
}

/// Returns the levels of the constraint's topology, else the usual words.
fn order(constraint: &Constraint, world: &World) -> Levels {
    let known = constraint.topology.as_ref().and_then(|name| world.levels(name).present());
    known.unwrap_or_else(Levels::usual)
}
