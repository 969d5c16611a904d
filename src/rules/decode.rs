//! Reading JSON, with errors that name the field.

use serde::Deserialize;

use super::{Cause, Severity, Violation};
use crate::model::FieldPath;

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
    // Following the path costs more than reading; only what cannot be read is read twice.
    if let Ok(object) = serde_json::from_str(json) {
        return Ok(object);
    }
    let mut reader = serde_json::Deserializer::from_str(json);
    serde_path_to_error::deserialize(&mut reader).map_err(|error| DecodeError {
        path: error.path().to_string(),
        // The position is that of the request's body, which nobody sees.
        message: error.inner().to_string().split(" at line ").next().unwrap_or_default().to_owned(),
    })
}
