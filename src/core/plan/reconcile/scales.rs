//! Memory of the scale of a group's workloads.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::api::status::Draining;
use crate::plan::elastic::Scale;
use crate::plan::reconcile::pauses::late_pause;
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
    /// How often each role's workload was scaled back lately.
    forced: BTreeMap<String, Forced>,
}

/// Scales of one workload by another client, one after another.
#[derive(Clone, Copy, Debug)]
struct Forced {
    times: u32,
    last: Uptime,
}

/// So many times a workload is scaled back at once; each makes and deletes pods, so a client that insists is given way for a while.
const AT_ONCE: u32 = 2;
/// After so long without a scale by another client, the next one is the first again.
const FORGOTTEN: Duration = Duration::from_secs(600);

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

    /// Returns when a workload may be scaled back, and how often that was done lately: at once at first, then after a pause that
    /// grows.
    pub(in crate::plan) fn may_scale_back(&self, role: &str, now: Uptime) -> Option<(Uptime, u32)> {
        let Forced { times, last } = *self.forced.get(role).filter(|forced| forced.last + FORGOTTEN > now)?;
        let at = last + late_pause(times.checked_sub(AT_ONCE)? + 1);
        (at > now).then_some((at, times))
    }

    /// Notes that a workload is scaled back.
    pub(in crate::plan) fn scaled_back(&mut self, role: &str, now: Uptime) {
        let known = self.forced.get(role).filter(|forced| forced.last + FORGOTTEN > now);
        let times = known.map_or(0, |forced| forced.times) + 1;
        self.forced.insert(role.to_owned(), Forced { times, last: now });
    }

    /// Reports whether another client has scaled the workload. What it has when its group is first seen is what its author wrote.
    pub(in crate::plan) fn is_foreign(&self, role: &str, scale: &Scale) -> bool {
        self.left.get(role).is_some_and(|left| *left != scale.workload.desired)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{RolloutClaim, ScaledWorkload, WorkloadKey, WorkloadKind};

    #[test]
    fn nobody_else_scaled_what_its_author_wrote() {
        let key =
            WorkloadKey { namespace: "ns".to_owned(), kind: WorkloadKind::StatefulSet, name: "prefill".to_owned() };
        let claim = RolloutClaim { group: crate::model::GroupKey::new("ns", "pd"), role: "prefill".to_owned() };
        let scale = |has| Scale { workload: ScaledWorkload::of_nothing(key.clone(), claim.clone(), has), to: 4 };
        let mut memory = ElasticMemory::default();
        assert!(!memory.is_foreign("prefill", &scale(12)), "as it was applied");
        memory.ended("prefill".to_owned(), 4, None);
        assert!(memory.is_foreign("prefill", &scale(12)), "as it was left");
    }

    #[test]
    fn who_insists_on_other_replicas_is_given_way_for_longer_each_time() {
        let mut memory = ElasticMemory::default();
        let at = Duration::from_secs;
        let mut scaled = |seconds: u64| {
            memory.scaled_back("prefill", at(seconds));
            memory.may_scale_back("prefill", at(seconds))
        };
        assert_eq!(
            [scaled(0), scaled(3), scaled(13), scaled(33)],
            [None, Some((at(13), 2)), Some((at(33), 3)), Some((at(73), 4))]
        );
        assert_eq!(memory.may_scale_back("prefill", at(73)), None);
        assert_eq!(memory.may_scale_back("decode", at(34)), None);
        memory.scaled_back("prefill", at(2000));
        assert_eq!(memory.may_scale_back("prefill", at(2000)), None, "the next one is the first again");
    }
}
