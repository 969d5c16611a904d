//! Rules on the cliques of scaling groups.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::CliqueSet;
use crate::rules::violation::quoted;
use crate::rules::{Cause, Report, World};

/// Requires that the cliques of a scaling group exist.
pub(super) fn exist(set: &CliqueSet, _: &World, report: &mut Report) {
    let cliques: BTreeSet<_> = set.cliques.iter().map(|clique| clique.name.as_str()).collect();
    for group in &set.scaling_groups {
        let unknown = group.members.iter().enumerate().filter(|(_, member)| !cliques.contains(member.as_str()));
        for (index, member) in unknown {
            let must = "must name an entry of `spec.template.cliques`";
            let detail = report.with_hint(must, member, cliques.iter().copied());
            report.error(member, group.at.child("cliqueNames").index(index), Cause::NotFound, quoted(member), detail);
        }
    }
}

/// Requires that a clique is in one scaling group, and once: its pods have one scope.
pub(super) fn in_one_group(set: &CliqueSet, _: &World, report: &mut Report) {
    let mut firsts: BTreeMap<&str, usize> = BTreeMap::new();
    for (position, group) in set.scaling_groups.iter().enumerate() {
        let mut seen = BTreeSet::new();
        for (index, member) in group.members.iter().enumerate() {
            let path = group.at.child("cliqueNames").index(index);
            let first = *firsts.entry(member).or_insert(position);
            if !seen.insert(member) {
                report.error(member, path, Cause::Duplicate, quoted(member), "");
            } else if let Some(other) = set.scaling_groups.get(first).filter(|_| first != position) {
                let detail = format!("may be in one scaling group only; is in {:?}", other.name);
                report.error(member, path, Cause::Duplicate, quoted(member), detail);
            }
        }
    }
}
