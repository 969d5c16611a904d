//! ClusterTopology: the layers of a cluster's network (KEP-75, Cluster Topology Definition).

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::{apply, skip_serializing_none};

use super::{Meta, ObjectKind, null_default, readable};

pub const CLUSTER_TOPOLOGY: ObjectKind =
    ObjectKind::cluster_scoped("rolegate.dev", "v1alpha1", "ClusterTopology", "clustertopologies");

/// The same kind under the API group of KEP-75.
pub const CLUSTER_TOPOLOGY_KEP75: ObjectKind = ObjectKind { group: "workloads.x-k8s.io", ..CLUSTER_TOPOLOGY };

/// Both kinds; a topology name is looked up in each.
pub const CLUSTER_TOPOLOGIES: &[ObjectKind] = &[CLUSTER_TOPOLOGY, CLUSTER_TOPOLOGY_KEP75];

/// Layers of a cluster's network, written by its administrator.
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

/// Layers of the topology.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterTopologySpec {
    /// Layers, from narrow to wide unless `topologyScope` orders them.
    #[schemars(length(min = 1), extend("x-kubernetes-list-type" = "atomic"))]
    pub layers: Option<Vec<TopologyLayer>>,
    /// KEP-75's spelling of `layers`.
    #[serde(rename = "Layers")]
    #[schemars(length(min = 1), extend("x-kubernetes-list-type" = "atomic"))]
    pub layers_kep75: Option<Vec<TopologyLayer>>,
    /// Width of each layer: larger numbers are wider domains.
    pub topology_scope: Option<BTreeMap<String, i64>>,
}

/// A layer: the nodes that share a value of its label form one domain.
#[apply(_ => #[serde(deserialize_with = "null_default")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct TopologyLayer {
    /// Name of the layer, `host`.
    pub name: String,
    /// Node label, `kubernetes.io/hostname`.
    pub key: String,
}

/// State of the layers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterTopologyStatus {
    /// Layers from narrow to wide, `Host < TOR < Pod`.
    #[serde(deserialize_with = "readable")]
    pub current_topology_level: String,
    /// Whether the layers are valid; coordinations may refer to valid topologies only.
    #[serde(deserialize_with = "readable", skip_serializing_if = "Option::is_none")]
    pub validate: Option<bool>,
}

impl ClusterTopologySpec {
    /// Returns the layers in list order, in either spelling.
    pub fn layers(&self) -> &[TopologyLayer] {
        self.layers.as_deref().or(self.layers_kep75.as_deref()).unwrap_or_default()
    }
}
