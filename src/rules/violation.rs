//! What is wrong with an object: a field, a cause and a text, worded as Kubernetes words its own field errors.

use std::fmt;

use super::Need;
use crate::model::FieldPath;

/// What kind of fault it is, with the names that Kubernetes gives to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// A field that must be set is not.
    Required,
    /// A value breaks a requirement.
    Invalid,
    /// A word is none of those that are allowed.
    NotSupported,
    /// A value that must be unique is there before.
    Duplicate,
    /// A reference leads nowhere.
    NotFound,
    /// A field may not be set here.
    Forbidden,
    /// A text is longer than its use allows.
    TooLong,
    /// A list has more entries than it may.
    TooMany,
    /// Nothing is wrong with the value: a warning or note about what follows from it.
    Notice,
}

impl Cause {
    /// `reason` of a `metav1.StatusCause`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Required => "FieldValueRequired",
            Self::Invalid => "FieldValueInvalid",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Duplicate => "FieldValueDuplicate",
            Self::NotFound => "FieldValueNotFound",
            Self::Forbidden => "FieldValueForbidden",
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
            Self::Forbidden => "Forbidden",
            Self::TooLong => "Too long",
            Self::TooMany => "Too many",
            Self::Notice => "",
        }
    }
}

/// Whether a violation refuses the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Refuses it.
    Error,
    /// Is shown, and lets it pass.
    Warning,
    /// Says what was not judged, since something is not known; lets it pass.
    Note,
}

/// One thing that is wrong with an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Id of the rule.
    pub rule: &'static str,
    /// Whether it refuses the object.
    pub severity: Severity,
    /// Path of the field, in the user's spelling.
    pub path: FieldPath,
    /// What kind of fault.
    pub cause: Cause,
    /// The value, strings quoted and numbers not.
    pub value: Option<String>,
    /// What must hold, in a lowercase phrase.
    pub detail: String,
    /// The role or coordination it speaks of: tells whether an update brings the fault or keeps it.
    pub subject: String,
}

impl Violation {
    /// The text without the path.
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

/// Where rules report to.
#[derive(Debug, Default)]
pub struct Report {
    rule: &'static str,
    found: Vec<Violation>,
}

impl Report {
    pub(super) fn start(&mut self, rule: &'static str) {
        self.rule = rule;
    }

    /// All violations, sorted by path; of one path, in the order of the table.
    pub(super) fn finish(mut self) -> Vec<Violation> {
        self.found.sort_by(|a, b| a.path.cmp(&b.path));
        self.found
    }

    /// How much was reported.
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

    /// Reports what is legal and will surprise.
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

    /// Says that the rule was not applied, since something is not known.
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

/// A string as a message shows it.
pub fn quoted(text: &str) -> Option<String> {
    Some(format!("{text:?}"))
}

/// The detail of an unsupported word.
pub fn supported<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    let words: Vec<_> = words.into_iter().map(|word| format!("{word:?}")).collect();
    format!("supported values: {}", words.join(", "))
}
