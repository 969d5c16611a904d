//! Cohorts: pods of several roles that were rolled together, so that a router pairs old with old and new with new.
//!
//! The cohort of a revision is decided once, and committed before the first pod of that revision is created. Roles that are
//! edited together get a new cohort; a role that is edited alone keeps its own, since it works with the running pods.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Edit;
use crate::api::status::{Cohorts, RevisionCohort};
use crate::model::{Group, KnownCohorts, RolledWorkload, RollingBounds, connected, names, newest_cohort};
use crate::plan::view::{GroupPods, PodFacts};

/// The exclusive upper bound of cohort numbers.
const MOST: u32 = 1_000_000_000;

/// A role, its workload, and what is remembered of the last edit.
pub(super) struct RolledRole<'a> {
    pub(super) workload: &'a RolledWorkload,
    pub(super) edit: Edit,
}

/// Returns the cohorts to commit; `None` for a group without rolling updates.
pub(super) fn cohorts(
    group: &Group,
    bounds: &[RollingBounds],
    pods: &GroupPods,
    rolled: &[RolledRole<'_>],
) -> Option<Cohorts> {
    if bounds.is_empty() {
        return None;
    }
    let before = group.status.cohorts.clone().unwrap_or_default();
    let mut book = Book { bounds, pods, rolled, known: KnownCohorts::new() };
    for role in bounds.iter().flat_map(|bounds| &bounds.roles) {
        let known = before.roles.get(role).filter(|known| !known.is_empty()).cloned();
        book.known.insert(role.clone(), known.unwrap_or_else(|| book.as_labelled(role)));
    }
    rolled.iter().for_each(|role| book.begin(role));
    let last = book.decide(before.last);
    rolled.iter().for_each(|role| book.tidy(role));
    book.known.retain(|_, known| !known.is_empty());
    Some(Cohorts { last, roles: book.known })
}

impl RolledRole<'_> {
    fn name(&self) -> &str {
        &self.workload.claim.role
    }

    /// Returns the target revision, once the controller has observed it.
    fn revision(&self) -> Option<&str> {
        self.workload.update_revision.as_deref().filter(|_| self.workload.observed)
    }

    /// Returns the rollout id of the last edit as a label value; `None` for an id of an earlier edit.
    fn id(&self) -> Option<String> {
        let id = self.workload.rollout_id.as_ref().filter(|id| !id.is_empty())?;
        (self.edit.stale_id.as_ref() != Some(id)).then(|| names::label_value(id))
    }
}

/// The known cohorts, and the state that they are derived from.
struct Book<'a> {
    bounds: &'a [RollingBounds],
    pods: &'a GroupPods,
    rolled: &'a [RolledRole<'a>],
    known: KnownCohorts,
}

impl<'a> Book<'a> {
    /// Returns the cohorts on the labels of a role's pods, for a role that the status does not list.
    fn as_labelled(&self, role: &str) -> Vec<RevisionCohort> {
        let mut pods: Vec<_> = self.pods.of_role(role).collect();
        pods.sort_by(|a, b| a.created.cmp(&b.created));
        let mut known: Vec<RevisionCohort> = Vec::new();
        for pod in pods {
            if let (Some(revision), Some(cohort)) = (pod.revision.as_deref(), pod.cohort.as_deref())
                && known.iter().all(|known| known.revision != revision)
            {
                known.push(RevisionCohort { revision: revision.to_owned(), cohort: cohort.to_owned() });
            }
        }
        known
    }

    /// Adds the current revision of a role of which no cohort is known.
    fn begin(&mut self, role: &RolledRole<'_>) {
        if self.known.get(role.name()).is_none_or(|known| !known.is_empty()) {
            return;
        }
        let goes_to = role.workload.update_revision.as_deref();
        let made_at =
            |pod: &Arc<PodFacts>| pod.revision.as_deref().filter(|made| Some(*made) != goes_to).map(str::to_owned);
        let of_pods = || self.pods.of_role(role.name()).find_map(made_at);
        let runs = if role.workload.is_open() {
            role.workload.current_revision.clone().or_else(of_pods)
        } else {
            role.revision().map(str::to_owned)
        };
        if let Some(revision) = runs {
            let cohort = newest_cohort(&self.known, self.bounds, role.name()).to_owned();
            self.known.insert(role.name().to_owned(), vec![RevisionCohort { revision, cohort }]);
        }
    }

    /// Decides the cohorts of the revisions that have none. Returns the new last number.
    fn decide(&mut self, last: u32) -> u32 {
        // Cohorts in pod labels may be forged and must not exhaust the numbers.
        let number = |cohort: &String| cohort.parse().ok().filter(|number| *number < MOST);
        let numbers = |cohorts: &mut dyn Iterator<Item = &String>| cohorts.filter_map(number).max();
        let last = last.max(numbers(&mut self.known.values().flatten().map(|known| &known.cohort)).unwrap_or(0));
        let undecided: Vec<_> = self.rolled.iter().filter(|role| self.is_undecided(role)).collect();
        let decided: Vec<_> =
            undecided.iter().filter_map(|role| Some((*role, self.cohort_of(role, &undecided, last)?))).collect();
        let last = last.max(numbers(&mut decided.iter().map(|(_, cohort)| cohort)).unwrap_or(0));
        for (role, cohort) in decided {
            let revision = role.revision().unwrap_or_default().to_owned();
            self.known.entry(role.name().to_owned()).or_default().push(RevisionCohort { revision, cohort });
        }
        last
    }

    fn is_undecided(&self, role: &RolledRole<'_>) -> bool {
        role.revision().is_some_and(|to| self.cohort_at(role, to).is_none() && self.known.contains_key(role.name()))
    }

    fn cohort_at(&self, role: &RolledRole<'_>, revision: &str) -> Option<&str> {
        let known = self.known.get(role.name())?.iter().find(|known| known.revision == revision)?;
        Some(known.cohort.as_str())
    }

    /// Returns the cohort of the target revision of a role; `None` while other roles may still be edited.
    fn cohort_of(&self, role: &RolledRole<'_>, undecided: &[&'a RolledRole<'a>], last: u32) -> Option<String> {
        if let Some(id) = role.id() {
            return Some(id);
        }
        let own = || Some(newest_cohort(&self.known, self.bounds, role.name()).to_owned());
        if !role.workload.is_open() {
            return own();
        }
        let connected = connected(self.bounds, role.name());
        let is_unsettled = |other: &RolledRole<'_>| {
            let unseen = other.workload.is_open() && !other.workload.observed;
            unseen || (!other.edit.settled && self.is_undecided(other))
        };
        if self.rolled.iter().any(|other| connected.contains(other.name()) && is_unsettled(other)) {
            return None;
        }
        if undecided.iter().any(|other| other.name() != role.name() && connected.contains(other.name())) {
            return Some(last.saturating_add(1).to_string());
        }
        self.joined(role, &connected).or_else(own)
    }

    /// Returns the cohort of the round that a role joins late: the cohort of another role whose rollout is still open.
    fn joined(&self, role: &RolledRole<'_>, connected: &BTreeSet<&str>) -> Option<String> {
        let is_beside = |other: &&RolledRole<'_>| {
            let is_other = other.name() != role.name() && connected.contains(other.name());
            is_other && other.workload.is_open() && other.edit.round == role.edit.round
        };
        let cohort = |other: &RolledRole<'_>| Some(self.cohort_at(other, other.revision()?)?.to_owned());
        self.rolled.iter().filter(is_beside).find_map(cohort)
    }

    /// Removes revisions that no pod of the role has or will have, and moves the target revision to the end.
    fn tidy(&mut self, role: &RolledRole<'_>) {
        let Some(to) = role.revision().filter(|to| self.cohort_at(role, to).is_some()) else { return };
        let Some(known) = self.known.get_mut(role.name()) else { return };
        known.sort_by_key(|known| known.revision == to);
        known.retain(|known| {
            let revision = Some(known.revision.as_str());
            let has = |pod: &Arc<PodFacts>| pod.revision.as_deref() == revision;
            revision == Some(to)
                || role.workload.current_revision.as_deref() == revision
                || self.pods.of_role(role.name()).any(has)
        });
    }
}

#[cfg(test)]
#[path = "cohorts_tests.rs"]
mod tests;
