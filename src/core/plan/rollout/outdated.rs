//! The old pods of segments under way that rolegate deletes itself: their controllers would replace them one after another.

use crate::plan::rollout::{RoleRollout, Rollouts};
use crate::plan::view::{GroupView, PodFacts, PodRef};

impl Rollouts {
    /// Returns the pods to delete. Only replicas that may be replaced at any moment count, and only once the controller has
    /// observed that they may: it makes their successors at the update revision.
    pub(in crate::plan) fn outdated(&self, view: &GroupView) -> Vec<PodRef> {
        let of_role = |(name, role): (&String, &RoleRollout)| {
            let replicas = &view.roles.get(name).filter(|_| role.judged && role.remade)?.replicas;
            let is_old = |pod: &PodFacts| pod.revision.is_some() && pod.revision.as_deref() != role.revision.as_deref();
            let granted = (role.partition..role.desired()).flat_map(|ordinal| replicas.pods_of(ordinal));
            Some(granted.filter(|pod| is_old(pod)).map(|pod| pod.pod.clone()).collect::<Vec<_>>())
        };
        self.roles.iter().filter_map(of_role).flatten().collect()
    }
}

#[cfg(test)]
#[path = "outdated_tests.rs"]
mod tests;
