//! Workloads that create pods.

use serde::{Deserialize, Serialize};
use serde_with::apply;

use super::scheduling::SchedulingSpec;
use super::status::Condition;
use super::{IntOrString, Meta, ObjectKind, null_default};

pub const STATEFUL_SET: ObjectKind = ObjectKind::namespaced("apps", "v1", "StatefulSet", "statefulsets");

pub const DEPLOYMENT: ObjectKind = ObjectKind { kind: "Deployment", plural: "deployments", ..STATEFUL_SET };

pub const LEADER_WORKER_SET: ObjectKind =
    ObjectKind::namespaced("leaderworkerset.x-k8s.io", "v1", "LeaderWorkerSet", "leaderworkersets");

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct StatefulSet {
    pub metadata: Meta,
    #[serde(deserialize_with = "null_default")]
    pub spec: StatefulSetSpec,
    #[serde(deserialize_with = "null_default", skip_serializing)]
    pub status: WorkloadStatus,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WorkloadStatus {
    /// Generation that the controller has observed; absent in LeaderWorkerSet before v0.9.
    pub observed_generation: Option<i64>,
    /// StatefulSet: revision that its pods come from.
    pub current_revision: Option<String>,
    /// StatefulSet: revision that its pods are updated to.
    pub update_revision: Option<String>,
    /// StatefulSet: existing pods, and those of them at the update revision.
    pub replicas: Option<i64>,
    pub updated_replicas: Option<i64>,
    /// LeaderWorkerSet: only `UpdateInProgress` is read.
    #[serde(deserialize_with = "null_default")]
    pub conditions: Vec<Condition>,
}

#[apply(_ => #[serde(deserialize_with = "null_default")])]
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StatefulSetSpec {
    pub ordinals: Ordinals,
    /// Desired replicas, 1 by default.
    pub replicas: Option<i64>,
    /// OrderedReady (default) or Parallel.
    pub pod_management_policy: Option<String>,
    /// Seconds that a pod must be ready before it counts.
    pub min_ready_seconds: Option<i64>,
    /// Name of the governing Service, which gives the pods their DNS names.
    pub service_name: String,
    pub update_strategy: UpdateStrategy,
    pub template: PodTemplate,
}

/// `spec.ordinals` of a StatefulSet.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Ordinals {
    /// Ordinal of the first pod, 0 by default.
    #[serde(deserialize_with = "null_default")]
    pub start: i64,
}

/// `spec.updateStrategy` of a StatefulSet.
#[apply(_ => #[serde(deserialize_with = "null_default")])]
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct UpdateStrategy {
    /// RollingUpdate (default), OnDelete or Recreate.
    pub r#type: String,
    pub rolling_update: RollingUpdateBounds,
}

/// Bounds of a workload's own rolling update.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RollingUpdateBounds {
    /// Replicas with a lower ordinal stay at the old revision.
    pub partition: Option<i64>,
    /// Extra replicas during an update.
    pub max_surge: Option<IntOrString>,
    /// Replicas that are updated at once, 1 by default.
    pub max_unavailable: Option<IntOrString>,
}

/// A pod template, limited to labels and to the fields that decide the placement of its pods.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PodTemplate {
    #[serde(deserialize_with = "null_default")]
    pub metadata: Meta,
    #[serde(deserialize_with = "null_default", skip_serializing)]
    pub spec: SchedulingSpec,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Deployment {
    pub metadata: Meta,
    #[serde(deserialize_with = "null_default")]
    pub spec: DeploymentSpec,
    #[serde(deserialize_with = "null_default")]
    pub status: DeploymentStatus,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DeploymentStatus {
    /// Only `ReplicaFailure` and `Progressing` are read.
    #[serde(deserialize_with = "null_default")]
    pub conditions: Vec<Condition>,
    /// Generation that the controller has observed.
    pub observed_generation: Option<i64>,
    /// Existing pods.
    pub replicas: Option<i64>,
    /// Existing pods of the current template.
    pub updated_replicas: Option<i64>,
}

#[apply(_ => #[serde(deserialize_with = "null_default")])]
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DeploymentSpec {
    /// Desired replicas, 1 by default.
    pub replicas: Option<i64>,
    /// Seconds that a pod must be ready before it counts.
    pub min_ready_seconds: Option<i64>,
    /// True while the controller creates no pods of a new template.
    pub paused: bool,
    pub template: PodTemplate,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct LeaderWorkerSet {
    pub metadata: Meta,
    #[serde(deserialize_with = "null_default")]
    pub spec: LeaderWorkerSetSpec,
    #[serde(deserialize_with = "null_default", skip_serializing)]
    pub status: WorkloadStatus,
}

#[apply(_ => #[serde(deserialize_with = "null_default")])]
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LeaderWorkerSetSpec {
    /// Desired groups, 1 by default.
    pub replicas: Option<i64>,
    /// LeaderCreated (default) or LeaderReady.
    pub startup_policy: Option<String>,
    pub network_config: NetworkConfig,
    pub rollout_strategy: RolloutStrategy,
    pub leader_worker_template: LeaderWorkerTemplate,
}

/// `spec.networkConfig` of a LeaderWorkerSet.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NetworkConfig {
    /// Shared (default): one Service, named after the set. UniquePerReplica: one for each group, named after its leader.
    #[serde(deserialize_with = "null_default")]
    pub subdomain_policy: String,
}

/// `spec.rolloutStrategy` of a LeaderWorkerSet.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RolloutStrategy {
    #[serde(deserialize_with = "null_default")]
    pub rolling_update_configuration: RollingUpdateBounds,
}

/// The pods of one group of a LeaderWorkerSet.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LeaderWorkerTemplate {
    /// Pods in one group, 1 by default.
    pub size: Option<i64>,
    pub sub_group_policy: Option<SubGroupPolicy>,
    /// Template of the leader, when it differs from the workers.
    pub leader_template: Option<PodTemplate>,
    #[serde(deserialize_with = "null_default")]
    pub worker_template: PodTemplate,
}

/// `subGroupPolicy` of a LeaderWorkerSet.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SubGroupPolicy {
    /// LeaderWorker (default) or LeaderExcluded.
    #[serde(rename = "subGroupPolicyType", deserialize_with = "null_default")]
    pub r#type: String,
    /// Pods in one subgroup.
    pub sub_group_size: Option<i64>,
}
