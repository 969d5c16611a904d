//! The leaf subgroup of a pod in its PodGroup (KAI, hierarchical PodGroup), where the pod's role tells it.

use super::Patch;
use crate::api::Pod;
use crate::model::{GangTree, PodIdentity, names};

/// The label that names the pod's leaf; empty when the pod has one, or when its role names no leaf.
pub fn fill_in_subgroup(pod: &Pod, identity: &PodIdentity, pod_group: &GangTree) -> Patch {
    let mut patch = Patch::default();
    let labelled = pod.metadata.label(names::KAI_SUBGROUP).is_some_and(|label| !label.is_empty());
    let leaf = identity.role.as_deref().and_then(|role| pod_group.leaf_for(role, identity.ordinal));
    if let Some(leaf) = leaf.filter(|_| !labelled) {
        patch.set_entries("/metadata/labels", &pod.metadata.labels, vec![(names::KAI_SUBGROUP, leaf.name.clone())]);
    }
    patch
}

/// The PodGroup that a pod names, in the pod's own namespace.
pub fn pod_group_name(pod: &Pod) -> Option<&str> {
    pod.metadata.annotation(names::KAI_POD_GROUP).filter(|name| !name.is_empty())
}
