//! When something is due.

use std::time::Duration;

/// Time since the loop was started.
pub type Uptime = Duration;

/// What is to be done about pods that are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::plan) enum ProbeStep {
    /// Nothing is missing, or an answer is on its way.
    Rest,
    /// Look again then.
    Wait(Uptime),
    /// Ask now.
    Ask,
}
