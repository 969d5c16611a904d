//! When pods and rollouts of a group last moved: without a move for long enough the group is stalled, and a rollout stuck.

use std::time::Duration;

use crate::api::status::GroupStatus;
use crate::model::Group;
use crate::model::moment::Moment;
use crate::plan::evaluate::Evaluation;
use crate::plan::reconcile::uptime::Uptime;
use crate::plan::rollout::Rollouts;
use crate::plan::status::transition_times::says_the_same;
use crate::plan::view::{GroupView, RoleView};

/// A new leader looks for so long before it says that nothing moves.
const LOOKS: Duration = Duration::from_secs(60);
/// The time of the last movement is stored again after so long.
const STORED_EVERY: Duration = Duration::from_secs(60);

#[derive(Debug, Default)]
pub(in crate::plan) struct Movement {
    /// When this leader looked first.
    began: Option<Uptime>,
    /// How long nothing had moved by then.
    before: Duration,
    /// Nobody led for a part of the time since the stored movement, which does not count: a later leader is to be told.
    is_shifted: bool,
    /// Desired, present and ready pods of each role, and released counts, at the last pass.
    counts: Vec<u32>,
    moved: Uptime,
    /// Partition, updated and done replicas of each open rollout at the last pass.
    rolling: Vec<(u32, u32, u32)>,
    rolled: Uptime,
    /// The last pass waited for nothing.
    pub(in crate::plan) rests: bool,
    /// Something has moved since the status said that nothing does.
    stall_is_over: bool,
}

impl Movement {
    pub(in crate::plan) fn since(now: Uptime) -> Self {
        Self { moved: now, rolled: now, ..Self::default() }
    }

    /// Begins with the first look of a leader: what moved last is stored, or shows in what is seen. While nobody led, nothing could
    /// move, for a time that is unknown without `unled`.
    pub(in crate::plan) fn begin(
        &mut self,
        group: &Group,
        view: &GroupView,
        (now, time): (Uptime, Option<Moment>),
        unled: Option<Duration>,
    ) {
        if self.began.is_some() {
            return;
        }
        let stored = group.status.last_moved_time.as_deref().and_then(Moment::parse);
        let before = |unled: Duration| {
            let moved = stored.or_else(|| newest(group, view))?;
            Some(moved.until(time?).saturating_sub(unled))
        };
        self.before = unled.and_then(before).unwrap_or_default();
        self.is_shifted = stored.is_some() && unled.is_some_and(|unled| unled >= STORED_EVERY);
        (self.began, self.moved) = (Some(now), now);
    }

    fn moves(&mut self, now: Uptime) {
        (self.moved, self.before) = (now, Duration::ZERO);
    }

    /// Returns how long nothing has moved.
    fn still(&self, now: Uptime) -> Duration {
        now.saturating_sub(self.moved).saturating_add(self.before)
    }

    /// Reports whether the stored time of the last movement is to be corrected, though nothing else is to be written.
    pub(in crate::plan) fn is_shifted(&self) -> bool {
        self.is_shifted && !self.rests
    }

    /// Returns the time of the last movement to be stored with a status.
    pub(in crate::plan) fn stored(&mut self, before: Option<&str>, (now, time): (Uptime, &str)) -> Option<String> {
        let moved = Moment(Moment::parse(time)?.0.saturating_sub_unsigned(self.still(now).as_secs()));
        let known = before.and_then(Moment::parse).filter(|known| known.until(moved) < STORED_EVERY);
        self.is_shifted = false;
        Some(known.unwrap_or(moved).text())
    }

    /// Notes a decision. If the stored status says something else at the first look of a leader, that has moved meanwhile.
    pub(in crate::plan) fn note(&mut self, seen: &Evaluation, stored: &GroupStatus, now: Uptime) {
        let Evaluation { view, decision, status, .. } = seen;
        let told = |status: &GroupStatus| status.summary.clone().map(|summary| (summary.ready, summary.segments));
        if self.counts.is_empty() && (!says_the_same(status, stored) || told(status) != told(stored)) {
            self.moves(now);
        }
        let counts = view.roles.values().flat_map(|role| [role.desired, role.current(), RoleView::ready_pods(role)]);
        let counts: Vec<_> = counts.chain(decision.released.values().copied()).collect();
        if counts != self.counts {
            let is_first = self.counts.is_empty();
            (self.counts, self.stall_is_over) = (counts, !is_first);
            if !is_first {
                self.moves(now);
            }
        }
    }

    pub(in crate::plan) fn note_rollouts(&mut self, rollouts: &Rollouts, now: Uptime) {
        let roles = rollouts.roles.values();
        let rolling: Vec<_> = roles.map(|role| (role.partition, role.updated(), role.done())).collect();
        if rolling != self.rolling {
            // The first pass finds rollouts, and no move.
            self.stall_is_over |= !self.rolling.is_empty();
            (self.rolling, self.rolled) = (rolling, now);
            self.moves(now);
        }
    }

    /// When the open rollouts count as stuck if nothing moves.
    pub(in crate::plan) fn stuck_at(&self, patience: Duration) -> Uptime {
        self.rolled + patience
    }

    /// Reports whether nothing has moved for so long, or since the status says so (`reported`): a process that starts now has not
    /// seen for how long. A group that waited for nothing at the last pass cannot stall.
    pub(in crate::plan) fn is_stalled(&mut self, deadline: Duration, reported: bool, now: Uptime) -> bool {
        self.stall_is_over &= reported;
        if self.rests {
            self.moves(now);
        }
        self.stalled_at(deadline).is_some_and(|at| at <= now) || (reported && !self.stall_is_over)
    }

    /// When the group counts as stalled if nothing moves.
    pub(in crate::plan) fn stalled_at(&self, deadline: Duration) -> Option<Uptime> {
        let at = self.moved.checked_add(deadline)?.saturating_sub(self.before);
        Some(self.began.map_or(at, |began| at.max(began + LOOKS.min(deadline))))
    }
}

/// Returns the newest transition of a stored status, or creation or readiness of what is seen.
fn newest(group: &Group, view: &GroupView) -> Option<Moment> {
    let conditions = group.status.conditions.iter().filter_map(|condition| condition.last_transition_time.as_deref());
    let states = group.status.coordination_state.iter().filter_map(|state| state.last_update_time.as_deref());
    let pods = || view.roles.values().flat_map(|role| role.replicas.pods()).map(|(_, pod)| pod);
    let created = pods().filter_map(|pod| pod.created.as_deref()).chain([group.carrier.created.as_str()]);
    let ready = pods().filter_map(|pod| pod.ready_since).map(|since| Moment(since.into()));
    conditions.chain(states).chain(created).filter_map(Moment::parse).chain(ready).max()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::plan::test_support::mk_group;

    const HOUR: Duration = Duration::from_secs(3600);
    const DEADLINE: Duration = Duration::from_secs(600);

    fn time(after: Duration) -> Moment {
        Moment::parse("2026-01-01T12:00:00Z").unwrap().after(after)
    }

    /// A leader of a group that moved last at noon.
    fn led(at: Duration, unled: Option<Duration>) -> Movement {
        let mut group = mk_group(&[], &json!([]));
        group.status.last_moved_time = Some(time(Duration::ZERO).text());
        let mut movement = Movement::since(Uptime::ZERO);
        movement.begin(&group, &GroupView::default(), (Uptime::ZERO, Some(time(at))), unled);
        movement
    }

    #[test]
    fn a_new_leader_goes_on_counting_and_looks_for_a_minute() {
        let minutes = |minutes| Duration::from_mins(minutes);
        let cases = [
            // When it began, how long nobody led, and when it says that nothing moves, by its own clock.
            (minutes(4), Some(Duration::from_secs(10)), minutes(6) + Duration::from_secs(10)),
            (minutes(30), Some(Duration::from_secs(10)), minutes(1)),
            (minutes(64), Some(HOUR), minutes(6)),
            (minutes(64), Some(minutes(70)), DEADLINE),
            (minutes(64), None, DEADLINE),
        ];
        for (at, unled, says) in cases {
            let mut movement = led(at, unled);
            assert_eq!(movement.stalled_at(DEADLINE), Some(says), "{at:?} {unled:?}");
            let before = says.saturating_sub(Duration::from_secs(1));
            assert!(!movement.is_stalled(DEADLINE, false, before) && movement.is_stalled(DEADLINE, false, says));
        }
    }

    #[test]
    fn what_is_stored_leaves_out_the_time_in_which_nobody_led() {
        let stored = |movement: &mut Movement, at: Duration, now: Duration| {
            let noon = time(Duration::ZERO).text();
            movement.stored(Some(&noon), (now, &time(at + now).text())).unwrap()
        };
        let (at, second) = (HOUR + Duration::from_mins(4), Duration::from_secs(1));
        let mut movement = led(at, Some(HOUR));
        assert!(movement.is_shifted());
        assert_eq!(stored(&mut movement, at, second), "2026-01-01T13:00:00Z");
        assert!(!movement.is_shifted());
        let mut movement = led(at, Some(second));
        assert!(!movement.is_shifted());
        assert_eq!(stored(&mut movement, at, second), "2026-01-01T12:00:00Z", "a second is not worth a write");
        movement.moves(second);
        assert_eq!(stored(&mut movement, at, second), "2026-01-01T13:04:01Z");
    }

    #[test]
    fn the_time_in_which_nothing_moves_begins_when_something_is_waited_for() {
        let (mut movement, deadline) = (Movement::since(Uptime::ZERO), Duration::from_secs(600));
        let later = Uptime::ZERO + Duration::from_hours(1);
        movement.rests = true;
        assert!(!movement.is_stalled(deadline, false, later), "nothing was waited for before");
        movement.rests = false;
        assert!(!movement.is_stalled(deadline, false, later + deadline / 2));
        assert!(movement.is_stalled(deadline, false, later + deadline));
    }
}
