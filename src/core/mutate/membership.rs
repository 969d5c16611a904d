//! Membership in a PodGroup of the pod's batch (podGroupPolicy).

use super::additions::Additions;
use crate::model::MemberKey;
use crate::mutate::context::{Coordinated, MutationContext};

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
    let replica_size = context.subject.identity.as_ref().map_or(1, |identity| identity.replica_size);
    let Some(own) = group.pod_group_of(role, ordinal, replica_size) else { return };
    let (key, name) = (own.key.as_str(), own.name);
    if let Some(other) = own.key.read(&context.pod.metadata).filter(|other| *other != name) {
        additions.warnings.push(format!("{key}: PodGroup {other:?} gives way to {name:?}, that of the pod's batch"));
    }
    match own.key {
        MemberKey::Label(key) => additions.labels.push((key.into(), name)),
        MemberKey::Annotation(key) => {
            additions.annotations.push((key.into(), name));
            additions.annotations.extend(own.key.beside().map(|(key, value)| (key.into(), value.to_owned())));
        }
    }
}
