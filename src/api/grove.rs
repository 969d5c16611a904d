//! Grove's PodCliqueSet, and PodGangSet as it was called before: one shape under two kinds.

use serde::{Deserialize, Serialize};

use super::{Meta, Object, ObjectKind, null_default};

/// `grove.io/v1alpha1 PodCliqueSet`.
pub const POD_CLIQUE_SET: ObjectKind = ObjectKind {
    group: "grove.io",
    version: "v1alpha1",
    kind: "PodCliqueSet",
    plural: "podcliquesets",
    namespaced: true,
};

/// The same under the kind of the pod discovery design.
pub const POD_GANG_SET: ObjectKind = ObjectKind { kind: "PodGangSet", plural: "podgangsets", ..POD_CLIQUE_SET };

/// Cliques of pods, some of which scale together.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PodCliqueSet {
    /// Metadata.
    #[serde(deserialize_with = "null_default")]
    pub metadata: Meta,
    /// Spec.
    #[serde(deserialize_with = "null_default")]
    pub spec: PodCliqueSetSpec,
}

/// The fields of a set's spec that are read.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PodCliqueSetSpec {
    /// Copies of the whole set, 0 by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i64>,
    /// What one copy is made of.
    #[serde(deserialize_with = "null_default")]
    pub template: Template,
}

/// What one copy of a set is made of.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Template {
    /// Cliques.
    #[serde(deserialize_with = "null_default")]
    pub cliques: Vec<CliqueTemplate>,
    /// Cliques that scale together.
    #[serde(deserialize_with = "null_default", skip_serializing_if = "Vec::is_empty")]
    pub pod_clique_scaling_groups: Vec<ScalingGroup>,
}

/// Pods of one specification.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CliqueTemplate {
    /// Name, unique in the set.
    #[serde(deserialize_with = "null_default")]
    pub name: String,
    /// Role of the pods, as the design's text and example have it; its API has it in the spec.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role_name: Option<String>,
    /// Spec.
    #[serde(deserialize_with = "null_default")]
    pub spec: CliqueSpec,
}

/// The fields of a clique's spec that are read.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CliqueSpec {
    /// Role of the pods; Grove's own webhook writes `""` for none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role_name: Option<String>,
    /// Pods, 1 by default and for 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i64>,
    /// Bounds of autoscaling.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auto_scaling_config: Option<ScaleConfig>,
}

/// Cliques that scale together.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ScalingGroup {
    /// Name, unique in the set.
    #[serde(deserialize_with = "null_default")]
    pub name: String,
    /// Names of the cliques.
    #[serde(deserialize_with = "null_default")]
    pub clique_names: Vec<String>,
    /// Copies of these cliques in one copy of the set, 1 by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i64>,
    /// Bounds of autoscaling.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scale_config: Option<ScaleConfig>,
}

/// Bounds of autoscaling.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ScaleConfig {
    /// Most replicas.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_replicas: Option<i64>,
}

impl Object for PodCliqueSet {
    fn meta(&self) -> &Meta {
        &self.metadata
    }
}
