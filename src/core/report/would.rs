//! The effects that mode `enforce` would have on a group.

use std::collections::BTreeSet;

use serde::Serialize;

use super::Story;
use super::hold::Hold;
use crate::model::Mode;

#[derive(Serialize)]
pub struct Would<'a> {
    /// Rules that would refuse the stored carrier.
    pub refused: BTreeSet<&'static str>,
    /// Holds of pods that are not ready.
    pub holds: Vec<Hold<'a>>,
}

impl<'a> Story<'a> {
    /// Returns the effects of mode `enforce`; `None` in that mode, and where the namespace is not served.
    pub fn would(self) -> Option<Would<'a>> {
        let Self(picture) = self;
        let stance = picture.snapshot.stance;
        if stance.mode == Mode::Enforce || stance.out.is_some() {
            return None;
        }
        Some(Would {
            refused: picture.snapshot.spared.iter().map(|fault| fault.rule).collect(),
            holds: picture.would_hold.iter().map(Hold::of).collect(),
        })
    }
}

impl Would<'_> {
    /// Returns one line for each effect, for people.
    pub fn lines(&self) -> Vec<String> {
        let refused: Vec<_> = self.refused.iter().copied().collect();
        let refused = (!refused.is_empty()).then(|| format!("would be refused: {}", refused.join(", ")));
        let held = self.holds.iter().map(|hold| format!("would be held: {}: {}", hold.reason, hold.text()));
        refused.into_iter().chain(held).collect()
    }
}
