//! The search for the domain that holds a batch.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::apart::Constraints;
use super::asked::{Asked, total as total_of};
use super::filter::{DomainLabel, NodeFacts, Refusal};
use super::needs::{Needs, NotModelled, kinds, written};
use super::pack::{Bin, Packing, STEPS, may_fit, pack};
use super::room::{NodeRoom, Room};
use super::sharing::{FirstPod, open_claims};
use super::supply::Supply;
use super::together::Rules;

/// The number of ways to allocate the claims of a question that are tried.
const MOST_ROOMS: u32 = 256;

/// The question where a batch goes.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    pub pods: &'a [Arc<Needs>],
    /// The node label of which all pods share one value; `None` if they may go anywhere.
    pub key: Option<&'a str>,
    /// The number of batches of the group in each domain, if batches keep apart.
    pub used: &'a BTreeMap<String, u32>,
    /// The only allowed domain; `None` for any.
    pub only: Option<&'a str>,
    /// Node labels and their values: nodes with one of them are kept for other pods.
    pub closed: &'a [DomainLabel],
}

impl<'a> Question<'a> {
    /// Returns a question that any domain can answer.
    pub const fn new(pods: &'a [Arc<Needs>], key: Option<&'a str>, used: &'a BTreeMap<String, u32>) -> Self {
        Self { pods, key, used, only: None, closed: &[] }
    }

    /// Reports whether pods may go to a node, as far as its labels decide.
    fn allows(&self, facts: &NodeFacts) -> bool {
        let is_open = facts.is_in_none_of(self.closed);
        let domain = self.key.map(|key| facts.label(key));
        is_open && domain.is_none_or(|domain| domain.is_some() && self.only.is_none_or(|only| Some(only) == domain))
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fit {
    Fits(Placement),
    Not(NoFit),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// The value of the label; `None` if the pods may go anywhere.
    pub domain: Option<String>,
    /// The node of each pod, in the order of the question.
    pub nodes: Vec<Arc<str>>,
}

/// The reason why a batch fits nowhere.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NoFit {
    /// Whether preemption was asked for and one of its pods never preempts.
    pub never_preempts: bool,
    /// The domain with room for most of the batch; `None` if there is no domain.
    pub best: Option<Miss>,
    /// Whether a search ended at its bound: an untried way may exist.
    pub bounded: bool,
    /// A claim that pods share and for which no node has the devices.
    pub claim: Option<Arc<str>>,
    /// The only domain that was asked: that of the other pods of the batch.
    pub bound: Option<String>,
}

/// The part of a batch that a domain has room for, and what it lacks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Miss {
    /// The value of the label.
    pub domain: Option<String>,
    pub fits: u32,
    pub of: u32,
    /// The total shortage by resource: thousandths of processors, bytes, or pieces.
    pub short: BTreeMap<Arc<str>, i64>,
    /// The resources of these that no node has.
    pub nowhere: Vec<Arc<str>>,
    /// A resource that is sufficient in total, but on no single node for one more pod: the amount the pod asks for, and the
    /// largest free amount of a node.
    pub split: Option<(Arc<str>, i64, i64)>,
    /// The number of nodes of the domain that none of the remaining pods can go to, whatever their free room.
    pub refused: BTreeMap<Refusal, u32>,
    /// A claim of a remaining pod that some of these nodes cannot reach.
    pub claim: Option<Arc<str>>,
    /// Whether anti-affinity or spread limits the pods.
    pub apart: bool,
    /// Whether a remaining pod asks for devices.
    pub devices: bool,
    /// The pods that it has room for, by position in the question, each with its node. Where `apart` limits the pods, they may
    /// break these limits.
    pub placed: Vec<(usize, Arc<str>)>,
}

/// A domain with its nodes, before packing.
struct Candidate<'a> {
    domain: Option<&'a str>,
    nodes: Vec<(&'a Arc<str>, &'a NodeRoom, &'a NodeFacts)>,
}

/// Finds the domain for a batch: of the domains with the fewest batches of its group, the one with the least room.
pub fn place(room: &Room, question: &Question<'_>) -> Fit {
    place_within(room, question, &mut { MOST_ROOMS })
}

/// Finds the domain for a batch, whose open claims are allocated in at most so many ways.
fn place_within(room: &Room, question: &Question<'_>, ways: &mut u32) -> Fit {
    let open = open_claims(question.pods, room);
    if open.is_empty() {
        return place_as_is(room, question);
    }
    let bound = question.only.map(str::to_owned);
    let mut best = NoFit { claim: open.first().map(|claim| claim.key().clone()), bound, ..NoFit::default() };
    let first_pod = FirstPod::of(room, &open, question.pods);
    for allocated in first_pod.rooms(question.pods, |facts| question.allows(facts)) {
        let Some(left) = ways.checked_sub(1) else {
            best.bounded = true;
            break;
        };
        *ways = left;
        match place_within(&allocated.room, &Question { pods: &allocated.pods, ..*question }, ways) {
            Fit::Fits(found) if first_pod.is_the_same_on(&allocated, &found.nodes) => return Fit::Fits(found),
            Fit::Fits(_) => best.bounded = true,
            Fit::Not(no_fit) if no_fit.fits() > best.fits() || best.claim.is_some() => best = no_fit,
            Fit::Not(_) => {}
        }
    }
    Fit::Not(best)
}

/// Finds the domain for a batch without open claims.
fn place_as_is(room: &Room, question: &Question<'_>) -> Fit {
    let room = &*room.seen_with(least_priority(question.pods));
    let constraints = Constraints::of(question.pods.iter(), room);
    let mut asked = constraints.sorts(question.pods);
    let supply = Supply::of(&mut asked, room);
    let resources = &*supply.dimensions;
    let mut candidates: Vec<_> = candidates(room, question)
        .into_iter()
        .map(|candidate| {
            let bins = bins(&candidate, &asked, &supply);
            (candidate, bins)
        })
        .collect();
    candidates.sort_by_cached_key(|(candidate, bins)| {
        let used = candidate.domain.and_then(|domain| question.used.get(domain)).copied().unwrap_or_default();
        (used, slack(bins, &asked, resources), candidate.domain)
    });
    let mut best: Option<Miss> = None;
    let mut bounded = false;
    let sorts: Vec<_> = asked.iter().map(|asked| asked.sort(resources)).collect();
    for (candidate, mut bins) in candidates {
        // Constraints do not matter if the pods would not fit without them.
        let none = constraints.is_empty() || !may_fit(&bins, &sorts);
        let mut rules = if none { Rules::default() } else { candidate.rules(&constraints, &asked, &mut bins, room) };
        supply.limit(&mut rules, &asked, bins.iter(), 0..bins.len());
        let packing = pack(&mut bins, &sorts, &rules, STEPS);
        if packing.is_complete() {
            return Fit::Fits(placement(&candidate, &asked, &packing));
        }
        bounded |= packing.bounded;
        let fits = count(question.pods.len()).saturating_sub(packing.left_out());
        if best.as_ref().is_none_or(|best| fits > best.fits) {
            let miss = miss(&candidate, &asked, resources, &packing, &bins);
            let nowhere = miss.short.keys().filter(|resource| !supply.is_anywhere(resource, room)).cloned().collect();
            best = Some(Miss { apart: !constraints.is_empty(), nowhere, ..miss });
        }
    }
    Fit::Not(NoFit { best, bounded, bound: question.only.map(str::to_owned), ..NoFit::default() })
}

/// Returns which pods of a question without an answer find a node when a scheduler looks at one after the other, by position.
pub fn place_some(room: &Room, question: &Question<'_>, no_fit: &NoFit) -> Vec<(usize, Arc<str>)> {
    let Some(best) = &no_fit.best else { return Vec::new() };
    if !best.apart {
        return best.placed.clone();
    }
    let only = question.only.or(best.domain.as_deref());
    let (mut room, mut placed, mut full) = (room.clone(), Vec::new(), None);
    for (at, needs) in question.pods.iter().enumerate() {
        // Where a pod finds no node, an equal one finds none either.
        if full.is_some_and(|full| Arc::ptr_eq(full, needs)) {
            continue;
        }
        match place(&room, &Question { pods: std::slice::from_ref(needs), only, ..*question }) {
            Fit::Fits(found) => placed.extend(found.nodes.into_iter().map(|node| {
                room.apply_pod(&format!("one by one: {at}"), &node, needs.load.clone(), &needs.peer);
                (at, node)
            })),
            Fit::Not(_) => full = Some(needs),
        }
    }
    placed
}

/// Returns the lowest priority of the pods: a batch preempts only pods that every pod of it may preempt.
pub fn least_priority<'a>(pods: impl IntoIterator<Item = &'a Arc<Needs>>) -> i32 {
    pods.into_iter().map(|needs| needs.load.priority).min().unwrap_or_default()
}

/// Returns the room without pods of a lower priority than all pods of the batch; `None` if a pod of the batch never preempts.
pub fn preempted(room: &Room, pods: &[Arc<Needs>]) -> Option<(i32, Room)> {
    let least = least_priority(pods);
    let all_may = pods.iter().all(|needs| !needs.load.never_preempts);
    all_may.then(|| (least, room.without_pods_below(least)))
}

fn candidates<'a>(room: &'a Room, question: &Question<'_>) -> Vec<Candidate<'a>> {
    let nodes = || room.nodes().filter(|(_, _, facts)| question.allows(facts));
    let Some(key) = question.key else { return vec![Candidate { domain: None, nodes: nodes().collect() }] };
    let mut domains: BTreeMap<&str, Vec<_>> = BTreeMap::new();
    for node in nodes() {
        domains.entry(node.2.label(key).unwrap_or_default()).or_default().push(node);
    }
    domains.into_iter().map(|(domain, nodes)| Candidate { domain: Some(domain), nodes }).collect()
}

impl Candidate<'_> {
    /// Returns the rules of the constraints for the nodes of this domain.
    fn rules(&self, constraints: &Constraints<'_>, asked: &[Asked<'_>], bins: &mut [Bin], room: &Room) -> Rules {
        let nodes: Vec<_> = self.nodes.iter().map(|(_, _, facts)| *facts).collect();
        constraints.rules(asked, &nodes, bins, room)
    }
}

fn bins(candidate: &Candidate<'_>, asked: &[Asked<'_>], supply: &Supply<'_>) -> Vec<Bin> {
    let bin = |(_, room, facts): &(&Arc<str>, &NodeRoom, &NodeFacts)| {
        supply.bin(room, facts, asked.iter().map(|asked| facts.refusal(asked.needs).is_none()).collect())
    };
    candidate.nodes.iter().map(bin).collect()
}

/// Returns how many such batches the room would hold, in 1/1024, if it could be split freely.
fn slack(bins: &[Bin], asked: &[Asked<'_>], resources: &[Arc<str>]) -> i128 {
    let usable = |bin: &&Bin| bin.takes.contains(&true);
    let part = |(at, resource): (usize, &Arc<str>)| {
        let wanted = total_of(asked, resource);
        let free = bins.iter().filter(usable).filter_map(|bin| bin.free.get(at)).map(|free| i128::from(*free).max(0));
        free.sum::<i128>() * 1024 / wanted.max(1)
    };
    resources.iter().enumerate().map(part).min().unwrap_or_default()
}

fn placement(candidate: &Candidate<'_>, asked: &[Asked<'_>], packing: &Packing) -> Placement {
    let nodes = nodes_of(asked, packing, |bin| Some(candidate.nodes.get(bin)?.0));
    Placement { domain: candidate.domain.map(str::to_owned), nodes }
}

/// Returns the node of each pod, in the order of the question; `name` returns the node of a bin.
pub(super) fn nodes_of<'a>(
    asked: &[Asked<'_>],
    packing: &Packing,
    name: impl Fn(usize) -> Option<&'a Arc<str>>,
) -> Vec<Arc<str>> {
    places_of(asked, packing, name).into_iter().map(|(_, node)| node).collect()
}

/// Returns the pods that have a place, by position in the question, each with its node.
fn places_of<'a>(
    asked: &[Asked<'_>],
    packing: &Packing,
    name: impl Fn(usize) -> Option<&'a Arc<str>>,
) -> Vec<(usize, Arc<str>)> {
    let mut nodes: Vec<(usize, Arc<str>)> = Vec::new();
    for (asked, placed) in asked.iter().zip(&packing.placed) {
        let names = placed.iter().filter_map(|(bin, count)| Some((name(*bin)?, *count)));
        let each = names.flat_map(|(name, count)| (0..count).map(move |_| name.clone()));
        nodes.extend(asked.pods.iter().copied().zip(each));
    }
    nodes.sort();
    nodes
}

fn count(pods: usize) -> u32 {
    u32::try_from(pods).unwrap_or(u32::MAX)
}

/// Returns what a domain lacks after greedy packing.
fn miss(
    candidate: &Candidate<'_>,
    asked: &[Asked<'_>],
    resources: &[Arc<str>],
    packing: &Packing,
    bins: &[Bin],
) -> Miss {
    let of = count(asked.iter().map(|asked| asked.pods.len()).sum());
    let left: Vec<_> = asked.iter().zip(&packing.left).enumerate().filter(|(_, (_, left))| **left > 0).collect();
    let usable: Vec<&Bin> =
        bins.iter().filter(|bin| left.iter().any(|(at, _)| bin.takes.get(*at) == Some(&true))).collect();
    let mut short = BTreeMap::new();
    let mut split = Vec::new();
    for (at, resource) in resources.iter().enumerate() {
        let of =
            |(_, (asked, left)): &(usize, (&Asked<'_>, &u32))| i128::from(asked.amount(resource)) * i128::from(**left);
        let wanted: i128 = left.iter().map(of).sum();
        let free = || usable.iter().filter_map(|bin| bin.free.get(at)).copied();
        let missing = wanted - free().map(|free| i128::from(free.max(0))).sum::<i128>();
        if missing > 0 {
            short.insert(resource.clone(), i64::try_from(missing).unwrap_or(i64::MAX));
        }
        let least = left.iter().map(|(_, (asked, _))| asked.amount(resource)).filter(|one| *one > 0).min();
        let largest = free().max().unwrap_or_default().max(0);
        split.extend(least.filter(|least| *least > largest).map(|least| (resource.clone(), least, largest)));
    }
    let mut refused = BTreeMap::new();
    for (_, _, facts) in &candidate.nodes {
        let refusals = left.iter().map(|(_, (asked, _))| facts.refusal(asked.needs));
        if let Some(refusal) = refusals.collect::<Option<Vec<_>>>().and_then(|all| all.into_iter().min()) {
            *refused.entry(refusal).or_default() += 1;
        }
    }
    let unreached = |(_, _, facts): &(&Arc<str>, &NodeRoom, &NodeFacts)| {
        left.iter().find_map(|(_, (asked, _))| facts.unreached(asked.needs)).cloned()
    };
    let claim = candidate.nodes.iter().find_map(unreached);
    let split = split.into_iter().find(|_| short.is_empty());
    let (domain, fits) = (candidate.domain.map(str::to_owned), of - packing.left_out());
    let devices = left.iter().any(|(_, (asked, _))| asked.demand > 0);
    let placed = places_of(asked, packing, |bin| Some(candidate.nodes.get(bin)?.0));
    Miss { domain, fits, of, short, nowhere: Vec::new(), split, refused, claim, apart: false, devices, placed }
}

impl Fit {
    pub fn placement(&self) -> Option<&Placement> {
        match self {
            Self::Fits(placement) => Some(placement),
            Self::Not(_) => None,
        }
    }
}

impl NoFit {
    fn fits(&self) -> u32 {
        self.best.as_ref().map_or(0, |best| best.fits)
    }

    /// Returns a text such as `no rack fits step 3: best rack-2 fits 9 of 15 pods, short of 6 nvidia.com/gpu`. `domains` is the
    /// word for domains, if the batch must share one.
    pub fn describe(&self, domains: Option<&str>, batch: &str) -> String {
        let bound = self.bound.as_ref().filter(|_| domains.is_some());
        let what = match (bound, domains) {
            (Some(domain), _) => format!("{batch} is in {domain}, and the rest of it does not fit there"),
            (None, Some(what)) => format!("no {what} fits {batch}"),
            (None, None) => format!("{batch} does not fit"),
        };
        let Some(best) = &self.best else {
            let why = self.claim.as_ref().map(|claim| format!("no node has the devices of claim {claim:?}"));
            return format!(
                "{what}: {}",
                why.as_deref().unwrap_or(if bound.is_some() { "no node is there" } else { "no node has one" })
            );
        };
        let Miss { domain, fits, of, .. } = best;
        let named = domain.as_deref().filter(|_| domains.is_some() && bound.is_none());
        let which = named.map_or_else(|| "there is room for".to_owned(), |name| format!("best {name} fits"));
        let bound = if self.bounded { "; not every way to place the pods was tried" } else { "" };
        let never = if self.never_preempts { "; pods with preemptionPolicy Never take no other's place" } else { "" };
        format!("{what}: {which} {fits} of {of} pods, {}{bound}{never}", best.why())
    }
}

impl Miss {
    /// Formats the shortage of a resource.
    pub fn written(&self, resource: &str) -> String {
        written(resource, self.short.get(resource).copied().unwrap_or_default())
    }

    /// Returns what the domain lacks, as text.
    fn why(&self) -> String {
        let short = |(name, amount): (&Arc<str>, &i64)| {
            let short = format!("short of {} {name}", written(name, *amount));
            if self.nowhere.contains(name) { format!("{short}, which {}", nowhere(name)) } else { short }
        };
        let mut why: Vec<_> = self.short.iter().map(short).collect();
        why.extend(self.split.iter().map(|(name, asked, largest)| {
            format!(
                "a pod asks for {} {name} and no node has more than {}",
                written(name, *asked),
                written(name, *largest)
            )
        }));
        why.extend(self.refused.iter().map(|(refusal, nodes)| match refusal {
            Refusal::Affinity => format!("nodes that its pods do not select: {nodes}"),
            Refusal::Volume => {
                let claim = self.claim.as_deref().unwrap_or_default();
                format!("nodes from which claim {claim:?} cannot be reached: {nodes}")
            }
            Refusal::Features => format!("nodes without features of the kubelet that its pods need: {nodes}"),
            Refusal::Taint => format!("nodes with taints that its pods do not tolerate: {nodes}"),
            Refusal::NotReady => format!("nodes that are not ready: {nodes}"),
            Refusal::Cordoned => format!("cordoned nodes: {nodes}"),
            Refusal::Refused => format!("nodes where its pods were refused: {nodes}"),
        }));
        if why.is_empty() {
            let devices = if self.devices { "devices that its pods ask for, or " } else { "" };
            let pods = if self.apart {
                "pods that required anti-affinity or spread keeps apart"
            } else {
                "pods or their host ports"
            };
            why.push(format!("its nodes have no more {devices}room for {pods}"));
        }
        why.join(", ")
    }
}

/// Returns what is said of a resource that no node has.
pub fn nowhere(resource: &str) -> String {
    format!(
        "no node has in its allocatable and no DeviceClass names (if an extender of the scheduler gives it: `serve \
         --ignore-resources={resource}`)"
    )
}

/// Returns the constraints on these pods that only the scheduler checks.
pub fn not_modelled(pods: &[Arc<Needs>], room: &Room) -> Vec<NotModelled> {
    let mut all: Vec<_> = pods.iter().flat_map(|needs| needs.not_modelled.iter().cloned()).collect();
    let left_out = |needs: &'_ Arc<Needs>| room.left_out(needs).cloned().collect::<Vec<_>>();
    all.extend(kinds(pods).flat_map(left_out).map(NotModelled::Resource));
    all.extend(kinds(pods).flat_map(|needs| room.devices().not_modelled(needs.load.ask())).map(NotModelled::Devices));
    all.sort();
    all.dedup();
    all
}
