//! Workloads that are claimed, as far as their scale goes.

use std::sync::Arc;

use super::{RolloutClaim, WorkloadKey, WorkloadKind, rollout_claim};
use crate::api::Meta;

/// A workload that is claimed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScaledWorkload {
    /// Its name.
    pub key: WorkloadKey,
    /// Its unique id.
    pub uid: Arc<str>,
    /// Its version when it was read: it is scaled only on that one.
    pub resource_version: String,
    /// Group and role.
    pub claim: RolloutClaim,
    /// Replicas that it is to have.
    pub desired: u32,
}

impl ScaledWorkload {
    /// Reads what all kinds have; `None` for one that is not claimed, or is being deleted.
    pub(super) fn read(kind: WorkloadKind, meta: &Meta, desired: u32) -> Option<Self> {
        Some(Self {
            key: WorkloadKey { namespace: meta.namespace().to_owned(), kind, name: meta.display_name().to_owned() },
            uid: meta.uid.as_deref().unwrap_or_default().into(),
            resource_version: meta.resource_version.clone().unwrap_or_default(),
            claim: rollout_claim(meta, meta.namespace()).filter(|_| !meta.is_deleting())?,
            desired,
        })
    }
}
