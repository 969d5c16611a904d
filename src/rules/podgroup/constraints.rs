//! Topology constraints of subgroups and of sets of subgroups.

use std::collections::BTreeMap;

use super::Subject;
use crate::model::gang::{Constraint, Gang, GangSet};
use crate::model::{Dialect, FieldPath, GangTree, Levels};
use crate::rules::hint::with_hint;
use crate::rules::violation::quoted;
use crate::rules::{Cause, Report, World};

/// A constraint names a level, and a subgroup that exists. One that is wider than what holds anyway has no effect.
pub(super) fn levels(subject: &Subject, world: &World, report: &mut Report) {
    let tree = &subject.tree;
    dialect_has_field(tree, report);
    for (name, constraint) in &tree.by_name {
        if tree.gang(name).is_none() {
            let names = tree.gangs.iter().map(|gang| gang.name.as_str());
            let detail = with_hint("must name an entry of `spec.subGroups`", name, names);
            report.error(name, constraint.at.clone(), Cause::NotFound, quoted(name), detail);
        }
    }
    for (name, constraint) in all(tree) {
        if !constraint.names_a_level() {
            let detail = "must set `requiredTopologyLevel` or `preferredTopologyLevel`";
            report.error(name, constraint.at.clone(), Cause::Required, None, detail);
        }
        if let (Some(required), Some(preferred)) = (&constraint.required, &constraint.preferred)
            && order(constraint, world).wider(preferred, required)
        {
            let detail = format!("is wider than the required level {required:?} and has no effect");
            let path = constraint.at.child("preferredTopologyLevel");
            report.warn(name, path, Cause::Invalid, quoted(preferred), detail);
        }
    }
    for gang in &tree.gangs {
        if let Some(own) = &gang.constraint {
            required_is_narrower(&gang.name, own, &enclosing(tree, gang), world, report);
        }
    }
    for set in &tree.sets {
        let member = set.members.first().and_then(|member| tree.gang(member));
        let around = member.map(|member| above(tree, member)).unwrap_or_default();
        required_is_narrower(subject_of(set), &set.constraint, &around, world, report);
    }
}

/// A field of the other dialect is dropped by the API server, and then constrains nothing.
fn dialect_has_field(tree: &GangTree, report: &mut Report) {
    let seed = tree.fallback.is_some() || !tree.sets.is_empty() || !tree.by_name.is_empty();
    if tree.dialect == Some(Dialect::Upstream) && seed {
        let path = FieldPath::new("spec").child("topologyConstraints");
        let detail = "is not a field of KAI v0.15 and later; set `topologyConstraint` of the subgroups";
        report.warn("", path, Cause::Forbidden, None, detail);
    }
}

/// Every constraint with whom it is for, once each.
fn all(tree: &GangTree) -> impl Iterator<Item = (&str, &Constraint)> {
    let whole = tree.constraint.iter().chain(&tree.fallback).map(|constraint| ("", constraint));
    let named = tree.by_name.iter().map(|(name, constraint)| (name.as_str(), constraint));
    let sets = tree.sets.iter().map(|set| (subject_of(set), &set.constraint));
    let is_own =
        |gang: &&Gang| gang.constraint.as_ref().is_some_and(|own| own.at == gang.at.child("topologyConstraint"));
    let own = tree.gangs.iter().filter(is_own);
    let own = own.filter_map(|gang| Some((gang.name.as_str(), gang.constraint.as_ref()?)));
    whole.chain(named).chain(sets).chain(own)
}

/// A set has no name: its first member tells one from another across an update.
fn subject_of(set: &GangSet) -> &str {
    set.members.first().map(String::as_str).unwrap_or_default()
}

/// Constraints that hold for a subgroup beside its own: its set's, and those of what is above it.
fn enclosing<'a>(tree: &'a GangTree, gang: &'a Gang) -> Vec<&'a Constraint> {
    let of_sets = tree.sets.iter().filter(|set| set.members.contains(&gang.name)).map(|set| &set.constraint);
    of_sets.chain(above(tree, gang)).collect()
}

fn above<'a>(tree: &'a GangTree, gang: &'a Gang) -> Vec<&'a Constraint> {
    let of_ancestor = |ancestor: &'a Gang| {
        let sets = tree.sets.iter().filter(|set| set.members.contains(&ancestor.name)).map(|set| &set.constraint);
        ancestor.constraint.iter().chain(sets)
    };
    tree.ancestors(gang).flat_map(of_ancestor).chain(&tree.constraint).collect()
}

fn required_is_narrower(name: &str, own: &Constraint, around: &[&Constraint], world: &World, report: &mut Report) {
    let Some(required) = &own.required else { return };
    let levels = order(own, world);
    let narrower = around
        .iter()
        .filter_map(|outer| Some((outer, outer.required.as_ref()?)))
        .find(|(outer, level)| same_topology(own, outer) && levels.wider(required, level));
    if let Some((outer, level)) = narrower {
        let detail = format!("is wider than {level:?}, required by `{}`, and has no effect", outer.at);
        report.warn(name, own.at.child("requiredTopologyLevel"), Cause::Invalid, quoted(required), detail);
    }
}

/// Levels of two topologies cannot be compared; one that is left out may be any.
fn same_topology(one: &Constraint, other: &Constraint) -> bool {
    one.topology.is_none() || other.topology.is_none() || one.topology == other.topology
}

/// The levels of the constraint's topology, else the usual words.
fn order(constraint: &Constraint, world: &World) -> Levels {
    let known = constraint.topology.as_ref().and_then(|name| world.topology_levels.get(name));
    known.cloned().unwrap_or_else(Levels::usual)
}

/// Sets name existing subgroups, each once, and no pod is in two of them.
pub(super) fn sets(subject: &Subject, _: &World, report: &mut Report) {
    let tree = &subject.tree;
    let mut taken: BTreeMap<&str, FieldPath> = BTreeMap::new();
    for set in &tree.sets {
        let list_at = set.at.child("subGroups");
        if set.members.is_empty() {
            report.error(
                "",
                list_at.clone(),
                Cause::Required,
                None,
                "must name at least one entry of `spec.subGroups`",
            );
        }
        for (index, member) in set.members.iter().enumerate() {
            let path = list_at.index(index);
            if tree.gang(member).is_none() {
                let names = tree.gangs.iter().map(|gang| gang.name.as_str());
                let detail = with_hint("must name an entry of `spec.subGroups`", member, names);
                report.error(member, path, Cause::NotFound, quoted(member), detail);
                continue;
            }
            match taken.get(member.as_str()) {
                Some(first) if *first == set.at => report.error(member, path, Cause::Duplicate, quoted(member), ""),
                Some(first) => {
                    let detail = format!("may be in one set only; is in `{first}`");
                    report.error(member, path, Cause::Duplicate, quoted(member), detail);
                }
                None => _ = taken.insert(member, set.at.clone()),
            }
        }
    }
    overlaps(tree, &taken, report);
}

/// The pods of a subgroup are those of all above it too.
fn overlaps(tree: &GangTree, taken: &BTreeMap<&str, FieldPath>, report: &mut Report) {
    for set in &tree.sets {
        for (index, member) in set.members.iter().enumerate() {
            let Some(gang) = tree.gang(member) else { continue };
            let mut above = tree.ancestors(gang).filter(|ancestor| ancestor.name != gang.name);
            let found = above.find_map(|ancestor| Some((ancestor, taken.get(ancestor.name.as_str())?)));
            if let Some((ancestor, at)) = found {
                let detail = format!("overlaps with its ancestor {:?} in `{at}`", ancestor.name);
                let path = set.at.child("subGroups").index(index);
                report.error(member, path, Cause::Invalid, quoted(member), detail);
            }
        }
    }
}
