//! Options of the judgement.

use serde::Deserialize;

use super::RuleSettings;
use crate::api::ObjectKind;
use crate::model::{Allowed, IgnoredResources, Mode};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    pub kai_dialect: KaiDialect,
    /// Requires role names to be unique in a whole Grove set, as upstream does.
    pub strict_roles: bool,
    /// Actions of rolegate beyond gates, statuses and partitions.
    pub allowed: Allowed,
    /// Kinds whose objects `readyWhen` may name.
    pub ready_kinds: &'static [ObjectKind],
    /// Resources that need not be on a node.
    pub ignored_resources: IgnoredResources,
    /// Severities set for single rules.
    pub rules: RuleSettings,
    /// The mode for all judged objects. A caller with several modes calls `Judged::in_mode` instead.
    pub mode: Mode,
}

/// The KAI release that PodGroups are written for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum KaiDialect {
    /// Derived from the installed definition, else from the fields that are set.
    #[default]
    Auto,
    /// The hierarchical PodGroup design of KAI's proposal.
    #[serde(alias = "seed")]
    Proposal,
    /// KAI v0.15 and later.
    Upstream,
    /// KAI v0.10 to v0.14, where `minMember` counts pods on every level.
    Pods,
}
