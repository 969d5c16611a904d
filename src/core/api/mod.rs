//! Objects of the API server, rolegate's own and others: only the fields that are read, no logic.
//!
//! Every optional field may be absent or `null`; unknown fields are ignored.

pub mod affinity;
pub mod autoscaler;
pub mod cluster_topology;
pub mod conditioned;
pub mod coordinated_policy;
pub mod coordination;
pub mod crd;
pub mod definition;
pub mod device;
pub mod disruption_budget;
pub mod engine;
pub mod event;
pub mod grove;
pub mod int_or_string;
pub mod json;
pub mod meta;
pub mod node;
pub mod pod;
pub mod pod_group;
pub mod protobuf;
pub mod provisioning;
pub mod quantity;
pub mod rbg;
pub mod review;
pub mod role_coordination;
pub mod runtime_class;
pub mod scheduling;
pub mod selector;
pub mod service;
pub mod status;
pub mod volume;
pub mod webhook_configuration;
pub mod workload;

pub use cluster_topology::ClusterTopology;
pub use conditioned::ConditionedObject;
pub use coordinated_policy::CoordinatedPolicy;
pub use coordination::Coordination;
pub use grove::PodCliqueSet;
pub use int_or_string::IntOrString;
pub use meta::{Meta, Object, ObjectKind};
pub use node::Node;
pub use pod::Pod;
pub use pod_group::PodGroup;
pub use rbg::RoleBasedGroup;
pub use role_coordination::RoleCoordination;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use autoscaler::Autoscaler;
use definition::Definition;
use device::{DeviceClass, DeviceTaintRule, ResourceClaim, ResourceClaimTemplate, ResourceSlice};
use disruption_budget::PodDisruptionBudget;
use event::Event;
use meta::objects;
use pod_group::Topology;
use runtime_class::RuntimeClass;
use scheduling::SchedulingPod;
use service::Service;
use volume::{CsiDriver, CsiStorageCapacity, PersistentVolume, PersistentVolumeClaim, StorageClass};
use webhook_configuration::MutatingWebhookConfiguration;
use workload::{Deployment, LeaderWorkerSet, StatefulSet};

objects! {
    Autoscaler, ClusterTopology, ConditionedObject, CoordinatedPolicy, CsiDriver, CsiStorageCapacity, Definition,
    Deployment, DeviceClass, DeviceTaintRule, Event, LeaderWorkerSet, MutatingWebhookConfiguration, Node,
    PersistentVolume, PersistentVolumeClaim, Pod, PodCliqueSet, PodDisruptionBudget, PodGroup, ResourceClaim,
    ResourceClaimTemplate, ResourceSlice, RoleBasedGroup, RoleCoordination, RuntimeClass, SchedulingPod, Service,
    StatefulSet, StorageClass, Topology,
}

/// Reads `null` as the default, as the API server does.
pub(crate) fn null_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// Reads a value of an unexpected shape as the default. Anyone with the right can write a status, and an unreadable status must
/// not keep its object from being read: it counts as lost and is rewritten.
pub(crate) fn readable<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + DeserializeOwned,
{
    Ok(serde_json::from_value(Value::deserialize(deserializer)?).unwrap_or_default())
}
