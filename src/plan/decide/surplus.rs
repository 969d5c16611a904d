//! Replicas beyond the desired ones that a rollout makes for a while (`maxSurge`): their controller waits for them, so they
//! are let go at once. A replica beyond the desired ones may also be the first sign of growth that the watches have not
//! shown yet: only a live read of the workload tells the two apart (SPEC §3.4).

use std::collections::BTreeSet;
use std::time::Duration;

use crate::plan::reconcile::uptime::{ProbeStep, Uptime};
use crate::plan::view::{GroupView, HeldPod, PodRef};

/// Held pods of one role beyond its desired replicas, all of which may run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Surplus {
    /// The role.
    pub role: String,
    /// Replicas that are known to be desired.
    pub desired: u32,
    /// The pods, each seen before the live read.
    pub pods: Vec<PodRef>,
}

/// The surplus of each role of which all desired replicas may run: before that, what is one too many waits like the rest.
/// `released` says how many may.
pub(in crate::plan) fn surplus<'a>(
    view: &GroupView,
    held: &[HeldPod],
    released: impl IntoIterator<Item = (&'a String, &'a u32)>,
) -> Vec<Surplus> {
    let of_role = |(role, released): (&String, &u32)| {
        let seen = view.roles.get(role).filter(|seen| !seen.unknown && *released >= seen.desired)?;
        let own = held.iter().filter(|pod| pod.role == *role && pod.ordinal >= seen.desired);
        let pods: Vec<_> = own.map(|pod| pod.pod.clone()).collect();
        (!pods.is_empty()).then(|| Surplus { role: role.clone(), desired: seen.desired, pods })
    };
    released.into_iter().filter_map(of_role).collect()
}

/// True for a pod of the surplus.
pub(in crate::plan) fn is_in(surplus: &[Surplus], pod: &HeldPod) -> bool {
    surplus.iter().any(|surplus| surplus.role == pod.role && surplus.pods.contains(&pod.pod))
}

/// First pause before the same pods are asked about again; doubles up to `LONGEST_PAUSE`.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// Longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// What is remembered of replicas beyond the desired ones.
#[derive(Debug, Default)]
pub(in crate::plan) struct SurgeProbe {
    /// Pods that a rollout made, as a live read has shown.
    proven: Vec<PodRef>,
    /// Pods that were asked about.
    asked: BTreeSet<PodRef>,
    due: Uptime,
    pause: Duration,
    asking: bool,
}

impl SurgeProbe {
    /// Pods that a rollout made.
    pub(in crate::plan) fn proven(&self) -> &[PodRef] {
        &self.proven
    }

    /// True while an answer is on its way.
    pub(in crate::plan) fn is_asking(&self) -> bool {
        self.asking
    }

    /// Notes the surplus: it is asked about new pods at once.
    pub(in crate::plan) fn note(&mut self, surplus: &[Surplus], now: Uptime) -> ProbeStep {
        let pods: BTreeSet<_> = surplus.iter().flat_map(|surplus| &surplus.pods).cloned().collect();
        self.asked.retain(|pod| pods.contains(pod));
        let is_new = !pods.is_subset(&self.asked);
        match () {
            () if pods.is_empty() || self.asking => ProbeStep::Rest,
            () if !is_new && self.due > now => ProbeStep::Wait(self.due),
            () => {
                if is_new {
                    self.pause = FIRST_PAUSE;
                }
                self.asked = pods;
                self.asking = true;
                ProbeStep::Ask
            }
        }
    }

    /// Takes the answer: which of the pods a rollout made.
    pub(in crate::plan) fn answered(&mut self, proven: Vec<PodRef>, now: Uptime) {
        self.asking = false;
        self.proven = proven;
        self.due = now + self.pause;
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::test_support::mk_role;
    use crate::plan::view::Stamp;

    fn mk_pod(name: &str) -> PodRef {
        PodRef { name: name.into(), uid: name.into() }
    }

    fn mk_surplus(pods: &[&str]) -> Vec<Surplus> {
        vec![Surplus { role: "main".to_owned(), desired: 2, pods: pods.iter().map(|name| mk_pod(name)).collect() }]
    }

    #[test]
    fn a_role_that_is_not_complete_has_no_surplus() {
        let held = |name: &str, ordinal| HeldPod {
            pod: mk_pod(name),
            role: "main".to_owned(),
            ordinal,
            labelled: false,
            stamp: Stamp::default(),
        };
        let view = GroupView { roles: [("main".to_owned(), mk_role(2, 2, 2))].into(), held: Vec::new() };
        let held = [held("a", 1), held("b", 2)];
        assert_eq!(surplus(&view, &held, [(&"main".to_owned(), &2)]), mk_surplus(&["b"]));
        assert_eq!(surplus(&view, &held, [(&"main".to_owned(), &1)]), []);
    }

    #[test]
    fn new_pods_are_asked_about_at_once_and_the_same_ones_more_and_more_seldom() {
        let second = Duration::from_secs(1);
        let mut surges = SurgeProbe::default();
        assert_eq!(surges.note(&mk_surplus(&["a"]), Uptime::ZERO), ProbeStep::Ask);
        assert_eq!(surges.note(&mk_surplus(&["a", "b"]), Uptime::ZERO), ProbeStep::Rest);
        surges.answered(Vec::new(), Uptime::ZERO);
        assert_eq!(surges.note(&mk_surplus(&["a", "b"]), Uptime::ZERO), ProbeStep::Ask);
        surges.answered(Vec::new(), Uptime::ZERO);
        assert_eq!(surges.note(&mk_surplus(&["b"]), Uptime::ZERO), ProbeStep::Wait(second));
        assert_eq!(surges.note(&mk_surplus(&["b"]), second), ProbeStep::Ask);
        surges.answered(vec![mk_pod("b")], second);
        assert_eq!(surges.proven(), [mk_pod("b")]);
        assert_eq!(surges.note(&mk_surplus(&["b"]), second), ProbeStep::Wait(second * 3));
        assert_eq!(surges.note(&[], second), ProbeStep::Rest);
    }
}
