//! Rules on the members that a gang requires, and can have. The dialects count differently.

use super::JudgedPodGroup;
use crate::model::gang::Gang;
use crate::model::{Dialect, FieldPath, GangTree};
use crate::rules::{Cause, Report, World};

/// The counts of a gang, or of the whole PodGroup.
struct Asked<'a> {
    /// Name of the subgroup, `""` for the whole.
    name: &'a str,
    at: FieldPath,
    min_member: Option<i64>,
    min_sub_group: Option<i64>,
    /// Number of direct children; `None` when a cycle makes it unclear.
    children: Option<usize>,
    /// Word for the children in messages.
    noun: String,
}

impl Asked<'_> {
    fn field(&self, name: &'static str) -> FieldPath {
        self.at.child(name)
    }

    /// Reports whether this is the whole PodGroup: a faulty subgroup may have no name, too.
    fn is_whole(&self) -> bool {
        self.at == FieldPath::new("spec")
    }

    fn is_leaf(&self) -> bool {
        !self.name.is_empty() && self.children == Some(0)
    }
}

/// Refuses a gang that requires more members than it can have.
pub(super) fn minimums(subject: &JudgedPodGroup, _: &World, report: &mut Report) {
    for asked in all(&subject.tree) {
        for (field, value) in [("minMember", asked.min_member), ("minSubGroup", asked.min_sub_group)] {
            if let Some(value) = value.filter(|value| *value < 0) {
                let detail = "must be greater than or equal to 0";
                report.error(asked.name, asked.field(field), Cause::Invalid, Some(value.to_string()), detail);
            }
        }
        match subject.tree.dialect {
            Some(Dialect::Proposal) if !subject.tree.is_flat() => children_are_enough(&asked, report),
            Some(Dialect::Upstream) => upstream(&asked, subject.update, report),
            Some(Dialect::Pods) => only_pods(&asked, report),
            None if !subject.tree.is_flat() => undecided(&asked, &subject.tree, report),
            Some(Dialect::Proposal) | None => {}
        }
    }
}

fn all(tree: &GangTree) -> Vec<Asked<'_>> {
    let acyclic = tree.cycles().is_empty();
    let whole = Asked {
        name: "",
        at: FieldPath::new("spec"),
        min_member: tree.min_member,
        min_sub_group: tree.min_sub_group,
        children: acyclic.then(|| tree.top_level().count()),
        noun: "top-level subgroups".to_owned(),
    };
    let part =
        |gang: &'_ Gang| (gang.at.clone(), gang.children.len(), format!("subgroups with parent {:?}", gang.name));
    let parts = tree.gangs.iter().map(|gang| {
        let (at, children, noun) = part(gang);
        Asked {
            name: &gang.name,
            at,
            min_member: gang.min_member,
            min_sub_group: gang.min_sub_group,
            children: Some(children),
            noun,
        }
    });
    std::iter::once(whole).chain(parts).collect()
}

/// Proposal dialect: a gang with children counts them.
fn children_are_enough(asked: &Asked<'_>, report: &mut Report) {
    let Some((min, children)) = asked.min_member.zip(asked.children) else { return };
    if !asked.is_leaf() && exceeds(min, children) {
        let detail = format!("must be less than or equal to {children}, the number of {}", asked.noun);
        report.error(asked.name, asked.field("minMember"), Cause::Invalid, Some(min.to_string()), detail);
    }
}

/// No dialect is known: warns about a count of the whole that one dialect refuses, unless it is the sum of the leaves, which
/// tells that it counts pods.
fn undecided(asked: &Asked<'_>, tree: &GangTree, report: &mut Report) {
    let Some((min, children)) = asked.min_member.zip(asked.children).filter(|_| asked.is_whole()) else { return };
    let of_leaves: i64 = tree.leaves().filter_map(|leaf| leaf.min_member).fold(0, i64::saturating_add);
    if exceeds(min, children) && min != of_leaves {
        let detail = format!(
            "is greater than {children}, the number of {}: an error where `minMember` counts subgroups, and pods where KAI \
             counts; its definition or `--kai-dialect` decides",
            asked.noun
        );
        report.warn(asked.name, asked.field("minMember"), Cause::Invalid, Some(min.to_string()), detail);
    }
}

/// KAI ≥ v0.15: leaves count pods, gangs with children count children, and nothing counts both.
fn upstream(asked: &Asked<'_>, update: bool, report: &mut Report) {
    let (name, min_sub_group) = (asked.name, asked.field("minSubGroup"));
    let has_parts = !name.is_empty() && !asked.is_leaf();
    match (asked.min_member, asked.min_sub_group) {
        (Some(_), Some(_)) => {
            report.forbid(name, min_sub_group, "may not be set together with `minMember`");
            return;
        }
        (None, Some(_)) if asked.is_leaf() => {
            report.forbid(name, min_sub_group, "may not be set on a subgroup without children; set `minMember`");
            return;
        }
        // The definitions of these versions are alike.
        (None, Some(value @ 0)) if asked.is_whole() => {
            let detail = "KAI v0.15 to v0.17 refuses 0, later versions accept it; 1 is accepted by all";
            report.warn(name, min_sub_group, Cause::Invalid, Some(value.to_string()), detail);
            return;
        }
        (None, None) if asked.is_leaf() => {
            let detail = format!("must be set because subgroup {name:?} has no children");
            report.require(name, asked.field("minMember"), detail);
        }
        (Some(_), None) if has_parts => {
            // KAI's own webhook lets updates pass: PodGroups from before v0.15 must stay editable.
            let say = if update { Report::warn } else { Report::error };
            let detail = "may not be set on a subgroup with children; set `minSubGroup`";
            say(report, name, asked.field("minMember"), Cause::Forbidden, None, detail);
        }
        _ => {}
    }
    if let Some((min, children)) = asked.min_sub_group.zip(asked.children).filter(|(min, all)| exceeds(*min, *all)) {
        let detail = format!("is greater than {children}, the number of {}: the gang waits for more", asked.noun);
        report.warn(name, min_sub_group, Cause::Invalid, Some(min.to_string()), detail);
    }
}

/// KAI v0.10 to v0.14: the number of pods is unknown. The API server drops later fields.
fn only_pods(asked: &Asked<'_>, report: &mut Report) {
    if asked.min_sub_group.is_some() {
        let detail = "is not a field of KAI v0.10 to v0.14; `minMember` counts pods there";
        report.warn(asked.name, asked.field("minSubGroup"), Cause::Forbidden, None, detail);
    }
}

fn exceeds(min: i64, children: usize) -> bool {
    usize::try_from(min).is_ok_and(|min| min > children)
}

/// Warns about values other than −1 (for ever) and 1, the only ones with a meaning in KAI.
pub(super) fn backoff(subject: &JudgedPodGroup, _: &World, report: &mut Report) {
    if let Some(value) = subject.tree.scheduling_backoff.filter(|value| !matches!(value, -1 | 1)) {
        let path = FieldPath::new("spec").child("schedulingBackoff");
        report.warn("", path, Cause::NotSupported, Some(value.to_string()), "supported values: -1, 1");
    }
}
