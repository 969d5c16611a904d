//! Judging an object: the entry that webhook, loop and offline commands share.

use std::collections::HashSet;

use serde::Deserialize;

use super::rule::run;
use super::{Cause, Severity, Violation, World, group, grove, podgroup};
use crate::api::{self, ObjectKind, RoleBasedGroup, pod, pod_group, rbg};
use crate::model::{FieldPath, Group};

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
}

impl Judged {
    pub(super) fn of(violations: Vec<Violation>) -> Self {
        let (errors, warnings) = violations.into_iter().partition(|violation| violation.severity == Severity::Error);
        Self { errors, warnings }
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

/// Judges a group, and where it is an update, what it was before.
pub fn judge_group(group: &Group, old: Option<&Group>, world: &World) -> Judged {
    if group.deleting {
        return Judged::default();
    }
    let judged = Judged::of(run(group::RULES, group, world));
    match old {
        Some(old) => judged.forgive(&run(group::RULES, old, world)),
        None => judged,
    }
}

/// Reads and judges objects of one kind.
pub type JudgeJson = fn(Question<'_>, &World) -> Result<Judged, DecodeError>;

/// Kinds that are judged.
pub const JUDGED: &[(ObjectKind, JudgeJson)] = &[
    (rbg::ROLE_BASED_GROUP, judge_rbg),
    (rbg::ROLE_BASED_GROUP_INSTAI, judge_rbg),
    (pod_group::POD_GROUP, podgroup::judge),
    (pod::POD, podgroup::judge_pod),
    (api::grove::POD_CLIQUE_SET, grove::judge),
    (api::grove::POD_GANG_SET, grove::judge),
];

/// An object does not have the shape of its kind: it may be of a newer schema.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {message}")]
pub struct DecodeError {
    /// Path of the field.
    pub path: String,
    /// What was expected there.
    pub message: String,
}

impl DecodeError {
    /// As a violation, for those who refuse such objects.
    pub fn violation(&self) -> Violation {
        Violation {
            rule: "schema",
            severity: Severity::Error,
            path: FieldPath::verbatim(self.path.clone()),
            cause: Cause::Invalid,
            value: None,
            detail: self.message.clone(),
            subject: String::new(),
        }
    }
}

/// Reads JSON as `T`; the error names the field.
///
/// # Errors
///
/// When a field that is read has another type.
pub fn decode<'a, T: Deserialize<'a>>(json: &'a str) -> Result<T, DecodeError> {
    let mut reader = serde_json::Deserializer::from_str(json);
    serde_path_to_error::deserialize(&mut reader).map_err(|error| DecodeError {
        path: error.path().to_string(),
        // The position is that of the request's body, which nobody sees.
        message: error.inner().to_string().split(" at line ").next().unwrap_or_default().to_owned(),
    })
}

/// Judges an object of a kind in `JUDGED`; `None` for other kinds, which are admitted.
///
/// # Errors
///
/// When the object does not have the shape of its kind.
pub fn judge_json(
    api_version: &str,
    kind: &str,
    operation: Operation,
    object: &str,
    old: Option<&str>,
    world: &World,
) -> Option<Result<Judged, DecodeError>> {
    let (kind, judge) = JUDGED.iter().find(|(known, _)| known.kind == kind && known.api_version() == api_version)?;
    Some(judge(Question { kind: *kind, operation, object, old }, world))
}

fn judge_rbg(question: Question<'_>, world: &World) -> Result<Judged, DecodeError> {
    if question.operation == Operation::Delete {
        return Ok(Judged::default());
    }
    let read = |json| decode::<RoleBasedGroup>(json).map(|rbg| Group::from_rbg(question.kind, &rbg));
    let group = read(question.object)?;
    // An old object that cannot be read forgives nothing.
    let old = question.old.and_then(|old| read(old).ok());
    Ok(judge_group(&group, old.as_ref(), world))
}
