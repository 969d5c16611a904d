//! Pods that are or would be held for one reason.

use std::borrow::Cow;

use serde::Serialize;

use crate::model::wording::counted;
use crate::plan::Held;
use crate::plan::reconcile::rollout_events::HELD;
use crate::plan::rollout::{Rollouts, Stage, stage_text};

#[derive(Serialize)]
pub struct Hold<'a> {
    pub coordination: Option<&'a str>,
    batch: Option<u32>,
    pub reason: &'static str,
    pub message: Cow<'a, str>,
    pub pods: u32,
}

impl<'a> Hold<'a> {
    pub fn of(held: &'a Held) -> Self {
        let (coordination, pods) = (held.coordination_name(), held.count());
        let (reason, message) = (held.reason.as_str(), held.message.as_str().into());
        Self { coordination, batch: held.batch, reason, message, pods }
    }

    /// Returns that of a step of a rollout, which holds no pods.
    pub(super) fn of_step(stage: &'a Stage, rollouts: &Rollouts) -> Self {
        let message = stage_text(stage, &rollouts.roles).into();
        Self { coordination: Some(&stage.name), batch: None, reason: HELD, message, pods: 0 }
    }

    /// Returns the message with the number of pods: `segment 2 is held: … (12 pods)`.
    pub fn text(&self) -> String {
        if self.pods == 0 {
            self.message.to_string()
        } else {
            format!("{} ({})", self.message, counted(self.pods, "pod"))
        }
    }
}
