//! Live reads of state that the watches may show late: of the group before a pod is released, and of the pods before running
//! ones count.

use crate::plan::view::PodFacts;

/// The key of the live read of the group among retries.
pub(in crate::plan) const GROUP_READ: &str = "group";

/// The key of the live read of the pods among retries.
pub(in crate::plan) const PODS_READ: &str = "pods";

/// The state of live reads.
#[derive(Debug, Default)]
pub(in crate::plan) struct Looks {
    /// The read of the group under way: the number of pods seen at its beginning.
    pub(in crate::plan) group: Look<u64>,
    /// The number of pods seen when the known state of the group was certainly current, by a read or by a write that its
    /// version allowed.
    group_shown: Option<u64>,
    /// The read of the pods under way: the uid of the carrier.
    pub(in crate::plan) pods: Look<String>,
    /// The uid of the carrier for which the pods were read.
    pods_shown: Option<String>,
}

/// A live read under way: `T` is what it will have shown.
#[derive(Debug)]
pub(in crate::plan) struct Look<T>(Option<T>);

impl<T> Default for Look<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T> Look<T> {
    /// Begins a read; returns false if one is under way.
    pub(in crate::plan) fn begin(&mut self, shows: T) -> bool {
        let begins = self.0.is_none();
        self.0.get_or_insert(shows);
        begins
    }
}

impl Looks {
    pub(in crate::plan) fn are_under_way(&self) -> bool {
        self.group.0.is_some() || self.pods.0.is_some()
    }

    /// Notes that the group is known as it was when `seen` pods had been seen.
    pub(in crate::plan) fn show_group(&mut self, seen: Option<u64>) {
        self.group_shown = self.group_shown.max(seen);
    }

    pub(in crate::plan) fn end_at_group(&mut self, failed: bool) {
        let shown = self.group.0.take();
        self.show_group(shown.filter(|_| !failed));
    }

    pub(in crate::plan) fn end_at_pods(&mut self, failed: bool) {
        let shown = self.pods.0.take();
        if !failed {
            self.pods_shown = shown;
        }
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
