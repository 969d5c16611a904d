//! What is worth an Event in a rollout: a role waits for another, may go on, or does not move any more.

use std::collections::{BTreeMap, BTreeSet};

use super::{RolloutPlan, Rollouts, WaitReason, waits_for};
use crate::plan::news::News;
use crate::plan::progression::State;

/// Reason of the Event that a role waits.
pub const HELD: &str = "RolloutHeld";
/// Reason of the Event that a rollout went on, or is over.
pub const ADVANCED: &str = "RolloutAdvanced";
/// Reason of the Event that a rollout has not moved for longer than the progress deadline.
pub const STALLED: &str = "RolloutStalled";

/// What was said last of the rollouts of a group.
#[derive(Debug, Default)]
pub struct SaidOfRollouts {
    /// Partitions of open rollouts; `None` before the first look: what went before this process began is no news.
    partitions: Option<BTreeMap<String, u32>>,
    /// Which role was said to wait for which, and why, since its rollout began.
    waits: BTreeSet<(String, WaitReason, String)>,
    stalled: bool,
}

impl SaidOfRollouts {
    /// What is new. A role that waits again and again for the same other one says so once.
    pub fn news(&mut self, rollouts: &Rollouts, plan: &RolloutPlan, stalled: bool) -> Vec<News> {
        let roles = &rollouts.roles;
        let partitions: BTreeMap<_, _> =
            roles.iter().map(|(name, role)| (name.clone(), role.partition.min(role.desired()))).collect();
        let mut news: Vec<_> = self.partitions.iter().filter_map(|before| advanced(before, &partitions)).collect();
        self.partitions = Some(partitions);
        self.waits.retain(|(name, ..)| roles.contains_key(name));
        let open = plan.iter().filter(|(_, role)| !matches!(role.state, State::Complete | State::Paused));
        let waits: Vec<_> = open.filter_map(|(name, role)| Some((name, role.state, role.waits.as_ref()?))).collect();
        for (name, state, wait) in &waits {
            // What lasts a moment is no news, nor is a replica of its own that starts; held ones are told as such.
            let lasts = *state == State::Waiting && matches!(wait.reason, WaitReason::Skew | WaitReason::Settling);
            if lasts && self.waits.insert(((*name).clone(), wait.reason, wait.role.clone())) {
                news.push(said(HELD, waits_for(name, wait, roles), false));
            }
        }
        if stalled && !self.stalled {
            news.extend(waits.iter().map(|(name, _, wait)| said(STALLED, waits_for(name, wait, roles), true)));
        }
        self.stalled = stalled;
        news
    }
}

/// `prefill 36-39, decode 18-19 may be updated`, or a role whose rollout is over.
fn advanced(before: &BTreeMap<String, u32>, now: &BTreeMap<String, u32>) -> Option<News> {
    let granted = before.iter().filter_map(|(role, old)| match now.get(role) {
        Some(new) if new < old => Some(format!("{role} {new}-{} may be updated", old - 1)),
        Some(_) => None,
        None => Some(format!("{role} is done")),
    });
    let granted: Vec<_> = granted.collect();
    (!granted.is_empty()).then(|| said(ADVANCED, granted.join(", "), false))
}

fn said(reason: &str, note: String, warning: bool) -> News {
    News { reason: reason.to_owned(), subject: note.clone(), note, warning }
}
