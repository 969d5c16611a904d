//! How the loop behaves.

use std::time::Duration;

use crate::model::Allowed;

/// What happens to pods that name a group which is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MissingGroup {
    /// They are released when the group has not appeared for this long.
    ReleaseAfter(Duration),
    /// They are held until it appears.
    Hold,
}

/// What happens to the pods of a batch that others of it never join.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IncompleteBatch {
    /// They wait.
    Wait,
    /// They go when they have waited this long.
    ReleaseAfter(Duration),
}

/// How the loop behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoopOptions {
    /// Pods whose group never was there.
    pub missing_group: MissingGroup,
    /// How long a group must be gone before its held pods are released.
    pub vanished_grace: Duration,
    /// How long nothing may move before the group says `ProgressDeadlineExceeded`.
    pub progress_deadline: Duration,
    /// How long a role that was edited waits for the edits of the others.
    pub settle: Duration,
    /// Batches that are released as a whole and lack pods.
    pub incomplete: IncompleteBatch,
    /// How long pods that were given room may take to get a node, before the room is given to others.
    pub bind_timeout: Duration,
    /// So many recoveries of all groups are under way at once; a tenth of all batches, and at least one, when not given.
    pub max_recoveries: Option<u32>,
    /// Pods go whose role their group does not have.
    pub frees_unknown_roles: bool,
    /// Delete held pods that were made for another batch than theirs, so that they are made again.
    pub recreate_mis_stamped: bool,
    /// What is done beyond gates, statuses and partitions.
    pub allowed: Allowed,
}

/// As `serve` behaves without flags.
impl Default for LoopOptions {
    fn default() -> Self {
        Self {
            missing_group: MissingGroup::ReleaseAfter(Duration::from_secs(60)),
            vanished_grace: Duration::from_secs(30),
            progress_deadline: Duration::from_secs(600),
            settle: Duration::from_secs(10),
            incomplete: IncompleteBatch::Wait,
            bind_timeout: Duration::from_secs(60),
            max_recoveries: None,
            frees_unknown_roles: false,
            recreate_mis_stamped: false,
            allowed: Allowed::default(),
        }
    }
}
