//! Nodes, limited to the fields that decide which pods can run on them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_with::apply;

use super::pod::{PodCondition, is_true};
use super::quantity::Quantity;
use super::{Meta, ObjectKind, null_default};

pub const NODE: ObjectKind = ObjectKind::cluster_scoped("", "v1", "Node", "nodes");

#[apply(_ => #[serde(deserialize_with = "null_default")])]
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Node {
    pub metadata: Meta,
    pub spec: NodeSpec,
    pub status: NodeStatus,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct NodeSpec {
    /// True for a cordoned node.
    #[serde(deserialize_with = "null_default")]
    pub unschedulable: bool,
    #[serde(deserialize_with = "null_default", skip_serializing_if = "Vec::is_empty")]
    pub taints: Vec<Taint>,
}

/// An entry of `spec.taints`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Taint {
    pub key: String,
    #[serde(deserialize_with = "null_default")]
    pub value: String,
    /// NoSchedule, PreferNoSchedule or NoExecute.
    pub effect: String,
}

#[apply(_ => #[serde(deserialize_with = "null_default")])]
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct NodeStatus {
    /// Resources available to all pods of the node.
    pub allocatable: BTreeMap<String, Quantity>,
    /// Only `Ready` is read.
    pub conditions: Vec<PodCondition>,
    /// Features of the kubelet, from 1.36 on.
    #[serde(rename = "declaredFeatures", skip_serializing_if = "Vec::is_empty")]
    pub declared_features: Vec<String>,
}

impl Node {
    /// Reports whether condition `Ready` is `True`; it is not while the kubelet does not answer.
    pub fn is_ready(&self) -> bool {
        is_true(&self.status.conditions, "Ready")
    }
}
