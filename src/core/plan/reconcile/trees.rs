//! The pass over a KAI PodGroup that places its pods: it plans the pods that may go, commits the plan on the PodGroup, and
//! carries it out; or explains why they wait.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;
use std::time::Duration;

use crate::model::wording::counted;
use crate::model::{GangTree, GroupKey, HoldReason, LeafPlacement, Placement, Queued};
use crate::plan::decide::placed::Pin;
use crate::plan::gangs::{TreeDecision, TreeHeld, TreePlan, TreeSnapshot, decide};
use crate::plan::placement::line::Turn;
use crate::plan::placement::{Capacity, Line, Sight};
use crate::plan::reconcile::action::{About, Action, Question, StatusWrite};
use crate::plan::reconcile::events::{CLEARED, EventNote, RELEASED, is_warning};
use crate::plan::reconcile::lasting::News;
use crate::plan::reconcile::options::{LoopOptions, MissingGroup};
use crate::plan::reconcile::pod_events::PodHold;
use crate::plan::reconcile::tree_memory::{Stage, TreeMemory};
use crate::plan::reconcile::tries::{Begin, Read, Try};
use crate::plan::reconcile::uptime::Uptime;
use crate::plan::view::PodRef;

/// The pause before a PodGroup that waits for others is looked at again.
const NEXT_TURN: Duration = Duration::from_millis(10);

/// The number of failed commits before an Event: a single conflict is no news.
const SAID_AFTER: u32 = 3;

pub(in crate::plan) struct TreePass<'a> {
    pub(in crate::plan) key: &'a GroupKey,
    pub(in crate::plan) memory: &'a mut TreeMemory,
    pub(in crate::plan) options: LoopOptions,
    pub(in crate::plan) now: Uptime,
    pub(in crate::plan) actions: Vec<Action>,
    pub(in crate::plan) again: Option<Uptime>,
    pub(in crate::plan) line: &'a mut Line,
    /// Whether other groups go first, which may have pods that were released before this process led.
    pub(in crate::plan) others_first: bool,
}

impl TreePass<'_> {
    pub(in crate::plan) fn run(&mut self, snapshot: &TreeSnapshot, sight: Option<Sight<'_>>) {
        let unbound = snapshot.pods.iter().any(|pod| !pod.held && !pod.scheduled);
        let held = snapshot.held().next().is_some();
        self.memory.decided.needs_room = held || unbound;
        self.memory.decided.held.clear();
        // The verification counts for this pass only, whatever the pass handles: later pods are verified again.
        let verified = self.memory.presence.take_gone();
        let tree = match &snapshot.tree {
            _ if snapshot.rests => return,
            _ if snapshot.lets_go().is_some() => return self.let_go(snapshot),
            Some(tree) if !tree.place => return self.let_go(snapshot),
            Some(tree) => tree.clone(),
            None => return self.missing(snapshot, verified),
        };
        let reasons = match sight {
            // Nothing is placed.
            None => return self.let_go(snapshot),
            Some(Sight::NotYet) => blind(snapshot, "what room there is, is not known yet"),
            Some(Sight::Refused(why)) => {
                // As without rolegate: the scheduler of the pods handles their gangs, if it can.
                let message = format!("its pods go without a place: {why}");
                self.let_go(snapshot);
                self.memory.decided.needs_room = held;
                vec![TreeHeld { reason: HoldReason::RoomUnknown, message, pods: Vec::new() }]
            }
            Some(Sight::Known(capacity)) => self.place(&tree, snapshot, capacity),
        };
        self.tell(&tree, &reasons);
    }

    fn pass_again(&mut self, at: Uptime) {
        self.again = Some(self.again.map_or(at, |again| again.min(at)));
    }

    /// Releases all pods without a place.
    fn let_go(&mut self, snapshot: &TreeSnapshot) {
        self.memory.decided.needs_room = false;
        self.memory.plan = None;
        snapshot.held().for_each(|pod| self.release(pod, Pin::new()));
    }

    fn release(&mut self, pod: &PodRef, pin: Pin) {
        match self.memory.tries.begin(Try::Object(pod.uid.clone()), self.now) {
            Begin::At(at) => self.pass_again(at),
            Begin::Now => {
                self.actions.push(Action::Release { pod: pod.clone(), labels: None, pin, queued: Queued::Not });
            }
            Begin::UnderWay => {}
        }
    }

    /// Handles a missing PodGroup: its pods are released once it is certainly gone.
    fn missing(&mut self, snapshot: &TreeSnapshot, verified: bool) {
        self.memory.plan = None;
        let held = snapshot.held().count();
        self.memory.decided.needs_room = false;
        if held == 0 {
            return;
        }
        if !snapshot.served {
            // The time counts from the moment when the kind is served again: a removed definition is taken for a mistake.
            self.memory.presence.missing_since = None;
        }
        self.memory.decided.held.push((HoldReason::GroupMissing, u32::try_from(held).unwrap_or(u32::MAX)));
        let grace = match self.options.missing_group {
            _ if !snapshot.served => return,
            _ if self.memory.was_there => self.options.vanished_grace,
            MissingGroup::ReleaseAfter(time) => time,
            MissingGroup::Hold => return,
        };
        let at = *self.memory.presence.missing_since.get_or_insert(self.now) + grace;
        if at > self.now {
            self.pass_again(at);
        } else if verified {
            self.let_go(snapshot);
        } else if self.memory.tries.begin(Try::Read(Read::Gone), self.now) == Begin::Now {
            self.actions.push(Action::Read(Question::Gone { carrier: None }));
        }
    }

    fn place(&mut self, tree: &Arc<GangTree>, snapshot: &TreeSnapshot, capacity: &mut Capacity) -> Vec<TreeHeld> {
        let mut reasons = self.not_bound(snapshot, capacity);
        self.follow(tree, snapshot);
        self.give_back(snapshot, capacity);
        if self.memory.plan.is_some() {
            // The next pass comes with the end of each write, or with an event of a watch.
            reasons.extend(self.refused(snapshot));
            return reasons;
        }
        let waiting: Vec<_> = snapshot.held().collect();
        if waiting.is_empty() {
            self.line.leaves(self.key);
            return reasons;
        }
        if self.others_first && snapshot.pods.iter().all(|pod| pod.held) {
            reasons.extend(blind(snapshot, OTHERS_FIRST));
            return reasons;
        }
        let needs = |uid: &Arc<str>| capacity.needs(uid).map(|needs| needs.load.priority);
        let priority = waiting.iter().filter_map(|pod| needs(&pod.uid)).max().unwrap_or_default();
        let Turn::Now { closed } = self.line.turn(self.key, priority, self.now, capacity.freed()) else {
            self.line.joins(self.key, priority, self.now);
            self.pass_again(self.now + NEXT_TURN);
            reasons.extend(blind(snapshot, OTHERS_FIRST));
            return reasons;
        };
        let closed = closed.as_ref().map(|closed| (closed.key.as_str(), closed.domain.as_str()));
        let TreeDecision { plan, held, best } = decide(snapshot, capacity, closed);
        if held.iter().any(|held| held.reason == HoldReason::NoRoom) {
            self.line.waits(self.key, priority, self.now, capacity.freed(), best);
        } else {
            self.line.leaves(self.key);
        }
        reasons.extend(held);
        if let Some(plan) = plan {
            self.begin(tree, plan, capacity);
            reasons.extend(self.refused(snapshot));
        }
        reasons
    }

    /// Takes the room for a plan, and commits it.
    fn begin(&mut self, tree: &Arc<GangTree>, plan: TreePlan, capacity: &mut Capacity) {
        for (pod, node, _) in &plan.pods {
            let needs = capacity.needs(&pod.uid).cloned();
            if let Some((node, needs)) = node.as_ref().zip(needs) {
                capacity.assume(self.key, &pod.uid, node, &needs);
            }
        }
        let (placement, over) = (plan.placement.clone(), tree.resource_version.clone());
        self.memory.plan = Some((plan, Stage::Committing(over)));
        self.actions.push(Action::WriteStatus(StatusWrite::Placement { tree: tree.clone(), placement }));
    }

    /// Continues a plan; ends it when its pods are released, and the watch shows the commit.
    fn follow(&mut self, tree: &Arc<GangTree>, snapshot: &TreeSnapshot) {
        let Some((plan, stage)) = self.memory.plan.take() else { return };
        match &stage {
            Stage::Committing(_) => self.memory.plan = Some((plan, stage)),
            Stage::Due(at) if *at > self.now => {
                self.pass_again(*at);
                self.memory.plan = Some((plan, stage));
            }
            // It is planned again: the observed state has changed.
            Stage::Due(_) => {}
            Stage::Committed(over) => {
                let held: HashSet<_> = snapshot.held().collect();
                let left = || plan.pods.iter().filter(|(pod, _, _)| held.contains(pod));
                left().for_each(|(pod, _, pin)| self.release(pod, pin.clone()));
                if left().next().is_some() || tree.resource_version == *over {
                    self.memory.plan = Some((plan, stage));
                }
            }
        }
    }

    /// Gives back the places of held pods that are in no plan.
    fn give_back(&self, snapshot: &TreeSnapshot, capacity: &mut Capacity) {
        let planned = self.memory.plan.as_ref().map(|(plan, _)| plan.uids()).unwrap_or_default();
        let held: HashSet<_> = snapshot.held().map(|pod| &pod.uid).collect();
        let unasked = |uid: &&Arc<str>| held.contains(uid) && !planned.contains(uid);
        let unasked: Vec<_> = capacity.assumed_of(self.key).filter(unasked).cloned().collect();
        unasked.iter().for_each(|uid| capacity.forget(uid));
    }

    /// Frees the room of placed pods that had no node for too long.
    fn not_bound(&mut self, snapshot: &TreeSnapshot, capacity: &mut Capacity) -> Vec<TreeHeld> {
        let mut late = Vec::new();
        for pod in snapshot.pods.iter().filter(|pod| !pod.held) {
            if pod.scheduled {
                self.memory.unbound.remove(&pod.pod.uid);
                continue;
            }
            let since = *self.memory.unbound.entry(pod.pod.uid.clone()).or_insert(self.now);
            let at = since + self.options.bind_timeout;
            if at > self.now { self.pass_again(at) } else { late.push(pod.pod.uid.clone()) }
        }
        if late.is_empty() {
            return Vec::new();
        }
        capacity.give_up(&late);
        let message = format!("it was placed, and {} of its pods have no node", late.len());
        vec![TreeHeld { reason: HoldReason::PlacedNotBound, message, pods: Vec::new() }]
    }

    /// Returns the entry for pods whose release, or the commit before it, fails.
    fn refused(&self, snapshot: &TreeSnapshot) -> Option<TreeHeld> {
        if self.memory.commit_failures >= SAID_AFTER {
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
    fn tell(&mut self, tree: &Arc<GangTree>, reasons: &[TreeHeld]) {
        // Unknown room is known in a moment.
        let is_known = |held: &&TreeHeld| held.reason != HoldReason::RoomUnknown || held.pods.is_empty();
        let pods = |held: &TreeHeld| u32::try_from(held.pods.len()).unwrap_or(u32::MAX);
        let states = reasons.iter().filter(is_known).map(|held| (held.reason, (held.message.clone(), pods(held))));
        let News { begun, over } = self.memory.told.note(states, self.now);
        self.memory.told.again().into_iter().for_each(|at| self.pass_again(at));
        self.memory.decided.held.extend(reasons.iter().map(|held| (held.reason, pods(held))));
        let begun = begun.into_iter().map(|(reason, (message, pods))| {
            let pods = if pods == 0 { String::new() } else { format!(" ({})", counted(pods, "pod")) };
            event(reason.as_str(), reason.as_str(), message + &pods, is_warning(reason))
        });
        let over = over
            .into_iter()
            .map(|(reason, (message, _))| event(CLEARED, reason.as_str(), format!("no longer so: {message}"), false));
        let mut events: Vec<_> = begun.chain(over).collect();
        events.extend(self.actions.iter().find_map(|action| match action {
            Action::WriteStatus(StatusWrite::Placement { tree, placement }) => Some(released(tree, placement)),
            _ => None,
        }));
        if !events.is_empty() {
            self.actions.push(Action::Publish { about: About::PodGroup(tree.clone()), events });
        }
        let (events, again) = self.memory.told_pods.events(reasons.iter().filter_map(PodHold::of_tree), self.now);
        again.into_iter().for_each(|at| self.pass_again(at));
        self.actions.extend(events.into_iter().map(Action::of_pod));
    }
}

const OTHERS_FIRST: &str = "others that come before it are looked at first";

/// Returns the entry for held pods of which nothing is known yet.
fn blind(snapshot: &TreeSnapshot, why: &str) -> Vec<TreeHeld> {
    let pods: Vec<_> = snapshot.held().cloned().collect();
    let held = TreeHeld { reason: HoldReason::RoomUnknown, message: why.to_owned(), pods };
    if held.pods.is_empty() { Vec::new() } else { vec![held] }
}

fn event(reason: &str, subject: &str, note: String, warning: bool) -> EventNote {
    let (reason, subject) = (reason.to_owned(), subject.to_owned());
    EventNote { reason, subject, note, warning, roles: BTreeSet::new() }
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
    event(RELEASED, &note, format!("released: {note}"), false)
}

#[cfg(test)]
#[path = "trees_tests.rs"]
mod tests;
