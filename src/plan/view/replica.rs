//! One replica of a role, and what it can be asked.

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
    /// True when two of its pods have one place in it: several workloads number their pods alike.
    pub doubled: bool,
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

/// What many replicas are asked at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplicaIs {
    /// All its pods exist.
    Complete,
    /// [`Replica::is_untouched`]
    Untouched,
    /// [`Replica::is_released`]
    Released,
    /// [`Replica::is_scheduled`]
    Scheduled,
    /// [`Replica::is_ready`]
    Ready,
    /// Two of its pods have one place.
    Doubled,
}

impl ReplicaIs {
    /// True for a replica that is so.
    pub fn holds(self, replica: &Replica) -> bool {
        match self {
            Self::Complete => !replica.is_incomplete(),
            Self::Untouched => replica.is_untouched(),
            Self::Released => replica.is_released(),
            Self::Scheduled => replica.is_scheduled(),
            Self::Ready => replica.is_ready(),
            Self::Doubled => replica.doubled,
        }
    }
}

/// Counts fit 32 bits: a cluster has no more pods than that.
pub(in crate::plan) fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
