//! What is remembered of the scale of a group's workloads, and what becomes of it.

use std::collections::BTreeMap;

use crate::api::status::Draining;
use crate::plan::elastic::Scale;
use crate::plan::reconcile::uptime::Uptime;

/// Reason of the Event that a workload was scaled.
pub const SCALED: &str = "Scaled";
/// Reason of the Event that a workload was scaled back that somebody else had scaled.
pub const SCALED_BACK: &str = "ScaledBack";

/// What is remembered of the scale of a group's workloads.
#[derive(Debug, Default)]
pub(in crate::plan) struct ElasticMemory {
    /// Replicas of each role's workload as we left them, or found them to be right.
    pub(in crate::plan) left: BTreeMap<String, u32>,
    /// What is being taken away, and since when all its pods say so.
    pub(in crate::plan) marked: Option<(Draining, Uptime)>,
    /// Why the last scale of a workload failed, by role.
    pub(in crate::plan) failures: BTreeMap<String, String>,
}

/// What became of the scale of a workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScaleOutcome {
    /// It has so many replicas now.
    Done(u32),
    /// Somebody was faster: it is planned again.
    Again,
    /// Why it failed.
    Failed(String),
}

impl ElasticMemory {
    /// Notes what became of a scale; true when it is to be tried again.
    pub(in crate::plan) fn ended(&mut self, role: String, outcome: ScaleOutcome) -> bool {
        match outcome {
            ScaleOutcome::Done(replicas) => {
                self.failures.remove(&role);
                self.left.insert(role, replicas);
                false
            }
            ScaleOutcome::Again => true,
            ScaleOutcome::Failed(why) => {
                self.failures.insert(role, why);
                true
            }
        }
    }

    /// True when somebody else has scaled the workload since we left it.
    pub(in crate::plan) fn is_foreign(&self, role: &str, scale: &Scale) -> bool {
        scale.foreign || self.left.get(role).is_some_and(|left| *left != scale.workload.desired)
    }
}
