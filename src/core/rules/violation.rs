//! A fault of an object: a field, a cause and a text, worded as Kubernetes words its own field errors.

use std::fmt;

use super::Need;
use crate::model::FieldPath;
use crate::model::fault::Fault;
pub use crate::model::fault::{Cause, quoted, supported};

/// The effect of a violation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Refuses the object.
    Error,
    /// Is shown, and lets the object pass.
    Warning,
    /// Reports that a fact is unknown, and lets the object pass.
    Note,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    pub rule: &'static str,
    pub severity: Severity,
    /// Path of the field, in the user's spelling.
    pub path: FieldPath,
    pub cause: Cause,
    /// The value, strings quoted and numbers not.
    pub value: Option<String>,
    /// The requirement, as a lowercase phrase.
    pub detail: String,
    /// The role or coordination of the fault: tells a new fault of an update from an old one.
    pub subject: String,
}

impl Violation {
    /// Reports whether the author has no right to what rolegate would do.
    pub fn is_missing_right(&self) -> bool {
        self.cause == Cause::NoRight
    }

    /// Returns the text without the path.
    pub fn message(&self) -> String {
        let value = self.value.as_deref().filter(|_| !matches!(self.cause, Cause::Required | Cause::Forbidden));
        let parts = [self.cause.words(), value.unwrap_or_default(), &self.detail];
        let parts: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        parts.join(": ")
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.message())
    }
}

/// The findings of a run of rules.
#[derive(Debug, Default)]
pub struct Report {
    rule: &'static str,
    found: Vec<Violation>,
}

impl Report {
    pub(super) fn start(&mut self, rule: &'static str) {
        self.rule = rule;
    }

    /// Returns all violations, sorted by path; of one path, in the order of the table.
    pub(super) fn finish(mut self) -> Vec<Violation> {
        self.found.sort_by(|a, b| a.path.cmp(&b.path));
        self.found
    }

    /// Reports what could not be read, of this rule.
    pub(super) fn read(&mut self, faults: &[Fault]) {
        let rule = self.rule;
        for Fault { subject, at, cause, value, detail, .. } in faults.iter().filter(|fault| fault.rule == rule) {
            self.error(subject, at.clone(), *cause, value.clone(), detail);
        }
    }

    pub(super) fn len(&self) -> usize {
        self.found.len()
    }

    /// Reports a fault that refuses the object.
    pub fn error(&mut self, of: &str, at: FieldPath, cause: Cause, value: Option<String>, detail: impl Into<String>) {
        self.push(Severity::Error, of, at, cause, value, detail.into());
    }

    /// Reports a required field that is missing.
    pub fn require(&mut self, of: &str, at: FieldPath, detail: impl Into<String>) {
        self.error(of, at, Cause::Required, None, detail);
    }

    /// Reports a field that may not be set here.
    pub fn forbid(&mut self, of: &str, at: FieldPath, detail: impl Into<String>) {
        self.error(of, at, Cause::Forbidden, None, detail);
    }

    /// Reports a legal but surprising setting.
    pub fn warn(&mut self, of: &str, at: FieldPath, cause: Cause, value: Option<String>, detail: impl Into<String>) {
        self.push(Severity::Warning, of, at, cause, value, detail.into());
    }

    /// Reports consequences of a legal value.
    pub fn notice(&mut self, of: &str, at: FieldPath, detail: impl Into<String>) {
        self.warn(of, at, Cause::Notice, None, detail);
    }

    /// Reports that the rule did not judge, since a fact is unknown.
    pub fn not_judged(&mut self, of: &str, at: FieldPath, need: &Need) {
        self.push(Severity::Note, of, at, Cause::Notice, None, format!("not judged without {need}"));
    }

    fn push(
        &mut self,
        severity: Severity,
        of: &str,
        path: FieldPath,
        cause: Cause,
        value: Option<String>,
        detail: String,
    ) {
        self.found.push(Violation { rule: self.rule, severity, path, cause, value, detail, subject: of.to_owned() });
    }
}
