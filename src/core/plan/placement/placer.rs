//! Placement of the batches of one group, one after another.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;
use std::time::Duration;

use super::added::{Added, RuntimeClasses};
use super::apart::Constraints;
use super::capacity::Capacity;
use super::filter::{DomainLabel, NodeFacts, Refusal};
use super::line::{Closed, Line, Turn};
use super::needs::{Load, Needs, kinds};
use super::place::{Fit, NoFit, Placement, Question, place, preempted};
use super::room::{NodeRoom, may_lack};
use super::supply::Counted;
use crate::api::scheduling::SchedulingPod;
use crate::model::batching::{CLUSTER, CLUSTER_KEY};
use crate::model::names::HOSTNAME;
use crate::model::{GroupKey, WhenNoFit};

/// The observed nodes and pods.
#[derive(Debug)]
pub enum Sight<'a> {
    Known(&'a mut Capacity),
    /// They have not been listed yet.
    NotYet,
    /// They may not be read, for this reason: nothing is placed.
    Refused(&'a str),
}

/// Places the batches of one group in one pass.
#[derive(Debug)]
pub struct Placer<'a> {
    group: GroupKey,
    sight: Sight<'a>,
    line: &'a mut Line,
    now: Duration,
    /// Whether other groups go first, which may have batches that were released in part before this process led, and whose
    /// other pods have no place yet.
    others_first: bool,
    /// Pods that keep their place.
    stay: HashSet<Arc<str>>,
    waits: bool,
}

/// The pods of a batch to place: held pods that may go, or pods that do not exist yet.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The uids of the pods; for pods that do not exist, [`unmade`].
    pub pods: &'a [Arc<str>],
    /// The needs of each pod that does not exist; the needs of existing pods are known.
    pub needs: Option<&'a [Arc<Needs>]>,
    /// Pods of the batch that were released before.
    pub others: &'a [Arc<str>],
    /// The `pods` whose release may be done by now, with their place at that time: they keep it.
    pub sent: &'a [Arc<str>],
    /// The node label of which all pods share one value.
    pub key: &'a str,
    /// The committed value of the label.
    pub committed: Option<&'a str>,
    /// The number of other batches of the group by value, if batches keep apart.
    pub used: &'a BTreeMap<String, u32>,
    /// The needs of pods by which the batch may still grow: a domain that has room for these as well is preferred.
    pub grown: &'a [Arc<Needs>],
    /// Nodes that were refused to pods of the batch, by their kubelets or by the scheduler: it does not go there.
    pub refused_by: &'a [Arc<str>],
    /// Resources with which nodes are requested for the batch.
    pub awaits: &'a [String],
    /// Whether pods of other batches go with these, or not at all: none of them may wait for the others to be bound.
    pub goes_with_others: bool,
    /// The action if the batch fits nowhere.
    pub when_no_fit: WhenNoFit,
}

/// The domains that are asked for room.
#[derive(Clone, Copy, Debug)]
pub enum Within<'a> {
    Only(&'a str),
    AnyBut(&'a str),
}

impl<'a> Request<'a> {
    /// Returns the request of pods for room in one domain.
    const fn in_domain(pods: &'a [Arc<str>], key: &'a str, domain: &'a str, used: &'a BTreeMap<String, u32>) -> Self {
        Self {
            pods,
            needs: None,
            others: &[],
            sent: &[],
            key,
            committed: Some(domain),
            used,
            grown: &[],
            refused_by: &[],
            awaits: &[],
            goes_with_others: false,
            when_no_fit: WhenNoFit::Hold,
        }
    }
}

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The pods go to this domain.
    To {
        /// The value of the node label.
        domain: String,
        /// For each pod the value of [`HOSTNAME`] of its node, if it is bound to a node.
        hosts: Vec<Option<String>>,
    },
    /// The pods wait: there is no room.
    NoRoom {
        why: Box<NoFit>,
        /// A domain that is kept for another batch.
        closed: Option<Closed>,
    },
    /// The pods wait: other groups are looked at first.
    AfterOthers,
    /// The nodes, or the needs of the pods, are not known yet.
    NotYet,
    /// The pods go anywhere: nodes may not be read.
    Anywhere,
    /// The pods go without a domain: no node has the label yet, and their affinity keeps them together.
    WithoutDomain,
}

/// The prefix of ids of pods that do not exist; no uid of the API server has it.
const UNMADE: &str = "unmade/";

/// Returns placeholder uids for pods of a batch that do not exist.
pub fn unmade(group: &GroupKey, coordination: usize, batch: u32, pods: usize) -> Vec<Arc<str>> {
    let of_batch = unmade_prefix(group, coordination, batch);
    (0..pods).map(|pod| format!("{of_batch}{pod}").into()).collect()
}

fn unmade_prefix(group: &GroupKey, coordination: usize, batch: u32) -> String {
    format!("{UNMADE}{}/{}/{coordination}/{batch}/", group.namespace, group.name)
}

impl<'a> Placer<'a> {
    /// Begins a pass over a group. `others_first`: other groups may have batches that were released in part before this process
    /// led, and whose other pods have no place yet.
    pub fn new(group: GroupKey, sight: Sight<'a>, line: &'a mut Line, others_first: bool, now: Duration) -> Self {
        Self { group, sight, line, now, others_first, stay: HashSet::new(), waits: false }
    }

    /// Returns the nodes, the line, and whether other groups go first, for pods that are not placed in batches.
    pub fn into_parts(self) -> (Sight<'a>, &'a mut Line, bool) {
        (self.sight, self.line, self.others_first)
    }

    /// Returns why nodes may not be read.
    pub fn refused(&self) -> Option<&str> {
        if let Sight::Refused(why) = self.sight { Some(why) } else { None }
    }

    /// Finds a place for pods, and takes its room.
    pub fn place(&mut self, request: &Request<'_>) -> Answer {
        let Self { group, sight, line, now, others_first, stay, waits } = self;
        let capacity = match sight {
            Sight::Known(capacity) => capacity,
            Sight::Refused(_) => return Answer::Anywhere,
            Sight::NotYet => return Answer::NotYet,
        };
        if *others_first && (request.others.is_empty() || capacity.may_be_loose()) {
            *waits = true;
            return Answer::AfterOthers;
        }
        if !*others_first {
            assume_sent(capacity);
        }
        let mut batch = Batch { group, capacity, request, went: false, now: *now };
        let Some(needs) = batch.needs() else { return Answer::NotYet };
        // If no node has the committed value any more, the domain is the one in which other pods of the batch run.
        let committed = request.committed.filter(|domain| batch.is_there(domain)).map(str::to_owned);
        let committed = committed.or_else(|| batch.domain_of_others()).or_else(|| request.committed.map(str::to_owned));
        let committed = committed.filter(|domain| !batch.is_lost(domain, &needs));
        if let Some(answer) = committed.as_deref().and_then(|domain| batch.stay_in(domain, &needs)) {
            if matches!(answer, Answer::NoRoom { closed: Some(_), .. }) {
                *waits = true;
                line.waits(group, priority(&needs), *now, batch.capacity.freed(), None);
            } else {
                stay.extend(request.pods.iter().cloned());
            }
            return answer;
        }
        let went_without = request.committed.or(committed.as_deref()).is_none() && !request.others.is_empty();
        if went_without && batch.may_go_without_domain(&needs) {
            return Answer::WithoutDomain;
        }
        let again = batch.placed(&needs);
        let placement = match again {
            Some(placement) => placement,
            None => match batch.place_anew(&needs, line, *now) {
                Ok(placement) => placement,
                Err(answer) => {
                    *waits |= matches!(answer, Answer::NoRoom { .. } | Answer::AfterOthers);
                    return answer;
                }
            },
        };
        stay.extend(request.pods.iter().cloned());
        batch.answer(&placement, &needs)
    }

    /// Reports whether a pod has neither a node nor a place, as far as observed.
    pub fn lacks(&self, uid: &str) -> bool {
        matches!(&self.sight, Sight::Known(capacity) if capacity.needs(uid).is_some() && capacity.assumed(uid).is_none())
    }

    /// Returns the domain that a pod without a node asks for.
    pub fn asked_domain(&self, uid: &str, key: &str) -> Option<&str> {
        let Sight::Known(capacity) = &self.sight else { return None };
        let needs = capacity.needs(uid)?;
        if key == CLUSTER_KEY { Some(CLUSTER) } else { needs.node_selector.get(key).map(String::as_str) }
    }

    /// Returns false if no node is in the domain, as far as observed.
    pub fn may_have_domain(&self, key: &str, domain: &str) -> bool {
        !matches!(&self.sight, Sight::Known(capacity) if !has_domain(capacity, key, domain))
    }

    /// Keeps the places of released pods that are not bound yet, or places them in their domain.
    pub fn keep(&mut self, pods: &[Arc<str>], key: &str, domain: &str) {
        let Sight::Known(capacity) = &mut self.sight else { return };
        capacity.keep(pods, self.now);
        let without: Vec<_> = pods.iter().filter(|uid| capacity.assumed(uid).is_none()).cloned().collect();
        let used = BTreeMap::new();
        let request = Request::in_domain(&without, key, domain, &used);
        let mut batch = Batch { group: &self.group, capacity, request: &request, went: true, now: self.now };
        if let Some(needs) = batch.needs().filter(|needs| !needs.is_empty())
            && batch.assume_in(domain, &needs).is_some()
        {
            let is_loose = |Needs { node_selector, .. }: &Needs| {
                !node_selector.contains_key(HOSTNAME) && node_selector.get(key).is_some_and(|own| own == domain)
            };
            batch.loosen(domain, &needs, needs.iter().map(|needs| is_loose(needs)));
        }
        self.stay.extend(pods.iter().cloned());
    }

    /// Returns the domain in which a bound pod runs.
    pub fn runs_in(&self, uid: &str, key: &str) -> Option<&str> {
        let Sight::Known(capacity) = &self.sight else { return None };
        let room = capacity.room();
        room.facts(room.node_of(uid)?)?.label(key)
    }

    /// Returns the nodes of a domain that take a pod without a place, of those that it selects: if its scheduler finds none, it looks
    /// at more than is modelled.
    pub fn open_to(&self, uid: &str, key: &str, domain: &str) -> Vec<Arc<str>> {
        let Sight::Known(capacity) = &self.sight else { return Vec::new() };
        let Some(needs) = capacity.asked(uid) else { return Vec::new() };
        let (pods, room) = ([needs], capacity.room());
        if self.room_for(&pods, key, Within::Only(domain)).is_none() {
            return Vec::new();
        }
        let counted = Counted::of(&pods, room);
        let takes = |(_, node, facts): &(&Arc<str>, &NodeRoom, &NodeFacts)| {
            facts.label(key) == Some(domain) && counted.takes_one(node, facts)
        };
        room.nodes().filter(takes).map(|(name, _, _)| name.clone()).collect()
    }

    /// Returns the nodes of a domain.
    pub fn nodes_in(&self, key: &str, domain: &str) -> Vec<Arc<str>> {
        let Sight::Known(capacity) = &self.sight else { return Vec::new() };
        let nodes = capacity.room().nodes().filter(|(_, _, facts)| facts.label(key) == Some(domain));
        nodes.map(|(name, _, _)| name.clone()).collect()
    }

    /// Returns a digest of the state of a node, as [`Room::state_of`](super::Room::state_of).
    pub fn state_of(&self, node: &str) -> Option<u64> {
        if let Sight::Known(capacity) = &self.sight { capacity.room().state_of(node) } else { None }
    }

    /// Returns a domain with room for pods with these needs, beside all that have a place.
    pub fn room_for(&self, pods: &[Arc<Needs>], key: &str, within: Within<'_>) -> Option<String> {
        let Sight::Known(capacity) = &self.sight else { return None };
        let (only, closed) = match within {
            Within::Only(domain) => (Some(domain), None),
            Within::AnyBut(domain) => (None, Some(Arc::new((key.to_owned(), domain.to_owned())))),
        };
        let none = BTreeMap::new();
        let question = Question { only, closed: closed.as_slice(), ..Question::new(pods, Some(key), &none) };
        place(capacity.room(), &question).placement()?.domain.clone()
    }

    /// Frees the places that pods have got in this pass.
    pub fn take_back<'b>(&mut self, pods: impl IntoIterator<Item = &'b Arc<str>>) {
        let Sight::Known(capacity) = &mut self.sight else { return };
        for uid in pods {
            capacity.give_back(uid);
            self.stay.remove(uid);
        }
    }

    /// Frees the room that was kept for pods of a batch before they existed.
    pub fn are_made(&mut self, coordination: usize, batch: u32) {
        let Sight::Known(capacity) = &mut self.sight else { return };
        let of_batch = unmade_prefix(&self.group, coordination, batch);
        let kept: Vec<_> = capacity.assumed_of(&self.group).filter(|uid| uid.starts_with(&of_batch)).cloned().collect();
        kept.iter().for_each(|uid| capacity.give_back(uid));
    }

    /// Returns the needs of a pod without a node, as far as observed.
    pub fn needs_of(&self, uid: &str) -> Option<&Arc<Needs>> {
        let Sight::Known(capacity) = &self.sight else { return None };
        capacity.needs(uid)
    }

    /// Returns the domains in which a node has room for one of these pods.
    pub fn some_room(&self, key: &str, pods: &[Arc<Needs>]) -> BTreeSet<String> {
        let Sight::Known(capacity) = &self.sight else { return BTreeSet::new() };
        let counted = Counted::of(pods, capacity.room());
        let mut found = BTreeSet::new();
        for (_, room, facts) in capacity.room().nodes() {
            let domain = facts.label(key).filter(|domain| !found.contains(*domain));
            if let Some(domain) = domain.filter(|_| counted.takes_one(room, facts)) {
                found.insert(domain.to_owned());
            }
        }
        found
    }

    /// Returns the extended resources and huge pages by which pods with these needs are placed.
    pub fn counted(&self, pods: &[Arc<Needs>]) -> BTreeSet<String> {
        let Sight::Known(capacity) = &self.sight else { return BTreeSet::new() };
        let counted = pods.iter().flat_map(|needs| capacity.room().counted(needs));
        counted.filter(|resource| may_lack(resource)).map(ToString::to_string).collect()
    }

    /// Places the pods of a replica in a domain, if it has room for them; returns for each the node that it is bound to, if it is
    /// bound to one.
    pub fn place_in(&mut self, pods: &[Arc<str>], key: &str, domain: &str) -> Option<Vec<Option<String>>> {
        let Sight::Known(capacity) = &mut self.sight else { return None };
        let used = BTreeMap::new();
        let request = Request::in_domain(pods, key, domain, &used);
        let mut batch = Batch { group: &self.group, capacity, request: &request, went: false, now: self.now };
        let needs = batch.needs()?;
        let placement = batch.assume_in(domain, &needs)?;
        let Answer::To { hosts, .. } = batch.answer(&placement, &needs) else { return None };
        self.stay.extend(pods.iter().cloned());
        Some(hosts)
    }

    /// Reports whether a domain waits for other pods to be bound before pods of a replica are placed there.
    pub fn is_closed(&mut self, pods: &[Arc<str>], key: &str, domain: &str) -> bool {
        let Sight::Known(capacity) = &mut self.sight else { return false };
        let used = BTreeMap::new();
        let request = Request::in_domain(pods, key, domain, &used);
        let mut batch = Batch { group: &self.group, capacity, request: &request, went: false, now: self.now };
        let Some(needs) = batch.needs() else { return false };
        let is_closed = batch.closed(&needs).contains(&batch.label(domain));
        if is_closed {
            self.waits = true;
            self.line.waits(&self.group, priority(&needs), self.now, capacity.freed(), None);
        }
        is_closed
    }

    /// Reports whether nodes and pods are known, or will not be.
    pub const fn knows(&self) -> bool {
        !matches!(self.sight, Sight::NotYet)
    }

    /// Returns the needs of an existing pod, wherever it was sent.
    pub fn needs_wherever(&self, uid: &str, key: &str) -> Option<Arc<Needs>> {
        let Sight::Known(capacity) = &self.sight else { return None };
        Some(capacity.needs_again(uid)?.without(&[key, HOSTNAME]))
    }

    /// Returns the needs of a pod that does not exist yet, and what admission will add to it.
    pub fn needs_of_template(&self, pod: &SchedulingPod) -> Option<(Needs, Added)> {
        let unseen = RuntimeClasses::default();
        let classes =
            if let Sight::Known(capacity) = &self.sight { capacity.room().runtime_classes() } else { &unseen };
        Some((classes.needs(pod).ok()?, classes.added(pod)))
    }

    /// Returns the load of an existing pod, as far as observed.
    pub fn load_of(&self, uid: &str) -> Option<&Load> {
        let Sight::Known(capacity) = &self.sight else { return None };
        capacity.needs(uid).map(|needs| &needs.load).or_else(|| capacity.room().load_of(uid))
    }

    /// Reports whether a node has the label.
    pub fn has_label(&self, key: &str) -> bool {
        matches!(&self.sight, Sight::Known(capacity) if capacity.room().nodes().any(|(_, _, facts)| facts.label(key).is_some()))
    }

    /// Reports whether the claims of these pods are known, or may not be read.
    pub fn sees_claims_of(&self, pods: &[Arc<str>]) -> bool {
        matches!(&self.sight, Sight::Known(capacity) if pods.iter().all(|uid| capacity.sees_claims_of(uid)))
    }

    /// Returns what pods are placed without a look at. `went`: it is known that they were, and their claims may be allocated since.
    pub fn blind_to(&self, pods: &[Arc<str>], went: bool) -> Option<String> {
        let Sight::Known(capacity) = &self.sight else { return None };
        if let Some(why) = pods.iter().find_map(|uid| capacity.blind_to_claims(uid)) {
            return Some(format!("the claims of its pods: {why}"));
        }
        let needs: Vec<_> = pods.iter().filter_map(|uid| capacity.known(uid).cloned()).collect();
        let devices = capacity.room().devices();
        let of = |ask| if went { devices.never_modelled(ask) } else { devices.not_modelled(ask) };
        let why = kinds(&needs).find_map(|needs| of(needs.load.ask()).into_iter().next());
        let why = why.map(|why| format!("the devices of its pods: {why}"));
        why.or_else(|| kinds(&needs).find_map(|needs| capacity.room().blind_to(needs)))
    }

    /// Frees the places of pods that were not bound in time.
    pub fn give_up(&mut self, pods: &[Arc<str>]) {
        if let Sight::Known(capacity) = &mut self.sight {
            capacity.give_up(pods);
        }
    }

    /// Ends the pass: frees the places of held pods, and of pods that do not exist, that were not requested again. Released
    /// pods keep theirs: their binding may not be observed yet. Returns [`Capacity::freed`], which groups that wait for room go by.
    pub fn finish(self, held: impl Fn() -> HashSet<Arc<str>>) -> Option<u64> {
        let Self { group, sight, line, stay, waits, .. } = self;
        if !waits {
            line.leaves(&group);
        }
        let Sight::Known(capacity) = sight else { return None };
        let unasked: Vec<_> = capacity.assumed_of(&group).filter(|uid| !stay.contains(*uid)).cloned().collect();
        if !unasked.is_empty() {
            let held = held();
            let is_free = |uid: &&Arc<str>| uid.starts_with(UNMADE) || held.contains(*uid);
            unasked.iter().filter(is_free).for_each(|uid| capacity.forget(uid));
        }
        Some(capacity.freed())
    }
}

impl Answer {
    /// Returns the answer for any node of a domain.
    fn to(domain: &str, request: &Request<'_>) -> Self {
        Self::To { domain: domain.to_owned(), hosts: vec![None; request.pods.len()] }
    }
}

/// Takes room in their domains for pods that were released there, name no node, and are looked at by no group: as far as they fit, in
/// the order of their uids.
pub fn assume_sent(capacity: &mut Capacity) {
    for (uid, (group, domain)) in capacity.take_unkept() {
        let Some(needs) = capacity.needs(&uid).cloned() else { continue };
        let (asked, none) = ([needs.clone()], BTreeMap::new());
        let question = Question { only: Some(&domain.1), ..Question::new(&asked, Some(&domain.0), &none) };
        let found =
            place(capacity.room(), &question).placement().and_then(|placement| placement.nodes.first().cloned());
        if let Some(node) = found {
            capacity.assume(&group, &uid, &node, &needs);
        }
    }
}

fn has_domain(capacity: &Capacity, key: &str, domain: &str) -> bool {
    capacity.room().nodes().any(|(_, _, facts)| facts.label(key) == Some(domain))
}

/// One batch to place.
struct Batch<'a, 'b> {
    group: &'a GroupKey,
    capacity: &'a mut Capacity,
    request: &'a Request<'b>,
    /// Whether the pods were released before: no domain is closed to them.
    went: bool,
    now: Duration,
}

impl Batch<'_, '_> {
    fn needs(&mut self) -> Option<Vec<Arc<Needs>>> {
        let needs: Option<Vec<_>> = match self.request.needs {
            Some(needs) => {
                self.capacity.asks_for_devices_of(needs);
                needs.iter().map(|needs| self.capacity.room().reached(needs.clone())).collect()
            }
            None => self.request.pods.iter().map(|uid| self.capacity.asked(uid)).collect(),
        };
        if self.request.refused_by.is_empty() && self.request.awaits.is_empty() {
            return needs;
        }
        let refused_by = self.request.refused_by.to_vec();
        let awaits: Vec<Arc<str>> = self.request.awaits.iter().map(|resource| resource.as_str().into()).collect();
        let of_batch = |needs: Arc<Needs>| {
            Arc::new(Needs { refused_by: refused_by.clone(), awaits: awaits.clone(), ..(*needs).clone() })
        };
        needs.map(|needs| needs.into_iter().map(of_batch).collect())
    }

    /// Returns the domain in which other pods of the batch run, for a batch without a committed domain.
    fn domain_of_others(&self) -> Option<String> {
        let room = self.capacity.room();
        self.request
            .others
            .iter()
            .find_map(|uid| Some(room.facts(room.node_of(uid)?)?.label(self.request.key)?.to_owned()))
    }

    /// Reports whether the domain has a node.
    fn is_there(&self, domain: &str) -> bool {
        has_domain(self.capacity, self.request.key, domain)
    }

    /// Reports whether a domain is lost to the batch: none of its pods could go there even if the domain were empty, and no
    /// other pod of the batch runs there or will. If no node of the domain matches the needs, unbound pods will not run there
    /// either.
    fn is_lost(&self, domain: &str, needs: &[Arc<Needs>]) -> bool {
        let room = self.capacity.room();
        let here =
            room.nodes().map(|(_, _, facts)| facts).filter(|facts| facts.label(self.request.key) == Some(domain));
        let mut is_gone = true;
        for refusal in here.flat_map(|facts| needs.iter().map(|needs| facts.refusal(needs))) {
            match refusal {
                Some(Refusal::Affinity | Refusal::Volume | Refusal::Features) => {}
                Some(Refusal::Taint | Refusal::NotReady | Refusal::Cordoned | Refusal::Refused) => is_gone = false,
                None => return false,
            }
        }
        let runs = |uid: &Arc<str>| match room.node_of(uid).filter(|_| self.capacity.needs(uid).is_none()) {
            Some(node) => room.facts(node).is_some_and(|node| node.ready),
            None => !is_gone,
        };
        !self.request.others.iter().any(runs)
    }

    /// Keeps the batch in its committed domain, if it fits, other pods of it are there, or it is released without a fit.
    fn stay_in(&mut self, domain: &str, needs: &[Arc<Needs>]) -> Option<Answer> {
        let placed = self.placed(needs).filter(|placement| placement.domain.as_deref() == Some(domain));
        if let Some(placement) = placed.or_else(|| self.assume_in(domain, needs)) {
            return Some(self.answer(&placement, needs));
        }
        let label = self.label(domain);
        if self.closed(needs).contains(&label) {
            let why = NoFit { bound: Some(domain.to_owned()), ..NoFit::default() };
            return Some(Answer::NoRoom { why: Box::new(why), closed: self.capacity.loose().closed(&label) });
        }
        let goes_all_the_same = !self.request.others.is_empty() || !self.request.when_no_fit.holds();
        // The pods follow their batch, but not to a node where they are refused again.
        if goes_all_the_same && !self.request.refused_by.is_empty() {
            let none = BTreeMap::new();
            let question = Question { only: Some(domain), ..Question::new(needs, Some(self.request.key), &none) };
            if let Fit::Not(why) = place(self.capacity.room(), &question) {
                return Some(Answer::NoRoom { why: Box::new(why), closed: None });
            }
        }
        goes_all_the_same.then(|| Answer::to(domain, self.request))
    }

    /// Returns the places of all pods from an earlier pass, if they are in one domain and on nodes that still take them.
    fn placed(&self, needs: &[Arc<Needs>]) -> Option<Placement> {
        let room = self.capacity.room();
        let nodes: Vec<_> = self.places(needs).into_iter().collect::<Option<_>>()?;
        let mut domains = nodes.iter().map(|node| room.facts(node)?.label(self.request.key));
        let domain = domains.next()??;
        let same = domains.all(|other| other == Some(domain));
        same.then(|| Placement { domain: Some(domain.to_owned()), nodes })
    }

    /// Returns the place of each pod from an earlier pass, if its node still takes it, and a pod that does not exist yet asks for
    /// what it asked for then.
    fn places(&self, needs: &[Arc<Needs>]) -> Vec<Option<Arc<str>>> {
        let room = self.capacity.room();
        let takes =
            |node: &&Arc<str>, needs: &Needs| room.facts(node).is_some_and(|facts| facts.refusal(needs).is_none());
        let is_same = |uid: &str, needs: &Needs| self.request.needs.is_none() || room.load_of(uid) == Some(&needs.load);
        let place = |(uid, needs): (&Arc<str>, &Arc<Needs>)| {
            self.capacity.assumed(uid).filter(|node| takes(node, needs) && is_same(uid, needs)).cloned()
        };
        self.request.pods.iter().zip(needs).map(place).collect()
    }

    /// Places the pods in a domain, if they all fit: first only the pods without a place there, else all that are not sent.
    fn assume_in(&mut self, domain: &str, needs: &[Arc<Needs>]) -> Option<Placement> {
        let room = self.capacity.room();
        let is_here =
            |node: &Arc<str>| room.facts(node).is_some_and(|facts| facts.label(self.request.key) == Some(domain));
        let here: Vec<_> = self.places(needs).into_iter().map(|node| node.filter(is_here)).collect();
        if let Some(placement) = self.fill(domain, needs, &here) {
            return Some(placement);
        }
        let is_sent = |uid: &Arc<str>| self.request.sent.contains(uid);
        let pods = here.iter().zip(self.request.pods);
        let sent: Vec<_> = pods.map(|(node, uid)| node.clone().filter(|_| is_sent(uid))).collect();
        if sent == here { None } else { self.fill(domain, needs, &sent) }
    }

    /// Places the pods that keep no place in a domain, if they all fit.
    fn fill(&mut self, domain: &str, needs: &[Arc<Needs>], kept: &[Option<Arc<str>>]) -> Option<Placement> {
        let pods = self.request.pods.iter().zip(needs).zip(kept).filter(|(_, kept)| kept.is_none());
        let (without, asked): (Vec<_>, Vec<_>) = pods.map(|((uid, needs), _)| (uid, needs.clone())).unzip();
        without.into_iter().for_each(|uid| self.capacity.give_back(uid));
        let none = BTreeMap::new();
        let closed = self.closed(needs);
        let question =
            Question { only: Some(domain), closed: &closed, ..Question::new(&asked, Some(self.request.key), &none) };
        let Fit::Fits(found) = place(self.capacity.room(), &question) else { return None };
        let mut found = found.nodes.into_iter();
        let nodes = kept.iter().map(|node| node.clone().or_else(|| found.next())).collect::<Option<_>>()?;
        let placement = Placement { domain: Some(domain.to_owned()), nodes };
        self.assume(&placement, needs);
        Some(placement)
    }

    /// Finds a domain for the whole batch, if it is its turn; returns the answer otherwise.
    fn place_anew(&mut self, needs: &[Arc<Needs>], line: &mut Line, now: Duration) -> Result<Placement, Answer> {
        self.give_back();
        let priority = priority(needs);
        let Turn::Now { closed } = line.turn(self.group, priority, now, self.capacity.freed()) else {
            line.joins(self.group, priority, now);
            return Err(Answer::AfterOthers);
        };
        let kept: Vec<_> = closed.iter().map(Closed::label).collect();
        let unbound = self.closed(needs);
        let all: Vec<_> = kept.iter().chain(&unbound).cloned().collect();
        let question = Question { closed: &all, ..Question::new(needs, Some(self.request.key), self.request.used) };
        let grown: Vec<_> = needs.iter().chain(self.request.grown).cloned().collect();
        let roomy = if self.request.grown.is_empty() {
            None
        } else {
            let found = place(self.capacity.room(), &Question { pods: &grown, ..question });
            found.placement().and_then(|found| found.domain.clone())
        };
        if let Some(domain) = &roomy
            && let Fit::Fits(placement) =
                place(self.capacity.room(), &Question { only: Some(domain.as_str()), ..question })
        {
            self.assume(&placement, needs);
            return Ok(placement);
        }
        let mut why = match place(self.capacity.room(), &question) {
            Fit::Fits(placement) => {
                self.assume(&placement, needs);
                return Ok(placement);
            }
            Fit::Not(why) => why,
        };
        if self.may_go_without_domain(needs) && self.no_node_has_the_label() {
            return Err(Answer::WithoutDomain);
        }
        if let Some(closed) = self.waits_for(&Question { closed: &kept, ..question }, &unbound) {
            let best = Some((closed.key.clone(), closed.domain.clone()));
            line.waits(self.group, priority, now, self.capacity.freed(), best);
            return Err(Answer::NoRoom { why: Box::new(why), closed: Some(closed) });
        }
        let best = why.best.as_ref().and_then(|best| best.domain.clone());
        let domain = match self.request.when_no_fit {
            WhenNoFit::Hold | WhenNoFit::Provision => None,
            WhenNoFit::Release => best.clone(),
            WhenNoFit::Preempt => {
                let room = preempted(self.capacity.room(), needs);
                why.never_preempts = room.is_none();
                let without = room.map(|(_, room)| place(&room, &question));
                without.as_ref().and_then(Fit::placement).and_then(|placement| placement.domain.clone())
            }
        };
        if let Some(domain) = domain {
            return Err(Answer::to(&domain, self.request));
        }
        // The whole cluster is kept for no batch: nothing else would go.
        let best = best.filter(|_| self.request.key != CLUSTER_KEY);
        let best = best.map(|domain| (self.request.key.to_owned(), domain));
        line.waits(self.group, priority, now, self.capacity.freed(), best);
        Err(Answer::NoRoom { why: Box::new(why), closed })
    }

    /// Returns the first of these domains whose room the batch would take, if they were open.
    fn waits_for(&self, question: &Question<'_>, unbound: &[DomainLabel]) -> Option<Closed> {
        let room = self.capacity.room();
        let Fit::Fits(found) = place(room, unbound.first().map(|_| question)?) else { return None };
        let takes = |domain: &&DomainLabel| {
            let in_domain = |node: &Arc<str>| room.facts(node)?.label(&domain.0).map(|label| label == domain.1);
            found.nodes.iter().any(|node| in_domain(node) == Some(true))
        };
        self.capacity.loose().closed(unbound.iter().find(takes)?)
    }

    /// Reports whether the batch is released without a fit, and its affinity keeps it together.
    fn may_go_without_domain(&self, needs: &[Arc<Needs>]) -> bool {
        self.request.when_no_fit == WhenNoFit::Release && needs.iter().all(|needs| needs.keeps_together)
    }

    fn no_node_has_the_label(&self) -> bool {
        self.capacity.room().nodes().all(|(_, _, facts)| facts.label(self.request.key).is_none())
    }

    fn give_back(&mut self) {
        self.request.pods.iter().for_each(|uid| self.capacity.give_back(uid));
    }

    fn assume(&mut self, placement: &Placement, needs: &[Arc<Needs>]) {
        for ((uid, needs), node) in self.request.pods.iter().zip(needs).zip(&placement.nodes) {
            self.capacity.assume(self.group, uid, node, needs);
        }
    }

    /// Returns the answer for a placement: a domain, and a node for each pod, unless any order of binding is right. Without a node,
    /// a small pod might take the room of a large one in the domain.
    fn answer(&mut self, placement: &Placement, needs: &[Arc<Needs>]) -> Answer {
        let domain = placement.domain.clone().unwrap_or_default();
        let label = self.label(&domain);
        let is_loose = |uid: &Arc<str>| self.capacity.loose().domain_of(uid) == Some(&label);
        if self.chooses_domain() && self.request.pods.iter().all(is_loose) {
            return Answer::to(&domain, self.request);
        }
        if self.fits_in_any_order(&label, needs) {
            self.loosen(&domain, needs, needs.iter().map(|_| true));
            return Answer::to(&domain, self.request);
        }
        let room = self.capacity.room();
        let is_exact = kinds(needs).all(|needs| room.may_name_node_of(needs));
        let shared = room.shared_hosts();
        let may_name = |host: &&str| is_exact && !shared.contains(host);
        let host = |node: &Arc<str>| room.facts(node)?.label(HOSTNAME).filter(may_name).map(str::to_owned);
        let hosts: Vec<_> = placement.nodes.iter().map(host).collect();
        self.loosen(&domain, needs, hosts.iter().map(Option::is_none));
        Answer::To { domain, hosts }
    }

    fn label(&self, domain: &str) -> DomainLabel {
        Arc::new((self.request.key.to_owned(), domain.to_owned()))
    }

    /// Returns the needs that the pods have in common, if such pods fit in any order of binding: equal ones, without constraints
    /// between pods, and of which all is modelled.
    fn like(&self, needs: &[Arc<Needs>]) -> Option<Arc<Needs>> {
        let (room, first) = (self.capacity.room(), needs.first()?);
        let of_class = |resource: &Arc<str>| room.devices().class_of(resource).is_some();
        let is_plain = first.fits_in_any_order()
            && room.may_name_node_of(first)
            && !first.load.amounts.keys().any(of_class)
            && kinds(needs).all(|other| other.alike() == first.alike())
            && Constraints::of(needs.iter(), room).is_empty();
        is_plain.then(|| first.without(&[self.request.key, HOSTNAME]))
    }

    /// Returns the domains with pods to be bound that these pods do not join.
    fn closed(&self, needs: &[Arc<Needs>]) -> Vec<DomainLabel> {
        if self.went || self.capacity.loose().count() == 0 {
            return Vec::new();
        }
        let like = self.like(needs);
        self.capacity.closed_to((self.request.key, like.as_deref()), self.request.pods, self.now)
    }

    /// Reports whether the pods may go to any node of the domain: no other pod has, or asks for, a place there but such as they.
    fn fits_in_any_order(&self, domain: &DomainLabel, needs: &[Arc<Needs>]) -> bool {
        if self.request.goes_with_others || !self.chooses_domain() {
            return false;
        }
        self.like(needs).is_some_and(|like| self.capacity.loose().are_like(domain, &like))
            && !self.capacity.expects_others_in(domain, self.request.pods)
    }

    /// Reports whether a domain of several nodes is chosen for pods that exist.
    fn chooses_domain(&self) -> bool {
        self.request.needs.is_none() && ![CLUSTER_KEY, HOSTNAME].contains(&self.request.key)
    }

    /// Notes that pods may be bound to any node of their domain.
    fn loosen(&mut self, domain: &str, needs: &[Arc<Needs>], which: impl Iterator<Item = bool>) {
        let room = self.capacity.room();
        if !self.chooses_domain() || !kinds(needs).all(|needs| room.may_name_node_of(needs)) {
            return;
        }
        let (label, like) = (self.label(domain), self.like(needs));
        self.capacity.loosen(self.request.pods.iter().zip(which), self.group, (&label, like.as_ref()), self.now);
    }
}

/// Returns the highest priority of the pods.
fn priority(needs: &[Arc<Needs>]) -> i32 {
    needs.iter().map(|needs| needs.load.priority).max().unwrap_or_default()
}
