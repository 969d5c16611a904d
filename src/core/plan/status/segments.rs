//! Segments as counted in the status of a group (KEP-32, RBG Readiness Model).

use std::collections::BTreeMap;

use crate::model::Group;
use crate::plan::view::{ReplicaIs, RoleView};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Segments {
    /// The number of segments of the batched role with the most.
    pub total: u32,
    /// The number of segments with all replicas ready.
    pub ready: u32,
    /// Pods of the ready segments.
    pub ready_pods: u32,
    /// Pods of all segments.
    pub total_pods: u32,
}

/// Counts segments over all batched roles: a segment is ready if its replicas of every role are. A role without replicas left
/// for a segment does not count in it.
pub fn count(group: &Group, roles: &BTreeMap<String, RoleView>) -> Segments {
    let batched = roles.iter().filter_map(|(name, view)| Some((name, view, group.batching_of(name)?)));
    let batched: Vec<_> = batched.collect();
    let total = batched.iter().map(|(name, view, batching)| batching.batches_in(name, view.desired)).max().unwrap_or(0);
    let mut segments = Segments {
        total,
        total_pods: batched.iter().map(|(_, view, _)| view.desired_pods()).fold(0, u32::saturating_add),
        ..Segments::default()
    };
    // No segment beyond the last existing replica is ready.
    let begun =
        batched.iter().map(|(name, view, batching)| batching.batches_in(name, view.replicas.end())).max().unwrap_or(0);
    for segment in 0..begun.min(total) {
        let ranges =
            || batched.iter().map(move |(name, view, batching)| (view, batching.ordinals(name, segment, view.desired)));
        if ranges().all(|(view, ordinals)| view.all_in(ordinals, ReplicaIs::Ready)) {
            segments.ready += 1;
            let pods = ranges().map(|(view, ordinals)| view.pods_in(ordinals));
            segments.ready_pods = pods.fold(segments.ready_pods, u32::saturating_add);
        }
    }
    segments
}
