//! The released share of each role after each release, in a limited number of columns.

use crate::model::Group;
use crate::plan::Run;

/// The releases of a run.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Stairs<'a> {
    /// Number of releases.
    pub(super) releases: usize,
    /// Releases per column; the last column may have fewer.
    pub(super) per_column: usize,
    pub(super) columns: usize,
    /// Roles that are released in steps.
    pub(super) roles: Vec<RoleStairs<'a>>,
    /// Roles without held pods.
    pub(super) free: Vec<&'a str>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct RoleStairs<'a> {
    pub(super) name: &'a str,
    pub(super) desired: u32,
    /// Released replicas before the first column.
    pub(super) begun: u32,
    /// Released replicas after each column.
    pub(super) released: Vec<u32>,
}

impl<'a> Stairs<'a> {
    /// Returns the releases of a run in at most `most` columns.
    pub(super) fn of(group: &'a Group, run: &Run, most: usize) -> Self {
        let releases = run.steps.len();
        let per_column = releases.div_ceil(most.max(1)).max(1);
        let ends: Vec<_> = run.steps.chunks(per_column).filter_map(|steps| steps.last()).collect();
        let (held, free): (Vec<_>, Vec<_>) =
            group.roles.iter().partition(|role| group.batch_size(&role.name).is_some());
        let stairs = |role: &&'a crate::model::Role| RoleStairs {
            name: &role.name,
            desired: role.desired,
            begun: run.begun.get(&role.name).copied().unwrap_or_default(),
            released: ends.iter().map(|after| after.get(&role.name).copied().unwrap_or_default()).collect(),
        };
        Self {
            releases,
            per_column,
            columns: ends.len(),
            roles: held.iter().map(stairs).collect(),
            free: free.iter().map(|role| role.name.as_str()).collect(),
        }
    }

    /// Returns the roles to draw: those with replicas.
    pub(super) fn drawn(&self) -> impl Iterator<Item = &RoleStairs<'a>> {
        self.roles.iter().filter(|role| role.desired > 0)
    }

    /// Returns the number of the last release in a column, counted from 1.
    pub(super) fn last_of(&self, column: usize) -> usize {
        ((column + 1) * self.per_column).min(self.releases)
    }

    /// Describes columns of several releases: `each column is 5 releases of 10 in all`.
    pub(super) fn scale(&self) -> Option<String> {
        (self.per_column > 1)
            .then(|| format!("each column is {} releases of {} in all", self.per_column, self.releases))
    }
}

impl RoleStairs<'_> {
    /// Returns the released replicas before and after each column.
    pub(super) fn steps(&self) -> impl Iterator<Item = (u32, u32)> {
        let before = std::iter::once(self.begun).chain(self.released.iter().copied());
        before.zip(self.released.iter().copied())
    }

    /// Scales a count of the desired replicas to `whole`, rounded, and at least 1 if the count is not 0.
    pub(super) fn part(&self, count: u32, whole: u32) -> u32 {
        let (count, desired, whole) = (u64::from(count), u64::from(self.desired.max(1)), u64::from(whole));
        let part = (2 * count * whole + desired) / (2 * desired);
        u32::try_from(part.max(u64::from(count > 0))).unwrap_or(u32::MAX)
    }
}
