//! Which cohort a pod is of, by what the status of its group keeps.

use std::collections::BTreeMap;

use super::{Group, RollingBounds, connected, names};
use crate::api::Meta;
use crate::api::status::RevisionCohort;

/// The cohort of the pods that a group begins with.
const FIRST_COHORT: &str = "1";

/// Revisions of each role whose cohort is known, the one that it goes to last.
pub type KnownCohorts = BTreeMap<String, Vec<RevisionCohort>>;

impl Group {
    fn cohorts_of(&self, role: &str) -> &[RevisionCohort] {
        let roles = self.status.cohorts.as_ref().map(|cohorts| &cohorts.roles);
        roles.and_then(|roles| roles.get(role)).map_or(&[], Vec::as_slice)
    }

    /// The cohort of the pods of a role that are made at this revision, where it is known.
    pub fn known_cohort(&self, role: &str, revision: &str) -> Option<&str> {
        let known = self.cohorts_of(role).iter().find(|known| known.revision == revision)?;
        Some(known.cohort.as_str())
    }

    /// True when cohorts of the role are known, and not that of this revision: it may have been committed since.
    pub fn lacks_cohort(&self, role: &str, revision: &str) -> bool {
        !self.cohorts_of(role).is_empty() && self.known_cohort(role, revision).is_none()
    }

    /// The cohort of the pods of a role that are made at this revision; where it is not known, the one that the role is at.
    /// `None` while nothing is known of a group that has served already: its status was lost, and is being rebuilt.
    pub fn cohort(&self, role: &str, revision: &str) -> Option<&str> {
        self.known_cohort(role, revision).or_else(|| match &self.status.cohorts {
            Some(known) => Some(newest_cohort(&known.roles, &RollingBounds::all_of(self), role)),
            None => self.status.first_ready_time.is_none().then_some(FIRST_COHORT),
        })
    }
}

/// The revision that a pod was made at, as its controller labels it.
pub fn revision(pod: &Meta) -> Option<&str> {
    names::REVISION_LABELS.iter().find_map(|key| pod.label(key))
}

/// The cohort that a role is at: that of its newest revision, or, where none of it is known, the newest of the roles that it
/// is rolled with.
pub fn newest_cohort<'a>(known: &'a KnownCohorts, bounds: &[RollingBounds], role: &str) -> &'a str {
    let newest = |role: &str| known.get(role)?.last().map(|newest| newest.cohort.as_str());
    let of_others = || {
        let newest = connected(bounds, role).into_iter().filter_map(newest);
        newest.max_by_key(|cohort| (cohort.parse::<u32>().ok(), *cohort))
    };
    newest(role).or_else(of_others).unwrap_or(FIRST_COHORT)
}
