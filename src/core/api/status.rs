//! Status that rolegate writes to the object that carries a coordination.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use serde_with::apply;

use super::readable;

/// Status of a group. Fields of other controllers are kept.
#[apply(
    Option => #[serde(deserialize_with = "readable", skip_serializing_if = "Option::is_none")],
    Vec => #[serde(deserialize_with = "entries", skip_serializing_if = "Vec::is_empty")],
    BTreeMap => #[serde(deserialize_with = "values", skip_serializing_if = "BTreeMap::is_empty")],
)]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct GroupStatus {
    /// `metadata.generation` of the observed object.
    pub observed_generation: Option<i64>,
    /// Conditions of rolegate and of other controllers.
    pub conditions: Vec<Condition>,
    /// Progress of each coordination (KEP-30).
    pub coordination_state: Vec<CoordinationState>,
    /// Time at which the group was first ready; before it, the group is in deployment.
    pub first_ready_time: Option<String>,
    /// Time at which pods or a rollout last moved, as of the last write: no older than a minute then.
    pub last_moved_time: Option<String>,
    /// Desired replicas of each role when the group was last ready.
    #[schemars(schema_with = "counts")]
    pub last_ready_replicas: BTreeMap<String, u32>,
    /// Committed. Replicas of each role up to the highest of which a pod was ready once: its updates are held.
    #[schemars(schema_with = "counts")]
    pub served: BTreeMap<String, u32>,
    /// Cohorts: pods that were updated together.
    pub cohorts: Option<Cohorts>,
    /// Observed workload of each role that is updated in step.
    pub observed_workloads: BTreeMap<String, ObservedWorkload>,
    /// Number of released segments, if the workloads are scaled together.
    #[schemars(range(min = 0, max = 2_147_483_647))]
    pub segments: Option<u32>,
    /// Label selector of one pod for each released segment, for autoscalers.
    pub selector: Option<String>,
    /// Committed. Replicas whose pods have succeeded, by role; they count after the pods and the Job are deleted.
    pub succeeded: BTreeMap<String, Vec<Succeeded>>,
    /// Committed. Segments under removal.
    pub draining: Option<Draining>,
    /// Committed. Recoveries of batches within the window.
    pub recoveries: Vec<RecoveryState>,
    /// Committed. Requests for nodes for batches that fit nowhere.
    pub provisioning: Vec<ProvisioningState>,
    /// Values of the print columns.
    pub summary: Option<Summary>,
    /// Fields that other controllers keep here.
    #[serde(flatten)]
    #[serde_with(skip_apply)]
    #[schemars(skip)]
    pub other: BTreeMap<String, Value>,
}

impl GroupStatus {
    /// Returns the condition of this type.
    pub fn condition(&self, kind: &str) -> Option<&Condition> {
        self.conditions.iter().find(|condition| condition.r#type == kind)
    }

    /// Reports whether a pod of the role was ready once.
    pub fn has_served(&self, role: &str) -> bool {
        self.replicas_served(role) > 0
    }

    /// Returns the number of replicas of the role up to the highest one of which a pod was ready once.
    pub fn replicas_served(&self, role: &str) -> u32 {
        let known = [&self.served, &self.last_ready_replicas].map(|known| known.get(role).copied());
        known.into_iter().flatten().max().unwrap_or(0)
    }

    /// Returns the state of the coordination of this name.
    pub fn coordination(&self, name: &str) -> Option<&CoordinationState> {
        self.coordination_state.iter().find(|state| state.name == name)
    }
}

/// A condition, in the shape of `metav1.Condition`.
#[apply(Option => #[serde(deserialize_with = "readable", skip_serializing_if = "Option::is_none")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Condition {
    /// Type of the condition.
    pub r#type: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// Reason in one word.
    #[serde(deserialize_with = "readable")]
    pub reason: String,
    /// Description of the state.
    #[serde(deserialize_with = "readable")]
    pub message: String,
    /// Time of the last change of `status`.
    pub last_transition_time: Option<String>,
    /// `metadata.generation` of the observed object.
    pub observed_generation: Option<i64>,
}

/// How far one coordination has come (KEP-30, CoordinationState).
#[apply(Option => #[serde(deserialize_with = "readable", skip_serializing_if = "Option::is_none")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct CoordinationState {
    /// Name of the coordination, or `coordination-<index>`.
    #[serde(deserialize_with = "readable")]
    pub name: String,
    /// Progress by role.
    #[serde(deserialize_with = "values")]
    pub progress: BTreeMap<String, RoleProgress>,
    /// Committed. Domain (value of the node label) by batch number from 0; empty for a batch that had one and lost it.
    #[serde(deserialize_with = "values", skip_serializing_if = "BTreeMap::is_empty")]
    pub domains: BTreeMap<String, String>,
    /// Committed. Numbers from 0 of batches that are or were complete, `0-3,5`, if batches are recovered.
    #[serde(deserialize_with = "readable", skip_serializing_if = "String::is_empty")]
    pub complete_batches: String,
    /// Desired replicas of each role at that time.
    #[serde(deserialize_with = "values", skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "counts")]
    pub complete_replicas: BTreeMap<String, u32>,
    /// Replicas of each role in a batch at that time.
    #[serde(deserialize_with = "values", skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "counts")]
    pub complete_sizes: BTreeMap<String, u32>,
    /// Committed. Number of batches that are accepted, from the first on, with `readyWhen.object` or a canary.
    #[schemars(range(min = 0, max = 2_147_483_647))]
    pub accepted: Option<u32>,
    /// Committed. State of the open rollout.
    pub rollout: Option<RolloutState>,
    /// Time of the last change of a state, a released count, a domain or a step.
    pub last_update_time: Option<String>,
}

impl CoordinationState {
    /// Iterates over the domains, each with the number of its batch from 0. An entry of another form is skipped.
    pub fn domains(&self) -> impl Iterator<Item = (u32, &str)> {
        self.entries().filter(|(_, domain)| !domain.is_empty())
    }

    /// Iterates over the batches that have lost their domain.
    pub fn displaced(&self) -> impl Iterator<Item = u32> {
        self.entries().filter(|(_, domain)| domain.is_empty()).map(|(batch, _)| batch)
    }

    fn entries(&self) -> impl Iterator<Item = (u32, &str)> {
        self.domains.iter().filter_map(|(batch, domain)| Some((batch.parse().ok()?, domain.as_str())))
    }
}

/// How far an open rollout has come.
#[apply(
    u32 => #[serde(deserialize_with = "readable")] #[schemars(range(min = 0, max = 2_147_483_647))],
    Option => #[serde(deserialize_with = "readable", skip_serializing_if = "Option::is_none")],
    BTreeMap => #[serde(deserialize_with = "values", skip_serializing_if = "BTreeMap::is_empty")],
)]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RolloutState {
    /// Step under way from 1, or the complete one during the pause after it; 0 without steps.
    pub step: u32,
    /// Number of steps; 0 without steps.
    pub steps: u32,
    /// Time at which the pause after the step began.
    pub paused_since: Option<String>,
    /// Shares in percent, by role, at which the last pause ended.
    #[schemars(schema_with = "counts")]
    pub passed: BTreeMap<String, u32>,
    /// Revision to which each role of the rollout is updated.
    pub revisions: BTreeMap<String, String>,
    /// Time at which the last edit of one of these roles was seen.
    pub since: Option<String>,
    /// That the rollout went back from these revisions, which are not tried again before a template is edited.
    pub rolled_back: Option<RolledBack>,
}

/// Why and when a rollout went back.
#[apply(_ => #[serde(deserialize_with = "readable")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RolledBack {
    /// Time of the decision.
    pub since: String,
    /// Reason in one word: ReplicasNotReady, ObjectNotReady or Requested.
    pub reason: String,
    /// The reason in a sentence.
    pub message: String,
}

/// How far one role has come in a coordination.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RoleProgress {
    /// Strategy: segmentPlacement, rollingDeploy, affinityScheduling or rollingUpdate.
    #[serde(deserialize_with = "readable")]
    pub strategy: String,
    /// State: Progressing, Waiting, Blocked, Paused, RolledBack, Complete or NotCoordinated.
    #[serde(deserialize_with = "readable")]
    pub state: String,
    /// Committed. Replicas with a lower ordinal may run. Falls only with the desired count.
    #[serde(deserialize_with = "count", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 2_147_483_647))]
    pub released: Option<u32>,
}

/// Pods of several roles that were rolled together are of one cohort, by the revisions that they were made at.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Cohorts {
    /// Last number of a cohort. Never falls.
    #[serde(deserialize_with = "readable")]
    #[schemars(range(min = 0, max = 2_147_483_647))]
    pub last: u32,
    /// Revisions of each role, the newest last.
    #[serde(deserialize_with = "values")]
    pub roles: BTreeMap<String, Vec<RevisionCohort>>,
}

/// The cohort of the pods that are made at one revision of a role.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RevisionCohort {
    /// Revision, from the label of the pods.
    pub revision: String,
    /// Cohort: the id of the rollout, or a number.
    pub cohort: String,
}

/// A workload as the conditions of its group speak of it.
#[apply(Option => #[serde(deserialize_with = "readable", skip_serializing_if = "Option::is_none")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ObservedWorkload {
    /// `metadata.generation` of the workload. Changes of the partition by rolegate also raise it.
    pub generation: Option<i64>,
    /// Annotation `rolegate.dev/rollout` of the workload.
    pub rollout: Option<String>,
}

/// Replicas of one Job that have done their work.
#[apply(_ => #[serde(deserialize_with = "readable")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Succeeded {
    /// UID of the Job; another Job starts anew.
    pub job: String,
    /// Numbers of the replicas from 0, `0-3,5`.
    pub replicas: String,
    /// Pods of one replica.
    #[schemars(range(min = 0, max = 2_147_483_647))]
    pub size: u32,
}

/// Segments that are being taken away, counted from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Draining {
    /// First segment under removal.
    #[schemars(range(min = 0, max = 2_147_483_647))]
    pub from: u32,
    /// First segment beyond those.
    #[schemars(range(min = 0, max = 2_147_483_647))]
    pub to: u32,
}

/// A batch that was complete and lost a replica, and what became of it.
#[apply(Option => #[serde(deserialize_with = "readable", skip_serializing_if = "Option::is_none")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RecoveryState {
    /// Name of the coordination.
    pub coordination: String,
    /// Number of the batch from 0.
    #[schemars(range(min = 0, max = 2_147_483_647))]
    pub batch: u32,
    /// Phase: Waiting, Recreating, Releasing, Complete or Exhausted.
    pub phase: String,
    /// Number of the recovery within the window.
    #[serde(deserialize_with = "readable")]
    #[schemars(range(min = 0, max = 2_147_483_647))]
    pub attempt: u32,
    /// Cause: PodDeleted, PodFailed, PodEvicted, NodeGone, NotReady or NoRoom.
    #[serde(deserialize_with = "readable")]
    pub reason: String,
    /// Time of the loss.
    pub since: Option<String>,
    /// Time at which a waiting recovery deletes pods.
    pub not_before: Option<String>,
    /// Creation time of the youngest old pod; later pods are not deleted.
    pub youngest: Option<String>,
    /// Time of completion.
    pub completed: Option<String>,
    /// Start times of recoveries within the window.
    #[serde(deserialize_with = "entries", skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<String>,
    /// Last known state of the lost pod.
    pub lost: Option<LostPod>,
    /// `metadata.generation` of the object at exhaustion; a change allows recoveries again.
    pub generation: Option<i64>,
}

/// A pod that was lost, as it was last seen.
#[apply(_ => #[serde(deserialize_with = "readable")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct LostPod {
    /// Role of the pod.
    pub role: String,
    /// Ordinal of the replica.
    #[schemars(range(min = 0, max = 2_147_483_647))]
    pub ordinal: u32,
    /// Name of the pod, if known.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub pod: String,
    /// Node of the pod.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub node: String,
    /// Reason of the pod, of a condition or of a container.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Exit code of the terminated container.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Termination message or message of the pod, at most 512 bytes.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// A request for nodes for a batch that fits nowhere.
#[apply(Option => #[serde(deserialize_with = "readable", skip_serializing_if = "Option::is_none")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ProvisioningState {
    /// Name of the coordination.
    pub coordination: String,
    /// Number of the batch from 0.
    #[schemars(range(min = 0, max = 2_147_483_647))]
    pub batch: u32,
    /// Phase: Requested, Placed, GivenUp or Withdrawn.
    pub phase: String,
    /// Number of the request, from 1; it is a part of the names of its objects.
    #[serde(deserialize_with = "readable")]
    #[schemars(range(min = 0, max = 2_147_483_647))]
    pub attempt: u32,
    /// Kind of the request: CapacityBuffer or ProvisioningRequest.
    #[serde(deserialize_with = "readable")]
    pub by: String,
    /// Class of a ProvisioningRequest.
    #[serde(deserialize_with = "readable", skip_serializing_if = "String::is_empty")]
    pub class: String,
    /// Requested pods, each sort once.
    #[serde(deserialize_with = "entries", skip_serializing_if = "Vec::is_empty")]
    pub pod_sets: Vec<RequestedPods>,
    /// Extended resources and huge pages that count for the batch as long as its request lasts, whether a node has them or not.
    #[serde(deserialize_with = "entries", skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<String>,
    /// Time of the request, or at which it was given up.
    pub since: Option<String>,
    /// Time before which nodes are not requested again.
    pub not_before: Option<String>,
    /// Domains in which earlier requests got too few nodes.
    #[serde(deserialize_with = "entries", skip_serializing_if = "Vec::is_empty")]
    pub avoided: Vec<String>,
    /// Reason for which the request was given up.
    #[serde(deserialize_with = "readable", skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// Requested pods of one sort.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RequestedPods {
    /// Name of the role; `<role>.<number>` for another sort of pods of the role.
    pub name: String,
    /// Number of the pods.
    #[schemars(range(min = 0, max = 2_147_483_647))]
    pub count: u32,
    /// Hash of their resources and of the nodes that they select; another hash begins another request.
    #[serde(deserialize_with = "readable")]
    pub shape: String,
}

/// Values of the print columns.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Summary {
    /// Ready and desired segments, `3/10`.
    pub segments: String,
    /// Ready and desired pods, `45/150`.
    pub ready: String,
    /// Number of held pods.
    #[schemars(range(min = 0, max = 2_147_483_647))]
    pub held: u32,
    /// Reason for which the next batch is held, or `RolloutStalled`, `RolledBack` or `RolloutPaused`.
    #[serde(deserialize_with = "readable")]
    pub reason: String,
    /// The reason in a sentence.
    #[serde(deserialize_with = "readable", skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// Reads the valid entries of a list and drops the others.
pub(super) fn entries<'de, D: Deserializer<'de>, T: DeserializeOwned>(deserializer: D) -> Result<Vec<T>, D::Error> {
    let list: Vec<Value> = readable(deserializer)?;
    Ok(list.into_iter().filter_map(|entry| serde_json::from_value(entry).ok()).collect())
}

/// Reads the valid values of a map and drops the others.
fn values<'de, D, T>(deserializer: D) -> Result<BTreeMap<String, T>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    let map: BTreeMap<String, Value> = readable(deserializer)?;
    let read = |(key, value)| Some((key, serde_json::from_value(value).ok()?));
    Ok(map.into_iter().filter_map(read).collect())
}

/// Reads a number of replicas; a number above the `replicas` of any workload is dropped.
fn count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
    let count: Option<u32> = readable(deserializer)?;
    Ok(count.filter(|count| i32::try_from(*count).is_ok()))
}

/// Returns the schema of a map from role to number of replicas.
pub(crate) fn counts(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "type": "object",
        "additionalProperties": { "type": "integer", "format": "int64", "minimum": 0, "maximum": i32::MAX },
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(status: &Value) -> GroupStatus {
        let rbg: crate::api::RoleBasedGroup = serde_json::from_value(json!({ "status": status })).unwrap();
        rbg.status
    }

    #[test]
    fn garbage_is_lost_by_itself_and_all_else_is_kept() {
        let state = |progress: Value| json!([{ "name": "s", "progress": progress }]);
        let released = |progress| {
            let status = read(&json!({ "firstReadyTime": "t", "coordinationState": state(progress), "theirs": 7 }));
            assert_eq!((status.first_ready_time.as_deref(), &status.other["theirs"]), (Some("t"), &json!(7)));
            let role = status.coordination_state[0].progress.get("prefill");
            role.and_then(|role| role.released)
        };
        assert_eq!(released(json!({ "prefill": { "released": 3 } })), Some(3));
        for garbage in
            [json!(1_u64 << 62), json!(-1), json!(4_000_000_000_u32), json!("3"), json!(0.5), json!([]), json!({})]
        {
            assert_eq!(released(json!({ "prefill": { "released": garbage }, "decode": 7 })), None);
        }
        assert_eq!(released(json!({ "prefill": { "released": 3, "state": 7, "strategy": null } })), Some(3));
        assert_eq!(released(json!({ "prefill": { "released": 3 }, "decode": "x" })), Some(3));
        assert_eq!(released(json!("x")), None);
    }

    #[test]
    fn a_status_of_any_shape_leaves_its_object_readable() {
        for garbage in [json!("x"), json!(7), json!([1]), json!(null)] {
            assert_eq!(read(&garbage), GroupStatus::default(), "{garbage}");
            let fields = ["observedGeneration", "conditions", "coordinationState", "lastReadyReplicas", "summary"];
            for field in fields.into_iter().filter(|field| *field != "observedGeneration" || garbage != json!(7)) {
                assert_eq!(read(&json!({ (field): garbage })), GroupStatus::default(), "{field}: {garbage}");
            }
        }
        let mixed = json!([{ "type": "Ready", "status": "True", "message": 7 }, "x", { "type": 7 }]);
        let conditions = read(&json!({ "conditions": mixed })).conditions;
        assert_eq!(conditions.len(), 1);
        assert_eq!((conditions[0].r#type.as_str(), conditions[0].message.as_str()), ("Ready", ""));
    }
}
