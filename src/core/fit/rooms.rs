//! The room of the nodes of each domain, and the part that fitting batches take, in the resource that is scarcest for them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use serde::Serialize;

use super::cluster::Cluster;
use super::fitted::Fitted;
use crate::model::Group;
use crate::plan::placement::filter::NodeFacts;
use crate::plan::placement::needs::{Needs, rounded};
use crate::plan::placement::room::{NodeRoom, PODS};
use crate::plan::placement::{BatchPods, Counted, Room};

/// The domains that batches of a coordination may go to.
#[derive(Debug)]
pub struct Rooms {
    /// The scarcest resource: the one of which the batches request the largest share of the free amount.
    pub resource: Arc<str>,
    /// Domains with batches first, by their first batch; then the others, by free room.
    pub domains: Vec<DomainRoom>,
}

#[derive(Debug, Default)]
pub struct DomainRoom {
    /// Value of the label; `None` for all nodes, where batches may go anywhere.
    pub name: Option<String>,
    /// Ordered by name.
    pub nodes: Vec<NodeShare>,
}

/// Amounts of the resource on a node: thousandths of processors, bytes, or pieces.
#[derive(Clone, Debug)]
pub struct NodeShare {
    pub name: Arc<str>,
    /// Allocatable amount.
    pub total: i64,
    /// Amount of existing pods, and of those of roles in no batch.
    pub used: i64,
    /// Amounts of batches, by their number from 0.
    pub taken: BTreeMap<u32, i64>,
    /// True when no pod of the batches may go there now.
    pub closed: bool,
}

/// Sums over some nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Sums {
    /// Allocatable amount.
    pub total: i64,
    /// Amount of existing pods.
    pub used: i64,
    /// Amount of fitting batches.
    pub taken: i64,
    /// Remaining amount on nodes where no pod of the batches may go.
    #[serde(skip)]
    pub closed: i64,
    /// Remaining amount on other nodes.
    pub free: i64,
}

impl Rooms {
    /// Returns the rooms for the fit of a group; `None` where nothing is to be placed, or the fit is unknown.
    pub fn of(fitted: &Fitted, group: &Group, cluster: &Cluster) -> Option<Self> {
        let answer = fitted.answer.as_ref().ok()?;
        let key = fitted.key.as_deref();
        let (batches, _) = cluster.batches(group, &fitted.batching, key, usize::MAX).ok()?;
        let choices = choices(&batches);
        if choices.is_empty() {
            return None;
        }
        let room = cluster.room_for(group);
        let pods: Vec<_> = batches.iter().flat_map(|batch| batch.pods.iter().cloned()).collect();
        let counted = Counted::of(&pods, &room);
        let resource = shortest(&room, &counted);
        let mut taken: BTreeMap<&str, BTreeMap<u32, i64>> = BTreeMap::new();
        let by_index: HashMap<_, _> = batches.iter().map(|batch| (batch.index, batch)).collect();
        for (index, placement) in &answer.outlook.fits {
            let Some(batch) = by_index.get(index) else { continue };
            for (needs, node) in batch.pods.iter().zip(&placement.nodes) {
                *taken.entry(node).or_default().entry(*index).or_default() += asked(&counted, needs, &resource);
            }
        }
        let mut domains: BTreeMap<Option<&str>, DomainRoom> = BTreeMap::new();
        for (name, node, facts) in room.nodes() {
            let domain = key.and_then(|key| facts.label(key));
            // No batch goes to a node without the label.
            if key.is_some() && domain.is_none() {
                continue;
            }
            let (total, free) = amounts(&counted, node, facts, &resource);
            let share = NodeShare {
                name: name.clone(),
                total,
                used: total.saturating_sub(free),
                taken: taken.get(&**name).cloned().unwrap_or_default(),
                closed: choices.iter().all(|needs| facts.refusal(needs).is_some()),
            };
            domains.entry(domain).or_default().nodes.push(share);
        }
        let named = |(name, room): (Option<&str>, DomainRoom)| DomainRoom { name: name.map(str::to_owned), ..room };
        let mut domains: Vec<_> = domains.into_iter().map(named).collect();
        domains.sort_by_cached_key(|domain| {
            let first = domain.batches().first().copied().unwrap_or(u32::MAX);
            (first, std::cmp::Reverse(domain.sums().free))
        });
        Some(Self { resource, domains })
    }

    /// Formats an amount of the resource for people, large ones rounded.
    pub fn written(&self, amount: i64) -> String {
        rounded(&self.resource, amount)
    }
}

impl DomainRoom {
    /// Returns the batches in the domain, in order.
    pub fn batches(&self) -> Vec<u32> {
        self.nodes.iter().flat_map(|node| node.taken.keys().copied()).collect::<BTreeSet<_>>().into_iter().collect()
    }

    pub fn sums(&self) -> Sums {
        self.nodes.iter().map(NodeShare::sums).fold(Sums::default(), |one, other| Sums {
            total: one.total.saturating_add(other.total),
            used: one.used.saturating_add(other.used),
            taken: one.taken.saturating_add(other.taken),
            closed: one.closed.saturating_add(other.closed),
            free: one.free.saturating_add(other.free),
        })
    }
}

impl NodeShare {
    /// Returns the amounts of the node. More than the total leaves nothing free.
    pub fn sums(&self) -> Sums {
        let taken = self.taken.values().fold(0_i64, |sum, amount| sum.saturating_add(*amount));
        let left = self.total.saturating_sub(self.used).saturating_sub(taken).max(0);
        let (closed, free) = if self.closed { (left, 0) } else { (0, left) };
        Sums { total: self.total, used: self.used, taken, closed, free }
    }
}

/// Returns one of the needs for each combination of node constraints.
fn choices(batches: &[BatchPods]) -> Vec<&Needs> {
    let pods = batches.iter().flat_map(|batch| &batch.pods);
    let all: HashMap<_, _> =
        pods.map(|needs| ((&needs.node_selector, &needs.node_affinity, &needs.tolerations), &**needs)).collect();
    all.into_values().collect()
}

/// Returns the resource of which the pods request the largest share of the free amount. Each pod takes one place for pods,
/// which is the result where they request nothing else.
pub(super) fn shortest(room: &Room, pods: &Counted<'_>) -> Arc<str> {
    let part = |(name, asked): &(Arc<str>, i64)| {
        let free = |(_, node, facts)| i128::from(pods.node(node, facts, name).1.max(0));
        // In millionths. Nothing free is the largest share.
        let free = room.nodes().map(free).sum::<i128>();
        i128::from(*asked).saturating_mul(1_000_000).checked_div(free).unwrap_or(i128::MAX)
    };
    // A resource that no node has is left out.
    let known = pods.total().into_iter().filter(|(name, _)| pods.is_known(name, room));
    known.max_by_key(part).map_or_else(|| Arc::from(PODS), |(name, _)| name)
}

fn asked(pods: &Counted<'_>, needs: &Needs, resource: &str) -> i64 {
    if resource == PODS { 1 } else { pods.asked(needs, resource) }
}

/// Returns the allocatable and the free amount.
pub(super) fn amounts(pods: &Counted<'_>, node: &NodeRoom, facts: &NodeFacts, resource: &str) -> (i64, i64) {
    if resource == PODS { (node.allocatable(resource), node.free_pods()) } else { pods.node(node, facts, resource) }
}
