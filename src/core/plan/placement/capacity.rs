//! The cluster as seen by placement: the free room of its nodes, the needs of pods without a node, and the nodes assumed for
//! such pods (in the sense of kube-scheduler) before they are bound.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use super::added::RuntimeClasses;
use super::filter::{DomainLabel, NodeFacts};
use super::loose::Loose;
use super::needs::{Load, Needs, is_own_batch, kinds};
use super::peers::Peer;
use super::room::{NodeRoom, Room};
use super::volumes::{VolumeSight, Volumes, claims_of};
use crate::api::Node;
use crate::api::scheduling::{SchedulingPod, SchedulingSpec};
use crate::model::names::HOSTNAME;
use crate::model::quantity::NoQuantity;
use crate::model::{GroupKey, IgnoredResources, names, placed_by};
use crate::plan::devices::{DeviceSight, Devices};
use crate::plan::once::Once;

/// Returns the group of a pod, or the PodGroup that places it.
fn placed_for(pod: &SchedulingPod) -> Option<GroupKey> {
    let meta = &pod.metadata;
    let of_group = || names::pod_schemes().find_map(|(group, _)| meta.label(group));
    let of_tree = placed_by(meta).map(|name| GroupKey::new(meta.namespace(), name).of_pod_group());
    of_tree.or_else(|| Some(GroupKey::new(meta.namespace(), of_group()?)))
}

/// Returns the domain that a released pod selects, and that its affinity to its own batch names: it was placed there.
fn sent_to(pod: &SchedulingPod) -> Option<DomainLabel> {
    let SchedulingSpec { scheduling_gates, node_selector, affinity, .. } = &pod.spec;
    let is_sent =
        !scheduling_gates.iter().any(|gate| gate.name == names::GATE) && !node_selector.contains_key(HOSTNAME);
    let mut keys = affinity.pod_affinity.terms.iter().filter(|term| is_own_batch(term)).map(|term| &term.topology_key);
    let (key, domain) = keys.find_map(|key| node_selector.get_key_value(key)).filter(|_| is_sent)?;
    Some(Arc::new((key.clone(), domain.clone())))
}

/// The known nodes and pods, updated event by event.
#[derive(Clone, Debug, Default)]
pub struct Capacity {
    room: Room,
    /// The needs of pods of groups without a node, by uid.
    unbound: HashMap<Arc<str>, Arc<Needs>>,
    /// The same needs, deduplicated.
    kinds: Once<Needs>,
    /// The needs of bound pods of groups, by uid, with the load that they had first.
    bound: HashMap<Arc<str>, Arc<Needs>>,
    /// The same needs, deduplicated.
    kinds_of_bound: Once<Needs>,
    /// The claims of pods of groups, by uid; only of pods that have some.
    claims: HashMap<Arc<str>, Box<[Arc<str>]>>,
    volumes: Volumes,
    /// The groups of placed pods that are not bound yet, by uid: their room is taken already.
    assumed: HashMap<Arc<str>, GroupKey>,
    /// Those of them that a scheduler may bind to other nodes of their domains.
    loose: Loose,
    /// The uids of released pods without a node that select nodes, and name none.
    sent: HashSet<Arc<str>>,
    /// The nominated nodes of pods without a node, by uid.
    nominated: HashMap<Arc<str>, Arc<str>>,
    /// The uids of pods that were not bound in time: their room is free for others.
    given_up: HashSet<Arc<str>>,
    freed: u64,
    /// Whether pods that do not exist yet may ask for devices.
    unmade_ask_for_devices: bool,
}

impl Capacity {
    /// Returns the free room of the nodes beside bound and assumed pods.
    pub fn room(&self) -> &Room {
        &self.room
    }

    /// Returns a capacity of which nothing is known, where these resources need not be on a node.
    pub fn ignoring(ignored: IgnoredResources) -> Self {
        Self::of(Room::ignoring(ignored))
    }

    /// Returns the capacity of a room, without pods that ask for some of it.
    pub fn of(room: Room) -> Self {
        Self { room, ..Self::default() }
    }

    /// Adds a pod without a node, by its needs.
    pub fn awaits(&mut self, uid: &Arc<str>, needs: Arc<Needs>) {
        let needs = self.kinds.of(needs);
        self.unbound.insert(uid.clone(), needs);
    }

    /// Binds a pod without a node to one.
    pub fn binds(&mut self, uid: &str, node: &str) {
        if let Some(needs) = self.unbound.get(uid).cloned() {
            self.remember(uid, &needs);
            self.bind(uid, node, needs.load.clone(), &needs.peer);
        }
    }

    /// Returns the number of entries of each map.
    pub fn sizes(&self) -> impl Iterator<Item = (&'static str, usize)> {
        let own = [
            ("unbound_pods", self.unbound.len()),
            ("bound_pods_of_groups", self.bound.len()),
            ("pods_with_claims", self.claims.len()),
            ("needs_in_common", self.kinds.count()),
            ("assumed_pods", self.assumed.len()),
            ("loose_pods", self.loose.count()),
            ("sent_pods", self.sent.len()),
            ("nominations", self.nominated.len()),
            ("given_up_pods", self.given_up.len()),
            ("runtime_classes", self.room.runtime_classes().count()),
        ];
        self.room.sizes().into_iter().chain(own).chain(self.volumes.sizes()).chain(self.room.devices().sizes())
    }

    /// Returns a counter that grows with each change that may have made room: a batch that did not fit is then tried again.
    pub fn freed(&self) -> u64 {
        self.freed
    }

    /// Adds or updates a node.
    ///
    /// # Errors
    ///
    /// Fails on an amount that is no quantity; the node is then removed.
    pub fn apply_node(&mut self, node: &Node) -> Result<(), NoQuantity> {
        if self.room.apply_node(node)? {
            self.freed += 1;
        }
        Ok(())
    }

    pub fn remove_node(&mut self, name: &str) {
        self.room.remove_node(name);
    }

    /// Removes all nodes but these.
    pub fn keep_nodes(&mut self, names: &HashSet<&str>) {
        let gone: Vec<_> = self.room.nodes().map(|(name, _, _)| name.clone()).collect();
        gone.iter().filter(|name| !names.contains(&***name)).for_each(|name| self.room.remove_node(name));
    }

    /// Adds or updates a pod.
    ///
    /// # Errors
    ///
    /// Fails on an amount that is no quantity; the API server admits no such pod.
    pub fn apply_pod(&mut self, pod: &SchedulingPod) -> Result<(), NoQuantity> {
        let uid = pod.metadata.uid.as_deref().unwrap_or_default();
        match pod.node() {
            _ if pod.has_ended() => self.remove_pod(uid),
            // A pod that is being deleted takes its room until it is gone.
            Some(node) => {
                if placed_for(pod).is_some() && !self.bound.contains_key(uid) {
                    self.remember(uid, &Needs::of(pod)?);
                    self.note_claims(uid, pod);
                }
                self.bind(uid, node, Load::of(pod)?, &Arc::new(Peer::of(pod).0));
            }
            None if pod.metadata.is_deleting() => self.remove_pod(uid),
            None if placed_for(pod).is_some() => {
                let needs = self.kinds.of(Arc::new(Needs::of(pod)?));
                let uid: Arc<str> = uid.into();
                // With every label added, its needs change.
                let before = self.unbound.insert(uid.clone(), needs.clone());
                if let Some(before) = &before {
                    self.kinds.forget(before);
                }
                self.note_claims(&uid, pod);
                self.nominate(pod, &uid, &needs.load, &needs.peer);
                self.assume_as_bound_to_be(pod, &uid, &needs);
                if before.is_none()
                    && let Some((domain, group)) = sent_to(pod).zip(placed_for(pod))
                {
                    self.loose.find(&uid, group, domain);
                }
            }
            None if pod.nominated_node().is_some() || self.nominated.contains_key(uid) => {
                self.nominate(pod, &uid.into(), &Load::of(pod)?, &Arc::new(Peer::of(pod).0));
            }
            None => {}
        }
        Ok(())
    }

    /// Follows the nomination of a pod: room on its nominated node is taken as long as the scheduler keeps it.
    fn nominate(&mut self, pod: &SchedulingPod, uid: &Arc<str>, load: &Load, peer: &Arc<Peer>) {
        let node = pod.nominated_node().map(|node| self.room.node_name(node));
        let before = match &node {
            Some(node) => self.nominated.insert(uid.clone(), node.clone()),
            None => self.nominated.remove(uid),
        };
        match node {
            Some(node) => {
                // The pod goes to the nominated node instead of the assumed one.
                self.makes_way(uid, &node);
                self.room.nominate(uid, &node, load.clone(), peer);
                if let Some(group) = placed_for(pod).filter(|_| !self.given_up.contains(uid)) {
                    self.assumed.insert(uid.clone(), group);
                }
            }
            None if before.is_some() => self.forget_place(uid),
            None => {}
        }
    }

    fn forget_place(&mut self, uid: &str) {
        self.assumed.remove(uid);
        let opens = self.loose.remove(uid);
        if self.room.remove_pod(uid) || opens {
            self.freed += 1;
        }
    }

    /// Assumes a released pod on the node that its selector names, whichever process released it and wherever it was assumed
    /// since.
    fn assume_as_bound_to_be(&mut self, pod: &SchedulingPod, uid: &Arc<str>, needs: &Arc<Needs>) {
        let goes = !pod.spec.scheduling_gates.iter().any(|gate| gate.name == names::GATE);
        let host = needs.node_selector.get(HOSTNAME).filter(|_| goes && !self.given_up.contains(uid));
        if goes && host.is_none() && !needs.node_selector.is_empty() {
            self.sent.insert(uid.clone());
        }
        self.freed += u64::from(host.is_some() && self.loose.remove(uid));
        // Several nodes may have the name; the selector has the domain as well.
        let is_named = |facts: &NodeFacts| facts.is_selected_by(&needs.node_selector);
        let is_there = self.assumed(uid).and_then(|node| self.room.facts(node)).is_some_and(is_named);
        let same = |host: &String| self.room.facts(host).filter(|facts| is_named(facts));
        let other = || self.room.nodes().map(|(_, _, facts)| facts).find(|facts| is_named(facts));
        let node =
            host.filter(|_| !is_there).and_then(|host| same(host).or_else(other)).map(|facts| facts.name.clone());
        if let Some((node, group)) = node.zip(placed_for(pod)) {
            self.assume(&group, uid, &node, needs);
        }
    }

    /// Remembers the needs of a pod for the time in which it is bound.
    fn remember(&mut self, uid: &str, needs: &Needs) {
        let needs = self.kinds_of_bound.of(needs.without(&[HOSTNAME]));
        self.bound.insert(uid.into(), needs);
    }

    fn bind(&mut self, uid: &str, node: &str, load: Load, peer: &Arc<Peer>) {
        self.forget_needs(uid);
        self.given_up.remove(uid);
        self.nominated.remove(uid);
        self.makes_way(uid, node);
        self.assumed.remove(uid);
        let opens = self.loose.remove(uid);
        // The pod went elsewhere, or takes less than before.
        if self.room.apply_pod(uid, node, load, peer) || opens {
            self.freed += 1;
        }
    }

    /// Lets a pod go to a node where an equal one was assumed, which takes its place.
    fn makes_way(&mut self, uid: &str, node: &str) {
        let Some(before) = self.assumed(uid).filter(|before| ***before != *node).cloned() else { return };
        let is_there = |other: &&Arc<str>| {
            !self.nominated.contains_key(&***other) && self.room.node_of(other).is_some_and(|on| **on == *node)
        };
        let other = self.loose.equals_of(uid).find(is_there);
        let other = other.and_then(|other| Some((other.clone(), self.unbound.get(other)?.clone())));
        if let Some((other, needs)) = other {
            self.room.apply_pod(&other, &before, needs.load.clone(), &needs.peer);
        }
    }

    /// Removes a pod that is gone or has ended.
    pub fn remove_pod(&mut self, uid: &str) {
        self.forget_needs(uid);
        self.claims.remove(uid);
        if let Some(needs) = self.bound.remove(uid) {
            self.kinds_of_bound.forget(&needs);
        }
        self.given_up.remove(uid);
        self.nominated.remove(uid);
        self.forget_place(uid);
    }

    /// Removes all pods but these.
    pub fn keep_pods(&mut self, uids: &HashSet<&str>) {
        let known: HashSet<_> = self.room.pods().chain(self.unbound.keys()).cloned().collect();
        known.iter().filter(|uid| !uids.contains(&***uid)).for_each(|uid| self.remove_pod(uid));
    }

    fn note_claims(&mut self, uid: &str, pod: &SchedulingPod) {
        let claims = claims_of(pod);
        if !claims.is_empty() {
            self.claims.insert(uid.into(), claims);
        }
    }

    fn forget_needs(&mut self, uid: &str) {
        self.sent.remove(uid);
        if let Some(needs) = self.unbound.remove(uid) {
            self.kinds.forget(&needs);
        }
    }

    /// Returns the needs of a pod without a node; `None` while they are not known.
    pub fn needs(&self, uid: &str) -> Option<&Arc<Needs>> {
        self.unbound.get(uid)
    }

    /// Returns the needs of a pod with or without a node, as its template says them; `None` while they are not known.
    pub fn known(&self, uid: &str) -> Option<&Arc<Needs>> {
        self.unbound.get(uid).or_else(|| self.bound.get(uid))
    }

    /// Returns the needs of a pod as if it were made again, with the nodes that reach its volumes; `None` while they are not known.
    pub fn needs_again(&self, uid: &str) -> Option<Arc<Needs>> {
        let needs = match self.unbound.get(uid) {
            Some(needs) => needs.clone(),
            None => Arc::new(Needs { load: self.room.load_of(uid)?.clone(), ..(**self.bound.get(uid)?).clone() }),
        };
        self.volumes.asked(&needs, self.claims_of(uid))
    }

    fn claims_of(&self, uid: &str) -> &[Arc<str>] {
        self.claims.get(uid).map_or(&[], |claims| claims)
    }

    /// Returns these needs with the nodes that reach its claims; `None` while either is not known.
    pub fn asked(&self, uid: &str) -> Option<Arc<Needs>> {
        let needs = self.volumes.asked(self.unbound.get(uid)?, self.claims_of(uid))?;
        self.room.reached(needs)
    }

    /// Reports whether any pod without a node, or that is to be made, may ask for devices.
    pub fn asks_for_devices(&self) -> bool {
        self.unmade_ask_for_devices || self.kinds.iter().any(|needs| needs.load.ask().may_be_devices())
    }

    /// Notes what pods that are to be made ask for.
    pub(super) fn asks_for_devices_of(&mut self, unmade: &[Arc<Needs>]) {
        self.unmade_ask_for_devices |= kinds(unmade).any(|needs| needs.load.ask().may_be_devices());
    }

    /// Changes the known devices; `change` reports whether a pod may go elsewhere now.
    pub fn change_devices(&mut self, change: impl FnOnce(&mut Devices) -> bool) {
        if change(self.room.devices_mut()) {
            self.freed += 1;
        }
    }

    /// Changes the known RuntimeClasses; `change` reports whether a pod may go elsewhere now.
    pub fn change_runtime_classes(&mut self, change: impl FnOnce(&mut RuntimeClasses) -> bool) {
        if change(self.room.runtime_classes_mut()) {
            self.freed += 1;
        }
    }

    /// Reports whether any pod of a group has claims.
    pub fn has_claims(&self) -> bool {
        !self.claims.is_empty()
    }

    /// Reports whether the claims of a pod are known, or may not be read.
    pub fn sees_claims_of(&self, uid: &str) -> bool {
        let of_volumes = matches!(self.volumes.sight, VolumeSight::Known | VolumeSight::Refused(_));
        let of_devices = matches!(self.room.devices().sight, DeviceSight::Known | DeviceSight::Refused(_));
        let has_devices = || self.known(uid).is_some_and(|needs| !needs.load.claims.is_empty());
        (of_volumes || !self.claims.contains_key(uid)) && (of_devices || !has_devices())
    }

    /// Returns why the reach of the claims of a pod is unknown.
    pub fn blind_to_claims(&self, uid: &str) -> Option<&str> {
        match &self.volumes.sight {
            VolumeSight::Refused(why) if self.claims.contains_key(uid) => Some(why),
            _ => None,
        }
    }

    /// Changes the known volumes; `change` reports whether a pod may go elsewhere now.
    pub fn change_volumes(&mut self, change: impl FnOnce(&mut Volumes) -> bool) {
        if change(&mut self.volumes) {
            self.freed += 1;
        }
    }

    /// Places a pod, which takes its room from now on.
    pub fn assume(&mut self, group: &GroupKey, uid: &Arc<str>, node: &str, needs: &Arc<Needs>) {
        self.room.apply_pod(uid, node, needs.load.clone(), &needs.peer);
        self.assumed.insert(uid.clone(), group.clone());
    }

    /// Notes which assumed pods of a group may be bound to any node of a domain, and what they have in common.
    pub(super) fn loosen<'a>(
        &mut self,
        pods: impl Iterator<Item = (&'a Arc<str>, bool)>,
        group: &GroupKey,
        (domain, like): (&DomainLabel, Option<&Arc<Needs>>),
        now: Duration,
    ) {
        for (uid, is_loose) in pods {
            self.freed += u64::from(self.loose.remove(uid) && !is_loose);
            if is_loose {
                self.loose.add(uid, group, (domain, like), now);
            }
        }
    }

    /// Notes that the group of these pods looks at them.
    pub(super) fn keep(&mut self, pods: &[Arc<str>], now: Duration) {
        pods.iter().for_each(|uid| self.loose.keep(uid, now));
    }

    /// Returns the domains that wait for others to be bound before they take these pods, which have these needs in common.
    pub fn closed_to(&self, (key, like): (&str, Option<&Needs>), pods: &[Arc<str>], now: Duration) -> Vec<DomainLabel> {
        self.loose.closed_to((key, like), pods, now, |uid| self.stands(uid))
    }

    /// Returns and forgets the pods that were released to a domain, and that no group has looked at.
    pub(super) fn take_unkept(&mut self) -> BTreeMap<Arc<str>, (GroupKey, DomainLabel)> {
        self.loose.take_unkept()
    }

    /// Reports whether the assumed node of a pod still takes it, and has what it takes.
    fn stands(&self, uid: &str) -> bool {
        let Some((name, needs)) = self.assumed(uid).zip(self.unbound.get(uid)) else { return false };
        let takes = |node: &NodeRoom| {
            node.free_pods() >= 0 && needs.load.amounts.keys().all(|resource| node.free(resource) >= 0)
        };
        self.room.facts(name).is_some_and(|facts| facts.refusal(needs).is_none())
            && self.room.node(name).is_some_and(takes)
    }

    /// Returns the pods that may be bound to any node of their domains.
    pub fn loose(&self) -> &Loose {
        &self.loose
    }

    /// Reports whether a released pod without a node selects nodes, and names none: the scheduler neither.
    pub fn is_sent(&self, uid: &str) -> bool {
        self.sent.contains(uid) && !self.nominated.contains_key(uid)
    }

    /// Reports whether pods may go to any node of a domain that is known only when their groups are looked at.
    pub fn may_be_loose(&self) -> bool {
        self.sent.iter().any(|uid| !self.assumed.contains_key(uid))
    }

    /// Reports whether a domain has the place of an unbound pod that may not go to any node there, beside these.
    pub(super) fn expects_others_in(&self, domain: &DomainLabel, pods: &[Arc<str>]) -> bool {
        let own: HashSet<_> = pods.iter().collect();
        let in_domain = |uid: &Arc<str>| Some(self.room.facts(self.room.node_of(uid)?)?.label(&domain.0)? == domain.1);
        let is_other = |uid: &&Arc<str>| !own.contains(uid) && self.loose.domain_of(uid) != Some(domain);
        self.assumed.keys().filter(is_other).any(|uid| in_domain(uid) == Some(true))
    }

    /// Returns the assumed node of a pod that is not bound yet.
    pub fn assumed(&self, uid: &str) -> Option<&Arc<str>> {
        self.assumed.get(uid).and_then(|_| self.room.node_of(uid))
    }

    /// Removes the place of an unbound pod, to find another one.
    pub fn give_back(&mut self, uid: &str) {
        if self.assumed.remove(uid).is_some() {
            self.loose.remove(uid);
            self.room.remove_pod(uid);
        }
    }

    /// Returns the uids of the assumed pods of a group.
    pub fn assumed_of<'a>(&'a self, group: &'a GroupKey) -> impl Iterator<Item = &'a Arc<str>> {
        self.assumed.iter().filter(move |(_, of)| *of == group).map(|(uid, _)| uid)
    }

    /// Removes the places of pods that were not bound in time, for good.
    pub fn give_up(&mut self, uids: &[Arc<str>]) {
        uids.iter().for_each(|uid| self.forget(uid));
        // No further event comes for a pod that is bound or gone by now.
        self.given_up.extend(uids.iter().filter(|uid| self.unbound.contains_key(*uid)).cloned());
    }

    /// Frees the place of an unbound pod for others, unless it has a nominated node.
    pub fn forget(&mut self, uid: &str) {
        if self.assumed.remove(uid).is_none() {
            return;
        }
        self.freed += u64::from(self.loose.remove(uid));
        if let (Some((uid, node)), Some(needs)) = (self.nominated.get_key_value(uid), self.unbound.get(uid)) {
            self.room.nominate(uid, node, needs.load.clone(), &needs.peer);
        } else if self.room.remove_pod(uid) {
            self.freed += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_pod_asked_for_before_is_forgotten() {
        let mut capacity = Capacity::default();
        for number in 0..1000 {
            let labels = json!({ names::GROUP: "llm", "changes": number.to_string() });
            let pod = json!({ "metadata": { "name": "a", "namespace": "ns", "uid": "a", "labels": labels } });
            capacity.apply_pod(&serde_json::from_value(pod).unwrap()).unwrap();
            assert_eq!((capacity.unbound.len(), capacity.kinds.count()), (1, 1));
        }
        capacity.remove_pod("a");
        assert!(capacity.sizes().all(|(_, entries)| entries == 0), "{:?}", capacity.sizes().collect::<Vec<_>>());
    }
}
