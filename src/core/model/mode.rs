//! Modes of rolegate: everything, everything but refusals, or observation only.

use serde::Deserialize;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Mode {
    /// Objects that break a rule are refused; pods are held, rollouts are frozen.
    #[default]
    Enforce,
    /// Objects that break a rule pass with a warning; pods are held, rollouts are frozen.
    Warn,
    /// Only a missing right of the author is refused, and nothing warned about, changed or written; audit annotations, metrics and
    /// the log report the omitted actions.
    Observe,
}

impl Mode {
    /// All modes, the strictest first.
    pub const ALL: &[Self] = &[Self::Enforce, Self::Warn, Self::Observe];

    /// Returns the word in flags, labels and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Enforce => "enforce",
            Self::Warn => "warn",
            Self::Observe => "observe",
        }
    }

    /// Reads a word; `None` for an unknown one.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|mode| mode.as_str() == word)
    }
}
