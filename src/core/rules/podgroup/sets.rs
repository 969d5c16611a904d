//! Rules on sets of subgroups with a common constraint.

use std::collections::BTreeMap;

use super::JudgedPodGroup;
use crate::model::{FieldPath, GangTree};
use crate::rules::violation::quoted;
use crate::rules::{Cause, Report, World};

/// Requires that sets name existing subgroups, each once, and that no pod is in two sets.
pub(super) fn apart(subject: &JudgedPodGroup, _: &World, report: &mut Report) {
    let tree = &subject.tree;
    let mut taken: BTreeMap<&str, &FieldPath> = BTreeMap::new();
    for set in &tree.sets {
        let list_at = set.at.child("subGroups");
        if set.members.is_empty() {
            report.require("", list_at.clone(), "must name at least one entry of `spec.subGroups`");
        }
        for (index, member) in set.members.iter().enumerate() {
            let path = list_at.index(index);
            if tree.gang(member).is_none() {
                let names = tree.gangs.iter().map(|gang| gang.name.as_str());
                let detail = report.with_hint("must name an entry of `spec.subGroups`", member, names);
                report.error(member, path, Cause::NotFound, quoted(member), detail);
                continue;
            }
            match taken.get(member.as_str()) {
                Some(first) if **first == set.at => report.error(member, path, Cause::Duplicate, quoted(member), ""),
                Some(first) => {
                    let detail = format!("may be in one set only; is in `{first}`");
                    report.error(member, path, Cause::Duplicate, quoted(member), detail);
                }
                None => _ = taken.insert(member, &set.at),
            }
        }
    }
    overlaps(tree, &taken, report);
}

/// Refuses a member whose ancestor is in a set: the pods of a subgroup belong to all its ancestors.
fn overlaps(tree: &GangTree, taken: &BTreeMap<&str, &FieldPath>, report: &mut Report) {
    let above = tree.nearest_above(|gang| Some((gang.name.as_str(), *taken.get(gang.name.as_str())?)));
    let above: BTreeMap<&str, _> = tree.gangs.iter().map(|gang| gang.name.as_str()).zip(above).collect();
    for set in &tree.sets {
        for (index, member) in set.members.iter().enumerate() {
            let ancestor = above.get(member.as_str()).copied().flatten().filter(|(ancestor, _)| ancestor != member);
            if let Some((ancestor, at)) = ancestor {
                let path = set.at.child("subGroups").index(index);
                let detail = format!("overlaps with its ancestor {ancestor:?} in `{at}`");
                report.error(member, path, Cause::Invalid, quoted(member), detail);
            }
        }
    }
}
