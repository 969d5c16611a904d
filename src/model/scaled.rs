//! Workloads that are claimed, as far as their scale goes.

use std::sync::Arc;

use super::{RolloutClaim, WorkloadKey, WorkloadKind, rollout_claim};
use crate::api::Meta;
use crate::api::scheduling::SchedulingPod;
use crate::api::workload::PodTemplate;

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
    /// Its controller says that some of its pods are of an older template, and may make others beyond the desired ones.
    pub has_old_pods: bool,
    /// The pods of a replica that is yet to be made.
    pub replica: Arc<ReplicaPods>,
}

/// The pods of one replica as they would be made: each sort, and how many there are of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReplicaPods(pub Vec<(SchedulingPod, u32)>);

// No amount in it is a float.
impl Eq for ReplicaPods {}

impl ReplicaPods {
    /// Those of templates, in a namespace.
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
    /// One that is only counted: nothing else is known of it.
    pub fn of_nothing(key: WorkloadKey, claim: RolloutClaim, desired: u32) -> Self {
        let (uid, resource_version, replica) = (Arc::from(""), String::new(), Arc::default());
        Self { key, uid, resource_version, claim, desired, has_old_pods: false, replica }
    }

    /// Reads what all kinds have; `None` for one that is not claimed, or is being deleted.
    pub(super) fn read<'a>(
        kind: WorkloadKind,
        meta: &Meta,
        desired: u32,
        replica: impl IntoIterator<Item = (&'a PodTemplate, u32)>,
    ) -> Option<Self> {
        let claim = rollout_claim(meta, meta.namespace()).filter(|_| !meta.is_deleting())?;
        Some(Self {
            key: WorkloadKey { namespace: meta.namespace().to_owned(), kind, name: meta.display_name().to_owned() },
            uid: meta.uid.as_deref().unwrap_or_default().into(),
            resource_version: meta.resource_version.clone().unwrap_or_default(),
            claim,
            desired,
            has_old_pods: false,
            replica: Arc::new(ReplicaPods::of(meta.namespace(), replica)),
        })
    }
}
