//! The pass over a KAI PodGroup that places its pods: it plans the pods that may go, commits the plan on the PodGroup, and
//! carries it out; or explains why they wait.

use std::collections::HashSet;
use std::sync::Arc;

use crate::model::wording::counted;
use crate::model::{GangTree, HoldReason, LeafPlacement, Placement, Queued};
use crate::plan::decide::placed::Pin;
use crate::plan::gangs::{TreeDecision, TreeHeld, TreePlan, TreeSnapshot, decide};
use crate::plan::placement::line::{Closed, Turn};
use crate::plan::placement::{Capacity, Line, Sight};
use crate::plan::reconcile::action::{About, Action, StatusWrite};
use crate::plan::reconcile::events::{CLEARED, EventNote, RELEASED};
use crate::plan::reconcile::lasting::News;
use crate::plan::reconcile::pass::{NEXT_TURN, Pass};
use crate::plan::reconcile::pod_events::PodHold;
use crate::plan::reconcile::tree_memory::Stage;
use crate::plan::reconcile::tries::Try;
use crate::plan::reconcile::uptime::Uptime;
use crate::plan::view::{PodRef, count};

/// The number of failed commits before an Event: a single conflict is no news.
const SAID_AFTER: u32 = 3;

impl Pass<'_> {
    pub(in crate::plan) fn tree(&mut self, snapshot: &TreeSnapshot, verified_gone: bool) {
        let unbound = snapshot.pods.iter().any(|pod| !pod.held && !pod.scheduled);
        let held = snapshot.held().next().is_some();
        self.memory.decided.needs_room = held || unbound;
        self.memory.decided.held.clear();
        let tree = match &snapshot.tree {
            _ if snapshot.rests => return,
            _ if snapshot.lets_go().is_some() => return self.let_go_of_tree(snapshot),
            Some(tree) if !tree.place => return self.let_go_of_tree(snapshot),
            Some(tree) => tree,
            None => return self.missing_tree(snapshot, verified_gone),
        };
        // Where nothing is placed, there is none.
        let Some(placer) = self.placer.take() else { return self.let_go_of_tree(snapshot) };
        let reasons = match placer.into_parts() {
            (Sight::NotYet, ..) => blind(snapshot, "what room there is, is not known yet"),
            (Sight::Refused(why), ..) => {
                // As without rolegate: the scheduler of the pods handles their gangs, if it can.
                let message = format!("its pods go without a place: {why}");
                self.let_go_of_tree(snapshot);
                self.memory.decided.needs_room = held;
                vec![TreeHeld { reason: HoldReason::RoomUnknown, message, pods: Vec::new() }]
            }
            (Sight::Known(capacity), line, others_first) => {
                let reasons = self.place(tree, snapshot, capacity, (line, others_first));
                self.freed = Some(capacity.freed());
                reasons
            }
        };
        self.tell_of_tree(tree, &reasons);
    }

    /// Releases all pods without a place.
    fn let_go_of_tree(&mut self, snapshot: &TreeSnapshot) {
        self.memory.decided.needs_room = false;
        self.memory.tree.plan = None;
        snapshot.held().for_each(|pod| _ = self.release(pod, Pin::new(), Queued::Not));
    }

    /// Handles a missing PodGroup: its pods are released once it is certainly gone.
    fn missing_tree(&mut self, snapshot: &TreeSnapshot, verified_gone: bool) {
        self.memory.tree.plan = None;
        self.memory.decided.needs_room = false;
        let held = count(snapshot.held().count());
        if held == 0 {
            return;
        }
        self.memory.decided.held.push((HoldReason::GroupMissing, held));
        if !snapshot.served {
            // The time counts from the moment when the kind is served again: a removed definition is taken for a mistake.
            self.memory.presence.missing_since = None;
            return;
        }
        let carrier = self.memory.presence.carrier.as_ref().map(|(kind, _)| *kind);
        let waiting = snapshot.held().map(|pod| &pod.uid);
        if self.is_gone(carrier, Uptime::ZERO, verified_gone, waiting) {
            self.let_go_of_tree(snapshot);
        }
    }

    /// Places the held pods; returns why they wait. `others_first`: other groups may have pods that were released before this
    /// process led.
    fn place(
        &mut self,
        tree: &Arc<GangTree>,
        snapshot: &TreeSnapshot,
        capacity: &mut Capacity,
        (line, others_first): (&mut Line, bool),
    ) -> Vec<TreeHeld> {
        let late = self.not_bound(snapshot, capacity);
        self.follow(tree, snapshot);
        self.give_back(snapshot, capacity);
        let mut reasons: Vec<_> = late.into_iter().collect();
        // While a plan is carried out, the next pass comes with the end of each write, or with an event of a watch.
        if self.memory.tree.plan.is_none() {
            reasons.extend(self.plan(tree, snapshot, capacity, (line, others_first)));
        }
        if self.memory.tree.plan.is_some() {
            reasons.extend(self.refused(snapshot));
        }
        reasons
    }

    /// Plans the held pods, and commits the plan.
    fn plan(
        &mut self,
        tree: &Arc<GangTree>,
        snapshot: &TreeSnapshot,
        capacity: &mut Capacity,
        (line, others_first): (&mut Line, bool),
    ) -> Vec<TreeHeld> {
        if snapshot.held().next().is_none() {
            line.leaves(self.key);
            return Vec::new();
        }
        if others_first && (capacity.may_be_loose() || snapshot.pods.iter().all(|pod| pod.held)) {
            return blind(snapshot, OTHERS_FIRST);
        }
        let priority = |pod: &PodRef| Some(capacity.needs(&pod.uid)?.load.priority);
        let priority = snapshot.held().filter_map(priority).max().unwrap_or_default();
        let Turn::Now { closed } = line.turn(self.key, priority, self.now, capacity.freed()) else {
            line.joins(self.key, priority, self.now);
            self.pass_again(self.now + NEXT_TURN);
            return blind(snapshot, OTHERS_FIRST);
        };
        let unbound = capacity.closed_to(("", None), &[], self.now);
        let all: Vec<_> = unbound.iter().cloned().chain(closed.iter().map(Closed::label)).collect();
        let TreeDecision { plan, mut held, best } = decide(snapshot, capacity, &all);
        if let Some(closed) = unbound.first().and_then(|domain| capacity.loose().closed(domain)) {
            let lack = held.iter_mut().filter(|held| held.reason == HoldReason::NoRoom);
            lack.for_each(|held| held.message = format!("{}; {}", held.message, closed.describe(&self.key.namespace)));
        }
        if held.iter().any(|held| held.reason == HoldReason::NoRoom) {
            line.waits(self.key, priority, self.now, capacity.freed(), best);
        } else {
            line.leaves(self.key);
        }
        plan.into_iter().for_each(|plan| self.commit(tree, plan, capacity));
        held
    }

    /// Takes the room for a plan, and commits it.
    fn commit(&mut self, tree: &Arc<GangTree>, plan: TreePlan, capacity: &mut Capacity) {
        for (pod, node, _) in &plan.pods {
            let needs = capacity.needs(&pod.uid).cloned();
            if let Some((node, needs)) = node.as_ref().zip(needs) {
                capacity.assume(self.key, &pod.uid, node, &needs);
            }
        }
        let (placement, over) = (plan.placement.clone(), tree.resource_version.clone());
        self.memory.tree.plan = Some((plan, Stage::Committing(over)));
        self.begin(Action::WriteStatus(StatusWrite::Placement { tree: tree.clone(), placement }));
    }

    /// Continues a plan; ends it when its pods are released, and the watch shows the commit.
    fn follow(&mut self, tree: &Arc<GangTree>, snapshot: &TreeSnapshot) {
        let Some((plan, stage)) = self.memory.tree.plan.take() else { return };
        let goes_on = match &stage {
            Stage::Committing(_) => true,
            // When it is due, it is planned again: the observed state has changed.
            Stage::Due(at) => {
                self.pass_again(*at);
                *at > self.now
            }
            Stage::Committed(over) => {
                let held: HashSet<_> = snapshot.held().collect();
                let left = || plan.pods.iter().filter(|(pod, _, _)| held.contains(pod));
                left().for_each(|(pod, _, pin)| _ = self.release(pod, pin.clone(), Queued::Not));
                left().next().is_some() || tree.resource_version == *over
            }
        };
        self.memory.tree.plan = goes_on.then_some((plan, stage));
    }

    /// Gives back the places of held pods that are in no plan.
    fn give_back(&self, snapshot: &TreeSnapshot, capacity: &mut Capacity) {
        let planned = self.memory.tree.plan.as_ref().map(|(plan, _)| plan.uids()).unwrap_or_default();
        let held: HashSet<_> = snapshot.held().map(|pod| &pod.uid).collect();
        let unasked = |uid: &&Arc<str>| held.contains(uid) && !planned.contains(uid);
        let unasked: Vec<_> = capacity.assumed_of(self.key).filter(unasked).cloned().collect();
        unasked.iter().for_each(|uid| capacity.forget(uid));
    }

    /// Frees the room of placed pods that had no node for too long.
    fn not_bound(&mut self, snapshot: &TreeSnapshot, capacity: &mut Capacity) -> Option<TreeHeld> {
        let unbound = snapshot.pods.iter().filter(|pod| !pod.held && !pod.scheduled);
        let after = self.options.bind_timeout;
        let again = self.memory.tree.unbound.note(unbound.map(|pod| pod.pod.uid.clone()), after, self.now);
        self.pass_again(again);
        let late = self.memory.tree.unbound.overdue(after, self.now);
        if late.is_empty() {
            return None;
        }
        capacity.give_up(&late);
        let message = format!("it was placed, and {} of its pods have no node", late.len());
        Some(TreeHeld { reason: HoldReason::PlacedNotBound, message, pods: Vec::new() })
    }

    /// Returns the entry for pods whose release, or the commit before it, fails.
    fn refused(&self, snapshot: &TreeSnapshot) -> Option<TreeHeld> {
        if self.memory.status.failures >= SAID_AFTER {
            let message = "where its pods go cannot be noted on the PodGroup".to_owned();
            let pods = snapshot.held().cloned().collect();
            return Some(TreeHeld { reason: HoldReason::PatchFailed, message, pods });
        }
        let failed = |uid: &Arc<str>| self.memory.tries.has_failed(&Try::Object(uid.clone()));
        let pods: Vec<_> = snapshot.held().filter(|pod| failed(&pod.uid)).cloned().collect();
        let message = "the API server refuses to lift the gate, or does not answer".to_owned();
        (!pods.is_empty()).then_some(TreeHeld { reason: HoldReason::PatchFailed, message, pods })
    }

    /// Counts the held pods, and publishes what is new and what is over.
    fn tell_of_tree(&mut self, tree: &Arc<GangTree>, reasons: &[TreeHeld]) {
        // Unknown room is known in a moment.
        let is_known = |held: &&TreeHeld| held.reason != HoldReason::RoomUnknown || held.pods.is_empty();
        let pods = |held: &TreeHeld| count(held.pods.len());
        let states = reasons.iter().filter(is_known).map(|held| (held.reason, (held.message.clone(), pods(held))));
        let News { begun, over } = self.memory.tree.told.note(states, self.now);
        self.pass_again(self.memory.tree.told.again());
        self.memory.decided.held.extend(reasons.iter().map(|held| (held.reason, pods(held))));
        let begun = begun.into_iter().map(|(reason, (message, pods))| {
            let pods = if pods == 0 { String::new() } else { format!(" ({})", counted(pods, "pod")) };
            EventNote::new(reason.as_str(), reason.as_str(), message + &pods, reason.is_warning())
        });
        // What goes without a look at nodes still does so once it has gone.
        let ends = over.into_iter().filter(|(reason, _)| *reason != HoldReason::RoomUnknown);
        let over = ends.map(|(reason, (message, _))| {
            EventNote::new(CLEARED, reason.as_str(), format!("no longer so: {message}"), false)
        });
        let mut events: Vec<_> = begun.chain(over).collect();
        events.extend(self.actions.iter().find_map(|action| match action {
            Action::WriteStatus(StatusWrite::Placement { tree, placement }) => Some(released(tree, placement)),
            _ => None,
        }));
        self.publish(About::PodGroup(tree.clone()), events);
        self.publish_of_pods(reasons.iter().filter_map(PodHold::of_tree));
    }
}

const OTHERS_FIRST: &str = "others that come before it are looked at first";

/// Returns the entry for held pods of which nothing is known yet.
fn blind(snapshot: &TreeSnapshot, why: &str) -> Vec<TreeHeld> {
    let pods: Vec<_> = snapshot.held().cloned().collect();
    let held = TreeHeld { reason: HoldReason::RoomUnknown, message: why.to_owned(), pods };
    if held.pods.is_empty() { Vec::new() } else { vec![held] }
}

/// Returns the Event on the pods that a commit releases.
fn released(tree: &GangTree, placement: &Placement) -> EventNote {
    let new = placement.0.iter().filter(|(leaf, of)| tree.placement.of(leaf) != Some(*of));
    let text = |(leaf, of): (&String, &LeafPlacement)| {
        let name = if leaf.is_empty() { String::new() } else { format!("gang {leaf}: ") };
        let within: Vec<_> = of.within.iter().map(|(key, domain)| format!("{key}={domain}")).collect();
        let within = if within.is_empty() { String::new() } else { format!(" in {}", within.join(", ")) };
        format!("{name}{} pods{within}", of.pods)
    };
    let note = new.map(text).collect::<Vec<_>>().join("; ");
    EventNote::new(RELEASED, &note, format!("released: {note}"), false)
}

#[cfg(test)]
#[path = "trees_tests.rs"]
mod tests;
