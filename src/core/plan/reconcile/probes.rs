//! Probes that limit reads of the API server: of pods that do not appear, of pods beyond the desired replicas, and of batches
//! that lack pods.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use crate::plan::decide::missing_pods::{Diagnosis, MissingPods};
use crate::plan::decide::placed::GivenUp;
use crate::plan::decide::surplus::Surplus;
use crate::plan::reconcile::lasting::Timed;
use crate::plan::reconcile::uptime::Uptime;
use crate::plan::view::{GroupView, PodRef};

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

/// The pace of reads of one kind: a pause before each further read, which doubles up to [`LONGEST_PAUSE`].
#[derive(Debug, Default)]
struct Pace {
    due: Uptime,
    pause: Duration,
    asking: bool,
}

impl Pace {
    fn step(&mut self, now: Uptime) -> ProbeStep {
        match () {
            () if self.asking => ProbeStep::Rest,
            () if self.due > now => ProbeStep::Wait(self.due),
            () => {
                self.asking = true;
                ProbeStep::Ask
            }
        }
    }

    fn answered(&mut self, now: Uptime) {
        (self.asking, self.due, self.pause) = (false, now + self.pause, (self.pause * 2).min(LONGEST_PAUSE));
    }
}

/// The time without a change before the first read on missing pods: workloads need a moment to create them.
const FIRST_QUESTION: Duration = Duration::from_secs(3);

/// The probe of pods that do not appear.
#[derive(Debug, Default)]
pub(in crate::plan) struct MissingPodsProbe {
    /// The last missing replicas: role and number.
    missing: Vec<(String, u32)>,
    pace: Pace,
    diagnoses: Vec<Diagnosis>,
    /// The uid of the Job that made the last pods of a role.
    jobs: BTreeMap<String, Arc<str>>,
}

impl MissingPodsProbe {
    /// Returns the reasons, as far as known.
    pub(in crate::plan) fn diagnoses(&self) -> &[Diagnosis] {
        &self.diagnoses
    }

    /// Reports whether a read is under way.
    pub(in crate::plan) fn is_asking(&self) -> bool {
        self.pace.asking
    }

    /// Remembers the Jobs of the roles: a Job that fails deletes its pods.
    pub(in crate::plan) fn note_jobs(&mut self, view: &GroupView) {
        self.jobs.retain(|role, _| view.roles.contains_key(role));
        for (name, role) in &view.roles {
            let job = role.replicas.pods().next().and_then(|(_, pod)| pod.job.as_ref());
            if let Some(job) = job.filter(|job| self.jobs.get(name).is_none_or(|known| **known != *job.uid)) {
                self.jobs.insert(name.clone(), Arc::from(&*job.uid));
            }
        }
    }

    /// Returns the missing pods with the Jobs that made pods of their roles before.
    pub(in crate::plan) fn with_jobs(&self, missing: &[MissingPods]) -> Vec<MissingPods> {
        let with_job = |of: &MissingPods| MissingPods { job: self.jobs.get(&of.role).cloned(), ..of.clone() };
        missing.iter().map(with_job).collect()
    }

    /// Notes the missing pods. The diagnosis of a role is removed when the role is complete.
    pub(in crate::plan) fn note(&mut self, missing: &[MissingPods], now: Uptime) -> ProbeStep {
        self.diagnoses.retain(|diagnosis| missing.iter().any(|missing| missing.role == diagnosis.role));
        let missing: Vec<_> = missing.iter().map(|missing| (missing.role.clone(), missing.missing)).collect();
        if missing != self.missing {
            self.missing = missing;
            (self.pace.due, self.pace.pause) = (now + FIRST_QUESTION, FIRST_QUESTION * 2);
        }
        if self.missing.is_empty() { ProbeStep::Rest } else { self.pace.step(now) }
    }

    pub(in crate::plan) fn answered(&mut self, diagnoses: Vec<Diagnosis>, now: Uptime) {
        self.diagnoses = diagnoses;
        self.pace.answered(now);
    }
}

/// The pause before the second read on the same surplus pods.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// The probe of replicas beyond the desired ones.
#[derive(Debug, Default)]
pub(in crate::plan) struct SurgeProbe {
    /// Pods that a rollout created, by a live read.
    proven: Vec<PodRef>,
    /// Pods that were read.
    asked: BTreeSet<PodRef>,
    pace: Pace,
}

impl SurgeProbe {
    /// Returns the pods that a rollout created.
    pub(in crate::plan) fn proven(&self) -> &[PodRef] {
        &self.proven
    }

    /// Reports whether a read is under way.
    pub(in crate::plan) fn is_asking(&self) -> bool {
        self.pace.asking
    }

    /// Notes the surplus: new pods are read at once.
    pub(in crate::plan) fn note(&mut self, surplus: &[Surplus], now: Uptime) -> ProbeStep {
        let pods: BTreeSet<_> = surplus.iter().flat_map(|surplus| &surplus.pods).cloned().collect();
        self.asked.retain(|pod| pods.contains(pod));
        if pods.is_empty() {
            return ProbeStep::Rest;
        }
        if !(self.pace.asking || pods.is_subset(&self.asked)) {
            (self.asked, self.pace.due, self.pace.pause) = (pods, now, FIRST_PAUSE);
        }
        self.pace.step(now)
    }

    pub(in crate::plan) fn answered(&mut self, proven: Vec<PodRef>, now: Uptime) {
        self.proven = proven;
        self.pace.answered(now);
    }
}

/// Domains in which pods of batches got no node in time, each with the number of times, and the end of the time for which the
/// batch avoids it.
pub(in crate::plan) type GivenUpUntil = Timed<(usize, u32), (GivenUp, u32)>;

/// The maximum number of times that the time is doubled.
const DOUBLINGS: u32 = 6;

impl GivenUpUntil {
    /// Returns the domains to avoid now.
    pub(in crate::plan) fn now(&self, now: Uptime) -> Vec<((usize, u32), GivenUp)> {
        let all = self.0.iter().filter(|(_, (until, _))| *until > now);
        all.map(|(id, (_, (given_up, _)))| (*id, given_up.clone())).collect()
    }

    /// Notes the domains found now, with pods that got no node for `after`; returns when the next domain may be tried again.
    pub(in crate::plan) fn give_up(
        &mut self,
        found: &BTreeMap<(usize, u32), GivenUp>,
        after: Duration,
        now: Uptime,
    ) -> Option<Uptime> {
        self.0.retain(|_, (until, _)| *until + after * (1 << DOUBLINGS) > now);
        for (id, given_up) in found {
            let known = self.0.get(id);
            if known.is_none_or(|(until, (before, _))| before.domain != given_up.domain || *until <= now) {
                let times = known.map_or(0, |(_, (_, times))| *times).saturating_add(1).min(DOUBLINGS);
                self.0.insert(*id, (now + after * (1 << times), (given_up.clone(), times)));
            }
        }
        self.next(Duration::ZERO, now)
    }
}

#[cfg(test)]
#[path = "probes_tests.rs"]
mod tests;
