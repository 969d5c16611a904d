//! Decoding of JSON, with errors in words of the field instead of the library's.

use serde::Deserialize;
use serde_json::Value;
use serde_json::error::Category;
use serde_path_to_error::Segment;

use super::names::hint;
use super::{Cause, Severity, Violation};
use crate::model::FieldPath;

/// An object without the shape of its kind. It may be of a newer schema.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{message}", self.prefix())]
pub struct DecodeError {
    /// Path of the field; empty for the whole.
    pub path: FieldPath,
    /// The expected value.
    pub message: String,
}

impl DecodeError {
    /// Returns the error as a violation, for callers that refuse such objects.
    pub fn violation(&self) -> Violation {
        Violation {
            rule: "schema",
            severity: Severity::Error,
            path: self.path.clone(),
            cause: Cause::Invalid,
            value: None,
            detail: self.message.clone(),
            subject: String::new(),
        }
    }

    fn prefix(&self) -> String {
        if self.path.is_empty() { String::new() } else { format!("{}: ", self.path) }
    }

    fn of(error: &serde_json::Error, at: FieldPath) -> Self {
        let text = error.to_string();
        // The position refers to a text that users do not see, such as a request body.
        let text = text.split(" at line ").next().unwrap_or_default();
        if error.classify() != Category::Data {
            let words = SYNTAX.iter().find(|(start, _)| text.starts_with(start)).map_or(text, |(_, words)| words);
            return Self { path: FieldPath::default(), message: format!("not JSON: {words}") };
        }
        let (path, message) = in_words(text, at);
        Self { path, message }
    }
}

impl From<&serde_json::Error> for DecodeError {
    fn from(error: &serde_json::Error) -> Self {
        Self::of(error, FieldPath::default())
    }
}

impl From<serde_json::Error> for DecodeError {
    fn from(error: serde_json::Error) -> Self {
        Self::from(&error)
    }
}

impl From<serde_path_to_error::Error<serde_json::Error>> for DecodeError {
    fn from(error: serde_path_to_error::Error<serde_json::Error>) -> Self {
        Self::of(error.inner(), field_path(error.path()))
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
    let object = serde_path_to_error::deserialize(&mut reader)?;
    reader.end()?;
    Ok(object)
}

/// Decodes a JSON value; an error names the field.
///
/// # Errors
///
/// When a field that is read has another type.
pub fn decode_value<'a, T: Deserialize<'a>>(value: &'a Value) -> Result<T, DecodeError> {
    if let Ok(object) = T::deserialize(value) {
        return Ok(object);
    }
    Ok(serde_path_to_error::deserialize(value)?)
}

fn field_path(path: &serde_path_to_error::Path) -> FieldPath {
    path.iter().fold(FieldPath::default(), |at, segment| match segment {
        Segment::Seq { index } => at.index(*index),
        // Such a key is no name of a field, and would read as several.
        Segment::Map { key } if key.contains(['.', '/', '[']) => at.key(key),
        Segment::Map { key } => at.child(key.clone()),
        Segment::Enum { variant } => at.child(variant.clone()),
        Segment::Unknown => at,
    })
}

/// Beginnings of messages about text that is not JSON, in plain words.
const SYNTAX: &[(&str, &str)] = &[
    ("EOF while parsing", "it ends too early"),
    ("expected value", "a value is missing"),
    ("expected ident", "a word is none of true, false and null"),
    ("trailing characters", "more follows after its end"),
    ("trailing comma", "a comma is too many"),
    ("key must be a string", "a key is not a string"),
    ("control character", "a string has a control character"),
    ("lone leading surrogate", "a string has half of an escaped character"),
    ("unexpected end of hex escape", "a string has half of an escaped character"),
    ("recursion limit exceeded", "it is nested too deep"),
];

/// Names of number types, and their ranges.
const NUMBERS: &[(&str, &str)] = &[
    ("i64", ""),
    ("u64", " of 0 or more"),
    ("i32", " from -2147483648 to 2147483647"),
    ("u32", " from 0 to 4294967295"),
    ("u16", " from 0 to 65535"),
    ("u8", " from 0 to 255"),
];

/// Largest number of characters of a value in a message.
const SHOWN: usize = 60;

/// Rewrites a message of serde about a value at a path, as `must be a list, and is "x"`, with the path of the faulty field.
fn in_words(message: &str, at: FieldPath) -> (FieldPath, String) {
    let mut names = message.split('`').skip(1).step_by(2);
    let (what, name) = (message.split(" `").next().unwrap_or_default(), names.next().unwrap_or_default());
    let names: Vec<_> = names.collect();
    let field = || if at.ends_with(name) { at.clone() } else { at.child(name.to_owned()) };
    match what {
        "missing field" => (field(), "must be set".to_owned()),
        "duplicate field" => (field(), "is set twice".to_owned()),
        "unknown field" if names.is_empty() => (field(), "no such field".to_owned()),
        "unknown field" => {
            let hint = hint(name, names.iter().copied());
            (field(), format!("no such field; the fields are {}{hint}", names.join(", ")))
        }
        "unknown variant" => (at, format!("must be {}, and is {name:?}", one_of(&names))),
        _ => (at, typed(message)),
    }
}

fn one_of(words: &[&str]) -> String {
    let quoted: Vec<_> = words.iter().map(|word| format!("{word:?}")).collect();
    match quoted.as_slice() {
        [one] => one.clone(),
        all => format!("one of {}", all.join(", ")),
    }
}

/// Rewrites a message about the type or range of a value.
fn typed(message: &str) -> String {
    let of_type = message.strip_prefix("invalid type: ").map(|told| (told, false));
    let told = of_type.or_else(|| message.strip_prefix("invalid value: ").map(|told| (told, true)));
    let Some((is_of_range, found, expected)) = told.and_then(|(told, is_of_range)| {
        told.rsplit_once(", expected ").map(|(found, must)| (is_of_range, found, must))
    }) else {
        return message.to_owned();
    };
    let number = NUMBERS.iter().find(|(name, _)| *name == expected);
    let expected = match (expected, number) {
        (_, Some((_, range))) if is_of_range => format!("a whole number{range}"),
        (_, Some(_)) => "a whole number".to_owned(),
        ("f64" | "f32", _) => "a number".to_owned(),
        ("a map", _) => "an object".to_owned(),
        ("a sequence", _) => "a list".to_owned(),
        ("string or map", _) => "a string".to_owned(),
        (text, _) if text.starts_with("struct ") => "an object".to_owned(),
        (text, _) => text.to_owned(),
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
        assert_eq!(
            told(r#"{"metadata": {"labels": {"app.kubernetes.io/name": 5}}}"#),
            "metadata.labels[app.kubernetes.io/name]: must be a string, and is 5"
        );
        assert_eq!(told("5"), "must be an object, and is 5");
        let long = told(&format!(r#"{{"metadata": "{}"}}"#, "x".repeat(1000)));
        assert!(long.len() < 120 && long.ends_with('…'), "{long}");
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Strict {
        #[serde(rename = "size")]
        _size: u16,
        #[serde(default, rename = "mode")]
        _mode: Option<Mode>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "camelCase")]
    enum Mode {
        Fast,
        Slow,
    }

    #[test]
    fn what_is_missing_unknown_or_out_of_range_is_told_with_its_field() {
        let told = |json: &str| decode::<Vec<Strict>>(json).unwrap_err().to_string();
        assert_eq!(told("[{}]"), "[0].size: must be set");
        assert_eq!(told(r#"[{"size": 1, "size": 2}]"#), "[0].size: is set twice");
        assert_eq!(
            told(r#"[{"sise": 1}]"#),
            r#"[0].sise: no such field; the fields are size, mode; did you mean "size"?"#
        );
        assert_eq!(told(r#"[{"size": 1, "mode": "fat"}]"#), r#"[0].mode: must be one of "fast", "slow", and is "fat""#);
        assert_eq!(told(r#"[{"size": 99999}]"#), "[0].size: must be a whole number from 0 to 65535, and is 99999");
        let value = serde_json::json!([{ "size": -1 }]);
        let error = decode_value::<Vec<Strict>>(&value).unwrap_err();
        assert_eq!(error.to_string(), "[0].size: must be a whole number from 0 to 65535, and is -1");
        assert!(matches!(Mode::Fast, Mode::Fast | Mode::Slow));
    }

    #[test]
    fn text_that_is_not_json_is_told_without_the_words_of_a_parser() {
        let told = |json: &str| decode::<Pod>(json).unwrap_err().to_string();
        assert_eq!(told(""), "not JSON: it ends too early");
        assert_eq!(told(r#"{"metadata": {"name": "#), "not JSON: it ends too early");
        assert_eq!(told("{} {}"), "not JSON: more follows after its end");
        assert_eq!(told(r#"{"metadata": }"#), "not JSON: a value is missing");
    }
}
