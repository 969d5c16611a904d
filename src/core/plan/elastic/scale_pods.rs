//! Scale pods: one labelled pod per segment. An autoscaler that reads pod metrics thus counts segments, and sees no pods of
//! another autoscaler's workload.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::model::{Batching, Group, names};
use crate::plan::marks::Mark;
use crate::plan::view::{GroupView, PodFacts, RoleView};

/// Returns the label selector of the scale pods, as in the status.
pub(in crate::plan) fn selector(group: &Group) -> String {
    format!("{}={}", names::SCALE_POD, names::label_value(&group.key.name))
}

/// Returns changes to the label: each released segment needs it on the first running pod of the first role with segments.
pub(super) fn marks(group: &Group, batching: &Batching, view: &GroupView, segments: u32) -> Vec<Mark> {
    let first = group.roles.iter().find_map(|role| Some((batching.size(&role.name)?, view.roles.get(&role.name)?)));
    let chosen: Vec<_> = first
        .into_iter()
        .flat_map(|(size, role)| (0..segments).filter_map(move |segment| of_segment(role, size, segment)))
        .collect();
    let uids: BTreeSet<_> = chosen.iter().map(|pod| &pod.pod.uid).collect();
    let others = view.roles.values().flat_map(|role| role.replicas.scale_pods());
    let others = others.filter(|pod| !uids.contains(&pod.pod.uid)).map(mark_no_longer);
    let missing = chosen.iter().filter(|pod| !pod.scale_pod).map(|pod| Mark::stands(&pod.pod, Some(&group.key)));
    others.chain(missing).collect()
}

/// Returns the first running pod of a segment.
fn of_segment(role: &RoleView, size: u32, segment: u32) -> Option<&Arc<PodFacts>> {
    let first = segment.checked_mul(size)?;
    let ordinals = first..first.saturating_add(size);
    ordinals.flat_map(|ordinal| role.replicas.pods_of(ordinal)).find(|pod| !pod.held)
}

/// Removes the label from all pods of a group that is not scaled by segments.
pub(in crate::plan) fn stray(view: &GroupView) -> impl Iterator<Item = Mark> {
    view.roles.values().flat_map(|role| role.replicas.scale_pods()).map(mark_no_longer)
}

fn mark_no_longer(pod: &Arc<PodFacts>) -> Mark {
    Mark::stands(&pod.pod, None)
}
