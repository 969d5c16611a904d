//! Rules of Grove sets, PodCliqueSet and PodGangSet.

mod cliques;
mod hostnames;
mod roles;
mod scope;

use super::decode::{DecodeError, decode};
use super::judged::JudgedObject;
use super::question::Question;
use super::rule::{ChangeRule, Rule, either, error, warning};
use super::{Severity, Violation, World, engine};
use crate::model::CliqueSet;

const RULES: &[Rule<CliqueSet>] = &[
    error("grove-role-name", "a role makes the name of a variable", roles::names),
    either("grove-role-duplicate", "cliques that find each other have different roles", roles::duplicates),
    error("grove-role-reserved", "the variables of a role are nobody else's", roles::reserved),
    warning("grove-role-missing", "of cliques that find each other, all have a role or none has", roles::missing),
    either("grove-discovery-scope", "discovery-scope is a known word, and has an effect", scope::known),
    either("grove-engine", "the engines of cliques are known, and their settings are valid", engine::of_cliques),
    error("grove-clique-unknown", "the cliques of a scaling group exist", cliques::exist),
    error("grove-clique-shared", "a clique is in one scaling group, once", cliques::in_one_group),
    either("grove-hostname", "the hostnames of all pods are valid", hostnames::valid),
    warning("grove-name-sum", "the names fit the limit of Grove's own webhook", hostnames::name_sum),
];

/// Rules on updates.
const CHANGE_RULES: &[ChangeRule<CliqueSet>] =
    &[warning("grove-discovery-change", "pods that exist have the variables that the set describes", scope::change)];

impl JudgedObject for CliqueSet {
    const TITLE: &'static str = "grove";
    const RULES: &'static [Rule<Self>] = RULES;
    const CHANGE_RULES: &'static [ChangeRule<Self>] = CHANGE_RULES;

    fn read(question: Question<'_>, json: &str, _: &World) -> Result<Self, DecodeError> {
        decode(json).map(|set| Self::from_set(question.kind, &set))
    }

    fn passes(&self) -> bool {
        self.deleting
    }

    /// Turns faults of a set without roles into warnings: Grove judges it.
    fn weigh(&self, mut found: Vec<Violation>) -> Vec<Violation> {
        if !self.has_roles() {
            for violation in &mut found {
                violation.severity = Severity::Warning;
            }
        }
        found
    }
}
