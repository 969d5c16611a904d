//! The walk down over the segments of a rollout by segment.

use std::collections::BTreeMap;

use super::{RoleRollout, Wait, WaitReason, floor};
use crate::model::RollingBounds;

/// The roles of a coordination with an open rollout, cut into segments.
///
/// With `s` the replicas of a role in a segment, segment `i` is its ordinals from `i * s` to `(i + 1) * s - 1`. The rollout goes
/// down from the last of `N` segments, and grants a segment with the replicas of all roles while both of these hold:
///
/// - fewer than `maxUnavailable` of `N` segments are unavailable or about to be, or the segment is unavailable already;
/// - its replicas are at least those that `partition` keeps old, a share of the segments.
///
/// With ten prefill in segments of two, five decode in segments of one and one segment unavailable at most, prefill 8-9 and decode
/// 4 are replaced together. When all three are ready, prefill 6-7 and decode 3 follow. A segment is unavailable if one of its
/// replicas is. A role whose template was not edited has no open rollout, and its replicas are not looked at.
pub(super) struct Segments<'a> {
    bounds: &'a RollingBounds,
    roles: Vec<Part<'a>>,
}

/// A role, its replicas in a segment, and the ordinal below which its replicas stay old.
struct Part<'a> {
    name: &'a str,
    role: &'a RoleRollout,
    size: u32,
    floor: u32,
}

impl Part<'_> {
    fn members(&self, segment: u32) -> std::ops::Range<u32> {
        let first = segment.saturating_mul(self.size);
        first..first.saturating_add(self.size).min(self.role.desired())
    }

    fn is_left(&self, ordinal: u32) -> bool {
        ordinal >= self.floor && !self.role.at(ordinal).updated
    }

    fn is_unsettled(&self, ordinal: u32) -> bool {
        ordinal >= self.floor && !self.role.at(ordinal).is_settled()
    }

    /// Reports whether the segment has the last old replicas of the role.
    fn ends_with(&self, segment: u32) -> bool {
        let mut members = self.members(segment);
        self.role.is_last_old(members.start) && members.any(|ordinal| self.is_left(ordinal))
    }

    fn is_down(&self, ordinal: u32) -> bool {
        let replica = self.role.at(ordinal);
        // A replica that served, may run and is held waits for room or for the rest of its batch.
        let waits = replica.held && !replica.new && !self.role.waits(ordinal);
        let is_unavailable = replica.is_unavailable() || waits;
        (is_unavailable && !self.role.is_excused(ordinal)) || self.role.leaves(ordinal)
    }
}

impl<'a> Segments<'a> {
    /// Returns the segments of a coordination; `None` if it does not update them as a whole, or the role is in none.
    pub(super) fn of(
        (all, bounds): (&[RollingBounds], &'a RollingBounds),
        roles: &'a BTreeMap<String, RoleRollout>,
        name: &str,
    ) -> Option<Self> {
        let sizes = bounds.segments.as_ref().filter(|sizes| sizes.get(name).is_some_and(|size| *size > 0))?;
        let part = |(name, size): (&'a String, &'a u32)| {
            let role = roles.get(name).filter(|_| *size > 0)?;
            Some(Part { name, role, size: *size, floor: floor(all, name, role) })
        };
        Some(Self { bounds, roles: sizes.iter().filter_map(part).collect() })
    }

    /// Returns the segments to grant, and the wait that ends the walk. What goes back is not bound to the order of a partition: segments
    /// that are down come first.
    pub(super) fn descend(&self) -> (Vec<u32>, Option<Wait>) {
        let count = self.roles.iter().map(|part| part.role.desired().div_ceil(part.size)).max().unwrap_or(0);
        let budget = self.bounds.max_unavailable.of(count);
        let is_down = |segment: u32| self.any(segment, Part::is_down);
        let mut busy = crate::plan::view::count((0..count).filter(|segment| is_down(*segment)).count());
        let mut granted = Vec::new();
        let waits = |part: &Part<'_>, ordinal| part.is_left(ordinal) && !part.role.is_granted(ordinal);
        let mut order: Vec<_> = (0..count).rev().filter(|segment| self.any(*segment, waits)).collect();
        if self.roles.iter().any(|part| part.role.returns) {
            order.sort_by_key(|segment| !is_down(*segment));
        }
        for segment in order {
            if (!is_down(segment) && busy >= budget) || self.is_too_early(segment, count) {
                let wait = self.wait(count, granted.iter().copied().min());
                return (granted, wait);
            }
            busy += u32::from(!is_down(segment));
            granted.push(segment);
        }
        (granted, None)
    }

    /// Reports whether a role would lose its last old replica with the segment while a segment above is not ready: where a rollout may go
    /// back, all roles must be able to.
    fn is_too_early(&self, segment: u32, count: u32) -> bool {
        self.bounds.fail_after.is_some()
            && self.roles.iter().any(|part| part.ends_with(segment))
            && (segment + 1..count).any(|above| self.any(above, Part::is_unsettled))
    }

    /// Returns the ordinals of a role that are granted with these segments: those to make again, or the lowest one of all.
    pub(super) fn ordinals(&self, granted: &[u32], name: &str) -> Vec<u32> {
        let Some(part) = self.roles.iter().find(|part| part.name == name) else { return Vec::new() };
        if part.role.returns {
            let members = granted.iter().flat_map(|segment| part.members(*segment));
            return members.filter(|ordinal| part.is_left(*ordinal)).collect();
        }
        let first = granted.iter().min().map(|segment| part.members(*segment).start.max(part.floor));
        first.filter(|first| *first < part.role.desired().min(part.role.partition)).into_iter().collect()
    }

    /// Returns the wait for the highest segment that is unavailable or about to be; `lowest` is about to be.
    fn wait(&self, count: u32, lowest: Option<u32>) -> Option<Wait> {
        let down = (0..count).rev().find_map(|segment| Some((segment, self.find(segment, Part::is_down)?)));
        let about = || lowest.and_then(|segment| Some((segment, self.find(segment, Part::is_left)?)));
        let (segment, (role, ordinal)) = down.or_else(about)?;
        Some(Wait { reason: WaitReason::Segment(segment + 1), role: role.to_owned(), ordinal: Some(ordinal) })
    }

    fn any(&self, segment: u32, test: impl Fn(&Part<'a>, u32) -> bool) -> bool {
        self.find(segment, test).is_some()
    }

    /// Returns the highest replica of the first role in a segment for which the test holds.
    fn find(&self, segment: u32, test: impl Fn(&Part<'a>, u32) -> bool) -> Option<(&'a str, u32)> {
        let highest = |part: &Part<'a>| part.members(segment).rev().find(|ordinal| test(part, *ordinal));
        self.roles.iter().find_map(|part| Some((part.name, highest(part)?)))
    }

    /// Returns the number from 1 of the segment of a replica.
    pub(super) fn number_of(&self, ordinal: u32, name: &str) -> Option<u32> {
        let part = self.roles.iter().find(|part| part.name == name)?;
        Some(ordinal / part.size + 1)
    }
}

#[cfg(test)]
#[path = "segments_tests.rs"]
mod tests;
