//! Entries of the status: one for each broken batch, with the phase of its recovery.

use std::time::Duration;

use crate::api::status::{LostPod, RecoveryState};
use crate::model::moment::Moment;
use crate::model::words::words;
use crate::model::{Coordination, Recovery};
use crate::plan::recovery::Loss;
use crate::plan::view::{LastWords, LossKind};

/// The pause before the second recovery within the window; it doubles up to `LONGEST_PAUSE`.
pub(super) const FIRST_PAUSE: Duration = Duration::from_secs(10);
/// The longest pause before a recovery.
pub(super) const LONGEST_PAUSE: Duration = Duration::from_secs(300);

words! {
/// The phase of a recovery.
pub enum Phase {
    /// It begins after a pause.
    Waiting,
    /// The old pods are deleted, and the new ones wait for each other.
    Recreating,
    /// The new pods are released, and not all ready yet.
    Releasing,
    /// The batch was complete again.
    Complete,
    /// The batch was recreated too often: it is left as it is.
    Exhausted,
}
}

impl Phase {
    /// Reports whether the batch is still to be made complete.
    pub const fn is_under_way(self) -> bool {
        matches!(self, Self::Waiting | Self::Recreating | Self::Releasing)
    }

    /// Returns the phase of an entry; `None` for an unknown phase.
    pub fn of(state: &RecoveryState) -> Option<Self> {
        Self::of_word(&state.phase)
    }
}

/// Returns the entry of a batch.
pub(in crate::plan) fn of_batch<'a>(
    entries: &'a [RecoveryState],
    coordination: &Coordination,
    batch: u32,
) -> Option<(Phase, &'a RecoveryState)> {
    let name = coordination.display_name();
    let entry = entries.iter().find(|entry| entry.batch == batch && entry.coordination == name)?;
    Some((Phase::of(entry)?, entry))
}

/// Returns the start times of recoveries that count for the limit.
pub(super) fn counted(entry: Option<&RecoveryState>, recovery: &Recovery, now: Moment) -> Vec<String> {
    let attempts = entry.map(|entry| entry.attempts.as_slice()).unwrap_or_default();
    let is_within = |at: &&String| Moment::parse(at).is_some_and(|at| at.after(recovery.window) > now);
    attempts.iter().filter(is_within).cloned().collect()
}

/// Returns the entry of a broken batch: it is recreated after a pause, or exhausted.
pub(super) fn broken(
    coordination: &Coordination,
    batch: u32,
    recovery: &Recovery,
    (loss, words): (&Loss, &LastWords),
    before: Option<&RecoveryState>,
    (now, generation): (Moment, Option<i64>),
) -> RecoveryState {
    let attempts = counted(before, recovery, now);
    let done = u32::try_from(attempts.len()).unwrap_or(u32::MAX);
    let mut state = RecoveryState {
        coordination: coordination.display_name(),
        batch,
        attempt: done.saturating_add(1),
        reason: words.kind.as_str().to_owned(),
        since: Some(now.text()),
        attempts,
        lost: Some(LostPod {
            role: loss.role.clone(),
            ordinal: loss.ordinal,
            pod: words.pod.clone(),
            node: words.node.clone(),
            reason: words.reason.clone(),
            exit_code: words.exit_code,
            message: words.message.clone(),
        }),
        ..RecoveryState::default()
    };
    let phase = if done >= recovery.limit {
        (state.attempt, state.generation) = (done, generation);
        Phase::Exhausted
    } else {
        if done > 0 {
            state.not_before = Some(now.after(pause(done)).text());
        }
        Phase::Waiting
    };
    phase.as_str().clone_into(&mut state.phase);
    state
}

/// Returns the pause before the next recovery or request for nodes, after `done` of them.
pub(in crate::plan) fn pause(done: u32) -> Duration {
    FIRST_PAUSE.saturating_mul(1 << done.saturating_sub(1).min(10)).min(LONGEST_PAUSE)
}

/// Returns a text on the loss.
pub fn loss_text(state: &RecoveryState) -> String {
    const KINDS: [LossKind; 6] = [
        LossKind::PodDeleted,
        LossKind::PodFailed,
        LossKind::PodEvicted,
        LossKind::NodeGone,
        LossKind::NotReady,
        LossKind::NoRoom,
    ];
    let lost = state.lost.clone().unwrap_or_default();
    let words = LastWords {
        kind: KINDS.into_iter().find(|kind| kind.as_str() == state.reason).unwrap_or_default(),
        pod: lost.pod,
        node: lost.node,
        reason: lost.reason,
        exit_code: lost.exit_code,
        message: lost.message,
        revision: None,
    };
    words.text(&format!("replica {} of role {:?}", lost.ordinal, lost.role))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pause_doubles_up_to_five_minutes() {
        assert_eq!([1, 2, 3, 5, 6, 400].map(|done| pause(done).as_secs()), [10, 20, 40, 160, 300, 300]);
    }
}
