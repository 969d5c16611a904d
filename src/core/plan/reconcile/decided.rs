//! The last decision on a group or PodGroup, as metrics and the queue read it.

use std::collections::BTreeMap;

use crate::model::HoldReason;
use crate::plan::decide::batches::BatchState;
use crate::plan::elastic::SegmentCounts;
use crate::plan::provision::entry;
use crate::plan::reconcile::timing::ReleaseTimer;
use crate::plan::recovery::entry::Phase;

/// The last decision. A replica that does not lead decides nothing.
#[derive(Debug, Default)]
pub struct Decided {
    /// Held pods by reason.
    pub held: Vec<(HoldReason, u32)>,
    /// Pods are to be placed.
    pub(in crate::plan) needs_room: bool,
    /// Batches would be made if the room were known.
    pub(in crate::plan) is_blind: bool,
    /// The status says that nothing moves.
    pub stalled: bool,
    pub batches: BTreeMap<BatchState, u32>,
    pub segments: SegmentCounts,
    pub recoveries: Vec<Phase>,
    /// Requests for nodes.
    pub requests: Vec<entry::Phase>,
    /// Batches that look broken and are not made anew for now.
    pub paused: u32,
    /// Rollouts at a pause of their steps.
    pub rollouts_paused: u32,
    /// Rollouts that went back, or are on their way.
    pub rollouts_rolled_back: u32,
    /// Pods that run without the group for which they were held.
    pub uncoordinated: u32,
    /// Updated and desired replicas of roles with an open rollout.
    pub updated: BTreeMap<String, (u32, u32)>,
    pub(in crate::plan) release_timer: ReleaseTimer,
}

impl Decided {
    /// Reports whether the group waits to see nodes, or the requests of its pods.
    pub(in crate::plan) fn waits_to_see(&self) -> bool {
        self.is_blind || self.held.iter().any(|(reason, _)| *reason == HoldReason::RoomUnknown)
    }

    /// Returns the reasons of holds, each once.
    pub fn reasons(&self) -> impl Iterator<Item = HoldReason> {
        let is_first = |place: usize, reason| !self.held.iter().take(place).any(|(before, _)| *before == reason);
        let reasons = self.held.iter().map(|(reason, _)| *reason).enumerate();
        reasons.filter(move |(place, reason)| is_first(*place, *reason)).map(|(_, reason)| reason)
    }
}
