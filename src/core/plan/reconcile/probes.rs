//! Probes that limit reads of the API server: of pods that do not appear, of pods beyond the desired replicas, and of batches
//! that lack pods.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::plan::decide::all_or_nothing::AllOrNothing;
use crate::plan::decide::missing_pods::{Diagnosis, MissingPods};
use crate::plan::decide::placed::GivenUp;
use crate::plan::decide::surplus::Surplus;
use crate::plan::reconcile::uptime::Uptime;
use crate::plan::view::PodRef;

/// The longest pause between two reads on the same pods.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// The next step of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::plan) enum ProbeStep {
    /// Nothing to read, or a read is under way.
    Rest,
    /// Come back at this time.
    Wait(Uptime),
    /// Read now.
    Ask,
}

/// The time without a change before the first read on missing pods: workloads need a moment to create them.
const FIRST_QUESTION: Duration = Duration::from_secs(3);

/// The probe of pods that do not appear.
#[derive(Debug, Default)]
pub(in crate::plan) struct MissingPodsProbe {
    /// The last missing replicas: role and number.
    missing: Vec<(String, u32)>,
    /// The time of the next read while replicas are missing.
    due: Uptime,
    pause: Duration,
    asking: bool,
    diagnoses: Vec<Diagnosis>,
}

impl MissingPodsProbe {
    /// Returns the reasons, as far as known.
    pub(in crate::plan) fn diagnoses(&self) -> &[Diagnosis] {
        &self.diagnoses
    }

    /// Reports whether a read is under way.
    pub(in crate::plan) fn is_asking(&self) -> bool {
        self.asking
    }

    /// Notes the missing pods. The diagnosis of a role is removed when the role is complete.
    pub(in crate::plan) fn note(&mut self, missing: &[MissingPods], now: Uptime) -> ProbeStep {
        self.diagnoses.retain(|diagnosis| missing.iter().any(|missing| missing.role == diagnosis.role));
        let missing: Vec<_> = missing.iter().map(|missing| (missing.role.clone(), missing.missing)).collect();
        if missing != self.missing {
            (self.missing, self.due, self.pause) = (missing, now + FIRST_QUESTION, FIRST_QUESTION);
        }
        match () {
            () if self.missing.is_empty() || self.asking => ProbeStep::Rest,
            () if self.due > now => ProbeStep::Wait(self.due),
            () => {
                self.asking = true;
                ProbeStep::Ask
            }
        }
    }

    /// Takes the answer; the next read waits longer.
    pub(in crate::plan) fn answered(&mut self, diagnoses: Vec<Diagnosis>, now: Uptime) {
        self.asking = false;
        self.diagnoses = diagnoses;
        self.pause = (self.pause * 2).clamp(FIRST_QUESTION, LONGEST_PAUSE);
        self.due = now + self.pause;
    }
}

/// The pause before the next read on the same surplus pods; it doubles up to `LONGEST_PAUSE`.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// The probe of replicas beyond the desired ones.
#[derive(Debug, Default)]
pub(in crate::plan) struct SurgeProbe {
    /// Pods that a rollout created, by a live read.
    proven: Vec<PodRef>,
    /// Pods that were read.
    asked: BTreeSet<PodRef>,
    due: Uptime,
    pause: Duration,
    asking: bool,
}

impl SurgeProbe {
    /// Returns the pods that a rollout created.
    pub(in crate::plan) fn proven(&self) -> &[PodRef] {
        &self.proven
    }

    /// Reports whether a read is under way.
    pub(in crate::plan) fn is_asking(&self) -> bool {
        self.asking
    }

    /// Notes the surplus: new pods are read at once.
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

    /// Takes the pods that a rollout created.
    pub(in crate::plan) fn answered(&mut self, proven: Vec<PodRef>, now: Uptime) {
        self.asking = false;
        self.proven = proven;
        self.due = now + self.pause;
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
    }
}

/// Since when units that are released as a whole lack pods.
pub(in crate::plan) type IncompleteSince = Since<AllOrNothing>;

/// Since when each entry is in its state.
#[derive(Debug)]
pub(in crate::plan) struct Since<T>(BTreeMap<T, Uptime>);

impl<T> Default for Since<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<T: Ord + Clone> Since<T> {
    /// Returns the entries that have been in their state for this long.
    pub(in crate::plan) fn overdue(&self, after: Duration, now: Uptime) -> Vec<T> {
        self.0.iter().filter(|(_, since)| **since + after <= now).map(|(what, _)| what.clone()).collect()
    }

    /// Notes the current entries; returns when the next of them will have been in its state for this long.
    pub(in crate::plan) fn note<'a>(
        &mut self,
        now_so: impl IntoIterator<Item = &'a T>,
        after: Duration,
        now: Uptime,
    ) -> Option<Uptime>
    where
        T: 'a,
    {
        let mut before = std::mem::take(&mut self.0);
        let since = |what: &T| (what.clone(), before.remove(what).unwrap_or(now));
        self.0 = now_so.into_iter().map(since).collect();
        self.0.values().map(|since| *since + after).filter(|at| *at > now).min()
    }
}

/// Domains in which pods of batches got no node in time, each with the number of times, and the end of the time for which the
/// batch avoids it.
#[derive(Debug, Default)]
pub(in crate::plan) struct GivenUpUntil(BTreeMap<(usize, u32), (GivenUp, u32, Uptime)>);

/// The maximum number of times that the time is doubled.
const DOUBLINGS: u32 = 6;

impl GivenUpUntil {
    /// Returns the domains to avoid now.
    pub(in crate::plan) fn now(&self, now: Uptime) -> Vec<((usize, u32), GivenUp)> {
        let all = self.0.iter().filter(|(_, (_, _, until))| *until > now);
        all.map(|(id, (given_up, _, _))| (*id, given_up.clone())).collect()
    }

    pub(in crate::plan) fn len(&self) -> usize {
        self.0.len()
    }

    /// Notes the domains found now, with pods that got no node for `after`; returns when the next domain may be tried again.
    pub(in crate::plan) fn note(
        &mut self,
        found: &BTreeMap<(usize, u32), GivenUp>,
        after: Duration,
        now: Uptime,
    ) -> Option<Uptime> {
        self.0.retain(|_, (_, _, until)| *until + after * (1 << DOUBLINGS) > now);
        for (id, given_up) in found {
            let known = self.0.get(id);
            if known.is_none_or(|(before, _, until)| before.domain != given_up.domain || *until <= now) {
                let times = known.map_or(0, |(_, times, _)| *times).saturating_add(1).min(DOUBLINGS);
                self.0.insert(*id, (given_up.clone(), times, now + after * (1 << times)));
            }
        }
        self.0.values().map(|(_, _, until)| *until).filter(|until| *until > now).min()
    }
}

#[cfg(test)]
#[path = "probes_tests.rs"]
mod tests;
