//! Options of the loop.

use std::time::Duration;

use crate::model::Allowed;

/// The treatment of pods whose group does not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MissingGroup {
    /// Release them if the group has not appeared for this long.
    ReleaseAfter(Duration),
    /// Hold them until the group appears.
    Hold,
}

/// The treatment of incomplete batches that are released as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IncompleteBatch {
    /// Hold their pods.
    Wait,
    /// Release their pods after this time.
    ReleaseAfter(Duration),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoopOptions {
    /// The treatment of pods whose group never existed.
    pub missing_group: MissingGroup,
    /// The time for which a group must be gone before its held pods are released.
    pub vanished_grace: Duration,
    /// The time without any move after which the group reports `ProgressDeadlineExceeded`.
    pub progress_deadline: Duration,
    /// The time for which an edited role waits for edits of other roles.
    pub settle: Duration,
    /// The treatment of batches that are released as a whole and lack pods.
    pub incomplete: IncompleteBatch,
    /// The time for placed pods to get a node, before others get their room.
    pub bind_timeout: Duration,
    /// The maximum number of concurrent recoveries of all groups; the default is a tenth of all batches, and at least one.
    pub max_recoveries: Option<u32>,
    /// Whether pods of a role that their group does not have are released.
    pub frees_unknown_roles: bool,
    /// Whether pods get no variables of discovery, whatever their groups say.
    pub discovery_is_off: bool,
    /// Whether held pods that were created for another batch are deleted, so that they are recreated.
    pub recreate_mis_stamped: bool,
    /// The rights beyond gates, statuses and partitions.
    pub allowed: Allowed,
}

/// The options of `serve` without flags.
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
            discovery_is_off: false,
            recreate_mis_stamped: false,
            allowed: Allowed::default(),
        }
    }
}
