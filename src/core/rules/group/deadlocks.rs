//! Settings that would deadlock.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::model::{Batching, Coordination, FieldPath, GangLevel, Group, OneByOne, Progression, Role};
use crate::rules::{Known, Need, Report, World};

/// Refuses dependencies between roles of one batch: RBG makes the pods of the dependent role only when the other role is
/// wholly ready, and the batch, or its gang, waits for both.
pub(super) fn dependencies(group: &Group, _: &World, report: &mut Report) {
    let mut reported = BTreeSet::new();
    let dependents = dependents(group);
    let waits = |batching: &Batching| batching.progression() != Progression::Parallel || batching.is_gang();
    let waiting = group.batched().filter(|(_, batching)| waits(batching));
    for (coordination, batching) in waiting {
        let ends = ends(&dependents, batching.sizes.keys().map(String::as_str));
        for role in batching.sizes.keys().filter_map(|name| group.role(name)) {
            for (index, dependency) in role.dependencies.iter().enumerate() {
                let known = ends.get(dependency.as_str()).into_iter().flatten().flatten();
                let Some(other) = known.copied().find(|end| *end != role.name) else { continue };
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
                    report.forbid(name, path, detail);
                }
            }
        }
    }
}

/// Returns the dependent roles by role.
fn dependents(group: &Group) -> BTreeMap<&str, Vec<&str>> {
    let mut dependents: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for role in &group.roles {
        for dependency in &role.dependencies {
            dependents.entry(dependency.as_str()).or_default().push(role.name.as_str());
        }
    }
    dependents
}

/// Returns for each role the two nearest roles of a batch that it depends on, itself included. Of two, at least one differs
/// from the role itself. Each role is visited at most twice, whatever the length of the chains.
fn ends<'a>(
    dependents: &BTreeMap<&'a str, Vec<&'a str>>,
    batch: impl Iterator<Item = &'a str>,
) -> BTreeMap<&'a str, [Option<&'a str>; 2]> {
    let mut ends: BTreeMap<&str, [Option<&str>; 2]> = BTreeMap::new();
    let mut queue: VecDeque<_> = batch.map(|name| (name, name)).collect();
    while let Some((name, end)) = queue.pop_front() {
        let known = ends.entry(name).or_default();
        let Some(free) = known.iter_mut().find(|slot| slot.is_none_or(|known| known == end)) else { continue };
        if free.replace(end).is_none() {
            queue.extend(dependents.get(name).into_iter().flatten().map(|dependent| (*dependent, end)));
        }
    }
    ends
}

/// Refuses a gang over the whole group next to batches: it waits for held pods, and the batches wait for the gang.
pub(super) fn gang(group: &Group, _: &World, report: &mut Report) {
    let Some(path) = &group.gang else { return };
    let waits = |batching: &Batching| !matches!(batching.progression(), Progression::Ordered | Progression::Parallel);
    let mut batched: Vec<_> = group.batched().collect();
    batched.sort_by_key(|(_, batching)| !waits(batching));
    let Some((coordination, batching)) = batched.first() else { return };
    let name = coordination.display_name();
    if waits(batching) {
        let detail = format!(
            "a gang over the whole group may not be set next to coordination {name:?}: it counts held pods, and no batch \
             would start"
        );
        report.forbid(&name, path.clone(), detail);
    } else {
        let detail = format!("the gang over the whole group counts pods that coordination {name:?} holds");
        report.notice(&name, path.clone(), detail);
    }
}

/// Refuses sequential creation of the pods of a batch that is released as a whole. Where pods are released as they appear it
/// is only slow, and causes a warning.
pub(super) fn one_by_one(group: &Group, world: &World, report: &mut Report) {
    let mut reported = BTreeSet::new();
    let scaled = Scaled::of(group, world);
    for (coordination, batching) in group.batched() {
        for role in batching.sizes.keys().filter_map(|name| group.role(name)) {
            let size = batching.size(&role.name).unwrap_or(1);
            for Hindrance { why, path, splits_replicas } in hindrances(&scaled, coordination, role, size, world, report)
            {
                if !reported.insert((path.clone(), why.clone())) {
                    continue;
                }
                let owner = coordination.display_name();
                let gangs = batching.gangs.as_ref();
                if splits_replicas && gangs.is_some_and(|gangs| gangs.level == GangLevel::Replica) {
                    let detail = format!("{why}, but coordination {owner:?} starts all pods of a replica together");
                    report.forbid(&role.name, path, detail);
                } else if batching.is_all_or_nothing() || batching.recovers().is_some() {
                    let when = if batching.is_all_or_nothing() { "" } else { " after a recovery" };
                    let detail = format!(
                        "{why}, but coordination {owner:?} releases a batch{when} only when all its pods exist"
                    );
                    report.forbid(&role.name, path, detail);
                } else {
                    let detail = format!("{why}: a batch of coordination {owner:?} fills up one pod at a time");
                    report.notice(&role.name, path, detail);
                }
            }
        }
    }
}

/// Roles whose pods other objects make in a lockstep of their own.
struct Scaled<'a> {
    /// Coordinations with RBG's own `scaling`, with its path.
    by_rbg: Vec<(&'a Coordination, &'a FieldPath)>,
    /// Roles of a CoordinatedPolicy with `scaling`.
    by_policy: BTreeSet<&'a str>,
}

impl<'a> Scaled<'a> {
    fn of(group: &'a Group, world: &'a World) -> Self {
        let rules = world.policy(&group.key).present().into_iter().flat_map(|policy| &policy.spec.policies);
        let rules = rules.filter(|rule| rule.strategy.scaling.is_some());
        Self {
            by_rbg: group.coordinations.iter().filter_map(|other| Some((other, other.scaling.as_ref()?))).collect(),
            by_policy: rules.flat_map(|rule| &rule.roles).map(String::as_str).collect(),
        }
    }
}

/// Reason for which the pods of a batch are not made together.
struct Hindrance {
    why: String,
    path: FieldPath,
    /// Whether not even the pods of one replica are.
    splits_replicas: bool,
}

fn hindrances(
    scaled: &Scaled<'_>,
    coordination: &Coordination,
    role: &Role,
    size: u32,
    world: &World,
    report: &mut Report,
) -> Vec<Hindrance> {
    let mut found = Vec::new();
    let name = &role.name;
    if let Some((why, path)) = workload(coordination, role, size, world, report) {
        let splits_replicas = why != OneByOne::OrderedReady;
        let why = format!("role {name:?} makes its pods one after another ({})", why.as_str());
        found.push(Hindrance { why, path, splits_replicas });
    }
    for (_, path) in scaled.by_rbg.iter().filter(|(other, _)| other.names(name)) {
        let why = format!("role {name:?} grows by RBG's own `scaling`, which waits for its pods to run");
        found.push(Hindrance { why, path: (*path).clone(), splits_replicas: false });
    }
    if scaled.by_policy.contains(name.as_str()) {
        let why = format!("role {name:?} grows by a CoordinatedPolicy with `scaling`, which waits for its pods to run");
        found.push(Hindrance { why, path: coordination.path_of(name), splits_replicas: false });
    }
    found
}

/// Returns why the role's workload makes pods one after another, where a batch has several of them.
fn workload(
    coordination: &Coordination,
    role: &Role,
    size: u32,
    world: &World,
    report: &mut Report,
) -> Option<(OneByOne, FieldPath)> {
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
    let (why, pods) = known.or(written)?;
    let hinders = if why == OneByOne::OrderedReady { size > 1 } else { pods > 1 };
    hinders.then_some((why, at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependencies_lead_to_the_nearest_of_a_batch_and_to_another_one() {
        // a depends on x, x on b and on a; y depends on a alone.
        let dependents = BTreeMap::from([("x", vec!["a"]), ("b", vec!["x"]), ("a", vec!["x", "y"])]);
        let ends = ends(&dependents, ["a", "b"].into_iter());
        assert_eq!(ends["x"], [Some("a"), Some("b")]);
        assert_eq!(ends["y"], [Some("a"), Some("b")], "through a, which depends on b through x");
        assert_eq!(ends["a"], [Some("a"), Some("b")]);
        assert!(!ends.contains_key("nobody"));
    }
}
