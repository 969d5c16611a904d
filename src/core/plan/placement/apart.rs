//! Constraints on other pods: required anti-affinity and spread, among the pods of a question and the existing pods.
//!
//! Anti-affinity binds both sides, as in kube-scheduler: a pod without any is kept away by an existing pod that has it. A
//! spread is read as if the pods were bound only to the domain that their batch shares, for all of them together, so that it
//! still holds when the last pod is counted.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::sync::Arc;

use super::asked::Asked;
use super::filter::{NodeFacts, Refusal};
use super::needs::{Amounts, Needs, kinds};
use super::pack::Bin;
use super::peers::{Apart, Peer, Spread};
use super::room::Room;
use super::together::{Limit, Rules, Spreading};

/// The constraints between the pods of a question and the existing pods; mostly none.
#[derive(Clone, Debug, Default)]
pub(super) struct Constraints<'a> {
    terms: Vec<Term<'a>>,
    spread: Vec<Counted<'a>>,
}

/// A term of anti-affinity, and the domains where it applies already.
#[derive(Clone, Debug)]
struct Term<'a> {
    apart: &'a Apart,
    /// Domains with pods that the term selects.
    about: HashSet<Box<str>>,
    /// Domains with pods that have the term.
    having: HashSet<Box<str>>,
}

/// A spread, with the number of its pods on each node.
#[derive(Clone, Debug)]
struct Counted<'a> {
    spread: &'a Spread,
    nodes: HashMap<Arc<str>, u32>,
}

impl<'a> Constraints<'a> {
    /// Groups interchangeable pods, in the order of the question.
    pub fn sorts<'b>(&self, pods: &'b [Arc<Needs>]) -> Vec<Asked<'b>> {
        let mut sorts: Vec<Asked<'_>> = Vec::new();
        let mut known: HashMap<_, usize> = HashMap::new();
        // Most pods share the needs of the previous one, and comparing pointers is cheaper than comparing needs.
        let mut last: Option<(&Arc<Needs>, usize)> = None;
        for (position, needs) in pods.iter().enumerate() {
            let same = last.filter(|(before, _)| Arc::ptr_eq(before, needs)).map(|(_, sort)| sort);
            let sort = same.unwrap_or_else(|| match known.entry((needs.alike(), self.about(needs))) {
                Entry::Occupied(known) => *known.get(),
                Entry::Vacant(new) => {
                    let about = new.key().1.clone();
                    sorts.push(Asked { needs, about, pods: Vec::new(), devices: Amounts::new(), demand: 0 });
                    *new.insert(sorts.len() - 1)
                }
            });
            last = Some((needs, sort));
            sorts.get_mut(sort).into_iter().for_each(|sort| sort.pods.push(position));
        }
        sorts
    }

    /// Returns the constraints of these pods, and those of other pods that select them.
    pub fn of(pods: impl Iterator<Item = &'a Arc<Needs>>, room: &'a Room) -> Self {
        let kinds: Vec<_> = kinds(pods).collect();
        let of_others = room.wary().flat_map(|peer| &peer.apart);
        let of_others = of_others.filter(|apart| kinds.iter().any(|needs| apart.whom.includes(&needs.peer)));
        let terms = each_once(kinds.iter().flat_map(|needs| &needs.peer.apart).chain(of_others));
        let spreads = each_once(kinds.iter().flat_map(|needs| &needs.spread));
        if terms.is_empty() && spreads.is_empty() {
            return Self::default();
        }
        let term = |apart| Term { apart, about: HashSet::new(), having: HashSet::new() };
        let mut new = Self {
            terms: terms.into_iter().map(term).collect(),
            spread: spreads.into_iter().map(|spread| Counted { spread, nodes: HashMap::new() }).collect(),
        };
        let mut concerned: HashMap<*const Peer, bool> = HashMap::new();
        for (peer, node) in room.tenants() {
            let is_concerned = *concerned.entry(Arc::as_ptr(peer)).or_insert_with(|| new.concerns(peer));
            if let Some(facts) = room.facts(node).filter(|_| is_concerned) {
                new.add(peer, facts);
            }
        }
        new
    }

    /// Reports whether other pods do not matter.
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty() && self.spread.is_empty()
    }

    fn concerns(&self, peer: &Peer) -> bool {
        self.terms.iter().any(|term| term.apart.whom.includes(peer) || peer.apart.contains(term.apart))
            || self.spread.iter().any(|counted| counted.spread.whom.includes(peer))
    }

    /// Counts a pod on its node.
    pub fn add(&mut self, peer: &Peer, node: &NodeFacts) {
        for term in &mut self.terms {
            let Some(domain) = node.label(&term.apart.key) else { continue };
            if term.apart.whom.includes(peer) && !term.about.contains(domain) {
                term.about.insert(domain.into());
            }
            if peer.apart.contains(term.apart) && !term.having.contains(domain) {
                term.having.insert(domain.into());
            }
        }
        for counted in self.spread.iter_mut().filter(|counted| counted.spread.whom.includes(peer)) {
            *counted.nodes.entry(node.name.clone()).or_default() += 1;
        }
    }

    /// Returns which of the constraints select a pod: pods with equal needs are interchangeable only if the same constraints
    /// select them.
    pub fn about(&self, needs: &Needs) -> Vec<bool> {
        let terms = self.terms.iter().map(|term| term.apart.whom.includes(&needs.peer));
        terms.chain(self.spread.iter().map(|counted| counted.spread.whom.includes(&needs.peer))).collect()
    }

    /// Returns the rules for packing pods onto these nodes, and marks in `bins` where existing pods exclude a sort.
    pub fn rules(&self, asked: &[Asked<'_>], nodes: &[&NodeFacts], bins: &mut [Bin], room: &Room) -> Rules {
        let mut rules = Rules::default();
        let is_about = |at: usize| asked.iter().map(|asked| asked.about.get(at) == Some(&true)).collect::<Vec<_>>();
        for (at, term) in self.terms.iter().enumerate() {
            let about = is_about(at);
            let of: Vec<_> = asked.iter().map(|asked| asked.needs.peer.apart.contains(term.apart)).collect();
            for (bin, domain) in bins.iter_mut().zip(nodes.iter().map(|facts| facts.label(&term.apart.key))) {
                let Some(domain) = domain else { continue };
                let (by_about, by_having) = (term.about.contains(domain), term.having.contains(domain));
                let may = |of: bool, about: bool| !(of && by_about || about && by_having);
                for ((takes, of), about) in bin.takes.iter_mut().zip(&of).zip(&about) {
                    *takes &= may(*of, *about);
                }
            }
            if of.contains(&true) && about.contains(&true) {
                let domains = numbered(nodes.iter().map(|facts| facts.label(&term.apart.key)), &mut HashMap::new());
                rules.add(Limit::apart(of, about), domains);
            }
        }
        for (at, counted) in self.spread.iter().enumerate() {
            let about = is_about(self.terms.len() + at);
            for (sort, asked) in asked.iter().enumerate().filter(|(_, one)| one.needs.spread.contains(counted.spread)) {
                let (domains, spreading) = counted.count(asked.needs, nodes, room);
                for (bin, facts) in bins.iter_mut().zip(nodes) {
                    let lacks = facts.label(&counted.spread.key).is_none();
                    bin.takes.get_mut(sort).into_iter().for_each(|takes| *takes &= !lacks);
                }
                rules.add(Limit::spread(sort, about.clone(), spreading), domains);
            }
        }
        rules
    }
}

impl Counted<'_> {
    /// Returns the domain of each node as a pod with the constraint counts it, and the number of pods in each domain.
    fn count(&self, needs: &Needs, nodes: &[&NodeFacts], room: &Room) -> (Vec<Option<usize>>, Spreading) {
        let Spread { key, max_skew, min_domains, any_node, honors_taints, .. } = self.spread;
        let has_all_keys = |facts: &NodeFacts| needs.spread.iter().all(|one| facts.label(&one.key).is_some());
        let counts = |facts: &NodeFacts| {
            let refusal = facts.refusal(needs);
            let by_selection = refusal != Some(Refusal::Affinity) || *any_node;
            has_all_keys(facts) && by_selection && (refusal.is_none() || !*honors_taints)
        };
        let domain = |facts: &NodeFacts| facts.label(key).filter(|_| counts(facts)).map(str::to_owned);
        let mut numbers = HashMap::new();
        let of_nodes = numbered(nodes.iter().map(|facts| domain(facts)), &mut numbers);
        let mut taken: Vec<u32> = vec![0; numbers.len()];
        let mut count = |facts: &NodeFacts| {
            let Some(domain) = domain(facts) else { return };
            let next = numbers.len();
            let number = *numbers.entry(domain).or_insert(next);
            if number == taken.len() {
                taken.push(0);
            }
            let there = self.nodes.get(&facts.name).copied().unwrap_or_default();
            taken.get_mut(number).into_iter().for_each(|taken| *taken += there);
        };
        if *any_node {
            room.nodes().for_each(|(_, _, facts)| count(facts));
        } else {
            nodes.iter().for_each(|facts| count(facts));
        }
        let has_enough = usize::try_from(*min_domains).is_ok_and(|least| taken.len() >= least);
        (of_nodes, Spreading { taken, skew: *max_skew, fewest_is_none: !has_enough })
    }
}

fn each_once<T: Copy + Hash + Eq>(all: impl Iterator<Item = T>) -> Vec<T> {
    let mut known = HashSet::new();
    all.filter(|one| known.insert(*one)).collect()
}

/// Numbers domains in the order of their first occurrence.
fn numbered<K: Hash + Eq>(
    domains: impl Iterator<Item = Option<K>>,
    numbers: &mut HashMap<K, usize>,
) -> Vec<Option<usize>> {
    let mut number = |domain| {
        let next = numbers.len();
        *numbers.entry(domain).or_insert(next)
    };
    domains.map(|domain| domain.map(&mut number)).collect()
}
