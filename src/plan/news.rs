//! What is worth an Event: a batch begins to be held for a reason, replicas are released.

use std::collections::{BTreeMap, BTreeSet};

use super::progression::State;
use super::rollout::{RolloutPlan, Rollouts, WaitReason, waits_for};
use super::{Decision, Held};
use crate::model::{Group, HoldReason};

/// Reason of the Event that replicas were released.
pub const RELEASED: &str = "Released";

/// Reason of the Event that a role waits in a rollout.
const ROLLOUT_HELD: &str = "RolloutHeld";
/// Reason of the Event that a rollout went on, or is over.
const ROLLOUT_ADVANCED: &str = "RolloutAdvanced";
/// Reason of the Event that a rollout has not moved for longer than the progress deadline.
const ROLLOUT_STALLED: &str = "RolloutStalled";

/// What was said last of a group, so that it is not said again.
#[derive(Debug, Default)]
pub struct Said {
    held: BTreeSet<(Option<String>, HoldReason, Option<u32>)>,
    /// `None` before the first look: what was released before this process began is no news.
    released: Option<BTreeMap<String, u32>>,
    /// Partitions of open rollouts; `None` before the first look.
    partitions: Option<BTreeMap<String, u32>>,
    /// Which role was said to wait for which, and why, since its rollout began.
    waits: BTreeSet<(String, WaitReason, String)>,
    stalled: bool,
}

impl Said {
    /// What is new in a decision: notes with their reasons, worth a warning or not.
    pub fn news(&mut self, group: &Group, decision: &Decision) -> Vec<News> {
        let what = |held: &Held| (held.coordination.clone(), held.reason, held.batch);
        let is_new = |held: &&Held| !self.held.contains(&what(held));
        let mut news: Vec<_> = decision.held.iter().filter(is_new).map(News::held).collect();
        self.held = decision.held.iter().map(what).collect();
        let committed = committed(group);
        news.extend(self.released.as_ref().and_then(|before| News::released(before, &committed)));
        self.released = Some(committed);
        news
    }
}

impl Said {
    /// What is new in the rollouts of a group.
    pub fn rollouts(&mut self, rollouts: &Rollouts, plan: &RolloutPlan, stalled: bool) -> Vec<News> {
        let roles = &rollouts.roles;
        let partitions: BTreeMap<_, _> =
            roles.iter().map(|(name, role)| (name.clone(), role.partition.min(role.desired()))).collect();
        let mut news: Vec<_> =
            self.partitions.iter().filter_map(|before| News::advanced(before, &partitions)).collect();
        self.partitions = Some(partitions);
        self.waits.retain(|(name, ..)| roles.contains_key(name));
        let waits = plan.iter().filter(|(_, role)| role.state != State::Complete);
        let waits: Vec<_> = waits.filter_map(|(name, role)| Some((name, role.state, role.waits.as_ref()?))).collect();
        for (name, state, wait) in &waits {
            // What comes and goes within a moment is no news, nor is a role's own replica that starts.
            let lasts = *state == State::Waiting && wait.reason != WaitReason::NotObserved;
            if lasts && self.waits.insert(((*name).clone(), wait.reason, wait.role.clone())) {
                news.push(News::rollout(ROLLOUT_HELD, waits_for(name, wait, roles), false));
            }
        }
        if stalled && !self.stalled {
            let said = waits.iter().map(|(name, _, wait)| waits_for(name, wait, roles));
            news.extend(said.map(|note| News::rollout(ROLLOUT_STALLED, note, true)));
        }
        self.stalled = stalled;
        news
    }
}

/// Released counts as they are stored.
fn committed(group: &Group) -> BTreeMap<String, u32> {
    let states = group.status.coordination_state.iter().flat_map(|state| &state.progress);
    states.filter_map(|(role, progress)| Some((role.clone(), progress.released?))).collect()
}

/// One Event to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct News {
    /// One word.
    pub reason: String,
    /// For people.
    pub note: String,
    /// True when somebody should look.
    pub warning: bool,
}

impl News {
    fn held(held: &Held) -> Self {
        let pods = if held.pods == 0 { String::new() } else { format!(" ({} pods)", held.pods) };
        let note = held.message.clone() + &pods;
        // Waiting for the segment before is what was asked for.
        let warning = !matches!(
            held.reason,
            HoldReason::PreviousSegmentNotReady | HoldReason::PreviousStepNotScheduled | HoldReason::IncompleteBatch
        );
        Self { reason: held.reason.to_string(), note, warning }
    }

    fn rollout(reason: &str, note: String, warning: bool) -> Self {
        Self { reason: reason.to_owned(), note, warning }
    }

    /// `prefill 36-39, decode 18-19 may be updated`, or a role whose rollout is over.
    fn advanced(before: &BTreeMap<String, u32>, now: &BTreeMap<String, u32>) -> Option<Self> {
        let granted = before.iter().filter_map(|(role, old)| match now.get(role) {
            Some(new) if new < old => Some(format!("{role} {new}-{} may be updated", old - 1)),
            Some(_) => None,
            None => Some(format!("{role} is done")),
        });
        let granted: Vec<_> = granted.collect();
        (!granted.is_empty()).then(|| Self::rollout(ROLLOUT_ADVANCED, granted.join(", "), false))
    }

    /// `prefill 10-19, decode 5-9 released`; `None` when counts only fell.
    fn released(before: &BTreeMap<String, u32>, now: &BTreeMap<String, u32>) -> Option<Self> {
        let ranges = now.iter().filter_map(|(role, count)| {
            let from = before.get(role).copied().unwrap_or(0);
            (*count > from).then(|| format!("{role} {from}-{}", count - 1))
        });
        let ranges: Vec<_> = ranges.collect();
        (!ranges.is_empty()).then(|| Self {
            reason: RELEASED.to_owned(),
            note: format!("released {}", ranges.join(", ")),
            warning: false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_names_the_ordinals() {
        let before = BTreeMap::from([("prefill".to_owned(), 10)]);
        let now = BTreeMap::from([("decode".to_owned(), 5), ("prefill".to_owned(), 20)]);
        assert_eq!(News::released(&before, &now).unwrap().note, "released decode 0-4, prefill 10-19");
        assert_eq!(News::released(&now, &before), None);
    }
}
