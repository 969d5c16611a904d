//! Claimed workloads, limited to their scale.

use std::sync::Arc;

use super::{RolloutClaim, WorkloadKey, WorkloadKind, rollout_claim};
use crate::api::Meta;
use crate::api::scheduling::SchedulingPod;
use crate::api::workload::PodTemplate;

/// A claimed workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScaledWorkload {
    pub key: WorkloadKey,
    pub uid: Arc<str>,
    /// Resource version that was read; the workload is scaled only at this version.
    pub resource_version: String,
    pub claim: RolloutClaim,
    pub desired: u32,
    /// True when its controller reports pods of an older template, and may create pods beyond the desired ones.
    pub has_old_pods: bool,
    /// Pods of a replica that is not created yet.
    pub replica: Arc<ReplicaPods>,
}

/// The pods of one replica as they would be created: each kind of pod with its number.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReplicaPods(pub Vec<(SchedulingPod, u32)>);

// No amount is a float.
impl Eq for ReplicaPods {}

impl ReplicaPods {
    /// Returns the pods of these templates in a namespace.
    pub(super) fn of<'a>(namespace: &str, templates: impl IntoIterator<Item = (&'a PodTemplate, u32)>) -> Self {
        let pod = |(template, count): (&PodTemplate, u32)| {
            let PodTemplate { metadata, spec } = template.clone();
            let metadata = Meta { namespace: Some(namespace.to_owned()), ..metadata };
            (SchedulingPod { metadata, spec, ..SchedulingPod::default() }, count)
        };
        Self(templates.into_iter().filter(|(_, count)| *count > 0).map(pod).collect())
    }
}

impl ScaledWorkload {
    /// Returns a workload of which only the count is known.
    pub fn of_nothing(key: WorkloadKey, claim: RolloutClaim, desired: u32) -> Self {
        let (uid, resource_version, replica) = (Arc::from(""), String::new(), Arc::default());
        Self { key, uid, resource_version, claim, desired, has_old_pods: false, replica }
    }

    /// Reads the fields common to all kinds; `None` for a workload that is not claimed or is being deleted.
    pub(super) fn read<'a>(
        kind: WorkloadKind,
        meta: &Meta,
        desired: u32,
        replica: impl IntoIterator<Item = (&'a PodTemplate, u32)>,
    ) -> Option<Self> {
        let claim = rollout_claim(meta, meta.namespace()).filter(|_| !meta.is_deleting())?;
        Some(Self {
            key: WorkloadKey::of(kind, meta),
            uid: meta.uid.as_deref().unwrap_or_default().into(),
            resource_version: meta.resource_version.clone().unwrap_or_default(),
            claim,
            desired,
            has_old_pods: false,
            replica: Arc::new(ReplicaPods::of(meta.namespace(), replica)),
        })
    }
}
