/// One instance of a role: one pod, or all pods of one LeaderWorkerSet group or RoleInstance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Replica {
    /// Pods that exist.
    pub pods: u32,
    /// Pods with the gate of rolegate.
    pub held: u32,
    /// Pods with a node.
    pub scheduled: u32,
    pub ready: u32,
    /// The number of pods of a complete replica, as its pods state it, not as the spec of the workload states it now. During a
    /// rollout that changes the number, the new one counts as soon as one pod has it.
    pub size: u32,
    /// Whether all its pods are created at once; they are then released together.
    pub made_at_once: bool,
    /// Whether two of its pods have the same place: several workloads number their pods alike.
    pub doubled: bool,
}

impl Replica {
    /// Reports whether some of its pods do not exist.
    pub fn is_incomplete(&self) -> bool {
        self.pods < self.size
    }

    /// Reports whether none of its pods was released. After the first release the others follow at once, so that a controller
    /// that recreates pods one by one does not wait.
    pub fn is_untouched(&self) -> bool {
        self.held == self.pods
    }

    /// Reports whether all its pods exist without the gate of rolegate.
    pub fn is_released(&self) -> bool {
        self.held == 0 && self.pods >= self.size
    }

    /// Reports whether all its pods are released and ready.
    pub fn is_ready(&self) -> bool {
        self.is_released() && self.ready >= self.size
    }

    /// Reports whether all its pods are released and have a node.
    pub fn is_scheduled(&self) -> bool {
        self.is_released() && self.scheduled >= self.size
    }
}

/// A test of a replica.
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
    /// Two of its pods have the same place.
    Doubled,
}

impl ReplicaIs {
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

/// Converts a count to 32 bits: a cluster has no more pods than that.
pub(in crate::plan) fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
