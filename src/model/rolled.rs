//! Workloads that are claimed for rollouts in lockstep (KEP-30): where they stand, and where they go.

use std::sync::Arc;

use super::workload::desired;
use super::{GroupKey, WorkloadKey, WorkloadKind, names};
use crate::api::Meta;

/// A workload's claim to be rolled in lockstep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RolloutClaim {
    /// Its group.
    pub group: GroupKey,
    /// Its role.
    pub role: String,
}

/// The claim of a workload: by our own labels on it, or, with the opt-in annotation, by those of the controller that owns
/// it. No other workload depends on us.
pub fn rollout_claim(meta: &Meta, namespace: &str) -> Option<RolloutClaim> {
    let opted_in = meta.annotation(names::ROLLOUT) == Some("enabled");
    let read = |(group, role): &(&str, &str)| {
        let claim =
            RolloutClaim { group: GroupKey::new(namespace, meta.label(group)?), role: meta.label(role)?.to_owned() };
        (!claim.group.name.is_empty() && !claim.role.is_empty()).then_some(claim)
    };
    names::LABEL_SCHEMES.iter().filter(|scheme| opted_in || scheme.0 == names::GROUP).find_map(read)
}

/// The partition that the user of a workload asked for, as our annotation on it keeps it while a rollout is open. What
/// cannot be read is none: the rollout must end.
pub fn asked_partition(annotation: &str) -> u32 {
    annotation.parse().map_or(0, number)
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
}

impl RolledWorkload {
    /// Reads what all kinds have; `None` for one that is not claimed, or is being deleted.
    pub(super) fn read(kind: WorkloadKind, meta: &Meta, replicas: Option<i64>, partition: Option<i64>) -> Option<Self> {
        let claim = rollout_claim(meta, meta.namespace()).filter(|_| !meta.is_deleting())?;
        Some(Self {
            key: WorkloadKey { namespace: meta.namespace().to_owned(), kind, name: meta.display_name().to_owned() },
            uid: meta.uid.as_deref().unwrap_or_default().into(),
            resource_version: meta.resource_version.clone().unwrap_or_default(),
            claim,
            desired: desired(replicas),
            observed: false,
            partition: number(partition.unwrap_or(0)),
            user_partition: meta.annotation(names::USER_PARTITION).map(asked_partition),
            rollout_id: meta.annotation(names::ROLLOUT).filter(|id| *id != "enabled").map(str::to_owned),
            update_revision: None,
            current_revision: None,
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
