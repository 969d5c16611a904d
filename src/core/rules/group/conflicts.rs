//! Conflicts between coordinations on one role (KEP-32, Conflict Detection).

use std::collections::BTreeMap;

use crate::model::batching::Choice;
use crate::model::{Batching, Group};
use crate::rules::violation::quoted;
use crate::rules::{Cause, Report, World};

/// Requires equal sizes of a role in all coordinations that batch it, of any kind.
pub(super) fn sizes_agree(group: &Group, _: &World, report: &mut Report) {
    let positive = |batching: &Batching, role: &str| batching.sizes.get(role).copied().filter(|size| *size > 0);
    disagreements(group, positive, |role, batching, size, first| {
        let detail = format!(
            "segment size conflict for role {role:?}: coordination has segment size {size}, but another coordination has {first}"
        );
        report.error(role, batching.sizes_at.key(role), Cause::Invalid, Some(size.to_string()), detail);
    });
}

/// Requires equal progressions in all coordinations that batch a role.
pub(super) fn progressions_agree(group: &Group, _: &World, report: &mut Report) {
    let known = |batching: &Batching, _: &str| match batching.progression {
        Choice::Known(progression) => Some(progression.as_str()),
        Choice::Unknown => None,
    };
    disagreements(group, known, |role, batching, progression, first| {
        let detail = format!(
            "progression strategy conflict for role {role:?}: coordination has strategy {progression:?}, but another coordination has {first:?}"
        );
        report.error(role, batching.progression_at.clone(), Cause::Invalid, quoted(progression), detail);
    });
}

/// Calls `report` for each later coordination with another value for a role than the first one.
fn disagreements<T: PartialEq + Copy>(
    group: &Group,
    says: impl Fn(&Batching, &str) -> Option<T>,
    mut report: impl FnMut(&str, &Batching, T, T),
) {
    let mut firsts: BTreeMap<&str, T> = BTreeMap::new();
    for (_, batching) in group.batched() {
        for role in batching.sizes.keys() {
            let Some(said) = says(batching, role) else { continue };
            let first = *firsts.entry(role.as_str()).or_insert(said);
            if first != said {
                report(role, batching, said, first);
            }
        }
    }
}

/// Requires at most one coordination with topology for a role: a pod cannot follow two.
pub(super) fn one_topology(group: &Group, _: &World, report: &mut Report) {
    let words = ("topology", "a role may follow one topology");
    at_most_one(group, |batching| batching.topology.is_some(), words, report);
}

/// Requires at most one coordination with `podGroupPolicy` for a role: the gang of the other would wait for pods that are not in
/// it.
pub(super) fn one_gang(group: &Group, _: &World, report: &mut Report) {
    let words = ("podGroupPolicy", "a pod may be in one PodGroup");
    at_most_one(group, |batching| batching.gangs.is_some(), words, report);
}

fn at_most_one(group: &Group, has: impl Fn(&Batching) -> bool, (what, why): (&str, &str), report: &mut Report) {
    let mut firsts: BTreeMap<&str, String> = BTreeMap::new();
    for (coordination, batching) in group.batched().filter(|(_, batching)| has(batching)) {
        for role in batching.sizes.keys() {
            if let Some(first) = firsts.get(role.as_str()) {
                let detail = format!("role {role:?} is in coordination {first:?} with {what} already; {why}");
                report.forbid(role, batching.sizes_at.key(role), detail);
            } else {
                firsts.insert(role, coordination.display_name());
            }
        }
    }
}
