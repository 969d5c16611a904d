//! Replicas that may run and do not exist (SPEC §4.3): how many, and why, as far as that was found out. What makes pods
//! says why it does not make them; nobody looks before a wait has lasted.

use std::sync::Arc;
use std::time::Duration;

use crate::model::{Batching, Coordination, Group, HoldReason};
use crate::plan::decide::outcome::Held;
use crate::plan::reconcile::uptime::{ProbeStep, Uptime};
use crate::plan::view::{GroupView, Replica, count};

/// Replicas of one role that may run, and lack pods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingPods {
    /// The role.
    pub role: String,
    /// Replicas that lack pods.
    pub missing: u32,
    /// Replicas that may run.
    pub of: u32,
    /// The lowest ordinal among the missing.
    pub first: u32,
    /// When the youngest pod of the role was made, RFC 3339: what went wrong before that is over.
    pub newest: Option<Arc<str>>,
    /// A role that this one depends on, and that is not ready: an RBG operator does not make its workload before.
    pub depends_on: Option<String>,
}

/// Why pods are not made. The order is that of the table in `docs/operating.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WhyMissing {
    /// A quota of the namespace is used up.
    QuotaExceeded,
    /// The API server refuses the pods for another reason.
    CreationRefused,
    /// The workload is paused.
    WorkloadPaused,
    /// The workload has fewer replicas than the group declares.
    FewerReplicas,
    /// The workload makes its pods one after another.
    MadeOneByOne,
    /// The role's workload is made when another role is ready.
    DependencyNotReady,
    /// There is no workload.
    WorkloadMissing,
}

impl WhyMissing {
    /// One word, stable: reason of the Event.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::QuotaExceeded => "QuotaExceeded",
            Self::CreationRefused => "CreationRefused",
            Self::WorkloadPaused => "WorkloadPaused",
            Self::FewerReplicas => "FewerReplicas",
            Self::MadeOneByOne => "MadeOneByOne",
            Self::DependencyNotReady => "DependencyNotReady",
            Self::WorkloadMissing => "WorkloadMissing",
        }
    }
}

/// Why the pods of a role are not made, as it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The role.
    pub role: String,
    /// Why.
    pub why: WhyMissing,
    /// For people: what was seen where.
    pub text: String,
}

impl MissingPods {
    /// `role "decode" lacks 3 of 5 replicas`, and why.
    pub fn text(&self, found: &Found) -> String {
        let Self { role, missing, of, .. } = self;
        format!("role {role:?} lacks {missing} of {of} replicas: {}", found.text)
    }
}

/// The roles with replicas that may run and lack pods. `released` says how many of each batched role may.
pub(in crate::plan) fn missing_pods<'a>(
    group: &Group,
    view: &GroupView,
    released: impl IntoIterator<Item = (&'a String, &'a u32)>,
) -> Vec<MissingPods> {
    let of_role = |(role, released): (&String, &u32)| {
        let seen = view.roles.get(role).filter(|seen| !seen.unknown)?;
        let exists = |replica: &Replica| !replica.is_incomplete();
        let existing = seen.replicas.range(..*released).filter(|(_, replica)| exists(replica)).count();
        let first = seen.first_failing(*released, exists)?;
        let dependencies = group.role(role).map(|role| role.dependencies.as_slice()).unwrap_or_default();
        let is_ready =
            |name: &&String| view.roles.get(*name).is_none_or(|role| role.all_in(0, role.desired, Replica::is_ready));
        Some(MissingPods {
            role: role.clone(),
            missing: released.saturating_sub(count(existing)),
            of: *released,
            first,
            newest: seen.newest.clone(),
            depends_on: dependencies.iter().find(|name| !is_ready(name)).cloned(),
        })
    };
    released.into_iter().filter_map(of_role).collect()
}

/// The absence that something was found about.
pub(in crate::plan) fn of<'a>(absent: &'a [MissingPods], found: &Found) -> Option<&'a MissingPods> {
    absent.iter().find(|absence| absence.role == found.role)
}

/// Adds to the reasons why pods are held what keeps those from appearing that they wait for.
pub(in crate::plan) fn tell(group: &Group, absent: &[MissingPods], found: &[Found], held: &mut [Held]) {
    let waits =
        [HoldReason::PreviousSegmentNotReady, HoldReason::PreviousStepNotScheduled, HoldReason::IncompleteBatch];
    for held in held.iter_mut().filter(|held| waits.contains(&held.reason)) {
        let own =
            |(coordination, _): &(&Coordination, &Batching)| held.coordination == Some(coordination.display_name());
        let Some((_, batching)) = group.batched().find(own) else { continue };
        let Some(found) = found.iter().find(|found| batching.sizes.contains_key(&found.role)) else { continue };
        let Some(absence) = of(absent, found) else { continue };
        held.message = format!("{}; {}", held.message, absence.text(found));
        if found.why == WhyMissing::QuotaExceeded {
            held.reason = HoldReason::QuotaDeadlock;
        }
    }
}

/// How long nothing may change before somebody asks why: workloads need a moment to make their pods.
const PATIENCE: Duration = Duration::from_secs(3);
/// Longest time between two looks while nothing changes.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// What is remembered of pods that do not appear.
#[derive(Debug, Default)]
pub(in crate::plan) struct MissingPodsProbe {
    /// What was missing at the last look: role, and how many.
    missing: Vec<(String, u32)>,
    /// When to ask, while something is missing.
    due: Uptime,
    pause: Duration,
    asking: bool,
    found: Vec<Found>,
}

impl MissingPodsProbe {
    /// What was found so far.
    pub(in crate::plan) fn found(&self) -> &[Found] {
        &self.found
    }

    /// True while an answer is on its way.
    pub(in crate::plan) fn is_asking(&self) -> bool {
        self.asking
    }

    /// Notes what is missing now. Whatever was found of a role is forgotten when the role is complete.
    pub(in crate::plan) fn note(&mut self, absent: &[MissingPods], now: Uptime) -> ProbeStep {
        self.found.retain(|found| absent.iter().any(|absence| absence.role == found.role));
        let missing: Vec<_> = absent.iter().map(|absence| (absence.role.clone(), absence.missing)).collect();
        if missing != self.missing {
            (self.missing, self.due, self.pause) = (missing, now + PATIENCE, PATIENCE);
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

    /// Takes the answer; the next question waits longer.
    pub(in crate::plan) fn answered(&mut self, found: Vec<Found>, now: Uptime) {
        self.asking = false;
        self.found = found;
        self.pause = (self.pause * 2).clamp(PATIENCE, LONGEST_PAUSE);
        self.due = now + self.pause;
    }
}

#[cfg(test)]
#[path = "missing_pods_tests.rs"]
mod tests;
