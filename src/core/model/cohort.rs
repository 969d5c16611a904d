//! The cohort of a pod, from the status of its group.

use std::collections::BTreeMap;

use super::{Group, RollingBounds, connected, names};
use crate::api::Meta;
use crate::api::status::RevisionCohort;

/// Cohort of the first pods of a group.
const FIRST_COHORT: &str = "1";

/// Revisions with a known cohort, by role; the revision that the role is updated to is last.
pub type KnownCohorts = BTreeMap<String, Vec<RevisionCohort>>;

impl Group {
    fn cohorts_of(&self, role: &str) -> &[RevisionCohort] {
        let roles = self.status.cohorts.as_ref().map(|cohorts| &cohorts.roles);
        roles.and_then(|roles| roles.get(role)).map_or(&[], Vec::as_slice)
    }

    /// Returns the cohort of a role's pods of this revision, if known.
    pub fn known_cohort(&self, role: &str, revision: &str) -> Option<&str> {
        let known = self.cohorts_of(role).iter().find(|known| known.revision == revision)?;
        Some(known.cohort.as_str())
    }

    /// Reports whether other cohorts of the role are known, but not this revision's: it may have been committed since.
    pub fn lacks_cohort(&self, role: &str, revision: &str) -> bool {
        !self.cohorts_of(role).is_empty() && self.known_cohort(role, revision).is_none()
    }

    /// Returns the cohort of a role's pods of this revision, or the newest cohort of the role when it is not known. Returns
    /// `None` when no cohort is known of a role of which a pod was ready: the status was lost and is being rebuilt.
    pub fn cohort(&self, role: &str, revision: &str) -> Option<&str> {
        self.known_cohort(role, revision).or_else(|| match &self.status.cohorts {
            Some(known) => Some(newest_cohort(&known.roles, &RollingBounds::all_of(self), role)),
            None => (!self.status.has_served(role)).then_some(FIRST_COHORT),
        })
    }
}

/// Returns the revision of a pod, from the label of its controller.
pub fn revision(pod: &Meta) -> Option<&str> {
    names::REVISION_LABELS.iter().find_map(|key| pod.label(key))
}

/// Returns the newest cohort of a role: that of its newest revision or, when none is known, the newest of the roles that it is
/// rolled with.
pub fn newest_cohort<'a>(known: &'a KnownCohorts, bounds: &[RollingBounds], role: &str) -> &'a str {
    let newest = |role: &str| known.get(role)?.last().map(|newest| newest.cohort.as_str());
    let of_others = || {
        let newest = connected(bounds, role).into_iter().filter_map(newest);
        newest.max_by_key(|cohort| (cohort.parse::<u32>().ok(), *cohort))
    };
    newest(role).or_else(of_others).unwrap_or(FIRST_COHORT)
}
