//! How much rolegate does: all of it, all but refusing, or nothing but looking.

use serde::Deserialize;

/// How much rolegate does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Mode {
    /// What breaks a rule is refused; pods are held, rollouts are frozen.
    #[default]
    Enforce,
    /// What breaks a rule is let in with a warning; pods are held, rollouts are frozen.
    Warn,
    /// Nothing is refused, warned about, changed or written. What would have been is told in audit annotations, metrics and the
    /// log.
    Observe,
}

impl Mode {
    /// All of them, the strictest first.
    pub const ALL: &[Self] = &[Self::Enforce, Self::Warn, Self::Observe];

    /// As flags, labels and metrics have it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Enforce => "enforce",
            Self::Warn => "warn",
            Self::Observe => "observe",
        }
    }

    /// Reads a word; `None` for any other.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|mode| mode.as_str() == word)
    }
}
