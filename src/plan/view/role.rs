//! What is observed of one role: its replicas, and how many may run.

use std::ops::Range;

use crate::plan::view::{ReplicaIs, Replicas};

/// What is observed of one role.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoleView {
    /// Desired replicas; of an unknown role, what is released: it stays.
    pub desired: u32,
    /// True while the workload or group that says how many are desired is not there.
    pub unknown: bool,
    /// Committed released count, as the status keeps it; `None` when it says nothing.
    pub committed: Option<u32>,
    /// Its workload has as many replicas as may run, which may be fewer than are desired: the group is scaled by segments.
    pub is_scaled: bool,
    /// Replicas by ordinal.
    pub replicas: Replicas,
}

impl RoleView {
    /// Ordinals below this one are to be taken by replicas that their maker gives none. Above it none is made any more, or not
    /// yet: a replica that stood there would leave a gap that nobody fills.
    pub(in crate::plan) fn places(&self) -> u32 {
        if self.unknown {
            return u32::MAX;
        }
        self.committed.filter(|_| self.is_scaled).map_or(self.desired, |committed| committed.min(self.desired))
    }

    /// Replicas that are released, among those that may be. Beside a commit, a replica beyond the released count that runs
    /// all the same does not count: it would stand for a held one, whose release would make it one more at each pass.
    pub fn current(&self) -> u32 {
        let bound = if self.committed.is_some() { self.released() } else { self.desired };
        self.replicas.count_in(..bound, ReplicaIs::Released)
    }

    /// The released count: what was committed, or, where that is lost or new, what is observed. Never above desired (S2).
    /// A pod that somebody else let go does not open the way for those before it: beside a commit only replicas without
    /// a gap count.
    pub fn released(&self) -> u32 {
        let observed = || self.replicas.first_failing(self.desired, ReplicaIs::Released).unwrap_or(self.desired);
        self.committed.map_or_else(|| self.current(), |committed| committed.max(observed())).min(self.desired)
    }

    /// The released count when it is more than was committed: what runs counts, whatever the status says. A role of which
    /// nothing was ever committed is new, and no such case.
    pub fn running_beyond_commit(&self) -> Option<u32> {
        let running = self.released();
        (running > self.committed?).then_some(running)
    }

    /// Pods that are ready, among the desired replicas.
    pub fn ready_pods(&self) -> u32 {
        self.replicas.pods_in(..self.desired).ready
    }

    /// Pods that the role has when complete.
    pub fn desired_pods(&self) -> u32 {
        self.pods_in(0..self.desired)
    }

    /// Pods that these replicas have when complete; those not seen yet count with the size of the largest that is.
    pub fn pods_in(&self, ordinals: Range<u32>) -> u32 {
        let wanted = ordinals.end.saturating_sub(ordinals.start);
        let seen = self.replicas.pods_in(ordinals);
        let missing = wanted.saturating_sub(seen.replicas);
        if missing == 0 { seen.size } else { seen.size.saturating_add(missing.saturating_mul(self.replica_size())) }
    }

    /// Pods in one replica: the largest that is seen, 1 before any is.
    pub fn replica_size(&self) -> u32 {
        self.replicas.largest().unwrap_or(1)
    }

    /// True when every one of these ordinals has a replica that is so.
    pub fn all_in(&self, ordinals: Range<u32>, what: ReplicaIs) -> bool {
        let wanted = ordinals.end.saturating_sub(ordinals.start);
        self.replicas.count_in(ordinals, what) == wanted
    }
}
