//! State of a coordination, or of one role in it (KEP-30, CoordinationState).

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProgressState {
    /// The next batch may be released.
    Progressing,
    /// An earlier batch is not in the state that the progression requires.
    Waiting,
    /// Another coordination that shares a role waits.
    Blocked,
    /// A rollout has reached its partition.
    Paused,
    /// A rollout has gone back to the revision that it came from.
    RolledBack,
    /// All roles are at their desired count.
    Complete,
    /// The updates do not pass through rolegate: no workload of the role is claimed that could be rolled in lockstep.
    NotCoordinated,
}

impl ProgressState {
    /// Reports whether a rollout waits for nothing but a person, or the end of a pause.
    pub const fn rests(self) -> bool {
        matches!(self, Self::Paused | Self::RolledBack)
    }

    /// Returns the word in the status.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Progressing => "Progressing",
            Self::Waiting => "Waiting",
            Self::Blocked => "Blocked",
            Self::Paused => "Paused",
            Self::RolledBack => "RolledBack",
            Self::Complete => "Complete",
            Self::NotCoordinated => "NotCoordinated",
        }
    }
}
