//! Claims that the pods of a batch share and that are not allocated yet: the node of the first pod decides which devices they
//! have, and thus which nodes the other pods can go to.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use super::filter::{NAME_FIELD, NodeFacts};
use super::needs::{Amounts, Needs};
use super::room::{NodeRoom, Room};
use super::supply::NodeSight;
use crate::api::scheduling::{NodeRequirement, NodeSelector, NodeSelectorTerm};
use crate::plan::devices::{Ask, ClaimRef, Demand, Found};

/// The number of nodes that are tried as the node of the first pod.
const MOST_NODES: usize = 64;

/// The allocation of open claims to the first pod that has them.
pub(super) struct FirstPod<'a> {
    room: &'a Room,
    open: &'a [ClaimRef],
    demand: Demand<'a>,
    /// The positions of the claims in the demand.
    positions: Vec<usize>,
    /// The demands of pods that are to come, by node.
    reserved: HashMap<Arc<str>, Vec<usize>>,
}

/// A room in which open claims are allocated, and the needs of the pods there.
pub(super) struct Allocated {
    pub(super) room: Room,
    pub(super) pods: Vec<Arc<Needs>>,
    devices: Vec<usize>,
}

/// Returns the claims of pods that are not allocated.
pub(super) fn open_claims(pods: &[Arc<Needs>], room: &Room) -> Vec<ClaimRef> {
    let claims: BTreeSet<_> = pods.iter().flat_map(|needs| &needs.load.claims).collect();
    claims.into_iter().filter(|claim| room.devices().is_open(claim)).cloned().collect()
}

impl<'a> FirstPod<'a> {
    pub(super) fn of(room: &'a Room, open: &'a [ClaimRef]) -> Self {
        let amounts = Amounts::new();
        let mut demand = Demand::of(room.devices(), []);
        let asks = open.iter().map(|claim| demand.add(Ask { claims: std::slice::from_ref(claim), amounts: &amounts }));
        let positions = asks.collect();
        let reserved = room.reserved(&mut demand, open);
        Self { room, open, demand, positions, reserved }
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
        let mut seen = HashSet::new();
        let each = nodes.filter_map(move |(_, node, facts)| {
            let found = self.devices(node, facts)?;
            // Most nodes of a rack reach the same devices.
            let is_new = seen.insert(numbers(&found).collect::<Vec<_>>());
            is_new.then(|| self.allocated(&found, facts, pods)).flatten()
        });
        each.take(MOST_NODES)
    }

    fn allocated(&self, found: &[Vec<Found<'_>>], facts: &NodeFacts, pods: &[Arc<Needs>]) -> Option<Allocated> {
        let mut room = self.room.clone();
        for (claim, found) in self.open.iter().zip(found) {
            let taken = found.iter().map(|found| (found.pool.clone(), found.device.name.clone())).collect();
            room.devices_mut().allocate(claim, taken, nodes_of(found, facts)?.map(Arc::new));
        }
        let pods = pods.iter().map(|needs| room.reached(needs.clone())).collect::<Option<_>>()?;
        Some(Allocated { room, pods, devices: numbers(found).collect() })
    }

    /// Reports whether the claims get the same devices on each of these nodes, whichever pod the scheduler takes up first.
    pub(super) fn is_the_same_on(&self, allocated: &Allocated, nodes: &[Arc<str>]) -> bool {
        let shares = |needs: &Needs| needs.load.claims.iter().any(|claim| self.open.contains(claim));
        let of_sharing = allocated.pods.iter().zip(nodes).filter(|(needs, _)| shares(needs)).map(|(_, node)| node);
        of_sharing.collect::<BTreeSet<_>>().into_iter().all(|name| {
            let node = self.room.node(name).zip(self.room.facts(name));
            let found = node.and_then(|(node, facts)| self.devices(node, facts)).unwrap_or_default();
            numbers(&found).eq(allocated.devices.iter().copied())
        })
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

/// Returns a number of its own for each device.
fn numbers(found: &[Vec<Found<'_>>]) -> impl Iterator<Item = usize> {
    found.iter().flatten().map(|found| std::ptr::from_ref(found.device).addr())
}

/// Returns the nodes that reach these devices; `None` for all, and nothing where that takes more than one term.
#[expect(clippy::option_option, reason = "no limit, and no answer")]
fn nodes_of(found: &[Found<'_>], facts: &NodeFacts) -> Option<Option<NodeSelector>> {
    let mut term = NodeSelectorTerm::default();
    if found.iter().any(|found| found.several.is_none()) {
        let values = vec![facts.name.to_string()];
        term.match_fields = vec![NodeRequirement { key: NAME_FIELD.to_owned(), operator: "In".to_owned(), values }];
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
