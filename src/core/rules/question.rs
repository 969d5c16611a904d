//! Input and result of a judgement.

use std::collections::HashSet;

use super::{Cause, Severity, Violation};
use crate::api::ObjectKind;

/// The operation on the object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Operation {
    #[default]
    Create,
    Update,
    /// The object is the deleted one.
    Delete,
}

impl Operation {
    /// Parses the spelling of `AdmissionReview`; `None` for operations that are not judged.
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "CREATE" => Some(Self::Create),
            "UPDATE" => Some(Self::Update),
            "DELETE" => Some(Self::Delete),
            _ => None,
        }
    }
}

/// The input of a judgement.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    pub kind: ObjectKind,
    pub operation: Operation,
    /// The object as JSON; for a DELETE, the deleted one.
    pub object: &'a str,
    /// The old object, for an UPDATE.
    pub old: Option<&'a str>,
}

/// The findings of a judgement.
#[derive(Debug, Default)]
pub struct Judged {
    /// Faults that refuse the object.
    pub errors: Vec<Violation>,
    /// Findings that are shown and let the object pass.
    pub warnings: Vec<Violation>,
    /// Rules that did not judge, since a fact is unknown.
    pub notes: Vec<Violation>,
}

impl Judged {
    pub(super) fn of(violations: Vec<Violation>) -> Self {
        let mut judged = Self::default();
        for violation in violations {
            match violation.severity {
                Severity::Error => judged.errors.push(violation),
                Severity::Warning => judged.warnings.push(violation),
                Severity::Note => judged.notes.push(violation),
            }
        }
        judged
    }

    pub fn is_allowed(&self) -> bool {
        self.errors.is_empty()
    }

    /// Reports whether only the state of the cluster or the author's rights refuse the object: the answer is then 403
    /// Forbidden, not 422.
    pub fn is_forbidden(&self) -> bool {
        !self.errors.is_empty() && self.errors.iter().all(is_of_outside)
    }

    pub(super) fn and(mut self, violations: Vec<Violation>) -> Self {
        let more = Self::of(violations);
        self.errors.extend(more.errors);
        self.warnings.extend(more.warnings);
        self.notes.extend(more.notes);
        for found in [&mut self.errors, &mut self.warnings, &mut self.notes] {
            found.sort_by(|a, b| a.path.cmp(&b.path));
        }
        self
    }

    /// Turns errors of an update that the old object has as well (same rule, same role or coordination) into warnings: an old
    /// fault must not block other changes.
    pub(super) fn forgive(mut self, old: &[Violation]) -> Self {
        let old = old.iter().filter(|violation| violation.severity == Severity::Error);
        let known: HashSet<_> = old.map(|violation| (violation.rule, violation.subject.as_str())).collect();
        let (kept, new) = self.errors.into_iter().partition(|v| known.contains(&(v.rule, v.subject.as_str())));
        self.errors = new;
        self.warnings.extend(Vec::from_iter(kept as Vec<Violation>));
        self.warnings.sort_by(|a, b| a.path.cmp(&b.path));
        self
    }
}

/// Reports whether a fault has its cause outside the object.
fn is_of_outside(error: &Violation) -> bool {
    error.cause == Cause::NoRight || error.rule == "topology-in-use"
}
