//! Groups whose status the API server does not take. Nothing is released that was not committed, so all that is not yet released
//! waits for it.

use std::collections::BTreeSet;

use crate::model::wording::answer;
use crate::plan::reconcile::events::EventNote;

/// Reason of the Event.
pub const REFUSED: &str = "StatusRefused";
/// It is told when it has failed so often: before that it may be a moment's.
const SAID_AFTER: u32 = 3;

/// That the status of a group is refused, and whether that was told.
#[derive(Debug, Default)]
pub(in crate::plan) struct RefusedStatus {
    why: Option<String>,
    told: bool,
}

impl RefusedStatus {
    /// Notes what became of a write, and how often it has failed in a row.
    pub(in crate::plan) fn note(&mut self, failure: Option<String>, failures: u32) {
        self.told &= failure.is_some();
        self.why = failure.filter(|_| failures >= SAID_AFTER);
    }

    /// What is to be said, once until a write is taken.
    pub(in crate::plan) fn event(&mut self) -> Option<EventNote> {
        let why = self.why.as_ref().filter(|_| !self.told)?;
        self.told = true;
        Some(EventNote {
            reason: REFUSED.to_owned(),
            note: format!("the status cannot be written, and nothing more is released before that: {}", answer(why)),
            subject: String::new(),
            warning: true,
            roles: BTreeSet::new(),
        })
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
