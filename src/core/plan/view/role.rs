//! Observation of one role: its replicas, and how many may run.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::plan::view::{ReplicaIs, Replicas};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoleView {
    /// The desired replicas; for an unknown role, the released ones, so that they stay.
    pub desired: u32,
    /// Whether the workload or group that states the desired replicas is missing.
    pub unknown: bool,
    /// The committed released count in the status, if any.
    pub committed: Option<u32>,
    /// Whether its workload has only as many replicas as may run, which may be fewer than desired: the group is scaled by
    /// segments.
    pub is_scaled: bool,
    /// Replicas by ordinal.
    pub replicas: Replicas,
    /// The ordinals of running replicas that have none of their own, in a role whose batches share a domain.
    pub unnumbered: BTreeSet<u32>,
}

impl RoleView {
    /// Returns the bound of ordinals for replicas whose controller gives none. Above it no replica is created any more, or not
    /// yet: a replica there would leave a gap that is never filled.
    pub(in crate::plan) fn places(&self) -> u32 {
        if self.unknown {
            return u32::MAX;
        }
        self.committed.filter(|_| self.is_scaled).map_or(self.desired, |committed| committed.min(self.desired))
    }

    /// Returns the number of released replicas, among those that may be. With a commit, a running replica beyond the released
    /// count does not count: it would stand for a held one, whose release would raise the count in each pass.
    pub fn current(&self) -> u32 {
        let bound = if self.committed.is_some() { self.released() } else { self.desired };
        self.replicas.count_in(..bound, ReplicaIs::Released)
    }

    /// Returns the released count: the committed one or, if that is lost or new, the observed one. Never above desired (S2).
    /// With a commit, only replicas without a gap count: a pod released by another client does not open the gates of those
    /// before it.
    pub fn released(&self) -> u32 {
        let observed = || self.replicas.first_failing(self.desired, ReplicaIs::Released).unwrap_or(self.desired);
        self.committed.map_or_else(|| self.current(), |committed| committed.max(observed())).min(self.desired)
    }

    /// Returns the released count if it exceeds the committed one: running replicas count, whatever the status says. A new role
    /// without a commit does not qualify.
    pub fn running_beyond_commit(&self) -> Option<u32> {
        let running = self.released();
        (running > self.committed?).then_some(running)
    }

    /// Returns the number of replicas up to the highest one of which a pod is ready; at least `known`, which were before.
    pub(in crate::plan) fn served(&self, known: u32) -> u32 {
        known.max(self.replicas.end_of_ready())
    }

    /// Returns the number of ready pods among the desired replicas.
    pub fn ready_pods(&self) -> u32 {
        self.replicas.pods_in(..self.desired).ready
    }

    /// Returns the number of pods of the complete role.
    pub fn desired_pods(&self) -> u32 {
        self.pods_in(0..self.desired)
    }

    /// Returns the number of pods of these replicas when complete; a replica without pods counts with the size of the largest
    /// one.
    pub fn pods_in(&self, ordinals: Range<u32>) -> u32 {
        let wanted = ordinals.end.saturating_sub(ordinals.start);
        let seen = self.replicas.pods_in(ordinals);
        let missing = wanted.saturating_sub(seen.replicas);
        if missing == 0 { seen.size } else { seen.size.saturating_add(missing.saturating_mul(self.replica_size())) }
    }

    /// Returns the number of pods in one replica: the largest observed, 1 before any is.
    pub fn replica_size(&self) -> u32 {
        self.replicas.largest().unwrap_or(1)
    }

    /// Reports whether each of these ordinals has a replica that passes the test.
    pub fn all_in(&self, ordinals: Range<u32>, what: ReplicaIs) -> bool {
        let wanted = ordinals.end.saturating_sub(ordinals.start);
        self.replicas.count_in(ordinals, what) == wanted
    }
}
