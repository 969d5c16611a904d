//! What is observed: pods, counted by role and ordinal.

pub mod counts;
mod group;
mod ordinals;
mod pod;
mod replica;
mod snapshot;
mod stamp;

pub use counts::ObservedCounts;
pub use group::GroupView;
pub use pod::{HeldPod, PodFacts, PodRef};
pub(in crate::plan) use replica::count;
pub use replica::{Replica, RoleView};
pub use snapshot::Snapshot;
pub use stamp::Stamp;
