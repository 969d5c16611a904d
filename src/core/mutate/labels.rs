//! Labels of a pod in a group.

use super::additions::{Additions, Entry};
use crate::api::Meta;
use crate::model::{BatchKind, Group, names, place_labels, revision};
use crate::mutate::context::{Coordinated, MutationContext, PodSettings, TopologyLookup};

/// Returns the labels of a batched replica's pods (KEP-75, Pod Label Example; KEP-30, Coordination Labels); none without an
/// ordinal, or where a stored size below 1 makes no batches.
fn batch_labels(group: &Group, role: &str, ordinal: Option<u32>) -> Vec<Entry> {
    let (Some(ordinal), Some(size)) = (ordinal, group.batch_size(role)) else { return Vec::new() };
    let [size, segment] = place_labels(size, ordinal).map(|(key, value)| (key.into(), value));
    let mut labels: Vec<Entry> = vec![
        (names::KEP75_GROUP.into(), names::label_value(&group.key.name)),
        (names::KEP75_ROLE.into(), names::label_value(role)),
        size,
        (names::KEP75_INSTANCE_INDEX.into(), ordinal.to_string()),
        segment,
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

/// Returns the labels of a batched role's workload (KEP-75, Workload Label Example).
pub(super) fn workload_labels(group: &Group, role: &str) -> Vec<(&'static str, String)> {
    let Some(size) = group.batch_size(role) else { return Vec::new() };
    let mut labels = vec![
        (names::KEP75_GROUP, names::label_value(&group.key.name)),
        (names::KEP75_ROLE, names::label_value(role)),
        (names::KEP75_SUBGROUP_SIZE, size.to_string()),
    ];
    let topology = group.batch_with_topology(role, 0).map(|batch| batch.coordination.display_name());
    labels.extend(topology.map(|name| (names::KEP75_COORDINATION, names::label_value(&name))));
    labels
}

/// Returns the labels that a release adds to a pod of a batched replica. A pod created before its group, or numbered by
/// rolegate, gets all; with `size_only` a pod created with another batch size gets those that depend on the size.
pub fn late_labels(group: &Group, role: &str, ordinal: u32, size_only: bool, revision: Option<&str>) -> Vec<Entry> {
    match group.batch_size(role) {
        Some(size) if size_only => place_labels(size, ordinal).map(|(key, value)| (key.into(), value)).to_vec(),
        _ => {
            let of_rollout = revision.into_iter().flat_map(|revision| rollout_labels(group, role, revision));
            batch_labels(group, role, Some(ordinal)).into_iter().chain(of_rollout).collect()
        }
    }
}

/// Adds the labels of the pod's batch. The labels of group and role are used by RBG as well. An existing different value
/// stays: a controller whose selector no longer matches would create the pod again without end.
pub(super) fn of_batch(context: &MutationContext<'_>, additions: &mut Additions) {
    let Some(Coordinated { group, role, ordinal, .. }) = context.coordinated else { return };
    // The batch label is the target of the pod's affinity, which needs the layer.
    let lacks_layer = context.subject.layer(group).is_some() && context.lookups.topology == TopologyLookup::Missing;
    let is_stamped = |(key, _): &Entry| key != names::KEP75_BATCH || !lacks_layer;
    for (key, value) in batch_labels(group, role, ordinal).into_iter().filter(is_stamped) {
        let present = names_of_others(&context.pod.metadata, &key).filter(|present| *present != value);
        if let Some(present) = present {
            let kept = format!("label {key} is {present:?} where rolegate would write {value:?}: it is left as it is");
            additions.warnings.push(kept);
            continue;
        }
        add(context.settings, additions, (key, value));
    }
}

/// Adds a label, preceded by its second name from the settings.
fn add(settings: &PodSettings, additions: &mut Additions, (key, value): Entry) {
    let also = match key.as_ref() {
        names::SEGMENT => &settings.segment_label,
        names::COHORT => &settings.cohort_label,
        _ => &None,
    };
    additions.labels.extend(also.iter().map(|also| (also.clone().into(), value.clone())));
    additions.labels.push((key, value));
}

fn names_of_others<'a>(meta: &'a Meta, key: &str) -> Option<&'a str> {
    let shared = [names::KEP75_GROUP, names::KEP75_ROLE];
    meta.label(key).filter(|present| shared.contains(&key) && !present.is_empty())
}

/// Returns the value of the label for group or role that the pod will have.
pub(super) fn shared_label(meta: &Meta, key: &str, text: &str) -> String {
    names_of_others(meta, key).map_or_else(|| names::label_value(text), str::to_owned)
}

/// Returns the labels of a pod of a role that is rolled in lockstep: the revision, under one key for every maker, and the
/// cohort, by which a router pairs pods that were rolled together (KEP-30, Router).
fn rollout_labels(group: &Group, role: &str, revision: &str) -> Vec<Entry> {
    if !group.rolls(role) {
        return Vec::new();
    }
    // The cohort comes from the status: an invalid value must not block pods.
    let cohort = group.cohort(role, revision).map(|cohort| (names::COHORT.into(), names::label_value(cohort)));
    std::iter::once((names::REVISION.into(), revision.to_owned())).chain(cohort).collect()
}

/// Adds the labels of a pod that is rolled in lockstep.
pub(super) fn of_rollout(context: &MutationContext<'_>, additions: &mut Additions) {
    let Some(Coordinated { group, role, .. }) = context.coordinated else { return };
    let Some(revision) = revision(&context.pod.metadata) else { return };
    rollout_labels(group, role, revision).into_iter().for_each(|label| add(context.settings, additions, label));
}
