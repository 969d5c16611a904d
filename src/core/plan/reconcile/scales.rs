//! Memory of the scale of a group's workloads, and results of scales.

use std::collections::BTreeMap;

use crate::api::status::Draining;
use crate::plan::elastic::Scale;
use crate::plan::reconcile::uptime::Uptime;

/// The reason of the Event on a scaled workload.
pub const SCALED: &str = "Scaled";
/// The reason of the Event on a workload that another client had scaled and rolegate scaled back.
pub const SCALED_BACK: &str = "ScaledBack";

#[derive(Debug, Default)]
pub(in crate::plan) struct ElasticMemory {
    /// The replicas of each role's workload as rolegate left them, or found them to be right.
    pub(in crate::plan) left: BTreeMap<String, u32>,
    /// The scale-in under way, and since when all its pods are marked.
    pub(in crate::plan) marked: Option<(Draining, Uptime)>,
    /// The error of the last failed scale of a workload, by role.
    pub(in crate::plan) failures: BTreeMap<String, String>,
}

/// The result of a scale of a workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScaleOutcome {
    /// The workload has this many replicas now.
    Done(u32),
    /// Another client was faster: the scale is planned again.
    Again,
    /// The error, as text.
    Failed(String),
}

impl ElasticMemory {
    /// Notes the result of a scale; returns whether it is to be tried again.
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

    /// Reports whether another client has scaled the workload.
    pub(in crate::plan) fn is_foreign(&self, role: &str, scale: &Scale) -> bool {
        scale.foreign || self.left.get(role).is_some_and(|left| *left != scale.workload.desired)
    }
}
