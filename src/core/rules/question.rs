//! Input and result of a judgement.

use std::collections::HashSet;

use super::{Severity, Violation};
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
    /// fault must not block other changes. A missing right is the author's, not the object's: it is no old fault, and excuses none.
    pub(super) fn forgive(self, old: &[Violation]) -> Self {
        let old = old.iter().filter(|violation| violation.severity == Severity::Error && !violation.is_missing_right());
        let known: HashSet<_> = old.map(|violation| (violation.rule, violation.subject.as_str())).collect();
        self.let_in(|v| !v.is_missing_right() && known.contains(&(v.rule, v.subject.as_str())))
    }

    /// Turns missing rights into warnings where the update keeps what they guard.
    pub(super) fn forgive_rights(self, keeps: impl Fn(&Violation) -> bool) -> Self {
        self.let_in(|violation| violation.is_missing_right() && keeps(violation))
    }

    fn let_in(mut self, is_forgiven: impl Fn(&Violation) -> bool) -> Self {
        let (forgiven, refused): (Vec<_>, Vec<_>) = self.errors.into_iter().partition(is_forgiven);
        self.errors = refused;
        self.warnings.extend(forgiven);
        self.warnings.sort_by(|a, b| a.path.cmp(&b.path));
        self
    }
}

/// Reports whether a fault has its cause outside the object.
fn is_of_outside(error: &Violation) -> bool {
    error.is_missing_right() || error.rule == "topology-in-use"
}
