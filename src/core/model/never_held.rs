//! Pods that their group can never hold: a gate would cost a needless PATCH for each of them.

use std::collections::BTreeSet;

use super::batching::Choice;
use super::{Batching, Group, PodIdentity, Progression};

impl Group {
    /// Reports whether no coordination of the group can ever hold this pod, provided that the group has the pod's role and is
    /// valid; an invalid group keeps its pods. Coordinations that share any role with those of the pod count too, since one
    /// that waits blocks the others.
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

    /// Reports whether all batches may be released at once, with nothing to find out or to create first.
    fn never_waits(&self, batching: &Batching) -> bool {
        let Batching { progression, topology, sizes, .. } = batching;
        let is_known = |role: &str| self.role(role).is_some_and(|role| !role.workload.desired_is_unknown);
        *progression == Choice::Known(Progression::Parallel)
            && topology.is_none()
            && !batching.is_all_or_nothing()
            && batching.recovers().is_none()
            && sizes.keys().all(|role| batching.size(role).is_some() && is_known(role))
    }
}

#[cfg(test)]
#[path = "never_held_tests.rs"]
mod tests;
