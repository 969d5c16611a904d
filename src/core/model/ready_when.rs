//! Readiness of a batch, or of a step of a rollout, beyond that of its pods: a time for which pods are ready, and a condition of
//! another object.

use std::fmt;

use super::FieldPath;
use super::fault::{Reader, quoted};
use super::object_name::subdomain_fault;
use crate::api::{self, ObjectKind};

/// Stands in the name of an object for the number of a segment from 0, as in its label.
pub const SEGMENT_VARIABLE: &str = "$(SEGMENT)";
/// Stands in the name of an object for the number of a step from 1.
pub const STEP_VARIABLE: &str = "$(STEP)";
/// Condition of an object that names none.
const READY: &str = "Ready";
/// Longest `minReadySeconds`: a year.
const LONGEST: u32 = 365 * 24 * 3600;

/// Readiness beyond that of pods, as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadyWhen {
    /// Path of the block.
    pub at: FieldPath,
    /// Seconds for which a pod must be ready before it counts.
    pub min_ready_seconds: u32,
    /// A malformed object is waited for in vain.
    pub object: Option<AwaitedObject>,
}

/// An object whose condition is waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AwaitedObject {
    /// Path of the block.
    pub at: FieldPath,
    pub kind: AwaitedKind,
    /// Name as written, with variables.
    pub name: String,
    /// Type of the condition that must be True.
    pub condition: String,
}

/// Kind of an object that is waited for, whatever its version.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AwaitedKind {
    /// API group; empty for the core group.
    pub group: String,
    pub kind: String,
}

impl AwaitedKind {
    /// Reports whether it is this kind, in any version.
    pub fn is(&self, kind: ObjectKind) -> bool {
        self.group == kind.group && self.kind == kind.kind
    }

    pub fn of(kind: ObjectKind) -> Self {
        Self { group: kind.group.to_owned(), kind: kind.kind.to_owned() }
    }
}

/// `Job.batch`, as in `--ready-kinds`.
impl fmt::Display for AwaitedKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { group, kind } = self;
        if group.is_empty() { f.write_str(kind) } else { write!(f, "{kind}.{group}") }
    }
}

impl ReadyWhen {
    /// Reads the field of a block. `variable` is the one that the name of the object may contain.
    pub(super) fn parse(written: &api::coordination::ReadyWhen, block: &mut Reader<'_>, variable: &str) -> Self {
        let mut fields = block.within("ready-when", "readyWhen");
        let seconds = written.min_ready_seconds;
        let read = seconds.and_then(|read| u32::try_from(read).ok()).filter(|read| *read <= LONGEST);
        if let (Some(seconds), None) = (seconds, read) {
            fields.wrong(fields.at.child("minReadySeconds"), Some(seconds.to_string()), "must be from 0 to 31536000");
        }
        let object = written.object.as_ref();
        let object =
            object.map(|written| AwaitedObject::parse(written, fields.within(fields.rule, "object"), variable));
        Self { min_ready_seconds: read.unwrap_or(0), object, at: fields.at }
    }
}

impl AwaitedObject {
    fn parse(written: &api::coordination::AwaitedObject, mut fields: Reader<'_>, variable: &str) -> Self {
        let (group, version) = written.api_version.split_once('/').unwrap_or(("", &written.api_version));
        let mut wrong = |field: &'static str, value: &str, detail: &str| {
            fields.wrong(fields.at.child(field), quoted(value).filter(|_| !value.is_empty()), detail);
        };
        if version.is_empty() || version.contains('/') {
            wrong("apiVersion", &written.api_version, "must be the API version of the object, such as batch/v1");
        }
        if written.kind.is_empty() {
            wrong("kind", "", "must name the kind of the object");
        }
        if written.name.is_empty() {
            wrong("name", "", "must name the object");
        } else if subdomain_fault(&written.name.replace(variable, "0")).is_some() {
            let detail = if variable == STEP_VARIABLE { MUST_BE_A_NAME_OF_STEPS } else { MUST_BE_A_NAME_OF_SEGMENTS };
            wrong("name", &written.name, detail);
        }
        let condition = written.condition.as_deref().filter(|condition| !condition.is_empty());
        Self {
            kind: AwaitedKind { group: group.to_owned(), kind: written.kind.clone() },
            name: written.name.clone(),
            condition: condition.unwrap_or(READY).to_owned(),
            at: fields.at,
        }
    }

    /// Returns the name for this segment or step.
    pub fn name_of(&self, number: u32) -> String {
        let number = number.to_string();
        self.name.replace(SEGMENT_VARIABLE, &number).replace(STEP_VARIABLE, &number)
    }
}

const MUST_BE_A_NAME_OF_SEGMENTS: &str =
    "must be the name of an object, in which `$(SEGMENT)` is the number of the segment";
const MUST_BE_A_NAME_OF_STEPS: &str = "must be the name of an object, in which `$(STEP)` is the number of the step";

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parsed(object: &serde_json::Value) -> (ReadyWhen, Vec<String>) {
        let written = serde_json::from_value(json!({ "object": object })).unwrap();
        let mut faults = Vec::new();
        let read = ReadyWhen::parse(&written, &mut Reader::of_group(&mut faults), SEGMENT_VARIABLE);
        (read, faults.iter().map(|fault| fault.at.to_string()).collect())
    }

    #[test]
    fn the_condition_of_an_object_is_ready_unless_it_names_another() {
        let object = parsed(&json!({"apiVersion": "v1", "kind": "Pod", "name": "p"})).0.object.unwrap();
        assert_eq!((&*object.condition, &*object.kind.to_string()), ("Ready", "Pod"));
    }

    /// The other faults: `tests/cases/group/ready-when.yaml`.
    #[test]
    fn a_name_that_no_object_can_have_is_told() {
        for name in ["Warm", "", "warm_$(SEGMENT)"] {
            let (_, faults) = parsed(&json!({"apiVersion": "batch/v1", "kind": "Job", "name": name}));
            assert_eq!(faults, ["readyWhen.object.name"], "{name}");
        }
    }
}
