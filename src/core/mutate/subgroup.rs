//! The leaf subgroup of a pod in its PodGroup (KAI, hierarchical PodGroup), derived from the pod's role.

use super::additions::Additions;
use crate::api::Pod;
use crate::model::{GangTree, PodIdentity, names};
use crate::mutate::context::MutationContext;

/// Adds the label of the leaf subgroup.
pub(super) fn of_role(context: &MutationContext<'_>, additions: &mut Additions) {
    let (Some(identity), Some(pod_group)) = (&context.subject.identity, context.lookups.pod_group) else { return };
    let leaf = leaf(context.pod, identity, pod_group);
    additions.labels.extend(leaf.map(|leaf| (names::KAI_SUBGROUP.into(), leaf)));
}

fn leaf(pod: &Pod, identity: &PodIdentity, pod_group: &GangTree) -> Option<String> {
    let labelled = pod.metadata.label(names::KAI_SUBGROUP).is_some_and(|label| !label.is_empty());
    let leaf = identity.role.as_deref().and_then(|role| pod_group.leaf_for(role, identity.ordinal));
    leaf.filter(|_| !labelled).map(|leaf| leaf.name.clone())
}
