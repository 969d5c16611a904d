//! A group has one coordinating object, and a workload is in one group: the oldest object controls, and the others are
//! refused. Two objects created at the same moment do not see each other; then the loop decides.

use crate::model::{FieldPath, Group};
use crate::rules::coordinated::workloads;
use crate::rules::{Need, Report, World};

/// Refuses a group if an older object coordinates it or one of its workloads.
pub(super) fn claimed_once(group: &Group, world: &World, report: &mut Report) {
    if !group.is_claim() {
        return;
    }
    let need = Need::Groups { namespace: group.key.namespace.to_string() };
    if !world.is_answered(&need) {
        report.not_judged("", FieldPath::new("spec"), &need);
    }
    let was_first = |other: &&Group| !other.deleting && group.comes_after(other);
    if let Some(other) = oldest(world.carriers(&group.key).filter(was_first)) {
        let (name, by) = (&*group.key.name, title(other));
        let path = match &group.reference {
            Some(reference) => reference.at.clone(),
            None => FieldPath::new("metadata").child("name"),
        };
        let detail = format!("group {name:?} is coordinated by {by} already; a group has one coordinating object");
        report.forbid(name, path, detail);
    }
    for (workload, (role, path)) in workloads(group) {
        let others = world.coordinating(&workload).filter(|other| other.key != group.key);
        if let Some(other) = oldest(others.filter(was_first)) {
            let detail = format!(
                "the workload of role {role:?} is coordinated by {} already; a workload is in one group",
                title(other)
            );
            report.forbid(role, path, detail);
        }
    }
}

fn oldest<'a>(groups: impl Iterator<Item = &'a Group>) -> Option<&'a Group> {
    groups.reduce(|a, b| if a.comes_after(b) { b } else { a })
}

fn title(group: &Group) -> String {
    format!("{} {:?}", group.carrier.kind.kind, group.carrier.name)
}
