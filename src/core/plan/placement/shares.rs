//! Placement with nested domains (rack within block): a domain for each constraint from wide to narrow, then nodes for the
//! pods. A dead end is undone, up to a bound.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use super::apart::Constraints;
use super::asked::{Asked, total};
use super::filter::{DomainLabel, NodeFacts};
use super::needs::Needs;
use super::pack::{Bin, STEPS, Sort, pack};
use super::place::{least_priority, nodes_of};
use super::room::{NodeRoom, Room};
use super::supply::Supply;
use super::together::Rules;

/// The maximum number of domains and packings to try for one question: a base, and an addition for each step.
const TRIES: u32 = 256;
const TRIES_A_STEP: u32 = 4;

/// Parts whose pods all share one value of a node label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Share {
    /// The node label.
    pub key: String,
    /// The positions of the parts, in ascending order.
    pub parts: Vec<usize>,
    /// False for a share that is dropped if it cannot be kept.
    pub required: bool,
    /// The value in which pods of the parts run, or will run.
    pub fixed: Option<String>,
    /// The value to try first.
    pub hint: Option<String>,
}

/// The result of a search.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shared {
    /// The value of each share; `None` for a dropped share, or one whose parts have no pods.
    pub domains: Vec<Option<String>>,
    /// The node of each pod of each part.
    pub nodes: Vec<Vec<Arc<str>>>,
}

/// The error of a search without a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotShared {
    /// Whether the search ended at its bound.
    pub bounded: bool,
}

/// Finds a place for all pods of all parts, so that every share holds. Nodes with a label and value of `closed` are kept for
/// others.
///
/// # Errors
///
/// Fails when there is no place, or none was found.
pub fn place_shared(
    room: &Room,
    parts: &[Vec<Arc<Needs>>],
    shares: &[Share],
    closed: &[DomainLabel],
) -> Result<Shared, NotShared> {
    let room = &*room.seen_with(least_priority(parts.iter().flatten()));
    let steps = steps(parts, shares);
    let tries = TRIES.saturating_add(TRIES_A_STEP.saturating_mul(u32::try_from(steps.len()).unwrap_or(u32::MAX)));
    let mut search = Search { tries, ..Search::new(room, parts, shares, closed) };
    if !search.may_fit() {
        return Err(NotShared { bounded: false });
    }
    // A preference counts more than the best fit of the wider share.
    if shares.iter().any(|share| !share.required) {
        let mut strict = Search { strict: true, ..search.clone() };
        if strict.go(&steps) {
            return Ok(strict.found());
        }
    }
    if search.go(&steps) { Ok(search.found()) } else { Err(NotShared { bounded: search.tries == 0 }) }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    /// Chooses a domain for a share.
    Choose(usize),
    /// Places the pods of parts with the same shares.
    Pack(Vec<usize>),
}

/// Plans the steps: wide shares before those within them, and pods as soon as all their shares have a domain.
fn steps(parts: &[Vec<Arc<Needs>>], shares: &[Share]) -> Vec<Step> {
    let has_pods = |part: &usize| parts.get(*part).is_some_and(|pods| !pods.is_empty());
    let mut order: Vec<_> = (0..shares.len()).collect();
    // Of two shares over the same parts the required one is the wider one: a rule ensures that.
    order.sort_by_key(|at| shares.get(*at).map(|share| (usize::MAX - share.parts.len(), !share.required, *at)));
    let mut planner = Planner { shares, steps: Vec::new(), left: (0..parts.len()).filter(has_pods).collect() };
    while let Some(share) = (!order.is_empty()).then(|| order.remove(0)) {
        planner.choose(share, &mut order);
    }
    planner.pack_ready(&(0..parts.len()).collect::<Vec<_>>(), &[]);
    planner.steps
}

struct Planner<'a> {
    shares: &'a [Share],
    steps: Vec<Step>,
    /// Parts whose pods have no step yet.
    left: BTreeSet<usize>,
}

impl Planner<'_> {
    fn choose(&mut self, at: usize, order: &mut Vec<usize>) {
        let Some(share) = self.shares.get(at) else { return };
        if !share.parts.iter().any(|part| self.left.contains(part)) {
            return;
        }
        self.steps.push(Step::Choose(at));
        let is_within = |other: &usize| {
            self.shares.get(*other).is_some_and(|other| other.parts.iter().all(|part| share.parts.contains(part)))
        };
        let within: Vec<_> = order.iter().copied().filter(is_within).collect();
        for inner in within {
            if let Some(position) = order.iter().position(|other| *other == inner) {
                order.remove(position);
                self.choose(inner, order);
            }
        }
        self.pack_ready(&share.parts, order);
    }

    /// Plans the packing of these parts, if all their shares are chosen.
    fn pack_ready(&mut self, parts: &[usize], order: &[usize]) {
        let covers = |at: &usize, part: usize| self.shares.get(*at).is_some_and(|share| share.parts.contains(&part));
        let mut ready: BTreeMap<Vec<usize>, Vec<usize>> = BTreeMap::new();
        for part in parts.iter().copied().filter(|part| self.left.contains(part)) {
            if !order.iter().any(|at| covers(at, part)) {
                let kept = (0..self.shares.len()).filter(|at| covers(at, part)).collect();
                ready.entry(kept).or_default().push(part);
            }
        }
        for parts in ready.into_values() {
            parts.iter().for_each(|part| _ = self.left.remove(part));
            self.steps.push(Step::Pack(parts));
        }
    }
}

/// The remaining room of a node during the search.
#[derive(Clone, Debug)]
struct Node<'a> {
    name: &'a Arc<str>,
    facts: &'a NodeFacts,
    /// The room in the resources that are asked for.
    bin: Bin,
}

#[derive(Clone)]
struct Search<'a> {
    room: &'a Room,
    constraints: Constraints<'a>,
    nodes: Vec<Node<'a>>,
    parts: &'a [Vec<Arc<Needs>>],
    shares: &'a [Share],
    supply: Rc<Supply<'a>>,
    chosen: Vec<Option<String>>,
    placed: Vec<Vec<Arc<str>>>,
    tries: u32,
    /// Whether preferred shares must hold, too.
    strict: bool,
}

impl<'a> Search<'a> {
    fn new(room: &'a Room, parts: &'a [Vec<Arc<Needs>>], shares: &'a [Share], closed: &[DomainLabel]) -> Self {
        let is_open = |facts: &NodeFacts| facts.is_in_none_of(closed);
        let constraints = Constraints::of(parts.iter().flatten(), room);
        let all: Vec<_> = parts.iter().flatten().cloned().collect();
        let supply = Rc::new(Supply::of(&mut constraints.sorts(&all), room));
        let node = |(name, room, facts): (&'a Arc<str>, &'a NodeRoom, &'a NodeFacts)| Node {
            name,
            facts,
            bin: supply.bin(room, facts, Vec::new()),
        };
        Self {
            room,
            constraints,
            nodes: room.nodes().filter(|(_, _, facts)| is_open(facts)).map(node).collect(),
            parts,
            shares,
            supply,
            chosen: vec![None; shares.len()],
            placed: vec![Vec::new(); parts.len()],
            tries: 0,
            strict: false,
        }
    }

    fn found(self) -> Shared {
        Shared { domains: self.chosen, nodes: self.placed }
    }

    fn sorts<'b>(&self, pods: &'b [Arc<Needs>]) -> Vec<Asked<'b>> {
        let mut asked = self.constraints.sorts(pods);
        self.supply.complete(&mut asked);
        asked
    }

    fn go(&mut self, steps: &[Step]) -> bool {
        let Some((step, rest)) = steps.split_first() else { return true };
        match step {
            Step::Choose(at) => self.choose(*at, rest),
            Step::Pack(parts) => self.pack(parts, rest),
        }
    }

    fn choose(&mut self, at: usize, rest: &[Step]) -> bool {
        let Some(share) = self.shares.get(at) else { return false };
        for domain in self.domains(share) {
            if self.tries == 0 {
                return false;
            }
            self.tries -= 1;
            self.set(at, Some(domain));
            if self.go(rest) {
                return true;
            }
        }
        self.set(at, None);
        !(share.required || self.strict) && self.go(rest)
    }

    /// Returns false if no search can help: the total room is too small, or a share has no domain even before anything is
    /// placed.
    fn may_fit(&self) -> bool {
        let all: Vec<_> = self.parts.iter().flatten().cloned().collect();
        let asked = self.sorts(&all);
        let free = |at: usize| -> i128 {
            self.nodes.iter().filter_map(|node| node.bin.free.get(at)).map(|free| i128::from(*free).max(0)).sum()
        };
        let in_all = self.supply.dimensions.iter().enumerate().all(|(at, name)| free(at) >= total(&asked, name));
        let has_pods =
            |share: &&Share| share.parts.iter().any(|at| self.parts.get(*at).is_some_and(|pods| !pods.is_empty()));
        let required = || self.shares.iter().filter(|share| share.required).filter(has_pods);
        in_all && required().all(|share| !self.domains(share).is_empty())
    }

    fn set(&mut self, at: usize, domain: Option<String>) {
        if let Some(chosen) = self.chosen.get_mut(at) {
            *chosen = domain;
        }
    }

    /// Returns the domains with enough room for the pods of a share: only the fixed one if there is one, else the hint first,
    /// then the one with the least room.
    fn domains(&self, share: &Share) -> Vec<String> {
        let pods: Vec<_> = share.parts.iter().filter_map(|part| self.parts.get(*part)).flatten().cloned().collect();
        let asked = self.sorts(&pods);
        let mut free: BTreeMap<&str, Vec<i128>> = BTreeMap::new();
        let mut bounds: Vec<_> = share.parts.iter().map(|part| self.bounds(*part)).collect();
        bounds.sort_unstable();
        bounds.dedup();
        for (node, domain) in self.nodes.iter().filter_map(|node| Some((node, node.facts.label(&share.key)?))) {
            let is_other = share.fixed.as_ref().is_some_and(|fixed| fixed != domain);
            if is_other || !bounds.iter().any(|bounds| is_within(node, bounds)) || !takes_any(node, &asked) {
                continue;
            }
            let sums = free.entry(domain).or_insert_with(|| vec![0; self.supply.dimensions.len()]);
            sums.iter_mut().zip(&node.bin.free).for_each(|(sum, free)| *sum += i128::from(*free).max(0));
        }
        let wanted: Vec<i128> = self.supply.dimensions.iter().map(|resource| total(&asked, resource)).collect();
        let slack = |free: &[i128]| {
            let of = |(free, wanted): (&i128, &i128)| free * 1024 / (*wanted).max(1);
            free.iter().zip(&wanted).filter(|(_, wanted)| **wanted > 0).map(of).min().unwrap_or_default()
        };
        let enough = |free: &[i128]| free.iter().zip(&wanted).all(|(free, wanted)| free >= wanted);
        let mut found: Vec<_> = free
            .iter()
            .filter(|(_, free)| enough(free))
            .map(|(domain, free)| (share.hint.as_deref() != Some(*domain), slack(free), (*domain).to_owned()))
            .collect();
        found.sort();
        found.into_iter().map(|(_, _, domain)| domain).collect()
    }

    /// Returns the node labels and values that the chosen shares set for a part.
    fn bounds(&self, part: usize) -> Vec<(&str, &str)> {
        let set = self.shares.iter().zip(&self.chosen).filter(|(share, _)| share.parts.binary_search(&part).is_ok());
        set.filter_map(|(share, domain)| Some((share.key.as_str(), domain.as_deref()?))).collect()
    }

    fn pack(&mut self, parts: &[usize], rest: &[Step]) -> bool {
        if self.tries == 0 {
            return false;
        }
        self.tries -= 1;
        let Some(first) = parts.first() else { return self.go(rest) };
        let (mut owners, mut pods) = (Vec::new(), Vec::new());
        for part in parts {
            let own = self.parts.get(*part).into_iter().flatten();
            own.for_each(|needs| (owners.push(*part), pods.push(needs.clone())).1);
        }
        let asked = self.sorts(&pods);
        let bounds = self.bounds(*first);
        let is_open = |at: &usize| self.nodes.get(*at).is_some_and(|node| is_within(node, &bounds));
        let open: Vec<_> = (0..self.nodes.len()).filter(is_open).collect();
        let bin = |at: &usize| {
            let node = self.nodes.get(*at)?;
            let takes = asked.iter().map(|asked| node.facts.refusal(asked.needs).is_none()).collect();
            Some(Bin { takes, ..node.bin.clone() })
        };
        let mut bins: Vec<_> = open.iter().filter_map(bin).collect();
        let before = bins.clone();
        let sorts: Vec<Sort> = asked.iter().map(|asked| asked.sort(&self.supply.dimensions)).collect();
        let rules = self.rules(&asked, &open, &mut bins);
        let packing = pack(&mut bins, &sorts, &rules, STEPS);
        if !packing.is_complete() {
            return false;
        }
        let nodes = nodes_of(&asked, &packing, |bin| Some(self.nodes.get(*open.get(bin)?)?.name));
        for (node, part) in nodes.into_iter().zip(&owners) {
            self.placed.get_mut(*part).into_iter().for_each(|placed| placed.push(node.clone()));
        }
        self.put(&open, &bins);
        if self.go(rest) {
            return true;
        }
        self.put(&open, &before);
        parts.iter().filter_map(|part| self.placed.get_mut(*part).map(Vec::clear)).for_each(drop);
        false
    }

    /// Returns the rules between these pods, existing pods and pods that the search has placed.
    fn rules(&self, asked: &[Asked<'_>], open: &[usize], bins: &mut [Bin]) -> Rules {
        let mut rules = self.apart(asked, open, bins);
        self.supply.limit(&mut rules, asked, self.nodes.iter().map(|node| &node.bin), open.iter().copied());
        rules
    }

    fn apart(&self, asked: &[Asked<'_>], open: &[usize], bins: &mut [Bin]) -> Rules {
        if self.constraints.is_empty() {
            return Rules::default();
        }
        let mut constraints = self.constraints.clone();
        let placed = self.parts.iter().zip(&self.placed).flat_map(|(pods, nodes)| pods.iter().zip(nodes));
        for (needs, facts) in placed.filter_map(|(needs, node)| Some((needs, self.room.facts(node)?))) {
            constraints.add(&needs.peer, facts);
        }
        let nodes: Vec<_> = open.iter().filter_map(|at| Some(self.nodes.get(*at)?.facts)).collect();
        constraints.rules(asked, &nodes, bins, self.room)
    }

    fn put(&mut self, open: &[usize], bins: &[Bin]) {
        for (at, bin) in open.iter().zip(bins) {
            if let Some(node) = self.nodes.get_mut(*at) {
                node.bin = Bin { takes: Vec::new(), ..bin.clone() };
            }
        }
    }
}

fn is_within(node: &Node<'_>, bounds: &[(&str, &str)]) -> bool {
    bounds.iter().all(|(key, domain)| node.facts.label(key) == Some(domain))
}

fn takes_any(node: &Node<'_>, asked: &[Asked<'_>]) -> bool {
    asked.iter().any(|asked| node.facts.refusal(asked.needs).is_none())
}

#[cfg(test)]
#[path = "shares_tests.rs"]
mod tests;
