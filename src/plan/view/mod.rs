//! What is observed: pods, counted by role and ordinal.

pub mod counts;
mod group;
mod last_words;
mod ordinals;
mod pod;
mod pods;
mod replica;
mod replicas;
mod role;
mod snapshot;
mod stamp;

pub use counts::ObservedCounts;
pub use group::GroupView;
pub use last_words::{LastWords, Leaving, LossKind};
pub use pod::{HeldPod, LabelledPlace, PodFacts, PodRef};
pub use pods::{GroupPods, RolePods};
pub(in crate::plan) use replica::count;
pub use replica::{Replica, ReplicaIs};
pub use replicas::Replicas;
pub use role::RoleView;
pub use snapshot::Snapshot;
pub use stamp::Stamp;
