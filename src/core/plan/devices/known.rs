//! The known slices, classes, claims, templates and taints, updated object by object.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use super::asks::{Alternative, ClaimAsk, ClaimRef, Compiled, compiled, keeps_away};
use super::pools::{Device, PoolId, Pools};
use super::selector::Selector;
use crate::api::Meta;
use crate::api::device::{
    DeviceClass, DeviceTaintRule, DeviceTaintSelector, ResourceClaim, ResourceClaimSpec, ResourceClaimTemplate,
    ResourceSlice,
};
use crate::api::node::Taint;
use crate::api::scheduling::NodeSelector;
use crate::plan::once::Once;

/// The prefix of the extended resource that every class has by its name.
const OF_CLASS: &str = "deviceclass.resource.kubernetes.io/";
/// The part of names of resources that are no extended resources.
const NATIVE: &str = "kubernetes.io/";

/// The state of the watches of devices.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum DeviceSight {
    /// Devices are not watched.
    #[default]
    Unseen,
    /// Devices are watched once a pod may ask for some, and are not listed yet.
    Awaited,
    Known,
    /// Devices may not be read, for this reason.
    Refused(Arc<str>),
}

/// The kinds of objects that are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ObjectSort {
    Class,
    Template,
    Claim,
    TaintRule,
    Slice,
}

const SORTS: usize = 5;
/// The number of unused selectors that does not justify a search through all.
const FEW: usize = 64;

/// An object of any of these kinds.
#[derive(Clone, Debug)]
pub enum DeviceObject {
    Class(DeviceClass),
    Template(ResourceClaimTemplate),
    Claim(ResourceClaim),
    TaintRule(DeviceTaintRule),
    Slice(ResourceSlice),
}

#[derive(Clone, Debug, Default)]
pub struct Devices {
    pub sight: DeviceSight,
    listed: BTreeSet<ObjectSort>,
    pub(super) pools: Pools,
    classes: BTreeMap<Arc<str>, Class>,
    /// By `namespace/name`.
    claims: HashMap<Arc<str>, Claim>,
    templates: HashMap<Arc<str>, Arc<ClaimAsk>>,
    taints: BTreeMap<Arc<str>, (DeviceTaintSelector, Taint)>,
    /// The number of allocations of each device.
    taken: HashMap<PoolId, HashMap<Arc<str>, u32>>,
    /// The number of allocated claims by the uid of a pod that uses them.
    of_pod: HashMap<Arc<str>, u32>,
    compiled: Compiled,
    asks: Once<ClaimAsk>,
    /// Whether slices are kept with the attributes that all selectors and constraints name.
    names_are_kept: bool,
    slices_asked: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Class {
    selectors: Result<Vec<Arc<Selector>>, Arc<str>>,
    resource: Arc<str>,
    /// RFC 3339.
    created: Arc<str>,
}

#[derive(Clone, Debug, PartialEq)]
struct Claim {
    ask: Arc<ClaimAsk>,
    allocation: Option<Allocation>,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Allocation {
    devices: Box<[(PoolId, Arc<str>)]>,
    nodes: Option<Arc<NodeSelector>>,
    /// The uids of the users.
    users: Box<[Arc<str>]>,
}

/// Reports whether a resource may be one of a class.
pub fn is_extended(resource: &str) -> bool {
    resource.starts_with(OF_CLASS) || (resource.contains('/') && !resource.contains(NATIVE))
}

impl Devices {
    /// Returns the number of entries of each map.
    pub fn sizes(&self) -> impl Iterator<Item = (&'static str, usize)> {
        let own = [
            ("device_classes", self.classes.len()),
            ("resource_claims", self.claims.len()),
            ("claim_templates", self.templates.len()),
            ("device_taint_rules", self.taints.len()),
            ("selectors", self.compiled.count() + self.asks.count()),
            ("pools_in_use", self.taken.len()),
            ("pods_with_devices", self.of_pod.len()),
        ];
        self.pools.sizes().into_iter().chain(own)
    }

    /// Notes that all objects of a kind are listed.
    pub fn are_listed(&mut self, kind: ObjectSort) {
        self.listed.insert(kind);
        if self.listed.len() == SORTS {
            self.sight = DeviceSight::Known;
        }
    }

    /// Reports whether the slices are to be listed: for the first time once all selectors are known, and again when a selector or
    /// a constraint names attributes that were not kept.
    pub fn wants_slices(&mut self) -> bool {
        let first = [ObjectSort::Class, ObjectSort::Template, ObjectSort::Claim];
        let all_are_listed = first.iter().all(|sort| self.listed.contains(sort));
        if !all_are_listed || std::mem::replace(&mut self.names_are_kept, true) {
            return false;
        }
        let lacks = self.keep_named_attributes();
        let is_first = !std::mem::replace(&mut self.slices_asked, true);
        if lacks {
            self.listed.remove(&ObjectSort::Slice);
            self.sight = DeviceSight::Awaited;
        }
        lacks || is_first
    }

    /// Keeps the attributes that selectors and constraints name, in slices that are applied from now on; returns whether slices
    /// that are known already lack some of them.
    pub fn keep_named_attributes(&mut self) -> bool {
        let of_classes = self.classes.values().filter_map(|class| class.selectors.as_ref().ok()).flatten();
        let of_classes = of_classes.map(|selector| Some(selector.names()?.iter().cloned().collect()));
        let all: Option<Vec<Vec<_>>> = of_classes.chain(self.asks.iter().map(|ask| ask.names())).collect();
        self.pools.keep(all.map(|names| names.into_iter().flatten().collect()))
    }

    pub fn apply_slice(&mut self, slice: &ResourceSlice) -> bool {
        self.pools.apply(slice)
    }

    pub fn apply_class(&mut self, class: &DeviceClass) -> bool {
        let compiled_by = &mut self.compiled;
        let new = Class {
            selectors: compiled(&class.spec.selectors, &mut |text| compiled_by.of(text)),
            resource: class.spec.extended_resource_name.as_str().into(),
            created: class.metadata.creation_timestamp.as_deref().unwrap_or_default().into(),
        };
        let is_new = replace(&mut self.classes, class.metadata.display_name(), new);
        self.names_are_kept &= !is_new;
        is_new
    }

    pub fn apply_template(&mut self, template: &ResourceClaimTemplate) -> bool {
        let ask = self.ask(&template.spec.spec);
        self.templates.insert(key(&template.metadata), ask.clone()) != Some(ask)
    }

    /// Adds or updates a claim: its devices are taken while it is allocated. Returns whether a pod may go elsewhere now.
    pub fn apply_claim(&mut self, claim: &ResourceClaim) -> bool {
        let ask = self.ask(&claim.spec);
        let allocation = claim.status.allocation.as_ref().map(|allocation| Allocation {
            devices: allocation
                .devices
                .results
                .iter()
                .filter(|one| !one.admin_access)
                .map(|one| {
                    let pool = PoolId { driver: one.driver.as_str().into(), pool: one.pool.as_str().into() };
                    (self.pools.id_of(pool), one.device.as_str().into())
                })
                .collect(),
            nodes: allocation.node_selector.clone().map(Arc::new),
            users: claim.status.reserved_for.iter().map(|user| user.uid.as_str().into()).collect(),
        });
        let key = key(&claim.metadata);
        let new = Claim { ask, allocation };
        if self.claims.get(&key) == Some(&new) {
            return false;
        }
        let had = self.claims.get(&key).is_some_and(|claim| claim.allocation.is_some());
        self.remove_claim_of(&key);
        if let Some(allocation) = &new.allocation {
            self.take(allocation);
        }
        let may_go = had || new.allocation.is_none();
        self.claims.insert(key, new);
        may_go
    }

    fn remove_claim_of(&mut self, key: &str) -> bool {
        let Some(gone) = self.claims.remove(key) else { return false };
        if let Some(allocation) = &gone.allocation {
            self.give(allocation);
        }
        true
    }

    pub fn apply_taint_rule(&mut self, rule: &DeviceTaintRule) -> bool {
        let name = rule.metadata.display_name();
        // A rule without selector selects nothing.
        match rule.spec.device_selector.clone().filter(|_| keeps_away(&rule.spec.taint)) {
            Some(selector) => replace(&mut self.taints, name, (selector, rule.spec.taint.clone())),
            None => self.taints.remove(name).is_some(),
        }
    }

    /// Adds these objects, which are all that there are.
    pub fn apply_all(&mut self, objects: &[DeviceObject]) {
        let slices = objects.iter().filter(|object| matches!(object, DeviceObject::Slice(_)));
        let others = objects.iter().filter(|object| !matches!(object, DeviceObject::Slice(_)));
        others.for_each(|object| _ = self.apply(object));
        // Slices are read with the attributes that the others name.
        self.keep_named_attributes();
        slices.for_each(|object| _ = self.apply(object));
        self.sight = DeviceSight::Known;
    }

    fn apply(&mut self, object: &DeviceObject) -> bool {
        match object {
            DeviceObject::Class(class) => self.apply_class(class),
            DeviceObject::Template(template) => self.apply_template(template),
            DeviceObject::Claim(claim) => self.apply_claim(claim),
            DeviceObject::TaintRule(rule) => self.apply_taint_rule(rule),
            DeviceObject::Slice(slice) => self.apply_slice(slice),
        }
    }

    /// Removes an object; returns whether it was known.
    pub fn remove(&mut self, sort: ObjectSort, object: &Meta) -> bool {
        let name = object.display_name();
        match sort {
            ObjectSort::Class => self.classes.remove(name).is_some(),
            ObjectSort::Template => self.templates.remove(&key(object)).is_some(),
            ObjectSort::Claim => self.remove_claim_of(&key(object)),
            ObjectSort::TaintRule => self.taints.remove(name).is_some(),
            ObjectSort::Slice => self.pools.remove(name),
        }
    }

    /// Removes all objects of a kind but these.
    pub fn retain(&mut self, kind: ObjectSort, objects: &[&Meta]) {
        let names: HashSet<_> = objects.iter().map(|meta| meta.display_name()).collect();
        let keys = || objects.iter().map(|meta| key(meta)).collect::<HashSet<_>>();
        match kind {
            ObjectSort::Class => self.classes.retain(|name, _| names.contains(&**name)),
            ObjectSort::TaintRule => self.taints.retain(|name, _| names.contains(&**name)),
            ObjectSort::Slice => self.pools.retain(&names),
            ObjectSort::Template => {
                let keys = keys();
                self.templates.retain(|key, _| keys.contains(key));
            }
            ObjectSort::Claim => {
                let keys = keys();
                let gone: Vec<_> = self.claims.keys().filter(|key| !keys.contains(*key)).cloned().collect();
                gone.iter().for_each(|key| _ = self.remove_claim_of(key));
            }
        }
    }

    fn ask(&mut self, spec: &ResourceClaimSpec) -> Arc<ClaimAsk> {
        let compiled_by = &mut self.compiled;
        let new = Arc::new(ClaimAsk::of(spec, &mut |text| compiled_by.of(text)));
        let ask = self.asks.of(new.clone());
        if Arc::ptr_eq(&ask, &new) {
            self.names_are_kept = false;
            if self.compiled.count() >= 2 * self.asks.count() + FEW {
                self.compiled.prune();
            }
        }
        ask
    }

    fn take(&mut self, allocation: &Allocation) {
        for (pool, device) in &allocation.devices {
            *self.taken.entry(pool.clone()).or_default().entry(device.clone()).or_default() += 1;
        }
        for user in &allocation.users {
            *self.of_pod.entry(user.clone()).or_default() += 1;
        }
    }

    fn give(&mut self, allocation: &Allocation) {
        for (pool, device) in &allocation.devices {
            let Some(devices) = self.taken.get_mut(pool) else { continue };
            less(devices, device);
            if devices.is_empty() {
                self.taken.remove(pool);
            }
        }
        allocation.users.iter().for_each(|user| less(&mut self.of_pod, user));
    }

    /// Gives back the devices of claims that only these pods use.
    pub fn give_back_of(&mut self, uids: &HashSet<&str>) {
        let is_of = |claim: &Claim| {
            let users = claim.allocation.as_ref().map(|allocation| &allocation.users);
            users.is_some_and(|users| !users.is_empty() && users.iter().all(|user| uids.contains(&**user)))
        };
        let theirs: Vec<_> = self.claims.iter().filter(|(_, claim)| is_of(claim)).map(|(key, _)| key.clone()).collect();
        theirs.iter().for_each(|key| _ = self.remove_claim_of(key));
    }

    /// Returns the class that gives devices for a resource: of several the latest.
    pub fn class_of(&self, resource: &str) -> Option<&Arc<str>> {
        if let Some((name, _)) = resource.strip_prefix(OF_CLASS).and_then(|name| self.classes.get_key_value(name)) {
            return Some(name);
        }
        let named = self.classes.iter().filter(|(_, class)| *class.resource == *resource && is_extended(resource));
        // Of classes of one second, the first by name.
        named.rev().max_by(|(_, one), (_, other)| one.created.cmp(&other.created)).map(|(name, _)| name)
    }

    /// Returns the number of allocated claims that a pod uses.
    pub fn allocated_to(&self, uid: &str) -> usize {
        self.of_pod.get(uid).map_or(0, |count| usize::try_from(*count).unwrap_or(usize::MAX))
    }

    /// Returns the claim that a pod refers to, or why it is not modelled.
    ///
    /// # Errors
    ///
    /// Fails with the reason.
    pub fn ask_of(&self, claim: &ClaimRef) -> Result<&Arc<ClaimAsk>, Arc<str>> {
        let known = match claim {
            ClaimRef::Template(key) => self.templates.get(key),
            ClaimRef::Named(key) => self.claims.get(key).map(|claim| &claim.ask),
        };
        let ask = known.ok_or_else(|| Arc::from(format!("{}, which is not there", claim.describe())))?;
        match &ask.not_modelled {
            Some(why) => Err(format!("{}: {why}", claim.describe()).into()),
            None => Ok(ask),
        }
    }

    /// Returns the nodes that reach the devices of an allocated claim; `None` for a claim that is not allocated, `Some(None)`
    /// for all nodes.
    pub fn allocated(&self, claim: &ClaimRef) -> Option<Option<&Arc<NodeSelector>>> {
        let ClaimRef::Named(key) = claim else { return None };
        let allocation = self.claims.get(key)?.allocation.as_ref()?;
        Some(allocation.nodes.as_ref())
    }

    /// Reports whether a claim that pods may share is there, modelled and not allocated.
    pub fn is_open(&self, claim: &ClaimRef) -> bool {
        matches!(claim, ClaimRef::Named(_)) && self.allocated(claim).is_none() && self.ask_of(claim).is_ok()
    }

    /// Allocates devices to a claim. Only the nodes that `nodes` selects reach them; `None` for all nodes.
    pub fn allocate(&mut self, claim: &ClaimRef, devices: Box<[(PoolId, Arc<str>)]>, nodes: Option<Arc<NodeSelector>>) {
        let Some(mut new) = self.claims.get(claim.key()).cloned() else { return };
        let allocation = Allocation { devices, nodes, users: Box::default() };
        self.take(&allocation);
        new.allocation = Some(allocation);
        self.claims.insert(claim.key().clone(), new);
    }

    /// Allocates a claim on nodes without saying which devices; returns the template of a claim that takes them.
    pub fn allocate_later(&mut self, claim: &ClaimRef, nodes: &Arc<NodeSelector>) -> ClaimRef {
        let template: Arc<str> = format!("{}/first", claim.key()).into();
        if let Some(claim) = self.claims.get(claim.key()) {
            self.templates.insert(template.clone(), claim.ask.clone());
        }
        self.allocate(claim, Box::default(), Some(nodes.clone()));
        ClaimRef::Template(template)
    }

    /// Returns the selectors of an alternative: those of its class, then its own.
    ///
    /// # Errors
    ///
    /// Fails with the reason why they are not modelled.
    pub(super) fn selectors(&self, alternative: &Alternative) -> Result<Vec<Arc<Selector>>, Arc<str>> {
        let missing = || Arc::from(format!("DeviceClass {:?}, which is not there", alternative.class));
        let class = self.classes.get(&alternative.class).ok_or_else(missing)?;
        let mut selectors = class.selectors.clone()?;
        selectors.extend(alternative.selectors.iter().cloned());
        Ok(selectors)
    }

    pub(super) fn is_taken(&self, pool: &PoolId, device: &str) -> bool {
        self.taken.get(pool).is_some_and(|devices| devices.contains_key(device))
    }

    /// Iterates over the taints of a device that keep claims away: its own, and those of rules.
    pub(super) fn taints_of<'a>(&'a self, pool: &'a PoolId, device: &'a Device) -> impl Iterator<Item = &'a Taint> {
        let is = |wanted: &Option<String>, name: &str| wanted.as_ref().is_none_or(|wanted| wanted == name);
        let selects = move |selector: &DeviceTaintSelector| {
            is(&selector.driver, &pool.driver) && is(&selector.pool, &pool.pool) && is(&selector.device, &device.name)
        };
        let of_rules = self.taints.values().filter(move |(selector, _)| selects(selector)).map(|(_, taint)| taint);
        device.taints.iter().chain(of_rules)
    }

    /// Iterates over the names of all classes.
    pub(super) fn class_names(&self) -> impl Iterator<Item = &Arc<str>> {
        self.classes.keys()
    }
}

fn key(meta: &Meta) -> Arc<str> {
    format!("{}/{}", meta.namespace(), meta.display_name()).into()
}

fn less(counts: &mut HashMap<Arc<str>, u32>, key: &Arc<str>) {
    if let Some(count) = counts.get_mut(key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(key);
        }
    }
}

fn replace<T: PartialEq>(all: &mut BTreeMap<Arc<str>, T>, name: &str, new: T) -> bool {
    if all.get(name) == Some(&new) {
        return false;
    }
    all.insert(name.into(), new);
    true
}
