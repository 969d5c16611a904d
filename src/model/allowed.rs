//! What rolegate does only where whoever runs it allows it, beyond gates, statuses and partitions.

use serde::Deserialize;

/// What is allowed beyond what is done by default: by `--allow` of `serve`, together with the rights of `manifests --allow`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Allowed {
    /// Claimed workloads of elastic groups are scaled.
    pub scale: bool,
    /// Pods of a batch that broke are deleted, to be made again together.
    pub recovery: bool,
}

impl Allowed {
    /// Everything, as for a question that needs no cluster.
    pub const ALL: Self = Self { scale: true, recovery: true };
}
