//! From an object to what is added to it at creation: patches built by hand, so that unknown fields stay as they are.

pub mod patch;
pub mod pod;

pub use patch::Patch;
pub use pod::{GroupLookup, PodMutation, mutate_pod};
