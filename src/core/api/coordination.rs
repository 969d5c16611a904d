//! A coordination as written: the entry shared by `RoleBasedGroup` and `RoleCoordination`, in every spelling of the designs
//! (KEP-30, KEP-32, KEP-75).

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_with::skip_serializing_none;

use super::status::counts;
use super::{IntOrString, null_default};

/// An entry of `spec.coordination`.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Coordination {
    /// Name of the coordination, a DNS-1123 label; may be empty if no label or PodGroup contains it.
    pub name: Option<String>,
    /// Type of the strategy (KEP-30).
    #[schemars(extend("enum" = ["", "RollingUpdate", "AffinityScheduling"]))]
    pub r#type: Option<String>,
    /// Roles of the coordination; by default the keys of the size map.
    pub roles: Option<Vec<String>>,
    /// Strategy of the coordination.
    pub strategy: Option<Strategy>,
    /// Treatment of a batch that fits nowhere; hold by default.
    #[schemars(extend("enum" = ["", "hold", "preempt", "release", "provision"]))]
    pub when_no_fit: Option<String>,
    /// With `whenNoFit: provision`, how nodes are requested.
    pub provision: Option<Provision>,
    /// Refused: it belongs directly in a strategy that makes batches, and in `deployTopologyConstraint`.
    #[schemars(schema_with = "any")]
    pub pod_group_policy: Option<Value>,
}

/// Requests for nodes for a batch that fits nowhere. rolegate must run with `--allow provision`, and whoever sets `whenNoFit:
/// provision` must be allowed to create the requests.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Provision {
    /// Kind of the request: a CapacityBuffer for each role (Karpenter), or a ProvisioningRequest for the batch
    /// (cluster-autoscaler).
    #[schemars(extend("enum" = ["", "CapacityBuffer", "ProvisioningRequest"], "default" = "CapacityBuffer"))]
    pub by: Option<String>,
    /// Class of a ProvisioningRequest; best-effort-atomic-scale-up.autoscaling.x-k8s.io by default.
    pub class: Option<String>,
    /// Time for which a batch lacks room before nodes are requested; 5s by default.
    pub after: Option<String>,
    /// Time in which all nodes must come; 15m by default. After it, the request is deleted, and made again later.
    pub deadline: Option<String>,
    /// Maximum number of batches of the group for which nodes are requested at a time; 1 by default.
    pub max_segments_ahead: Option<i64>,
}

/// How roles are coordinated: at most one strategy that makes batches, and at most one rolling update.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Strategy {
    /// Rollouts in lockstep (KEP-30).
    pub rolling_update: Option<RollingUpdate>,
    /// Batches that share a topology domain (KEP-30).
    pub affinity_scheduling: Option<AffinityScheduling>,
    /// Segments (KEP-32).
    pub segment_placement: Option<SegmentPlacement>,
    /// Deployment in steps, with topology (KEP-75).
    pub rolling_deploy: Option<RollingDeploy>,
    /// Topology of one step, in the place of some examples of KEP-75.
    pub deploy_topology_constraint: Option<DeployTopologyConstraint>,
    /// RBG's own creation in lockstep (v1alpha1), which rolegate ignores.
    #[schemars(schema_with = "any")]
    pub scaling: Option<Value>,
    /// KEP-30's flat form: the fields of `rollingUpdate` directly under `strategy`.
    #[serde(flatten)]
    pub flat: RollingUpdate,
}

/// Bounds of a coordinated rollout (KEP-30).
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RollingUpdate {
    /// Maximum difference of the updated shares of two roles, a percentage; 100 % by default.
    pub max_skew: Option<IntOrString>,
    /// Maximum number or percentage of unavailable replicas of each role, or of unavailable segments if these are updated as a
    /// whole; 1 by default.
    pub max_unavailable: Option<IntOrString>,
    /// KEP-30's name of `maxUnavailable`.
    pub max_unavailable_ratio: Option<IntOrString>,
    /// Share of each role, or of the segments, that stays old, a percentage; 0 by default.
    pub partition: Option<IntOrString>,
    /// Refused: it belongs directly in a strategy that makes batches, and in `deployTopologyConstraint`.
    #[schemars(schema_with = "any")]
    pub pod_group_policy: Option<Value>,
    /// Unit of the update: a replica of each role (the default), or a segment, whose replicas of all roles are updated together.
    // No default of the schema: the API server would set it in the flat form of each strategy.
    #[schemars(extend("enum" = ["", "Replica", "Segment"]))]
    pub by: Option<String>,
    /// Steps of the rollout. A step is the updated share of each role at its end, a percentage; a role that it leaves out keeps
    /// its share. `pause`, an entry of its own, stands between two steps.
    #[schemars(schema_with = "steps")]
    pub steps: Option<Vec<BTreeMap<String, Value>>>,
    /// Readiness beyond that of pods. The object is waited for at the end of each step, and needs `steps`.
    pub ready_when: Option<ReadyWhen>,
    /// Treatment of a rollout that does not get ready in time. Pause (the default): the other replicas stay old. Rollback: the
    /// updated replicas of all roles go back to the revision from which they came, until the next edit of a template.
    #[schemars(extend("enum" = ["", "Pause", "Rollback"]))]
    pub on_failure: Option<String>,
    /// With Rollback, time in which an updated replica, and the object of `readyWhen`, must get ready; 10m by default.
    pub fail_after: Option<String>,
}

impl RollingUpdate {
    /// Reports whether no bound is set.
    pub fn is_empty(&self) -> bool {
        Self { pod_group_policy: None, ..self.clone() } == Self::default()
    }
}

/// Batches of pods that share a topology domain (KEP-30).
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct AffinityScheduling {
    /// Node label that names the domain.
    pub topology_key: Option<String>,
    /// Replicas of each role in one batch.
    #[serde(deserialize_with = "null_default")]
    #[schemars(schema_with = "counts")]
    pub ratios: BTreeMap<String, i64>,
    /// Order of the batches.
    #[schemars(extend("enum" = ["", "Sequential", "Parallel"], "default" = "Sequential"))]
    pub batch_mode: Option<String>,
    /// PodGroups of a batch for a gang scheduler: one of `kubeScheduling`, `volcanoScheduling` and `kai`, and the `level` at which
    /// pods share one: Batch (all pods of the batch, the default), Role (the pods of each role of it) or Replica (the pods of each
    /// replica of several pods).
    #[schemars(schema_with = "any")]
    pub pod_group_policy: Option<Value>,
    /// Treatment of a complete batch that loses a replica.
    pub recovery: Option<Recovery>,
}

/// Segments: batches of a fixed number of replicas of each role (KEP-32).
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SegmentPlacement {
    /// Replicas of each role in one segment.
    #[serde(deserialize_with = "null_default")]
    #[schemars(schema_with = "counts")]
    pub segment_size: BTreeMap<String, i64>,
    /// Condition for the release of the next segment. Canary: the first segment goes alone, and the others by OrderedReady when
    /// it is accepted.
    #[schemars(extend("enum" = ["", "OrderedReady", "Ordered", "Parallel", "Canary"], "default" = "OrderedReady"))]
    pub progression: Option<String>,
    /// With Canary, time for which the first segment must be ready to be accepted, `10m`; without it, a person accepts it by
    /// `rolegate resume`.
    pub soak: Option<String>,
    /// Readiness of a segment beyond that of its pods, for OrderedReady and Canary.
    pub ready_when: Option<ReadyWhen>,
    /// Topology of a segment (KEP-32).
    pub topology_affinity: Option<TopologyAffinity>,
    /// A segment goes only when the cluster has room for all of its pods at once; false by default. A segment that must share a
    /// domain always does.
    pub whole: Option<bool>,
    /// PodGroups of a segment for a gang scheduler: one of `kubeScheduling`, `volcanoScheduling` and `kai`, and the `level` at which
    /// pods share one: Batch (all pods of the segment, the default), Role (the pods of each role of it) or Replica (the pods of each
    /// replica of several pods).
    #[schemars(schema_with = "any")]
    pub pod_group_policy: Option<Value>,
    /// Treatment of a complete segment that loses a replica.
    pub recovery: Option<Recovery>,
}

/// Readiness of a segment, or of a step of a rollout, beyond that of its pods.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ReadyWhen {
    /// Seconds for which a pod must be ready before it counts. Of this and the `minReadySeconds` of its workload, the longer
    /// counts.
    pub min_ready_seconds: Option<i64>,
    /// Object whose condition must be True.
    pub object: Option<AwaitedObject>,
}

/// An object in the namespace of the group, and the condition that it must have. rolegate must be allowed to watch its kind
/// (`--ready-kinds`), and whoever names it must be allowed to get it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct AwaitedObject {
    /// API version of the object, `batch/v1`.
    pub api_version: String,
    /// Kind of the object.
    pub kind: String,
    /// Name of the object. `$(SEGMENT)` in it is the number of the segment from 0, `$(STEP)` that of the step from 1.
    pub name: String,
    /// Type of the condition.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "Ready"))]
    pub condition: Option<String>,
}

/// Treatment of a complete batch that loses a replica.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Recovery {
    /// None: a recreated replica joins its batch. Recreate: the whole batch is recreated.
    #[schemars(extend("enum" = ["", "None", "Recreate"], "default" = "None"))]
    pub policy: Option<String>,
    /// Duration after which an unready replica counts as lost, `60s`; never by default.
    pub unready_for: Option<String>,
    /// Maximum number of recoveries of a batch within the window.
    #[schemars(extend("default" = 3))]
    pub limit: Option<i64>,
    /// Period of the limit.
    #[schemars(extend("default" = "1h"))]
    pub window: Option<String>,
    /// Maximum number of concurrent recoveries of the group.
    #[schemars(extend("default" = 1))]
    pub max_concurrent: Option<i64>,
}

/// Topology of a segment (KEP-32).
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct TopologyAffinity {
    /// Node label that names the domain.
    pub topology_key: Option<String>,
    /// Preferred with weight 100, required, or preferred with weight 1 (BestEffort).
    #[schemars(extend(
        "enum" = ["", "PreferSegmentAffinity", "RequireSegmentAffinity", "BestEffort"],
        "default" = "PreferSegmentAffinity"
    ))]
    pub strategy: Option<String>,
    /// Prefer another domain for each segment, with weight 100.
    pub spread_segments: Option<bool>,
    /// Refused: it belongs directly in a strategy that makes batches, and in `deployTopologyConstraint`.
    #[schemars(schema_with = "any")]
    pub pod_group_policy: Option<Value>,
}

/// Deployment in steps (KEP-75). The roles stand under `roleDeployStep`, or, as in KEP-75's example, directly here.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct RollingDeploy {
    /// Replicas of each role in one step.
    #[schemars(schema_with = "counts")]
    pub role_deploy_step: Option<BTreeMap<String, i64>>,
    /// Topology of one step.
    pub deploy_topology_constraint: Option<DeployTopologyConstraint>,
    /// Roles that stand directly under `rollingDeploy`; also `whole` and `recovery`, which as numbers are roles of that name.
    #[serde(flatten)]
    #[schemars(skip)]
    pub direct: BTreeMap<String, Value>,
}

/// Topology of one deploy step (KEP-75).
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct DeployTopologyConstraint {
    /// Name of the ClusterTopology.
    #[schemars(extend("default" = "rbg-cluster-topology"))]
    pub cluster_topology_name: Option<String>,
    /// Layer of the topology that the pods of a step share.
    pub topology_layer_name: Option<String>,
    /// Whether the topology is required (hard) or preferred with weight 100 (soft).
    #[schemars(extend("enum" = ["", "hard", "soft"], "default" = "hard"))]
    pub constraint_mode: Option<String>,
    /// PodGroups of a step for a gang scheduler: one of `kubeScheduling`, `volcanoScheduling` and `kai`, and the `level` at which
    /// pods share one: Batch (all pods of the step, the default), Role (the pods of each role of it) or Replica (the pods of each
    /// replica of several pods). The string `nil` is no policy.
    #[schemars(schema_with = "any")]
    pub pod_group_policy: Option<Value>,
}

/// Returns the schema of the steps of a rollout. A schema may not have both fields and other keys: the rules judge the values.
fn steps(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "type": "array",
        "items": {
            "type": "object",
            "additionalProperties": { "x-kubernetes-preserve-unknown-fields": true },
        },
    })
}

/// Returns the schema of a field that accepts any value.
pub(crate) fn any(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "x-kubernetes-preserve-unknown-fields": true })
}
