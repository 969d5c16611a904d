//! State of a coordination, or of one role in it (KEP-30, CoordinationState).

use super::words::words;

words! {
pub enum ProgressState {
    /// The next batch may be released.
    Progressing = "Progressing",
    /// An earlier batch is not in the state that the progression requires.
    Waiting = "Waiting",
    /// Another coordination that shares a role waits.
    Blocked = "Blocked",
    /// A rollout has reached its partition.
    Paused = "Paused",
    /// A rollout has gone back to the revision that it came from.
    RolledBack = "RolledBack",
    /// All roles are at their desired count.
    Complete = "Complete",
    /// The updates do not pass through rolegate: no workload of the role is claimed that could be rolled in lockstep.
    NotCoordinated = "NotCoordinated",
}
}

impl ProgressState {
    /// Reports whether a rollout waits for nothing but a person, or the end of a pause.
    pub const fn rests(self) -> bool {
        matches!(self, Self::Paused | Self::RolledBack)
    }
}
