//! `--allow`: opt-ins beyond gates, statuses and partitions.

use clap::ValueEnum;

use crate::model::Allowed;

/// What can be allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Allow {
    /// Scale claimed workloads of groups with `segments`.
    Scale,
    /// Delete the pods of a broken batch, so that it is recreated as a whole, old pods that their controller would not
    /// replace in time, and updated pods of a rollout that goes back.
    Recovery,
    /// Request nodes of an autoscaler for batches that fit nowhere, where `whenNoFit: provision` asks for it.
    Provision,
}

impl Allow {
    pub const fn word(self) -> &'static str {
        match self {
            Self::Scale => "scale",
            Self::Recovery => "recovery",
            Self::Provision => "provision",
        }
    }
}

pub fn allowed(all: &[Allow]) -> Allowed {
    Allowed {
        scale: all.contains(&Allow::Scale),
        recovery: all.contains(&Allow::Recovery),
        provision: all.contains(&Allow::Provision),
    }
}
