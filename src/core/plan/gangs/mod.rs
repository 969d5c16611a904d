//! Placement of KAI PodGroups on a scheduler without gangs: a tree of gangs with levels of a topology, whose minimum is
//! released at once or not at all, and the rest as it fits.
//!
//! `shape` of the tree → `grow` selection of pods → `taken` room of these pods → `decide` their places, or the reason to hold
//! them.

pub mod decide;
mod grow;
pub mod shape;
mod taken;

pub use decide::{TreeDecision, TreeHeld, TreePlan, TreePod, TreeSnapshot, decide};
pub use shape::{Level, Shape};

#[cfg(test)]
mod gangs_tests;
