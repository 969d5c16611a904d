//! A live look at something that the watches may show late: at the group before a pod goes, at the pods before those that run
//! count.

use crate::plan::view::PodFacts;

/// What the live read of the group is called among what is tried again.
pub(in crate::plan) const GROUP_READ: &str = "group";

/// What the live look at the pods is called among what is tried again.
pub(in crate::plan) const PODS_READ: &str = "pods";

/// What live looks have shown.
#[derive(Debug, Default)]
pub(in crate::plan) struct Looks {
    /// At the group: how many pods had been seen when one began that has not ended.
    pub(in crate::plan) group: Look<u64>,
    /// How many pods had been seen when the group was as it is known at least: by a look, or by a write that held for its
    /// version.
    group_shown: Option<u64>,
    /// At the pods: the unique id of the carrier for which one is under way.
    pub(in crate::plan) pods: Look<String>,
    /// The same when that is over.
    pods_shown: Option<String>,
}

/// A live look: `T` is what it will have shown.
#[derive(Debug)]
pub(in crate::plan) struct Look<T>(Option<T>);

impl<T> Default for Look<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T> Look<T> {
    /// One is to begin; false when one is on its way.
    pub(in crate::plan) fn begin(&mut self, shows: T) -> bool {
        let begins = self.0.is_none();
        self.0.get_or_insert(shows);
        begins
    }
}

impl Looks {
    /// True while one is on its way.
    pub(in crate::plan) fn are_under_way(&self) -> bool {
        self.group.0.is_some() || self.pods.0.is_some()
    }

    /// The group is known as it was when so many pods had been seen.
    pub(in crate::plan) fn show_group(&mut self, seen: Option<u64>) {
        self.group_shown = self.group_shown.max(seen);
    }

    /// A look at the group has ended.
    pub(in crate::plan) fn end_at_group(&mut self, failed: bool) {
        let shown = self.group.0.take();
        self.show_group(shown.filter(|_| !failed));
    }

    /// A look at the pods has ended.
    pub(in crate::plan) fn end_at_pods(&mut self, failed: bool) {
        let shown = self.pods.0.take();
        if !failed {
            self.pods_shown = shown;
        }
    }

    /// True when the group is known at least as it was when the pod was there already.
    pub(in crate::plan) fn show_group_of(&self, pod: &PodFacts) -> bool {
        self.group_shown.is_some_and(|shown| pod.seen <= shown)
    }

    /// True when it was looked which pods are there since this object carries the group.
    pub(in crate::plan) fn show_pods_of(&self, carrier: &str) -> bool {
        self.pods_shown.as_deref() == Some(carrier)
    }
}
