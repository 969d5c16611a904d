//! PodDisruptionBudgets, as far as a selector goes.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

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

/// `metav1.LabelSelector`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LabelSelector {
    /// Labels that must have these values.
    #[serde(deserialize_with = "null_default")]
    pub match_labels: BTreeMap<String, String>,
    /// Further requirements, all of which must hold.
    #[serde(deserialize_with = "null_default")]
    pub match_expressions: Vec<Requirement>,
}

/// A requirement of a selector.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Requirement {
    /// Label.
    #[serde(deserialize_with = "null_default")]
    pub key: String,
    /// In, NotIn, Exists or DoesNotExist.
    #[serde(deserialize_with = "null_default")]
    pub operator: String,
    /// Values, for In and NotIn.
    #[serde(deserialize_with = "null_default")]
    pub values: Vec<String>,
}

impl LabelSelector {
    /// True when these labels are selected. An operator that is not known selects nothing.
    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        let listed = |requirement: &Requirement| {
            labels.get(&requirement.key).is_some_and(|value| requirement.values.contains(value))
        };
        self.match_labels.iter().all(|(key, value)| labels.get(key) == Some(value))
            && self.match_expressions.iter().all(|requirement| match requirement.operator.as_str() {
                "In" => listed(requirement),
                "NotIn" => !listed(requirement),
                "Exists" => labels.contains_key(&requirement.key),
                "DoesNotExist" => !labels.contains_key(&requirement.key),
                _ => false,
            })
    }
}

impl Object for PodDisruptionBudget {
    fn meta(&self) -> &Meta {
        &self.metadata
    }
}
