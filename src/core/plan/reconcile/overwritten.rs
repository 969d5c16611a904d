//! Statuses that another client overwrites. Two writers of one status would never stop, so rolegate writes it at growing
//! intervals, and an Event reports it. New content is written at once all the same.

use std::sync::Arc;
use std::time::Duration;

use crate::api::status::GroupStatus;
use crate::model::Group;
use crate::plan::reconcile::events::EventNote;
use crate::plan::reconcile::pauses::pause;
use crate::plan::reconcile::uptime::Uptime;
use crate::plan::status::transition_times::says_the_same;

/// The reason of the Event.
pub const OVERWRITTEN: &str = "StatusOverwritten";
/// The number of times before an Event: an older copy may be restored by hand once.
const SAID_AFTER: u32 = 3;
/// The time for which a status must stand to end the series: longer than any pause.
const OVER: Duration = Duration::from_secs(60);

/// The last group object with the written status, and how often that was undone.
#[derive(Debug, Default)]
pub(in crate::plan) struct Overwritten {
    stood: Option<Arc<Group>>,
    times: u32,
    /// The time of the last repeated write.
    at: Option<Uptime>,
    told: bool,
}

impl Overwritten {
    /// Notes that the group has its decided status.
    pub(in crate::plan) fn stands(&mut self, group: &Arc<Group>) {
        self.stood = Some(group.clone());
    }

    /// Returns when a status that stood before and was undone may be written again; `None` for now, and for new content.
    pub(in crate::plan) fn due(&self, group: &Group, status: &GroupStatus) -> Option<Uptime> {
        let at = self.at.filter(|_| self.is_again(group, status))?;
        Some(at + pause(self.times))
    }

    /// Notes a write. New content replaces the status that stood.
    pub(in crate::plan) fn writes(&mut self, group: &Group, status: &GroupStatus, now: Uptime) {
        if !self.is_again(group, status) {
            self.stood = self.stood.take().filter(|stood| says_the_same(&stood.status, status));
            return;
        }
        if self.at.is_some_and(|at| now.saturating_sub(at) > OVER) {
            (self.times, self.told) = (0, false);
        }
        self.times += 1;
        self.at = Some(now);
    }

    fn is_again(&self, group: &Group, status: &GroupStatus) -> bool {
        let stood = self.stood.as_ref().filter(|stood| stood.carrier.uid == group.carrier.uid);
        stood.is_some_and(|stood| says_the_same(&stood.status, status)) && !says_the_same(&group.status, status)
    }

    /// Returns the Event, once until a status has stood for a while.
    pub(in crate::plan) fn event(&mut self) -> Option<EventNote> {
        if self.told || self.times < SAID_AFTER {
            return None;
        }
        self.told = true;
        let note = "something else takes away what is written to the status: it is written again more and more seldom; a \
                    RoleCoordination with groupRef coordinates the group without it";
        Some(EventNote::new(OVERWRITTEN, "", note, true))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::plan::test_support::{mk_group, mk_segments};

    fn group(released: Option<u32>) -> Arc<Group> {
        let mut group = mk_group(&[("prefill", 6)], &json!([mk_segments("pd", "OrderedReady", &[("prefill", 1)])]));
        group.status = status(released);
        Arc::new(group)
    }

    fn status(released: Option<u32>) -> GroupStatus {
        let state =
            released.map(|released| json!({ "name": "pd", "progress": { "prefill": { "released": released } } }));
        serde_json::from_value(json!({ "coordinationState": state.into_iter().collect::<Vec<_>>() })).unwrap()
    }

    #[test]
    fn what_is_put_back_is_written_more_and_more_seldom_and_what_is_new_at_once() {
        let mut overwritten = Overwritten::default();
        overwritten.stands(&group(Some(1)));
        let mut now = Uptime::ZERO;
        let mut pauses = Vec::new();
        for _ in 0..10 {
            let at = overwritten.due(&group(None), &status(Some(1))).unwrap_or(now);
            pauses.push(at.saturating_sub(now).as_millis());
            now = at;
            overwritten.writes(&group(None), &status(Some(1)), now);
        }
        assert_eq!(pauses, [0, 200, 400, 800, 1600, 3200, 6400, 12800, 25600, 30000]);
        assert_eq!(overwritten.due(&group(None), &status(Some(2))), None);
        assert!(overwritten.event().is_some() && overwritten.event().is_none());
        // The status has stood since.
        let later = now + OVER + Duration::from_secs(1);
        overwritten.writes(&group(None), &status(Some(1)), later);
        assert_eq!(overwritten.due(&group(None), &status(Some(1))), Some(later + Duration::from_millis(200)));
        assert_eq!(overwritten.event(), None);
    }

    #[test]
    fn what_we_write_ourselves_takes_nothing_away() {
        let mut overwritten = Overwritten::default();
        for second in 0..10 {
            // Changes to and fro, before a watch shows the second status.
            let now = Uptime::from_secs(second);
            overwritten.stands(&group(Some(1)));
            overwritten.writes(&group(Some(1)), &status(Some(2)), now);
            assert_eq!(overwritten.due(&group(Some(2)), &status(Some(1))), None);
            overwritten.writes(&group(Some(2)), &status(Some(1)), now);
        }
        assert_eq!(overwritten.event(), None);
    }

    #[test]
    fn a_status_that_was_never_stored_was_not_taken_away() {
        let mut overwritten = Overwritten::default();
        for _ in 0..10 {
            assert_eq!(overwritten.due(&group(None), &status(Some(1))), None);
            overwritten.writes(&group(None), &status(Some(1)), Uptime::ZERO);
        }
        assert_eq!(overwritten.event(), None);
    }
}
