//! Segments as a group's status counts them (KEP-32, RBG Readiness Model).

use std::collections::BTreeMap;

use crate::model::Group;
use crate::plan::view::{Replica, RoleView};

/// Segments of a group and the pods in them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Segments {
    /// Segments of the batched role that has most.
    pub total: u32,
    /// Segments in which every role's replicas are ready.
    pub ready: u32,
    /// Pods of the ready segments.
    pub ready_pods: u32,
    /// Pods of all segments.
    pub total_pods: u32,
}

/// Counts segments over all batched roles: segment k is ready when every role's replicas in
/// `[k·size, min((k+1)·size, desired))` are; an empty range is.
pub fn count(group: &Group, roles: &BTreeMap<String, RoleView>) -> Segments {
    let batched: Vec<_> = roles.iter().filter_map(|(name, view)| Some((view, group.batch_size(name)?))).collect();
    let total = batched.iter().map(|(view, size)| view.desired.div_ceil(*size)).max().unwrap_or(0);
    let mut segments = Segments {
        total,
        total_pods: batched.iter().map(|(view, _)| view.desired_pods()).sum(),
        ..Segments::default()
    };
    for segment in 0..total {
        let ranges = || {
            batched.iter().map(move |(view, size)| {
                let from = segment.saturating_mul(*size).min(view.desired);
                (view, from, from.saturating_add(*size).min(view.desired))
            })
        };
        if ranges().all(|(view, from, to)| view.all_in(from, to, Replica::is_ready)) {
            segments.ready += 1;
            segments.ready_pods += ranges().map(|(view, from, to)| view.pods_in(from, to)).sum::<u32>();
        }
    }
    segments
}
