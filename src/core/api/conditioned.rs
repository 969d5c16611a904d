//! Objects of any kind, limited to their conditions.

use serde::{Deserialize, Serialize};

use super::status::{Condition, entries};
use super::{Meta, readable};

/// An object with conditions.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ConditionedObject {
    pub metadata: Meta,
    #[serde(deserialize_with = "readable")]
    pub status: ConditionedStatus,
}

/// The conditions of an object, in each of the places where kinds keep them.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ConditionedStatus {
    #[serde(deserialize_with = "entries")]
    pub conditions: Vec<Condition>,
    /// One word instead of conditions, as of an AnalysisRun of Argo.
    #[serde(deserialize_with = "readable")]
    pub phase: String,
    /// Conditions for each parent, as of an InferencePool of the Gateway API.
    #[serde(deserialize_with = "entries")]
    pub parents: Vec<ConditionedParent>,
}

/// A parent with the conditions that it gives an object.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ConditionedParent {
    #[serde(deserialize_with = "entries")]
    pub conditions: Vec<Condition>,
}
