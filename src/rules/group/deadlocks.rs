//! Combinations that would wait for each other for ever.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::{Batching, Coordination, FieldPath, Group, OneByOne, Progression, Role};
use crate::rules::{Cause, Known, Need, Report, World};

/// Roles of one batch do not depend on each other: RBG makes the pods of the dependent role only when the other role is
/// ready as a whole, and the batch waits for both.
pub(super) fn dependencies(group: &Group, _: &World, report: &mut Report) {
    let mut reported = BTreeSet::new();
    let edges: BTreeMap<_, _> =
        group.roles.iter().map(|role| (role.name.as_str(), role.dependencies.as_slice())).collect();
    let waiting = group.batched().filter(|(_, batching)| batching.progression() != Progression::Parallel);
    for (coordination, batching) in waiting {
        for role in batching.sizes.keys().filter_map(|name| group.role(name)) {
            for (index, dependency) in role.dependencies.iter().enumerate() {
                let Some(other) =
                    reached(&edges, dependency, |name| name != role.name && batching.sizes.contains_key(name))
                else {
                    continue;
                };
                let path = match &group.reference {
                    Some(_) => coordination.path_of(&role.name),
                    None => role.at.child("dependencies").index(index),
                };
                let (name, owner) = (&role.name, coordination.display_name());
                let through = if other == dependency { String::new() } else { format!(" through {dependency:?}") };
                if reported.insert((path.clone(), other.to_owned())) {
                    let detail = format!(
                        "role {name:?} must not depend on {other:?}{through}: coordination {owner:?} releases both in one \
                         batch, and the pods of {name:?} would never be made"
                    );
                    report.error(name, path, Cause::Forbidden, None, detail);
                }
            }
        }
    }
}

/// The first role that dependencies lead to, from `start` on, and that is wanted.
fn reached<'a>(
    edges: &BTreeMap<&'a str, &'a [String]>,
    start: &'a str,
    wanted: impl Fn(&str) -> bool,
) -> Option<&'a str> {
    let (mut seen, mut queue) = (BTreeSet::new(), vec![start]);
    while let Some(name) = queue.pop() {
        if wanted(name) {
            return Some(name);
        }
        if seen.insert(name) {
            queue.extend(edges.get(name).into_iter().flat_map(|next| next.iter()).map(String::as_str));
        }
    }
    None
}

/// No gang over the whole group next to batches: it waits for pods that are held, and the batches wait for the gang.
pub(super) fn gang(group: &Group, _: &World, report: &mut Report) {
    let Some(path) = &group.gang else { return };
    let waits =
        |batching: &Batching| matches!(batching.progression(), Progression::OrderedReady | Progression::Scheduled);
    let mut batched: Vec<_> = group.batched().collect();
    batched.sort_by_key(|(_, batching)| !waits(batching));
    let Some((coordination, batching)) = batched.first() else { return };
    let name = coordination.display_name();
    if waits(batching) {
        let detail = format!(
            "a gang over the whole group may not be set next to coordination {name:?}: it counts held pods, and no batch \
             would start"
        );
        report.error(&name, path.clone(), Cause::Forbidden, None, detail);
    } else {
        let detail = format!("the gang over the whole group counts pods that coordination {name:?} holds");
        report.warn(&name, path.clone(), Cause::Notice, None, detail);
    }
}

/// The pods of a batch that is released as a whole are made together; where pods are released as they appear, one after
/// another is slow and no more.
pub(super) fn one_by_one(group: &Group, world: &World, report: &mut Report) {
    let mut reported = BTreeSet::new();
    for (coordination, batching) in group.batched() {
        for role in batching.sizes.keys().filter_map(|name| group.role(name)) {
            let size = batching.size(&role.name).unwrap_or(1);
            for (why, path) in hindrances(group, coordination, role, size, world, report) {
                if !reported.insert((path.clone(), why.clone())) {
                    continue;
                }
                let owner = coordination.display_name();
                if batching.is_all_or_nothing() {
                    let detail =
                        format!("{why}, but coordination {owner:?} releases a batch only when all its pods exist");
                    report.error(&role.name, path, Cause::Forbidden, None, detail);
                } else {
                    let detail = format!("{why}: a batch of coordination {owner:?} fills up one pod at a time");
                    report.warn(&role.name, path, Cause::Notice, None, detail);
                }
            }
        }
    }
}

fn hindrances(
    group: &Group,
    coordination: &Coordination,
    role: &Role,
    size: u32,
    world: &World,
    report: &mut Report,
) -> Vec<(String, FieldPath)> {
    let mut found = Vec::new();
    let name = &role.name;
    if let Some((why, path)) = workload(coordination, role, size, world, report) {
        found.push((format!("role {name:?} makes its pods one after another ({why})"), path));
    }
    let own_scaling = group.coordinations.iter().filter_map(|other| Some((other, other.scaling.clone()?)));
    let own_scaling = own_scaling.filter(|(other, _)| other.role_names().contains(name.as_str()));
    let why = format!("role {name:?} grows by RBG's own `scaling`, which waits for its pods to run");
    found.extend(own_scaling.map(|(_, path)| (why.clone(), path)));
    if let Some(policy) = world.policy(&group.key).present()
        && policy.spec.policies.iter().any(|rule| rule.strategy.scaling.is_some() && rule.roles.contains(name))
    {
        let why = format!("role {name:?} grows by a CoordinatedPolicy with `scaling`, which waits for its pods to run");
        found.push((why, coordination.path_of(name)));
    }
    found
}

/// Why the role's workload makes pods one after another, where a batch has several of them.
fn workload(
    coordination: &Coordination,
    role: &Role,
    size: u32,
    world: &World,
    report: &mut Report,
) -> Option<(&'static str, FieldPath)> {
    let at = match (&role.workload.ordered, &role.workload.reference) {
        (Some(path), _) | (None, Some((_, path))) => path.clone(),
        (None, None) => coordination.path_of(&role.name),
    };
    let key = role.workload.key.as_ref();
    let known = match key.map_or(Known::Absent, |key| world.workload(key)) {
        Known::Present(workload) => workload.one_by_one.map(|why| (why, workload.replica_size)),
        Known::Absent => None,
        Known::Unknown => {
            if let Some(key) = key.filter(|_| role.workload.reference.is_some()) {
                report.not_judged(&role.name, at.clone(), &Need::Workload(key.clone()));
            }
            None
        }
    };
    let written = role.workload.ordered.as_ref().map(|_| (OneByOne::OrderedReady, 1));
    let (why, hinders) = match known.or(written)? {
        (OneByOne::OrderedReady, _) => ("podManagementPolicy OrderedReady", size > 1),
        (OneByOne::LeaderReady, pods) => ("startupPolicy LeaderReady", pods > 1),
        (OneByOne::ExclusiveTopology, pods) => ("exclusive topology", pods > 1),
    };
    hinders.then_some((why, at))
}
