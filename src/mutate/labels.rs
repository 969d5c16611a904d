//! Labels of a pod in a group.

use super::additions::{Additions, Entry};
use crate::api::Meta;
use crate::model::{BatchKind, Group, names};
use crate::mutate::context::{Coordinated, MutationContext};

/// The labels of a batched replica's pods (KEP-75, Pod Label Example; KEP-30, Coordination Labels); none where a stored
/// size below 1 makes no batches, or no ordinal is known. The loop gives them to pods that came before their group, and to
/// those that it had to number itself.
pub fn batch_labels(group: &Group, role: &str, ordinal: Option<u32>) -> Vec<Entry> {
    let (Some(ordinal), Some(size)) = (ordinal, group.batch_size(role)) else { return Vec::new() };
    let mut labels: Vec<Entry> = vec![
        (names::KEP75_GROUP.into(), names::label_value(&group.key.name)),
        (names::KEP75_ROLE.into(), names::label_value(role)),
        (names::KEP75_SUBGROUP_SIZE.into(), size.to_string()),
        (names::KEP75_INSTANCE_INDEX.into(), ordinal.to_string()),
    ];
    if let Some(batch) = group.batch_with_topology(role, ordinal) {
        let coordination = names::label_value(&batch.coordination.display_name());
        if batch.batching.kind == BatchKind::AffinityScheduling {
            let key = format!("{}{coordination}", names::KEP30_MEMBER_PREFIX);
            labels.push((key.into(), names::KEP30_MEMBER.to_owned()));
        }
        labels.push((names::KEP75_COORDINATION.into(), coordination));
        labels.push((names::KEP75_BATCH.into(), batch.label()));
    }
    labels
}

/// The labels of the pod's batch. The two that name group and role are RBG's own as well: where another value stands, a
/// selector may count on it, and the pod of a controller that no longer selects it would be made again for ever.
pub(super) fn of_batch(context: &MutationContext<'_>, additions: &mut Additions) {
    let Some(Coordinated { group, role, ordinal, .. }) = context.coordinated else { return };
    for (key, value) in batch_labels(group, role, ordinal) {
        let present = names_of_others(&context.pod.metadata, &key).filter(|present| *present != value);
        match present {
            Some(present) => additions
                .warnings
                .push(format!("label {key} is {present:?} where rolegate would write {value:?}: it is left as it is")),
            None => additions.labels.push((key, value)),
        }
    }
}

fn names_of_others<'a>(meta: &'a Meta, key: &str) -> Option<&'a str> {
    let shared = [names::KEP75_GROUP, names::KEP75_ROLE];
    meta.label(key).filter(|present| shared.contains(&key) && !present.is_empty())
}

/// Value of the label that names the group or the role, as the pod will carry it.
pub(super) fn shared_label(meta: &Meta, key: &str, text: &str) -> String {
    names_of_others(meta, key).map_or_else(|| names::label_value(text), str::to_owned)
}

/// In a rollout in lockstep: the revision, under one key for every maker, so that a router can tell updated pods (KEP-30,
/// Router).
pub(super) fn revision(context: &MutationContext<'_>, additions: &mut Additions) {
    let Some(Coordinated { group, role, .. }) = context.coordinated else { return };
    let mut rollouts = group.coordinations.iter().filter(|coordination| coordination.rolling_update.is_some());
    if rollouts.any(|coordination| coordination.role_names().contains(role)) {
        let revision = names::REVISION_LABELS.iter().find_map(|key| context.pod.metadata.label(key));
        additions.labels.extend(revision.map(|revision| (names::REVISION.into(), revision.to_owned())));
    }
}
