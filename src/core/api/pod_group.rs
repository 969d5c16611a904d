//! KAI's PodGroup and Topology in all dialects: the hierarchical PodGroup design (`topologyConstraints`, a `minMember` that
//! counts child subgroups), KAI ≥ v0.15 (`minSubGroup`, singular `topologyConstraint`), and earlier KAI.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_with::{apply, skip_serializing_none};

use super::{Meta, ObjectKind, null_default};

pub const POD_GROUP: ObjectKind = ObjectKind::namespaced("scheduling.run.ai", "v2alpha2", "PodGroup", "podgroups");

/// `PodGroup` of the scheduler plugins.
pub const KUBE_POD_GROUP: ObjectKind = ObjectKind { group: "scheduling.x-k8s.io", version: "v1alpha1", ..POD_GROUP };

/// `PodGroup` of Volcano.
pub const VOLCANO_POD_GROUP: ObjectKind =
    ObjectKind { group: "scheduling.volcano.sh", version: "v1beta1", ..POD_GROUP };

/// PodGroups of all schedulers.
pub const POD_GROUPS: &[ObjectKind] = &[KUBE_POD_GROUP, VOLCANO_POD_GROUP, POD_GROUP];

/// The kind whose levels topology constraints name.
pub const TOPOLOGY: ObjectKind = ObjectKind::cluster_scoped("kai.scheduler", "v1alpha1", "Topology", "topologies");

/// Pods that are scheduled as a gang.
#[apply(_ => #[serde(deserialize_with = "null_default")])]
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PodGroup {
    pub metadata: Meta,
    pub spec: PodGroupSpec,
}

#[skip_serializing_none]
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodGroupSpec {
    /// Minimum number of members: pods (KAI) or top-level subgroups (the design).
    pub min_member: Option<i64>,
    /// Minimum number of top-level subgroups (KAI ≥ v0.15).
    pub min_sub_group: Option<i64>,
    /// preemptible or non-preemptible (KAI ≥ v0.15).
    pub preemptibility: Option<String>,
    /// Scheduling cycles to try; only −1 and 1 have a meaning.
    pub scheduling_backoff: Option<i64>,
    /// Constraint on all pods (KAI ≥ v0.15). KAI's own clients write `{}` for none.
    pub topology_constraint: Option<TopologyConstraint>,
    /// Constraints on the whole gang, on subgroups and on sets of subgroups (the design).
    pub topology_constraints: Option<TopologyConstraints>,
    /// Parts of the gang, a forest linked by `parent`.
    #[serde(deserialize_with = "null_default", skip_serializing_if = "Vec::is_empty")]
    pub sub_groups: Vec<SubGroup>,
}

/// A part of a gang.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SubGroup {
    /// Unique in the PodGroup; pods carry it in a label.
    #[serde(deserialize_with = "null_default")]
    pub name: String,
    /// Name of the parent subgroup; `""` is none.
    pub parent: Option<String>,
    /// Minimum number of members: pods in a leaf; elsewhere child subgroups (the design) or pods (KAI < v0.15).
    pub min_member: Option<i64>,
    /// Minimum number of child subgroups (KAI ≥ v0.15).
    pub min_sub_group: Option<i64>,
    /// Constraint on the pods of the subgroup (KAI ≥ v0.15).
    pub topology_constraint: Option<TopologyConstraint>,
}

/// Constraints at three levels (the design).
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TopologyConstraints {
    /// Applies to pods without a more specific constraint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub global: Option<TopologyConstraint>,
    /// By subgroup name.
    #[serde(deserialize_with = "null_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub sub_groups: BTreeMap<String, Option<TopologyConstraint>>,
    #[serde(deserialize_with = "null_default", skip_serializing_if = "Vec::is_empty")]
    pub sub_group_sets: Vec<SubGroupSet>,
}

/// Subgroups that must satisfy one constraint together.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SubGroupSet {
    #[serde(deserialize_with = "null_default")]
    pub sub_groups: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub constraint: Option<TopologyConstraint>,
}

/// Placement in terms of a topology's levels.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TopologyConstraint {
    /// Name of the Topology that defines the levels.
    pub topology: Option<String>,
    /// All pods must share one domain of this level.
    pub required_topology_level: Option<String>,
    /// All pods share one domain of this level if possible.
    pub preferred_topology_level: Option<String>,
}

#[apply(_ => #[serde(deserialize_with = "null_default")])]
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Topology {
    pub metadata: Meta,
    pub spec: TopologySpec,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TopologySpec {
    /// From wide to narrow.
    #[serde(deserialize_with = "null_default")]
    pub levels: Vec<TopologyLevel>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TopologyLevel {
    /// Node label whose values are the domains.
    #[serde(deserialize_with = "null_default")]
    pub node_label: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alias: Option<String>,
}
