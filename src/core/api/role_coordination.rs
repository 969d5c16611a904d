//! RoleCoordination: rolegate's own carrier of coordinations, for workloads without a RoleBasedGroup and for RoleBasedGroups
//! whose CRD prunes the fields of the designs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_with::{apply, skip_serializing_none};

use super::coordination::any;
use super::engine::EngineSettings;
use super::status::GroupStatus;
use super::{Coordination, Meta, ObjectKind, null_default, readable};

/// Short name `rcoord`.
pub const ROLE_COORDINATION: ObjectKind =
    ObjectKind::namespaced("rolegate.dev", "v1alpha1", "RoleCoordination", "rolecoordinations");

/// Coordinations of the roles of a RoleBasedGroup, or of its own roles.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RoleCoordination {
    pub metadata: Meta,
    #[serde(deserialize_with = "null_default")]
    pub spec: RoleCoordinationSpec,
    #[serde(deserialize_with = "readable")]
    pub status: GroupStatus,
}

/// Roles and their coordinations.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RoleCoordinationSpec {
    /// RoleBasedGroup in the same namespace with the roles and their desired replicas.
    pub group_ref: Option<GroupRef>,
    /// Roles, if there is no RoleBasedGroup.
    pub roles: Option<Vec<CoordinatedRole>>,
    /// Coordinations of the roles, with unique names.
    #[serde(deserialize_with = "null_default")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub coordination: Vec<Coordination>,
    /// Desired number of segments: rolegate scales the workloads of all roles with a `segmentSize` together. Requires
    /// `serve --allow scale`, and the labels `rolegate.dev/group` and `rolegate.dev/role` on the workloads.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub segments: Option<i64>,
    /// Removal of segments.
    pub scale_in: Option<ScaleIn>,
    /// Refused: it belongs in the strategies of coordinations.
    #[schemars(schema_with = "any")]
    pub pod_group_policy: Option<Value>,
}

/// Removal of segments.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ScaleIn {
    /// Seconds between the label `rolegate.dev/draining` on pods and their removal; 0 by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 86_400))]
    pub drain_seconds: Option<i64>,
}

/// Names a RoleBasedGroup in the same namespace, of any served version.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct GroupRef {
    /// Name.
    #[serde(deserialize_with = "null_default")]
    pub name: String,
}

/// A role and where its desired replicas come from: exactly one of `workloadRef` and `replicas`.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct CoordinatedRole {
    /// Unique name of the role, a DNS-1123 label.
    #[serde(deserialize_with = "null_default")]
    pub name: String,
    /// Workload that creates the pods.
    pub workload_ref: Option<WorkloadRef>,
    /// Desired replicas, for pods without a single workload.
    #[schemars(range(min = 0, max = 2_147_483_647))]
    pub replicas: Option<i64>,
    /// Engine in the pods of the role. The annotation `rolegate.dev/engine` of a pod takes precedence.
    pub engine: Option<EngineSettings>,
}

/// Names a workload in the same namespace.
#[apply(_ => #[serde(deserialize_with = "null_default")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct WorkloadRef {
    /// API group and version; by default those of the kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,
    /// StatefulSet, LeaderWorkerSet or Deployment.
    pub kind: String,
    /// Name.
    pub name: String,
}
