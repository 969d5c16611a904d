//! A number, or a string such as `25%`.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, expecting = "must be a number or a percentage such as \"25%\"")]
pub enum IntOrString {
    Int(i64),
    String(String),
}

impl IntOrString {
    /// Returns 25 for `25%`; `None` for anything but a whole percentage from 0 to 100.
    pub fn percent(&self) -> Option<u32> {
        match self {
            Self::Int(_) => None,
            Self::String(text) => percent(text),
        }
    }
}

/// Returns 25 for `25%`; `None` for anything but a whole percentage from 0 to 100.
pub fn percent(text: &str) -> Option<u32> {
    let digits = text.strip_suffix('%')?;
    let plain = !digits.is_empty() && digits.len() <= 3 && digits.bytes().all(|digit| digit.is_ascii_digit());
    digits.parse().ok().filter(|percent| plain && *percent <= 100)
}

impl fmt::Display for IntOrString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(value) => value.fmt(f),
            Self::String(value) => write!(f, "{value:?}"),
        }
    }
}

impl JsonSchema for IntOrString {
    fn schema_name() -> Cow<'static, str> {
        "IntOrString".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "x-kubernetes-int-or-string": true })
    }
}
