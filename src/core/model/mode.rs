//! Modes of rolegate: everything, everything but refusals, or observation only.

use serde::Deserialize;

use super::words::words;

words! {
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Mode {
    /// Objects that break a rule are refused; pods are held, rollouts are frozen.
    #[default]
    Enforce = "enforce",
    /// Objects that break a rule pass with a warning; pods are held, rollouts are frozen.
    Warn = "warn",
    /// Only a missing right of the author is refused, and nothing warned about, changed or written; audit annotations, metrics and
    /// the log report the omitted actions.
    Observe = "observe",
}
}
