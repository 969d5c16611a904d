//! Nodes: where pods can go.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::pod::{PodCondition, is_true};
use super::scheduling::Quantity;
use super::{Meta, Object, ObjectKind, null_default};

/// `v1 Node`.
pub const NODE: ObjectKind = ObjectKind { group: "", version: "v1", kind: "Node", plural: "nodes", namespaced: false };

/// A node, as far as it decides which pods go there.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Node {
    /// Metadata.
    #[serde(deserialize_with = "null_default")]
    pub metadata: Meta,
    /// Spec.
    #[serde(deserialize_with = "null_default")]
    pub spec: NodeSpec,
    /// Status.
    #[serde(deserialize_with = "null_default")]
    pub status: NodeStatus,
}

/// The fields of a node's spec that are read.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct NodeSpec {
    /// True for a cordoned node.
    #[serde(deserialize_with = "null_default")]
    pub unschedulable: bool,
    /// What a pod must tolerate to go there.
    #[serde(deserialize_with = "null_default", skip_serializing_if = "Vec::is_empty")]
    pub taints: Vec<Taint>,
}

/// An entry of `spec.taints`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Taint {
    /// Key.
    pub key: String,
    /// Value.
    #[serde(deserialize_with = "null_default")]
    pub value: String,
    /// NoSchedule, PreferNoSchedule or NoExecute.
    pub effect: String,
}

/// The fields of a node's status that are read.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct NodeStatus {
    /// What its pods may ask for together.
    #[serde(deserialize_with = "null_default")]
    pub allocatable: BTreeMap<String, Quantity>,
    /// Conditions, of which `Ready` is read.
    #[serde(deserialize_with = "null_default")]
    pub conditions: Vec<PodCondition>,
}

impl Object for Node {
    fn meta(&self) -> &Meta {
        &self.metadata
    }
}

impl Node {
    /// False while its kubelet does not answer, or has not yet.
    pub fn is_ready(&self) -> bool {
        is_true(&self.status.conditions, "Ready")
    }
}
