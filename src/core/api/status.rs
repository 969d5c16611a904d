//! Status that rolegate writes to the object that carries a coordination.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::readable;

/// Status of a group. Fields of others are kept in `other` and written back untouched; of ours, what cannot be read is lost,
/// field by field.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct GroupStatus {
    /// `metadata.generation` that this status speaks of.
    #[serde(deserialize_with = "readable", skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Ready, MinimumSegmentsAvailable, Progressing (KEP-32), and those of others.
    #[serde(deserialize_with = "entries", skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// How far each coordination has come (KEP-30).
    #[serde(deserialize_with = "entries", skip_serializing_if = "Vec::is_empty")]
    pub coordination_state: Vec<CoordinationState>,
    /// When the group was ready for the first time, RFC 3339: what comes before is deployment, what comes after is scaling.
    #[serde(deserialize_with = "readable", skip_serializing_if = "Option::is_none")]
    pub first_ready_time: Option<String>,
    /// Desired replicas of each role when the group was last ready: more than this is growth, not failure.
    #[serde(deserialize_with = "values", skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "counts")]
    pub last_ready_replicas: BTreeMap<String, u32>,
    /// Which pods of its roles were rolled together.
    #[serde(deserialize_with = "readable", skip_serializing_if = "Option::is_none")]
    pub cohorts: Option<Cohorts>,
    /// The workload of each role that is rolled in lockstep, as the conditions speak of it: their own generation does not move
    /// with it.
    #[serde(deserialize_with = "values", skip_serializing_if = "BTreeMap::is_empty")]
    pub observed_workloads: BTreeMap<String, ObservedWorkload>,
    /// Whole segments that are released, where the workloads are scaled together.
    #[serde(deserialize_with = "readable", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 2_147_483_647))]
    pub segments: Option<u32>,
    /// Label selector of one pod of each released segment, for autoscalers.
    #[serde(deserialize_with = "readable", skip_serializing_if = "Option::is_none")]
    pub selector: Option<String>,
    /// Committed: replicas that have done their work, by role; they count when their pods, and their Job, are cleaned up.
    #[serde(deserialize_with = "values", skip_serializing_if = "BTreeMap::is_empty")]
    pub succeeded: BTreeMap<String, Vec<Succeeded>>,
    /// Committed: segments that are being taken away.
    #[serde(deserialize_with = "readable", skip_serializing_if = "Option::is_none")]
    pub draining: Option<Draining>,
    /// Committed: batches that are made anew, were, or will be no more; what was done within the window counts for the limit.
    #[serde(deserialize_with = "entries", skip_serializing_if = "Vec::is_empty")]
    pub recoveries: Vec<RecoveryState>,
    /// Figures for the print columns.
    #[serde(deserialize_with = "readable", skip_serializing_if = "Option::is_none")]
    pub summary: Option<Summary>,
    /// Fields that other controllers keep here.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: BTreeMap<String, Value>,
}

impl GroupStatus {
    /// Returns the condition of this type.
    pub fn condition(&self, kind: &str) -> Option<&Condition> {
        self.conditions.iter().find(|condition| condition.r#type == kind)
    }
}

/// A condition, in the shape of `metav1.Condition`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Condition {
    /// Kind of condition.
    pub r#type: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// One word, stable.
    #[serde(deserialize_with = "readable")]
    pub reason: String,
    /// For people.
    #[serde(deserialize_with = "readable")]
    pub message: String,
    /// When `status` last changed, RFC 3339.
    #[serde(deserialize_with = "readable", skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<String>,
    /// Generation that was judged.
    #[serde(deserialize_with = "readable", skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}

/// How far one coordination has come (KEP-30, CoordinationState).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct CoordinationState {
    /// Name of the coordination, `coordination-<index>` for one without a name.
    #[serde(deserialize_with = "readable")]
    pub name: String,
    /// By role.
    #[serde(deserialize_with = "values")]
    pub progress: BTreeMap<String, RoleProgress>,
    /// Committed: the value of the node label that each batch was given which must share one, by its number, from 0.
    #[serde(deserialize_with = "values", skip_serializing_if = "BTreeMap::is_empty")]
    pub domains: BTreeMap<String, String>,
    /// Committed: batches that are complete, or were, by their numbers from 0, `0-3,5`; kept where a batch that loses a replica
    /// is made anew.
    #[serde(deserialize_with = "readable", skip_serializing_if = "String::is_empty")]
    pub complete_batches: String,
    /// Desired replicas of each role when these were complete: a batch that has grown since is not.
    #[serde(deserialize_with = "values", skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "counts")]
    pub complete_replicas: BTreeMap<String, u32>,
    /// Replicas of each role in one of these batches: with other sizes they are other batches.
    #[serde(deserialize_with = "values", skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "counts")]
    pub complete_sizes: BTreeMap<String, u32>,
    /// When a state, a released count or a domain last changed, RFC 3339.
    #[serde(deserialize_with = "readable", skip_serializing_if = "Option::is_none")]
    pub last_update_time: Option<String>,
}

/// How far one role has come in a coordination.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RoleProgress {
    /// segmentPlacement, rollingDeploy, affinityScheduling or rollingUpdate.
    #[serde(deserialize_with = "readable")]
    pub strategy: String,
    /// Progressing, Waiting, Blocked, Paused, Complete or NotCoordinated.
    #[serde(deserialize_with = "readable")]
    pub state: String,
    /// Committed: replicas with a lower ordinal may run. Never falls, except with the desired count.
    #[serde(deserialize_with = "count", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 2_147_483_647))]
    pub released: Option<u32>,
}

/// Pods of several roles that were rolled together are of one cohort, by the revisions that they were made at.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Cohorts {
    /// The last one that was counted. Never falls.
    #[serde(deserialize_with = "readable")]
    #[schemars(range(min = 0, max = 2_147_483_647))]
    pub last: u32,
    /// The revisions of each role, the one that it goes to last.
    #[serde(deserialize_with = "values")]
    pub roles: BTreeMap<String, Vec<RevisionCohort>>,
}

/// The cohort of the pods that are made at one revision of a role.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RevisionCohort {
    /// The revision, as the pods are labelled.
    pub revision: String,
    /// What tied the edits of several roles together, else a number.
    pub cohort: String,
}

/// A workload as the conditions of its group speak of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ObservedWorkload {
    /// Its `metadata.generation`. rolegate's own changes of the partition are among those that are counted.
    #[serde(deserialize_with = "readable", skip_serializing_if = "Option::is_none")]
    pub generation: Option<i64>,
    /// Its annotation `rolegate.dev/rollout`, where it has one.
    #[serde(deserialize_with = "readable", skip_serializing_if = "Option::is_none")]
    pub rollout: Option<String>,
}

/// Replicas of one Job that have done their work.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Succeeded {
    /// Unique id of the Job: another one begins anew.
    #[serde(deserialize_with = "readable")]
    pub job: String,
    /// By their numbers from 0, `0-3,5`.
    #[serde(deserialize_with = "readable")]
    pub replicas: String,
    /// Pods of one of them.
    #[serde(deserialize_with = "readable")]
    #[schemars(range(min = 0, max = 2_147_483_647))]
    pub size: u32,
}

/// Segments that are being taken away, counted from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Draining {
    /// The first of them.
    #[schemars(range(min = 0, max = 2_147_483_647))]
    pub from: u32,
    /// The first beyond them.
    #[schemars(range(min = 0, max = 2_147_483_647))]
    pub to: u32,
}

/// A batch that was complete and lost a replica, and what became of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RecoveryState {
    /// Name of the coordination.
    pub coordination: String,
    /// Number of the batch, from 0.
    #[schemars(range(min = 0, max = 2_147_483_647))]
    pub batch: u32,
    /// Waiting, Recreating, Releasing, Complete or Exhausted.
    pub phase: String,
    /// The how manieth recovery within the window this is.
    #[serde(deserialize_with = "readable")]
    #[schemars(range(min = 0, max = 2_147_483_647))]
    pub attempt: u32,
    /// PodDeleted, PodFailed, PodEvicted, NodeGone or NotReady.
    #[serde(deserialize_with = "readable")]
    pub reason: String,
    /// When it was found broken, RFC 3339.
    #[serde(deserialize_with = "readable", skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// Waiting: when its pods are deleted, RFC 3339.
    #[serde(deserialize_with = "readable", skip_serializing_if = "Option::is_none")]
    pub not_before: Option<String>,
    /// When its youngest pod was made, RFC 3339: those made later are not deleted.
    #[serde(deserialize_with = "readable", skip_serializing_if = "Option::is_none")]
    pub youngest: Option<String>,
    /// When it was complete again, RFC 3339.
    #[serde(deserialize_with = "readable", skip_serializing_if = "Option::is_none")]
    pub completed: Option<String>,
    /// When recoveries within the window began, RFC 3339.
    #[serde(deserialize_with = "entries", skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<String>,
    /// The pod that was lost, as it was last seen.
    #[serde(deserialize_with = "readable", skip_serializing_if = "Option::is_none")]
    pub lost: Option<LostPod>,
    /// Exhausted: `metadata.generation` of the object then; a change of it begins anew.
    #[serde(deserialize_with = "readable", skip_serializing_if = "Option::is_none")]
    pub generation: Option<i64>,
}

/// A pod that was lost, as it was last seen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct LostPod {
    /// Its role.
    #[serde(deserialize_with = "readable")]
    pub role: String,
    /// Ordinal of its replica.
    #[serde(deserialize_with = "readable")]
    #[schemars(range(min = 0, max = 2_147_483_647))]
    pub ordinal: u32,
    /// Its name, where it was seen.
    #[serde(deserialize_with = "readable", skip_serializing_if = "String::is_empty")]
    pub pod: String,
    /// Its node.
    #[serde(deserialize_with = "readable", skip_serializing_if = "String::is_empty")]
    pub node: String,
    /// What the pod, a condition of it or a container of it says, one word.
    #[serde(deserialize_with = "readable", skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Exit code of the container that ended.
    #[serde(deserialize_with = "readable", skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Its termination message, or what the pod says, cut to 512 bytes.
    #[serde(deserialize_with = "readable", skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// Figures for the print columns.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Summary {
    /// Ready segments of all, `3/10`.
    pub segments: String,
    /// Ready pods of all, `45/150`.
    pub ready: String,
    /// Held pods.
    #[schemars(range(min = 0, max = 2_147_483_647))]
    pub held: u32,
    /// Why the next batch is held; where none is, `RolloutStalled` of a rollout that has stopped; else empty.
    #[serde(deserialize_with = "readable")]
    pub reason: String,
    /// The same in a sentence.
    #[serde(deserialize_with = "readable", skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// Reads the valid entries of a list and drops the others.
fn entries<'de, D: Deserializer<'de>, T: DeserializeOwned>(deserializer: D) -> Result<Vec<T>, D::Error> {
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
