//! CoordinatedPolicy, which replaces `spec.coordination` in RBG ≥ v0.7. It is only validated.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_with::{apply, skip_serializing_none};

use super::coordination::{RollingUpdate, any};
use super::{Meta, ObjectKind, null_default};

pub const COORDINATED_POLICY: ObjectKind =
    ObjectKind::namespaced("workloads.x-k8s.io", "v1alpha2", "CoordinatedPolicy", "coordinatedpolicies");

/// Rules over the roles of the RoleBasedGroup of the same name and namespace.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct CoordinatedPolicy {
    pub metadata: Meta,
    #[serde(deserialize_with = "null_default")]
    pub spec: CoordinatedPolicySpec,
}

/// The rules.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CoordinatedPolicySpec {
    /// The rules.
    #[serde(deserialize_with = "null_default")]
    pub policies: Vec<PolicyRule>,
}

/// One rule.
#[apply(_ => #[serde(deserialize_with = "null_default")])]
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PolicyRule {
    /// Name.
    pub name: String,
    /// Roles it is over.
    pub roles: Vec<String>,
    /// What it says.
    pub strategy: PolicyStrategy,
}

/// What a rule says.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PolicyStrategy {
    /// Rollouts in lockstep.
    pub rolling_update: Option<RollingUpdate>,
    /// Creation in lockstep: `maxSkew` and `progression`.
    #[schemars(schema_with = "any")]
    pub scaling: Option<Value>,
}
