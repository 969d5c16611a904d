//! Pods that their group can never hold: a gate would cost each of them a PATCH for nothing.

use std::collections::BTreeSet;

use super::batching::Choice;
use super::{Batching, Group, PodIdentity, Progression};

impl Group {
    /// True when no coordination of the group, as it stands, can ever hold this pod, provided that the group has its role
    /// and breaks no rule: one that does keeps what it has. Beside the coordinations of the pod's role those count that share
    /// any role with them, since one that waits blocks the others.
    pub fn never_holds(&self, pod: &PodIdentity) -> bool {
        let Some(role) = pod.role.as_deref() else { return false };
        let own: Vec<_> = self.batchings_of(role).map(|(_, batching)| batching).collect();
        if own.is_empty() {
            return true;
        }
        let goes_alone = pod.unnumbered.is_none() && pod.replica_size <= 1;
        let is_wanted = self.role(role).zip(pod.ordinal).is_some_and(|(role, ordinal)| ordinal < role.desired);
        if !goes_alone || !is_wanted || !own.iter().all(|batching| self.never_waits(batching)) {
            return false;
        }
        let roles: BTreeSet<_> = own.iter().flat_map(|batching| batching.sizes.keys()).collect();
        let shares = |batching: &Batching| batching.sizes.keys().any(|role| roles.contains(role));
        self.batched().all(|(_, batching)| !shares(batching) || self.never_waits(batching))
    }

    /// True when all batches may go at once, and nothing has to be found out or made before.
    fn never_waits(&self, batching: &Batching) -> bool {
        let Batching { progression, topology, pod_group, sizes, .. } = batching;
        let is_known = |role: &str| self.role(role).is_some_and(|role| !role.workload.desired_is_unknown);
        *progression == Choice::Known(Progression::Parallel)
            && topology.is_none()
            && pod_group.is_none()
            && batching.recovers().is_none()
            && sizes.keys().all(|role| batching.size(role).is_some() && is_known(role))
    }
}

#[cfg(test)]
#[path = "never_held_tests.rs"]
mod tests;
