//! RoleBasedGroup in the shape of KEP-30, KEP-32 and KEP-75.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_with::skip_serializing_none;

use super::coordination::any;
use super::engine::EngineSettings;
use super::status::GroupStatus;
use super::{Coordination, Meta, ObjectKind, null_default, readable};

pub const ROLE_BASED_GROUP: ObjectKind =
    ObjectKind::namespaced("workloads.x-k8s.io", "v1alpha1", "RoleBasedGroup", "rolebasedgroups");

/// The same kind under the API group of KEP-32's examples.
pub const ROLE_BASED_GROUP_INSTAI: ObjectKind = ObjectKind { group: "workloads.instai.io", ..ROLE_BASED_GROUP };

/// The version that RBG ≥ v0.7 stores: roles without coordination.
pub const ROLE_BASED_GROUP_V1ALPHA2: ObjectKind = ObjectKind { version: "v1alpha2", ..ROLE_BASED_GROUP };

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RoleBasedGroup {
    pub metadata: Meta,
    #[serde(deserialize_with = "null_default")]
    pub spec: RoleBasedGroupSpec,
    #[serde(deserialize_with = "readable")]
    pub status: GroupStatus,
}

/// Roles and their coordinations.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct RoleBasedGroupSpec {
    /// Roles of the group.
    #[serde(deserialize_with = "null_default")]
    pub roles: Vec<Role>,
    /// Coordinations of the roles (KEP-30).
    pub coordination: Option<Vec<Coordination>>,
    /// KEP-32's spelling of `coordination`; only one of the two may be set.
    pub coordination_requirements: Option<Vec<Coordination>>,
    /// PodGroup of the whole group.
    #[schemars(schema_with = "any")]
    pub pod_group_policy: Option<Value>,
}

/// A role: prefill, decode, router.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct Role {
    /// Unique name of the role, a DNS-1123 label.
    #[serde(deserialize_with = "null_default")]
    pub name: String,
    /// Desired replicas, 1 by default.
    #[schemars(range(min = 0, max = 2_147_483_647))]
    pub replicas: Option<i64>,
    /// Roles that must be ready before the pods of this role are created.
    #[serde(deserialize_with = "null_default", skip_serializing_if = "Vec::is_empty")]
    pub dependencies: Vec<String>,
    /// Update strategy of the role (v1alpha1); not allowed in a rollingUpdate coordination.
    #[schemars(schema_with = "any")]
    pub update_strategy: Option<Value>,
    /// Update strategy of the role (v1alpha2).
    #[schemars(schema_with = "any")]
    pub rollout_strategy: Option<Value>,
    /// Workload of the role (v1alpha1): `apiVersion` and `kind`, a StatefulSet by default.
    #[schemars(schema_with = "any")]
    pub workload: Option<Value>,
    /// Parallel or OrderedReady (v1alpha2).
    pub pod_management_policy: Option<String>,
    /// Template of the pods (v1alpha1).
    #[schemars(schema_with = "any")]
    pub template: Option<Value>,
    /// One pod in an instance (v1alpha2).
    #[schemars(skip)]
    pub standalone_pattern: Option<Value>,
    /// A leader and workers in an instance (v1alpha2).
    #[schemars(skip)]
    pub leader_worker_pattern: Option<Value>,
    /// A leader and workers in a replica (v1alpha1).
    #[schemars(skip)]
    pub leader_worker_set: Option<Value>,
    /// Annotations of the role's workload (v1alpha2); one of them names its kind.
    #[schemars(schema_with = "any")]
    pub annotations: Option<Value>,
    /// Engine in the pods of the role. The annotation `rolegate.dev/engine` of a pod takes precedence.
    pub engine: Option<EngineSettings>,
}
