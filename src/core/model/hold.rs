//! Reasons for holding pods: one list for condition, Event, metric and every command.

use super::words::words;

words! {
/// Reason for holding a batch, in order of precedence: reasons on which a person has to act come first.
pub enum HoldReason {
    /// The group that the pods name does not exist.
    GroupMissing,
    /// The group that the pods name does not have their role.
    UnknownRole,
    /// The pods were not created by the workload of their role, so they are not its replicas.
    NotAReplica,
    /// The stored group breaks a rule.
    InvalidCoordination,
    /// A workload that a role refers to does not exist: the desired replicas of the role are unknown.
    WorkloadMissing,
    /// The pods of a workload do not name their group and role: nothing holds them.
    WorkloadNotLabelled,
    /// The topology layer that the batch must share does not exist: its nodes are unknown.
    TopologyMissing,
    /// The pods were created for another batch than the one they are in now.
    StampMismatch,
    /// The PodGroup of the batch could not be created: the pods would be scheduled without it.
    PodGroupMissing,
    /// The API server refused the release.
    PatchFailed,
    /// A quota leaves no room for pods that others wait for, and the held pods use it up.
    QuotaDeadlock,
    /// No domain has room for the batch.
    NoRoom,
    /// No domain has room for the batch, and nodes are requested for it.
    NodesRequested,
    /// The batch was given room, but pods of it are not bound in time.
    PlacedNotBound,
    /// The batch is in one domain, and pods of it run in another.
    BatchSplit,
    /// Other controllers gate pods of the batch and may choose their nodes: the batch is placed after that.
    GatedByOthers,
    /// It is not known yet whether there is room for the batch.
    RoomUnknown,
    /// The batch lost a replica and is recreated: its new pods wait for each other.
    Recovering,
    /// The workload created more replicas than the group declares.
    BeyondDesired,
    /// Fewer segments are wanted, but none is removed for now.
    ScaleInDeferred,
    /// A rollout cannot go on: its workload waits for held replicas with higher ordinals.
    RolloutBehindHeldBatch,
    /// The segment before is ready, and its object does not have the condition that it waits for.
    SegmentNotAccepted,
    /// The first segment is a canary, and a pause follows it.
    CanaryPaused,
    /// A role has fewer replicas than the batch takes: the roles may be scaled one after another, and the batch waits for that.
    SegmentGrowing,
    /// Pods of the batch were made of an old template: the rollout replaces them before they run.
    SegmentOutdated,
    /// Another coordination that shares a role waits.
    BlockedByCoordination,
    /// Replicas of an earlier segment are missing or not ready.
    PreviousSegmentNotReady,
    /// Replicas of an earlier deploy step are missing or not scheduled.
    PreviousStepNotScheduled,
    /// Pods of the batch do not exist yet.
    IncompleteBatch,
}
}

impl HoldReason {
    /// Reports whether only the loop finds the reason, from its own attempts or from the duration of a state; other readers
    /// take it from the status.
    pub const fn is_of_loop(self) -> bool {
        matches!(
            self,
            Self::PatchFailed
                | Self::PodGroupMissing
                | Self::QuotaDeadlock
                | Self::NoRoom
                | Self::NodesRequested
                | Self::PlacedNotBound
                | Self::BatchSplit
                | Self::RoomUnknown
                | Self::Recovering
                | Self::SegmentGrowing
                | Self::SegmentOutdated
                | Self::RolloutBehindHeldBatch
        )
    }

    /// Reports whether the reason is told before the pods of the batch are created.
    pub const fn may_be_of_unmade(self) -> bool {
        matches!(self, Self::NoRoom | Self::NodesRequested | Self::SegmentNotAccepted | Self::CanaryPaused)
    }

    /// Reports whether the reason may apply without a pod: to a batch whose pods do not exist yet, to a batch with room but
    /// without a node, or to a rollout.
    pub const fn may_be_of_no_pod(self) -> bool {
        matches!(
            self,
            Self::NoRoom
                | Self::NodesRequested
                | Self::PlacedNotBound
                | Self::BatchSplit
                | Self::RoomUnknown
                | Self::ScaleInDeferred
                | Self::RolloutBehindHeldBatch
                | Self::WorkloadMissing
                | Self::WorkloadNotLabelled
        )
    }
}
