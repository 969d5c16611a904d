//! Rules of Grove sets, PodCliqueSet and PodGangSet (SPEC §2.4).

mod cliques;
mod hostnames;
mod roles;

use super::decode::{DecodeError, decode};
use super::question::{Judged, Operation, Question};
use super::rule::{Rule, run};
use super::{Severity, Violation, World};
use crate::api;
use crate::model::CliqueSet;

/// One row for each rule.
pub(super) const RULES: &[Rule<CliqueSet>] = &[
    Rule::error("grove-role-name", "a role makes the name of a variable", roles::names),
    Rule::either("grove-role-duplicate", "cliques that find each other have different roles", roles::duplicates),
    Rule::error("grove-role-reserved", "the variables of a role are nobody else's", roles::reserved),
    Rule::warning("grove-role-missing", "all cliques of a scaling group have a role, or none has", roles::missing),
    Rule::error("grove-clique-unknown", "the cliques of a scaling group exist", cliques::exist),
    Rule::error("grove-clique-shared", "a clique is in one scaling group, once", cliques::in_one_group),
    Rule::either("grove-hostname", "the hostnames of all pods are valid", hostnames::valid),
    Rule::warning("grove-name-sum", "the names fit the limit of Grove's own webhook", hostnames::name_sum),
];

/// Judges a set. One without any role is none of our business: Grove judges it, and here it gets warnings at most.
pub(super) fn judge(question: Question<'_>, world: &World) -> Result<Judged, DecodeError> {
    let read = |json| decode::<api::PodCliqueSet>(json).map(|set| CliqueSet::from_set(question.kind, &set));
    let set = read(question.object)?;
    if question.operation == Operation::Delete || set.deleting {
        return Ok(Judged::default());
    }
    let judged = Judged::of(violations(&set, world));
    // An old object that cannot be read forgives nothing.
    let old = question.old.and_then(|old| read(old).ok());
    Ok(match old {
        // A fault that was only warned about while the set had no roles is an old fault too.
        Some(old) => judged.forgive(&run(RULES, &old, world)),
        None => judged,
    })
}

fn violations(set: &CliqueSet, world: &World) -> Vec<Violation> {
    let mut found = run(RULES, set, world);
    if !set.has_roles() {
        for violation in &mut found {
            violation.severity = Severity::Warning;
        }
    }
    found
}
