//! PodDisruptionBudgets: their pods and the form of their bound.

use serde::{Deserialize, Serialize};

use super::selector::LabelSelector;
use super::{IntOrString, Meta, ObjectKind, null_default};

pub const POD_DISRUPTION_BUDGET: ObjectKind =
    ObjectKind::namespaced("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets");

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PodDisruptionBudget {
    pub metadata: Meta,
    #[serde(deserialize_with = "null_default")]
    pub spec: PodDisruptionBudgetSpec,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodDisruptionBudgetSpec {
    /// Absent selects no pods, empty selects all.
    pub selector: Option<LabelSelector>,
    /// Pods that must stay available: a number, or a share of the replicas that the workloads ask for. Its alternative,
    /// `maxUnavailable`, is counted from those replicas too.
    pub min_available: Option<IntOrString>,
}
