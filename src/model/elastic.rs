//! Elastic groups: a RoleCoordination that says how many segments it wants, and whose workloads are scaled together.

use std::fmt;

use super::workload::most;
use super::{FieldPath, names};

/// How many segments are wanted, and whether that is in effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Elastic {
    /// Segments as written.
    pub segments: i64,
    /// Path of that.
    pub at: FieldPath,
    /// Seconds that marked pods are given before they are taken away, as written.
    pub drain_seconds: Option<i64>,
    /// Path of that.
    pub drain_at: FieldPath,
    /// Whether it is in effect.
    pub standing: Standing,
}

/// Whether wanted segments are in effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// They are: of the coordination at this place in the list.
    InEffect(usize),
    /// rolegate runs without `--allow scale`.
    NotAllowed,
    /// Not exactly one segmentPlacement says what a segment is, or one of its roles has no workload of its own.
    NoSegments,
    /// The workload of this role is not there, or not known yet.
    WorkloadMissing(String),
    /// The workload of this role does not say that it is of the group.
    Unclaimed(String),
    /// The workload of this role is another object's to scale.
    Owned(String),
    /// Kueue queues all pods of this role's workload as one, and would take them down if it were scaled.
    Queued(String),
}

impl Standing {
    /// One word: reason of the condition; `None` while they are in effect.
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
    /// Segments that are wanted; a negative number reads as 0.
    pub fn wanted(&self) -> u32 {
        most(self.segments)
    }

    /// Seconds that marked pods are given.
    pub fn drain_seconds(&self) -> u64 {
        self.drain_seconds.and_then(|seconds| u64::try_from(seconds).ok()).unwrap_or(0)
    }
}
