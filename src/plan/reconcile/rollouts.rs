//! The part of a pass that is about the rollouts of the group.

use crate::model::{Group, ProgressState, RolledWorkload};
use crate::plan::decide::decision::Decision;
use crate::plan::evaluate::Observation;
use crate::plan::reconcile::action::Action;
use crate::plan::reconcile::pass::Pass;
use crate::plan::rollout::Rollouts;
use crate::plan::view::Snapshot;

impl Pass<'_> {
    /// What is observed of the group, and remembered of its rollouts.
    pub(in crate::plan) fn observe(&mut self, group: &Group, snapshot: &Snapshot) -> Observation {
        let (now, settle) = (self.now, self.options.settle);
        self.memory.note_open(&snapshot.workloads, now);
        let memory = &*self.memory;
        let settled_at = |workload: &RolledWorkload| memory.opened(&workload.key).map(|at| at + settle);
        let settled = |workload: &RolledWorkload| settled_at(workload).is_some_and(|at| at <= now);
        let mut seen = Observation::of(group, snapshot, |pod| memory.is_under_way(pod), settled);
        let rollouts = &mut seen.rollouts;
        let waits: Vec<_> = rollouts.workloads.values().filter_map(settled_at).collect();
        self.memory.note_rollouts(rollouts, now);
        let stuck_at = self.memory.stuck_at(settle);
        rollouts.roles.values_mut().for_each(|role| role.stuck = stuck_at <= now);
        let open = !rollouts.roles.is_empty();
        waits.into_iter().chain(open.then_some(stuck_at)).filter(|at| *at > now).for_each(|at| self.pass_again(at));
        seen
    }

    /// Lowers partitions, and gives them back where a rollout is over or nothing coordinates it any longer.
    pub(in crate::plan) fn roll(&mut self, rollouts: &Rollouts, decision: &Decision) {
        rollouts.strays.iter().for_each(|workload| self.thaw(workload));
        for (name, plan) in &decision.rollout {
            let Some(workload) = rollouts.workloads.get(name) else { continue };
            if plan.state == ProgressState::Complete {
                self.thaw(workload);
            } else if plan.partition < workload.partition {
                self.set_partition(workload, plan.partition, false);
            }
        }
    }

    /// Ends the hold of a workload: it gets back the partition that its user asked for.
    pub(in crate::plan) fn thaw(&mut self, workload: &RolledWorkload) {
        self.set_partition(workload, workload.asked_partition(), true);
    }

    fn set_partition(&mut self, workload: &RolledWorkload, partition: u32, ends: bool) {
        if let Some(at) = self.memory.retry_due(&workload.uid).filter(|at| *at > self.now) {
            return self.pass_again(at);
        }
        if self.memory.in_flight.insert(workload.uid.clone()) {
            self.actions.push(Action::SetPartition { workload: Box::new(workload.clone()), partition, ends });
        }
    }
}
