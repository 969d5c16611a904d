//! Released segments of which some pods cannot be scheduled: where segments go in part, what would keep them together.

use std::collections::BTreeMap;

use serde::Serialize;

use super::Story;
use crate::model::wording::counted;

/// A released batch of which some pods cannot be scheduled.
#[derive(Debug, Serialize)]
pub struct InPart {
    coordination: String,
    index: u32,
    /// Pods that the scheduler finds no node for.
    unschedulable: u32,
    pub(super) sentence: String,
}

impl Story<'_> {
    /// Returns released batches of which some pods cannot be scheduled, but for those that go only when all of them fit.
    pub fn in_part(self) -> Vec<InPart> {
        let Self(picture) = self;
        let Some(group) = picture.group() else { return Vec::new() };
        let mut all = Vec::new();
        for (coordination, batching) in group.batched().filter(|(_, batching)| !batching.is_all_or_nothing()) {
            let mut lacking: BTreeMap<u32, u32> = BTreeMap::new();
            for name in batching.sizes.keys() {
                let pods = picture.seen.view.roles.get(name).into_iter().flat_map(|role| role.replicas.pods());
                for (ordinal, _) in pods.filter(|(_, pod)| pod.unschedulable.is_some() && !pod.held && !pod.gated) {
                    if let Some(batch) = batching.batch_of(name, ordinal) {
                        *lacking.entry(batch).or_default() += 1;
                    }
                }
            }
            all.extend(lacking.into_iter().map(|(index, unschedulable)| InPart {
                sentence: format!(
                    "{} is released, and {} of it cannot be scheduled: with `whole: true` it would go only when all of it fits",
                    batching.batch_name(index),
                    counted(unschedulable, "pod")
                ),
                coordination: coordination.display_name(),
                index,
                unschedulable,
            }));
        }
        all
    }
}
