//! PersistentVolumeClaims, PersistentVolumes, StorageClasses, and the room for new volumes that CSI drivers tell: the nodes that a
//! pod with a claim can run on.

use serde::{Deserialize, Serialize};
use serde_with::apply;

use super::quantity::Quantity;
use super::scheduling::{NodeSelector, ResourceRequests};
use super::selector::LabelSelector;
use super::{Meta, ObjectKind, null_default};

pub const PERSISTENT_VOLUME_CLAIM: ObjectKind =
    ObjectKind::namespaced("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims");

pub const PERSISTENT_VOLUME: ObjectKind = ObjectKind::cluster_scoped("", "v1", "PersistentVolume", "persistentvolumes");

pub const STORAGE_CLASS: ObjectKind =
    ObjectKind::cluster_scoped("storage.k8s.io", "v1", "StorageClass", "storageclasses");

pub const CSI_DRIVER: ObjectKind = ObjectKind::cluster_scoped("storage.k8s.io", "v1", "CSIDriver", "csidrivers");

pub const CSI_STORAGE_CAPACITY: ObjectKind =
    ObjectKind::namespaced("storage.k8s.io", "v1", "CSIStorageCapacity", "csistoragecapacities");

/// The kinds that tell which nodes reach claims. The position of each is its argument of `Volumes::are_listed`.
pub const VOLUME_KINDS: [ObjectKind; 5] =
    [PERSISTENT_VOLUME_CLAIM, PERSISTENT_VOLUME, STORAGE_CLASS, CSI_DRIVER, CSI_STORAGE_CAPACITY];

/// A claim, limited to its size, and the volume and the class that it refers to.
#[apply(_ => #[serde(deserialize_with = "null_default")])]
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct PersistentVolumeClaim {
    pub metadata: Meta,
    pub spec: ClaimSpec,
}

#[apply(_ => #[serde(deserialize_with = "null_default")])]
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClaimSpec {
    /// Name of the bound volume.
    pub volume_name: String,
    /// Name of the class that provides the volume.
    pub storage_class_name: String,
    pub resources: ResourceRequests,
}

/// A volume, limited to the nodes that can reach it.
#[apply(_ => #[serde(deserialize_with = "null_default")])]
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct PersistentVolume {
    pub metadata: Meta,
    pub spec: VolumeSpec,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct VolumeSpec {
    #[serde(deserialize_with = "null_default")]
    pub node_affinity: VolumeNodeAffinity,
}

/// The nodes that can reach a volume.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct VolumeNodeAffinity {
    /// Absent means all nodes.
    pub required: Option<NodeSelector>,
}

/// A StorageClass, limited to where its volumes can be created.
#[apply(_ => #[serde(deserialize_with = "null_default")])]
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StorageClass {
    pub metadata: Meta,
    /// The driver that creates the volumes.
    pub provisioner: String,
    /// `WaitForFirstConsumer` creates a volume where the pod runs.
    pub volume_binding_mode: String,
    /// Where volumes can be created; empty is everywhere.
    pub allowed_topologies: Vec<TopologyTerm>,
}

/// Node labels, all of which must match.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TopologyTerm {
    #[serde(deserialize_with = "null_default")]
    pub match_label_expressions: Vec<TopologyLabel>,
}

/// A node label and its accepted values.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct TopologyLabel {
    pub key: String,
    #[serde(deserialize_with = "null_default")]
    pub values: Vec<String>,
}

/// A driver of volumes.
#[apply(_ => #[serde(deserialize_with = "null_default")])]
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct CsiDriver {
    pub metadata: Meta,
    pub spec: CsiDriverSpec,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CsiDriverSpec {
    /// Whether its volumes are created only where an object tells that there is room.
    #[serde(deserialize_with = "null_default")]
    pub storage_capacity: bool,
}

/// The room of a driver for new volumes of a class on some nodes.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CsiStorageCapacity {
    #[serde(deserialize_with = "null_default")]
    pub metadata: Meta,
    /// Absent selects none.
    pub node_topology: Option<LabelSelector>,
    pub storage_class_name: String,
    /// Room for all new volumes together.
    pub capacity: Option<Quantity>,
    /// Room for the largest new volume, if it is told.
    pub maximum_volume_size: Option<Quantity>,
}
