//! A pod's affinity to other pods.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// `spec.affinity` of a pod. Absent fields and empty ones differ, which a patch has to know; terms are kept as they are.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Affinity {
    /// Pods to be near.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_affinity: Option<PodTerms>,
    /// Pods to be far from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_anti_affinity: Option<PodTerms>,
}

/// Terms about other pods.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PodTerms {
    /// Every one must hold: `PodAffinityTerm`s.
    #[serde(rename = "requiredDuringSchedulingIgnoredDuringExecution", skip_serializing_if = "Option::is_none")]
    pub required: Option<Vec<Value>>,
    /// Each that holds counts with its weight: `WeightedPodAffinityTerm`s.
    #[serde(rename = "preferredDuringSchedulingIgnoredDuringExecution", skip_serializing_if = "Option::is_none")]
    pub preferred: Option<Vec<Value>>,
}
