//! How far each role is released after each release, in few enough columns to be drawn.

use crate::model::Group;
use crate::plan::Run;

/// The releases of a run, from nothing to the end.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Stairs<'a> {
    /// Releases in all.
    pub(super) releases: usize,
    /// Releases that share a column; the last may have fewer.
    pub(super) per_column: usize,
    /// Columns.
    pub(super) columns: usize,
    /// Roles that are released step by step.
    pub(super) roles: Vec<RoleStairs<'a>>,
    /// Roles of which no pod is held.
    pub(super) free: Vec<&'a str>,
}

/// One role.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RoleStairs<'a> {
    pub(super) name: &'a str,
    pub(super) desired: u32,
    /// Replicas that are released after each column.
    pub(super) released: Vec<u32>,
}

impl<'a> Stairs<'a> {
    /// The releases of a run in `most` columns.
    pub(super) fn of(group: &'a Group, run: &Run, most: usize) -> Self {
        let releases = run.steps.len();
        let per_column = releases.div_ceil(most.max(1)).max(1);
        let ends: Vec<_> = run.steps.chunks(per_column).filter_map(|steps| steps.last()).collect();
        let (held, free): (Vec<_>, Vec<_>) =
            group.roles.iter().partition(|role| group.batch_size(&role.name).is_some());
        let stairs = |role: &&'a crate::model::Role| RoleStairs {
            name: &role.name,
            desired: role.desired,
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

    /// Roles that are drawn: those that want replicas.
    pub(super) fn drawn(&self) -> impl Iterator<Item = &RoleStairs<'a>> {
        self.roles.iter().filter(|role| role.desired > 0)
    }

    /// The number of the last release of a column, from 1.
    pub(super) fn last_of(&self, column: usize) -> usize {
        ((column + 1) * self.per_column).min(self.releases)
    }

    /// `each column is 5 releases`, where that has to be said.
    pub(super) fn scale(&self) -> Option<String> {
        (self.per_column > 1)
            .then(|| format!("each column is {} releases of {} in all", self.per_column, self.releases))
    }
}

impl RoleStairs<'_> {
    /// What is released before and after each column.
    pub(super) fn steps(&self) -> impl Iterator<Item = (u32, u32)> {
        let before = std::iter::once(0).chain(self.released.iter().copied());
        before.zip(self.released.iter().copied())
    }

    /// A part of the desired replicas in parts of a whole, rounded, and at least one where there is any.
    pub(super) fn part(&self, count: u32, whole: u32) -> u32 {
        let (count, desired, whole) = (u64::from(count), u64::from(self.desired.max(1)), u64::from(whole));
        let part = (2 * count * whole + desired) / (2 * desired);
        u32::try_from(part.max(u64::from(count > 0))).unwrap_or(u32::MAX)
    }
}
