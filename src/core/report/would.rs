//! The effects that mode `enforce` would have on a group.

use std::collections::BTreeSet;

use serde::Serialize;

use super::Picture;
use super::hold::Hold;
use crate::model::Mode;
use crate::model::wording::counted;

#[derive(Serialize)]
pub struct Would<'a> {
    /// Rules that would refuse the stored carrier.
    pub refused: BTreeSet<&'static str>,
    /// Holds of pods that are not ready.
    pub holds: Vec<Hold<'a>>,
}

impl<'a> Would<'a> {
    /// Returns the effects; `None` where the namespace is in mode `enforce` or not served.
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

    /// Returns one line for each effect, for people.
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
