//! Memory of the scale of a group's workloads.

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

impl ElasticMemory {
    /// Notes the result of a scale. Without an error as text another client was faster.
    pub(in crate::plan) fn ended(&mut self, role: String, replicas: u32, failure: Option<&str>) {
        match failure {
            None => {
                self.failures.remove(&role);
                self.left.insert(role, replicas);
            }
            Some("") => {}
            Some(why) => _ = self.failures.insert(role, why.to_owned()),
        }
    }

    /// Reports whether another client has scaled the workload.
    pub(in crate::plan) fn is_foreign(&self, role: &str, scale: &Scale) -> bool {
        scale.foreign || self.left.get(role).is_some_and(|left| *left != scale.workload.desired)
    }
}
