//! What a judge is asked, an object and what is done with it, and what it answers: errors, warnings, and what it could
//! not judge.

use std::collections::HashSet;

use super::{Cause, Severity, Violation};
use crate::api::ObjectKind;

/// What is done with the object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Operation {
    /// It is new.
    #[default]
    Create,
    /// It replaces another version.
    Update,
    /// It goes away; the object is what it was.
    Delete,
}

impl Operation {
    /// As `AdmissionReview` spells it; `None` for operations that nothing judges.
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "CREATE" => Some(Self::Create),
            "UPDATE" => Some(Self::Update),
            "DELETE" => Some(Self::Delete),
            _ => None,
        }
    }
}

/// What a kind's judge is asked.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// Kind of the object.
    pub kind: ObjectKind,
    /// What is done with it.
    pub operation: Operation,
    /// The object as JSON; for a DELETE, what it was.
    pub object: &'a str,
    /// The object before, for an UPDATE.
    pub old: Option<&'a str>,
}

/// What was found.
#[derive(Debug, Default)]
pub struct Judged {
    /// Faults that refuse the object.
    pub errors: Vec<Violation>,
    /// What is shown and lets it pass.
    pub warnings: Vec<Violation>,
    /// What was not judged, since something is not known.
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

    /// True when the object may pass.
    pub fn is_allowed(&self) -> bool {
        self.errors.is_empty()
    }

    /// True when what refuses the object is the state of the cluster or the author's rights, not the object: the answer is
    /// 403 Forbidden then, not 422.
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

    /// An update that keeps an old fault (same rule, same role or coordination) is warned about, not refused: whoever
    /// changes something else must not be stopped by it.
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

/// True for a fault that is not the object's own.
fn is_of_outside(error: &Violation) -> bool {
    let is_right = || error.cause == Cause::Forbidden && OF_RIGHTS.contains(&error.rule);
    FORBIDDING.contains(&error.rule) || is_right()
}

/// Rules of which what is forbidden is a matter of the author's rights.
const OF_RIGHTS: &[&str] = &["recovery"];

/// Rules that refuse because of something outside the object.
const FORBIDDING: &[&str] = &["pod-group-rights", "topology-in-use"];
