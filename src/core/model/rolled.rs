//! Workloads that are claimed for rollouts in lockstep (KEP-30): their current and their target state.

use std::sync::Arc;

use super::rollout_claim::first_annotation;
use super::workload::desired;
use super::{RolloutClaim, WorkloadKey, WorkloadKind, former_claim, names, rollout_claim};
use crate::api::Meta;

/// Returns the partition that the user of a workload set, from the annotation that keeps it while a rollout is open. An
/// unreadable one counts as 0: the rollout must end.
pub fn asked_partition(annotation: &str) -> u32 {
    annotation.parse().map_or(0, number)
}

/// Returns the partition that the user of a workload set; while a rollout is open, the partition in the spec is rolegate's.
pub(super) fn partition_of_user(meta: &Meta, in_spec: Option<i64>) -> Option<i64> {
    match first_annotation(meta, names::USER_PARTITIONS) {
        // Absent and 0 were stored alike when the rollout opened.
        Some(kept) => Some(i64::from(asked_partition(kept))).filter(|partition| *partition != 0),
        None => in_spec,
    }
}

/// Returns the command that deletes a pod.
pub fn deletion(namespace: &str, pod: &str) -> String {
    let within = if namespace.is_empty() { String::new() } else { format!(" -n {namespace}") };
    format!("`kubectl delete pod {pod}{within}`")
}

fn number(number: i64) -> u32 {
    u32::try_from(number.max(0)).unwrap_or(u32::MAX)
}

/// A claimed workload.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "what the object says, field by field")]
pub struct RolledWorkload {
    pub key: WorkloadKey,
    pub uid: Arc<str>,
    /// Resource version that was read; the partition is set only at this version.
    pub resource_version: String,
    /// `metadata.generation`, which numbers its edits.
    pub generation: Option<i64>,
    pub claim: RolloutClaim,
    pub desired: u32,
    /// True when its controller has observed its last change.
    pub observed: bool,
    /// Partition in its spec.
    pub partition: u32,
    /// Partition that its user set; present while a rollout is open.
    pub user_partition: Option<u32>,
    /// Id that ties the edits of several roles together, if one is set.
    pub rollout_id: Option<String>,
    /// Revision that its pods are updated to, as in their labels; `None` if unknown.
    pub update_revision: Option<String>,
    /// Revision that its pods come from; `None` if the workload does not tell.
    pub current_revision: Option<String>,
    /// True when its claim was removed while its rollout was open.
    pub unclaimed: bool,
    /// False when its update strategy takes no partition: nothing is held or thawed by one.
    pub takes_partition: bool,
    /// Pods in one replica of its template.
    pub replica_size: u32,
    /// Replicas that its controller updates at once, if old pods may be deleted instead; `None` if they may not.
    pub at_once: Option<u32>,
    /// True when its controller makes a pod only when those before it are ready.
    pub ordered: bool,
    /// Number in the name of its first pod.
    pub start: i64,
}

impl RolledWorkload {
    /// Reads the fields common to all kinds; `None` for a workload that is not claimed or is being deleted.
    pub(super) fn read(kind: WorkloadKind, meta: &Meta, replicas: Option<i64>, partition: Option<i64>) -> Option<Self> {
        let claim = rollout_claim(meta, meta.namespace());
        let unclaimed = claim.is_none();
        let claim = claim.or_else(|| former_claim(meta, meta.namespace())).filter(|_| !meta.is_deleting())?;
        Some(Self {
            key: WorkloadKey::of(kind, meta),
            uid: meta.uid.as_deref().unwrap_or_default().into(),
            resource_version: meta.resource_version.clone().unwrap_or_default(),
            generation: meta.generation,
            claim,
            desired: desired(replicas),
            observed: false,
            partition: number(partition.unwrap_or(0)),
            user_partition: first_annotation(meta, names::USER_PARTITIONS).map(asked_partition),
            rollout_id: meta.annotation(names::ROLLOUT).filter(|id| *id != "enabled").map(str::to_owned),
            update_revision: None,
            current_revision: None,
            unclaimed,
            takes_partition: true,
            replica_size: 1,
            at_once: None,
            ordered: false,
            start: 0,
        })
    }

    /// Returns the partition that its user set: ordinals below it stay old, and the workload gets it back when its rollout
    /// ends.
    pub fn asked_partition(&self) -> u32 {
        self.user_partition.unwrap_or(0)
    }

    /// Reports whether a pod of this revision is replaced when the rollout goes back. Below the partition its controller makes pods at
    /// the current revision; of a workload that does not tell it, only pods of the template's revision are known to be of another one.
    pub fn leaves(&self, revision: Option<&str>) -> bool {
        let (current, update) = (self.current_revision.as_deref(), self.update_revision.as_deref());
        match current {
            Some(_) => current != update && revision.is_some() && revision != current,
            None => revision.is_some() && revision == update,
        }
    }

    /// Returns the command that deletes the pod of a replica; its controller makes it again.
    pub fn deletion_of(&self, ordinal: u32) -> String {
        let WorkloadKey { namespace, name, .. } = &self.key;
        deletion(namespace, &format!("{name}-{}", self.start + i64::from(ordinal)))
    }

    /// Reports whether a rollout is open and the partition is rolegate's.
    pub fn is_open(&self) -> bool {
        self.user_partition.is_some()
    }

    /// Reports whether both are equal apart from the resource version, on which no rollout depends.
    pub fn is_like(&self, other: &Self) -> bool {
        let same_version = Self { resource_version: other.resource_version.clone(), ..self.clone() };
        same_version == *other
    }
}
