//! One pass over one group: from what is observed and what is remembered to what is to be done. The loop only does it.

use std::sync::Arc;
use std::time::Duration;

use crate::model::{Group, GroupKey};
use crate::plan::decide::DecisionContext;
use crate::plan::decide::batches::states;
use crate::plan::decide::decision::Decision;
use crate::plan::decide::pod_groups::{batch_pod_groups, pod_group_of};
use crate::plan::evaluate::{Evaluation, evaluate};
use crate::plan::reconcile::action::{Action, MissingLabels};
use crate::plan::reconcile::memory::{Memory, PodGroupId};
use crate::plan::reconcile::options::{IncompleteBatch, LoopOptions};
use crate::plan::reconcile::probes::ProbeStep;
use crate::plan::reconcile::uptime::Uptime;
use crate::plan::status::{conditions, transition_times};
use crate::plan::view::{GroupView, PodRef, Snapshot};

/// Status that differs in counts only is written this often at most.
const COUNTS_EVERY: Duration = Duration::from_secs(1);

/// One pass over one group.
pub(in crate::plan) struct Pass<'a> {
    pub(in crate::plan) key: &'a GroupKey,
    pub(in crate::plan) memory: &'a mut Memory,
    pub(in crate::plan) options: LoopOptions,
    pub(in crate::plan) now: Uptime,
    /// The time for people, RFC 3339.
    pub(in crate::plan) now_text: &'a str,
    pub(in crate::plan) actions: Vec<Action>,
    /// When the next pass is due although nothing happens.
    pub(in crate::plan) again: Option<Uptime>,
    /// Set when a batch turns out to be released: how long that took.
    pub(in crate::plan) released: Option<Duration>,
}

impl Pass<'_> {
    pub(in crate::plan) fn run(&mut self, snapshot: &Snapshot) {
        match &snapshot.claims {
            _ if snapshot.ignored => self.release_all(snapshot),
            Some(claims) => {
                self.group(&claims.group, snapshot);
                for other in &claims.others {
                    self.write_conflicted(other, &claims.group);
                }
            }
            None => self.missing(snapshot),
        }
    }

    pub(in crate::plan) fn pass_again(&mut self, at: Uptime) {
        self.again = Some(self.again.map_or(at, |again| again.min(at)));
    }

    fn group(&mut self, group: &Arc<Group>, snapshot: &Snapshot) {
        let deadline = self.options.progress_deadline;
        let stalled = self.memory.is_stalled(deadline, conditions::says_stalled(&group.status), self.now);
        let refused: Vec<_> =
            snapshot.pods.iter().map(|pod| &pod.pod).filter(|pod| self.memory.is_refused(pod)).cloned().collect();
        let observation = self.observe(group, snapshot);
        let overdue = match self.options.incomplete {
            IncompleteBatch::Wait => Vec::new(),
            IncompleteBatch::ReleaseAfter(time) => self.memory.waits.overdue(time, self.now),
        };
        let context = DecisionContext {
            faults: &snapshot.faults,
            stalled,
            refused: &refused,
            diagnoses: self.memory.missing_pods.diagnoses(),
            overdue: &overdue,
            surge: self.memory.surges.proven(),
        };
        let seen = evaluate(group, observation, context);
        let Evaluation { view, rollouts, decision, .. } = &seen;
        self.memory.note_progress(view, decision, self.now);
        self.missing_pods(group, decision);
        self.surplus(group, decision);
        self.memory.held = decision.held.iter().map(|held| (held.reason, held.count())).collect();
        self.memory.batches = states(group, view, decision);
        self.released = self.memory.release_timer.decided(view, decision, self.now);
        let mut events = self.memory.reported.events(group, &seen, self.memory.surges.is_asking());
        events.extend(self.memory.reported_rollouts.events(rollouts, &decision.rollout, stalled));
        if !events.is_empty() {
            self.actions.push(Action::Publish { group: group.clone(), events });
        }
        let again =
            self.memory.progress_due(deadline).filter(|_| !decision.held.is_empty() || !rollouts.roles.is_empty());
        if let Some(at) = again.filter(|at| *at > self.now) {
            self.pass_again(at);
        }
        self.roll(rollouts, decision);
        self.pod_groups(group, view);
        self.recreate(decision);
        for release in decision.release.iter().filter(|release| release.at_once) {
            let pod = &release.pod;
            // A pod that comes before its PodGroup would be scheduled without it.
            if pod_group_of(group, &pod.role, pod.ordinal).is_some_and(|name| !self.has_pod_group(group, name)) {
                continue;
            }
            let labels = (!pod.labelled).then(|| MissingLabels {
                group: group.clone(),
                role: pod.role.clone(),
                ordinal: pod.ordinal,
            });
            self.release(&pod.pod, labels);
        }
        self.write_status(group, &seen);
    }

    /// Asks why pods do not appear when that has lasted, and remembers since when batches lack them.
    fn missing_pods(&mut self, group: &Arc<Group>, decision: &Decision) {
        match self.memory.missing_pods.note(&decision.missing_pods, self.now) {
            ProbeStep::Rest => {}
            ProbeStep::Wait(until) => self.pass_again(until),
            ProbeStep::Ask => {
                let missing = decision.missing_pods.clone();
                self.actions.push(Action::DiagnoseMissingPods { group: group.clone(), missing });
            }
        }
        if let IncompleteBatch::ReleaseAfter(time) = self.options.incomplete
            && let Some(at) = self.memory.waits.note(&decision.incomplete, time, self.now)
        {
            self.pass_again(at);
        }
    }

    /// Asks whether a rollout made what is there beyond the desired replicas.
    fn surplus(&mut self, group: &Arc<Group>, decision: &Decision) {
        match self.memory.surges.note(&decision.surplus, self.now) {
            ProbeStep::Rest => {}
            ProbeStep::Wait(until) => self.pass_again(until),
            ProbeStep::Ask => {
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
                Some(at) => self.pass_again(at),
                None if self.memory.in_flight.insert(pod.uid.clone()) => {
                    self.actions.push(Action::Recreate { pod: pod.clone() });
                }
                None => {}
            }
        }
    }

    /// Makes the PodGroups of committed batches, and loosens them once their batch was scheduled.
    fn pod_groups(&mut self, group: &Arc<Group>, view: &GroupView) {
        let committed =
            view.roles.iter().map(|(role, view)| (role.clone(), view.committed.unwrap_or(0).min(view.desired)));
        for gang in batch_pod_groups(group, view, &committed.collect()) {
            let id = PodGroupId { owner: group.carrier.uid.clone(), name: gang.name.clone() };
            let known = self.memory.pod_groups.get(&id);
            if known.is_some_and(|known| *known <= gang.min_member) {
                continue;
            }
            let id = id.in_flight();
            match self.memory.retry_due(&id).filter(|at| *at > self.now) {
                Some(at) => self.pass_again(at),
                None if self.memory.in_flight.insert(id) => {
                    self.actions.push(Action::EnsurePodGroup { group: group.clone(), gang });
                }
                None => {}
            }
        }
    }

    /// True when the PodGroup was made for the object that carries the group now.
    fn has_pod_group(&self, group: &Group, name: String) -> bool {
        self.memory.pod_groups.contains_key(&PodGroupId { owner: group.carrier.uid.clone(), name })
    }

    /// Tells an object that another one controls its group.
    fn write_conflicted(&mut self, other: &Arc<Group>, controls: &Group) {
        let status = transition_times::set(conditions::conflicted(other, controls), &other.status, self.now_text);
        if status != other.status && self.memory.in_flight.insert(other.carrier.uid.as_str().into()) {
            self.actions.push(Action::WriteConflicted { other: other.clone(), status });
        }
    }

    /// Commits released counts at once, and shows counts at most once a second.
    fn write_status(&mut self, group: &Arc<Group>, seen: &Evaluation) {
        let status = transition_times::set(seen.status.clone(), &group.status, self.now_text);
        if status == group.status || group.deleting {
            return;
        }
        let urgent = seen.needs_commit(group) || transition_times::differs_in_substance(&status, &group.status);
        let allowed = self.memory.status_due(if urgent { Duration::ZERO } else { COUNTS_EVERY });
        if self.memory.writing {
            return;
        }
        if let Some(at) = allowed.filter(|at| *at > self.now) {
            return self.pass_again(at);
        }
        self.memory.writing = true;
        self.memory.last_write = Some(self.now);
        self.actions.push(Action::WriteStatus { group: group.clone(), status });
    }

    pub(in crate::plan) fn release(&mut self, pod: &PodRef, labels: Option<MissingLabels>) {
        if let Some(at) = self.memory.retry_due(&pod.uid).filter(|at| *at > self.now) {
            return self.pass_again(at);
        }
        if self.memory.in_flight.insert(pod.uid.clone()) {
            self.actions.push(Action::Release { pod: pod.clone(), labels });
        }
    }
}
