//! PodDisruptionBudgets: which pods they are over, and whether by a number of them.

use serde::{Deserialize, Serialize};

use super::selector::LabelSelector;
use super::{IntOrString, Meta, Object, ObjectKind, null_default};

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
#[serde(rename_all = "camelCase", default)]
pub struct PodDisruptionBudgetSpec {
    /// Its pods; absent selects none, empty selects all.
    pub selector: Option<LabelSelector>,
    /// Pods that stay available: so many, or a share of those that their workloads ask for. `maxUnavailable`, which stands in
    /// place of it, is counted from these as well.
    pub min_available: Option<IntOrString>,
}

impl Object for PodDisruptionBudget {
    fn meta(&self) -> &Meta {
        &self.metadata
    }
}
