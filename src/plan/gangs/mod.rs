//! KAI PodGroups that ask to be placed, on a scheduler that knows of no gangs: a tree of gangs with levels of a topology, of
//! which the minimum goes at once or not at all, and the rest as it fits.
//!
//! `shape` of the tree → `grow` which pods go → `taken` the room that these have → `decide` where to, or why not.

pub mod decide;
mod grow;
pub mod shape;
mod taken;

pub use decide::{TreeDecision, TreeHeld, TreePlan, TreePod, TreeSnapshot, decide};
pub use shape::{Level, Shape};

#[cfg(test)]
mod gangs_tests;
