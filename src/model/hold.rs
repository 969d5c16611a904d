//! Why pods are held: one list for condition, Event, metric and every command.

use std::fmt;

/// Writes the enum, the list of all and their words from one list.
macro_rules! hold_reasons {
    ($(#[$doc:meta])* pub enum $name:ident { $($(#[$of:meta])* $reason:ident,)* }) => {
        $(#[$doc])*
        pub enum $name {
            $($(#[$of])* $reason,)*
        }

        impl $name {
            /// Every reason, in order of precedence.
            pub const ALL: &[Self] = &[$(Self::$reason,)*];

            /// One word, stable: reason of conditions and Events, label of metrics.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$reason => stringify!($reason),)*
                }
            }
        }
    };
}

hold_reasons! {
/// Why a batch is held. The order is the order of precedence when several apply: what a person has to act on comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HoldReason {
    /// The group that the pods name does not exist.
    GroupMissing,
    /// The group that the pods name does not have their role.
    UnknownRole,
    /// Another than the workload of their role made the pods, or nobody did: they are none of its replicas.
    NotAReplica,
    /// The stored group breaks a rule.
    InvalidCoordination,
    /// A workload that a role refers to does not exist: nobody knows how many replicas the role wants.
    WorkloadMissing,
    /// The pods of a workload do not say which group and role they are of: nothing holds them.
    WorkloadNotLabelled,
    /// The layer that they share with their batch is not there: nobody can say which nodes it means.
    TopologyMissing,
    /// The pods were made for another batch than the one that they are in now.
    StampMismatch,
    /// The PodGroup of their batch could not be made: they would be scheduled without it.
    PodGroupMissing,
    /// The API server refused the release.
    PatchFailed,
    /// A quota leaves no room for pods that others wait for, and the held ones use it up.
    QuotaDeadlock,
    /// No domain has room for the batch.
    NoRoom,
    /// The batch was given room, and pods of it are not bound in time.
    PlacedNotBound,
    /// Others keep pods of the batch, and may say on which nodes these run: it is placed after that.
    GatedByOthers,
    /// Whether there is room for the batch is not known yet.
    RoomUnknown,
    /// The batch has lost a replica, and is made anew: its new pods wait for each other.
    Recovering,
    /// The workload made more replicas than the group declares.
    BeyondDesired,
    /// Fewer segments are wanted, and none is taken away for now.
    ScaleInDeferred,
    /// A rollout cannot go on, since its workload waits for held replicas on top.
    RolloutBehindHeldBatch,
    /// Another coordination that shares a role waits.
    BlockedByCoordination,
    /// An earlier segment has replicas that are missing or not ready.
    PreviousSegmentNotReady,
    /// An earlier deploy step has replicas that are missing or not scheduled.
    PreviousStepNotScheduled,
    /// Pods of the batch do not exist yet.
    IncompleteBatch,
}
}

impl HoldReason {
    /// The reason that has this word.
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|reason| reason.as_str() == word)
    }

    /// True for what only the loop finds out, from what it has tried, or how long it has seen something: who looks from outside
    /// takes it from the status.
    pub const fn is_of_loop(self) -> bool {
        matches!(
            self,
            Self::PatchFailed
                | Self::PodGroupMissing
                | Self::QuotaDeadlock
                | Self::NoRoom
                | Self::PlacedNotBound
                | Self::RoomUnknown
                | Self::Recovering
        )
    }

    /// True where something may be said to wait for this reason that is no pod: a batch whose pods are yet to be made, one that
    /// has room and no node, a rollout.
    pub const fn may_be_of_no_pod(self) -> bool {
        matches!(
            self,
            Self::NoRoom
                | Self::PlacedNotBound
                | Self::RoomUnknown
                | Self::ScaleInDeferred
                | Self::RolloutBehindHeldBatch
                | Self::WorkloadMissing
                | Self::WorkloadNotLabelled
        )
    }
}

impl fmt::Display for HoldReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
