//! RoleCoordination: rolegate's own carrier of coordinations, for workloads without a RoleBasedGroup and for RoleBasedGroups
//! whose CRD prunes the fields of the designs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::status::GroupStatus;
use super::{Coordination, Meta, Object, ObjectKind, null_default, readable};

/// Short name `rcoord`.
pub const ROLE_COORDINATION: ObjectKind = ObjectKind {
    group: "rolegate.dev",
    version: "v1alpha1",
    kind: "RoleCoordination",
    plural: "rolecoordinations",
    namespaced: true,
};

/// Coordinations over the roles of a RoleBasedGroup, or over roles of its own.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RoleCoordination {
    pub metadata: Meta,
    #[serde(deserialize_with = "null_default")]
    pub spec: RoleCoordinationSpec,
    #[serde(deserialize_with = "readable")]
    pub status: GroupStatus,
}

/// Exactly one of `groupRef` and `roles`, and the coordinations.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RoleCoordinationSpec {
    /// The RoleBasedGroup whose roles are coordinated, in the same namespace; desired replicas come from it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group_ref: Option<GroupRef>,
    /// Roles of its own, where there is no RoleBasedGroup.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub roles: Option<Vec<CoordinatedRole>>,
    /// Coordinations between the roles, each with a name of its own.
    #[serde(deserialize_with = "null_default")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub coordination: Vec<Coordination>,
    /// How many segments are wanted: the workloads of the roles that have a `segmentSize` are scaled together. Takes
    /// `serve --allow scale`, and the labels `rolegate.dev/group` and `rolegate.dev/role` on the workloads themselves.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1_000_000))]
    pub segments: Option<i64>,
    /// How segments are taken away.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scale_in: Option<ScaleIn>,
}

/// How segments are taken away.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ScaleIn {
    /// Seconds between the mark on their pods, label `rolegate.dev/draining`, and their end; 0 by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 86_400))]
    pub drain_seconds: Option<i64>,
}

/// Names a RoleBasedGroup in the same namespace, of any served version.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct GroupRef {
    /// Its name.
    #[serde(deserialize_with = "null_default")]
    pub name: String,
}

/// A role and where its desired replicas come from: exactly one of `workloadRef` and `replicas`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct CoordinatedRole {
    /// Name, unique among the roles, a DNS-1123 label.
    #[serde(deserialize_with = "null_default")]
    pub name: String,
    /// The workload that makes the role's pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workload_ref: Option<WorkloadRef>,
    /// Desired replicas, for pods that no single workload makes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 2_147_483_647))]
    pub replicas: Option<i64>,
}

/// Names a workload in the same namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct WorkloadRef {
    /// Group and version; that of the kind by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,
    /// StatefulSet, LeaderWorkerSet or Deployment.
    #[serde(deserialize_with = "null_default")]
    pub kind: String,
    /// Its name.
    #[serde(deserialize_with = "null_default")]
    pub name: String,
}

impl Object for RoleCoordination {
    fn meta(&self) -> &Meta {
        &self.metadata
    }
}
