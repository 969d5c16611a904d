//! What would be of a group, were its namespace served in mode `enforce`.

use std::collections::BTreeSet;

use serde::Serialize;

use super::Picture;
use super::hold::Hold;
use crate::model::Mode;
use crate::model::wording::counted;

/// What would be of a group, were its namespace served in mode `enforce`.
#[derive(Serialize)]
pub struct Would<'a> {
    /// The rules that would refuse the object that carries it as it is stored.
    pub refused: BTreeSet<&'static str>,
    /// Why pods would be held that are not ready.
    pub holds: Vec<Hold<'a>>,
}

impl<'a> Would<'a> {
    /// Of a group as it is seen; `None` where its namespace is served in that mode, or not at all.
    pub fn of(picture: &'a Picture) -> Option<Self> {
        let stance = picture.snapshot.stance;
        if stance.mode == Mode::Enforce || stance.out.is_some() {
            return None;
        }
        Some(Self {
            refused: picture.snapshot.spared.iter().map(|fault| fault.rule).collect(),
            holds: picture.would_hold.iter().map(Hold::of).collect(),
        })
    }

    /// A line for each, for people.
    pub fn lines(&self) -> Vec<String> {
        let refused: Vec<_> = self.refused.iter().copied().collect();
        let refused = (!refused.is_empty()).then(|| format!("would be refused: {}", refused.join(", ")));
        let held = self.holds.iter().map(|hold| {
            let (reason, message) = (hold.reason, hold.message);
            format!("would be held: {reason}: {message} ({})", counted(hold.pods, "pod"))
        });
        refused.into_iter().chain(held).collect()
    }
}
