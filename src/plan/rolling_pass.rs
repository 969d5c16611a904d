//! The part of a look at a group that is about its rollouts.

use super::pass::{Action, Pass, Snapshot};
use super::progression::State;
use super::rollout::Rollouts;
use super::{Decision, GroupView};
use crate::model::{Group, RolledWorkload};

impl Pass<'_> {
    /// What is seen of the open rollouts, and remembered of them.
    pub(super) fn observe(&mut self, group: &Group, view: &GroupView, snapshot: &Snapshot) -> Rollouts {
        let (now, settle) = (self.now, self.options.settle);
        self.memory.note_open(&snapshot.workloads, now);
        let settled_at = |workload: &RolledWorkload| self.memory.opened(&workload.key).map(|at| at + settle);
        let settled = |workload: &RolledWorkload| settled_at(workload).is_some_and(|at| at <= now);
        let see = |stuck| Rollouts::observe(group, view, &snapshot.pods, &snapshot.workloads, settled, stuck);
        let mut seen = see(false);
        let waits: Vec<_> = seen.workloads.values().filter_map(settled_at).collect();
        self.memory.note_rollouts(&seen, now);
        let stuck_at = self.memory.stuck_at(settle);
        seen.roles.values_mut().for_each(|role| role.stuck = stuck_at <= now);
        let open = !seen.roles.is_empty();
        waits.into_iter().chain(open.then_some(stuck_at)).filter(|at| *at > now).for_each(|at| self.look_again(at));
        seen
    }

    /// Lowers partitions, and gives them back where a rollout is over or nothing coordinates it any longer.
    pub(super) fn roll(&mut self, rollouts: &Rollouts, decision: &Decision) {
        rollouts.strays.iter().for_each(|workload| self.thaw(workload));
        for (name, plan) in &decision.rollout {
            let Some(workload) = rollouts.workloads.get(name) else { continue };
            if plan.state == State::Complete {
                self.thaw(workload);
            } else if plan.partition < workload.partition {
                self.set_partition(workload, plan.partition, false);
            }
        }
    }

    /// Gives a workload the partition that its user asked for.
    pub(super) fn thaw(&mut self, workload: &RolledWorkload) {
        self.set_partition(workload, workload.user_partition.unwrap_or(0), true);
    }

    fn set_partition(&mut self, workload: &RolledWorkload, partition: u32, ends: bool) {
        if let Some(at) = self.memory.retry_due(&workload.uid).filter(|at| *at > self.now) {
            return self.look_again(at);
        }
        if self.memory.in_flight.insert(workload.uid.clone()) {
            self.actions.push(Action::SetPartition { workload: Box::new(workload.clone()), partition, ends });
        }
    }
}
