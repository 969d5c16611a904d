//! Grove's PodCliqueSet and its former name PodGangSet: one shape under two kinds.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_with::{apply, skip_serializing_none};

use super::scheduling::SchedulingSpec;
use super::{Meta, ObjectKind, null_default, readable};

pub const POD_CLIQUE_SET: ObjectKind = ObjectKind::namespaced("grove.io", "v1alpha1", "PodCliqueSet", "podcliquesets");

/// The kind's name in the pod discovery design.
pub const POD_GANG_SET: ObjectKind = ObjectKind { kind: "PodGangSet", plural: "podgangsets", ..POD_CLIQUE_SET };

/// Cliques of pods, some of which scale together.
#[apply(_ => #[serde(deserialize_with = "null_default")])]
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PodCliqueSet {
    pub metadata: Meta,
    pub spec: PodCliqueSetSpec,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PodCliqueSetSpec {
    /// Copies of the whole set, 0 by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i64>,
    #[serde(deserialize_with = "null_default")]
    pub template: Template,
}

/// One copy of a set.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Template {
    #[serde(deserialize_with = "null_default")]
    pub cliques: Vec<CliqueTemplate>,
    #[serde(deserialize_with = "null_default", skip_serializing_if = "Vec::is_empty")]
    pub pod_clique_scaling_groups: Vec<ScalingGroup>,
}

/// Pods of one specification.
#[apply(_ => #[serde(deserialize_with = "null_default")])]
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CliqueTemplate {
    /// Name, unique in the set.
    pub name: String,
    /// Role of the pods, where the design's text and example place it; the design's API places it in the spec.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role_name: Option<String>,
    /// Annotations of the pods.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    pub spec: CliqueSpec,
}

#[skip_serializing_none]
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CliqueSpec {
    /// Role of the pods; Grove's own webhook writes `""` for none.
    pub role_name: Option<String>,
    /// Number of pods; absent and 0 both mean 1.
    pub replicas: Option<i64>,
    pub auto_scaling_config: Option<ScaleConfig>,
    #[serde(deserialize_with = "readable", skip_serializing)]
    pub pod_spec: SchedulingSpec,
}

/// Cliques that scale together.
#[skip_serializing_none]
#[apply(_ => #[serde(deserialize_with = "null_default")])]
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ScalingGroup {
    /// Name, unique in the set.
    pub name: String,
    pub clique_names: Vec<String>,
    /// Copies of these cliques in one copy of the set, 1 by default.
    pub replicas: Option<i64>,
    pub scale_config: Option<ScaleConfig>,
}

/// Bounds of autoscaling.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ScaleConfig {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_replicas: Option<i64>,
}
