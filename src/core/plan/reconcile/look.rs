//! Live reads of state that the watches may show late: of the group before a pod is released, and of the pods before running
//! ones count.

use crate::plan::view::PodFacts;

/// The state of live reads.
#[derive(Debug, Default)]
pub(in crate::plan) struct Looks {
    /// The number of pods seen when the last read of the group began.
    pub(in crate::plan) group: Option<u64>,
    /// The number of pods seen when the known state of the group was certainly current, by a read or by a write that its
    /// version allowed.
    group_shown: Option<u64>,
    /// The uid of the carrier when the last read of the pods began.
    pub(in crate::plan) pods: Option<String>,
    /// The uid of the carrier for which the pods were read.
    pods_shown: Option<String>,
}

impl Looks {
    /// Notes that the group is known as it was when `seen` pods had been seen.
    pub(in crate::plan) fn show_group(&mut self, seen: Option<u64>) {
        self.group_shown = self.group_shown.max(seen);
    }

    pub(in crate::plan) fn show_pods(&mut self) {
        self.pods_shown = self.pods.take();
    }

    /// Reports whether the known state of the group is younger than the pod.
    pub(in crate::plan) fn show_group_of(&self, pod: &PodFacts) -> bool {
        self.group_shown.is_some_and(|shown| pod.seen <= shown)
    }

    /// Reports whether the pods were read since this object carries the group.
    pub(in crate::plan) fn show_pods_of(&self, carrier: &str) -> bool {
        self.pods_shown.as_deref() == Some(carrier)
    }
}
