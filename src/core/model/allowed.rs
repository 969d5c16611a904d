//! Actions beyond gates, statuses and partitions, which the operator must allow.

use serde::Deserialize;

/// Actions allowed by `serve --allow`, together with the rights of `manifests --allow`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Allowed {
    /// Scaling of the claimed workloads of elastic groups.
    pub scale: bool,
    /// Deletion of the pods of a broken batch, so that they are created again together, of old pods that their controller would
    /// not replace in time, and of updated pods of a rollout that goes back.
    pub recovery: bool,
    /// Requests for nodes for batches that fit nowhere.
    pub provision: bool,
}

impl Allowed {
    /// Every action, for a question that needs no cluster.
    pub const ALL: Self = Self { scale: true, recovery: true, provision: true };
}
