//! How far a coordination, or one role in it, is (KEP-30, CoordinationState).

/// ProgressState of a coordination, or of one role in it (KEP-30, CoordinationState).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProgressState {
    /// The next batch may go.
    Progressing,
    /// An earlier batch is not what the progression asks for.
    Waiting,
    /// Another coordination that shares a role waits.
    Blocked,
    /// A rollout stands at its partition.
    Paused,
    /// All roles are at their desired count.
    Complete,
    /// Its updates never come to rolegate: no workload of the role is claimed that could be rolled in lockstep.
    NotCoordinated,
}

impl ProgressState {
    /// As the status spells it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Progressing => "Progressing",
            Self::Waiting => "Waiting",
            Self::Blocked => "Blocked",
            Self::Paused => "Paused",
            Self::Complete => "Complete",
            Self::NotCoordinated => "NotCoordinated",
        }
    }
}
