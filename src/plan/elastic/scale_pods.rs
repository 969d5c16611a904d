//! Which pods stand for their segments: an autoscaler that reads metrics of pods sees one of each segment, so that what it counts are
//! segments, and no pod of another autoscaler's workload is among them.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::model::{Batching, Group, names};
use crate::plan::marks::Mark;
use crate::plan::view::{GroupView, PodFacts, RoleView};

/// The selector of these pods, as the status says it.
pub(in crate::plan) fn selector(group: &Group) -> String {
    format!("{}={}", names::SCALE_POD, names::label_value(&group.key.name))
}

/// The pods that are to say so, and those that are to say so no longer: in each released segment the first pod that runs of the
/// first role that has replicas in segments.
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

/// The first pod of a segment that runs.
fn of_segment(role: &RoleView, size: u32, segment: u32) -> Option<&Arc<PodFacts>> {
    let first = segment.checked_mul(size)?;
    let ordinals = first..first.saturating_add(size);
    ordinals.flat_map(|ordinal| role.replicas.pods_of(ordinal)).find(|pod| !pod.held)
}

/// Of a group that is not scaled by segments no pod stands for one.
pub(in crate::plan) fn stray(view: &GroupView) -> impl Iterator<Item = Mark> {
    view.roles.values().flat_map(|role| role.replicas.scale_pods()).map(mark_no_longer)
}

fn mark_no_longer(pod: &Arc<PodFacts>) -> Mark {
    Mark::stands(&pod.pod, None)
}
