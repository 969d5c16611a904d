//! Rounds of edits: roles that were edited together are rolled together, and an edit during an open rollout begins a new round.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::model::{RolledWorkload, RollingBounds, WorkloadKey, connected};
use crate::plan::reconcile::uptime::Uptime;
use crate::plan::rollout::Edit;

/// The memory of the edits of a group's roles. After its loss all open rollouts count as one round.
#[derive(Clone, Debug, Default)]
pub struct Rounds {
    /// The newest round of roles that share coordinations, directly or through others, by the first of these roles.
    current: BTreeMap<String, Round>,
    edits: BTreeMap<WorkloadKey, LastEdit>,
    /// The revisions of workloads when they last had no open rollout.
    closed: BTreeMap<WorkloadKey, Option<String>>,
    /// Since when open workloads have kept the target revision from before their rollout: a new one is being created, or the
    /// edit was taken back.
    unchanged: BTreeMap<WorkloadKey, Uptime>,
    /// The rollout id of the last edit of each workload.
    ids: BTreeMap<WorkloadKey, String>,
}

/// Edits of several roles that belong together: at most one of each role.
#[derive(Clone, Debug)]
struct Round {
    number: u32,
    since: Uptime,
    edited: BTreeSet<String>,
}

#[derive(Clone, Debug)]
struct LastEdit {
    revision: Option<String>,
    round: u32,
    stale_id: Option<String>,
}

impl Rounds {
    /// Notes the open rollouts. A new revision is an edit: it joins the round, or begins another one if its role was edited in
    /// this round already.
    pub fn note(&mut self, bounds: &[RollingBounds], workloads: &[RolledWorkload], now: Uptime) {
        let mut before = std::mem::take(&mut self.edits);
        let unchanged = std::mem::take(&mut self.unchanged);
        let mut open = BTreeSet::new();
        for workload in workloads.iter().filter(|workload| workload.is_open()) {
            let role = &workload.claim.role;
            let first = first_of(bounds, role);
            open.insert(first.clone());
            let (known, revision) = (before.remove(&workload.key), &workload.update_revision);
            // A workload is frozen at once, and its controller creates the new revision later.
            let unseen = workload.unclaimed || !workload.observed || revision.is_none();
            let is_new = known.is_none();
            if let Some(known) = known.filter(|known| unseen || known.revision == *revision) {
                self.edits.insert(workload.key.clone(), known);
                continue;
            }
            if unseen {
                continue;
            }
            if is_new && self.closed.get(&workload.key) == Some(revision) {
                let since = unchanged.get(&workload.key).copied().unwrap_or(now);
                self.unchanged.insert(workload.key.clone(), since);
                continue;
            }
            let new = || Round { number: 0, since: now, edited: BTreeSet::new() };
            let round = self.current.entry(first).or_insert_with(new);
            if !round.edited.insert(role.clone()) {
                *round = Round { number: round.number + 1, since: now, edited: BTreeSet::from([role.clone()]) };
            }
            let stale_id = match &workload.rollout_id {
                Some(id) => self.ids.insert(workload.key.clone(), id.clone()),
                None => self.ids.remove(&workload.key),
            };
            let edit = LastEdit { revision: workload.update_revision.clone(), round: round.number, stale_id };
            self.edits.insert(workload.key.clone(), edit);
        }
        self.current.retain(|first, _| open.contains(first));
        let closed = workloads.iter().filter(|workload| !workload.is_open());
        self.closed.extend(closed.map(|workload| (workload.key.clone(), workload.update_revision.clone())));
        self.closed.retain(|key, _| workloads.iter().any(|workload| workload.key == *key));
        self.ids.retain(|key, _| workloads.iter().any(|workload| workload.key == *key));
    }

    /// Returns when the workload's role no longer waits for edits of other roles.
    pub fn settled_at(&self, bounds: &[RollingBounds], workload: &RolledWorkload, settle: Duration) -> Option<Uptime> {
        let round = || self.current.get(&first_of(bounds, &workload.claim.role)).map(|round| round.since);
        Some(self.unchanged.get(&workload.key).copied().or_else(round)? + settle)
    }

    pub fn edit(
        &self,
        bounds: &[RollingBounds],
        workload: &RolledWorkload,
        settle: Duration,
        now: Uptime,
    ) -> Option<Edit> {
        let role = &workload.claim.role;
        let round = self.current.get(&first_of(bounds, role));
        let Some(last) = self.edits.get(&workload.key) else {
            // No other revision was created: no other edit can belong to this one.
            let is_settled = self.unchanged.get(&workload.key).is_some_and(|since| *since + settle <= now);
            let number = round.map_or(0, |round| round.number);
            return is_settled.then(|| Edit { round: number, ..Edit::long_ago() });
        };
        // Also if the rollout of one of them is over by now.
        let all_edited = |round: &Round| {
            let mut roles = bounds.iter().filter(|bounds| bounds.has(role)).flat_map(|bounds| &bounds.roles);
            roles.all(|role| round.edited.contains(role))
        };
        let settled = round.is_some_and(|round| round.since + settle <= now || all_edited(round));
        Some(Edit { round: last.round, settled, stale_id: last.stale_id.clone() })
    }
}

/// Returns the first of the roles that coordinations connect with this one.
fn first_of(bounds: &[RollingBounds], role: &str) -> String {
    connected(bounds, role).first().copied().unwrap_or(role).to_owned()
}

#[cfg(test)]
#[path = "rounds_tests.rs"]
mod tests;
