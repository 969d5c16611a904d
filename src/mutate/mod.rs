//! From an object to what is added to it at creation: patches built by hand, so that unknown fields stay as they are.

pub mod discovery;
pub mod env;
pub mod patch;
pub mod pod;
pub mod subgroup;

pub use discovery::{Discovery, discover};
pub use patch::Patch;
pub use pod::{GroupLookup, PodMutation, mutate_pod};
pub use subgroup::fill_in_subgroup;
