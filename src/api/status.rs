//! Status that is written to the object that carries a coordination.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::null_default;

/// Status of a group. Fields of others are kept in `other` and written back untouched.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct GroupStatus {
    /// `metadata.generation` that this status speaks of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Ready, MinimumSegmentsAvailable, Progressing (KEP-32), and those of others.
    #[serde(deserialize_with = "null_default", skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// How far each coordination has come (KEP-30).
    #[serde(deserialize_with = "null_default", skip_serializing_if = "Vec::is_empty")]
    pub coordination_state: Vec<CoordinationState>,
    /// When the group was ready for the first time, RFC 3339: what comes before is deployment, what comes after is scaling.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_ready_time: Option<String>,
    /// Desired replicas of each role when the group was last ready: more than this is growth, not failure.
    #[serde(deserialize_with = "null_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub last_ready_replicas: BTreeMap<String, u32>,
    /// Figures for the print columns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<Summary>,
    /// Fields that other controllers keep here.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: BTreeMap<String, Value>,
}

/// A condition, in the shape of `metav1.Condition`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Condition {
    /// Kind of condition.
    pub r#type: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// One word, stable.
    #[serde(deserialize_with = "null_default")]
    pub reason: String,
    /// For people.
    #[serde(deserialize_with = "null_default")]
    pub message: String,
    /// When `status` last changed, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<String>,
    /// Generation that was judged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}

/// How far one coordination has come (KEP-30, CoordinationState).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct CoordinationState {
    /// Name of the coordination, `coordination-<index>` for one without a name.
    pub name: String,
    /// By role.
    #[serde(deserialize_with = "null_default")]
    pub progress: BTreeMap<String, RoleProgress>,
    /// When a state or a released count last changed, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_update_time: Option<String>,
}

/// How far one role has come in a coordination.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RoleProgress {
    /// segmentPlacement, rollingDeploy, affinityScheduling or rollingUpdate.
    pub strategy: String,
    /// Progressing, Waiting, Blocked, Paused or Complete.
    pub state: String,
    /// Committed: replicas with a lower ordinal may run. Never falls, except with the desired count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub released: Option<u32>,
}

/// Figures for the print columns.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Summary {
    /// Ready segments of all, `3/10`.
    pub segments: String,
    /// Ready pods of all, `45/150`.
    pub ready: String,
    /// Held pods.
    pub held: u32,
    /// Why the next batch is held, empty when nothing is.
    #[serde(deserialize_with = "null_default")]
    pub reason: String,
}
