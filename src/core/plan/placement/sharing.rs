//! Claims that the pods of a batch share and that are not allocated yet: the node of the first pod decides which devices they
//! have, and thus which nodes the other pods can go to.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::filter::NodeFacts;
use super::needs::{Amounts, Needs};
use super::room::{NodeRoom, Room};
use super::supply::NodeSight;
use crate::api::scheduling::{NodeRequirement, NodeSelector, NodeSelectorTerm};
use crate::plan::devices::{Ask, ClaimRef, Demand, Found};

/// The number of nodes that are tried as the node of the first pod.
const MOST_NODES: usize = 64;

/// The field of a node with its name.
const NAME_FIELD: &str = "metadata.name";

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

/// Returns the rooms that the first pod may leave, by its node: each with the claims allocated there. `may_be` reports whether
/// the question allows a node.
pub(super) fn allocations<'a>(
    room: &'a Room,
    pods: &'a [Arc<Needs>],
    open: &'a [ClaimRef],
    may_be: &'a impl Fn(&NodeFacts) -> bool,
) -> impl Iterator<Item = Allocated> + 'a {
    let holder = room.holder(open);
    let is_holder = move |facts: &NodeFacts| holder.as_ref().is_none_or(|holder| *holder == facts.name);
    let nodes = room.nodes().filter(move |(_, _, facts)| may_be(facts) && is_holder(facts));
    let mut seen = BTreeSet::new();
    let each = nodes.filter_map(move |(_, node, facts)| Allocated::on(room, (node, facts), pods, open));
    each.filter(move |allocated| seen.insert(allocated.devices.clone())).take(MOST_NODES)
}

impl Allocated {
    fn on(room: &Room, (node, facts): (&NodeRoom, &NodeFacts), pods: &[Arc<Needs>], open: &[ClaimRef]) -> Option<Self> {
        let found = first_fit(room, node, facts, open)?;
        let mut then = room.clone();
        let mut devices = Vec::new();
        for (claim, found) in open.iter().zip(found) {
            devices.extend(found.iter().map(|found| std::ptr::from_ref(found.device).addr()));
            let taken = found.iter().map(|found| (found.pool.clone(), found.device.name.clone())).collect();
            then.devices_mut().allocate(claim, taken, nodes_of(&found, facts)?.map(Arc::new));
        }
        let pods = pods.iter().map(|needs| then.reached(needs.clone())).collect::<Option<_>>()?;
        Some(Self { room: then, pods, devices })
    }

    /// Reports whether the claims get the same devices on each of these nodes, whichever pod the scheduler takes up first.
    pub(super) fn is_the_same_on(&self, nodes: &[Arc<str>], before: &Room, open: &[ClaimRef]) -> bool {
        let shares = |needs: &Needs| needs.load.claims.iter().any(|claim| open.contains(claim));
        let of_sharing = self.pods.iter().zip(nodes).filter(|(needs, _)| shares(needs)).map(|(_, node)| node);
        of_sharing.collect::<BTreeSet<_>>().into_iter().all(|name| {
            let node = before.node(name).zip(before.facts(name));
            let found = node.and_then(|(node, facts)| first_fit(before, node, facts, open));
            let devices = found.into_iter().flatten().flatten().map(|found| std::ptr::from_ref(found.device).addr());
            devices.eq(self.devices.iter().copied())
        })
    }
}

/// Returns the devices of each claim on a node.
fn first_fit<'a>(room: &'a Room, node: &NodeRoom, facts: &NodeFacts, open: &[ClaimRef]) -> Option<Vec<Vec<Found<'a>>>> {
    let amounts = Amounts::new();
    let mut demand = Demand::of(room.devices(), []);
    let asks = open.iter().map(|claim| demand.add(Ask { claims: std::slice::from_ref(claim), amounts: &amounts }));
    let positions: Vec<_> = asks.collect();
    let reserved = room.reserved(&mut demand, open);
    let mut before = reserved.get(&facts.name).cloned().unwrap_or_default();
    let view = NodeSight { node, facts };
    let mut all = Vec::new();
    for position in positions {
        all.push(demand.allocation(&view, &before, position)?);
        before.push(position);
    }
    Some(all)
}

/// Returns the nodes that reach these devices; `None` for all, and nothing where that takes more than one term.
#[expect(clippy::option_option, reason = "no limit, and no answer")]
fn nodes_of(found: &[Found<'_>], facts: &NodeFacts) -> Option<Option<NodeSelector>> {
    let only = |field: NodeRequirement| {
        let term = NodeSelectorTerm { match_fields: vec![field], ..NodeSelectorTerm::default() };
        Some(Some(NodeSelector { node_selector_terms: vec![term] }))
    };
    if found.iter().any(|found| found.several.is_none()) {
        let values = vec![facts.name.to_string()];
        return only(NodeRequirement { key: NAME_FIELD.to_owned(), operator: "In".to_owned(), values });
    }
    let mut term = NodeSelectorTerm::default();
    for selector in found.iter().filter_map(|found| found.several?.selector()) {
        let [one] = selector.node_selector_terms.as_slice() else { return None };
        let new = |of: &[NodeRequirement], known: &[NodeRequirement]| {
            of.iter().filter(|one| !known.contains(one)).cloned().collect::<Vec<_>>()
        };
        let (expressions, fields) =
            (new(&one.match_expressions, &term.match_expressions), new(&one.match_fields, &term.match_fields));
        term.match_expressions.extend(expressions);
        term.match_fields.extend(fields);
    }
    let is_all = term == NodeSelectorTerm::default();
    Some((!is_all).then(|| NodeSelector { node_selector_terms: vec![term] }))
}
