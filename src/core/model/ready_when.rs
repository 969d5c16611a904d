//! Readiness of a batch, or of a step of a rollout, beyond that of its pods: a time for which pods are ready, and a condition of
//! another object.

use std::fmt;

use super::FieldPath;
use super::malformed::Malformed;
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
    pub object: Option<AwaitedObject>,
    /// Malformed fields; a malformed object is waited for in vain.
    pub malformed: Vec<Malformed>,
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
    /// Reads the block at `at`. `variable` is the one that the name of the object may contain.
    pub(super) fn parse(written: &api::coordination::ReadyWhen, at: FieldPath, variable: &str) -> Self {
        let mut malformed = Vec::new();
        let seconds = written.min_ready_seconds;
        let read = seconds.and_then(|read| u32::try_from(read).ok()).filter(|read| *read <= LONGEST);
        if let (Some(seconds), None) = (seconds, read) {
            let (at, value) = (at.child("minReadySeconds"), Some(seconds.to_string()));
            malformed.push(Malformed { at, value, detail: MUST_BE_SECONDS });
        }
        let object = written.object.as_ref().map(|written| {
            let object = AwaitedObject::parse(written, at.child("object"));
            malformed.extend(object.faults(written, variable));
            object
        });
        Self { min_ready_seconds: read.unwrap_or(0), object, malformed, at }
    }
}

impl AwaitedObject {
    fn parse(written: &api::coordination::AwaitedObject, at: FieldPath) -> Self {
        let group = written.api_version.split_once('/').map_or("", |(group, _)| group);
        let condition = written.condition.as_deref().filter(|condition| !condition.is_empty());
        Self {
            kind: AwaitedKind { group: group.to_owned(), kind: written.kind.clone() },
            name: written.name.clone(),
            condition: condition.unwrap_or(READY).to_owned(),
            at,
        }
    }

    /// Returns the name for this segment or step.
    pub fn name_of(&self, number: u32) -> String {
        let number = number.to_string();
        self.name.replace(SEGMENT_VARIABLE, &number).replace(STEP_VARIABLE, &number)
    }

    fn faults(&self, written: &api::coordination::AwaitedObject, variable: &str) -> Vec<Malformed> {
        let fault = |field: &str, value: &str, detail| {
            let value = (!value.is_empty()).then(|| format!("{value:?}"));
            Malformed { at: self.at.child(field.to_owned()), value, detail }
        };
        let mut all = Vec::new();
        let version = written.api_version.split_once('/').map_or(&*written.api_version, |(_, version)| version);
        if version.is_empty() || version.contains('/') {
            all.push(fault("apiVersion", &written.api_version, MUST_BE_AN_API_VERSION));
        }
        if self.kind.kind.is_empty() {
            all.push(fault("kind", "", MUST_NAME_A_KIND));
        }
        if self.name.is_empty() {
            all.push(fault("name", "", MUST_NAME_AN_OBJECT));
        } else if subdomain_fault(&self.name.replace(variable, "0")).is_some() {
            let detail = if variable == STEP_VARIABLE { MUST_BE_A_NAME_OF_STEPS } else { MUST_BE_A_NAME_OF_SEGMENTS };
            all.push(fault("name", &self.name, detail));
        }
        all
    }
}

const MUST_BE_SECONDS: &str = "must be from 0 to 31536000";
const MUST_BE_AN_API_VERSION: &str = "must be the API version of the object, such as batch/v1";
const MUST_NAME_A_KIND: &str = "must name the kind of the object";
const MUST_NAME_AN_OBJECT: &str = "must name the object";
const MUST_BE_A_NAME_OF_SEGMENTS: &str =
    "must be the name of an object, in which `$(SEGMENT)` is the number of the segment";
const MUST_BE_A_NAME_OF_STEPS: &str = "must be the name of an object, in which `$(STEP)` is the number of the step";

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parsed(object: &serde_json::Value) -> ReadyWhen {
        let written = serde_json::from_value(json!({ "object": object })).unwrap();
        ReadyWhen::parse(&written, FieldPath::new("readyWhen"), SEGMENT_VARIABLE)
    }

    #[test]
    fn the_condition_of_an_object_is_ready_unless_it_names_another() {
        let object = parsed(&json!({"apiVersion": "v1", "kind": "Pod", "name": "p"})).object.unwrap();
        assert_eq!((&*object.condition, &*object.kind.to_string()), ("Ready", "Pod"));
    }

    /// The other faults: `tests/cases/group/ready-when.yaml`.
    #[test]
    fn a_name_that_no_object_can_have_is_told() {
        for name in ["Warm", "", "warm_$(SEGMENT)"] {
            let read = parsed(&json!({"apiVersion": "batch/v1", "kind": "Job", "name": name}));
            let faults: Vec<_> = read.malformed.iter().map(|fault| fault.at.to_string()).collect();
            assert_eq!(faults, ["readyWhen.object.name"], "{name}");
        }
    }
}
