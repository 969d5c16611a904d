//! Claims that the pods of a batch share and that are not allocated yet: the node of the first pod decides which devices they
//! have, and thus which nodes the other pods can go to.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use super::filter::{NAME_FIELD, NodeFacts};
use super::needs::{Amounts, Needs, kinds, total};
use super::room::{NodeRoom, Room};
use super::supply::NodeSight;
use crate::api::scheduling::{NodeRequirement, NodeSelector, NodeSelectorTerm};
use crate::plan::devices::{Ask, ClaimRef, Demand, Found};

/// The number of nodes that are tried as the node of the first pod, and of those that are too small for all pods with the claim.
const MOST_NODES: usize = 64;
const MOST_SMALL_NODES: usize = 8;

/// The allocation of open claims to the first pod that has them.
pub(super) struct FirstPod<'a> {
    room: &'a Room,
    open: &'a [ClaimRef],
    demand: Demand<'a>,
    /// The positions of the claims in the demand.
    positions: Vec<usize>,
    /// That of all claims, if each of the pods has all.
    together: Option<usize>,
    /// The demands of pods that are to come, by node.
    reserved: HashMap<Arc<str>, Vec<usize>>,
}

/// A room in which open claims are allocated, and the needs of the pods there.
pub(super) struct Allocated {
    pub(super) room: Room,
    pub(super) pods: Vec<Arc<Needs>>,
    /// The devices; `None` for any of a node that alone reaches them.
    devices: Option<Vec<usize>>,
}

/// Returns claims of pods that are not allocated: one, and those that pods have together with it. The nodes of others may differ.
pub(super) fn open_claims(pods: &[Arc<Needs>], room: &Room) -> Vec<ClaimRef> {
    let open = |needs: &'_ Arc<Needs>| -> Vec<ClaimRef> {
        needs.load.claims.iter().filter(|claim| room.devices().is_open(claim)).cloned().collect()
    };
    let mut all: Vec<_> = kinds(pods).map(open).filter(|claims| !claims.is_empty()).collect();
    let mut found = all.first().cloned().unwrap_or_default();
    while let Some(at) = all.iter().position(|claims| claims.iter().any(|claim| found.contains(claim))) {
        let more = all.swap_remove(at).into_iter().filter(|claim| !found.contains(claim)).collect::<Vec<_>>();
        found.extend(more);
    }
    found
}

impl<'a> FirstPod<'a> {
    pub(super) fn of(room: &'a Room, open: &'a [ClaimRef], pods: &[Arc<Needs>]) -> Self {
        let amounts = Amounts::new();
        let mut demand = Demand::of(room.devices(), []);
        let mut add = |claims: &[ClaimRef]| demand.add(Ask { claims, amounts: &amounts });
        let positions = open.iter().map(|claim| add(std::slice::from_ref(claim))).collect();
        let has_all = |needs: &Arc<Needs>| open.iter().all(|claim| needs.load.claims.contains(claim));
        let together = pods.iter().filter(|needs| shares(needs, open)).all(has_all).then(|| add(open));
        let reserved = room.reserved(&mut demand, open);
        Self { room, open, demand, positions, together, reserved }
    }

    /// Returns the rooms that the first pod may leave, by its node: each with the claims allocated there. `may_be` reports
    /// whether the question allows a node.
    pub(super) fn rooms(
        &self,
        pods: &[Arc<Needs>],
        may_be: impl Fn(&NodeFacts) -> bool,
    ) -> impl Iterator<Item = Allocated> {
        let holder = self.room.holder(self.open);
        let is_holder = move |facts: &NodeFacts| holder.as_ref().is_none_or(|holder| *holder == facts.name);
        let nodes = self.room.nodes().filter(move |(_, _, facts)| may_be(facts) && is_holder(facts));
        let sharing: Vec<_> = pods.iter().filter(|needs| shares(needs, self.open)).collect();
        let amounts = total(sharing.iter().copied());
        let is_small = |node: &NodeRoom, facts: &NodeFacts| {
            let lacks = |(name, amount): (&Arc<str>, &i64)| node.allocatable(name) > 0 && node.free(name) < *amount;
            usize::try_from(node.free_pods()).is_ok_and(|free| free < sharing.len())
                || amounts.iter().any(lacks)
                || sharing.iter().any(|needs| facts.refusal(needs).is_some())
        };
        let mut nodes: Vec<_> = nodes.map(|(_, node, facts)| (is_small(node, facts), node, facts)).collect();
        nodes.sort_by_key(|(is_small, ..)| *is_small);
        let (mut seen, mut small) = (HashSet::new(), 0);
        let each = nodes.into_iter().filter_map(move |(is_small, node, facts)| {
            if let Some(takes) = self.takes(node, facts) {
                small += usize::from(takes && is_small);
                return (takes && small <= MOST_SMALL_NODES).then(|| self.on_node(facts, pods)).flatten();
            }
            let found = self.devices(node, facts)?;
            // Most nodes of a rack reach the same devices.
            let is_new = seen.insert(self.numbers(&found));
            is_new.then(|| self.allocated(&found, facts, pods)).flatten()
        });
        each.take(MOST_NODES)
    }

    /// Reports whether a node has devices for the claims, whichever pod the scheduler takes up first; `None` if other nodes reach
    /// some of them, or if a claim is not modelled.
    fn takes(&self, node: &NodeRoom, facts: &NodeFacts) -> Option<bool> {
        if self.positions.contains(&0) {
            return None;
        }
        let claims = self.together.as_ref().map_or(&*self.positions, std::slice::from_ref);
        let reserved = self.reserved.get(&facts.name).map_or(&[][..], Vec::as_slice);
        self.demand.takes(&NodeSight { node, facts }, &[reserved, claims].concat())
    }

    /// Returns the room in which the claims have devices of this node, whichever those are.
    fn on_node(&self, facts: &NodeFacts, pods: &[Arc<Needs>]) -> Option<Allocated> {
        let mut room = self.room.clone();
        let here = Arc::new(NodeSelector { node_selector_terms: vec![only(facts)] });
        let taken: Vec<_> = self.open.iter().map(|claim| room.devices_mut().allocate_later(claim, &here)).collect();
        if self.together.is_some() {
            room.take_for(&facts.name, taken);
        } else {
            taken.into_iter().for_each(|claim| room.take_for(&facts.name, vec![claim]));
        }
        Allocated::of(room, pods, None)
    }

    fn allocated(&self, found: &[Vec<Found<'a>>], facts: &NodeFacts, pods: &[Arc<Needs>]) -> Option<Allocated> {
        let mut room = self.room.clone();
        for (claim, found) in self.open.iter().zip(found) {
            let taken = found.iter().map(|found| (found.pool.clone(), found.device.name.clone())).collect();
            room.devices_mut().allocate(claim, taken, nodes_of(found, facts)?.map(Arc::new));
        }
        Allocated::of(room, pods, Some(self.numbers(found)))
    }

    /// Reports whether the claims get the same devices on each of these nodes, whichever pod the scheduler takes up first.
    pub(super) fn is_the_same_on(&self, allocated: &Allocated, nodes: &[Arc<str>]) -> bool {
        let Some(devices) = &allocated.devices else { return true };
        let of_sharing = allocated.pods.iter().zip(nodes).filter(|(needs, _)| shares(needs, self.open));
        of_sharing.map(|(_, node)| node).collect::<BTreeSet<_>>().into_iter().all(|name| {
            let node = self.room.node(name).zip(self.room.facts(name));
            let found = node.and_then(|(node, facts)| self.devices(node, facts)).unwrap_or_default();
            self.numbers(&found) == *devices
        })
    }

    fn numbers(&self, found: &[Vec<Found<'a>>]) -> Vec<usize> {
        found.iter().flatten().map(|found| self.demand.number(found)).collect()
    }

    /// Returns the devices of each claim on a node.
    fn devices(&self, node: &NodeRoom, facts: &NodeFacts) -> Option<Vec<Vec<Found<'a>>>> {
        let mut before = self.reserved.get(&facts.name).cloned().unwrap_or_default();
        let mut all = Vec::new();
        for position in &self.positions {
            all.push(self.demand.allocation(&NodeSight { node, facts }, &before, *position)?);
            before.push(*position);
        }
        Some(all)
    }
}

impl Allocated {
    fn of(room: Room, pods: &[Arc<Needs>], devices: Option<Vec<usize>>) -> Option<Self> {
        let pods = pods.iter().map(|needs| room.reached(needs.clone())).collect::<Option<_>>()?;
        Some(Self { room, pods, devices })
    }
}

fn shares(needs: &Needs, claims: &[ClaimRef]) -> bool {
    needs.load.claims.iter().any(|claim| claims.contains(claim))
}

/// Returns the term that selects this node alone.
fn only(facts: &NodeFacts) -> NodeSelectorTerm {
    let values = vec![facts.name.to_string()];
    let name = NodeRequirement { key: NAME_FIELD.to_owned(), operator: "In".to_owned(), values };
    NodeSelectorTerm { match_fields: vec![name], ..NodeSelectorTerm::default() }
}

/// Returns the nodes that reach these devices; `None` for all, and nothing where that takes more than one term.
#[expect(clippy::option_option, reason = "no limit, and no answer")]
fn nodes_of(found: &[Found<'_>], facts: &NodeFacts) -> Option<Option<NodeSelector>> {
    let mut term = NodeSelectorTerm::default();
    if found.iter().any(|found| found.several.is_none()) {
        term = only(facts);
    } else {
        for selector in found.iter().filter_map(|found| found.several?.selector()) {
            let [one] = selector.node_selector_terms.as_slice() else { return None };
            add_new(&mut term.match_expressions, &one.match_expressions);
            add_new(&mut term.match_fields, &one.match_fields);
        }
    }
    let is_all = term == NodeSelectorTerm::default();
    Some((!is_all).then(|| NodeSelector { node_selector_terms: vec![term] }))
}

fn add_new(to: &mut Vec<NodeRequirement>, more: &[NodeRequirement]) {
    for one in more {
        if !to.contains(one) {
            to.push(one.clone());
        }
    }
}
