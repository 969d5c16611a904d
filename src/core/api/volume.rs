//! PersistentVolumeClaims, PersistentVolumes and StorageClasses: the nodes that a pod with a claim can run on.

use serde::{Deserialize, Serialize};

use super::scheduling::NodeSelector;
use super::{Meta, Object, ObjectKind, null_default};

pub const PERSISTENT_VOLUME_CLAIM: ObjectKind = ObjectKind {
    group: "",
    version: "v1",
    kind: "PersistentVolumeClaim",
    plural: "persistentvolumeclaims",
    namespaced: true,
};

pub const PERSISTENT_VOLUME: ObjectKind =
    ObjectKind { group: "", version: "v1", kind: "PersistentVolume", plural: "persistentvolumes", namespaced: false };

pub const STORAGE_CLASS: ObjectKind = ObjectKind {
    group: "storage.k8s.io",
    version: "v1",
    kind: "StorageClass",
    plural: "storageclasses",
    namespaced: false,
};

/// A claim, limited to the volume and the class that it refers to.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct PersistentVolumeClaim {
    #[serde(deserialize_with = "null_default")]
    pub metadata: Meta,
    #[serde(deserialize_with = "null_default")]
    pub spec: ClaimSpec,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClaimSpec {
    /// Name of the bound volume.
    #[serde(deserialize_with = "null_default")]
    pub volume_name: String,
    /// Name of the class that provides the volume.
    #[serde(deserialize_with = "null_default")]
    pub storage_class_name: String,
}

/// A volume, limited to the nodes that can reach it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct PersistentVolume {
    #[serde(deserialize_with = "null_default")]
    pub metadata: Meta,
    #[serde(deserialize_with = "null_default")]
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
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StorageClass {
    #[serde(deserialize_with = "null_default")]
    pub metadata: Meta,
    /// The driver that creates the volumes.
    #[serde(deserialize_with = "null_default")]
    pub provisioner: String,
    /// `WaitForFirstConsumer` creates a volume where the pod runs.
    #[serde(deserialize_with = "null_default")]
    pub volume_binding_mode: String,
    /// Where volumes can be created; empty is everywhere.
    #[serde(deserialize_with = "null_default")]
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
