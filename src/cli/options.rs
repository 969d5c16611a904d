//! Options that several commands take.

use clap::ValueEnum;

use crate::rules::KaiDialect;

/// How a command prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// For people.
    Text,
    /// One JSON object.
    Json,
}

/// What a command looks at in a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Subject {
    /// A pod.
    #[value(alias = "pods", alias = "po")]
    Pod,
    /// A group, or a RoleCoordination, with all its pods.
    #[value(aliases = ["groups", "rbg", "rolebasedgroup", "rcoord", "rolecoordination"])]
    Group,
}

/// When to use colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On a terminal.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

impl Color {
    /// Whether standard output is coloured.
    pub fn is_used(self) -> bool {
        match self {
            Self::Always => true,
            Self::Never => false,
            Self::Auto => super::terminal::use_color(),
        }
    }
}

/// What the counts of KAI's PodGroups mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum KaiDialectArg {
    /// By the installed definition, else by the fields that are set.
    Auto,
    /// The hierarchical PodGroup design, as KAI's proposal has it.
    #[value(alias = "seed")]
    Proposal,
    /// KAI v0.15 and later.
    Upstream,
}

impl From<KaiDialectArg> for KaiDialect {
    fn from(dialect: KaiDialectArg) -> Self {
        match dialect {
            KaiDialectArg::Auto => Self::Auto,
            KaiDialectArg::Proposal => Self::Proposal,
            KaiDialectArg::Upstream => Self::Upstream,
        }
    }
}
