//! The free room of nodes, updated by node and by pod.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use super::added::RuntimeClasses;
use super::filter::{InCommon, NodeFacts};
use super::needs::{Amounts, HostPort, Load, Needs, amounts};
use super::peers::Peer;
use super::reach::Reach;
use super::volumes::VolumeSight;
use crate::api::node::Node;
use crate::model::IgnoredResources;
use crate::model::ignored_resources::HUGE_PAGES;
use crate::model::names::HOSTNAME;
use crate::model::quantity::NoQuantity;
use crate::plan::devices::{Ask, ClaimRef, Demand, DeviceSight, Devices, is_extended};
use crate::plan::once::Once;

/// The resource of which each pod takes one.
pub const PODS: &str = "pods";

/// The free room of all nodes. A pod may be applied before its node.
#[derive(Clone, Debug, Default)]
pub struct Room {
    nodes: BTreeMap<Arc<str>, NodeRoom>,
    pods: HashMap<Arc<str>, Taken>,
    /// The uids of pods with a nominated node: pods of a higher priority may take their room.
    nominated: HashSet<Arc<str>>,
    /// Deduplicated loads of pods.
    loads: Once<Load>,
    /// Deduplicated identities of pods.
    peers: Once<Peer>,
    in_common: InCommon,
    devices: Arc<Devices>,
    classes: Arc<RuntimeClasses>,
    /// The uids of pods that may take devices.
    users: HashSet<Arc<str>>,
    /// Claims that take devices of a node before any pod with them is there.
    first: Vec<(Arc<str>, Vec<ClaimRef>)>,
    /// Resources that need not be on a node.
    pub ignored: IgnoredResources,
}

/// One node: its properties, its resources, and what its pods take.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeRoom {
    /// The properties; `None` while they are not known, or the node is gone: then no pod can go there.
    pub facts: Option<Arc<NodeFacts>>,
    allocatable: Arc<Amounts>,
    taken: FewAmounts,
    pods: i64,
    ports: Vec<HostPort>,
}

/// Amounts of the few resources of a node; wide enough for unchecked requests of pods.
#[derive(Clone, Debug, Default)]
struct FewAmounts(Vec<(Arc<str>, i128)>);

/// The load of a pod, and its node.
#[derive(Clone, Debug)]
struct Taken {
    node: Arc<str>,
    load: Arc<Load>,
    peer: Arc<Peer>,
}

impl Room {
    /// Returns an empty room; some resources need not be on a node.
    pub fn ignoring(ignored: IgnoredResources) -> Self {
        Self { ignored, ..Self::default() }
    }

    /// Adds or updates a node; returns whether anything changed that matters for placement.
    ///
    /// # Errors
    ///
    /// Fails on an amount that is no quantity; the node is then removed.
    pub fn apply_node(&mut self, node: &Node) -> Result<bool, NoQuantity> {
        let name = node.metadata.display_name();
        let allocatable = amounts(&node.status.allocatable).inspect_err(|_| self.remove_node(name))?;
        let name = self.node_name(name);
        let facts = Arc::new(NodeFacts::of(node, name, &mut self.in_common));
        let allocatable = self.in_common.amounts(allocatable);
        let room = self.nodes.entry(facts.name.clone()).or_default();
        let changed = room.facts.as_ref() != Some(&facts) || room.allocatable != allocatable;
        let had = std::mem::replace(&mut room.allocatable, allocatable);
        let before = room.facts.replace(facts);
        self.in_common.forget(before, &had);
        Ok(changed)
    }

    /// Removes a node. Pods that are still bound to it keep their load, in case it comes back.
    pub fn remove_node(&mut self, name: &str) {
        if let Some(node) = self.nodes.get_mut(name) {
            let had = std::mem::take(&mut node.allocatable);
            let before = node.facts.take();
            self.in_common.forget(before, &had);
            self.forget_if_empty(name);
        }
    }

    /// Adds a pod that is bound to a node, or assumed there; returns whether that frees room that it took before.
    pub fn apply_pod(&mut self, uid: &str, node: &str, load: Load, peer: &Arc<Peer>) -> bool {
        self.nominated.remove(uid);
        let is_there = |taken: &&Taken| *taken.node == *node && *taken.load == load;
        let is_same = self.pods.get(uid).filter(is_there).map(|taken| taken.peer == *peer);
        if is_same == Some(true) {
            return false;
        }
        let gives = self.remove_pod(uid) && is_same.is_none();
        let peer = self.peers.of(peer.clone());
        let load = self.loads.of(Arc::new(load));
        let name = self.node_name(node);
        self.nodes.entry(name.clone()).or_default().take(&load);
        let uid: Arc<str> = uid.into();
        if load.ask().may_be_devices() {
            self.users.insert(uid.clone());
        }
        self.pods.insert(uid, Taken { node: name, load, peer });
        gives
    }

    /// Adds a pod without a node whose nominated node is this one.
    pub fn nominate(&mut self, uid: &Arc<str>, node: &str, load: Load, peer: &Arc<Peer>) {
        self.apply_pod(uid, node, load, peer);
        self.nominated.insert(uid.clone());
    }

    /// Removes a pod; returns whether it took any room.
    pub fn remove_pod(&mut self, uid: &str) -> bool {
        let Some(Taken { node: name, load, peer }) = self.pods.remove(uid) else { return false };
        self.nominated.remove(uid);
        self.users.remove(uid);
        if let Some(node) = self.nodes.get_mut(&name) {
            node.give(&load);
            self.forget_if_empty(&name);
        }
        self.loads.forget(&load);
        self.peers.forget(&peer);
        true
    }

    /// Iterates over the known nodes, by name.
    pub fn nodes(&self) -> impl Iterator<Item = (&Arc<str>, &NodeRoom, &NodeFacts)> {
        self.nodes.iter().filter_map(|(name, node)| Some((name, node, node.facts.as_deref()?)))
    }

    /// Returns the room of a node.
    pub fn node(&self, name: &str) -> Option<&NodeRoom> {
        self.nodes.get(name)
    }

    /// Returns a digest of the properties of a node and of its amounts: another one tells that the node has changed.
    pub fn state_of(&self, name: &str) -> Option<u64> {
        let node = self.nodes.get(name)?;
        let mut digest = DefaultHasher::new();
        (node.facts.as_ref()?, &node.allocatable).hash(&mut digest);
        Some(digest.finish())
    }

    /// Returns the node that a pod is bound to, or assumed on.
    pub fn node_of(&self, uid: &str) -> Option<&Arc<str>> {
        self.pods.get(uid).map(|taken| &taken.node)
    }

    pub fn load_of(&self, uid: &str) -> Option<&Load> {
        self.pods.get(uid).map(|taken| &*taken.load)
    }

    /// Iterates over the uids of all pods that take room.
    pub fn pods(&self) -> impl Iterator<Item = &Arc<str>> {
        self.pods.keys()
    }

    /// Returns the number of entries of each map.
    pub fn sizes(&self) -> [(&'static str, usize); 4] {
        [
            ("nodes", self.nodes.len()),
            ("bound_pods", self.pods.len()),
            ("nominated_pods", self.nominated.len()),
            ("texts_in_common", self.loads.count() + self.peers.count() + self.in_common.size()),
        ]
    }

    /// Iterates over all pods that take room: their identity for others, and the name of their node.
    pub fn tenants(&self) -> impl Iterator<Item = (&Arc<Peer>, &Arc<str>)> {
        self.pods.values().map(|taken| (&taken.peer, &taken.node))
    }

    /// Iterates over the distinct identities with anti-affinity.
    pub fn wary(&self) -> impl Iterator<Item = &Peer> {
        self.peers.iter().filter(|peer| !peer.apart.is_empty()).map(|peer| &**peer)
    }

    /// Returns the properties of a node; `None` while they are not known.
    pub fn facts(&self, name: &str) -> Option<&NodeFacts> {
        self.nodes.get(name)?.facts.as_deref()
    }

    /// Returns the room without pods below a priority.
    #[must_use]
    pub fn without_pods_below(&self, priority: i32) -> Self {
        let below = self.pods.iter().filter(|(_, taken)| taken.load.priority < priority);
        self.without(&below.map(|(uid, _)| uid).collect::<Vec<_>>())
    }

    /// Returns the room as a pod of this priority finds it: nominated pods of a lower priority do not count.
    pub fn seen_with(&self, priority: i32) -> Cow<'_, Self> {
        let is_below = |uid: &&Arc<str>| self.pods.get(*uid).is_some_and(|taken| taken.load.priority < priority);
        let below: Vec<_> = self.nominated.iter().filter(is_below).collect();
        if below.is_empty() { Cow::Borrowed(self) } else { Cow::Owned(self.without(&below)) }
    }

    fn without(&self, uids: &[&Arc<str>]) -> Self {
        let mut room = self.clone();
        uids.iter().for_each(|uid| _ = room.remove_pod(uid));
        if uids.iter().any(|uid| self.devices.allocated_to(uid) > 0) {
            Arc::make_mut(&mut room.devices).give_back_of(&uids.iter().map(|uid| &***uid).collect());
        }
        room
    }

    /// Returns the devices of the nodes, and the claims on them.
    pub fn devices(&self) -> &Devices {
        &self.devices
    }

    pub fn devices_mut(&mut self) -> &mut Devices {
        Arc::make_mut(&mut self.devices)
    }

    /// Returns the known RuntimeClasses.
    pub fn runtime_classes(&self) -> &RuntimeClasses {
        &self.classes
    }

    pub fn runtime_classes_mut(&mut self) -> &mut RuntimeClasses {
        Arc::make_mut(&mut self.classes)
    }

    /// Returns the needs of a pod including the nodes that reach its allocated claims; `None` while devices, or
    /// its RuntimeClass, are not known.
    pub fn reached(&self, needs: Arc<Needs>) -> Option<Arc<Needs>> {
        if self.classes.sight == VolumeSight::Awaited && needs.lacks_its_class() {
            return None;
        }
        let ask = needs.load.ask();
        if !ask.may_be_devices() {
            return Some(needs);
        }
        if self.devices.sight == DeviceSight::Awaited {
            return None;
        }
        let reach = |claim: &ClaimRef| {
            Some(Reach { claim: claim.key().clone(), nodes: self.devices.allocated(claim)??.clone() })
        };
        let reach: Vec<_> = ask.claims.iter().filter_map(reach).collect();
        if reach.is_empty() {
            return Some(needs);
        }
        let reach = needs.reach.iter().cloned().chain(reach).collect();
        Some(Arc::new(Needs { reach, ..(*needs).clone() }))
    }

    /// Takes devices of a node for claims that one pod has.
    pub(super) fn take_for(&mut self, node: &Arc<str>, claims: Vec<ClaimRef>) {
        self.first.push((node.clone(), claims));
    }

    /// Returns the node on which a pod waits for one of these claims to be allocated.
    pub(super) fn holder(&self, claims: &[ClaimRef]) -> Option<Arc<str>> {
        let holds = |taken: &&Taken| taken.load.claims.iter().any(|claim| claims.contains(claim));
        let mut all = self.users.iter().filter_map(|uid| self.pods.get(uid)).filter(holds).map(|taken| &taken.node);
        all.by_ref().min().cloned()
    }

    /// Returns the demands of pods whose claims are not allocated yet, by node; adds them to the demand of a question. The
    /// claims in `without` do not count, and others that pods share count once.
    pub(super) fn reserved(&self, demand: &mut Demand<'_>, without: &[ClaimRef]) -> HashMap<Arc<str>, Vec<usize>> {
        let mut reserved: HashMap<Arc<str>, Vec<usize>> = HashMap::new();
        let mut counted: HashSet<ClaimRef> = without.iter().cloned().collect();
        let mut users: Vec<_> = self.users.iter().filter_map(|uid| Some((uid, self.pods.get(uid)?))).collect();
        // One order, whatever the order of the uids.
        users.sort_unstable_by_key(|(uid, _)| *uid);
        for (uid, taken) in users {
            let Some(node) = self.nodes.get(&taken.node) else { continue };
            let is_backed =
                |resource: &Arc<str>| node.allocatable(resource) == 0 && self.devices.class_of(resource).is_some();
            let open = taken.load.claims.iter().filter(|claim| self.devices.allocated(claim).is_none()).count();
            let claims = open + usize::from(taken.load.amounts.keys().any(is_backed));
            if claims > self.devices.allocated_to(uid) {
                let counts =
                    |claim: &&ClaimRef| matches!(claim, ClaimRef::Template(_)) || counted.insert((*claim).clone());
                let claims: Vec<_> = taken.load.claims.iter().filter(counts).cloned().collect();
                let ask = Ask { claims: &claims, ..taken.load.ask() };
                reserved.entry(taken.node.clone()).or_default().push(demand.add(ask));
            }
        }
        for (node, claims) in &self.first {
            let ask = Ask { claims, amounts: &Amounts::new() };
            reserved.entry(node.clone()).or_default().push(demand.add(ask));
        }
        reserved
    }

    /// Returns the room of some nodes alone. Pods there take theirs, and are not known one by one.
    #[must_use]
    pub fn of_nodes<'a>(&self, names: impl IntoIterator<Item = &'a Arc<str>>) -> Self {
        let node = |name: &Arc<str>| Some((name.clone(), self.nodes.get(name)?.clone()));
        let nodes = names.into_iter().filter_map(node).collect();
        Self { nodes, devices: self.devices.clone(), ignored: self.ignored, ..Self::default() }
    }

    /// Reports whether any node has the resource, even if its amount is 0, or a class gives devices for it.
    pub fn has(&self, resource: &str) -> bool {
        self.devices.class_of(resource).is_some() || self.is_on_a_node(resource)
    }

    fn is_on_a_node(&self, resource: &str) -> bool {
        self.nodes.values().any(|node| node.facts.is_some() && node.allocatable.contains_key(resource))
    }

    /// Iterates over the resources that decide where a pod goes: some node has them, or they are lacking.
    pub(super) fn counted<'a>(&'a self, needs: &'a Needs) -> impl Iterator<Item = &'a Arc<str>> {
        needs.load.amounts.keys().filter(move |resource| self.counts(needs, resource))
    }

    /// Iterates over the resources that do not decide where a pod goes, since it is not known who has them.
    pub fn left_out<'a>(&'a self, needs: &'a Needs) -> impl Iterator<Item = &'a Arc<str>> {
        let is_of_none = |resource: &&Arc<str>| self.devices.class_of(resource).is_none();
        needs.load.amounts.keys().filter(move |resource| !self.counts(needs, resource)).filter(is_of_none)
    }

    /// Reports whether a resource decides where a pod goes. One that no node has is lacking, unless classes, which may give devices
    /// for it, are not known, or another scheduler than the default one has rules of its own for it.
    fn counts(&self, needs: &Needs, resource: &Arc<str>) -> bool {
        if self.is_on_a_node(resource) {
            return true;
        }
        if self.devices.class_of(resource).is_some() {
            let amounts = Amounts::from([(resource.clone(), 1)]);
            return self.devices.not_modelled(Ask { claims: &[], amounts: &amounts }).is_empty();
        }
        let is_known = matches!(self.devices.sight, DeviceSight::Known | DeviceSight::Unseen) || !is_extended(resource);
        let is_lacking = is_known && may_lack(resource) && !needs.has_other_scheduler();
        (is_lacking || needs.awaits.contains(resource)) && !self.ignored.covers(resource)
    }

    /// Returns what pods are placed without a look at, since classes may not be read.
    pub(super) fn blind_to(&self, needs: &Needs) -> Option<String> {
        let DeviceSight::Refused(why) = &self.devices.sight else { return None };
        let is_of_class = |resource: &&Arc<str>| is_extended(resource) && !self.ignored.covers(resource);
        let resource = self.left_out(needs).find(is_of_class).filter(|_| !needs.has_other_scheduler())?;
        Some(format!("resource {resource}, which no node has: whether a DeviceClass names it is not known ({why})"))
    }

    /// Reports whether a pod can be bound to its chosen node: all its constraints are modelled, and some node has each of its
    /// resources.
    pub fn may_name_node_of(&self, needs: &Needs) -> bool {
        needs.may_name_its_node()
            && needs.load.amounts.keys().all(|resource| self.has(resource))
            && self.devices.not_modelled(needs.load.ask()).is_empty()
    }

    /// Returns the values of [`HOSTNAME`] that several nodes have: no pod can be bound to one of these by it.
    pub fn shared_hosts(&self) -> HashSet<&str> {
        let mut known = HashSet::new();
        let hosts = self.nodes().filter_map(|(_, _, facts)| facts.label(HOSTNAME));
        hosts.filter(|host| !known.insert(*host)).collect()
    }

    /// Returns the room without cordons.
    #[must_use]
    pub fn without_cordons(&self) -> Self {
        let mut room = self.clone();
        for facts in room.nodes.values_mut().filter_map(|node| node.facts.as_mut()).filter(|facts| !facts.schedulable) {
            Arc::make_mut(facts).uncordon();
        }
        room
    }

    /// Returns the shared copy of a node name.
    pub fn node_name(&self, name: &str) -> Arc<str> {
        self.nodes.get_key_value(name).map_or_else(|| Arc::from(name), |(name, _)| name.clone())
    }

    fn forget_if_empty(&mut self, name: &str) {
        if self.nodes.get(name).is_some_and(|node| *node == NodeRoom::default()) {
            self.nodes.remove(name);
        }
    }
}

/// Reports whether pods wait for a resource that no node has: an extended one, or huge pages.
pub(super) fn may_lack(resource: &str) -> bool {
    is_extended(resource) || resource.starts_with(HUGE_PAGES)
}

impl PartialEq for Room {
    /// Compares the room of the nodes, whatever pods took it.
    fn eq(&self, other: &Self) -> bool {
        self.nodes == other.nodes
    }
}

impl FewAmounts {
    fn of(&self, resource: &str) -> i128 {
        self.0.iter().find(|(name, _)| **name == *resource).map_or(0, |(_, amount)| *amount)
    }

    fn add(&mut self, resource: &Arc<str>, amount: i64) {
        let amount = i128::from(amount);
        match self.0.iter().position(|(name, _)| name == resource) {
            Some(at) => {
                if let Some((_, sum)) = self.0.get_mut(at) {
                    *sum += amount;
                }
                self.0.retain(|(_, amount)| *amount != 0);
            }
            None => self.0.push((resource.clone(), amount)),
        }
    }
}

impl PartialEq for FewAmounts {
    /// Ignores the order of the resources.
    fn eq(&self, other: &Self) -> bool {
        self.0.len() == other.0.len() && self.0.iter().all(|(name, amount)| other.of(name) == *amount)
    }
}

impl Eq for FewAmounts {}

impl NodeRoom {
    /// Returns the total amount of a resource.
    pub fn allocatable(&self, resource: &str) -> i64 {
        self.allocatable.get(resource).copied().unwrap_or_default()
    }

    /// Returns the free amount of a resource; below 0 if more was taken than exists.
    pub fn free(&self, resource: &str) -> i64 {
        let free = i128::from(self.allocatable(resource)) - self.taken.of(resource);
        i64::try_from(free).unwrap_or(i64::MIN)
    }

    /// Returns the number of pods that the node may still take.
    pub fn free_pods(&self) -> i64 {
        self.free(PODS).saturating_sub(self.pods)
    }

    /// Returns the used host ports.
    pub fn ports(&self) -> &[HostPort] {
        &self.ports
    }

    fn take(&mut self, load: &Load) {
        for (resource, amount) in &load.amounts {
            self.taken.add(resource, *amount);
        }
        self.pods += 1;
        self.ports.extend_from_slice(&load.ports);
        // The order in which pods came does not matter for equality.
        self.ports.sort();
    }

    fn give(&mut self, load: &Load) {
        for (resource, amount) in &load.amounts {
            self.taken.add(resource, -amount);
        }
        self.pods -= 1;
        for port in &load.ports {
            if let Some(at) = self.ports.iter().position(|taken| taken == port) {
                self.ports.remove(at);
            }
        }
    }
}
