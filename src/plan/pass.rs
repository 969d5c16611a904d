//! One look at one group: from what is seen and what is remembered to what is to be done. The loop only does it.

use std::sync::Arc;
use std::time::Duration;

use super::absence::Absence;
use super::batches::states;
use super::conditions;
use super::gangs::{BatchGang, batch_gangs, gang_of};
use super::memory::Memory;
use super::moment::{Moment, Vigil};
use super::news::News;
use super::surge::Surplus;
use super::{Circumstances, Decision, GroupView, PodFacts, PodRef, decide, stamp};
use crate::api::ObjectKind;
use crate::api::status::GroupStatus;
use crate::model::{Group, RolledWorkload};
use crate::rules::{World, judge_group};

/// What happens to pods that name a group which is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MissingGroup {
    /// They are released when the group has not appeared for this long.
    ReleaseAfter(Duration),
    /// They are held until it appears.
    Hold,
}

/// What happens to the pods of a batch that others of it never join.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IncompleteBatch {
    /// They wait.
    Wait,
    /// They go when they have waited this long.
    ReleaseAfter(Duration),
}

/// How the loop behaves.
#[derive(Clone, Copy, Debug)]
pub struct LoopOptions {
    /// Pods whose group never was there.
    pub missing_group: MissingGroup,
    /// How long a group must be gone before its held pods are released.
    pub vanished_grace: Duration,
    /// How long nothing may move before the group says `ProgressDeadlineExceeded`.
    pub progress_deadline: Duration,
    /// How long a role that was edited waits for the edits of the others.
    pub settle: Duration,
    /// Batches that are released as a whole and lack pods.
    pub incomplete: IncompleteBatch,
    /// Delete held pods that were made for another batch than theirs, so that they are made again.
    pub recreate_mis_stamped: bool,
}

/// Who carries a group.
#[derive(Clone, Debug)]
pub struct Claims {
    /// The group, as its controlling object carries it.
    pub group: Arc<Group>,
    /// The same group as other objects claim it: they control nothing.
    pub others: Vec<Arc<Group>>,
}

/// What planning needs of one group.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// Who carries it, if anybody does.
    pub claims: Option<Claims>,
    /// Its pods.
    pub pods: Vec<PodFacts>,
    /// Workloads that are claimed for its rollouts.
    pub workloads: Vec<RolledWorkload>,
    /// The namespace has opted out.
    pub ignored: bool,
    /// How long ago kinds of carriers came back that had not been served: while one is away nobody can bring a group
    /// back. Only told of a group that is not there.
    pub returned: Vec<(ObjectKind, Duration)>,
}

impl Snapshot {
    /// Nothing is left of the group.
    pub(super) fn is_empty(&self) -> bool {
        self.claims.is_none() && self.pods.is_empty() && self.workloads.is_empty()
    }
}

/// What is to be done. Each ends with a word to the agenda, except `Publish`.
#[derive(Clone, Debug)]
pub enum Action {
    /// Take our gate off a pod.
    Release {
        /// The pod.
        pod: PodRef,
        /// The replica whose batch labels it lacks.
        labels: Option<Unlabelled>,
    },
    /// Write the status of the group if nobody changed the object since it was read.
    WriteStatus {
        /// The group as it was read.
        group: Arc<Group>,
        /// Its status to be.
        status: GroupStatus,
    },
    /// Tell an object that another one controls its group.
    WriteConflicted {
        /// The group as that object carries it.
        other: Arc<Group>,
        /// Its status to be.
        status: GroupStatus,
    },
    /// Make the PodGroup of a batch, or loosen it.
    EnsureGang {
        /// The group.
        group: Arc<Group>,
        /// The PodGroup.
        gang: BatchGang,
    },
    /// Set the partition of a workload with an open rollout, if nobody changed it since it was read.
    SetPartition {
        /// The workload as it was read.
        workload: Box<RolledWorkload>,
        /// Its partition to be.
        partition: u32,
        /// The rollout is over: the partition is its user's again.
        ends: bool,
    },
    /// Delete a pod if it is still held, so that it is made again.
    Recreate {
        /// The pod.
        pod: PodRef,
    },
    /// Find out why pods do not appear.
    FindReasons {
        /// The group.
        group: Arc<Group>,
        /// Replicas that lack pods.
        absent: Vec<Absence>,
    },
    /// Find out which pods beyond the desired replicas a rollout made.
    FindSurge {
        /// The group.
        group: Arc<Group>,
        /// The pods.
        surplus: Vec<Surplus>,
    },
    /// Ask the API server whether the group is gone.
    VerifyGone {
        /// Kind of the object that carried it, where that is known.
        carrier: Option<ObjectKind>,
    },
    /// Say what is new.
    Publish {
        /// The group.
        group: Arc<Group>,
        /// What is new.
        news: Vec<News>,
    },
}

/// A replica whose pods came before their group, or have no ordinal of their own.
#[derive(Clone, Debug)]
pub struct Unlabelled {
    /// The group.
    pub group: Arc<Group>,
    /// The role.
    pub role: String,
    /// Ordinal of the replica.
    pub ordinal: u32,
}

/// What a PodGroup is called among the objects with a write on its way: its uid is not known.
pub(super) fn gang_id(name: &str) -> String {
    format!("podgroup/{name}")
}

/// Status that differs in counts only is written this often at most.
const COUNTS_EVERY: Duration = Duration::from_secs(1);

/// One look at one group.
pub(super) struct Pass<'a> {
    pub(super) memory: &'a mut Memory,
    pub(super) options: LoopOptions,
    pub(super) now: Moment,
    /// The time for people, RFC 3339.
    pub(super) now_text: &'a str,
    pub(super) actions: Vec<Action>,
    /// When to look again although nothing happens.
    pub(super) again: Option<Moment>,
    /// Set when a batch turns out to be released: how long that took.
    pub(super) released: Option<Duration>,
}

impl Pass<'_> {
    pub(super) fn run(&mut self, snapshot: &Snapshot) {
        match &snapshot.claims {
            _ if snapshot.ignored => self.release_all(snapshot),
            Some(claims) => {
                self.group(&claims.group, snapshot);
                for other in &claims.others {
                    self.say_conflicted(other, &claims.group);
                }
            }
            None => self.missing(snapshot),
        }
    }

    pub(super) fn look_again(&mut self, at: Moment) {
        self.again = Some(self.again.map_or(at, |again| again.min(at)));
    }

    fn group(&mut self, group: &Arc<Group>, snapshot: &Snapshot) {
        let judged = judge_group(group, None, &World::default());
        let view = GroupView::build_while(group, &snapshot.pods, |pod| self.memory.is_under_way(pod));
        let deadline = self.options.progress_deadline;
        let stalled = self.memory.is_stalled(deadline, conditions::says_stalled(&group.status), self.now);
        let refused: Vec<_> =
            snapshot.pods.iter().map(|pod| &pod.pod).filter(|pod| self.memory.is_refused(pod)).cloned().collect();
        let rollouts = self.observe(group, &view, snapshot);
        let overdue = match self.options.incomplete {
            IncompleteBatch::Wait => Vec::new(),
            IncompleteBatch::ReleaseAfter(time) => self.memory.waits.overdue(time, self.now),
        };
        let circumstances = Circumstances {
            faults: &judged.errors,
            stalled,
            refused: &refused,
            found: self.memory.watchfulness.found(),
            overdue: &overdue,
            surge: self.memory.surges.proven(),
            rollouts: Some(&rollouts),
        };
        let decision = decide(group, &view, circumstances);
        self.memory.note_progress(&view, &decision, self.now);
        self.absent(group, &decision);
        self.surplus(group, &decision);
        self.memory.held = decision.held.iter().map(|held| (held.reason, held.pods)).collect();
        self.memory.batches = states(group, &view, &decision);
        self.released = self.memory.stopwatch.looked(&view, &decision, self.now);
        let mut news = self.memory.said.news(group, &decision, self.memory.surges.is_asking());
        news.extend(self.memory.said_of_rollouts.news(&rollouts, &decision.rollout, stalled));
        if !news.is_empty() {
            self.actions.push(Action::Publish { group: group.clone(), news });
        }
        let again =
            self.memory.progress_due(deadline).filter(|_| !decision.held.is_empty() || !rollouts.roles.is_empty());
        if let Some(at) = again.filter(|at| *at > self.now) {
            self.look_again(at);
        }
        self.roll(&rollouts, &decision);
        self.gangs(group, &view);
        self.recreate(&decision);
        for release in decision.release.iter().filter(|release| release.at_once) {
            let pod = &release.pod;
            // A pod that comes before its PodGroup would be scheduled without it.
            if gang_of(group, &pod.role, pod.ordinal).is_some_and(|gang| !self.memory.gangs.contains_key(&gang)) {
                continue;
            }
            let labels = (!pod.labelled).then(|| Unlabelled {
                group: group.clone(),
                role: pod.role.clone(),
                ordinal: pod.ordinal,
            });
            self.release(&pod.pod, labels);
        }
        self.write_status(group, &decision);
    }

    /// Asks why pods do not appear when that has lasted, and remembers since when batches lack them.
    fn absent(&mut self, group: &Arc<Group>, decision: &Decision) {
        match self.memory.watchfulness.note(&decision.absent, self.now) {
            Vigil::Rest => {}
            Vigil::Wait(until) => self.look_again(until),
            Vigil::Ask => {
                self.actions.push(Action::FindReasons { group: group.clone(), absent: decision.absent.clone() });
            }
        }
        if let IncompleteBatch::ReleaseAfter(time) = self.options.incomplete
            && let Some(at) = self.memory.waits.note(&decision.incomplete, time, self.now)
        {
            self.look_again(at);
        }
    }

    /// Asks whether a rollout made what is there beyond the desired replicas.
    fn surplus(&mut self, group: &Arc<Group>, decision: &Decision) {
        match self.memory.surges.note(&decision.surplus, self.now) {
            Vigil::Rest => {}
            Vigil::Wait(until) => self.look_again(until),
            Vigil::Ask => {
                let surplus = decision.surplus.clone();
                self.actions.push(Action::FindSurge { group: group.clone(), surplus });
            }
        }
    }

    /// Has pods made again that were made for another batch.
    fn recreate(&mut self, decision: &Decision) {
        if !self.options.recreate_mis_stamped {
            return;
        }
        for pod in &decision.mis_stamped {
            match self.memory.retry_due(&pod.uid).filter(|at| *at > self.now) {
                Some(at) => self.look_again(at),
                None if self.memory.in_flight.insert(pod.uid.clone()) => {
                    self.actions.push(Action::Recreate { pod: pod.clone() });
                }
                None => {}
            }
        }
    }

    /// Makes the PodGroups of committed batches, and loosens them once their batch was scheduled.
    fn gangs(&mut self, group: &Arc<Group>, view: &GroupView) {
        let committed =
            view.roles.iter().map(|(role, view)| (role.clone(), view.committed.unwrap_or(0).min(view.desired)));
        for gang in batch_gangs(group, view, &committed.collect()) {
            let known = self.memory.gangs.get(&gang.name);
            if known.is_some_and(|known| *known <= gang.min_member) {
                continue;
            }
            let id: Arc<str> = gang_id(&gang.name).into();
            match self.memory.retry_due(&id).filter(|at| *at > self.now) {
                Some(at) => self.look_again(at),
                None if self.memory.in_flight.insert(id) => {
                    self.actions.push(Action::EnsureGang { group: group.clone(), gang });
                }
                None => {}
            }
        }
    }

    /// Tells an object that another one controls its group.
    fn say_conflicted(&mut self, other: &Arc<Group>, controls: &Group) {
        let status = stamp::stamp(conditions::conflicted(other, controls), &other.status, self.now_text);
        if status != other.status && self.memory.in_flight.insert(other.carrier.uid.as_str().into()) {
            self.actions.push(Action::WriteConflicted { other: other.clone(), status });
        }
    }

    /// Commits released counts at once, and shows counts at most once a second.
    fn write_status(&mut self, group: &Arc<Group>, decision: &Decision) {
        let status = stamp::stamp(decision.status.clone(), &group.status, self.now_text);
        if status == group.status || group.deleting {
            return;
        }
        let urgent = decision.needs_commit(&group.status) || stamp::differs_in_substance(&status, &group.status);
        let allowed = self.memory.status_due(if urgent { Duration::ZERO } else { COUNTS_EVERY });
        if self.memory.writing {
            return;
        }
        if let Some(at) = allowed.filter(|at| *at > self.now) {
            return self.look_again(at);
        }
        self.memory.writing = true;
        self.memory.last_write = Some(self.now);
        self.actions.push(Action::WriteStatus { group: group.clone(), status });
    }

    pub(super) fn release(&mut self, pod: &PodRef, labels: Option<Unlabelled>) {
        if let Some(at) = self.memory.retry_due(&pod.uid).filter(|at| *at > self.now) {
            return self.look_again(at);
        }
        if self.memory.in_flight.insert(pod.uid.clone()) {
            self.actions.push(Action::Release { pod: pod.clone(), labels });
        }
    }
}
