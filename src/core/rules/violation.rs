//! A fault of an object: a field, a cause and a text, worded as Kubernetes words its own field errors.

use std::fmt;

use super::Need;
use crate::model::FieldPath;

/// The kind of a fault, with the names of Kubernetes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// A required field is missing.
    Required,
    /// A value breaks a requirement.
    Invalid,
    /// A word is not one of the allowed ones.
    NotSupported,
    /// A value that must be unique occurs before.
    Duplicate,
    /// A referenced object does not exist.
    NotFound,
    /// A field may not be set here.
    Forbidden,
    /// The author has no right to what rolegate would do for the field.
    NoRight,
    /// A text is too long.
    TooLong,
    /// A list has too many entries.
    TooMany,
    /// The value is legal: a warning or note on its consequences.
    Notice,
}

impl Cause {
    /// Returns the `reason` of a `metav1.StatusCause`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Required => "FieldValueRequired",
            Self::Invalid => "FieldValueInvalid",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Duplicate => "FieldValueDuplicate",
            Self::NotFound => "FieldValueNotFound",
            Self::Forbidden | Self::NoRight => "FieldValueForbidden",
            Self::TooLong => "FieldValueTooLong",
            Self::TooMany => "FieldValueTooMany",
            Self::Notice => "Notice",
        }
    }

    const fn words(self) -> &'static str {
        match self {
            Self::Required => "Required value",
            Self::Invalid => "Invalid value",
            Self::NotSupported => "Unsupported value",
            Self::Duplicate => "Duplicate value",
            Self::NotFound => "Not found",
            Self::Forbidden | Self::NoRight => "Forbidden",
            Self::TooLong => "Too long",
            Self::TooMany => "Too many",
            Self::Notice => "",
        }
    }
}

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

    pub(super) fn len(&self) -> usize {
        self.found.len()
    }

    /// Reports a fault that refuses the object.
    pub fn error(
        &mut self,
        subject: &str,
        path: FieldPath,
        cause: Cause,
        value: Option<String>,
        detail: impl Into<String>,
    ) {
        self.push(Severity::Error, subject, path, cause, value, detail.into());
    }

    /// Reports a legal but surprising setting.
    pub fn warn(
        &mut self,
        subject: &str,
        path: FieldPath,
        cause: Cause,
        value: Option<String>,
        detail: impl Into<String>,
    ) {
        self.push(Severity::Warning, subject, path, cause, value, detail.into());
    }

    /// Reports that the rule did not judge, since a fact is unknown.
    pub fn not_judged(&mut self, subject: &str, path: FieldPath, need: &Need) {
        self.push(Severity::Note, subject, path, Cause::Notice, None, format!("not judged without {need}"));
    }

    fn push(
        &mut self,
        severity: Severity,
        subject: &str,
        path: FieldPath,
        cause: Cause,
        value: Option<String>,
        detail: String,
    ) {
        self.found.push(Violation {
            rule: self.rule,
            severity,
            path,
            cause,
            value,
            detail,
            subject: subject.to_owned(),
        });
    }
}

/// Returns a string in quotes, as messages show it.
pub fn quoted(text: &str) -> Option<String> {
    Some(format!("{text:?}"))
}

/// Returns the detail of an unsupported word.
pub fn supported<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    let words: Vec<_> = words.into_iter().map(|word| format!("{word:?}")).collect();
    format!("supported values: {}", words.join(", "))
}
