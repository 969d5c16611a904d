//! The part of a pass on rollouts.

use std::time::Duration;

use crate::api::status::RolloutState;
use crate::model::moment::Moment;
use crate::model::rolling::FROZEN;
use crate::model::{Group, ProgressState, RolledWorkload, RollingBounds};
use crate::plan::decide::decision::Decision;
use crate::plan::decide::progression::Targets;
use crate::plan::evaluate::Observation;
use crate::plan::reconcile::action::{Action, Extent, Step};
use crate::plan::reconcile::pass::Pass;
use crate::plan::rollout::{Late, PauseEnd, RolloutPlan, Rollouts, Stage};
use crate::plan::view::{Deletion, GroupView, Snapshot, count};

impl Pass<'_> {
    /// Observes the group, with what is remembered of its rollouts.
    pub(in crate::plan) fn observe(&mut self, group: &Group, snapshot: &Snapshot) -> Observation {
        let (now, settle) = (self.now, self.options.settle);
        let bounds = RollingBounds::all_of(group);
        self.memory.rounds.note(&bounds, &snapshot.workloads, now);
        let moment = Moment::parse(self.now_text);
        let memory = &*self.memory;
        let settled_at = |workload: &RolledWorkload| memory.rounds.settled_at(&bounds, workload, settle);
        let edit = |workload: &RolledWorkload| memory.rounds.edit(&bounds, workload, settle, now).unwrap_or_default();
        let mut seen = Observation::of(group, snapshot, moment, |pod| memory.given(pod), edit);
        let waits: Vec<_> = seen.rollouts.workloads.values().filter_map(settled_at).collect();
        // The pods may be gone before that is stored.
        seen.view.remember(group, &self.memory.status.succeeded);
        self.memory.status.succeeded.clone_from(&seen.view.succeeded);
        self.pass_again(seen.view.counts_at.zip(moment).map(|(at, moment)| now + moment.until(at)));
        let rollouts = &mut seen.rollouts;
        let is_late = |(late, lasts): &(Late, Duration)| fails_after(&bounds, late).is_some_and(|time| *lasts >= time);
        let late = self.memory.waits.late.lasting(now).into_iter().filter(is_late);
        rollouts.pauses.late = late.map(|(late, _)| late).collect();
        rollouts.note_deleted(&seen.view, &self.memory.pods.deleted);
        self.memory.note_rollouts(rollouts, now);
        self.memory.movement.begin(group, &seen.view, (now, moment), self.unled);
        let stuck_at = self.memory.movement.stuck_at(settle);
        rollouts.roles.values_mut().for_each(|role| role.stuck = stuck_at <= now);
        let open = !rollouts.roles.is_empty();
        waits.into_iter().chain(open.then_some(stuck_at)).for_each(|at| self.pass_again(at));
        seen
    }

    /// Lowers partitions, and restores them if a rollout is over or no longer coordinated.
    pub(in crate::plan) fn roll(&mut self, group: &Group, rollouts: &Rollouts, decision: &Decision) {
        let unclaimed = rollouts.strays.iter().filter(|workload| workload.unclaimed);
        self.memory.waits.unclaimed.note(unclaimed.map(|workload| workload.uid.clone()), self.options.settle, self.now);
        for workload in &rollouts.strays {
            // A removed claim may come back at once.
            match self.memory.waits.unclaimed.since(&workload.uid).map(|since| since + self.options.settle) {
                Some(at) if at > self.now => self.pass_again(at),
                _ => self.thaw(workload),
            }
        }
        for (name, plan) in &decision.rollout {
            let Some(workload) = rollouts.workloads.get(name) else { continue };
            if plan.state == ProgressState::Complete {
                self.thaw(workload);
            } else if rollouts.returns(name) && workload.partition != FROZEN {
                self.set_partition(workload, FROZEN, false);
            } else if plan.partition < workload.partition
                && says_cohort(group, workload)
                && says_steps(group, rollouts, name)
            {
                self.set_partition(workload, plan.partition, false);
            }
        }
    }

    /// Notes the rollouts that went back, and since when something is not ready by which a rollout fails; plans another pass for the
    /// time when it does.
    pub(in crate::plan) fn note_late(&mut self, rollouts: &Rollouts) {
        let back = rollouts.stages.iter().filter(|stage| stage.state.rolled_back.is_some());
        self.memory.decided.rollouts_rolled_back = count(back.count());
        // While the controller of a workload has not observed a change, nothing is known.
        if rollouts.roles.values().all(|role| role.judged) {
            let late = rollouts.stages.iter().flat_map(|stage| stage.late.iter().cloned());
            self.memory.waits.late.note(late, Duration::ZERO, self.now);
        }
        for (late, lasts) in self.memory.waits.late.lasting(self.now) {
            let left = fails_after(&rollouts.bounds, &late).and_then(|time| time.checked_sub(lasts));
            self.pass_again(left.map(|left| self.now + left));
        }
    }

    /// Plans another pass for the end of the next pause, of a rollout or after a canary.
    pub(in crate::plan) fn pass_after_pause(&mut self, rollouts: &Rollouts, targets: &Targets) {
        let of_steps = rollouts.stages.iter().filter_map(|stage| stage.pause);
        let at = |end| match end {
            PauseEnd::At(end) => Some(end),
            PauseEnd::Resume | PauseEnd::After(_) => None,
        };
        let end = of_steps.chain(targets.pauses().map(|(_, end)| end)).filter_map(at).min();
        self.pass_again(end.and_then(|end| Some(self.now + Moment::parse(self.now_text)?.until(end))));
    }

    /// Deletes the old pods of the segments under way that their controllers would replace one after another, and the updated pods of
    /// rollouts that go back.
    pub(in crate::plan) fn renew(&mut self, rollouts: &Rollouts, plan: &RolloutPlan, view: &GroupView) {
        for Deletion { pod, with_dependents } in rollouts.outdated(view, plan) {
            if self.memory.pods.deleted.contains(&pod.pod.uid) {
                continue;
            }
            let goes_back = pod.identity.role.as_deref().is_some_and(|role| rollouts.returns(role));
            let extent = if goes_back { Extent::RolledBack { with_dependents } } else { Extent::Outdated };
            if self.begin(Action::Delete { pod: pod.pod.clone(), extent }) {
                self.memory.pods.deleted.insert(pod.pod.uid.clone());
            }
        }
    }

    /// Ends the hold of a workload: it gets back the partition that its user asked for.
    pub(in crate::plan) fn thaw(&mut self, workload: &RolledWorkload) {
        self.set_partition(workload, workload.asked_partition(), true);
    }

    fn set_partition(&mut self, workload: &RolledWorkload, partition: u32, ends: bool) {
        self.begin(Action::Step(Step::Partition { workload: Box::new(workload.clone()), partition, ends }));
    }
}

/// Returns the time after which a rollout fails by what it waits for.
fn fails_after(bounds: &[RollingBounds], late: &Late) -> Option<Duration> {
    bounds.iter().find(|bounds| bounds.index == late.index)?.fails_after(late.what.role())
}

/// Reports whether the status has the cohort of the pods that the workload will create.
fn says_cohort(group: &Group, workload: &RolledWorkload) -> bool {
    workload.update_revision.as_deref().is_some_and(|to| group.known_cohort(&workload.claim.role, to).is_some())
}

/// Reports whether the status has the ended pauses of the rollouts of a role, and the roles that take part.
fn says_steps(group: &Group, rollouts: &Rollouts, role: &str) -> bool {
    let is_stored = |stage: &Stage| {
        let stored = group.status.coordination(&stage.name).and_then(|state| state.rollout.as_ref());
        let RolloutState { passed, revisions, rolled_back, .. } = &stage.state;
        let is_same = |stored: &RolloutState| {
            stored.passed == *passed && stored.revisions == *revisions && stored.rolled_back == *rolled_back
        };
        stored.is_some_and(is_same)
    };
    rollouts.stages.iter().filter(|stage| stage.state.revisions.contains_key(role)).all(is_stored)
}
