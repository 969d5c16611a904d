//! Fields that are missing or of a wrong form.

use super::FieldPath;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Malformed {
    pub at: FieldPath,
    /// Value as JSON; `None` when the field is missing.
    pub value: Option<String>,
    /// Requirement that the field does not meet.
    pub detail: &'static str,
}

impl Malformed {
    pub(super) fn missing(at: FieldPath, detail: &'static str) -> Self {
        Self { at, value: None, detail }
    }
}
