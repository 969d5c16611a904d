//! Workloads that make pods.

use serde::{Deserialize, Serialize};

use super::scheduling::SchedulingSpec;
use super::status::Condition;
use super::{IntOrString, Meta, Object, ObjectKind, null_default};

/// `apps/v1 StatefulSet`.
pub const STATEFUL_SET: ObjectKind =
    ObjectKind { group: "apps", version: "v1", kind: "StatefulSet", plural: "statefulsets", namespaced: true };

/// `apps/v1 Deployment`.
pub const DEPLOYMENT: ObjectKind = ObjectKind { kind: "Deployment", plural: "deployments", ..STATEFUL_SET };

/// `leaderworkerset.x-k8s.io/v1 LeaderWorkerSet`.
pub const LEADER_WORKER_SET: ObjectKind = ObjectKind {
    group: "leaderworkerset.x-k8s.io",
    version: "v1",
    kind: "LeaderWorkerSet",
    plural: "leaderworkersets",
    namespaced: true,
};

/// A StatefulSet: what the ordinals of its pods depend on, and what rules look at.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct StatefulSet {
    /// Metadata.
    pub metadata: Meta,
    /// Spec.
    #[serde(deserialize_with = "null_default")]
    pub spec: StatefulSetSpec,
    /// Status.
    #[serde(deserialize_with = "null_default", skip_serializing)]
    pub status: WorkloadStatus,
}

/// The fields of a workload's status that are read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WorkloadStatus {
    /// `metadata.generation` that its controller has seen; absent in LeaderWorkerSet before v0.9.
    pub observed_generation: Option<i64>,
    /// StatefulSet: revision that its pods come from.
    pub current_revision: Option<String>,
    /// StatefulSet: revision that its pods go to.
    pub update_revision: Option<String>,
    /// LeaderWorkerSet: conditions, of which `UpdateInProgress` is read.
    #[serde(deserialize_with = "null_default")]
    pub conditions: Vec<Condition>,
}

/// The fields of a StatefulSet's spec that are read.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StatefulSetSpec {
    /// Where the numbering of pods starts.
    #[serde(deserialize_with = "null_default")]
    pub ordinals: Ordinals,
    /// Desired replicas, 1 by default.
    pub replicas: Option<i64>,
    /// OrderedReady (default) or Parallel.
    pub pod_management_policy: Option<String>,
    /// How long a pod must be ready before it counts, in seconds.
    pub min_ready_seconds: Option<i64>,
    /// The governing Service, under which its pods have DNS names.
    #[serde(deserialize_with = "null_default")]
    pub service_name: String,
    /// How updates proceed.
    #[serde(deserialize_with = "null_default")]
    pub update_strategy: UpdateStrategy,
    /// Its pods.
    #[serde(deserialize_with = "null_default")]
    pub template: PodTemplate,
}

/// `spec.ordinals` of a StatefulSet.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Ordinals {
    /// Index of the first pod, 0 by default.
    #[serde(deserialize_with = "null_default")]
    pub start: i64,
}

/// `spec.updateStrategy` of a StatefulSet.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct UpdateStrategy {
    /// RollingUpdate (default) or OnDelete.
    #[serde(deserialize_with = "null_default")]
    pub r#type: String,
    /// Bounds of a rolling update.
    #[serde(deserialize_with = "null_default")]
    pub rolling_update: RollingUpdateBounds,
}

/// Bounds of a workload's own rolling update.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RollingUpdateBounds {
    /// Replicas with a lower ordinal stay old.
    pub partition: Option<i64>,
    /// Extra replicas while an update is under way.
    pub max_surge: Option<IntOrString>,
}

/// A pod template, as far as labels go and what its pods ask for.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PodTemplate {
    /// Metadata of its pods.
    #[serde(deserialize_with = "null_default")]
    pub metadata: Meta,
    /// What decides where they go.
    #[serde(deserialize_with = "null_default", skip_serializing)]
    pub spec: SchedulingSpec,
}

/// A Deployment.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Deployment {
    /// Metadata.
    pub metadata: Meta,
    /// Spec.
    #[serde(deserialize_with = "null_default")]
    pub spec: DeploymentSpec,
    /// Status.
    #[serde(deserialize_with = "null_default")]
    pub status: DeploymentStatus,
}

/// The fields of a Deployment's status that are read.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DeploymentStatus {
    /// Conditions, of which `ReplicaFailure` and `Progressing` are read.
    #[serde(deserialize_with = "null_default")]
    pub conditions: Vec<Condition>,
    /// `metadata.generation` that its controller has seen.
    pub observed_generation: Option<i64>,
    /// Pods that it has.
    pub replicas: Option<i64>,
    /// Those of its template.
    pub updated_replicas: Option<i64>,
}

/// The fields of a Deployment's spec that are read.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DeploymentSpec {
    /// Desired replicas, 1 by default.
    pub replicas: Option<i64>,
    /// How long a pod must be ready before it counts, in seconds.
    pub min_ready_seconds: Option<i64>,
    /// True while no pods of a new template are made.
    #[serde(deserialize_with = "null_default")]
    pub paused: bool,
    /// Its pods.
    #[serde(deserialize_with = "null_default")]
    pub template: PodTemplate,
}

/// A LeaderWorkerSet.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct LeaderWorkerSet {
    /// Metadata.
    pub metadata: Meta,
    /// Spec.
    #[serde(deserialize_with = "null_default")]
    pub spec: LeaderWorkerSetSpec,
    /// Status.
    #[serde(deserialize_with = "null_default", skip_serializing)]
    pub status: WorkloadStatus,
}

/// The fields of a LeaderWorkerSet's spec that are read.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LeaderWorkerSetSpec {
    /// Desired groups, 1 by default.
    pub replicas: Option<i64>,
    /// LeaderCreated (default) or LeaderReady.
    pub startup_policy: Option<String>,
    /// The Services of its pods.
    #[serde(deserialize_with = "null_default")]
    pub network_config: NetworkConfig,
    /// How updates proceed.
    #[serde(deserialize_with = "null_default")]
    pub rollout_strategy: RolloutStrategy,
    /// The pods of one group.
    #[serde(deserialize_with = "null_default")]
    pub leader_worker_template: LeaderWorkerTemplate,
}

/// `spec.networkConfig` of a LeaderWorkerSet.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NetworkConfig {
    /// Shared (default): one Service named as the set; UniquePerReplica: one for each group, named as its leader.
    #[serde(deserialize_with = "null_default")]
    pub subdomain_policy: String,
}

/// `spec.rolloutStrategy` of a LeaderWorkerSet.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RolloutStrategy {
    /// Bounds of a rolling update.
    #[serde(deserialize_with = "null_default")]
    pub rolling_update_configuration: RollingUpdateBounds,
}

/// The pods of one group of a LeaderWorkerSet.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LeaderWorkerTemplate {
    /// Pods in one group, 1 by default.
    pub size: Option<i64>,
    /// The leader, when it differs from the workers.
    pub leader_template: Option<PodTemplate>,
    /// The workers.
    #[serde(deserialize_with = "null_default")]
    pub worker_template: PodTemplate,
}

impl Object for StatefulSet {
    fn meta(&self) -> &Meta {
        &self.metadata
    }
}

impl Object for Deployment {
    fn meta(&self) -> &Meta {
        &self.metadata
    }
}

impl Object for LeaderWorkerSet {
    fn meta(&self) -> &Meta {
        &self.metadata
    }
}
