//! Elastic groups: a RoleCoordination with a wanted number of segments, whose workloads are scaled together.

use std::fmt;

use super::workload::most;
use super::{FieldPath, names};

/// The wanted segments, and whether they are in effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Elastic {
    /// As written; a negative number counts as 0.
    pub segments: i64,
    pub at: FieldPath,
    /// Seconds between the mark on pods and their removal, as written.
    pub drain_seconds: Option<i64>,
    pub drain_at: FieldPath,
    pub standing: Standing,
}

/// Whether the wanted segments are in effect, or the reason why not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// In effect, by the coordination at this index.
    InEffect(usize),
    /// rolegate runs without `--allow scale`.
    NotAllowed,
    /// No single segmentPlacement defines a segment, or one of its roles has no workload of its own.
    NoSegments,
    /// The workload of this role does not exist, or is not known yet.
    WorkloadMissing(String),
    /// The workload of this role does not claim to belong to the group.
    Unclaimed(String),
    /// The workload of this role is scaled by its owner.
    Owned(String),
    /// Kueue queues all pods of this role's workload as one, and would take them down if it were scaled.
    Queued(String),
}

impl Standing {
    /// Returns the reason of the condition, one word; `None` while the segments are in effect.
    pub const fn reason(&self) -> Option<&'static str> {
        Some(match self {
            Self::InEffect(_) => return None,
            Self::NotAllowed => "NotAllowed",
            Self::NoSegments => "NoSegments",
            Self::WorkloadMissing(_) => "WorkloadMissing",
            Self::Unclaimed(_) => "WorkloadNotClaimed",
            Self::Owned(_) => "WorkloadOwned",
            Self::Queued(_) => "WorkloadQueued",
        })
    }
}

impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InEffect(_) => f.write_str("in effect"),
            Self::NotAllowed => f.write_str("rolegate runs without `--allow scale`"),
            Self::NoSegments => {
                f.write_str("it takes exactly one segmentPlacement, each of whose roles has a workload of its own")
            }
            Self::WorkloadMissing(role) => write!(f, "the workload of role {role:?} is not there"),
            Self::Unclaimed(role) => write!(
                f,
                "the workload of role {role:?} itself lacks labels {} and {} of this group and role",
                names::GROUP,
                names::ROLE
            ),
            Self::Owned(role) => write!(f, "the workload of role {role:?} is scaled by its owner"),
            Self::Queued(role) => write!(
                f,
                "Kueue queues the StatefulSet of role {role:?} as one, and takes all its pods down when it is scaled"
            ),
        }
    }
}

impl Elastic {
    /// Returns the wanted segments; a negative number counts as 0.
    pub fn wanted(&self) -> u32 {
        most(self.segments)
    }

    /// Returns the seconds between the mark on pods and their removal; a negative number counts as 0.
    pub fn drain_seconds(&self) -> u64 {
        self.drain_seconds.and_then(|seconds| u64::try_from(seconds).ok()).unwrap_or(0)
    }
}
