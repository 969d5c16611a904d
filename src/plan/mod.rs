//! From what is observed to what is decided. Pure: no client, no clock.

pub mod conditions;
pub mod decide;
mod holds;
pub mod progression;
pub mod segments;
pub mod stamp;
#[cfg(test)]
mod test_support;
pub mod view;

pub use decide::{Circumstances, Decision, Held, Release, decide};
pub use progression::{CoordinationTarget, State, Targets, targets};
pub use view::{GroupView, PodFacts, PodRef, RoleView};
