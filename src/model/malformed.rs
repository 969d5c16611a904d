//! Fields that are missing, or not of the form that is read.

use super::FieldPath;

/// A field that is missing, or not of the form that is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// Its path.
    pub at: FieldPath,
    /// What is written there, as JSON; `None` when it is missing.
    pub value: Option<String>,
    /// What must hold.
    pub detail: &'static str,
}

impl Malformed {
    pub(super) fn missing(at: FieldPath, detail: &'static str) -> Self {
        Self { at, value: None, detail }
    }
}
