//! What is worth an Event in a rollout: a role waits for another, may go on, or does not move any more.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::ProgressState;
use crate::plan::reconcile::events::EventNote;
use crate::plan::rollout::{RoleRollout, RolloutPlan, Rollouts, WaitReason, waits_for};

/// Reason of the Event that a role waits.
pub const HELD: &str = "RolloutHeld";
/// Reason of the Event that a rollout went on, or is over.
pub const ADVANCED: &str = "RolloutAdvanced";
/// Reason of the Event that a rollout has not moved for longer than the progress deadline.
pub const STALLED: &str = "RolloutStalled";

/// What was said last of the rollouts of a group.
#[derive(Debug, Default)]
pub struct ReportedRollouts {
    /// Partitions of open rollouts that were told; `None` before the first look: what went before this process began is no
    /// news.
    partitions: Option<BTreeMap<String, u32>>,
    /// Which role was said to wait for which, and why, since its rollout began.
    waits: BTreeSet<(String, WaitReason, String)>,
    stalled: bool,
}

impl ReportedRollouts {
    /// What is new. A role that waits again and again for the same other one says so once.
    pub fn news(&mut self, rollouts: &Rollouts, plan: &RolloutPlan, stalled: bool) -> Vec<EventNote> {
        let roles = &rollouts.roles;
        let mut news: Vec<_> = self.partitions.iter().filter_map(|told| advanced(told, roles)).collect();
        let told = self.partitions.take().unwrap_or_default();
        let latest = |(name, role): (&String, &RoleRollout)| {
            let (now, before) = (granted_from(role), told.get(name).copied());
            (name.clone(), before.filter(|before| *before > now && !is_worth(role, *before)).unwrap_or(now))
        };
        self.partitions = Some(roles.iter().map(latest).collect());
        self.waits.retain(|(name, ..)| roles.contains_key(name));
        let open =
            plan.iter().filter(|(_, role)| !matches!(role.state, ProgressState::Complete | ProgressState::Paused));
        let waits: Vec<_> = open.filter_map(|(name, role)| Some((name, role.state, role.waits.as_ref()?))).collect();
        for (name, state, wait) in &waits {
            // What lasts a moment is no news, nor is a replica of its own that starts; held ones are told as such.
            let lasts =
                *state == ProgressState::Waiting && matches!(wait.reason, WaitReason::Skew | WaitReason::Settling);
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

/// `prefill 36-39, decode 19 may be updated`, or a role whose rollout is over.
fn advanced(told: &BTreeMap<String, u32>, roles: &BTreeMap<String, RoleRollout>) -> Option<EventNote> {
    let granted = told.iter().filter_map(|(name, before)| match roles.get(name) {
        Some(role) if is_worth(role, *before) => {
            let (low, high) = (granted_from(role), (*before).min(role.desired()) - 1);
            let ordinals = if low == high { low.to_string() } else { format!("{low}-{high}") };
            Some(format!("{name} {ordinals} may be updated"))
        }
        Some(_) => None,
        None => Some(format!("{name} is done")),
    });
    let granted: Vec<_> = granted.collect();
    (!granted.is_empty()).then(|| said(ADVANCED, granted.join(", "), false))
}

/// Ordinals from here on may be updated.
fn granted_from(role: &RoleRollout) -> u32 {
    role.partition.min(role.desired())
}

/// Another tenth of the role has been granted since: a thousand replicas that go one by one are ten Events.
fn is_worth(role: &RoleRollout, told: u32) -> bool {
    let tenth = |partition: u32| (u64::from(partition) * 10).div_ceil(u64::from(role.desired().max(1)));
    // A frozen workload that was scaled down was granted nothing.
    tenth(granted_from(role)) < tenth(told.min(role.desired()))
}

fn said(reason: &str, note: String, warning: bool) -> EventNote {
    EventNote { reason: reason.to_owned(), subject: note.clone(), note, warning }
}

#[cfg(test)]
#[path = "rollout_events_tests.rs"]
mod tests;
