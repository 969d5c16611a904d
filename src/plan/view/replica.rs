//! What is observed of one role: its replicas by ordinal, and how many may run.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// One instance of a role: one pod, or all pods of one LeaderWorkerSet group or RoleInstance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Replica {
    /// Pods that exist.
    pub pods: u32,
    /// Pods that carry our gate.
    pub held: u32,
    /// Pods with a node.
    pub scheduled: u32,
    /// Pods that are ready.
    pub ready: u32,
    /// Pods that it has when complete: what its pods say, not what the workload's spec says now. In the middle of a
    /// rollout that changes it, the new size counts as soon as one pod has it.
    pub size: u32,
    /// True when its pods are all made at once: then they are released together.
    pub made_at_once: bool,
}

impl Replica {
    /// Some of its pods do not exist.
    pub fn is_incomplete(&self) -> bool {
        self.pods < self.size
    }

    /// None of its pods was released yet. Once one was, the others follow at once: whatever brings them back one by one
    /// must not wait for the rest.
    pub fn is_untouched(&self) -> bool {
        self.held == self.pods
    }

    /// All its pods exist without our gate.
    pub fn is_released(&self) -> bool {
        self.held == 0 && self.pods >= self.size
    }

    /// All its pods are released and ready.
    pub fn is_ready(&self) -> bool {
        self.is_released() && self.ready >= self.size
    }

    /// All its pods are released and have a node.
    pub fn is_scheduled(&self) -> bool {
        self.is_released() && self.scheduled >= self.size
    }
}

/// What is observed of one role.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoleView {
    /// Desired replicas; of an unknown role, what is released: it stays.
    pub desired: u32,
    /// True while the workload or group that says how many are desired is not there.
    pub unknown: bool,
    /// Committed released count, as the status keeps it; `None` when it says nothing.
    pub committed: Option<u32>,
    /// Replicas by ordinal.
    pub replicas: BTreeMap<u32, Replica>,
    /// When its youngest pod was made, RFC 3339.
    pub newest: Option<Arc<str>>,
}

impl RoleView {
    /// Replicas that are released, among those that may be. Beside a commit, a replica beyond the released count that runs
    /// all the same does not count: it would stand for a held one, whose release would make it one more at each pass.
    pub fn current(&self) -> u32 {
        let bound = if self.committed.is_some() { self.released() } else { self.desired };
        self.count_in(0..bound, Replica::is_released)
    }

    /// The released count: what was committed, or, where that is lost or new, what is observed. Never above desired (S2).
    /// A pod that somebody else let go does not open the way for those before it: beside a commit only replicas without
    /// a gap count.
    pub fn released(&self) -> u32 {
        let observed = || self.first_failing(self.desired, Replica::is_released).unwrap_or(self.desired);
        self.committed.map_or_else(|| self.current(), |committed| committed.max(observed())).min(self.desired)
    }

    /// Pods that are ready, among the desired replicas.
    pub fn ready_pods(&self) -> u32 {
        self.replicas.range(..self.desired).map(|(_, replica)| replica.ready.min(replica.size)).sum()
    }

    /// Pods that the role has when complete.
    pub fn desired_pods(&self) -> u32 {
        self.pods_in(0..self.desired)
    }

    /// Pods that these replicas have when complete; those not seen yet count with the size of the largest that is.
    pub fn pods_in(&self, ordinals: Range<u32>) -> u32 {
        if ordinals.is_empty() {
            return 0;
        }
        let (mut missing, mut pods) = (ordinals.end - ordinals.start, 0_u32);
        for (_, replica) in self.replicas.range(ordinals) {
            missing -= 1;
            pods = pods.saturating_add(replica.size);
        }
        pods.saturating_add(missing.saturating_mul(self.replica_size()))
    }

    /// Pods in one replica: the largest that is seen, 1 before any is.
    pub fn replica_size(&self) -> u32 {
        self.replicas.values().map(|replica| replica.size).max().unwrap_or(1)
    }

    /// The lowest ordinal below `bound` whose replica is missing or fails the test; `None` when all pass.
    pub fn first_failing(&self, bound: u32, test: impl Fn(&Replica) -> bool) -> Option<u32> {
        let mut next = 0;
        for (ordinal, replica) in self.replicas.range(..bound) {
            if *ordinal != next || !test(replica) {
                return Some(next);
            }
            next = ordinal + 1;
        }
        (next < bound).then_some(next)
    }

    /// Replicas of these ordinals that pass the test.
    pub fn count_in(&self, ordinals: Range<u32>, test: impl Fn(&Replica) -> bool) -> u32 {
        if ordinals.is_empty() {
            return 0;
        }
        count(self.replicas.range(ordinals).filter(|(_, replica)| test(replica)).count())
    }

    /// True when every one of these ordinals has a replica that passes the test.
    pub fn all_in(&self, ordinals: Range<u32>, test: impl Fn(&Replica) -> bool) -> bool {
        let wanted = ordinals.end.saturating_sub(ordinals.start);
        self.count_in(ordinals, test) == wanted
    }
}

/// Counts fit 32 bits: a cluster has no more pods than that.
pub(in crate::plan) fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
