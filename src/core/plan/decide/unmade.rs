//! Batches that may run and whose pods do not exist yet. If batches are placed, the workloads of an elastic group grow only
//! when the next batch fits by its pod templates; its room is kept until its pods exist.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use crate::api::scheduling::SchedulingPod;
use crate::model::{Batching, Coordination, Group, HoldReason, WorkloadKey};
use crate::plan::decide::DecisionContext;
use crate::plan::decide::all_or_nothing::batch_waits;
use crate::plan::decide::held::Held;
use crate::plan::decide::held_pods::HeldPods;
use crate::plan::decide::placed::{Awaits, Domains, Placed};
use crate::plan::decide::placing::{no_room, used};
use crate::plan::elastic::RoomWait;
use crate::plan::placement::{Added, Answer, Needs, NotModelled, Placer, Request, unmade};
use crate::plan::provision::NoRoom;
use crate::plan::provision::entry::{Sample, Sorts, awaited_resources};
use crate::plan::recovery::BatchId;
use crate::plan::view::GroupView;

/// The maximum number of pods of one batch to ask room for: no domain has room for more.
const MOST_PODS: usize = 10_000;

/// The needs of the pods of one replica by template, each with what is added to the template, and the number of these pods.
type ReplicaNeeds = Vec<(Arc<Needs>, Added, u32)>;

/// The batches that may run, lack pods, and have no released pod.
pub(super) struct Unmade<'a> {
    group: &'a Group,
    view: &'a GroupView,
    context: DecisionContext<'a>,
    coordination: &'a Coordination,
    batching: &'a Batching,
    key: &'a str,
    /// The numbers of the batches, in ascending order.
    batches: Vec<u32>,
    /// The first number that is not committed.
    next: u32,
    /// The released counts if all batches had room.
    wanted: BTreeMap<String, u32>,
}

impl<'a> Unmade<'a> {
    /// Returns the unmade batches of an elastic group whose batches are placed. Uncommitted batches are removed from the
    /// released counts until they are known to have room.
    pub(super) fn of(
        group: &'a Group,
        view: &'a GroupView,
        released: &mut BTreeMap<String, u32>,
        context: DecisionContext<'a>,
    ) -> Option<Self> {
        let (_, batching) = group.scaled()?;
        batching.placed_in()?;
        let (coordination, _) = group.batched().next()?;
        let key = context.domain_key(coordination.index)?;
        let batches_of = |role: &String, count: Option<u32>| Some(count?.div_ceil(batching.size(role)?));
        let roles = || batching.sizes.keys();
        let target = roles().filter_map(|role| batches_of(role, released.get(role).copied())).max().unwrap_or(0);
        let committed = |role: &String| view.roles.get(role)?.committed;
        let next = roles().filter_map(|role| batches_of(role, committed(role))).max().unwrap_or(0);
        let batches: Vec<_> = (0..target).filter(|batch| batch_waits(view, batching, *batch)).collect();
        let wanted = released.clone();
        let unmade = Self { group, view, context, coordination, batching, key, batches, next, wanted };
        let first = unmade.batches.iter().copied().find(|batch| *batch >= next);
        first.into_iter().for_each(|batch| unmade.stop_at(batch, released));
        Some(unmade)
    }

    /// Asks for room for each batch in ascending order, after the existing pods have theirs. Batches with room are released;
    /// the first batch without room waits, and all after it.
    pub(super) fn ask(
        &self,
        released: &mut BTreeMap<String, u32>,
        (given, without_place): (&mut Placed, &mut Vec<Held>),
        placer: &mut Placer<'_>,
    ) -> Option<RoomWait> {
        let index = self.coordination.index;
        without_place.extend(self.blind(placer));
        let mut domains = given.domains.get(&index).cloned().unwrap_or_default();
        for batch in self.batches.iter().copied() {
            let is_new = batch >= self.next;
            if !is_new && domains.contains_key(&batch) {
                continue;
            }
            // Room is not kept forever.
            let wait = (index, batch, Awaits::Pods);
            if !is_new && self.context.waited.contains(&wait) {
                given.waits.insert(wait);
                continue;
            }
            if let Some(before) = without_place.iter().find(|held| is_new && self.is_before(held)) {
                let name = self.batching.batch_name(before.batch.unwrap_or_default());
                return Some(self.wait(batch, before.reason, &format!("{name} has no place yet"), released));
            }
            let answer = self.place(batch, &mut domains, placer);
            given.needs_room = true;
            match answer {
                Some(Answer::To { domain, .. }) => {
                    domains.insert(batch, domain);
                    given.waits.insert(wait);
                }
                // Without the right to read nodes nothing is placed; without a node that has the label, the pods wait for one.
                Some(Answer::Anywhere | Answer::WithoutDomain) | None => {}
                Some(_) if !is_new => {}
                Some(Answer::NoRoom { why, closed }) => {
                    let why =
                        no_room(self.batching, self.key, batch, &why, (closed.as_ref(), &self.group.key.namespace));
                    if self.coordination.requests_nodes() {
                        given.no_room.extend(self.lack_room(batch, &why, placer));
                    }
                    return Some(self.wait(batch, HoldReason::NoRoom, &why, released));
                }
                Some(Answer::AfterOthers) => {
                    given.is_next = true;
                    return Some(self.wait(batch, HoldReason::RoomUnknown, OTHERS_FIRST, released));
                }
                Some(Answer::NotYet) => {
                    given.is_blind = true;
                    return Some(self.wait(batch, HoldReason::RoomUnknown, NOT_KNOWN, released));
                }
            }
        }
        released.clone_from(&self.wanted);
        None
    }

    /// Returns what the room for the batches is looked for without.
    fn blind(&self, placer: &Placer<'_>) -> Option<Held> {
        let batch = self.batches.first().copied()?;
        let all = self.batching.sizes.keys().filter_map(|name| self.replica(name, placer)).flat_map(|(_, pods)| pods);
        let classes = all.flat_map(|(needs, ..)| needs.not_modelled.clone());
        let what = classes.into_iter().find(|what| matches!(what, NotModelled::RuntimeClass(_)))?;
        let message =
            format!("the room for {} is looked for without {}", self.batching.batch_name(batch), what.describe());
        Some(Held::of((Some(self.coordination), Some(batch)), HoldReason::RoomUnknown, message, HeldPods::default()))
    }

    fn is_before(&self, held: &Held) -> bool {
        let is_own = held.coordination.as_ref().is_some_and(|of| of.index == self.coordination.index);
        is_own && matches!(held.reason, HoldReason::NoRoom | HoldReason::RoomUnknown) && !held.pods.is_empty()
    }

    /// Returns a place for a batch; `None` while the needs of its pods are not known.
    fn place(&self, batch: u32, domains: &mut Domains, placer: &mut Placer<'_>) -> Option<Answer> {
        let needs = self.needs(batch, placer).filter(|needs| needs.len() <= MOST_PODS)?;
        let pods = unmade(&self.group.key, self.coordination.index, batch, needs.len());
        Some(placer.place(&Request {
            pods: &pods,
            needs: Some(&needs),
            others: &[],
            sent: &[],
            key: self.key,
            committed: None,
            used: &used(self.batching, domains, batch),
            grown: &[],
            refused_by: &[],
            awaits: awaited_resources(&self.group.status.provisioning, self.coordination, batch),
            goes_with_others: false,
            when_no_fit: self.coordination.when_no_fit(),
        }))
    }

    /// Returns the needs of the pods of a batch by the templates of their workloads. What is not in a template: what admission adds
    /// ([`Added`]), the priority of a priority class, which is read from another pod of the role, and the affinity of a pod to its
    /// batch, which pods that are born with a number get.
    fn needs(&self, batch: u32, placer: &Placer<'_>) -> Option<Vec<Arc<Needs>>> {
        let mut all = Vec::new();
        for name in self.batching.sizes.keys() {
            let mut replica = Vec::new();
            for (needs, _, count) in self.replica(name, placer)?.1 {
                let count = usize::try_from(count).ok().filter(|count| *count <= MOST_PODS)?;
                replica.extend(std::iter::repeat_n(needs, count));
            }
            for _ in self.ordinals(name, batch)? {
                all.extend(replica.iter().cloned());
                if all.len() > MOST_PODS {
                    return None;
                }
            }
        }
        Some(all)
    }

    fn ordinals(&self, role: &str, batch: u32) -> Option<Range<u32>> {
        Some(self.batching.ordinals(role, batch, self.view.roles.get(role)?.desired))
    }

    /// Returns the workload of a role, and the needs of the pods of one replica by template, each with the number of these pods.
    fn replica(&self, role: &str, placer: &Placer<'_>) -> Option<(&'a WorkloadKey, ReplicaNeeds)> {
        let key = self.group.role(role)?.workload.key.as_ref()?;
        let workload = self.context.elastic.workloads.iter().find(|workload| workload.key == *key)?;
        let mut pods = self.view.roles.get(role)?.replicas.pods();
        let sibling = pods.next().and_then(|(_, pod)| placer.load_of(&pod.pod.uid));
        let needs = |(pod, count): &(SchedulingPod, u32)| {
            let (mut needs, added) = placer.needs_of_template(pod)?;
            needs.load.priority = needs.load.priority.max(sibling.map_or(i32::MIN, |load| load.priority));
            needs.load.never_preempts |= sibling.is_some_and(|load| load.never_preempts);
            needs.keeps_together = key.kind.row().numbered;
            Some((Arc::new(needs), added, *count))
        };
        Some((key, workload.replica.0.iter().map(needs).collect::<Option<_>>()?))
    }

    /// Returns the pods of a batch by sort; `None` while they are not known.
    fn sorts(&self, batch: u32, placer: &Placer<'_>) -> Option<Sorts> {
        let mut sorts = Sorts::default();
        for name in self.batching.sizes.keys() {
            let replicas = u32::try_from(self.ordinals(name, batch)?.len()).ok()?;
            let (key, replica) = self.replica(name, placer)?;
            let some = replica.iter().enumerate().filter(|(_, (.., pods))| *pods > 0 && replicas > 0);
            for (part, (needs, added, pods)) in some {
                let sample = || Sample::Workload(key.clone(), part, added.clone());
                sorts.add(name, needs, pods.saturating_mul(replicas), sample);
            }
        }
        Some(sorts)
    }

    /// Returns what this batch and those after it lack, for which nodes may be requested.
    fn lack_room(&self, batch: u32, why: &str, placer: &Placer<'_>) -> BTreeMap<BatchId, NoRoom> {
        let most = self.coordination.provision().map_or(0, |provision| provision.max_segments_ahead);
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let all = self.batches.iter().copied().filter(|other| *other >= batch).take(most);
        let of = |other: u32| {
            let [name, before] = [other, batch].map(|batch| self.batching.batch_name(batch));
            let behind = format!("{name} is not made yet: {before} does not fit");
            let why = if other == batch { why } else { &behind };
            let lacks = NoRoom::of(self.sorts(other, placer), self.key, placer, why);
            ((self.coordination.index, other), lacks)
        };
        all.map(of).collect()
    }

    fn wait(&self, batch: u32, reason: HoldReason, why: &str, released: &mut BTreeMap<String, u32>) -> RoomWait {
        self.stop_at(batch, released);
        let message = match reason {
            HoldReason::NoRoom => why.to_owned(),
            _ => format!("{} is not made yet: {why}", self.batching.batch_name(batch)),
        };
        RoomWait { batch, reason, message }
    }

    /// Sets the released counts to the wanted ones below a batch; from there on only replicas that are released already count.
    fn stop_at(&self, batch: u32, released: &mut BTreeMap<String, u32>) {
        for (role, count) in released.iter_mut() {
            let (Some(size), Some(view)) = (self.batching.size(role), self.view.roles.get(role)) else { continue };
            let wanted = self.wanted.get(role).copied().unwrap_or(0);
            *count = wanted.min(batch.saturating_mul(size).max(view.released()));
        }
    }
}

const OTHERS_FIRST: &str = "others that come before it are looked at first";
const NOT_KNOWN: &str = "what room there is, is not known yet";

#[cfg(test)]
#[path = "unmade_tests.rs"]
mod tests;
