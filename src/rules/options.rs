//! How to judge, where designs differ.

use serde::Deserialize;

use super::RuleSettings;
use crate::model::{Allowed, Mode};

/// How to judge, where designs differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Which KAI release PodGroups are written for.
    pub kai_dialect: KaiDialect,
    /// Role names of a Grove set must be unique in the whole set, as upstream has it.
    pub strict_roles: bool,
    /// What rolegate does beyond gates, statuses and partitions.
    pub allowed: Allowed,
    /// How much single rules weigh.
    pub rules: RuleSettings,
    /// The mode in which all that is judged is served. Whoever serves several at once asks `Judged::in_mode` instead.
    pub mode: Mode,
}

/// Which KAI release PodGroups are written for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum KaiDialect {
    /// By the installed definition, else by the fields that are set.
    #[default]
    Auto,
    /// The hierarchical PodGroup design, as KAI's proposal has it.
    #[serde(alias = "seed")]
    Proposal,
    /// KAI v0.15 and later.
    Upstream,
    /// KAI v0.10 to v0.14, where `minMember` counts pods on every level.
    Pods,
}
