//! Mutation of objects at creation, by handmade patches that preserve unknown fields.

mod additions;
pub mod affinity;
mod born;
mod context;
pub mod discovery;
pub mod engine;
pub mod env;
pub mod expand;
pub mod labels;
mod membership;
pub mod patch;
pub mod pod;
pub mod rollout;
mod selector;
pub mod subgroup;
mod terms;
pub mod topology;

pub use additions::Entry;
pub use born::{Outdated, born};
pub use context::{GroupLookup, Lookups, PodSettings, Subject, TopologyLookup};
pub use discovery::{Discovery, discover};
pub use engine::{engine_needs_group, engine_of, engine_of_foreign, presets};
pub use labels::late_labels;
pub use patch::Patch;
pub use pod::{PodMutation, mutate_pod};
pub use topology::protect_topology;
