//! What is worth an Event: a batch begins to be held for a reason, replicas are released.

use std::collections::{BTreeMap, BTreeSet};

use super::{Decision, Held, WhyAbsent};
use crate::model::{Group, HoldReason};

/// Reason of the Event that replicas were released.
pub const RELEASED: &str = "Released";

/// What was said last of a group, so that it is not said again.
#[derive(Debug, Default)]
pub struct Said {
    held: BTreeSet<(Option<String>, HoldReason, Option<u32>)>,
    /// Why pods of a role do not appear.
    found: BTreeSet<(String, WhyAbsent)>,
    /// `None` before the first look: what was released before this process began is no news.
    released: Option<BTreeMap<String, u32>>,
}

impl Said {
    /// What is new in a decision: notes with their reasons, worth a warning or not. While it is not known whether a rollout
    /// made what is beyond the desired replicas, nothing is said of that.
    pub fn news(&mut self, group: &Group, decision: &Decision, surplus_is_open: bool) -> Vec<News> {
        let what = |held: &Held| (held.coordination.clone(), held.reason, held.batch);
        let is_known = |held: &&Held| !(surplus_is_open && held.reason == HoldReason::BeyondDesired);
        let is_new = |held: &&Held| !self.held.contains(&what(held));
        let mut news: Vec<_> = decision.held.iter().filter(is_known).filter(is_new).map(News::held).collect();
        self.held = decision.held.iter().filter(is_known).map(what).collect();
        let said = std::mem::take(&mut self.found);
        for (found, note) in decision.found_texts() {
            let what = (found.role.clone(), found.why);
            if !said.contains(&what) {
                news.push(News { reason: found.why.as_str().to_owned(), note, warning: true });
            }
            self.found.insert(what);
        }
        let committed = committed(group);
        news.extend(self.released.as_ref().and_then(|before| News::released(before, &committed)));
        self.released = Some(committed);
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
        let note = format!("{} ({} pods)", held.message, held.pods);
        // Waiting for the segment before is what was asked for.
        let warning = !matches!(
            held.reason,
            HoldReason::PreviousSegmentNotReady | HoldReason::PreviousStepNotScheduled | HoldReason::IncompleteBatch
        );
        Self { reason: held.reason.to_string(), note, warning }
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
