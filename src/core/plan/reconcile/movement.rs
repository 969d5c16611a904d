//! When pods and rollouts of a group last moved: without a move for long enough the group is stalled, and a rollout stuck.

use std::time::Duration;

use crate::plan::decide::decision::Decision;
use crate::plan::reconcile::uptime::Uptime;
use crate::plan::rollout::Rollouts;
use crate::plan::view::{GroupView, RoleView};

#[derive(Debug, Default)]
pub(in crate::plan) struct Movement {
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

    pub(in crate::plan) fn note(&mut self, view: &GroupView, decision: &Decision, now: Uptime) {
        let counts = view.roles.values().flat_map(|role| [role.desired, role.current(), RoleView::ready_pods(role)]);
        let counts: Vec<_> = counts.chain(decision.released.values().copied()).collect();
        if counts != self.counts {
            self.stall_is_over = !self.counts.is_empty();
            self.counts = counts;
            self.moved = now;
        }
    }

    pub(in crate::plan) fn note_rollouts(&mut self, rollouts: &Rollouts, now: Uptime) {
        let roles = rollouts.roles.values();
        let rolling: Vec<_> = roles.map(|role| (role.partition, role.updated(), role.done())).collect();
        if rolling != self.rolling {
            // The first pass finds rollouts, and no move.
            self.stall_is_over |= !self.rolling.is_empty();
            self.rolling = rolling;
            (self.rolled, self.moved) = (now, now);
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
            self.moved = now;
        }
        now.saturating_sub(self.moved) >= deadline || (reported && !self.stall_is_over)
    }

    /// When the group counts as stalled if nothing moves.
    pub(in crate::plan) fn stalled_at(&self, deadline: Duration) -> Option<Uptime> {
        self.moved.checked_add(deadline)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
