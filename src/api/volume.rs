//! Claims of volumes, volumes and their classes: which nodes a pod with a claim can run on.

use serde::{Deserialize, Serialize};

use super::scheduling::NodeSelector;
use super::{Meta, Object, ObjectKind, null_default};

/// `v1 PersistentVolumeClaim`.
pub const PERSISTENT_VOLUME_CLAIM: ObjectKind = ObjectKind {
    group: "",
    version: "v1",
    kind: "PersistentVolumeClaim",
    plural: "persistentvolumeclaims",
    namespaced: true,
};

/// `v1 PersistentVolume`.
pub const PERSISTENT_VOLUME: ObjectKind =
    ObjectKind { group: "", version: "v1", kind: "PersistentVolume", plural: "persistentvolumes", namespaced: false };

/// `storage.k8s.io/v1 StorageClass`.
pub const STORAGE_CLASS: ObjectKind = ObjectKind {
    group: "storage.k8s.io",
    version: "v1",
    kind: "StorageClass",
    plural: "storageclasses",
    namespaced: false,
};

/// A claim, as far as it leads to a volume or to a class.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct PersistentVolumeClaim {
    /// Metadata.
    #[serde(deserialize_with = "null_default")]
    pub metadata: Meta,
    /// Spec.
    #[serde(deserialize_with = "null_default")]
    pub spec: ClaimSpec,
}

/// The fields of a claim's spec that are read.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClaimSpec {
    /// The volume that it is bound to.
    #[serde(deserialize_with = "null_default")]
    pub volume_name: String,
    /// The class of the volume that it waits for.
    #[serde(deserialize_with = "null_default")]
    pub storage_class_name: String,
}

/// A volume, as far as not every node reaches it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct PersistentVolume {
    /// Metadata.
    #[serde(deserialize_with = "null_default")]
    pub metadata: Meta,
    /// Spec.
    #[serde(deserialize_with = "null_default")]
    pub spec: VolumeSpec,
}

/// The fields of a volume's spec that are read.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct VolumeSpec {
    /// Which nodes reach it.
    #[serde(deserialize_with = "null_default")]
    pub node_affinity: VolumeNodeAffinity,
}

/// Which nodes reach a volume.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct VolumeNodeAffinity {
    /// All of them where it is absent.
    pub required: Option<NodeSelector>,
}

/// A class of volumes, as far as it says where they can be made.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StorageClass {
    /// Metadata.
    #[serde(deserialize_with = "null_default")]
    pub metadata: Meta,
    /// What makes its volumes.
    #[serde(deserialize_with = "null_default")]
    pub provisioner: String,
    /// `WaitForFirstConsumer` makes a volume where the pod goes.
    #[serde(deserialize_with = "null_default")]
    pub volume_binding_mode: String,
    /// Where volumes can be made; everywhere where it is empty.
    #[serde(deserialize_with = "null_default")]
    pub allowed_topologies: Vec<TopologyTerm>,
}

/// Labels of nodes, which must hold all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TopologyTerm {
    /// The labels.
    #[serde(deserialize_with = "null_default")]
    pub match_label_expressions: Vec<TopologyLabel>,
}

/// A label and its values, of which a node has one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct TopologyLabel {
    /// Key.
    pub key: String,
    /// Values.
    #[serde(deserialize_with = "null_default")]
    pub values: Vec<String>,
}

impl Object for PersistentVolumeClaim {
    fn meta(&self) -> &Meta {
        &self.metadata
    }
}

impl Object for PersistentVolume {
    fn meta(&self) -> &Meta {
        &self.metadata
    }
}

impl Object for StorageClass {
    fn meta(&self) -> &Meta {
        &self.metadata
    }
}
