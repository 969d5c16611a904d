//! The part of a pass on the scale of workloads.

use std::sync::Arc;
use std::time::Duration;

use crate::model::Group;
use crate::plan::decide::decision::Decision;
use crate::plan::elastic::{Scale, scale_pods, stray_marks};
use crate::plan::marks::{Mark, misplaced};
use crate::plan::reconcile::action::{Action, Step};
use crate::plan::reconcile::events::EventNote;
use crate::plan::reconcile::pass::Pass;
use crate::plan::reconcile::scales::{SCALED, SCALED_BACK};
use crate::plan::reconcile::tries::Try;
use crate::plan::view::{GroupView, Snapshot};

impl Pass<'_> {
    /// Reports whether the drain time of the committed scale-in is over; it begins when all its pods are marked.
    pub(in crate::plan) fn drained(&mut self, group: &Group, view: &GroupView) -> bool {
        let memory = &mut self.memory.elastic;
        let Some((draining, (elastic, batching))) = group.status.draining.zip(group.scaled()) else {
            memory.marked = None;
            return false;
        };
        let roles = batching.sizes.keys().filter_map(|role| Some((batching.size(role)?, view.roles.get(role)?)));
        let mut leaving = roles.flat_map(|(size, role)| role.replicas.pods_from(draining.from.saturating_mul(size)));
        // Segments that are wanted again leave the scale-in, which does not restart the time of the others.
        let known = memory.marked.filter(|(marked, _)| marked.to == draining.to && marked.from <= draining.from);
        let since = match known {
            Some((_, since)) => since,
            None if leaving.any(|pod| !pod.held && !pod.draining) => {
                memory.marked = None;
                return false;
            }
            None => self.now,
        };
        memory.marked = Some((draining, since));
        let at = since.saturating_add(Duration::from_secs(elastic.drain_seconds()));
        self.pass_again(at);
        at <= self.now
    }

    pub(in crate::plan) fn scale(
        &mut self,
        group: &Arc<Group>,
        view: &GroupView,
        decision: &Decision,
        snapshot: &Snapshot,
    ) {
        let Some(plan) = &decision.elastic else {
            stray_marks(group, view).into_iter().for_each(|mark| _ = self.mark(mark));
            if group.elastic.is_none() {
                scale_pods::stray(view).for_each(|mark| _ = self.mark(mark));
            }
            return;
        };
        plan.marks.iter().cloned().for_each(|mark| _ = self.mark(mark));
        // While pods are released or marked, the first running pod may change in a moment.
        if !self.memory.tries.writes() {
            plan.scale_pods.iter().cloned().for_each(|mark| _ = self.mark(mark));
        }
        for workload in &snapshot.scaled {
            let role = &workload.claim.role;
            if !plan.scales.contains_key(role) {
                self.memory.elastic.left.insert(role.clone(), workload.desired);
                self.memory.elastic.failures.remove(role);
            }
        }
        for (role, scale) in &plan.scales {
            let foreign = self.memory.elastic.is_foreign(role, scale);
            if foreign && let Some((at, times)) = self.memory.elastic.may_scale_back(role, self.now) {
                let why = format!(
                    "somebody else scales it again and again, and it was scaled back {times} times; a pause follows"
                );
                let before = self.memory.elastic.failures.insert(role.clone(), why.clone());
                // The condition is written by the next pass.
                self.pass_again(if before == Some(why) { at } else { self.now });
                continue;
            }
            let then = EventNote::scaled(role, scale, foreign);
            let begins = self.begin(Action::Step(Step::Replicas {
                group: group.clone(),
                role: role.clone(),
                workload: Box::new(scale.workload.clone()),
                replicas: scale.to,
                then: vec![then],
            }));
            if begins && foreign {
                self.memory.elastic.scaled_back(role, self.now);
            }
        }
    }

    pub(in crate::plan) fn mark(&mut self, mark: Mark) -> bool {
        let uid = mark.pod.uid.clone();
        let begins = self.begin(Action::Mark(mark));
        if !begins && self.memory.tries.is_under_way(&Try::Object(uid.clone())) {
            self.memory.pods.unmarked.insert(uid);
        }
        begins
    }

    /// Labels pods with their place, once: labels that another client removes are not written again.
    pub(in crate::plan) fn label_places(&mut self, group: &Group, view: &GroupView) {
        let marks = if group.deleting { Vec::new() } else { misplaced(group, view) };
        for mark in marks {
            if self.memory.pods.placed.get(&mark.pod.uid) != Some(&mark.labels) && self.mark(mark.clone()) {
                self.memory.renumber(&mark);
                self.memory.pods.placed.insert(mark.pod.uid, mark.labels);
            }
        }
    }
}

impl EventNote {
    /// Returns an Event such as `StatefulSet "prefill" is scaled from 4 to 6`.
    fn scaled(role: &str, scale: &Scale, foreign: bool) -> Self {
        let (key, from, to) = (&scale.workload.key, scale.workload.desired, scale.to);
        let name = format!("{} {:?}", key.kind.as_str(), key.name);
        let (reason, note) = if foreign {
            (SCALED_BACK, format!("{name} was scaled to {from} by somebody else: its group scales it back to {to}"))
        } else {
            (SCALED, format!("{name} is scaled from {from} to {to}"))
        };
        Self::new(reason, format!("{role} {to}"), note, foreign).of_roles([role])
    }
}
