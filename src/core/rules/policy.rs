//! Rules of CoordinatedPolicy, which RBG ≥ v0.7 reads without judging it.

use std::collections::{BTreeMap, BTreeSet};

use super::decode::{DecodeError, decode};
use super::judged::JudgedObject;
use super::percent::{rolling_update_faults, scaling_skew_fault};
use super::question::Question;
use super::rule::{Rule, error, warning};
use super::violation::{quoted, supported};
use super::{Cause, Known, Need, Report, World};
use crate::api::CoordinatedPolicy;
use crate::api::coordinated_policy::PolicyRule;
use crate::model::{FieldPath, GroupKey};

const RULES: &[Rule<CoordinatedPolicy>] = &[
    error("policy-role", "every role exists in the group of the same name", roles_exist),
    error("policy-format", "names are there, and bounds are percentages or numbers", format),
    error("policy-overlap", "a role is in one rule of each kind", overlap),
    warning("policy-unbound", "there is a group of the same name", bound),
];

impl JudgedObject for CoordinatedPolicy {
    const TITLE: &'static str = "coordinated-policy";
    const RULES: &'static [Rule<Self>] = RULES;

    fn read(_: Question<'_>, json: &str, _: &World) -> Result<Self, DecodeError> {
        decode(json)
    }

    fn passes(&self) -> bool {
        self.metadata.is_deleting()
    }

    fn needs(&self, _: Option<&Self>, _: &World) -> Vec<Need> {
        vec![Need::RoleBasedGroup(key(self))]
    }
}

fn key(policy: &CoordinatedPolicy) -> GroupKey {
    GroupKey::new(policy.metadata.namespace(), policy.metadata.display_name())
}

fn rules(policy: &CoordinatedPolicy) -> impl Iterator<Item = (FieldPath, &PolicyRule)> {
    let at = FieldPath::new("spec").child("policies");
    policy.spec.policies.iter().enumerate().map(move |(index, rule)| (at.index(index), rule))
}

fn roles_exist(policy: &CoordinatedPolicy, world: &World, report: &mut Report) {
    let key = key(policy);
    let group = match world.role_based_group(&key) {
        Known::Present(group) => group,
        Known::Absent => return,
        Known::Unknown => {
            return report.not_judged(&key.name, FieldPath::new("spec"), &Need::RoleBasedGroup(key.clone()));
        }
    };
    let must = format!("must name a role of RoleBasedGroup {:?}", key.name);
    for (at, rule) in rules(policy) {
        for (index, role) in rule.roles.iter().enumerate().filter(|(_, role)| group.role(role).is_none()) {
            let names = group.roles.iter().map(|role| role.name.as_str());
            let detail = report.with_hint(&must, role, names);
            report.error(role, at.child("roles").index(index), Cause::NotFound, quoted(role), detail);
        }
    }
}

/// The operator of RoleBasedGroups carries out the policy, and rolegate only judges it.
const NOT_OF_RBG: &str =
    "RBG has no such field: it may stand in a RoleCoordination, whose rollouts rolegate carries out";

/// Words of `scaling.progression`.
const PROGRESSIONS: &[&str] = &["OrderScheduled", "OrderReady"];

fn format(policy: &CoordinatedPolicy, _: &World, report: &mut Report) {
    for (at, rule) in rules(policy) {
        if rule.name.is_empty() {
            report.require("", at.child("name"), "must name the rule");
        }
        if rule.roles.is_empty() {
            report.require(&rule.name, at.child("roles"), "must name at least one role");
        }
        let strategy_at = at.child("strategy");
        if let Some(update) = &rule.strategy.rolling_update {
            for (path, cause, value, detail) in rolling_update_faults(update, &strategy_at.child("rollingUpdate")) {
                report.error(&rule.name, path, cause, value, detail);
            }
            for (field, _) in
                [("by", update.by.is_some()), ("steps", update.steps.is_some())].iter().filter(|(_, is)| *is)
            {
                report.forbid(&rule.name, strategy_at.child("rollingUpdate").child(*field), NOT_OF_RBG);
            }
        }
        let Some(scaling) = &rule.strategy.scaling else { continue };
        let scaling_at = strategy_at.child("scaling");
        if let Some((value, detail)) = scaling.get("maxSkew").and_then(scaling_skew_fault) {
            report.error(&rule.name, scaling_at.child("maxSkew"), Cause::Invalid, Some(value), detail);
        }
        let word = scaling.get("progression").and_then(serde_json::Value::as_str);
        if let Some(word) = word.filter(|word| !word.is_empty() && !PROGRESSIONS.contains(word)) {
            let detail = supported(PROGRESSIONS.iter().copied());
            report.error(&rule.name, scaling_at.child("progression"), Cause::NotSupported, quoted(word), detail);
        }
    }
}

type Has = fn(&PolicyRule) -> bool;

/// Kinds of strategy. Two rules of one kind on a role are ambiguous: RBG takes either.
const KINDS: &[(&str, Has)] = &[
    ("rollingUpdate", |rule| rule.strategy.rolling_update.is_some()),
    ("scaling", |rule| rule.strategy.scaling.is_some()),
];

fn overlap(policy: &CoordinatedPolicy, _: &World, report: &mut Report) {
    let mut taken: BTreeMap<(&str, &str), &str> = BTreeMap::new();
    let mut reported = BTreeSet::new();
    for (at, rule) in rules(policy) {
        for (index, role) in rule.roles.iter().enumerate() {
            let path = at.child("roles").index(index);
            for (kind, _) in KINDS.iter().filter(|(_, has)| has(rule)) {
                let Some(other) = taken.insert((kind, role), &rule.name) else { continue };
                if reported.insert(path.clone()) {
                    let detail = format!("must be in one rule with `{kind}` only; it is in rule {other:?} as well");
                    report.error(role, path.clone(), Cause::Invalid, quoted(role), detail);
                }
            }
        }
    }
}

fn bound(policy: &CoordinatedPolicy, world: &World, report: &mut Report) {
    let key = key(policy);
    if matches!(world.role_based_group(&key), Known::Absent) {
        let detail = "no RoleBasedGroup has this name, and the policy is bound by name: it has no effect";
        report.warn(&key.name, FieldPath::new("metadata").child("name"), Cause::NotFound, quoted(&key.name), detail);
    }
}
