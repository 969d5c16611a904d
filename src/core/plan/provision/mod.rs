//! Requests for nodes for batches that fit nowhere (`whenNoFit: provision`). Pure.
//!
//! A request is committed (`status.provisioning`) before its objects are created, so that a new leader finds these again. Nodes that
//! come are room like any other: the batch goes when all of it fits, and the request ends with that. Capacity of a CapacityBuffer
//! is headroom that is filled up again, so the buffer goes in the step that releases the batch; a ProvisioningRequest is consumed
//! by the pods and stays until they have nodes.

pub mod entry;
pub mod template;
pub mod text;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::api::ObjectKind;
use crate::api::status::{ProvisioningState, RequestedPods};
use crate::model::batching::CLUSTER_KEY;
use crate::model::moment::Moment;
use crate::model::{Batching, Coordination, Group, HoldReason, Provision, ProvisionBy};
use crate::plan::placement::Placer;
use crate::plan::provision::entry::{
    Phase, PodSet, RequestObject, Sorts, by, made_of, objects_of, of_batch, request_name,
};
use crate::plan::provision::text::Told;
use crate::plan::recovery::BatchId;
use crate::plan::recovery::entry::pause;
use crate::plan::view::{AwaitedObjects, GroupView, ReplicaIs, SeenCondition};

/// Conditions of a ProvisioningRequest by which no more nodes come.
const REFUSALS: &[&str] = &["Failed", "CapacityRevoked", "BookingExpired"];
/// Condition of a CapacityBuffer that is not True while its nodes are not there.
const PROVISIONING: &str = "Provisioning";
/// Reason of a ProvisioningRequest for which there is no capacity; it is looked for again and again.
const NOT_FOUND: &str = "CapacityIsNotFound";
/// The time after which an autoscaler has decided on a request more than once.
const DECIDED: Duration = Duration::from_secs(60);

/// The inputs of requests beside the batches.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProvisionContext<'a> {
    /// Whether the loop may not request nodes.
    pub off: bool,
    /// The current time; without it, nothing begins or ends.
    pub now: Option<Moment>,
    /// Whether the group breaks a rule or is being deleted: requests stay as they are.
    pub rests: bool,
    /// The time for which batches have lacked room.
    pub waited: &'a [(BatchId, Duration)],
    /// Names of objects that could not be created, each with the reason.
    pub missing: &'a [(&'a str, &'a str)],
    /// Objects of requests that are there, or are being deleted; `None` while they are not known.
    pub present: Option<&'a [(ObjectKind, String)]>,
}

/// An empty context.
impl Default for &ProvisionContext<'_> {
    fn default() -> Self {
        const NONE: ProvisionContext<'_> =
            ProvisionContext { off: false, now: None, rests: false, waited: &[], missing: &[], present: None };
        &NONE
    }
}

/// A batch without room.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NoRoom {
    /// Its pods; `None` while they do not all exist, or are not known.
    pub sets: Option<Vec<PodSet>>,
    /// Domains with room for some of its pods. An autoscaler fills them first, and then keeps to them, whether they can grow or
    /// not.
    pub partial: BTreeSet<String>,
    /// Resources that its pods lack, or may lack while the request lasts.
    pub counted: BTreeSet<String>,
    /// Whether an admission check of Kueue has requested nodes for some of its pods.
    pub by_kueue: bool,
    pub why: String,
}

impl NoRoom {
    /// Returns what a batch of these pods lacks.
    pub(in crate::plan) fn of(sorts: Option<Sorts>, key: &str, placer: &Placer<'_>, why: &str) -> Self {
        let shared = sorts.as_ref().filter(|_| key != CLUSTER_KEY);
        let partial = shared.map(|sorts| placer.some_room(key, sorts.needs())).unwrap_or_default();
        let counted = sorts.as_ref().map(|sorts| placer.counted(sorts.needs())).unwrap_or_default();
        Self { sets: sorts.map(Sorts::end), partial, counted, by_kueue: false, why: why.to_owned() }
    }
}

/// The decision on requests for nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProvisionPlan {
    /// The requests to store in the status.
    pub entries: Vec<ProvisioningState>,
    /// Batches that lack room and have no request, whether it is their turn or not.
    pub lacking: BTreeSet<BatchId>,
    /// The next time at which something is due without an event.
    pub due: Option<Duration>,
    /// Objects to create: their request is committed.
    pub makes: Vec<RequestObject>,
    /// Objects of committed requests. All others that exist are deleted.
    pub keeps: BTreeSet<(ObjectKind, String)>,
    /// The request whose nodes the pods of a batch take, with its class.
    pub consumed: BTreeMap<BatchId, (String, String)>,
    /// What is told of batches without room.
    pub(in crate::plan) told: BTreeMap<BatchId, Told>,
}

impl ProvisionPlan {
    /// Iterates over the phases of all entries.
    pub fn phases(&self) -> impl Iterator<Item = Phase> {
        self.entries.iter().filter_map(Phase::of)
    }

    fn is_due_in(&mut self, time: Duration) {
        self.due = Some(self.due.map_or(time, |due| due.min(time)));
    }
}

/// Decides for which batches nodes are requested. `no_room` are those that lack room, and `placed` those that have a place.
pub(in crate::plan) fn plan_provision(
    group: &Group,
    view: &GroupView,
    (no_room, placed): (&BTreeMap<BatchId, NoRoom>, impl Fn(BatchId) -> bool),
    (keys, objects): (&[(usize, String)], &AwaitedObjects),
    context: ProvisionContext<'_>,
) -> ProvisionPlan {
    let mut plan = ProvisionPlan::default();
    let mut ahead = 0_u32;
    for (coordination, batching) in group.batched() {
        let Some(provision) = coordination.provision() else { continue };
        let index = coordination.index;
        let kind = provision.by.kind();
        // A command knows of the loop what it watches.
        let is_off = context.off || context.now.is_none() && objects.leaves_out(kind);
        if is_off || objects.knows_no(kind) {
            for (id, lacks) in no_room.iter().filter(|(id, _)| id.0 == index) {
                let message = text::off(lacks, (!is_off).then_some(kind));
                plan.told.insert(*id, Told { reason: HoldReason::NoRoom, message });
            }
            continue;
        }
        let name = coordination.display_name();
        let known =
            group.status.provisioning.iter().filter(|entry| entry.coordination == name).map(|entry| entry.batch);
        let lacking = no_room.keys().filter(|id| id.0 == index).map(|(_, batch)| *batch);
        let batches: BTreeSet<u32> = known.chain(lacking).collect();
        let total = view.possible_batches(batching);
        for batch in batches.into_iter().filter(|batch| *batch < total) {
            let one = One {
                group,
                view,
                coordination,
                batching,
                provision,
                batch,
                known: of_batch(&group.status.provisioning, coordination, batch),
                lacks: no_room.get(&(index, batch)),
                is_placed: placed((index, batch)),
                key: keys
                    .iter()
                    .find(|(of, _)| *of == index)
                    .map(|(_, key)| key.as_str())
                    .filter(|key| *key != CLUSTER_KEY),
                objects,
                context,
            };
            let may_ask = ahead < provision.max_segments_ahead;
            let entry = one.decide(may_ask, &mut plan);
            ahead += u32::from(one.lacks.is_some() || entry.as_ref().is_some_and(is_open));
            plan.entries.extend(entry);
        }
    }
    let kept = group.status.provisioning.iter().filter(|_| !context.off).filter(|entry| has_objects(entry));
    plan.keeps = kept.flat_map(|entry| objects_of(group, entry)).collect();
    if !context.off {
        let withdrawn = withdrawn(group, &plan.keeps, context);
        plan.entries.extend(withdrawn);
    }
    plan
}

/// Returns the entries of coordinations that no longer request nodes. They last until nothing is left but what is kept, since a
/// new leader looks for objects only where there is an entry.
fn withdrawn(
    group: &Group,
    keeps: &BTreeSet<(ObjectKind, String)>,
    context: ProvisionContext<'_>,
) -> impl Iterator<Item = ProvisioningState> {
    let is_left = context.present.is_none_or(|present| present.iter().any(|object| !keeps.contains(object)));
    let lasts = move |entry: &&ProvisioningState| {
        let mut requesting = group.batched().filter(|(coordination, _)| coordination.provision().is_some());
        let is_asked = requesting.any(|(coordination, _)| coordination.display_name() == entry.coordination);
        !is_asked && (context.rests || is_left || has_objects(entry))
    };
    let phase = move |entry: &ProvisioningState| {
        Some(Phase::Withdrawn.as_str()).filter(|_| !context.rests).unwrap_or(&entry.phase).to_owned()
    };
    let entries = group.status.provisioning.iter().filter(lasts);
    entries.map(move |entry| ProvisioningState { phase: phase(entry), ..entry.clone() })
}

/// Reports whether an entry counts for the batches ahead.
fn is_open(entry: &ProvisioningState) -> bool {
    matches!(Phase::of(entry), Some(Phase::Requested | Phase::GivenUp))
}

/// Reports whether the objects of an entry exist, or are to be created.
fn has_objects(entry: &ProvisioningState) -> bool {
    matches!(Phase::of(entry), Some(Phase::Requested | Phase::Placed))
}

/// One batch.
struct One<'a> {
    group: &'a Group,
    view: &'a GroupView,
    coordination: &'a Coordination,
    batching: &'a Batching,
    provision: &'a Provision,
    batch: u32,
    /// Its committed entry.
    known: Option<(Phase, &'a ProvisioningState)>,
    /// What it lacks; `None` where that is not known now, or where it has a place.
    lacks: Option<&'a NoRoom>,
    is_placed: bool,
    /// The node label of its domains.
    key: Option<&'a str>,
    objects: &'a AwaitedObjects,
    context: ProvisionContext<'a>,
}

impl One<'_> {
    /// Returns the entry to store; `None` without a request.
    fn decide(&self, may_ask: bool, plan: &mut ProvisionPlan) -> Option<ProvisioningState> {
        if let Some(lacks) = self.lacks.filter(|lacks| lacks.by_kueue) {
            plan.told.insert(self.id(), Told { reason: HoldReason::NoRoom, message: text::by_kueue(lacks) });
            return None;
        }
        if self.lacks.is_some() && self.known.is_none() {
            plan.lacking.insert(self.id());
        }
        let entry = self.next(may_ask, plan);
        let committed = self.known.map(|(_, known)| known).filter(|known| entry.as_ref() == Some(*known));
        match committed.and_then(|known| Some((Phase::of(known)?, known))) {
            Some((Phase::Requested, known)) => {
                let sets = self.lacks.and_then(|lacks| lacks.sets.as_deref()).filter(|sets| asks_for(known, sets));
                plan.makes.extend(sets.into_iter().flat_map(|sets| made_of(self.group, known, sets, self.key)));
            }
            Some((Phase::Placed, known)) => {
                plan.consumed.insert(self.id(), (request_name(self.group, known), known.class.clone()));
            }
            _ => {}
        }
        let told = self
            .lacks
            .zip(entry.as_ref())
            .and_then(|(lacks, entry)| text::of(self.group, entry, lacks, self.seen(entry)));
        plan.told.extend(told.map(|told| (self.id(), told)));
        entry
    }

    fn next(&self, may_ask: bool, plan: &mut ProvisionPlan) -> Option<ProvisioningState> {
        let known = self.known.map(|(_, entry)| entry);
        let Some(now) = self.context.now.filter(|_| !self.context.rests) else { return known.cloned() };
        match (self.known, self.lacks) {
            (Some((Phase::Placed, entry)), None) => (!self.is_bound()).then(|| entry.clone()),
            (Some((_, entry)), None) if self.is_placed || self.is_gone() => self.takes(entry),
            _ if !may_ask => None,
            (None | Some((Phase::Withdrawn, _)), None) => None,
            (None, Some(lacks)) => self.first(lacks, now, plan),
            (Some((Phase::Placed | Phase::Withdrawn, entry)), Some(lacks)) => {
                self.requested(lacks, entry.attempt, None, now)
            }
            (Some((Phase::GivenUp, entry)), lacks) => {
                let due = entry.not_before.as_deref().and_then(Moment::parse).filter(|due| *due > now);
                let edited = lacks.is_some_and(|lacks| self.is_edited(entry, lacks));
                match due.filter(|_| !edited) {
                    Some(due) => {
                        plan.is_due_in(now.until(due));
                        Some(entry.clone())
                    }
                    None => Some(self.again(lacks, entry, edited, now)),
                }
            }
            (Some((Phase::Requested, entry)), lacks) => {
                if lacks.is_some_and(|lacks| self.is_edited(entry, lacks)) {
                    return Some(self.again(lacks, entry, true, now));
                }
                let since = entry.since.as_deref().and_then(Moment::parse).unwrap_or(now);
                if let Some(why) = self.refusal(entry, (since, now)) {
                    return Some(self.given_up(entry, &why, now));
                }
                if let Some(why) = self.half_made(entry).filter(|_| since.after(DECIDED) <= now) {
                    // Nobody has looked for a domain with nodes for all.
                    let avoided = entry.avoided.clone();
                    return Some(ProvisioningState { avoided, ..self.given_up(entry, &why, now) });
                }
                if since.after(DECIDED) > now {
                    plan.is_due_in(now.until(since.after(DECIDED)));
                }
                let deadline = since.after(self.provision.deadline);
                if deadline <= now {
                    let missing = lacks.map(|lacks| lacks.why.clone()).unwrap_or_default();
                    return Some(self.given_up(entry, &text::overdue(self.provision.deadline, &missing), now));
                }
                plan.is_due_in(now.until(deadline));
                Some(entry.clone())
            }
        }
    }

    /// Begins a first request, once the batch has lacked room for the time that was asked for.
    fn first(&self, lacks: &NoRoom, now: Moment, plan: &mut ProvisionPlan) -> Option<ProvisioningState> {
        let waited = self.context.waited.iter().find(|(id, _)| *id == self.id()).map(|(_, waited)| *waited);
        let left = self.provision.after.saturating_sub(waited.unwrap_or_default());
        if !left.is_zero() {
            plan.is_due_in(left);
            return None;
        }
        self.requested(lacks, 0, None, now)
    }

    /// Begins another request after one that was given up or whose pods were edited.
    fn again(&self, lacks: Option<&NoRoom>, entry: &ProvisioningState, edited: bool, now: Moment) -> ProvisioningState {
        let avoided = Some(entry.avoided.as_slice()).filter(|_| !edited);
        let requested = lacks.and_then(|lacks| self.requested(lacks, entry.attempt, avoided, now));
        requested.unwrap_or_else(|| entry.clone())
    }

    /// Returns the entry of a request after `done` others. Without earlier experience, domains with room for a part are avoided.
    fn requested(
        &self,
        lacks: &NoRoom,
        done: u32,
        avoided: Option<&[String]>,
        now: Moment,
    ) -> Option<ProvisioningState> {
        let sets = lacks.sets.as_ref().filter(|sets| !sets.is_empty())?;
        let before = self.known.map_or(&[][..], |(_, known)| &known.resources);
        let resources: BTreeSet<_> = lacks.counted.iter().chain(before).cloned().collect();
        Some(ProvisioningState {
            coordination: self.coordination.display_name(),
            batch: self.batch,
            phase: Phase::Requested.as_str().to_owned(),
            attempt: done.saturating_add(1),
            by: self.provision.by.kind().kind.to_owned(),
            class: self.class().to_owned(),
            pod_sets: sets.iter().map(|set| set.requested.clone()).collect(),
            resources: resources.into_iter().collect(),
            since: Some(now.text()),
            avoided: avoided.map_or_else(|| lacks.partial.iter().cloned().collect(), <[String]>::to_vec),
            ..ProvisioningState::default()
        })
    }

    /// Returns the entry of a request that was in vain. The domains that have room for a part now are avoided as well; if there is
    /// none but those that were avoided, none is.
    fn given_up(&self, entry: &ProvisioningState, why: &str, now: Moment) -> ProvisioningState {
        let partial = self.lacks.into_iter().flat_map(|lacks| &lacks.partial);
        let more: Vec<_> = partial.filter(|domain| !entry.avoided.contains(domain)).cloned().collect();
        let known = entry.avoided.iter().filter(|_| !more.is_empty());
        let avoided = known.chain(&more).cloned().collect();
        ProvisioningState {
            phase: Phase::GivenUp.as_str().to_owned(),
            since: Some(now.text()),
            not_before: Some(now.after(pause(entry.attempt)).text()),
            avoided,
            message: why.to_owned(),
            ..entry.clone()
        }
    }

    /// Returns the entry of a batch that goes, which lasts if its pods consume the request.
    fn takes(&self, entry: &ProvisioningState) -> Option<ProvisioningState> {
        let stays = by(entry) == ProvisionBy::ProvisioningRequest && has_objects(entry) && !self.is_bound();
        stays.then(|| ProvisioningState { phase: Phase::Placed.as_str().to_owned(), ..entry.clone() })
    }

    /// Reports whether an edit has changed what is asked for.
    fn is_edited(&self, entry: &ProvisioningState, lacks: &NoRoom) -> bool {
        let same = entry.by == self.provision.by.kind().kind && entry.class == self.class();
        !same || lacks.sets.as_deref().is_some_and(|sets| !asks_for(entry, sets))
    }

    fn class(&self) -> &str {
        if self.provision.by == ProvisionBy::ProvisioningRequest { &self.provision.class } else { "" }
    }

    /// Returns the condition by which the autoscaler refuses the request. Karpenter keeps to a rack that cannot hold all pods of a
    /// CapacityBuffer, and says only in the message that it has no place for some.
    fn refusal(&self, entry: &ProvisioningState, (since, now): (Moment, Moment)) -> Option<String> {
        let seen = self.seen(entry).ok()?;
        let is_decided = since.after(DECIDED) <= now;
        let refuses = |condition: &&SeenCondition| match by(entry) {
            ProvisionBy::ProvisioningRequest => {
                let is_nowhere = is_decided && *condition.reason == *NOT_FOUND && !entry.avoided.is_empty();
                is_nowhere || condition.is_true && REFUSALS.contains(&&*condition.kind)
            }
            ProvisionBy::CapacityBuffer => {
                let waits = *condition.kind == *PROVISIONING && !condition.is_true;
                is_decided && waits && has_failed(&condition.message)
            }
        };
        seen.iter().find(refuses).map(text::condition)
    }

    /// Returns why an object of the request cannot be created, if another one asks for nodes, of which a part is of no use.
    fn half_made(&self, entry: &ProvisioningState) -> Option<String> {
        let all = objects_of(self.group, entry);
        let (kind, (name, why)) = self.uncreated(&all)?;
        let asks = |(of, other): &(ObjectKind, String)| *of == by(entry).kind() && self.uncreated_why(other).is_none();
        all.iter().any(asks).then(|| cannot_be_created(kind, name, why))
    }

    /// Returns the first of these objects that cannot be created, and why.
    fn uncreated(&self, objects: &[(ObjectKind, String)]) -> Option<(ObjectKind, (&str, &str))> {
        objects.iter().rev().find_map(|(kind, name)| Some((*kind, self.uncreated_why(name)?)))
    }

    fn uncreated_why(&self, name: &str) -> Option<(&str, &str)> {
        self.context.missing.iter().find(|(missing, _)| *missing == name).copied()
    }

    /// Returns the conditions of the request, of CapacityBuffers those of the first that is not provisioned; or why there are
    /// none.
    fn seen(&self, entry: &ProvisioningState) -> Result<Vec<SeenCondition>, String> {
        let (kind, all) = (by(entry).kind(), objects_of(self.group, entry));
        if let Some((kind, (name, why))) = self.uncreated(&all) {
            return Err(cannot_be_created(kind, name, why));
        }
        let names: Vec<_> = all.into_iter().filter(|(of, _)| *of == kind).map(|(_, name)| name).collect();
        self.objects.conditions(kind, &names)
    }

    fn is_all(&self, what: ReplicaIs) -> bool {
        self.view.ranges(self.batching, self.batch).all(|(_, role, ordinals)| role.all_in(ordinals, what))
    }

    fn is_bound(&self) -> bool {
        self.is_all(ReplicaIs::Scheduled)
    }

    /// Reports whether its pods were released, whoever did it.
    fn is_gone(&self) -> bool {
        self.is_all(ReplicaIs::Released)
    }

    const fn id(&self) -> BatchId {
        (self.coordination.index, self.batch)
    }
}

fn cannot_be_created(kind: ObjectKind, name: &str, why: &str) -> String {
    format!("{} {name:?} cannot be created: {why}", kind.kind)
}

/// Reports whether a message says that some pods have no place: `2/5 virtual pods required new capacity, 3 failed`.
fn has_failed(message: &str) -> bool {
    let failed = message.strip_suffix(" failed").and_then(|rest| rest.rsplit(' ').next());
    failed.and_then(|count| count.parse::<u32>().ok()).is_some_and(|count| count > 0)
}

fn asks_for(entry: &ProvisioningState, sets: &[PodSet]) -> bool {
    let requested: Vec<&RequestedPods> = sets.iter().map(|set| &set.requested).collect();
    entry.pod_sets.iter().collect::<Vec<_>>() == requested
}
