//! Warnings on legal but surprising settings.

use std::collections::{BTreeMap, BTreeSet};

use crate::api::IntOrString;
use crate::api::disruption_budget::PodDisruptionBudget;
use crate::api::rbg::ROLE_BASED_GROUP;
use crate::api::role_coordination::ROLE_COORDINATION;
use crate::api::selector::LabelSelector;
use crate::model::names::{self, LABEL_SCHEMES};
use crate::model::wording::not_labelled;
use crate::model::{Batching, Group, GroupKey, Role, template_has_gate};
use crate::rules::{Cause, Known, Need, Report, World};

/// Returns the roles with batches, their desired replicas and their size.
fn counted<'a>(group: &'a Group, batching: &'a Batching) -> impl Iterator<Item = (&'a Role, u32, u32)> {
    let roles = batching.sizes.keys().filter_map(|name| group.role(name));
    let known = roles.filter(|role| !role.workload.desired_is_unknown && role.desired > 0);
    known.filter_map(|role| Some((role, role.desired, batching.size(&role.name)?)))
}

/// Warns where replicas are no multiple of the batch size.
pub(super) fn remainder(group: &Group, _: &World, report: &mut Report) {
    for (_, batching) in group.batched() {
        let word = batching.kind.word();
        for (role, desired, size) in counted(group, batching) {
            let rest = desired.checked_rem(size).unwrap_or(0);
            if rest > 0 {
                let detail = format!("{desired} replicas are not a multiple of it: the last {word} has {rest}");
                let path = batching.sizes_at.key(&role.name);
                report.warn(&role.name, path, Cause::Notice, Some(size.to_string()), detail);
            }
        }
    }
}

/// Warns where pods of batches that go as a whole are made with gates of others.
pub(super) fn foreign_gates(group: &Group, _: &World, report: &mut Report) {
    for (_, batching) in group.batched().filter(|(_, batching)| batching.is_all_or_nothing()) {
        for role in batching.sizes.keys().filter_map(|name| group.role(name)) {
            let Some(gate) = &role.workload.foreign_gate else { continue };
            let path = role.workload.reference.as_ref().map_or(&role.at, |(_, path)| path).clone();
            report.notice(&role.name, path, template_has_gate(gate, &role.name, batching.kind.word()));
        }
    }
}

/// Warns where roles do not end at the same batch.
pub(super) fn ratio(group: &Group, _: &World, report: &mut Report) {
    for (coordination, batching) in group.batched() {
        let words = batching.kind.words();
        let ends = counted(group, batching).map(|(role, desired, size)| (desired.div_ceil(size), role.name.as_str()));
        let batches: Vec<_> = ends.collect();
        let (Some((first, role)), Some((last, _))) = (batches.iter().min(), batches.iter().max()) else { continue };
        if first < last {
            let detail = format!(
                "role {role:?} ends after {first} of {last} {words}; the later ones are made of the other roles"
            );
            report.notice(&coordination.display_name(), batching.sizes_at.clone(), detail);
        }
    }
}

/// Warns where batches do not fit into the current room of the nodes.
pub(super) fn capacity(group: &Group, world: &World, report: &mut Report) {
    let known = group.batched().flat_map(|(coordination, batching)| {
        let own = world.shortages(&group.key).iter().filter(move |one| one.coordination == coordination.index);
        own.map(move |shortage| (coordination, batching, shortage))
    });
    for (coordination, batching, shortage) in known {
        let (fits, of, words) = (shortage.fits, shortage.of, batching.kind.words());
        let room = if shortage.on_empty_nodes {
            "onto the nodes, if nothing else ran there"
        } else {
            "into the room that nodes have now"
        };
        let detail = format!("{fits} of {of} {words} fit {room}: {}", shortage.why);
        report.notice(&coordination.display_name(), batching.sizes_at.clone(), detail);
    }
}

/// Warns where a workload stands before its group in a file: it is applied first, and its pods lack the variables of the group.
pub(super) fn order(group: &Group, world: &World, report: &mut Report) {
    let coordination = GroupKey::new(&group.key.namespace, &group.carrier.name);
    let equipped = group.roles.iter().filter(|role| group.equips_role(role));
    for role in equipped {
        let (kind, name, at) = match (&group.reference, &role.workload.reference) {
            (Some(reference), _) => (ROLE_BASED_GROUP.kind, &reference.name, &reference.at),
            (None, Some((reference, at))) => (&*reference.kind, &reference.name, at),
            (None, None) => continue,
        };
        if world.is_before(&coordination, (kind, name)) {
            let detail = format!(
                "{kind} {name:?} stands before this object in the file: pods of role {:?} that it makes before lack the \
                 variables that the group gives, and are held until they are recreated",
                role.name
            );
            report.notice(&role.name, at.clone(), detail);
        }
    }
}

/// Largest number of budgets reported for a role.
const BUDGETS: usize = 10;

/// Warns about disruption budgets that count held pods. Held pods are never healthy, so the budget refuses drains. A budget
/// on the number of healthy pods ignores further pods.
pub(super) fn budgets(group: &Group, world: &World, report: &mut Report) {
    let namespace = &group.key.namespace;
    let need = Need::DisruptionBudgets { namespace: namespace.to_string() };
    let mut seen = BTreeSet::new();
    for (index, (coordination, batching)) in group.batched().enumerate() {
        if index == 0 && !world.is_answered(&need) {
            report.not_judged("", coordination.at.clone(), &need);
        }
        for role in batching.sizes.keys().filter_map(|name| group.role(name)) {
            if !seen.insert(role.name.as_str()) {
                continue;
            }
            let labels = pod_labels(group, role);
            let selects =
                |selector: &Option<LabelSelector>| selector.as_ref().is_some_and(|selector| selector.matches(&labels));
            let counts_all =
                |budget: &PodDisruptionBudget| !matches!(budget.spec.min_available, Some(IntOrString::Int(_)));
            let budgets =
                world.budgets_in(namespace).filter(|budget| selects(&budget.spec.selector) && counts_all(budget));
            for budget in budgets.take(BUDGETS) {
                let detail = format!(
                    "PodDisruptionBudget {:?} counts held pods of role {:?} as unavailable and blocks drains",
                    budget.metadata.display_name(),
                    role.name
                );
                report.notice(&role.name, coordination.path_of(&role.name), detail);
            }
        }
    }
}

/// Returns the labels that the pods of a role carry, as far as known.
fn pod_labels(group: &Group, role: &Role) -> BTreeMap<String, String> {
    let ours = group.carrier.kind.group == ROLE_COORDINATION.group && group.reference.is_none();
    let schemes = LABEL_SCHEMES.iter().filter(|(key, _)| (*key == names::GROUP) == ours);
    let tied = schemes.flat_map(|(group_key, role_key)| {
        [((*group_key).to_owned(), group.key.name.to_string()), ((*role_key).to_owned(), role.name.clone())]
    });
    tied.chain(role.workload.labels.clone()).collect()
}

/// Warns where pods do not name their group and role, or a group does not name its RoleCoordination. Only by these names can
/// admission hold pods of unknown groups.
pub(super) fn labelled(group: &Group, world: &World, report: &mut Report) {
    if let Some(reference) = group.reference.as_ref().filter(|reference| reference.found && !reference.annotated) {
        let detail = format!(
            "RoleBasedGroup {:?} lacks annotation {}: {:?}; pods that are made before both are known are not held",
            reference.name,
            names::GROUP,
            group.carrier.name
        );
        report.notice("", reference.at.clone(), detail);
    }
    for role in &group.roles {
        let (Some((reference, at)), Some(key)) = (&role.workload.reference, &role.workload.key) else { continue };
        match world.workload(key) {
            Known::Present(workload) => {
                if let Some(lack) = workload.unlabelled(&group.key.name, &role.name) {
                    let named = (reference.kind.as_str(), reference.name.as_str());
                    report.notice(&role.name, at.clone(), not_labelled(lack, named, &group.key.name, &role.name));
                }
            }
            Known::Absent => {}
            Known::Unknown => report.not_judged(&role.name, at.clone(), &Need::Workload(key.clone())),
        }
    }
}
