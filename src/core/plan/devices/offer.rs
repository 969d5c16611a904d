//! The devices of nodes as the pods of one question see them: which pods a node takes, in whatever order the scheduler takes
//! them up.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;
use std::sync::Arc;

use super::allocate::{Bits, MOST_OFFERED, Offered, Same, Want, Wanted, allocate};
use super::asks::{Alternative, ClaimAsk, ClaimRef, bears};
use super::known::{DeviceSight, Devices, is_extended};
use super::pools::{Device, DeviceKind, PoolId, Reach};
use super::selector::{Attribute, DeviceFacts, Selector};
use crate::api::scheduling::{NodeSelector, Toleration};

/// The number of states of a node that are followed: beyond it, the pods count as too many.
const MOST_STATES: usize = 64;
/// The number of distinct requests of a question: the bits of a mask.
const MOST_REQUESTS: usize = 64;

/// What the pods of one sort ask for.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    pub claims: &'a [ClaimRef],
    /// Amounts of resources: those of classes ask for devices on nodes that lack the resource.
    pub amounts: &'a BTreeMap<Arc<str>, i64>,
}

impl Ask<'_> {
    /// Reports whether pods may ask for devices: by claims, or by a resource of a class.
    pub fn may_be_devices(&self) -> bool {
        !self.claims.is_empty() || self.amounts.keys().any(|resource| is_extended(resource))
    }
}

/// The part of what pods ask for that distinguishes sorts.
#[derive(Debug, PartialEq, Eq, Hash)]
struct AskKey(Vec<ClaimRef>, Vec<(Arc<str>, i64)>);

impl AskKey {
    fn of(ask: Ask<'_>) -> Self {
        let extended = ask.amounts.iter().filter(|(resource, _)| is_extended(resource));
        Self(ask.claims.to_vec(), extended.map(|(resource, amount)| (resource.clone(), *amount)).collect())
    }
}

/// A node, as far as it matters for devices.
pub trait NodeView {
    fn name(&self) -> &str;

    /// Reports whether a selector selects the node.
    fn is_selected_by(&self, nodes: &NodeSelector) -> bool;

    /// Returns the allocatable amount of a resource.
    fn allocatable(&self, resource: &str) -> i64;
}

/// The requests for devices of the sorts of pods of a question.
#[derive(Debug)]
pub struct Demand<'a> {
    devices: &'a Devices,
    requests: Vec<Request>,
    sorts: Vec<SortDemand>,
    known: HashMap<AskKey, usize>,
    /// The attributes of constraints.
    attributes: Vec<Arc<str>>,
    /// The requests that may select devices of several nodes.
    shared_bits: u64,
    /// The requests that are counted as amounts, each with a name.
    dimensions: Vec<(Arc<str>, u64)>,
    /// The requests that select the devices of a kind.
    selected: HashMap<*const DeviceKind, u64>,
    seen: RefCell<HashMap<*const DeviceKind, Rc<Seen>>>,
    values: RefCell<HashMap<Attribute, usize>>,
    /// Devices are what their pool and name say: equal ones share what is stored of them.
    numbers: RefCell<HashMap<(&'a PoolId, &'a str), usize>>,
    offers: RefCell<HashMap<Node, Rc<Offer>>>,
}

/// Devices of a class, by selectors and tolerations.
#[derive(Debug, PartialEq)]
struct Request {
    selectors: Vec<Arc<Selector>>,
    tolerations: Vec<Toleration>,
}

/// The requests that select the devices of a kind, and the values of these.
#[derive(Debug)]
struct Seen {
    selected: u64,
    values: Vec<Option<usize>>,
}

/// The claims of each pod of a sort.
#[derive(Clone, Debug, Default)]
struct SortDemand {
    claims: Vec<Wanted>,
    /// By resource of a class: the request on a node that lacks the resource.
    extended: Vec<(Arc<str>, Want)>,
    /// The number of devices by position of the dimension.
    amounts: BTreeMap<usize, i64>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Node {
    devices: Vec<Offered>,
    /// A pool of the node changes: no request for all devices is allocated.
    is_broken: bool,
    free: Bits,
    /// The devices that several nodes reach.
    several: Bits,
    /// The resources of classes for which the node has devices, by position in the sorts.
    backed: Vec<Arc<str>>,
}

/// A device of a node that requests may select.
#[derive(Clone, Copy, Debug)]
pub struct Found<'a> {
    pub pool: &'a PoolId,
    pub device: &'a Device,
    /// The nodes that reach it, if these may be several.
    pub several: Option<&'a Reach>,
}

/// What a node offers. Equal nodes share one offer.
#[derive(Debug)]
pub struct Offer {
    node: Node,
    /// By sort: the claims of each of its pods on this node.
    claims: Vec<Vec<Wanted>>,
    /// By the number of pods of each sort: the devices that may stay free; `None` where an order leaves out a pod.
    states: RefCell<HashMap<Vec<u32>, States>>,
}

type States = Option<Rc<[Bits]>>;

impl Devices {
    /// Returns the reasons why the devices of pods are not modelled; those of allocated claims are known.
    pub fn not_modelled(&self, ask: Ask<'_>) -> Vec<Arc<str>> {
        self.why_not_modelled(ask, |claim| self.allocated(claim).is_none())
    }

    /// Returns the reasons why the devices of pods were not modelled before their claims were allocated.
    pub fn never_modelled(&self, ask: Ask<'_>) -> Vec<Arc<str>> {
        self.why_not_modelled(ask, |_| true)
    }

    fn why_not_modelled(&self, ask: Ask<'_>, counts: impl Fn(&ClaimRef) -> bool) -> Vec<Arc<str>> {
        let unknown = match &self.sight {
            DeviceSight::Known => None,
            DeviceSight::Refused(why) => Some(why.clone()),
            DeviceSight::Unseen | DeviceSight::Awaited => Some("resource claims".into()),
        };
        if let Some(why) = unknown {
            return if ask.claims.is_empty() { Vec::new() } else { vec![why] };
        }
        let mut demand = Demand::of(self, []);
        let mut whys: Vec<Arc<str>> = Vec::new();
        for claim in ask.claims.iter().filter(|claim| counts(claim)) {
            let of_claim = |why: Arc<str>| Arc::from(format!("{}: {why}", claim.describe()));
            whys.extend(self.ask_of(claim).and_then(|ask| demand.wanted(ask).map_err(of_claim)).err());
        }
        for class in ask.amounts.keys().filter_map(|resource| self.class_of(resource)) {
            whys.extend(demand.wanted(&ClaimAsk::of_class(class, 1)).err());
        }
        whys.sort();
        whys.dedup();
        whys
    }

    /// Iterates over the classes, each with the reasons why its devices are not modelled.
    pub fn classes(&self) -> impl Iterator<Item = (String, Vec<Arc<str>>)> {
        self.class_names().map(|class| {
            let wanted = Demand::of(self, []).wanted(&ClaimAsk::of_class(class, 1));
            (class.to_string(), wanted.err().into_iter().collect())
        })
    }
}

impl<'a> Demand<'a> {
    /// Returns the requests of sorts of pods. Claims that are not modelled are left out.
    pub fn of<'b>(devices: &'a Devices, sorts: impl IntoIterator<Item = Ask<'b>>) -> Self {
        let mut demand = Self {
            devices,
            requests: Vec::new(),
            sorts: Vec::new(),
            known: HashMap::new(),
            attributes: Vec::new(),
            shared_bits: 0,
            dimensions: Vec::new(),
            selected: HashMap::new(),
            seen: RefCell::default(),
            values: RefCell::default(),
            numbers: RefCell::default(),
            offers: RefCell::default(),
        };
        // The sort without claims is the first.
        demand.sorts.push(SortDemand::default());
        sorts.into_iter().for_each(|ask| _ = demand.add(ask));
        demand
    }

    /// Reports whether no pod asks for devices.
    pub fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// Iterates over the names of the counted requests of claims.
    pub fn dimensions(&self) -> impl Iterator<Item = &Arc<str>> {
        self.dimensions.iter().map(|(name, _)| name)
    }

    /// Returns the number of devices of a counted request, or for a resource, that each pod of a sort asks for.
    pub fn amount(&self, sort: usize, dimension: &str) -> i64 {
        let Some(sort) = self.sorts.get(sort) else { return 0 };
        let position = self.dimensions.iter().position(|(name, _)| **name == *dimension);
        let of_claims = position.and_then(|position| sort.amounts.get(&position)).copied();
        let of_resource = || {
            let (_, want) = sort.extended.iter().find(|(resource, _)| **resource == *dimension)?;
            i64::try_from(want.count?).ok()
        };
        of_claims.or_else(of_resource).unwrap_or_default()
    }

    /// Returns the position of what pods ask for; 0 for nothing.
    pub fn position(&self, ask: Ask<'_>) -> usize {
        self.known.get(&AskKey::of(ask)).copied().unwrap_or_default()
    }

    /// Adds what pods ask for; returns its position.
    pub fn add(&mut self, ask: Ask<'_>) -> usize {
        let key = AskKey::of(ask);
        if let Some(known) = self.known.get(&key) {
            return *known;
        }
        let sort = self.sort(ask);
        let position = if sort.claims.is_empty() && sort.extended.is_empty() {
            0
        } else {
            self.sorts.push(sort);
            self.sorts.len() - 1
        };
        self.known.insert(key, position);
        position
    }

    fn sort(&mut self, ask: Ask<'_>) -> SortDemand {
        let mut sort = SortDemand::default();
        let devices = self.devices;
        for claim in ask.claims.iter().filter(|claim| devices.allocated(claim).is_none()) {
            let Some((claim, wanted)) = devices.ask_of(claim).and_then(|claim| Ok((claim, self.wanted(claim)?))).ok()
            else {
                continue;
            };
            for (request, wants) in claim.requests.iter().zip(&wanted.requests) {
                let ([alternative], [Want { bit, count: Some(count) }]) = (&*request.alternatives, &**wants) else {
                    continue;
                };
                let dimension = self.dimension(&alternative.class, *bit);
                *sort.amounts.entry(dimension).or_default() += i64::try_from(*count).unwrap_or(i64::MAX);
            }
            sort.claims.push(wanted);
        }
        for (resource, amount) in ask.amounts {
            let Some(class) = devices.class_of(resource) else { continue };
            let wanted = self.wanted(&ClaimAsk::of_class(class, u64::try_from(*amount).unwrap_or_default()));
            let want = wanted.iter().flat_map(|wanted| wanted.requests.iter().flatten()).next().copied();
            sort.extended.extend(want.map(|want| (resource.clone(), want)));
        }
        sort
    }

    /// Returns the position of the counted request with this bit.
    fn dimension(&mut self, class: &Arc<str>, bit: u64) -> usize {
        if let Some(position) = self.dimensions.iter().position(|(_, known)| *known == bit) {
            return position;
        }
        let is_new = !self.dimensions.iter().any(|(name, _)| name == class);
        let name = if is_new { class.clone() } else { format!("{class} ({})", self.dimensions.len()).into() };
        self.dimensions.push((name, bit));
        self.dimensions.len() - 1
    }

    /// Returns a claim with requests as bits, or why it is not modelled.
    fn wanted(&mut self, claim: &ClaimAsk) -> Result<Wanted, Arc<str>> {
        let mut requests = Vec::new();
        for request in &claim.requests {
            let wants = request.alternatives.iter().map(|one| Ok(Want { bit: self.bit(one)?, count: one.count }));
            requests.push(wants.collect::<Result<_, Arc<str>>>()?);
        }
        let is_plain = |wants: &Vec<Want>| matches!(wants.as_slice(), [Want { count: Some(_), .. }]);
        let all_plain = claim.constraints.is_empty() && requests.iter().all(is_plain);
        if !all_plain && requests.iter().flatten().any(|want| want.bit & self.shared_bits != 0) {
            return Err("conditions on devices that several nodes reach".into());
        }
        let same = claim.constraints.iter();
        let same = same.map(|one| Same { attribute: self.attribute(&one.attribute), applies: one.applies.clone() });
        Ok(Wanted { requests, same: same.collect() })
    }

    fn attribute(&mut self, attribute: &Arc<str>) -> usize {
        self.attributes.iter().position(|known| known == attribute).unwrap_or_else(|| {
            self.attributes.push(attribute.clone());
            self.attributes.len() - 1
        })
    }

    fn bit(&mut self, one: &Alternative) -> Result<u64, Arc<str>> {
        let request = Request { selectors: self.devices.selectors(one)?, tolerations: one.tolerations.clone() };
        if let Some(position) = self.requests.iter().position(|known| *known == request) {
            return Ok(1 << position);
        }
        if self.requests.len() == MOST_REQUESTS {
            return Err("more distinct requests for devices than are looked at".into());
        }
        let mut selected = Vec::new();
        for kind in self.devices.pools.kinds() {
            if request.selects(&kind.facts)? {
                selected.push(std::ptr::from_ref(kind));
                kind.not_modelled.map_or(Ok(()), |what| Err(Arc::from(what)))?;
            }
        }
        self.requests.push(request);
        let bit = 1 << (self.requests.len() - 1);
        selected.into_iter().for_each(|kind| *self.selected.entry(kind).or_default() |= bit);
        if self.devices.pools.shared_kinds().any(|kind| self.selected_by(kind) & bit != 0) {
            self.shared_bits |= bit;
        }
        Ok(bit)
    }

    /// Returns the requests that select the devices of a kind.
    fn selected_by(&self, kind: &DeviceKind) -> u64 {
        self.selected.get(&std::ptr::from_ref(kind)).copied().unwrap_or_default()
    }

    fn seen(&self, kind: &Arc<DeviceKind>) -> Rc<Seen> {
        let at = Arc::as_ptr(kind);
        if let Some(known) = self.seen.borrow().get(&at) {
            return known.clone();
        }
        let values = self.attributes.iter().map(|name| Some(self.value(kind.facts.attributes.get(name)?)));
        let seen = Rc::new(Seen { selected: self.selected_by(kind), values: values.collect() });
        self.seen.borrow_mut().insert(at, seen.clone());
        seen
    }

    fn value(&self, value: &Attribute) -> usize {
        let mut values = self.values.borrow_mut();
        let next = values.len();
        *values.entry(value.clone()).or_insert(next)
    }

    /// Returns what a node offers, and the devices of several nodes among that, each by a number of its own.
    pub fn offer(&self, view: &impl NodeView) -> (Rc<Offer>, Vec<usize>) {
        let (node, devices) = self.node(view);
        let shared = devices.iter().filter(|one| one.several.is_some());
        (self.interned(node), shared.map(|one| self.number(one)).collect())
    }

    /// Returns the number of a device, whichever node reaches it.
    pub fn number(&self, found: &Found<'a>) -> usize {
        let mut numbers = self.numbers.borrow_mut();
        let next = numbers.len();
        *numbers.entry((found.pool, &*found.device.name)).or_insert(next)
    }

    /// Reports whether a node has devices for these pods, in any order; `None` if other nodes reach some of these devices.
    pub fn takes(&self, view: &impl NodeView, sorts: &[usize]) -> Option<bool> {
        let (node, _) = self.node(view);
        (node.several == 0).then(|| self.interned(node).states(&self.counts(sorts)).is_some())
    }

    /// Returns the number of devices of several nodes that each pod of a sort may take.
    pub fn of_several(&self, sort: usize) -> u32 {
        let Some(sort) = self.sorts.get(sort) else { return 0 };
        let of_claims = sort.claims.iter().flat_map(|claim| claim.requests.iter().flatten());
        let all = of_claims.chain(sort.extended.iter().map(|(_, want)| want));
        let shared = all.filter(|want| want.bit & self.shared_bits != 0).filter_map(|want| want.count);
        u32::try_from(shared.fold(0, u64::saturating_add)).unwrap_or(u32::MAX)
    }

    /// Returns the devices that one pod's claims get on a node after those of pods that are to come there, by their positions in
    /// the demand, if they can be allocated.
    pub fn allocation(&self, view: &impl NodeView, before: &[usize], sort: usize) -> Option<Vec<Found<'a>>> {
        let (node, devices) = self.node(view);
        let offer = self.interned(node);
        // Only devices that stay free in whatever order are sure.
        let free = offer.states(&self.counts(before))?.iter().fold(Bits::MAX, |all, state| all & state);
        let taken = free & !offer.allocated(free, sort)?;
        let is_taken = |(position, _): &(usize, Found<'a>)| taken & (1 << position) != 0;
        Some(devices.into_iter().enumerate().filter(is_taken).map(|(_, found)| found).collect())
    }

    /// Returns the number of pods of each sort.
    pub fn counts(&self, sorts: &[usize]) -> Vec<u32> {
        let mut counts = vec![0; self.sorts.len()];
        for sort in sorts {
            counts.get_mut(*sort).into_iter().for_each(|count| *count += 1);
        }
        counts
    }

    fn interned(&self, node: Node) -> Rc<Offer> {
        if let Some(known) = self.offers.borrow().get(&node) {
            return known.clone();
        }
        let claims = self.sorts.iter().map(|sort| sort.on(&node.backed));
        let new = Rc::new(Offer { node: node.clone(), claims: claims.collect(), states: RefCell::default() });
        self.offers.borrow_mut().insert(node, new.clone());
        new
    }

    fn node(&self, view: &impl NodeView) -> (Node, Vec<Found<'a>>) {
        let mut found = Vec::new();
        let mut node = Node { devices: Vec::new(), is_broken: false, free: 0, several: 0, backed: Vec::new() };
        for reached in self.devices.pools.of_node(view.name(), &|nodes| view.is_selected_by(nodes)) {
            node.is_broken |= reached.is_broken;
            for (device, several) in reached.devices {
                let seen = self.seen(&device.kind);
                if seen.selected == 0 || node.devices.len() == MOST_OFFERED {
                    continue;
                }
                let bears_all = |request: &Request| {
                    let mut taints = self.devices.taints_of(reached.pool, device);
                    taints.all(|taint| request.tolerations.iter().any(|one| bears(one, taint)))
                };
                let usable = seen.selected & mask(self.requests.iter().map(bears_all));
                if !self.devices.is_taken(reached.pool, &device.name) {
                    node.free |= 1 << node.devices.len();
                }
                if several.is_some() {
                    node.several |= 1 << node.devices.len();
                }
                found.push(Found { pool: reached.pool, device, several });
                node.devices.push(Offered { selected: seen.selected, usable, values: seen.values.clone() });
            }
        }
        let extended = self.sorts.iter().flat_map(|sort| &sort.extended).map(|(resource, _)| resource);
        node.backed = extended.filter(|resource| view.allocatable(resource) == 0).cloned().collect();
        node.backed.sort();
        node.backed.dedup();
        (node, found)
    }
}

impl Request {
    fn selects(&self, device: &DeviceFacts) -> Result<bool, Arc<str>> {
        for selector in &self.selectors {
            if !selector
                .matches(device)
                .map_err(|error| Arc::from(format!("a selector that fails on a device ({error})")))?
            {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl SortDemand {
    /// Returns the claims on a node with devices for these resources.
    fn on(&self, backed: &[Arc<str>]) -> Vec<Wanted> {
        let extended = self.extended.iter().filter(|(resource, _)| backed.contains(resource));
        // One claim for all resources, after the claims of the pod.
        let requests: Vec<_> = extended.map(|(_, want)| vec![*want]).collect();
        let of_resources = (!requests.is_empty()).then(|| Wanted { requests, same: Vec::new() });
        self.claims.iter().cloned().chain(of_resources).collect()
    }
}

impl Offer {
    /// Returns the usable and the free devices of the counted request of a dimension; `None` for a resource that the node has by
    /// itself.
    pub fn amounts(&self, demand: &Demand<'_>, dimension: &str) -> Option<(i64, i64)> {
        let counted = demand.dimensions.iter().find(|(name, _)| **name == *dimension).map(|(_, bit)| *bit);
        let bit = counted.or_else(|| {
            let resource = self.node.backed.iter().find(|resource| ***resource == *dimension)?;
            let mut extended = demand.sorts.iter().flat_map(|sort| &sort.extended);
            extended.find(|(known, _)| known == resource).map(|(_, want)| want.bit)
        })?;
        let count = |(all, free), (position, device): (usize, &Offered)| {
            let is_usable = i64::from(device.usable & bit != 0);
            (all + is_usable, free + is_usable * i64::from(self.node.free & (1 << position) != 0))
        };
        Some(self.node.devices.iter().enumerate().fold((0, 0), count))
    }

    /// Returns the least number of free devices of several nodes that a request may take.
    pub fn free_of_several(&self) -> u32 {
        let of = |bit: u64| {
            let is = |(position, device): &(usize, &Offered)| {
                self.node.several & (1 << position) != 0 && device.selected & bit != 0
            };
            let all: Vec<_> = self.node.devices.iter().enumerate().filter(is).collect();
            let is_free = |(position, device): &&(usize, &Offered)| {
                self.node.free & (1 << position) != 0 && device.usable & bit != 0
            };
            (!all.is_empty()).then(|| all.iter().filter(is_free).count())
        };
        let least = (0..u64::BITS).filter_map(|bit| of(1 << bit)).min();
        least.map_or(0, |least| u32::try_from(least).unwrap_or(u32::MAX))
    }

    /// Returns how many more pods of a sort the node takes beside these, at most `most`.
    pub fn more(&self, counts: &[u32], sort: usize, most: u32) -> u32 {
        if self.claims.get(sort).is_none_or(Vec::is_empty) {
            return most;
        }
        let mut counts = counts.to_vec();
        counts.resize(self.claims.len(), 0);
        for more in 0..most {
            counts.get_mut(sort).into_iter().for_each(|count| *count += 1);
            if self.states(&counts).is_none() {
                return more;
            }
        }
        most
    }

    /// Returns the devices that may stay free with so many pods of each sort; `None` where an order leaves out a pod.
    fn states(&self, counts: &[u32]) -> States {
        let asks =
            |(sort, count): (usize, &u32)| if self.claims.get(sort).is_none_or(Vec::is_empty) { 0 } else { *count };
        let counts: Vec<_> = counts.iter().enumerate().map(asks).collect();
        if let Some(known) = self.states.borrow().get(&counts) {
            return known.clone();
        }
        let found = self.after(&counts);
        self.states.borrow_mut().insert(counts, found.clone());
        found
    }

    fn after(&self, counts: &[u32]) -> States {
        let mut found = Vec::new();
        for (sort, _) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            let mut before = counts.to_vec();
            before.get_mut(sort).into_iter().for_each(|count| *count -= 1);
            for free in &*self.states(&before)? {
                found.push(self.allocated(*free, sort)?);
            }
        }
        if found.is_empty() {
            return Some(Rc::from([self.node.free]));
        }
        found.sort_unstable();
        found.dedup();
        (found.len() <= MOST_STATES).then(|| found.into())
    }

    fn allocated(&self, free: Bits, sort: usize) -> Option<Bits> {
        let claims = self.claims.get(sort)?;
        let wants_all =
            claims.iter().flat_map(|claim| claim.requests.iter().flatten()).any(|want| want.count.is_none());
        if wants_all && self.node.is_broken {
            return None;
        }
        allocate(&self.node.devices, free, claims)
    }
}

fn mask(bits: impl Iterator<Item = bool>) -> u64 {
    bits.enumerate().fold(0, |mask, (position, is)| mask | (u64::from(is) << position))
}
