//! What nodes give to the pods of a question: the dimensions that are counted, and the devices behind some of them.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use super::apart::Constraints;
use super::asked::{Asked, resources};
use super::filter::NodeFacts;
use super::needs::{Amounts, Needs};
use super::pack::{Bin, PutDevices};
use super::room::{NodeRoom, Room};
use super::together::{Limit, Rules, Taken};
use crate::api::scheduling::NodeSelector;
use crate::plan::devices::{Demand, NodeView, Offer};

/// The dimensions of a question, and the devices of nodes as its pods see them.
pub(super) struct Supply<'a> {
    /// Resources, and counted requests of claims.
    pub(super) dimensions: Vec<Arc<str>>,
    demand: Demand<'a>,
    /// The demands of pods with claims that are not allocated yet, by node.
    reserved: HashMap<Arc<str>, Vec<usize>>,
}

/// The amounts of nodes and of some pods, devices of claims and classes included.
pub struct Counted<'a> {
    asked: Vec<Asked<'a>>,
    supply: Supply<'a>,
}

impl<'a> Counted<'a> {
    /// Returns the amounts for these pods.
    pub fn of(pods: &'a [Arc<Needs>], room: &'a Room) -> Self {
        let mut asked = Constraints::default().sorts(pods);
        let supply = Supply::of(&mut asked, room);
        Self { asked, supply }
    }

    /// Returns the amounts that all pods take together.
    pub fn total(&self) -> Amounts {
        let mut all = Amounts::new();
        for asked in &self.asked {
            let pods = i64::try_from(asked.pods.len()).unwrap_or(i64::MAX);
            for (name, amount) in asked.needs.load.amounts.iter().chain(&asked.devices) {
                let sum = all.entry(name.clone()).or_default();
                *sum = sum.saturating_add(amount.saturating_mul(pods));
            }
        }
        all
    }

    /// Returns the amount that a pod takes.
    pub fn asked(&self, needs: &Needs, name: &str) -> i64 {
        let of_claims = || self.supply.demand.amount(self.supply.demand.position(needs.load.ask()), name);
        needs.load.amounts.get(name).copied().unwrap_or_else(of_claims)
    }

    /// Returns the allocatable and the free amount of a node.
    pub fn node(&self, node: &NodeRoom, facts: &NodeFacts, name: &str) -> (i64, i64) {
        let offer = (!self.supply.demand.is_empty()).then(|| self.supply.offer(node, facts));
        let of_devices = offer.and_then(|(offer, _)| self.supply.devices(&offer, facts, name));
        of_devices.unwrap_or_else(|| (node.allocatable(name), node.free(name)))
    }

    /// Reports whether a node has room for one pod of any of these.
    pub fn takes_one(&self, node: &NodeRoom, facts: &NodeFacts) -> bool {
        let takes = self.asked.iter().map(|asked| facts.refusal(asked.needs).is_none()).collect();
        let bin = self.supply.bin(node, facts, takes);
        let sorts = self.asked.iter().map(|asked| asked.sort(&self.supply.dimensions));
        sorts.enumerate().any(|(position, sort)| bin.capacity(position, &sort) > 0)
    }

    /// Reports whether nodes have the resource, or devices for it.
    pub fn is_known(&self, name: &str, room: &Room) -> bool {
        self.supply.is_anywhere(name, room)
    }

    /// Reports whether any pod asks for devices.
    pub fn any_devices(&self) -> bool {
        !self.supply.demand.is_empty()
    }
}

impl<'a> Supply<'a> {
    /// Returns the supply for these pods, and completes their sorts with the devices that they ask for.
    pub(super) fn of(asked: &mut [Asked<'_>], room: &'a Room) -> Self {
        let mut demand = Demand::of(room.devices(), asked.iter().map(|asked| asked.needs.load.ask()));
        let reserved = if demand.is_empty() { HashMap::new() } else { room.reserved(&mut demand, &[]) };
        let mut dimensions = resources(asked, room);
        dimensions.extend(demand.dimensions().cloned());
        let supply = Self { dimensions, demand, reserved };
        supply.complete(asked);
        supply
    }

    /// Reports whether nodes have the resource, or devices for it.
    pub(super) fn is_anywhere(&self, name: &str, room: &Room) -> bool {
        room.has(name) || self.demand.dimensions().any(|known| **known == *name)
    }

    /// Completes sorts of the same pods with the devices that they ask for.
    pub(super) fn complete(&self, asked: &mut [Asked<'_>]) {
        for asked in asked.iter_mut().filter(|_| !self.demand.is_empty()) {
            asked.demand = self.demand.position(asked.needs.load.ask());
            let amount = |name: &Arc<str>| (name.clone(), self.demand.amount(asked.demand, name));
            asked.devices = self.demand.dimensions().map(amount).filter(|(_, amount)| *amount > 0).collect();
        }
    }

    /// Returns the room of a node.
    pub(super) fn bin(&self, node: &NodeRoom, facts: &NodeFacts, takes: Vec<bool>) -> Bin {
        let offer = (!self.demand.is_empty()).then(|| self.offer(node, facts));
        let free = |name: &Arc<str>| {
            let of_devices = offer.as_ref().and_then(|(offer, _)| self.devices(offer, facts, name));
            of_devices.map_or_else(|| node.free(name), |(_, free)| free)
        };
        Bin {
            free: self.dimensions.iter().map(free).collect(),
            pods: node.free_pods(),
            ports: node.ports().to_vec(),
            takes,
            devices: offer.map(|(offer, shared)| PutDevices {
                offer,
                pods: self.demand.counts(self.reserved_on(facts)),
                shared: shared.into(),
            }),
        }
    }

    /// Returns the usable devices of a dimension, and those that are free beside pods that are to come.
    fn devices(&self, offer: &Offer, facts: &NodeFacts, name: &str) -> Option<(i64, i64)> {
        let (usable, free) = offer.amounts(&self.demand, name)?;
        let reserved = self.reserved_on(facts).iter().map(|sort| self.demand.amount(*sort, name));
        Some((usable, free - reserved.sum::<i64>()))
    }

    fn reserved_on(&self, facts: &NodeFacts) -> &[usize] {
        self.reserved.get(&facts.name).map_or(&[], Vec::as_slice)
    }

    fn offer(&self, node: &NodeRoom, facts: &NodeFacts) -> (Rc<Offer>, Vec<usize>) {
        self.demand.offer(&NodeSight { node, facts })
    }

    /// Adds that the pods on nodes with devices in common take no more of these than are free. `bins` are all nodes of the
    /// question, of which those at `open` are in the rules.
    pub(super) fn limit<'b>(
        &self,
        rules: &mut Rules,
        asked: &[Asked<'_>],
        bins: impl Iterator<Item = &'b Bin>,
        open: impl Iterator<Item = usize>,
    ) {
        let by: Vec<_> = asked.iter().map(|asked| self.demand.of_several(asked.demand)).collect();
        if by.iter().all(|devices| *devices == 0) {
            return;
        }
        let puts: Vec<_> = bins.map(|bin| bin.devices.as_ref()).collect();
        let groups = groups(&puts);
        let mut free = vec![u32::MAX; groups.iter().flatten().max().map_or(0, |last| last + 1)];
        let mut taken = vec![0_u32; free.len()];
        for (put, group) in puts.iter().zip(&groups).filter_map(|(put, group)| Some(((*put)?, (*group)?))) {
            let (Some(free), Some(taken)) = (free.get_mut(group), taken.get_mut(group)) else { continue };
            *free = put.offer.free_of_several().min(*free);
            let of = |(demand, pods): (usize, &u32)| self.demand.of_several(demand).saturating_mul(*pods);
            *taken = put.pods.iter().enumerate().map(of).fold(*taken, u32::saturating_add);
        }
        let free = free.iter().zip(&taken).map(|(free, taken)| free.saturating_sub(*taken)).collect();
        let domains = open.map(|position| groups.get(position).copied().flatten()).collect();
        rules.add(Limit::taken(Taken { by, free }), domains);
    }
}

/// Returns for each node the number of its group: nodes of one group reach devices in common.
fn groups(puts: &[Option<&PutDevices>]) -> Vec<Option<usize>> {
    let mut of_device: HashMap<usize, usize> = HashMap::new();
    let mut of_node: Vec<Option<usize>> = Vec::new();
    for (number, put) in puts.iter().enumerate() {
        let shared = put.map(|put| &*put.shared).unwrap_or_default();
        let known: Vec<_> = shared.iter().filter_map(|device| of_device.get(device).copied()).collect();
        let group = known.first().copied().unwrap_or(number);
        // Groups that have a device in common are one.
        for other in known.into_iter().filter(|other| *other != group) {
            of_device.values_mut().filter(|of| **of == other).for_each(|of| *of = group);
            of_node.iter_mut().filter(|of| **of == Some(other)).for_each(|of| *of = Some(group));
        }
        of_device.extend(shared.iter().map(|device| (*device, group)));
        of_node.push((!shared.is_empty()).then_some(group));
    }
    of_node
}

/// A node as devices see it.
pub(super) struct NodeSight<'a> {
    pub(super) node: &'a NodeRoom,
    pub(super) facts: &'a NodeFacts,
}

impl NodeView for NodeSight<'_> {
    fn name(&self) -> &str {
        &self.facts.name
    }

    fn is_selected_by(&self, nodes: &NodeSelector) -> bool {
        self.facts.is_one_of(nodes)
    }

    fn allocatable(&self, resource: &str) -> i64 {
        self.node.allocatable(resource)
    }
}
