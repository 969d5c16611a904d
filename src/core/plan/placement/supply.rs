//! What nodes give to the pods of a question: the dimensions that are counted, and the devices behind some of them.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use super::asked::{Asked, resources};
use super::filter::NodeFacts;
use super::pack::{Bin, PutDevices};
use super::room::{NodeRoom, Room};
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

impl<'a> Supply<'a> {
    /// Returns the supply for these pods, and completes their sorts with the devices that they ask for.
    pub(super) fn of(asked: &mut [Asked<'_>], room: &'a Room) -> Self {
        let mut demand = Demand::of(room.devices(), asked.iter().map(|asked| asked.needs.load.ask()));
        let reserved = if demand.is_empty() { HashMap::new() } else { room.reserved(&mut demand) };
        let mut dimensions = resources(asked, room);
        dimensions.extend(demand.dimensions().cloned());
        let supply = Self { dimensions, demand, reserved };
        supply.complete(asked);
        supply
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
            let of_devices = offer.as_ref().and_then(|offer| offer.free(&self.demand, name));
            of_devices.unwrap_or_else(|| node.free(name))
        };
        Bin {
            free: self.dimensions.iter().map(free).collect(),
            pods: node.free_pods(),
            ports: node.ports().to_vec(),
            takes,
            devices: offer.map(PutDevices::new),
        }
    }

    fn offer(&self, node: &NodeRoom, facts: &NodeFacts) -> Rc<Offer> {
        let view = NodeView {
            name: &facts.name,
            matches: &|selector: &NodeSelector| facts.is_one_of(selector),
            allocatable: &|resource| node.allocatable(resource),
        };
        self.demand.offer(view, self.reserved.get(&facts.name).map_or(&[], Vec::as_slice))
    }
}
