//! What the loop remembers of one group between passes. All of it may be lost: the cluster holds the truth.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use super::absence::Watchfulness;
use super::news::Said;
use super::rollout::Rollouts;
use super::rollout_news::SaidOfRollouts;
use super::stopwatch::Stopwatch;
use super::surge::Surges;
use super::wholes::Waits;
use super::{BatchState, Decision, GroupView, Moment, PodRef, RoleView};
use crate::api::ObjectKind;
use crate::model::{Group, HoldReason, RolledWorkload, WorkloadKey};

/// Pause after the first failure of a write; doubles up to `LONGEST_RETRY`.
const FIRST_RETRY: Duration = Duration::from_millis(200);
/// Longest pause between attempts of one write.
const LONGEST_RETRY: Duration = Duration::from_secs(30);

/// What the loop remembers of one group.
#[expect(clippy::struct_excessive_bools, reason = "independent facts, not states of one machine")]
#[derive(Debug)]
pub(super) struct Memory {
    pub(super) last_pass: Option<Moment>,
    pub(super) next_pass: Option<Moment>,
    /// Uids of objects with a write on its way.
    pub(super) in_flight: HashSet<Arc<str>>,
    retries: HashMap<Arc<str>, (u32, Moment)>,
    /// PodGroups that were made, with the fewest members that they were given.
    pub(super) gangs: HashMap<String, u32>,
    pub(super) writing: bool,
    pub(super) last_write: Option<Moment>,
    pub(super) write_failures: u32,
    /// Kind of the object that carried the group when it was last there.
    pub(super) carrier: Option<ObjectKind>,
    /// Unique id of that object: what failed for one does not hold its successor up.
    carrier_uid: String,
    pub(super) missing_since: Option<Moment>,
    pub(super) verifying: bool,
    pub(super) verified_gone: bool,
    progress: Vec<u32>,
    moved: Moment,
    /// Something has moved since the status said that nothing does.
    stall_is_over: bool,
    pub(super) held: Vec<(HoldReason, u32)>,
    /// Batches by state, as they were last decided.
    pub(super) batches: BTreeMap<BatchState, u32>,
    pub(super) said: Said,
    pub(super) stopwatch: Stopwatch,
    pub(super) said_of_rollouts: SaidOfRollouts,
    /// When each open rollout was seen to begin, and to which revision.
    opened: BTreeMap<WorkloadKey, (Option<String>, Moment)>,
    rolling: Vec<(u32, u32, u32)>,
    /// When an open rollout last moved.
    rolled: Moment,
    /// Updated and desired replicas of the roles with an open rollout.
    pub(super) updated: BTreeMap<String, (u32, u32)>,
    /// Pods that do not appear, and why.
    pub(super) watchfulness: Watchfulness,
    /// Since when batches and replicas lack pods.
    pub(super) waits: Waits,
    /// Replicas beyond the desired ones.
    pub(super) surges: Surges,
}

impl Memory {
    pub(super) fn new(now: Moment) -> Self {
        Self {
            last_pass: None,
            next_pass: None,
            in_flight: HashSet::new(),
            retries: HashMap::new(),
            gangs: HashMap::new(),
            writing: false,
            last_write: None,
            write_failures: 0,
            carrier: None,
            carrier_uid: String::new(),
            missing_since: None,
            verifying: false,
            verified_gone: false,
            progress: Vec::new(),
            moved: now,
            stall_is_over: false,
            held: Vec::new(),
            batches: BTreeMap::new(),
            said: Said::default(),
            stopwatch: Stopwatch::default(),
            said_of_rollouts: SaidOfRollouts::default(),
            opened: BTreeMap::new(),
            rolling: Vec::new(),
            rolled: now,
            updated: BTreeMap::new(),
            watchfulness: Watchfulness::default(),
            waits: Waits::default(),
            surges: Surges::default(),
        }
    }

    /// Forgets what was last decided: who does not lead has nothing to say of it.
    pub(super) fn decided_nothing(&mut self) {
        self.held.clear();
        self.batches.clear();
        self.stopwatch = Stopwatch::default();
    }

    /// Nothing is on its way.
    pub(super) fn is_idle(&self) -> bool {
        let asking = self.verifying || self.watchfulness.is_asking() || self.surges.is_asking();
        self.in_flight.is_empty() && !self.writing && !asking
    }

    pub(super) fn note_presence(&mut self, group: Option<&Group>, now: Moment) {
        match group {
            Some(group) => {
                self.carrier = Some(group.carrier.kind);
                if self.carrier_uid != group.carrier.uid {
                    self.carrier_uid.clone_from(&group.carrier.uid);
                    self.write_failures = 0;
                }
                self.missing_since = None;
                self.verified_gone = false;
            }
            None => _ = self.missing_since.get_or_insert(now),
        }
    }

    /// Remembers when anything last moved.
    pub(super) fn note_progress(&mut self, view: &GroupView, decision: &Decision, now: Moment) {
        let counts = view.roles.values().flat_map(|role| [role.desired, role.current(), RoleView::ready_pods(role)]);
        let progress: Vec<_> = counts.chain(decision.released.values().copied()).collect();
        if progress != self.progress {
            self.stall_is_over = !self.progress.is_empty();
            self.progress = progress;
            self.moved = now;
        }
    }

    /// Remembers which rollouts are open since when. Another edit begins another one.
    pub(super) fn note_open(&mut self, workloads: &[RolledWorkload], now: Moment) {
        let mut before = std::mem::take(&mut self.opened);
        for workload in workloads.iter().filter(|workload| workload.is_open()) {
            let revision = &workload.update_revision;
            let since = before.remove(&workload.key).filter(|(known, _)| known == revision).map_or(now, |(_, at)| at);
            self.opened.insert(workload.key.clone(), (revision.clone(), since));
        }
    }

    /// When the rollout of a workload was seen to begin.
    pub(super) fn opened(&self, workload: &WorkloadKey) -> Option<Moment> {
        self.opened.get(workload).map(|(_, at)| *at)
    }

    /// Remembers when an open rollout last moved.
    pub(super) fn note_rollouts(&mut self, rollouts: &Rollouts, now: Moment) {
        let roles = rollouts.roles.values();
        let rolling: Vec<_> = roles.map(|role| (role.partition, role.updated(), role.done())).collect();
        if rolling != self.rolling {
            // The first look is no move.
            self.stall_is_over |= !self.rolling.is_empty();
            self.rolling = rolling;
            (self.rolled, self.moved) = (now, now);
        }
        let updated = rollouts.roles.iter().map(|(name, role)| (name.clone(), (role.updated(), role.desired())));
        self.updated = updated.collect();
    }

    /// When the open rollouts count as stuck if nothing moves.
    pub(super) fn stuck_at(&self, patience: Duration) -> Moment {
        self.rolled + patience
    }

    /// True when nothing has moved for so long, or since somebody said so (`told`): who starts now has not seen for how long.
    pub(super) fn is_stalled(&mut self, deadline: Duration, told: bool, now: Moment) -> bool {
        self.stall_is_over &= told;
        now.saturating_sub(self.moved) >= deadline || (told && !self.stall_is_over)
    }

    /// When the group counts as stalled if nothing moves.
    pub(super) fn progress_due(&self, deadline: Duration) -> Option<Moment> {
        self.moved.checked_add(deadline)
    }

    /// When the status may be written next, `None` for now.
    pub(super) fn status_due(&self, every: Duration) -> Option<Moment> {
        let pause = if self.write_failures == 0 { every } else { every.max(pause(self.write_failures)) };
        self.last_write.map(|last| last + pause)
    }

    /// When the release of a pod may be tried again, `None` for now.
    pub(super) fn retry_due(&self, uid: &str) -> Option<Moment> {
        self.retries.get(uid).map(|(_, at)| *at)
    }

    /// True for a pod whose release was refused the last time.
    pub(super) fn is_refused(&self, pod: &PodRef) -> bool {
        self.retries.contains_key(&pod.uid)
    }

    /// True for a pod whose release was tried: it may be released already, even if it does not look so.
    pub(super) fn is_under_way(&self, pod: &PodRef) -> bool {
        self.in_flight.contains(&pod.uid) || self.is_refused(pod)
    }

    pub(super) fn succeeded(&mut self, uid: &str) {
        self.retries.remove(uid);
    }

    /// Notes a refused write; returns when to try again.
    pub(super) fn failed(&mut self, uid: &Arc<str>, now: Moment) -> Moment {
        let (failures, at) = self.retries.entry(uid.clone()).or_insert((0, now));
        *failures += 1;
        *at = now + pause(*failures);
        *at
    }
}

fn pause(failures: u32) -> Duration {
    FIRST_RETRY.saturating_mul(1 << failures.saturating_sub(1).min(10)).min(LONGEST_RETRY)
}
