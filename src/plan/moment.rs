//! When something is due.

use std::time::Duration;

/// Time since the loop was started.
pub type Moment = Duration;

/// What is to be done about pods that are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Vigil {
    /// Nothing is missing, or an answer is on its way.
    Rest,
    /// Look again then.
    Wait(Moment),
    /// Ask now.
    Ask,
}
