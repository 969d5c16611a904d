//! Updates that nothing coordinates, such as those of workloads that are not claimed, and of a first version that never got ready. Where
//! pods above are held, the controller of a StatefulSet waits for them before it replaces the old ones below.

use std::ops::Bound::{Included, Unbounded};
use std::sync::Arc;

use crate::model::OwnUpdate;
use crate::plan::view::{PodFacts, RoleView};

/// The old pods of a role below held ones.
#[derive(Clone, Debug)]
pub struct Behind {
    /// Number of replicas below the lowest held one.
    pub(super) released: u32,
    /// The old pod to be replaced next.
    pub(super) next: Arc<PodFacts>,
    /// Old pods that are not ready, if they may be deleted.
    pub(super) broken: Vec<Arc<PodFacts>>,
}

impl Behind {
    /// Returns the old pods below held ones; `None` if there are none. `released` replicas of the role may run.
    pub(super) fn of(role: &RoleView, released: u32, update: &OwnUpdate, may_delete: bool) -> Option<Self> {
        let mut held = role.replicas.held((Included(released), Unbounded)).map(|pod| pod.ordinal);
        let lowest = held.next()?;
        let highest = held.last().unwrap_or(lowest);
        let is_old = |(ordinal, pod): &(u32, &Arc<PodFacts>)| {
            let revision = pod.revision.as_deref().filter(|_| !pod.held && (update.from..highest).contains(ordinal));
            revision.is_some_and(|revision| *revision != *update.revision)
        };
        let old = || role.replicas.pods().filter(is_old).map(|(_, pod)| pod);
        let broken = old().filter(|pod| may_delete && !pod.ready).cloned().collect();
        Some(Self { released: lowest, next: old().last()?.clone(), broken })
    }
}

#[cfg(test)]
#[path = "behind_tests.rs"]
mod tests;
