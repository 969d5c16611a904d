//! The walk down over the replicas of a role that are not at the update revision, as far as all bounds hold.

use std::collections::BTreeMap;

use super::segments::Segments;
use super::{ProgressState, RolePlan, RoleRollout, RolloutPlan, Stage, Wait, WaitReason, floor, skew};
use crate::model::RollingBounds;

/// Decides how far each role with an open rollout may go now.
///
/// With `D` the desired replicas of a role, `R` those granted, `U` those updated and ready, and `B` those unavailable or about to
/// be, the partition goes down from the top, replica by replica, while all of these hold:
///
/// - for each other role `o` of the round: `(R + 1) / D - U(o) / D(o) <= max(maxSkew, 1 / D(o))`;
/// - `B < maxUnavailable`, if the replica is ready;
/// - its ordinal is at least the share that `partition` keeps old;
/// - `R` is less than the number of replicas that the step under way updates, if the rollout has steps (see [`stages`]).
///
/// The bound of one replica lets small roles go on: with a skew of 10 %, eight prefill and four decode go 2 and 1, 4 and 2, and
/// so on. A replica that is held or not ready takes nothing of `maxUnavailable`, so broken replicas are replaced first.
///
/// With `by: Segment`, the roles go segment by segment (see [`Segments`]).
///
/// Where a rollout may go back, no role replaces its last old replica before each role has at most one left: a workload without old
/// replicas has no older revision. Roles that go back are walked in the same way, with what is not ready first; what is granted are
/// deletions.
///
/// A grant to one role is compared with the updated and ready
/// replicas of the others, so all may move in one step, and the bounds hold whichever moves first. Roles without an open
/// rollout are not in `roles` and are not compared, nor are roles that were edited in another round. A role that has all
/// replicas of the step under way is not compared either: the skew bounds the way to the shares of a step, not the shares. In a
/// step of prefill 30 % and decode 0, with a skew of 10 %, prefill goes to 30 %. Nor is a role compared that has all that `partition`
/// does not keep old: another one whose edit is taken back goes back completely.
///
/// [`stages`]: super::stages
pub fn plan_rollout(bounds: &[RollingBounds], roles: &BTreeMap<String, RoleRollout>, stages: &[Stage]) -> RolloutPlan {
    let plan = |(name, role): (&String, &RoleRollout)| {
        let walk = Walk { bounds, roles, stages, name, role };
        (name.clone(), walk.plan())
    };
    roles.iter().map(plan).collect()
}

struct Walk<'a> {
    bounds: &'a [RollingBounds],
    roles: &'a BTreeMap<String, RoleRollout>,
    stages: &'a [Stage],
    name: &'a str,
    role: &'a RoleRollout,
}

impl<'a> Walk<'a> {
    fn plan(&self) -> RolePlan {
        let (granted, stopped) = match self.may_not_start() {
            Some(wait) => (Vec::new(), Some(wait)),
            None => self.descend(),
        };
        let (lowest, made_again) =
            if self.role.returns { (None, granted) } else { (granted.into_iter().min(), Vec::new()) };
        let partition = lowest.unwrap_or(self.role.partition);
        let granted = RoleRollout { partition, ..self.role.clone() };
        let in_flight = granted.in_flight();
        let left = (self.floor()..self.role.desired()).rev().any(|ordinal| !self.at(ordinal).updated);
        let own = |reason, ordinal| Wait { reason, role: self.name.to_owned(), ordinal: Some(ordinal) };
        let pauses = stopped.as_ref().is_some_and(|wait| matches!(wait.reason, WaitReason::Pause(..)));
        let state = if self.role.is_over() {
            if self.role.returns { ProgressState::RolledBack } else { ProgressState::Complete }
        } else if partition < self.role.partition || !made_again.is_empty() || in_flight.is_some() {
            ProgressState::Progressing
        } else if (left && !pauses) || !self.role.judged {
            ProgressState::Waiting
        } else {
            ProgressState::Paused
        };
        let waits = !self.role.remade && !self.role.returns;
        let held =
            granted.held_above_old(partition.max(self.floor())).map(|ordinal| own(WaitReason::HeldBatch, ordinal));
        let held = held.or_else(|| Some(own(WaitReason::OldReplica, granted.old_in_the_way()?))).filter(|_| waits);
        let reason = |ordinal| {
            let segment = self.segments().and_then(|segments| segments.number_of(ordinal, self.name));
            segment.map_or(WaitReason::Unavailable, WaitReason::Segment)
        };
        let flying = in_flight.map(|ordinal| own(reason(ordinal), ordinal));
        RolePlan { partition, made_again, state, waits: held.or(stopped).or(flying) }
    }

    /// Returns the wait that prevents any decision: an unobserved change, or edits that may follow.
    fn may_not_start(&self) -> Option<Wait> {
        let wait = |reason, role: &str| Some(Wait { reason, role: role.to_owned(), ordinal: None });
        let unseen = |(name, role): &(&String, &RoleRollout)| !role.judged && (*name == self.name || self.shares(name));
        if let Some((name, _)) = self.roles.iter().find(unseen) {
            return wait(WaitReason::NotObserved, name);
        }
        if self.role.settled {
            return None;
        }
        let frozen = self.role.partition >= self.role.desired();
        self.shared()
            .filter_map(|bounds| self.to_be_edited(bounds, frozen))
            .find_map(|role| wait(WaitReason::Settling, role))
    }

    /// Returns a role of the coordination that was not edited in the newest round. In the first round, which may have begun
    /// before rolegate watched, only a frozen role waits for it.
    fn to_be_edited(&self, bounds: &'a RollingBounds, frozen: bool) -> Option<&'a str> {
        let round = |name: &String| self.roles.get(name).map(|role| role.round);
        let newest = bounds.roles.iter().filter_map(round).max().filter(|newest| frozen || *newest > 0)?;
        bounds.roles.iter().find(|name| round(name) != Some(newest)).map(String::as_str)
    }

    /// Returns the segments of the role, if these are updated as a whole.
    fn segments(&self) -> Option<Segments<'a>> {
        self.shared().find_map(|bounds| Segments::of((self.bounds, bounds), self.roles, self.name))
    }

    /// Returns the ordinals to grant, and the wait that ends the walk above the floor.
    fn descend(&self) -> (Vec<u32>, Option<Wait>) {
        let role = self.role;
        if let Some(segments) = self.segments() {
            let (granted, wait) = segments.descend();
            return (segments.ordinals(&granted, self.name), wait);
        }
        let budget = self.shared().map(|bounds| bounds.max_unavailable.of(role.desired())).min().unwrap_or(0);
        let (mut reach, mut busy, mut granted) = (role.reach(), self.busy(), Vec::new());
        for ordinal in self.order() {
            let replica = self.at(ordinal);
            // What has yet to serve counts for no share.
            let shares = role.shares(ordinal);
            let stops = |stage: &&Stage| {
                let is_reached = stage.limits.get(self.name).is_some_and(|most| reach >= *most);
                is_reached && (shares || stage.pause.is_some() || stage.lacks.is_some())
            };
            if let Some(stage) = self.stages.iter().find(stops) {
                return (granted, self.wait_of(stage));
            }
            let asked = (self.name, role, reach + 1);
            let limit = shares.then(|| skew::limits((self.bounds, self.stages), asked, self.roles)).flatten();
            if let Some(other) = limit {
                let ordinal = self.roles.get(other).and_then(RoleRollout::behind);
                return (granted, Some(Wait { reason: WaitReason::Skew, role: other.to_owned(), ordinal }));
            }
            if let Some(wait) = self.wait_for_last(ordinal) {
                return (granted, Some(wait));
            }
            if replica.ready && busy >= budget {
                let ordinal = self.first_unavailable().or(granted.iter().copied().min());
                let role = self.name.to_owned();
                return (granted, Some(Wait { reason: WaitReason::Unavailable, role, ordinal }));
            }
            // A replica that is held or not ready costs nothing more.
            busy += u32::from(replica.ready || (replica.is_unavailable() && self.role.is_excused(ordinal)));
            reach += u32::from(shares);
            granted.push(ordinal);
        }
        (granted, None)
    }

    /// Returns the replicas to update, highest first. What goes back is not bound to the order of a partition: replicas that are not
    /// ready come first, since they cost nothing.
    fn order(&self) -> Vec<u32> {
        let left = (self.floor()..self.role.partition.min(self.role.desired())).rev();
        let mut order: Vec<_> = left.filter(|ordinal| !self.at(*ordinal).updated).collect();
        if self.role.returns {
            order.sort_by_key(|ordinal| self.at(*ordinal).ready);
        }
        order
    }

    /// Returns the wait before the last old replica of a role that may have to go back with the others.
    fn wait_for_last(&self, ordinal: u32) -> Option<Wait> {
        let bounds = self.shared().find(|bounds| bounds.fail_after.is_some() && self.role.is_last_old(ordinal))?;
        let is_behind = |(name, other): &(&String, &RoleRollout)| {
            let floor = floor(self.bounds, name, other);
            let most = u32::from(floor == 0 || *name == self.name);
            bounds.has(name) && !other.back && other.unsettled(floor) > most
        };
        let (name, other) = self.roles.iter().find(is_behind)?;
        Some(Wait { reason: WaitReason::LastOld, role: name.clone(), ordinal: other.behind() })
    }

    /// Returns the wait for the end of a step or of the pause after it; `None` if only the role itself is behind.
    fn wait_of(&self, stage: &Stage) -> Option<Wait> {
        if let Some(end) = stage.pause {
            let reason = WaitReason::Pause(stage.number, end);
            return Some(Wait { reason, role: self.name.to_owned(), ordinal: None });
        }
        if stage.lacks.is_some() {
            return Some(Wait { reason: WaitReason::Object(stage.number), role: self.name.to_owned(), ordinal: None });
        }
        let other = stage.behind.iter().find(|behind| *behind != self.name)?;
        let ordinal = self.roles.get(other).and_then(RoleRollout::behind);
        Some(Wait { reason: WaitReason::Step(stage.number), role: other.clone(), ordinal })
    }

    /// Counts the replicas that are unavailable or may be at any moment.
    fn busy(&self) -> u32 {
        self.role.count(|ordinal, replica| {
            self.role.leaves(ordinal) || (replica.is_unavailable() && !self.role.is_excused(ordinal))
        })
    }

    fn first_unavailable(&self) -> Option<u32> {
        let down = |(_, replica): &(u32, super::Ordinal)| replica.is_unavailable();
        self.role.in_flight().or_else(|| self.role.numbered().rev().find(down).map(|(ordinal, _)| ordinal))
    }

    /// Returns the ordinal below which replicas stay old.
    fn floor(&self) -> u32 {
        floor(self.bounds, self.name, self.role)
    }

    fn at(&self, ordinal: u32) -> super::Ordinal {
        self.role.at(ordinal)
    }

    fn shared(&self) -> impl Iterator<Item = &'a RollingBounds> {
        let name = self.name;
        self.bounds.iter().filter(move |bounds| bounds.has(name))
    }

    fn shares(&self, other: &str) -> bool {
        self.shared().any(|bounds| bounds.has(other))
    }
}
