//! Events on rollouts: a role waits for another, may proceed, or does not move any more.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::ProgressState;
use crate::model::wording::ordinals;
use crate::plan::reconcile::events::EventNote;
use crate::plan::reconcile::lasting::{LASTS, Timed};
use crate::plan::reconcile::uptime::Uptime;
use crate::plan::rollout::{
    RoleRollout, RolloutPlan, Rollouts, Stage, StepNumber, Wait, WaitReason, stage_text, waits_for,
};
use crate::plan::status::STALLED;
use crate::plan::status::conditions::{ROLLED_BACK, ROLLOUT_PAUSED};

/// The reason of the Event on a role that waits.
pub const HELD: &str = "RolloutHeld";
/// The reason of the Event on a rollout that proceeded, or is over.
pub const ADVANCED: &str = "RolloutAdvanced";
/// The reason of the Event on a step of a rollout that begins.
pub const STEP: &str = "RolloutStep";
/// The reason of the Event on a rollout that failed and could not go back.
pub const FAILED: &str = "RolloutFailed";

/// The last reported state of the rollouts of a group.
#[derive(Debug, Default)]
pub struct ReportedRollouts {
    /// The reported partitions of open rollouts; `None` before the first pass: progress before the start of this process is not
    /// reported.
    partitions: Option<BTreeMap<String, u32>>,
    /// The waits reported since the rollout of the role began.
    waits: BTreeSet<RoleWait>,
    waiting: Timed<RoleWait>,
    /// Roles whose rollout was over when it was last seen open.
    complete: BTreeSet<String>,
    stalled: bool,
    /// The reported steps, by position of the coordination; `None` before the first pass.
    stages: Option<BTreeMap<usize, ReportedStage>>,
}

/// The furthest reported step of a rollout: one that falls back is not reported again.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ReportedStage {
    /// The revisions that its roles are updated to.
    revisions: BTreeMap<String, String>,
    back: bool,
    /// Whether the rollout failed, the step, and whether the pause after it was reached.
    at: (Failed, u32, bool),
}

/// Whether a rollout failed, and went back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Failed {
    No,
    Stays,
    Back,
}

impl ReportedStage {
    fn of(stage: &Stage) -> Self {
        let StepNumber { step, back, .. } = stage.number;
        let revisions = stage.state.revisions.clone();
        // A rollout that goes back walks its steps once more, and that is not told.
        match (&stage.state.rolled_back, &stage.stays) {
            (Some(_), _) => Self { revisions, back: false, at: (Failed::Back, 0, false) },
            (None, stays) => {
                let failed = if stays.is_some() { Failed::Stays } else { Failed::No };
                Self { revisions, back, at: (failed, step, stage.pause.is_some()) }
            }
        }
    }

    fn is_of(&self, other: &Self) -> bool {
        self.revisions == other.revisions && self.back == other.back
    }
}

/// The waiting role, the reason, and the role it waits for.
type RoleWait = (String, WaitReason, String);

impl ReportedRollouts {
    /// Returns new Events, and when to look again. Repeated waits of a role for the same other role are reported once.
    pub fn events(
        &mut self,
        rollouts: &Rollouts,
        plan: &RolloutPlan,
        stalled: bool,
        now: Uptime,
    ) -> (Vec<EventNote>, Option<Uptime>) {
        let roles = &rollouts.roles;
        let advanced = |reported| advanced(reported, roles, &self.complete);
        let mut events: Vec<_> = self.partitions.iter().filter_map(advanced).collect();
        let complete = plan.iter().filter(|(_, role)| role.state == ProgressState::Complete);
        self.complete = complete.map(|(name, _)| name.clone()).collect();
        events.extend(self.steps(rollouts));
        let reported = self.partitions.take().unwrap_or_default();
        let latest = |(name, role): (&String, &RoleRollout)| {
            let (now, before) = (granted_from(role), reported.get(name).copied());
            (name.clone(), before.filter(|before| *before > now && !is_worth(role, *before)).unwrap_or(now))
        };
        self.partitions = Some(roles.iter().map(latest).collect());
        self.waits.retain(|(name, ..)| roles.contains_key(name));
        let open = plan.iter().filter(|(_, role)| role.state != ProgressState::Complete && !role.state.rests());
        let one = |name: &str| BTreeSet::from([name.to_owned()]);
        let waits: Vec<_> = open.filter_map(|(name, role)| Some((name, role.state, role.waits.as_ref()?))).collect();
        // The wait for a starting replica of the same role is not reported; held replicas have Events of their own.
        let is_told = |(_, state, wait): &&(&String, ProgressState, &Wait)| {
            *state == ProgressState::Waiting
                && matches!(
                    wait.reason,
                    WaitReason::Barred | WaitReason::Skew | WaitReason::Settling | WaitReason::Object(_)
                )
        };
        let key = |(name, _, wait): &(&String, ProgressState, &Wait)| ((*name).clone(), wait.reason, wait.role.clone());
        let new = waits.iter().filter(is_told).map(key).filter(|key| !self.waits.contains(key));
        let lasted = self.waiting.lasted(new.collect::<Vec<_>>(), now);
        let told = waits.iter().filter(|wait| lasted.contains(&key(wait)));
        events.extend(told.map(|(name, _, wait)| event(HELD, waits_for(name, wait, rollouts), false, one(name))));
        self.waits.extend(lasted);
        if stalled && !self.stalled {
            // A rollout that went back has one name, whatever becomes of it.
            let reason = |name: &str| if rollouts.returns(name) { ROLLED_BACK } else { STALLED };
            let stalls = waits.iter();
            events.extend(
                stalls.map(|(name, _, wait)| event(reason(name), waits_for(name, wait, rollouts), true, one(name))),
            );
        }
        self.stalled = stalled;
        (events, self.waiting.next(LASTS, Uptime::ZERO))
    }

    /// Returns Events on steps that begin, and on pauses.
    fn steps(&mut self, rollouts: &Rollouts) -> Vec<EventNote> {
        let known = self.stages.take();
        let (mut events, mut reported) = (Vec::new(), BTreeMap::new());
        for stage in &rollouts.stages {
            let now = ReportedStage::of(stage);
            let before = known.as_ref().and_then(|known| known.get(&stage.index)).filter(|before| before.is_of(&now));
            if let Some(before) = before.filter(|before| before.at >= now.at) {
                reported.insert(stage.index, before.clone());
                continue;
            }
            let failed = now.at.0;
            let (reason, roles): (_, BTreeSet<_>) = match failed {
                Failed::No if stage.pause.is_some() => (ROLLOUT_PAUSED, stage.limits.keys().cloned().collect()),
                Failed::No => (STEP, stage.limits.keys().cloned().collect()),
                Failed::Stays => (FAILED, stage.state.revisions.keys().cloned().collect()),
                Failed::Back => (ROLLED_BACK, stage.state.revisions.keys().cloned().collect()),
            };
            if known.is_some() && stage.is_told() {
                events.push(event(reason, stage_text(stage, &rollouts.roles), failed != Failed::No, roles));
            }
            reported.insert(stage.index, now);
        }
        self.stages = Some(reported);
        events
    }
}

/// Returns an Event such as `prefill 36-39, decode 19 may be updated`, or on a role whose rollout is over or no longer
/// coordinated.
fn advanced(
    reported: &BTreeMap<String, u32>,
    roles: &BTreeMap<String, RoleRollout>,
    complete: &BTreeSet<String>,
) -> Option<EventNote> {
    let granted = reported.iter().filter_map(|(name, before)| match roles.get(name) {
        Some(role) if is_worth(role, *before) => {
            let (low, high) = (granted_from(role), (*before).min(role.desired()) - 1);
            Some((name.clone(), format!("{name} {} may be updated", ordinals(&(low..=high)))))
        }
        Some(_) => None,
        None if complete.contains(name) => Some((name.clone(), format!("{name} is done"))),
        None => Some((name.clone(), format!("the rollout of {name} is not coordinated any more"))),
    });
    let (names, granted): (BTreeSet<_>, Vec<_>) = granted.unzip();
    (!granted.is_empty()).then(|| event(ADVANCED, granted.join(", "), false, names))
}

/// Returns the ordinal from which on replicas may be updated.
fn granted_from(role: &RoleRollout) -> u32 {
    role.partition.min(role.desired())
}

/// Reports whether another tenth of the role was granted since: a thousand replicas that are updated one by one are ten Events.
fn is_worth(role: &RoleRollout, reported: u32) -> bool {
    let tenth = |partition: u32| (u64::from(partition) * 10).div_ceil(u64::from(role.desired().max(1)));
    // A frozen workload that was scaled down was granted nothing.
    tenth(granted_from(role)) < tenth(reported.min(role.desired()))
}

fn event(reason: &str, note: String, warning: bool, roles: BTreeSet<String>) -> EventNote {
    EventNote::new(reason, note.clone(), note, warning).of_roles(roles)
}

#[cfg(test)]
#[path = "rollout_events_tests.rs"]
mod tests;
