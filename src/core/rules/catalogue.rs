//! The list of all rules, for tests, for SARIF and for the reference page.

use super::judged::JudgedObject;
use super::podgroup::JudgedPodGroup;
use super::rule::{Level, Rule};
use super::unknown_fields::{SUMMARY, UNKNOWN_FIELD};
use crate::api::{CoordinatedPolicy, Pod};
use crate::model::{CliqueSet, Group, Layers};

/// Static facts of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RuleInfo {
    /// Kind of the judged object: name of the folder of its golden cases.
    pub object: &'static str,
    pub id: &'static str,
    pub level: Level,
    /// The rule in one phrase.
    pub summary: &'static str,
}

/// Returns every rule, table by table.
pub fn catalogue() -> Vec<RuleInfo> {
    let tables = [
        rules_of::<Group>(),
        vec![RuleInfo { object: Group::TITLE, id: UNKNOWN_FIELD, level: Level::Warning, summary: SUMMARY }],
        rules_of::<Layers>(),
        rules_of::<CoordinatedPolicy>(),
        rules_of::<JudgedPodGroup>(),
        rules_of::<Pod>(),
        rules_of::<CliqueSet>(),
    ];
    tables.into_iter().flatten().collect()
}

fn rules_of<T: JudgedObject>() -> Vec<RuleInfo> {
    let info = |id, level, summary| RuleInfo { object: T::TITLE, id, level, summary };
    let rules = |rules: &'static [Rule<T>]| rules.iter().map(move |rule| info(rule.id, rule.level, rule.summary));
    let changes = T::CHANGE_RULES.iter().map(|rule| info(rule.id, rule.level, rule.summary));
    rules(T::SIZE_RULES).chain(rules(T::RULES)).chain(changes).chain(rules(T::DELETE_RULES)).collect()
}
