//! Membership in the PodGroup of a batch (KEP-75, podGroupPolicy).

use super::additions::{Additions, Entry};
use crate::api::Meta;
use crate::model::{Group, PodGroupPolicy, names};
use crate::mutate::context::{Coordinated, MutationContext};

/// The place where a gang scheduler reads the PodGroup of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Membership {
    Label(Entry),
    Annotation(Entry),
}

impl Membership {
    pub fn entry(&self) -> &Entry {
        match self {
            Self::Label(entry) | Self::Annotation(entry) => entry,
        }
    }

    /// Returns another PodGroup that the pod names in the same place.
    pub fn other<'a>(&self, meta: &'a Meta) -> Option<&'a str> {
        let present = match self {
            Self::Label((key, _)) => meta.label(key),
            Self::Annotation((key, _)) => meta.annotation(key),
        };
        present.filter(|present| !present.is_empty() && *present != self.entry().1)
    }
}

/// Returns the membership of a replica's pods in the PodGroup of their batch; `None` without a policy, or with an unknown
/// one.
pub fn membership(group: &Group, role: &str, ordinal: u32) -> Option<Membership> {
    let batch = group.batches_of(role, ordinal).find(|batch| batch.batching.pod_group.is_some())?;
    let (policy, _) = batch.batching.pod_group.as_ref()?;
    let name = batch.pod_group_name();
    match policy {
        PodGroupPolicy::KubeScheduling { .. } => Some(Membership::Label((names::KUBE_POD_GROUP.into(), name))),
        PodGroupPolicy::VolcanoScheduling { .. } => {
            Some(Membership::Annotation((names::VOLCANO_POD_GROUP.into(), name)))
        }
        PodGroupPolicy::Kai { .. } => Some(Membership::Annotation((names::KAI_POD_GROUP.into(), name))),
        PodGroupPolicy::Unknown => None,
    }
}

/// Adds the PodGroup of the pod's batch, and a warning on the immutable `spec.schedulingGroup`. A different PodGroup in the
/// pod, such as a gang over the whole group, would wait for held pods.
pub(super) fn of_batch(context: &MutationContext<'_>, additions: &mut Additions) {
    let Some(Coordinated { group, role, ordinal: Some(ordinal), .. }) = context.coordinated else { return };
    if let Some(native) = &context.pod.spec.scheduling_group
        && group.batches_of(role, ordinal).next().is_some()
    {
        additions.warnings.push(format!(
            "spec.schedulingGroup: no batch starts if PodGroup {:?} reaches over more than this pod's: its gang waits for pods \
             that are held",
            native.pod_group_name
        ));
    }
    let Some(membership) = membership(group, role, ordinal) else { return };
    if let Some(other) = membership.other(&context.pod.metadata) {
        let (key, name) = membership.entry();
        additions.warnings.push(format!("{key}: PodGroup {other:?} gives way to {name:?}, that of the pod's batch"));
    }
    match membership {
        Membership::Label(entry) => additions.labels.push(entry),
        Membership::Annotation(entry) => {
            // The podgrouper of KAI would overwrite it with a PodGroup for each workload.
            let skip =
                (entry.0 == names::KAI_POD_GROUP).then(|| (names::KAI_SKIP_PODGROUPER.into(), "true".to_owned()));
            additions.annotations.push(entry);
            additions.annotations.extend(skip);
        }
    }
}
