//! The pods of rollouts that rolegate deletes itself: old ones that their controllers would replace one after another, or not at all,
//! and updated ones of rollouts that go back.

use std::sync::Arc;

use crate::plan::rollout::{RolePlan, RoleRollout, RolloutPlan, Rollouts};
use crate::plan::view::{Deletion, GroupView, PodFacts, Replicas};

impl Rollouts {
    /// Returns the pods to delete: their controller makes them again at the revision that the role goes to.
    pub(in crate::plan) fn outdated(&self, view: &GroupView, plan: &RolloutPlan) -> Vec<Deletion> {
        let of_role = |(name, role): (&String, &RoleRollout)| {
            let replicas = &view.roles.get(name).filter(|_| role.judged)?.replicas;
            if role.returns {
                return Some(self.updated(name, replicas, plan.get(name)?));
            }
            // Only replicas that may be replaced at any moment count, and only once the controller has observed that they may.
            let is_old = |pod: &PodFacts| pod.revision.is_some() && pod.revision.as_deref() != role.revision.as_deref();
            // A controller that makes pods in order makes this one again only when those before it are ready.
            let comes_back = |ordinal: &u32| !role.ordered || (0..*ordinal).all(|lower| role.at(lower).ready);
            let granted = (role.partition..role.desired()).filter(|ordinal| role.remade && comes_back(ordinal));
            let pods = granted.flat_map(|ordinal| replicas.pods_of(ordinal)).filter(|pod| is_old(pod));
            Some(pods.map(|pod| Deletion { pod: pod.clone(), with_dependents: false }).collect::<Vec<_>>())
        };
        let broken = self.behind.values().flat_map(|behind| &behind.broken);
        let broken = broken.map(|pod| Deletion { pod: pod.clone(), with_dependents: false });
        self.roles.iter().filter_map(of_role).flatten().chain(broken).collect()
    }

    /// Returns the pods to delete of a role that goes back. The first pod of several takes the others with it.
    fn updated(&self, name: &str, replicas: &Replicas, plan: &RolePlan) -> Vec<Deletion> {
        let leaves = |pod: &&Arc<PodFacts>| {
            self.workloads.get(name).is_some_and(|workload| workload.leaves(pod.revision.as_deref()))
        };
        let of_replica = |ordinal: &u32| {
            let pods = replicas.pods_of(*ordinal).iter().filter(leaves);
            let led = pods.clone().any(|pod| pod.leads());
            let pods = pods.filter(move |pod| !led || pod.leads());
            pods.map(|pod| Deletion { pod: pod.clone(), with_dependents: pod.leads() })
        };
        plan.made_again.iter().flat_map(of_replica).collect()
    }
}

#[cfg(test)]
#[path = "outdated_tests.rs"]
mod tests;
