//! Writes of a group's status: one at a time, with a pause after a failure, and none where the object does not keep them.

use std::time::Duration;

use crate::model::Group;
use crate::plan::reconcile::dropped::DroppedStatuses;
use crate::plan::reconcile::events::EventNote;
use crate::plan::reconcile::overwritten::Overwritten;
use crate::plan::reconcile::pauses::{late_pause, pause};
use crate::plan::reconcile::refused_status::RefusedStatus;
use crate::plan::reconcile::uptime::Uptime;
use crate::plan::view::AllSucceeded;

#[derive(Debug, Default)]
pub(in crate::plan) struct StatusWrites {
    pub(in crate::plan) is_under_way: bool,
    last: Option<Uptime>,
    /// Pods that had been seen at the last write.
    last_seen: Option<u64>,
    pub(in crate::plan) failures: u32,
    /// Writes in a row that were not answered in time: the API server is busy with them.
    late: u32,
    refused: RefusedStatus,
    pub(in crate::plan) dropped: DroppedStatuses,
    pub(in crate::plan) overwritten: Overwritten,
    /// Replicas that have succeeded: their pods may be gone before the status says so.
    pub(in crate::plan) succeeded: AllSucceeded,
}

impl StatusWrites {
    /// When the status may be written next; `None` for now.
    pub(in crate::plan) fn due(&self, every: Duration) -> Option<Uptime> {
        self.last.map(|last| last + self.pause().map_or(every, |pause| every.max(pause)))
    }

    /// Returns the pause before the next attempt, after a failure.
    fn pause(&self) -> Option<Duration> {
        let late = (self.late > 0).then(|| late_pause(self.late));
        late.or_else(|| (self.failures > 0).then(|| pause(self.failures)))
    }

    /// Reports whether the last write was not answered in time: it may have landed.
    pub(in crate::plan) fn is_late(&self) -> bool {
        self.late > 0
    }

    /// Begins a write; `seen` is the number of pods seen so far. Returns whether it is the first of this process.
    pub(in crate::plan) fn begin(&mut self, seen: u64, now: Uptime) -> bool {
        let is_first = self.last.is_none();
        (self.is_under_way, self.last, self.last_seen) = (true, Some(now), Some(seen));
        is_first
    }

    /// Notes the end of a write. Returns the number of pods that had been seen when it began.
    pub(in crate::plan) fn end(&mut self) -> Option<u64> {
        self.is_under_way = false;
        self.last_seen
    }

    /// Returns when a write that failed last may be tried again.
    pub(in crate::plan) fn again_after_failure(&self, now: Uptime) -> Option<Uptime> {
        self.pause().map(|pause| now + pause)
    }

    /// Counts a write that was not answered in time; the pause begins now.
    pub(in crate::plan) fn note_late(&mut self, why: String, now: Uptime) {
        let late = self.late + 1;
        self.note(Some(why));
        (self.late, self.last) = (late, Some(now));
    }

    /// Counts a failure, or forgets those before.
    pub(in crate::plan) fn note(&mut self, failure: Option<String>) {
        self.late = 0;
        self.failures = if failure.is_some() { self.failures + 1 } else { 0 };
        self.refused.note(failure, self.failures);
    }

    /// Events about the writes themselves.
    pub(in crate::plan) fn events(&mut self, group: &Group) -> impl Iterator<Item = EventNote> {
        [self.dropped.event(group), self.refused.event(), self.overwritten.event()].into_iter().flatten()
    }
}
