//! The list of all rules, for tests, for SARIF and for the reference page.

use super::rule::{ChangeRule, Level, Rule};
use super::{group, grove, podgroup, policy, topology};

/// What is known of a rule without running it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RuleInfo {
    /// The kind of object it judges: name of the folder of its golden cases.
    pub object: &'static str,
    /// Stable id.
    pub id: &'static str,
    /// What it can find.
    pub level: Level,
    /// The rule in one phrase.
    pub summary: &'static str,
}

/// Every rule, table by table.
pub fn catalogue() -> Vec<RuleInfo> {
    let tables = [
        rows("group", group::RULES),
        changes("group", group::CHANGE_RULES),
        rows("cluster-topology", topology::RULES),
        changes("cluster-topology", topology::CHANGE_RULES),
        rows("cluster-topology", topology::DELETE_RULES),
        rows("coordinated-policy", policy::RULES),
        rows("podgroup", podgroup::RULES),
        rows("podgroup", podgroup::POD_RULES),
        rows("grove", grove::RULES),
    ];
    tables.into_iter().flatten().collect()
}

fn rows<T>(object: &'static str, rules: &[Rule<T>]) -> Vec<RuleInfo> {
    rules.iter().map(|rule| RuleInfo { object, id: rule.id, level: rule.level, summary: rule.summary }).collect()
}

fn changes<T>(object: &'static str, rules: &[ChangeRule<T>]) -> Vec<RuleInfo> {
    rules.iter().map(|rule| RuleInfo { object, id: rule.id, level: Level::Error, summary: rule.summary }).collect()
}
