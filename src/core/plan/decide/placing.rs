//! Placement of batches that must share a domain: all pods of a batch go into one domain with room for them, or none go. The
//! domain is committed before the first pod is released; later pods follow it.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use crate::api::status::CoordinationState;
use crate::model::batching::{CLUSTER, CLUSTER_KEY, PlacedIn};
use crate::model::{Batching, Coordination, Domain, Group, HoldReason, Queued};
use crate::plan::decide::DecisionContext;
use crate::plan::decide::decision::Release;
use crate::plan::decide::growing::may_grow;
use crate::plan::decide::held::{CoordinationRef, Held};
use crate::plan::decide::held_pods::HeldPods;
use crate::plan::decide::placed::{Awaits, Domains, GivenUp, Moved, Placed, Refused, pin};
use crate::plan::decide::strays::{Split, Unnumbered};
use crate::plan::decide::together::going_with;
use crate::plan::decide::unjudged::{unjudged, without_domain};
use crate::plan::decide::without_place::stay_together;
use crate::plan::placement::line::Closed;
use crate::plan::placement::{Answer, Needs, NoFit, Placer, Request, Within};
use crate::plan::provision::NoRoom;
use crate::plan::provision::entry::{Sample, Sorts, awaited_resources};
use crate::plan::recovery::entry::{Phase, of_batch};
use crate::plan::recovery::{BatchId, RecoveryPlan};
use crate::plan::view::{GroupView, HeldPod, PodFacts, PodRef, ReplicaIs, count};

/// Places the pods that may go. Pods without a place are removed from `release` and explained in the result.
pub(super) fn place(
    group: &Group,
    view: &GroupView,
    release: &mut Vec<Release>,
    (context, recovery): (DecisionContext<'_>, &RecoveryPlan),
    mut placer: Option<&mut Placer<'_>>,
) -> (Placed, Vec<Held>) {
    let by_domain = placer.as_ref().is_some_and(|placer| placer.refused().is_none());
    // The cluster comes last: pods that share a domain with others have their place by then.
    let mut hard: Vec<_> = group.batched().filter(|(_, batching)| batching.placed_in().is_some()).collect();
    let mut given = Placed { by_domain, ..Placed::default() };
    hard.sort_by_key(|(_, batching)| batching.placed_in() == Some(PlacedIn::Cluster));
    for (coordination, batching) in hard.iter().copied() {
        let mut domains = stored(group, coordination, batching, view);
        if let Some(key) = context.domain_key(coordination.index) {
            Unnumbered { view, batching, key }.correct(&mut domains, placer.as_deref());
        }
        domains.retain(|batch, _| !recovery.placed_anew.contains(&(coordination.index, *batch)));
        given.domains.insert(coordination.index, domains);
    }
    let committed = given.domains.clone();
    let mut held = Vec::new();
    for (coordination, batching) in hard {
        let (Some(key), Some(placer)) = (context.domain_key(coordination.index), placer.as_deref_mut()) else {
            continue;
        };
        let mut placing = Placing {
            group,
            view,
            coordination,
            batching,
            key,
            context,
            recovery,
            is_scaled: group.scaled().is_some(),
            placer,
            placed: &mut given,
            held: BTreeMap::new(),
            out: HashSet::new(),
        };
        // First: a new leader does not know yet which room these pods take.
        placing.pods_that_went();
        placing.pods_that_may_go(release);
        placing.pods_elsewhere();
        let Placing { held: of_coordination, out, .. } = placing;
        release.retain(|release| !out.contains(&release.pod.pod.uid));
        held.extend(of_coordination.into_values());
    }
    stay_together(group, view, release, (&mut held, &mut given), (&committed, placer.as_deref_mut()));
    given.unjudged = unjudged(group, view, &given, context, placer.as_deref());
    (given, held)
}

/// Returns the domains in the status of existing batches.
fn stored(group: &Group, coordination: &Coordination, batching: &Batching, view: &GroupView) -> Domains {
    let total = view.possible_batches(batching);
    let domains =
        group.status.coordination(&coordination.display_name()).into_iter().flat_map(CoordinationState::domains);
    domains.filter(|(index, _)| *index < total).map(|(index, domain)| (index, domain.to_owned())).collect()
}

/// Texts on placed pods without a node, if these may be deleted.
const MADE_AGAIN: &str = "they are deleted, made again and placed again";
const MADE_AGAIN_LATER: &str = "they were made again already, and are once more later";
/// Texts on pods of a batch in another domain, if these may be deleted; one is lost to a batch that recovers.
const AS_A_WHOLE: &str = "it is recreated there as a whole, when all replicas are ready and there is room";
const ONE_AT_A_TIME: &str = "they are recreated there one at a time, when all replicas are ready and there is room";
/// The maximum number of pods named in a command.
const NAMED: usize = 20;
/// The maximum number of replicas of a role by which a batch is taken to grow.
const MOST_GROWN: usize = 1_000;
/// The penalty of a domain in which pods of the batch got no node: it comes after all others.
const GIVEN_UP: u32 = 1 << 16;

/// One coordination whose batches are placed.
struct Placing<'a, 'b> {
    group: &'a Group,
    view: &'a GroupView,
    coordination: &'a Coordination,
    batching: &'a Batching,
    key: &'a str,
    context: DecisionContext<'a>,
    recovery: &'a RecoveryPlan,
    /// Whether room may have been kept for its batches before their pods existed.
    is_scaled: bool,
    placer: &'a mut Placer<'b>,
    placed: &'a mut Placed,
    held: BTreeMap<HoldReason, Held>,
    /// The uids of pods that are not released.
    out: HashSet<Arc<str>>,
}

impl<'a> Placing<'a, '_> {
    fn pods_that_may_go(&mut self, release: &mut [Release]) {
        let mut batches: BTreeMap<u32, Vec<&mut Release>> = BTreeMap::new();
        let mut beside: BTreeMap<u32, Vec<&mut Release>> = BTreeMap::new();
        for release in release {
            if let Some(index) = self.batching.batch_of(release.pod.role(), release.pod.ordinal) {
                batches.entry(index).or_default().push(release);
            } else if let Some(index) = self.beside(&release.pod) {
                beside.entry(index).or_default().push(release);
            }
        }
        if let (Some(why), false) = (self.placer.refused().map(str::to_owned), batches.is_empty()) {
            let first = batches.keys().next().copied().unwrap_or_default();
            let message = format!("{} goes without a place: {why}", self.batching.batch_name(first));
            self.hold(HoldReason::RoomUnknown, first, &message, &[]);
            return;
        }
        let mut is_full = None;
        for (index, releases) in batches {
            // Beside pods that are still to be deleted, they would go to the domain that these leave.
            let made_again = &self.placed.made_again;
            if made_again.is_empty() || self.facts_of(index, |pod| made_again.contains(&pod.pod)).is_empty() {
                self.batch(index, releases, beside.remove(&index).unwrap_or_default(), &mut is_full);
            } else {
                let pods: Vec<_> = releases.iter().map(|release| release.pod.clone()).collect();
                let message = "the others of its pods that got no node are deleted first";
                let message = format!("{} is held: {message}", self.batching.batch_name(index));
                self.hold(HoldReason::PlacedNotBound, index, &message, &pods);
            }
        }
    }

    /// Places the pods of a batch. The pods in `beside` share replicas with it through another coordination, and may move for it.
    fn batch(&mut self, index: u32, releases: Vec<&mut Release>, beside: Vec<&mut Release>, is_full: &mut Option<u32>) {
        let others = self.pods_of(index, |pod| !pod.held || self.may_have_gone(&pod.pod.uid));
        let mut releases = self.let_go_by_others(index, releases, others.is_empty());
        if releases.is_empty() {
            return;
        }
        releases.retain(|release| !self.is_in_domain(&release.pod));
        if releases.is_empty() {
            self.placed.domains.entry(self.coordination.index).or_default().insert(index, CLUSTER.to_owned());
            return;
        }
        let pods: Vec<_> = releases.iter().map(|release| release.pod.clone()).collect();
        let committed = self.domains().get(&index).cloned();
        let name = self.batching.batch_name(index);
        let given_up = self.given_up(index).map(|known| known.domain.as_str()).filter(|_| others.is_empty());
        if let Some(before) = is_full.filter(|_| others.is_empty() && committed.is_none()) {
            let message = format!("{name} is held: {} does not fit", self.batching.batch_name(before));
            self.lacks_room(index, &message);
            return self.hold(HoldReason::NoRoom, index, &message, &pods);
        }
        let uids: Vec<_> = pods.iter().map(|pod| pod.pod.uid.clone()).collect();
        let sent: Vec<_> = uids.iter().filter(|uid| self.may_have_gone(uid)).cloned().collect();
        let mut used = used(self.batching, self.domains(), index);
        given_up.into_iter().for_each(|domain| *used.entry(domain.to_owned()).or_default() += GIVEN_UP);
        if self.is_scaled {
            self.placer.are_made(self.coordination.index, index);
        }
        let refused_by = self.refused_by(index);
        let grown = if others.is_empty() && committed.is_none() { self.grown(index) } else { Vec::new() };
        let request = Request {
            pods: &uids,
            needs: None,
            others: &others,
            sent: &sent,
            key: self.key,
            committed: committed.as_deref().filter(|_| given_up.is_none()),
            used: &used,
            grown: &grown,
            refused_by: &refused_by,
            awaits: awaited_resources(&self.group.status.provisioning, self.coordination, index),
            goes_with_others: self.group.batched().nth(1).is_some()
                && going_with(self.group, self.view, (self.coordination.index, index)).len() > 1,
            when_no_fit: self.coordination.when_no_fit(),
        };
        let mut answer = self.placer.place(&request);
        if matches!(answer, Answer::NoRoom { .. }) && others.is_empty() && !beside.is_empty() {
            let all: Vec<_> = uids.iter().chain(beside.iter().map(|release| &release.pod.pod.uid)).cloned().collect();
            let together = self.placer.place(&Request { pods: &all, ..request });
            if matches!(together, Answer::To { .. }) {
                answer = together;
                releases.extend(beside);
            }
        }
        match answer {
            Answer::To { domain, hosts } => {
                let is_committed = self.is_stored(index, &domain);
                for (release, host) in releases.into_iter().zip(hosts) {
                    release.at_once &= is_committed;
                    release.pin = pin(self.key, &domain, host);
                }
                if let Some(before) = committed.filter(|before| *before != domain) {
                    let why = match () {
                        () if given_up == Some(&*before) => format!("its pods got no node in {before}"),
                        () if self.placer.may_have_domain(self.key, &before) => {
                            format!("it does not fit into {before} any more")
                        }
                        () => format!("no node is in {before} any more"),
                    };
                    let message = format!("{name} goes to {domain}: {why}");
                    let coordination = CoordinationRef::from(self.coordination);
                    self.placed.moved.push(Moved { coordination, index, message });
                }
                self.placed.domains.entry(self.coordination.index).or_default().insert(index, domain);
                if let Some(why) = self.placer.blind_to(&uids, false) {
                    let message = format!("{name} goes without a look at {why}");
                    self.hold(HoldReason::RoomUnknown, index, &message, &[]);
                }
            }
            Answer::NoRoom { why, closed } => {
                *is_full = Some(index);
                let why = no_room(self.batching, self.key, index, &why, (closed.as_ref(), &self.group.key.namespace));
                if others.is_empty() {
                    self.lacks_room(index, &why);
                }
                self.hold(HoldReason::NoRoom, index, &why, &pods);
            }
            Answer::AfterOthers => {
                (*is_full, self.placed.is_next) = (Some(index), true);
                let message = format!("{name} is held: others that come before it are looked at first");
                self.hold(HoldReason::RoomUnknown, index, &message, &pods);
            }
            Answer::NotYet => {
                let message = "what room there is, is not known yet";
                self.hold(HoldReason::RoomUnknown, index, &format!("{name} is held: {message}"), &pods);
            }
            Answer::WithoutDomain => {
                self.hold(HoldReason::RoomUnknown, index, &without_domain(self.batching, index, self.key), &[]);
            }
            Answer::Anywhere => {}
        }
    }

    /// Returns the batch beside whose pods a pod goes: a batch of another coordination, which is placed in the cluster as well and
    /// shares replicas with it.
    fn beside(&self, pod: &HeldPod) -> Option<u32> {
        let in_cluster = |batching: &Batching| batching.placed_in() == Some(PlacedIn::Cluster);
        let mut batches = self.group.batches_of(pod.role(), pod.ordinal);
        let found = batches.find(|batch| {
            let with = || going_with(self.group, self.view, (self.coordination.index, batch.index));
            in_cluster(self.batching)
                && in_cluster(batch.batching)
                && with().contains(&(batch.coordination.index, batch.index))
        });
        found.map(|batch| batch.index)
    }

    /// Reports whether another coordination places the pod in a domain, for a coordination that places it in the cluster.
    fn is_in_domain(&self, pod: &HeldPod) -> bool {
        let in_domain = |batching: &Batching| matches!(batching.placed_in(), Some(PlacedIn::Domain(_)));
        let mut batches = self.group.batches_of(pod.role(), pod.ordinal).filter(|batch| in_domain(batch.batching));
        self.key == CLUSTER_KEY && batches.any(|batch| self.context.domain_key(batch.coordination.index).is_some())
    }

    /// Returns what the replicas need by which a cut batch may still grow, as far as other replicas of their roles show it.
    fn grown(&self, index: u32) -> Vec<Arc<Needs>> {
        if self.key == CLUSTER_KEY || !may_grow(self.group, self.view, self.batching, index) {
            return Vec::new();
        }
        let mut grown = Vec::new();
        for (name, role, ordinals) in self.view.ranges(self.batching, index) {
            let missing = self.batching.size(name).unwrap_or(0).saturating_sub(count(ordinals.len()));
            let replica = role.replicas.pods().next().map_or(0, |(ordinal, _)| ordinal);
            let replica =
                role.replicas.pods_of(replica).iter().map(|pod| self.placer.needs_wherever(&pod.pod.uid, self.key));
            let replica = replica.collect::<Option<Vec<_>>>().unwrap_or_default();
            (0..missing).take(MOST_GROWN).for_each(|_| grown.extend(replica.iter().cloned()));
        }
        grown
    }

    /// Notes that a batch of which nothing runs lacks room, for nodes to be requested, and whether it had a place.
    fn lacks_room(&mut self, index: u32, why: &str) {
        if self.domains().contains_key(&index) {
            self.placed.displaced.insert((self.coordination.index, index));
        }
        if self.coordination.requests_nodes() {
            let by_kueue = !self.pods_of(index, |pod| pod.held && pod.queued == Queued::Provisioned).is_empty();
            let lacks = NoRoom { by_kueue, ..NoRoom::of(self.sorts(index), self.key, self.placer, why) };
            self.placed.no_room.insert((self.coordination.index, index), lacks);
        }
    }

    /// Returns the pods of a batch by sort; `None` while they do not all exist, or are not known.
    fn sorts(&self, index: u32) -> Option<Sorts> {
        let mut sorts = Sorts::default();
        for (name, role, ordinals) in self.view.ranges(self.batching, index) {
            if !role.all_in(ordinals.clone(), ReplicaIs::Complete) {
                return None;
            }
            for pod in ordinals.flat_map(|ordinal| role.replicas.pods_of(ordinal)) {
                sorts.add(name, self.placer.needs_of(&pod.pod.uid)?, 1, || Sample::Pod(pod.pod.clone()));
            }
        }
        Some(sorts)
    }

    /// Removes the pods that Kueue still holds, and returns the others. When Kueue admits pods it may choose their nodes, which
    /// need not be in a domain that was chosen before. A whole batch waits for the last of its pods.
    fn let_go_by_others<'r>(
        &mut self,
        index: u32,
        releases: Vec<&'r mut Release>,
        is_whole: bool,
    ) -> Vec<&'r mut Release> {
        let kept = releases.iter().filter(|release| release.pod.queued == Queued::Waits).count();
        if kept == 0 {
            return releases;
        }
        let stays = |release: &&mut Release| is_whole || release.pod.queued == Queued::Waits;
        let (stay, go): (Vec<_>, Vec<_>) = releases.into_iter().partition(stays);
        let pods: Vec<_> = stay.iter().map(|release| release.pod.clone()).collect();
        let name = self.batching.batch_name(index);
        let message = match kept {
            1 => format!("{name} is held: one of its pods waits for Kueue, which may say on which nodes it runs"),
            _ => format!("{name} is held: {kept} of its pods wait for Kueue, which may say on which nodes they run"),
        };
        self.hold(HoldReason::GatedByOthers, index, &message, &pods);
        go
    }

    /// Keeps room for released pods without a node, until they have waited for long, and for bound pods that the watch of room
    /// has not shown yet.
    fn pods_that_went(&mut self) {
        let roles = || self.batching.sizes.keys().filter_map(|name| self.view.roles.get(name));
        self.placed.needs_room |= roles().any(|role| !role.replicas.none_but(.., ReplicaIs::Scheduled));
        if !self.placed.needs_room {
            return;
        }
        self.adopt_domains();
        for (index, domain) in self.domains().clone() {
            let unseen = self.pods_of(index, |pod| !pod.held && pod.scheduled && self.placer.lacks(&pod.pod.uid));
            if !unseen.is_empty() {
                self.placer.keep(&unseen, self.key, &domain);
            }
            if self.is_bound(index) {
                continue;
            }
            let without = self.facts_of(index, |pod| !pod.held && !pod.scheduled);
            if without.is_empty() {
                continue;
            }
            let awaits = if without.iter().any(|pod| pod.gated) { Awaits::Gates } else { Awaits::Node };
            let wait = (self.coordination.index, index, awaits);
            self.placed.waits.insert(wait);
            let pods: Vec<_> = without.iter().map(|pod| pod.pod.uid.clone()).collect();
            if self.context.waited.contains(&wait) {
                self.placer.give_up(&pods);
                self.has_waited(index, &domain, &without);
            } else {
                self.placer.keep(&pods, self.key, &domain);
            }
        }
    }

    /// Handles a placed batch of which these pods got no node in time.
    fn has_waited(&mut self, index: u32, domain: &str, without: &[Arc<PodFacts>]) {
        let gated: Vec<_> = without.iter().filter(|pod| pod.gated).collect();
        let next = if let Some(first) = gated.first() {
            self.held_by_others(gated.len(), &first.pod)
        } else {
            self.turned_down(index, domain, without);
            format!("{}{}", said(without), self.make_again(index, domain, without))
        };
        let (name, count) = (self.batching.batch_name(index), without.len());
        let (within, there) =
            if self.key == CLUSTER_KEY { (String::new(), "") } else { (format!(" in {domain}"), " there") };
        let message = format!("{name} was placed{within}, and {count} of its pods have no node{there}; {next}");
        self.hold(HoldReason::PlacedNotBound, index, &message, &[]);
    }

    /// Notes the nodes that the scheduler refuses to these pods although they have room there: it looks at more than is modelled.
    /// Where the batch avoids a node of the domain for another pod, that is all of its nodes.
    fn turned_down(&mut self, index: u32, domain: &str, without: &[Arc<PodFacts>]) {
        let batch = (self.coordination.index, index);
        let of_batch = self.context.refusing.iter().filter(|known| known.batch == batch);
        let known: Vec<_> = of_batch.filter_map(|known| Some((known.pod.as_ref()?, self.unchanged(known)))).collect();
        let in_domain = if self.key == CLUSTER_KEY { Vec::new() } else { self.placer.nodes_in(self.key, domain) };
        let told = without.iter().filter_map(|pod| Some((&pod.pod, pod.unschedulable.clone()?)));
        for (pod, why) in told.filter(|(_, why)| is_of_nodes(why)) {
            let mut nodes = self.placer.open_to(&pod.uid, self.key, domain);
            if nodes.is_empty() {
                continue;
            }
            if let Some((_, own)) = known.iter().find(|(of, own)| *of == pod && !own.is_empty()) {
                nodes.clone_from(own);
            } else if known.iter().any(|(_, others)| others.iter().any(|node| in_domain.contains(node))) {
                nodes.clone_from(&in_domain);
            }
            let nodes = nodes.into_iter().map(|node| (node.clone(), self.placer.state_of(&node))).collect();
            self.placed.turned_down.push(Refused { batch, pod: Some(pod.clone()), why, nodes });
        }
    }

    /// Returns the nodes that are as they were when they were refused.
    fn unchanged(&self, known: &Refused) -> Vec<Arc<str>> {
        let is_same =
            |(node, state): &(&Arc<str>, &Option<u64>)| state.is_none() || self.placer.state_of(node) == **state;
        known.nodes.iter().filter(is_same).map(|(node, _)| node.clone()).collect()
    }

    /// Has pods recreated, if they may be deleted, so that they go elsewhere; returns a text on that.
    fn make_again(&mut self, index: u32, domain: &str, without: &[Arc<PodFacts>]) -> String {
        let without: Vec<_> = without.iter().map(|pod| pod.pod.clone()).collect();
        // Pods that were recreated already wait longer.
        let known = self.given_up(index).filter(|known| known.domain == domain);
        let is_due = |pod: &&PodRef| known.is_none_or(|known| known.pods.contains(&pod.uid));
        let again: Vec<_> = without.iter().filter(is_due).cloned().collect();
        let next = match () {
            () if self.context.recovery.off => self.way_out(&without),
            () if again.is_empty() => MADE_AGAIN_LATER.to_owned(),
            () => MADE_AGAIN.to_owned(),
        };
        if let Some(next) = self.moves(index, domain, &without) {
            return next;
        }
        if !self.context.recovery.off {
            self.placed.made_again.extend(again);
        }
        let pods = without.into_iter().map(|pod| pod.uid).collect();
        let given_up = GivenUp { domain: domain.to_owned(), pods };
        self.placed.given_up.insert((self.coordination.index, index), given_up);
        next
    }

    /// Has a batch moved as a whole if others of its pods are bound, and these have no room in its domain; returns a text on that.
    /// Nothing is deleted unless another domain has room for all of it.
    fn moves(&mut self, index: u32, domain: &str, without: &[PodRef]) -> Option<String> {
        let all = self.facts_of(index, |pod| !pod.held);
        let runs = |pod: &Arc<PodFacts>| pod.scheduled && self.placer.runs_in(&pod.pod.uid, self.key) == Some(domain);
        if self.key == CLUSTER_KEY || !all.iter().any(runs) {
            return None;
        }
        let refused_by = self.refused_by(index);
        let needs = |pod: &Arc<PodFacts>| {
            let needs = self.placer.needs_wherever(&pod.pod.uid, self.key)?;
            Some(Arc::new(Needs { refused_by: refused_by.clone(), ..(*needs).clone() }))
        };
        let rest = all.iter().filter(|pod| without.contains(&pod.pod)).map(needs);
        if self.placer.room_for(&rest.collect::<Option<Vec<_>>>()?, self.key, Within::Only(domain)).is_some() {
            return None;
        }
        let no_room =
            if refused_by.is_empty() { "they have no room there" } else { "no other node there has room for them" };
        let needs: Option<Vec<_>> = all.iter().map(needs).collect();
        let Some(to) = self.placer.room_for(&needs?, self.key, Within::AnyBut(domain)) else {
            return Some(format!("{no_room}, and no other domain has room for all of it, so nothing is deleted"));
        };
        if self.context.recovery.off {
            let all: Vec<_> = all.iter().map(|pod| pod.pod.clone()).collect();
            return Some(format!("{no_room}, and {to} has room for all of it: {}", self.way_out(&all)));
        }
        let pods = all.iter().map(|pod| pod.pod.uid.clone()).collect();
        self.placed.given_up.insert((self.coordination.index, index), GivenUp { domain: domain.to_owned(), pods });
        self.placed.moves.insert((self.coordination.index, index));
        let entry = of_batch(&self.group.status.recoveries, self.coordination, index);
        let next = match entry.map(|(phase, _)| phase) {
            Some(Phase::Exhausted) => "it was recreated as often as `recovery.limit` allows",
            _ => "it is recreated as a whole",
        };
        Some(format!("{no_room}, and {to} has room for all of it: {next}"))
    }

    /// Tells of the first batch in several domains, and has one of its pods recreated where it belongs, if that may be.
    fn pods_elsewhere(&mut self) {
        let unnumbered = Unnumbered { view: self.view, batching: self.batching, key: self.key };
        let splits = unnumbered.splits(self.domains(), self.placer);
        let Some(Split { batch, domain, elsewhere }) = splits.first() else { return };
        let racks: Vec<_> = elsewhere.keys().map(String::as_str).collect();
        let pods: Vec<_> = elsewhere.values().flatten().map(|pod| pod.pod.clone()).collect();
        let mut strays = elsewhere.values().flatten();
        let may_delete = !self.context.recovery.off
            && self.context.faults.is_empty()
            && !self.recovery.brake.is_paused()
            && strays.any(|pod| unnumbered.was_released(pod));
        let next = match self.batching.recovers() {
            _ if !may_delete => self.way_out(&pods),
            Some(_) => AS_A_WHOLE.to_owned(),
            None => ONE_AT_A_TIME.to_owned(),
        };
        let (name, count) = (self.batching.batch_name(*batch), pods.len());
        let message = format!("{name} is in {domain}, and {count} of its pods in {}; {next}", racks.join(" and "));
        self.hold(HoldReason::BatchSplit, *batch, &message, &[]);
        if may_delete {
            self.placed.needs_room = true;
            self.placed.stray = unnumbered.next(&splits, self.placer).map(|pod| pod.pod.clone());
        }
    }

    /// Adopts the domain that released pods ask for, if their batch has no committed one: its group was recreated or has lost
    /// its status.
    fn adopt_domains(&mut self) {
        let mut adopted = Domains::new();
        for (name, role) in self.batching.sizes.keys().filter_map(|name| Some((name, self.view.roles.get(name)?))) {
            for (ordinal, pod) in role.replicas.unbound().filter(|(ordinal, _)| *ordinal < role.desired) {
                let Some(index) = self.batching.batch_of(name, ordinal) else { continue };
                let is_placed_anew = self.recovery.placed_anew.contains(&(self.coordination.index, index));
                if self.domains().contains_key(&index) || is_placed_anew {
                    continue;
                }
                if let Some(domain) = self.placer.asked_domain(&pod.pod.uid, self.key) {
                    adopted.entry(index).or_insert_with(|| domain.to_owned());
                }
            }
        }
        self.placed.domains.entry(self.coordination.index).or_default().extend(adopted);
    }

    /// Reports whether the status has this domain of a batch: `domains` has corrections that are not written yet.
    fn is_stored(&self, index: u32, domain: &str) -> bool {
        let state = self.group.status.coordination(&self.coordination.display_name());
        state.is_some_and(|state| state.domains().any(|stored| stored == (index, domain)))
    }

    fn is_bound(&self, index: u32) -> bool {
        let mut ranges = self.view.ranges(self.batching, index);
        ranges.all(|(_, role, ordinals)| role.replicas.none_but(ordinals, ReplicaIs::Scheduled))
    }

    /// Returns the domain in which a batch got no node in time, and which it avoids for a while.
    fn given_up(&self, index: u32) -> Option<&'a GivenUp> {
        let id = (self.coordination.index, index);
        self.context.given_up.iter().find(|(of, _)| *of == id).map(|(_, given_up)| given_up)
    }

    /// Returns the nodes that kubelets or the scheduler refused to pods of a batch.
    fn refused_by(&self, index: u32) -> Vec<Arc<str>> {
        let id = (self.coordination.index, index);
        let all = self.context.refusing.iter().chain(&self.placed.turned_down).filter(|known| known.batch == id);
        all.flat_map(|known| self.unchanged(known)).collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// Returns advice for placed pods without a node.
    fn way_out(&self, pods: &[PodRef]) -> String {
        let named: Vec<_> = pods.iter().take(NAMED).map(|pod| &*pod.name).collect();
        let more = if pods.len() > NAMED { " and the others" } else { "" };
        let namespace = &self.group.key.namespace;
        format!("`kubectl delete pod -n {namespace} {}`{more} has them placed again", named.join(" "))
    }

    /// Returns advice for pods that other gates hold.
    fn held_by_others(&self, count: usize, first: &PodRef) -> String {
        let explain = format!("rolegate explain pod -n {} {}", self.group.key.namespace, first.name);
        format!("scheduling gates of others hold {count} of them (`{explain}` names the gates)")
    }

    /// Returns the uids of the pods of a batch that pass `which`.
    fn pods_of(&self, index: u32, which: impl Fn(&PodFacts) -> bool) -> Vec<Arc<str>> {
        self.facts_of(index, which).iter().map(|pod| pod.pod.uid.clone()).collect()
    }

    /// Returns the pods of a batch that pass `which`.
    fn facts_of(&self, index: u32, which: impl Fn(&PodFacts) -> bool) -> Vec<Arc<PodFacts>> {
        let mut found = Vec::new();
        for (_, role, ordinals) in self.view.ranges(self.batching, index) {
            for ordinal in ordinals {
                found.extend(role.replicas.pods_of(ordinal).iter().filter(|pod| which(pod)).cloned());
            }
        }
        found
    }

    /// Reports whether the release of a held pod is in flight, or was refused with unknown effect.
    fn may_have_gone(&self, uid: &str) -> bool {
        let DecisionContext { in_flight, refused, .. } = self.context;
        in_flight.is_some_and(|in_flight| in_flight.contains(uid))
            || refused.is_some_and(|refused| refused.contains_key(uid))
    }

    fn domains(&self) -> &Domains {
        const NONE: &Domains = &Domains::new();
        self.placed.domains.get(&self.coordination.index).unwrap_or(NONE)
    }

    /// Notes why pods are not released: one entry for each reason, with the message of the first batch.
    fn hold(&mut self, reason: HoldReason, index: u32, message: &str, pods: &[HeldPod]) {
        let entry = self.held.entry(reason).or_insert_with(|| {
            Held::of((Some(self.coordination), Some(index)), reason, message.to_owned(), HeldPods::default())
        });
        entry.pods.extend(pods);
        self.out.extend(pods.iter().map(|pod| pod.pod.uid.clone()));
    }
}

/// Reports whether the scheduler counts the nodes that do not take a pod: otherwise the pod lacks something wherever it goes.
fn is_of_nodes(why: &str) -> bool {
    let reasons = why.split_once(" nodes are available: ").map(|(_, reasons)| reasons);
    reasons.is_some_and(|reasons| reasons.starts_with(|first: char| first.is_ascii_digit()))
}

/// Returns what the scheduler says of the first of these pods, before what is done.
fn said(without: &[Arc<PodFacts>]) -> String {
    let told = |pod: &Arc<PodFacts>| Some((pod.pod.name.clone(), pod.unschedulable.clone()?));
    let told = without.iter().find_map(told).filter(|(_, why)| !why.is_empty());
    told.map(|(pod, why)| format!("the scheduler says of {pod}: {why:?}; ")).unwrap_or_default()
}

/// Takes back the released counts from the first batch on that has no place, waits to grow or has yet to be made, unless a later one
/// goes: a batch is released when it has a place, and not before. What was committed stays. The batches in `growing` may lack pods.
pub(super) fn keep_back(
    group: &Group,
    view: &GroupView,
    released: &mut BTreeMap<String, u32>,
    (release, without_place): (&[Release], &[Held]),
    growing: impl Iterator<Item = BatchId>,
) {
    let mut stops: BTreeMap<&str, u32> = BTreeMap::new();
    let held = without_place.iter().filter(|held| !held.pods.is_empty());
    let held = held.filter_map(|held| Some((held.coordination.as_ref()?.index, held.batch?)));
    for (index, batch) in held.chain(growing) {
        let Some(batching) = group.coordination(index).and_then(Coordination::batching) else { continue };
        for role in batching.sizes.keys() {
            let Some(size) = batching.size(role) else { continue };
            let stop = stops.entry(role).or_insert(u32::MAX);
            *stop = (*stop).min(batch.saturating_mul(size));
        }
    }
    let mut go: BTreeMap<&str, u32> = BTreeMap::new();
    for release in release.iter().filter(|_| !stops.is_empty()) {
        let go = go.entry(release.pod.role()).or_default();
        *go = (*go).max(release.pod.ordinal.saturating_add(1));
    }
    for (role, stop) in stops {
        let (Some(count), Some(seen)) = (released.get_mut(role), view.roles.get(role)) else { continue };
        let least = seen.released().max(go.get(role).copied().unwrap_or_default());
        *count = (*count).min(stop.max(least));
    }
}

/// Adds why batches without pods wait that come after one without a place, as turns by coordination.
pub(super) fn wait_for_room(group: &Group, without_place: &[Held], turns: &mut BTreeMap<usize, HoldReason>) {
    for held in without_place.iter().filter(|held| !held.pods.is_empty()) {
        let Some(own) = held.coordination.as_ref().and_then(|of| group.coordination(of.index)) else { continue };
        turns.entry(own.index).or_insert(held.reason);
        let roles = own.batching().map(|batching| &batching.sizes);
        let shares =
            |batching: &Batching| roles.is_some_and(|own| own.keys().any(|role| batching.sizes.contains_key(role)));
        for (other, _) in group.batched().filter(|(_, batching)| shares(batching)) {
            turns.entry(other.index).or_insert(HoldReason::BlockedByCoordination);
        }
    }
}

/// Returns the number of other batches in each domain, if batches keep apart.
pub(super) fn used(batching: &Batching, domains: &Domains, index: u32) -> BTreeMap<String, u32> {
    let mut used = BTreeMap::new();
    if batching.topology.as_ref().is_some_and(|topology| topology.spread) {
        for (_, domain) in domains.iter().filter(|(other, _)| **other != index) {
            *used.entry(domain.clone()).or_default() += 1;
        }
    }
    used
}

/// Returns the text on why a batch has no room. A domain may be kept for a group, which only its own namespace is told the name of.
pub(super) fn no_room(
    batching: &Batching,
    key: &str,
    index: u32,
    why: &NoFit,
    (closed, namespace): (Option<&Closed>, &str),
) -> String {
    let word = match batching.placed_in() {
        Some(PlacedIn::Cluster) => None,
        Some(PlacedIn::Domain(Domain::Layer { layer, .. })) => Some(layer.as_str()),
        Some(PlacedIn::Domain(Domain::Key(_))) | None => Some(key),
    };
    let name = batching.batch_name(index);
    match closed {
        // It has room, as far as is counted.
        Some(closed) if closed.unbound => format!("{name} is held: {}", closed.describe(namespace)),
        Some(closed) => format!("{}; {}", why.describe(word, &name), closed.describe(namespace)),
        None => why.describe(word, &name),
    }
}

#[cfg(test)]
#[path = "placing_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "placing_as_scheduled_tests.rs"]
mod as_scheduled_tests;

#[cfg(test)]
#[path = "placing_loose_tests.rs"]
mod loose_tests;

#[cfg(test)]
#[path = "placing_whole_tests.rs"]
mod whole_tests;

#[cfg(test)]
#[path = "placing_turned_down_tests.rs"]
mod turned_down_tests;
