//! ClusterTopology: the layers of a cluster's network (KEP-75, Cluster Topology Definition).

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Meta, Object, ObjectKind, null_default, readable};

pub const CLUSTER_TOPOLOGY: ObjectKind = ObjectKind {
    group: "rolegate.dev",
    version: "v1alpha1",
    kind: "ClusterTopology",
    plural: "clustertopologies",
    namespaced: false,
};

/// The same kind under the API group of KEP-75.
pub const CLUSTER_TOPOLOGY_KEP75: ObjectKind = ObjectKind { group: "workloads.x-k8s.io", ..CLUSTER_TOPOLOGY };

/// Both kinds; a topology name is looked up in each.
pub const CLUSTER_TOPOLOGIES: &[ObjectKind] = &[CLUSTER_TOPOLOGY, CLUSTER_TOPOLOGY_KEP75];

/// The layers of a cluster's network, written by its administrator.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ClusterTopology {
    pub metadata: Meta,
    /// Immutable.
    #[serde(deserialize_with = "null_default")]
    pub spec: ClusterTopologySpec,
    #[serde(deserialize_with = "readable")]
    pub status: ClusterTopologyStatus,
}

/// Layers and how wide they are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterTopologySpec {
    /// Layers, from narrow to wide unless `topologyScope` says otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1), extend("x-kubernetes-list-type" = "atomic"))]
    pub layers: Option<Vec<TopologyLayer>>,
    /// The same, in the spelling of KEP-75.
    #[serde(rename = "Layers", skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1), extend("x-kubernetes-list-type" = "atomic"))]
    pub layers_kep75: Option<Vec<TopologyLayer>>,
    /// How wide each layer is: larger numbers are wider and slower domains.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topology_scope: Option<BTreeMap<String, i64>>,
}

/// A layer: the nodes that share a value of its label form one domain.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct TopologyLayer {
    /// Name that coordinations refer to, `host`.
    #[serde(deserialize_with = "null_default")]
    pub name: String,
    /// Node label, `kubernetes.io/hostname`.
    #[serde(deserialize_with = "null_default")]
    pub key: String,
}

/// What is said of the layers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterTopologyStatus {
    /// The layers from narrow to wide, `Host < TOR < Pod`.
    #[serde(deserialize_with = "readable")]
    pub current_topology_level: String,
    /// True when the layers are well-formed; no coordination may refer to a topology where it is false.
    #[serde(deserialize_with = "readable", skip_serializing_if = "Option::is_none")]
    pub validate: Option<bool>,
}

impl ClusterTopologySpec {
    /// Returns the layers in list order, in either spelling.
    pub fn layers(&self) -> &[TopologyLayer] {
        self.layers.as_deref().or(self.layers_kep75.as_deref()).unwrap_or_default()
    }
}

impl Object for ClusterTopology {
    fn meta(&self) -> &Meta {
        &self.metadata
    }
}
