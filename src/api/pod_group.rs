//! KAI's PodGroup and Topology, in all dialects: the hierarchical PodGroup design (`topologyConstraints`, a `minMember`
//! that counts child subgroups), what KAI serves since v0.15 (`minSubGroup`, singular `topologyConstraint`), and before.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Meta, Object, ObjectKind, null_default};

/// `scheduling.run.ai/v2alpha2 PodGroup`.
pub const POD_GROUP: ObjectKind = ObjectKind {
    group: "scheduling.run.ai",
    version: "v2alpha2",
    kind: "PodGroup",
    plural: "podgroups",
    namespaced: true,
};

/// `PodGroup` of the scheduler plugins.
pub const KUBE_POD_GROUP: ObjectKind = ObjectKind { group: "scheduling.x-k8s.io", version: "v1alpha1", ..POD_GROUP };

/// `PodGroup` of Volcano.
pub const VOLCANO_POD_GROUP: ObjectKind =
    ObjectKind { group: "scheduling.volcano.sh", version: "v1beta1", ..POD_GROUP };

/// `kai.scheduler/v1alpha1 Topology`: the levels that constraints name.
pub const TOPOLOGY: ObjectKind = ObjectKind {
    group: "kai.scheduler",
    version: "v1alpha1",
    kind: "Topology",
    plural: "topologies",
    namespaced: false,
};

/// Pods that are scheduled as a gang.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PodGroup {
    /// Metadata.
    #[serde(deserialize_with = "null_default")]
    pub metadata: Meta,
    /// Spec.
    #[serde(deserialize_with = "null_default")]
    pub spec: PodGroupSpec,
}

/// The fields of a PodGroup's spec that are read.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodGroupSpec {
    /// Least number of members: pods (KAI), top-level subgroups (the design).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_member: Option<i64>,
    /// Least number of top-level subgroups (KAI ≥ v0.15).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_sub_group: Option<i64>,
    /// preemptible or non-preemptible (KAI ≥ v0.15).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preemptibility: Option<String>,
    /// Scheduling cycles to try; only −1 and 1 mean something.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduling_backoff: Option<i64>,
    /// Constraint over all pods (KAI ≥ v0.15). KAI's own clients write `{}` for none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topology_constraint: Option<TopologyConstraint>,
    /// Constraints of the whole, of subgroups and of sets of subgroups (the design).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topology_constraints: Option<TopologyConstraints>,
    /// Parts of the gang, a forest by `parent`.
    #[serde(deserialize_with = "null_default", skip_serializing_if = "Vec::is_empty")]
    pub sub_groups: Vec<SubGroup>,
}

/// A part of a gang.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SubGroup {
    /// Name, unique in the PodGroup; pods name it in a label.
    #[serde(deserialize_with = "null_default")]
    pub name: String,
    /// Name of the subgroup above; `""` is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// Least number of members: pods in a leaf, else child subgroups (the design), or pods as well (KAI < v0.15).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_member: Option<i64>,
    /// Least number of child subgroups (KAI ≥ v0.15).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_sub_group: Option<i64>,
    /// Constraint over the pods of the subgroup (KAI ≥ v0.15).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topology_constraint: Option<TopologyConstraint>,
}

/// Constraints at three levels (the design).
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TopologyConstraints {
    /// For pods without a more special constraint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub global: Option<TopologyConstraint>,
    /// By name of subgroup.
    #[serde(deserialize_with = "null_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub sub_groups: BTreeMap<String, Option<TopologyConstraint>>,
    /// Constraints that several subgroups keep together.
    #[serde(deserialize_with = "null_default", skip_serializing_if = "Vec::is_empty")]
    pub sub_group_sets: Vec<SubGroupSet>,
}

/// Subgroups that keep one constraint together.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SubGroupSet {
    /// Names of the subgroups.
    #[serde(deserialize_with = "null_default")]
    pub sub_groups: Vec<String>,
    /// Their constraint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub constraint: Option<TopologyConstraint>,
}

/// Where pods go, in terms of a topology's levels.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TopologyConstraint {
    /// Name of the object that defines the levels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topology: Option<String>,
    /// All pods share one domain of this level.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub required_topology_level: Option<String>,
    /// They share one domain of this level if possible.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preferred_topology_level: Option<String>,
}

/// KAI's Topology.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Topology {
    /// Metadata.
    #[serde(deserialize_with = "null_default")]
    pub metadata: Meta,
    /// Spec.
    #[serde(deserialize_with = "null_default")]
    pub spec: TopologySpec,
}

/// The levels of a topology.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TopologySpec {
    /// From wide to narrow.
    #[serde(deserialize_with = "null_default")]
    pub levels: Vec<TopologyLevel>,
}

/// A level of a topology.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TopologyLevel {
    /// Label whose values are the domains.
    #[serde(deserialize_with = "null_default")]
    pub node_label: String,
    /// Another name for the level.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alias: Option<String>,
}

impl Object for PodGroup {
    fn meta(&self) -> &Meta {
        &self.metadata
    }
}

impl Object for Topology {
    fn meta(&self) -> &Meta {
        &self.metadata
    }
}
