//! Which cliques a scaling group names.

use std::collections::BTreeMap;

use crate::model::CliqueSet;
use crate::rules::hint::with_hint;
use crate::rules::violation::quoted;
use crate::rules::{Cause, Report, World};

/// The cliques of a scaling group exist.
pub(super) fn exist(set: &CliqueSet, _: &World, report: &mut Report) {
    for group in &set.scaling_groups {
        for (index, member) in group.members.iter().enumerate().filter(|(_, member)| set.clique(member).is_none()) {
            let names = set.cliques.iter().map(|clique| clique.name.as_str());
            let detail = with_hint("must name an entry of `spec.template.cliques`", member, names);
            let path = group.at.child("cliqueNames").index(index);
            report.error(member, path, Cause::NotFound, quoted(member), detail);
        }
    }
}

/// A clique is in one scaling group, and once: its pods have one scope.
pub(super) fn in_one_group(set: &CliqueSet, _: &World, report: &mut Report) {
    let mut firsts: BTreeMap<&str, usize> = BTreeMap::new();
    for (position, group) in set.scaling_groups.iter().enumerate() {
        for (index, member) in group.members.iter().enumerate() {
            let path = group.at.child("cliqueNames").index(index);
            let first = *firsts.entry(member).or_insert(position);
            let again = first == position && group.members.iter().take(index).any(|earlier| earlier == member);
            if again {
                report.error(member, path, Cause::Duplicate, quoted(member), "");
            } else if let Some(other) = set.scaling_groups.get(first).filter(|_| first != position) {
                let detail = format!("may be in one scaling group only; is in {:?}", other.name);
                report.error(member, path, Cause::Duplicate, quoted(member), detail);
            }
        }
    }
}
