//! Groups whose status the API server refuses. Nothing is released without a commit, so all held pods wait for it.

use crate::model::wording::answer;
use crate::plan::reconcile::events::EventNote;

/// The reason of the Event.
pub const REFUSED: &str = "StatusRefused";
/// The number of failures before an Event: a shorter series may pass by itself.
const SAID_AFTER: u32 = 3;

/// The refusal of a group's status, and whether it was reported.
#[derive(Debug, Default)]
pub(in crate::plan) struct RefusedStatus {
    why: Option<String>,
    told: bool,
}

impl RefusedStatus {
    /// Notes the result of a write, and the number of failures in a row.
    pub(in crate::plan) fn note(&mut self, failure: Option<String>, failures: u32) {
        self.told &= failure.is_some();
        self.why = failure.filter(|_| failures >= SAID_AFTER);
    }

    /// Returns the Event, once until a write succeeds.
    pub(in crate::plan) fn event(&mut self) -> Option<EventNote> {
        let why = self.why.as_ref().filter(|_| !self.told)?;
        self.told = true;
        let note = format!("the status cannot be written, and nothing more is released before that: {}", answer(why));
        Some(EventNote::new(REFUSED, "", note, true))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_told_once_when_it_has_lasted_and_again_when_it_comes_again() {
        let mut refused = RefusedStatus::default();
        let mut told = |failure: Option<&str>, failures| {
            refused.note(failure.map(str::to_owned), failures);
            refused.event().map(|event| event.note)
        };
        let said = "the status cannot be written, and nothing more is released before that: no";
        assert_eq!([told(Some("no"), 1), told(Some("no"), 2)], [None, None]);
        assert_eq!(told(Some("no"), 3).as_deref(), Some(said));
        assert_eq!([told(Some("no"), 4), told(None, 0), told(Some("no"), 1)], [None, None, None]);
        assert_eq!(told(Some("no"), 3).as_deref(), Some(said));
    }
}
