//! The old pods of segments under way that rolegate deletes itself: their controllers would replace them one after another.

use crate::model::RolledWorkload;
use crate::plan::rollout::{RoleRollout, Rollouts};
use crate::plan::view::{GroupView, PodFacts, PodRef};

impl Rollouts {
    /// Returns the pods to delete. Only replicas that may be replaced at any moment count, and only once the controller has
    /// observed that they may: it makes their successors at the update revision.
    pub(in crate::plan) fn outdated(&self, view: &GroupView) -> Vec<PodRef> {
        let of_role = |(name, role): (&String, &RoleRollout)| {
            let workload = self.workloads.get(name).filter(|workload| role.judged && self.is_too_slow(workload))?;
            let replicas = &view.roles.get(name)?.replicas;
            let is_old = |pod: &PodFacts| pod.revision.is_some() && pod.revision.as_deref() != role.revision.as_deref();
            let granted = (workload.partition..role.desired()).flat_map(|ordinal| replicas.pods_of(ordinal));
            Some(granted.filter(|pod| is_old(pod)).map(|pod| pod.pod.clone()).collect::<Vec<_>>())
        };
        self.roles.iter().filter_map(of_role).flatten().collect()
    }

    /// Reports whether the controller of a workload replaces fewer pods at once than a segment has, and others may be deleted.
    fn is_too_slow(&self, workload: &RolledWorkload) -> bool {
        let sizes = self.bounds.iter().filter_map(|bounds| bounds.segments.as_ref()?.get(&workload.claim.role));
        workload.at_once.is_some_and(|most| sizes.into_iter().any(|size| most < *size))
    }
}

#[cfg(test)]
#[path = "outdated_tests.rs"]
mod tests;
