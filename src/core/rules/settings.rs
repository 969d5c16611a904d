//! Severities of single rules, as configured.

use std::collections::BTreeMap;
use std::fmt;

use super::{Cause, Severity, Violation};
use crate::model::words::words;

words! {
/// The configured severity of a rule.
pub enum Setting {
    /// Every finding refuses the object, even a warning.
    Deny = "deny",
    /// Every finding is a warning.
    Warn = "warn",
    /// Findings are dropped.
    Off = "off",
}
}

/// Rules that can only refuse, and the purpose of each.
const FIXED: &[(&str, &str)] = &[
    ("group-bounds", "it bounds what one object may cost"),
    ("group-shape", "nothing can be planned for a group without a shape"),
    ("group-claimed-twice", "two objects would steer the same pods"),
    ("pod-group-rights", "it keeps authors from what only rolegate may do"),
    ("recovery", "it keeps authors from what only rolegate may do"),
    ("rollback-right", "it keeps authors from what only rolegate may do"),
    ("rollback-by-hand", "it keeps authors from what only rolegate may do"),
    ("resume-by-hand", "it keeps authors from what only rolegate may do"),
    ("segments-scale", "it keeps authors from what only rolegate may do"),
    ("pod-names", "names become part of requests"),
];

/// Returns the purpose of a rule that can only refuse: it cannot be off, and the loop follows it in every mode. `None` for
/// any other.
pub fn why_fixed(rule: &str) -> Option<&'static str> {
    FIXED.iter().find(|(id, _)| *id == rule).map(|(_, why)| *why)
}

/// The configured severities; other rules keep the level of their table. They are set once at startup and live as long as the
/// process, so copies are cheap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RuleSettings(Option<&'static BTreeMap<String, Setting>>);

impl RuleSettings {
    /// Returns the settings, by the id of the rule.
    pub fn of(settings: BTreeMap<String, Setting>) -> Self {
        Self((!settings.is_empty()).then(|| &*Box::leak(Box::new(settings))))
    }

    fn all(self) -> impl Iterator<Item = (&'static str, Setting)> {
        self.0.into_iter().flatten().map(|(rule, setting)| (rule.as_str(), *setting))
    }

    pub fn set_to(self, setting: Setting) -> impl Iterator<Item = &'static str> {
        self.all().filter(move |(_, set)| *set == setting).map(|(rule, _)| rule)
    }

    /// Applies the severities to findings.
    pub fn weigh(self, mut found: Vec<Violation>) -> Vec<Violation> {
        let Some(settings) = self.0 else { return found };
        found.retain_mut(|violation| match (settings.get(violation.rule), violation.severity) {
            // A missing right refuses whatever is set for the other findings of its rule.
            _ if violation.cause == Cause::NoRight => true,
            (None, _) | (Some(Setting::Deny | Setting::Warn), Severity::Note) => true,
            (Some(Setting::Deny), _) => {
                violation.severity = Severity::Error;
                // A refusal needs a cause that Kubernetes knows.
                if violation.cause == Cause::Notice {
                    violation.cause = Cause::Invalid;
                }
                true
            }
            (Some(Setting::Warn), _) => {
                violation.severity = Severity::Warning;
                true
            }
            (Some(Setting::Off), _) => false,
        });
        found
    }
}

impl fmt::Display for RuleSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: Vec<_> = self.all().map(|(rule, setting)| format!("{rule}={}", setting.as_str())).collect();
        f.write_str(&all.join(","))
    }
}
