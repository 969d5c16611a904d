//! A pod's affinity to other pods.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_with::skip_serializing_none;

/// `spec.affinity` of a pod. Terms stay unparsed; absent and empty fields stay distinct, because a patch depends on it.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Affinity {
    pub pod_affinity: Option<PodTerms>,
    pub pod_anti_affinity: Option<PodTerms>,
}

/// `podAffinity` or `podAntiAffinity`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PodTerms {
    /// `PodAffinityTerm`s, all of which must hold.
    #[serde(rename = "requiredDuringSchedulingIgnoredDuringExecution", skip_serializing_if = "Option::is_none")]
    pub required: Option<Vec<Value>>,
    /// `WeightedPodAffinityTerm`s; each term that holds adds its weight.
    #[serde(rename = "preferredDuringSchedulingIgnoredDuringExecution", skip_serializing_if = "Option::is_none")]
    pub preferred: Option<Vec<Value>>,
}
