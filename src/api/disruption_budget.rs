//! PodDisruptionBudgets, as far as a selector goes.

use serde::{Deserialize, Serialize};

use super::selector::LabelSelector;
use super::{Meta, Object, ObjectKind, null_default};

/// `policy/v1 PodDisruptionBudget`.
pub const POD_DISRUPTION_BUDGET: ObjectKind = ObjectKind {
    group: "policy",
    version: "v1",
    kind: "PodDisruptionBudget",
    plural: "poddisruptionbudgets",
    namespaced: true,
};

/// A PodDisruptionBudget.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PodDisruptionBudget {
    /// Metadata.
    pub metadata: Meta,
    /// Spec.
    #[serde(deserialize_with = "null_default")]
    pub spec: PodDisruptionBudgetSpec,
}

/// The fields of its spec that are read.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PodDisruptionBudgetSpec {
    /// Its pods; absent selects none, empty selects all.
    pub selector: Option<LabelSelector>,
}

impl Object for PodDisruptionBudget {
    fn meta(&self) -> &Meta {
        &self.metadata
    }
}
