//! Workloads that are claimed for rollouts in lockstep (KEP-30): where they stand, and where they go.

use std::sync::Arc;

use super::rollout_claim::first_annotation;
use super::workload::desired;
use super::{RolloutClaim, WorkloadKey, WorkloadKind, former_claim, names, rollout_claim};
use crate::api::Meta;

/// The partition that the user of a workload asked for, as our annotation on it keeps it while a rollout is open. What
/// cannot be read is none: the rollout must end.
pub fn asked_partition(annotation: &str) -> u32 {
    annotation.parse().map_or(0, number)
}

/// The partition that a workload's user has written: while a rollout is open the one in its spec is ours.
pub(super) fn partition_of_user(meta: &Meta, in_spec: Option<i64>) -> Option<i64> {
    match first_annotation(meta, names::USER_PARTITIONS) {
        // None and 0 were one when the rollout opened.
        Some(kept) => Some(i64::from(asked_partition(kept))).filter(|partition| *partition != 0),
        None => in_spec,
    }
}

fn number(number: i64) -> u32 {
    u32::try_from(number.max(0)).unwrap_or(u32::MAX)
}

/// A workload that is claimed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RolledWorkload {
    /// Its name.
    pub key: WorkloadKey,
    /// Its unique id.
    pub uid: Arc<str>,
    /// Its version when it was read: the partition is set only on that one.
    pub resource_version: String,
    /// `metadata.generation`: which edit of it this is.
    pub generation: Option<i64>,
    /// Group and role.
    pub claim: RolloutClaim,
    /// Desired replicas.
    pub desired: u32,
    /// Its controller has seen its last change.
    pub observed: bool,
    /// Its own partition.
    pub partition: u32,
    /// The partition that its user asked for; there while a rollout is open.
    pub user_partition: Option<u32>,
    /// What ties the edits of several roles together, where somebody wrote it.
    pub rollout_id: Option<String>,
    /// Revision that it goes to, as its pods are labelled; `None` where that is not known.
    pub update_revision: Option<String>,
    /// Revision that it comes from; `None` where it does not say.
    pub current_revision: Option<String>,
    /// Its claim was taken away while its rollout was open.
    pub unclaimed: bool,
}

impl RolledWorkload {
    /// Reads what all kinds have; `None` for one that is not claimed, or is being deleted.
    pub(super) fn read(kind: WorkloadKind, meta: &Meta, replicas: Option<i64>, partition: Option<i64>) -> Option<Self> {
        let claim = rollout_claim(meta, meta.namespace());
        let unclaimed = claim.is_none();
        let claim = claim.or_else(|| former_claim(meta, meta.namespace())).filter(|_| !meta.is_deleting())?;
        Some(Self {
            key: WorkloadKey { namespace: meta.namespace().to_owned(), kind, name: meta.display_name().to_owned() },
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
        })
    }

    /// The partition that its user asked for: ordinals below it stay old, and it gets this one back when its rollout ends.
    pub fn asked_partition(&self) -> u32 {
        self.user_partition.unwrap_or(0)
    }

    /// True while a rollout is open: the partition is ours.
    pub fn is_open(&self) -> bool {
        self.user_partition.is_some()
    }

    /// The same but for its version: nothing that a rollout depends on has changed.
    pub fn is_like(&self, other: &Self) -> bool {
        let same_version = Self { resource_version: other.resource_version.clone(), ..self.clone() };
        same_version == *other
    }
}
