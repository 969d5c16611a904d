//! What nodes have left, kept node by node and pod by pod.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use super::filter::NodeFacts;
use super::needs::{Amounts, HostPort, Load, amounts};
use crate::api::node::Node;
use crate::model::quantity::NoQuantity;

/// The resource of which each pod takes one.
const PODS: &str = "pods";

/// What all nodes have left. A pod may be told of before its node is.
#[derive(Clone, Debug, Default)]
pub struct Room {
    nodes: BTreeMap<Arc<str>, NodeRoom>,
    pods: HashMap<Arc<str>, Taken>,
    /// What pods take, once for all that take the same.
    loads: HashSet<Arc<Load>>,
}

/// One node: what it is, what it has, and what its pods take of that.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeRoom {
    /// What it is; `None` while it is not known, or gone: then no pod can go there.
    pub facts: Option<Arc<NodeFacts>>,
    allocatable: Amounts,
    taken: Amounts,
    pods: i64,
    ports: Vec<HostPort>,
}

/// What a pod takes, and where.
#[derive(Clone, Debug)]
struct Taken {
    node: Arc<str>,
    load: Arc<Load>,
}

impl Room {
    /// Takes a node in, or what has changed of it.
    ///
    /// # Errors
    ///
    /// When an amount of it is no quantity; the node is then as good as gone.
    pub fn apply_node(&mut self, node: &Node) -> Result<(), NoQuantity> {
        let name = node.metadata.display_name();
        let allocatable = amounts(&node.status.allocatable).inspect_err(|_| self.remove_node(name))?;
        let room = self.node_mut(&Arc::from(name));
        room.facts = Some(Arc::new(NodeFacts::of(node)));
        room.allocatable = allocatable;
        Ok(())
    }

    /// Forgets a node. Pods that are still bound to it keep their claim until they are gone, should it come back.
    pub fn remove_node(&mut self, name: &str) {
        if let Some(node) = self.nodes.get_mut(name) {
            (node.facts, node.allocatable) = (None, Amounts::new());
            self.forget_if_empty(name);
        }
    }

    /// Takes a pod in that is bound to a node, or is to be.
    pub fn apply_pod(&mut self, uid: &str, node: &str, load: Load) {
        if self.pods.get(uid).is_some_and(|taken| *taken.node == *node && *taken.load == load) {
            return;
        }
        self.remove_pod(uid);
        let load = self.loads.get(&load).cloned().unwrap_or_else(|| Arc::new(load));
        self.loads.insert(load.clone());
        let name = self.nodes.get_key_value(node).map_or_else(|| Arc::from(node), |(name, _)| name.clone());
        self.node_mut(&name).take(&load);
        self.pods.insert(uid.into(), Taken { node: name, load });
    }

    /// Gives back what a pod took.
    pub fn remove_pod(&mut self, uid: &str) {
        let Some(Taken { node: name, load }) = self.pods.remove(uid) else { return };
        if let Some(node) = self.nodes.get_mut(&name) {
            node.give(&load);
            self.forget_if_empty(&name);
        }
        // This one and the set's own: nobody else has it.
        if Arc::strong_count(&load) <= 2 {
            self.loads.remove(&load);
        }
    }

    /// Every node that is known, by name.
    pub fn nodes(&self) -> impl Iterator<Item = (&Arc<str>, &NodeRoom, &NodeFacts)> {
        self.nodes.iter().filter_map(|(name, node)| Some((name, node, node.facts.as_deref()?)))
    }

    /// The same nodes as if they had no pods below a priority.
    #[must_use]
    pub fn without_pods_below(&self, priority: i32) -> Self {
        let mut room = self.clone();
        let below = |taken: &Taken| taken.load.priority < priority;
        let uids: Vec<_> = self.pods.iter().filter(|(_, taken)| below(taken)).map(|(uid, _)| uid.clone()).collect();
        uids.iter().for_each(|uid| room.remove_pod(uid));
        room
    }

    /// The same nodes as if none were cordoned.
    #[must_use]
    pub fn without_cordons(&self) -> Self {
        let mut room = self.clone();
        for facts in room.nodes.values_mut().filter_map(|node| node.facts.as_mut()).filter(|facts| !facts.schedulable) {
            Arc::make_mut(facts).uncordon();
        }
        room
    }

    fn node_mut(&mut self, name: &Arc<str>) -> &mut NodeRoom {
        self.nodes.entry(name.clone()).or_default()
    }

    fn forget_if_empty(&mut self, name: &str) {
        if self.nodes.get(name).is_some_and(|node| *node == NodeRoom::default()) {
            self.nodes.remove(name);
        }
    }
}

impl PartialEq for Room {
    /// Equal in what their nodes have left, whatever pods it was that took it.
    fn eq(&self, other: &Self) -> bool {
        self.nodes == other.nodes
    }
}

impl NodeRoom {
    /// What is left of a resource; below 0 where more was taken than there is.
    pub fn free(&self, resource: &str) -> i64 {
        let amount = |of: &Amounts| of.get(resource).copied().unwrap_or_default();
        amount(&self.allocatable).saturating_sub(amount(&self.taken))
    }

    /// How many more pods it may have.
    pub fn free_pods(&self) -> i64 {
        self.free(PODS).saturating_sub(self.pods)
    }

    /// Ports that are taken.
    pub fn ports(&self) -> &[HostPort] {
        &self.ports
    }

    fn take(&mut self, load: &Load) {
        for (resource, amount) in &load.amounts {
            let taken = self.taken.entry(resource.clone()).or_default();
            *taken = taken.saturating_add(*amount);
        }
        self.pods += 1;
        self.ports.extend_from_slice(&load.ports);
        // Two nodes with the same pods are the same, in whatever order these came.
        self.ports.sort();
    }

    fn give(&mut self, load: &Load) {
        for (resource, amount) in &load.amounts {
            if let Some(taken) = self.taken.get_mut(resource) {
                *taken -= amount;
            }
        }
        self.taken.retain(|_, taken| *taken != 0);
        self.pods -= 1;
        for port in &load.ports {
            if let Some(at) = self.ports.iter().position(|taken| taken == port) {
                self.ports.remove(at);
            }
        }
    }
}
