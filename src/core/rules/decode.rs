//! Decoding of JSON, with errors that name the field.

use serde::Deserialize;

use super::{Cause, Severity, Violation};
use crate::model::FieldPath;

/// An object without the shape of its kind. It may be of a newer schema.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {message}")]
pub struct DecodeError {
    pub path: String,
    /// The expected value.
    pub message: String,
}

impl DecodeError {
    /// Returns the error as a violation, for callers that refuse such objects.
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

/// Decodes JSON; an error names the field.
///
/// # Errors
///
/// When a field that is read has another type.
pub fn decode<'a, T: Deserialize<'a>>(json: &'a str) -> Result<T, DecodeError> {
    // Tracking the path costs more than decoding: only faulty objects are decoded twice.
    if let Ok(object) = serde_json::from_str(json) {
        return Ok(object);
    }
    let mut reader = serde_json::Deserializer::from_str(json);
    serde_path_to_error::deserialize(&mut reader).map_err(|error| DecodeError {
        path: error.path().to_string(),
        // The position refers to the request body, which users do not see.
        message: in_words(error.inner().to_string().split(" at line ").next().unwrap_or_default()),
    })
}

/// Largest number of characters of a value in a message.
const SHOWN: usize = 60;

/// Rewrites a type error of serde as `must be a list, and is "x"`.
fn in_words(message: &str) -> String {
    let told = message.strip_prefix("invalid type: ").or_else(|| message.strip_prefix("invalid value: "));
    let Some((found, expected)) = told.and_then(|told| told.rsplit_once(", expected ")) else {
        return message.to_owned();
    };
    let is_number = |text: &str| ["i64", "u64", "i32", "u32", "u16", "u8"].contains(&text);
    let expected = match expected {
        "a map" => "an object",
        "a sequence" => "a list",
        text if text.starts_with("struct ") => "an object",
        text if is_number(text) => "a whole number",
        text => text,
    };
    let found = match found {
        "map" => "an object",
        "sequence" => "a list",
        // ``string "x"``, ``integer `5` ``, ``floating point `0.5` ``
        text => text.split_once(['"', '`']).map_or(text, |(kind, _)| text.trim_start_matches(kind)).trim_matches('`'),
    };
    let shown: String = found.chars().take(SHOWN).collect();
    let more = if shown.len() < found.len() { "…" } else { "" };
    format!("must be {expected}, and is {shown}{more}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::Pod;

    #[test]
    fn what_has_another_type_is_told_in_words_of_the_object() {
        let told = |json: &str| decode::<Pod>(json).unwrap_err().to_string();
        assert_eq!(told(r#"{"metadata": "x"}"#), r#"metadata: must be an object, and is "x""#);
        assert_eq!(told(r#"{"metadata": {"labels": 5}}"#), "metadata.labels: must be an object, and is 5");
        assert_eq!(told(r#"{"spec": {"containers": {}}}"#), "spec.containers: must be a list, and is an object");
        assert_eq!(told(r#"{"metadata": {"name": [1]}}"#), "metadata.name: must be a string, and is a list");
        assert_eq!(told(r#"{"metadata": {"labels": true}}"#), "metadata.labels: must be an object, and is true");
        let long = told(&format!(r#"{{"metadata": "{}"}}"#, "x".repeat(1000)));
        assert!(long.len() < 120 && long.ends_with('…'), "{long}");
    }
}
