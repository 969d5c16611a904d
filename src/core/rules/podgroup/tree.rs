//! Rules on names and parents of subgroups.

use std::collections::BTreeSet;

use super::JudgedPodGroup;
use crate::model::names::{KAI_SUBGROUP, LABEL_VALUE_MAX};
use crate::rules::names::listed;
use crate::rules::violation::quoted;
use crate::rules::{Cause, Report, World};

/// Requires unique names that are label values, since pods name their subgroup in a label.
pub(super) fn names(subject: &JudgedPodGroup, _: &World, report: &mut Report) {
    let mut seen = BTreeSet::new();
    for gang in &subject.tree.gangs {
        let (name, path) = (gang.name.as_str(), gang.at.child("name"));
        if name.is_empty() {
            report.require("", path, format!("pods name their subgroup in label `{KAI_SUBGROUP}`"));
        } else if name.len() > LABEL_VALUE_MAX {
            report.error(name, path, Cause::TooLong, None, format!("may not be more than {LABEL_VALUE_MAX} bytes"));
        } else if !is_label_value(name) {
            let detail = "must be a label value: letters, digits, '-', '_' and '.', with a letter or digit at each end";
            report.error(name, path, Cause::Invalid, quoted(name), detail);
        } else if !seen.insert(name) {
            report.error(name, path, Cause::Duplicate, quoted(name), "");
        }
    }
}

fn is_label_value(name: &str) -> bool {
    let inner = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.');
    let end = |letter: Option<char>| letter.is_some_and(|letter| letter.is_ascii_alphanumeric());
    name.chars().all(inner) && end(name.chars().next()) && end(name.chars().next_back())
}

/// Requires that a named parent exists.
pub(super) fn parents(subject: &JudgedPodGroup, _: &World, report: &mut Report) {
    let tree = &subject.tree;
    for gang in tree.gangs.iter().filter(|gang| gang.above.is_none()) {
        let Some(parent) = gang.parent.as_deref() else { continue };
        let names = tree.gangs.iter().map(|other| other.name.as_str()).filter(|name| *name != gang.name);
        let detail = report.with_hint("must name another entry of `spec.subGroups`", parent, names);
        report.error(&gang.name, gang.at.child("parent"), Cause::NotFound, quoted(parent), detail);
    }
}

/// Refuses cycles. Each cycle is reported once, at its first subgroup.
pub(super) fn cycles(subject: &JudgedPodGroup, _: &World, report: &mut Report) {
    let gangs = &subject.tree.gangs;
    for mut cycle in subject.tree.cycles() {
        // The cycle in the order of the user: from its first entry up to that entry again.
        let first = cycle.iter().enumerate().min_by_key(|(_, index)| **index).map_or(0, |(position, _)| position);
        cycle.rotate_left(first);
        let names = || cycle.iter().filter_map(|index| gangs.get(*index)).map(|gang| gang.name.as_str());
        let (Some(gang), Some(subject)) = (cycle.first().and_then(|index| gangs.get(*index)), names().min()) else {
            continue;
        };
        let detail = format!("must not lead back to the subgroup: {}", listed(names().chain([gang.name.as_str()])));
        let parent = gang.parent.as_deref().unwrap_or_default();
        report.error(subject, gang.at.child("parent"), Cause::Invalid, quoted(parent), detail);
    }
}
