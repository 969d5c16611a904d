//! A pod at creation: its gate and its labels (SPEC §3.2, §3.4).

use serde_json::json;

use super::Patch;
use crate::api::Pod;
use crate::model::{Group, PodIdentity, names};

/// What is known of the group that a pod names.
#[derive(Clone, Copy, Debug)]
pub enum GroupLookup<'a> {
    /// It is this one.
    Found(&'a Group),
    /// A live read says that there is none (yet).
    Absent,
}

/// What becomes of a pod.
#[derive(Debug, Default)]
pub struct PodMutation {
    /// The changes; empty when the pod is as it should be.
    pub patch: Patch,
    /// Shown to whoever creates the pod.
    pub warnings: Vec<String>,
    /// True when the pod carries the gate afterwards.
    pub held: bool,
}

/// The gate and labels of a pod that names a group. When in doubt it is gated: a gate can be lifted later, not added. No
/// ordinal and no count exempts a pod; only a node that is already set does, since the API server refuses the pair.
pub fn mutate_pod(pod: &Pod, identity: &PodIdentity, lookup: GroupLookup<'_>) -> PodMutation {
    let Some(role) = identity.role.as_deref() else { return PodMutation::default() };
    let name = &identity.group.name;
    let (labels, held_by) = match lookup {
        GroupLookup::Absent => (Vec::new(), name.to_string()),
        GroupLookup::Found(group) if group.role(role).is_none() && !group.roles.is_empty() => {
            let warning = format!("role {role:?} is not in group {name:?}: the pod is not coordinated");
            return PodMutation { warnings: vec![warning], ..PodMutation::default() };
        }
        GroupLookup::Found(group) => {
            let Some((coordination, _)) = group.batchings_of(role).next() else { return PodMutation::default() };
            (batch_labels(group, role, identity.ordinal), format!("{name}/{}", coordination.display_name()))
        }
    };
    let mut mutation = PodMutation::default();
    mutation.patch.set_entries("/metadata/labels", &pod.metadata.labels, labels);
    if pod.spec.node_name.as_deref().is_some_and(|node| !node.is_empty()) {
        mutation.warnings.push("spec.nodeName is set: the pod is bound at creation and is not held".to_owned());
        return mutation;
    }
    mutation.held = true;
    mutation.patch.set_entries("/metadata/annotations", &pod.metadata.annotations, vec![(names::HELD_BY, held_by)]);
    if !pod.has_gate(names::GATE) {
        let gate = json!({ "name": names::GATE });
        match pod.spec.scheduling_gates {
            Some(_) => mutation.patch.add("/spec/schedulingGates/-", gate),
            None => mutation.patch.add("/spec/schedulingGates", json!([gate])),
        }
    }
    mutation
}

/// The labels of a batched pod (KEP-75, Pod Label Example); none without an ordinal, or where a stored size below 1 makes
/// no batches.
pub fn batch_labels(group: &Group, role: &str, ordinal: Option<u32>) -> Vec<(&'static str, String)> {
    let (Some(ordinal), Some(size)) = (ordinal, group.batch_size(role)) else { return Vec::new() };
    vec![
        (names::KEP75_GROUP, names::label_value(&group.key.name)),
        (names::KEP75_ROLE, names::label_value(role)),
        (names::KEP75_SUBGROUP_SIZE, size.to_string()),
        (names::KEP75_INSTANCE_INDEX, ordinal.to_string()),
    ]
}
