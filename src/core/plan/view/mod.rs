//! Observation: pods, counted by role and ordinal.

mod available;
mod awaited;
pub mod counts;
mod group;
mod home;
mod job;
mod last_words;
mod numbers;
mod ordinals;
mod pod;
mod pods;
mod replica;
mod replicas;
mod role;
mod snapshot;
mod stamp;
mod succeeded;

pub(in crate::plan) use awaited::Awaited;
pub use awaited::{AwaitedObjects, Lack, LackWhat, OfKind, SeenCondition, SeenKind, SeenObject};
pub use counts::ObservedCounts;
pub use group::GroupView;
pub use job::JobOf;
pub use last_words::{LastWords, Leaving, LossKind, NodeRefusal, kubelet_refusal};
pub(in crate::plan) use numbers::Numbers;
pub use pod::{Deletion, HeldPod, LabelledPlace, PodFacts, PodRef};
pub use pods::{GroupPods, RolePods};
pub(in crate::plan) use replica::count;
pub use replica::{Replica, ReplicaIs};
pub use replicas::Replicas;
pub use role::RoleView;
pub use snapshot::Snapshot;
pub use stamp::Stamp;
pub use succeeded::AllSucceeded;
