//! The devices that nodes reach, by ResourceSlices: pools, their generations, and the order in which kube-scheduler tries them.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use super::asks::{keeps_away, last_part};
use super::selector::{Attribute, DeviceFacts};
use crate::api::device::{DeviceAttribute, DeviceProperties, Nodes, ResourceSlice, SliceDevice};
use crate::api::node::Taint;
use crate::api::scheduling::NodeSelector;
use crate::plan::once::Once;

/// Driver and name of a pool.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PoolId {
    pub driver: Arc<str>,
    pub pool: Arc<str>,
}

/// A device of a slice.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Device {
    pub name: Arc<str>,
    /// Shared by equal devices.
    pub kind: Arc<DeviceKind>,
    /// The taints that keep claims away.
    pub taints: Box<[Taint]>,
    /// Its nodes, where each device of the slice has some of its own.
    nodes: Option<Reach>,
}

/// What equal devices have in common.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DeviceKind {
    pub facts: DeviceFacts,
    /// A property that is not modelled.
    pub not_modelled: Option<&'static str>,
}

/// The nodes that reach a slice or a device.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Reach {
    Node(Arc<str>),
    Selected(Arc<NodeSelector>),
    All,
    /// Each device has nodes of its own.
    EachDevice,
    Nowhere,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Slice {
    name: Arc<str>,
    generation: i64,
    /// The number of slices of the generation.
    of: i64,
    reach: Reach,
    /// Shared by slices with equal devices.
    devices: Arc<[Device]>,
}

/// All slices, by pool and node.
#[derive(Clone, Debug, Default)]
pub struct Pools {
    /// By pool, and in the order of their names.
    slices: BTreeMap<PoolId, Vec<Slice>>,
    pool_of: HashMap<Arc<str>, PoolId>,
    /// The pools with slices of one node, by node. Most nodes and most pools have one: a vector of one is a tenth of a tree.
    of_node: HashMap<Arc<str>, Vec<PoolId>>,
    /// The pools with slices that several nodes may reach.
    shared: BTreeSet<PoolId>,
    kinds: Once<DeviceKind>,
    lists: Once<[Device]>,
    drivers: Once<str>,
    /// The names of attributes that are kept; `None` for all.
    kept: Option<BTreeSet<Arc<str>>>,
}

/// The devices of a pool that a node reaches, in the order of allocation.
pub struct Reached<'a> {
    pub pool: &'a PoolId,
    /// The pool changes, or contradicts itself: none of its devices is allocated.
    pub is_broken: bool,
    /// Each device, and the nodes that reach it if these may be several.
    pub devices: Vec<(&'a Device, Option<&'a Reach>)>,
}

impl Pools {
    /// Returns the number of devices and of their distinct properties.
    pub fn sizes(&self) -> [(&'static str, usize); 2] {
        let slices = self.slices.values().flatten();
        [("devices", slices.map(|slice| slice.devices.len()).sum()), ("kinds_of_devices", self.kinds.count())]
    }

    /// Sets the names of attributes that are looked up; returns whether slices that are known already lack some.
    pub fn keep(&mut self, names: Option<BTreeSet<Arc<str>>>) -> bool {
        let lacks = match (&self.kept, &names) {
            (None, _) => false,
            (Some(_), None) => true,
            (Some(kept), Some(names)) => !names.is_subset(kept),
        };
        if lacks || self.slices.is_empty() {
            self.kept = names;
        }
        lacks && !self.slices.is_empty()
    }

    /// Adds or updates a slice; returns whether it has changed.
    pub fn apply(&mut self, slice: &ResourceSlice) -> bool {
        let driver = self.drivers.of(slice.spec.driver.as_str().into());
        let id = PoolId { driver, pool: slice.spec.pool.name.as_str().into() };
        let new = self.read(slice, &id);
        if self.pool_of.get(&new.name) == Some(&id)
            && self.slices.get(&id).and_then(|all| all.iter().find(|one| one.name == new.name)) == Some(&new)
        {
            return false;
        }
        self.remove(&new.name);
        match &new.reach {
            Reach::Node(node) => {
                let pools = self.of_node.entry(node.clone()).or_insert_with(|| Vec::with_capacity(1));
                if !pools.contains(&id) {
                    pools.push(id.clone());
                }
            }
            _ => _ = self.shared.insert(id.clone()),
        }
        self.pool_of.insert(new.name.clone(), id.clone());
        let slices = self.slices.entry(id).or_insert_with(|| Vec::with_capacity(1));
        slices.insert(slices.partition_point(|one| one.name < new.name), new);
        true
    }

    /// Removes a slice; returns whether it was known.
    pub fn remove(&mut self, name: &str) -> bool {
        let Some(id) = self.pool_of.remove(name) else { return false };
        let Some(slices) = self.slices.get_mut(&id) else { return false };
        let Some(position) = slices.iter().position(|slice| *slice.name == *name) else { return false };
        let gone = slices.remove(position);
        let is_like = |slice: &Slice| match (&slice.reach, &gone.reach) {
            (Reach::Node(one), Reach::Node(other)) => one == other,
            (Reach::Node(_), _) | (_, Reach::Node(_)) => false,
            _ => true,
        };
        if !slices.iter().any(is_like) {
            match &gone.reach {
                Reach::Node(node) => {
                    if let Some(pools) = self.of_node.get_mut(node) {
                        pools.retain(|pool| *pool != id);
                        if pools.is_empty() {
                            self.of_node.remove(node);
                        }
                    }
                }
                _ => _ = self.shared.remove(&id),
            }
        }
        if slices.is_empty() {
            self.slices.remove(&id);
        }
        self.lists.forget(&gone.devices);
        let kinds: HashSet<_> = gone.devices.iter().map(|device| device.kind.clone()).collect();
        drop(gone);
        kinds.iter().for_each(|kind| self.kinds.forget(kind));
        true
    }

    /// Removes all slices but these.
    pub fn retain(&mut self, names: &HashSet<&str>) {
        let gone: Vec<_> = self.pool_of.keys().filter(|name| !names.contains(&***name)).cloned().collect();
        gone.iter().for_each(|name| _ = self.remove(name));
    }

    /// Returns the pools that a node reaches, in the order of allocation. `matches` reports whether a selector selects the node.
    pub fn of_node<'a>(&'a self, node: &str, matches: &dyn Fn(&NodeSelector) -> bool) -> Vec<Reached<'a>> {
        let own = self.of_node.get(node).into_iter().flatten();
        let ids: BTreeSet<&PoolId> = own.chain(&self.shared).collect();
        let mut reached: Vec<_> = ids.into_iter().filter_map(|id| self.reached(id, node, matches)).collect();
        // Devices with conditions of binding are tried last.
        reached
            .sort_by_key(|reached| reached.devices.iter().any(|(device, _)| device.kind.not_modelled == Some(BINDING)));
        reached
    }

    /// Iterates over the distinct kinds of devices.
    pub fn kinds(&self) -> impl Iterator<Item = &DeviceKind> {
        self.kinds.iter().map(|kind| &**kind)
    }

    /// Iterates over the kinds of devices that several nodes may reach.
    pub fn shared_kinds(&self) -> impl Iterator<Item = &DeviceKind> {
        let slices = self.shared.iter().filter_map(|id| self.slices.get(id)).flatten();
        slices.flat_map(|slice| {
            let is_shared = |device: &&Device| !matches!(device.nodes.as_ref().unwrap_or(&slice.reach), Reach::Node(_));
            slice.devices.iter().filter(is_shared).map(|device| &*device.kind)
        })
    }

    /// Returns the shared copy of the id of a pool.
    pub fn id_of(&self, id: PoolId) -> PoolId {
        self.slices.get_key_value(&id).map_or(id, |(id, _)| id.clone())
    }

    fn reached<'a>(&'a self, id: &PoolId, node: &str, matches: &dyn Fn(&NodeSelector) -> bool) -> Option<Reached<'a>> {
        let (pool, slices) = self.slices.get_key_value(id)?;
        let reaches = |reach: &Reach| match reach {
            Reach::Node(one) => **one == *node,
            Reach::Selected(nodes) => matches(nodes),
            Reach::All => true,
            Reach::EachDevice | Reach::Nowhere => false,
        };
        let of_device = |device: &Device| device.nodes.as_ref().is_some_and(reaches);
        let is_relevant = |slice: &&Slice| match slice.reach {
            Reach::EachDevice => slice.devices.iter().any(of_device),
            _ => reaches(&slice.reach),
        };
        let relevant: Vec<_> = slices.iter().filter(is_relevant).collect();
        let generation = relevant.iter().map(|slice| slice.generation).max()?;
        let current: Vec<_> = relevant.into_iter().filter(|slice| slice.generation == generation).collect();
        let of = current.first()?.of;
        let is = |count: usize| i64::try_from(count) == Ok(of);
        if !is(current.len()) {
            if slices.iter().any(|slice| slice.generation > generation) {
                return None;
            }
            if !is(slices.iter().filter(|slice| slice.generation == generation).count()) {
                return Some(Reached { pool, is_broken: true, devices: Vec::new() });
            }
        }
        let mut names = HashSet::new();
        let is_broken = !current.iter().flat_map(|slice| &*slice.devices).all(|device| names.insert(&device.name));
        if is_broken {
            return Some(Reached { pool, is_broken, devices: Vec::new() });
        }
        let devices = current.into_iter().flat_map(|slice| {
            let is_there = |device: &&Device| slice.reach != Reach::EachDevice || of_device(device);
            let several = |device: &'a Device| {
                Some(device.nodes.as_ref().unwrap_or(&slice.reach)).filter(|reach| !matches!(reach, Reach::Node(_)))
            };
            slice.devices.iter().filter(is_there).map(move |device| (device, several(device)))
        });
        Some(Reached { pool, is_broken, devices: devices.collect() })
    }

    fn read(&mut self, slice: &ResourceSlice, id: &PoolId) -> Slice {
        let spec = &slice.spec;
        let reach = if spec.per_device_node_selection { Reach::EachDevice } else { Reach::of(&spec.nodes) };
        let has_counters = !spec.shared_counters.is_empty();
        let devices =
            spec.devices.iter().map(|device| self.device(device, id, reach == Reach::EachDevice, has_counters));
        let devices = devices.collect();
        Slice {
            name: slice.metadata.display_name().into(),
            generation: spec.pool.generation,
            of: spec.pool.resource_slice_count,
            reach,
            devices: self.lists.of(devices),
        }
    }

    fn device(&mut self, device: &SliceDevice, id: &PoolId, has_nodes: bool, has_counters: bool) -> Device {
        let properties = device.properties();
        let odd = [
            (has_counters || !properties.consumes_counters.is_empty(), "partitionable devices"),
            (properties.allow_multiple_allocations, "devices with consumable capacity"),
            (!properties.binding_conditions.is_empty(), BINDING),
        ];
        Device {
            name: device.name.as_str().into(),
            kind: self.kind(properties, &id.driver, odd.into_iter().find(|(is, _)| *is).map(|(_, what)| what)),
            taints: properties.taints.iter().filter(|taint| keeps_away(taint)).cloned().collect(),
            nodes: has_nodes.then(|| Reach::of(&properties.nodes)),
        }
    }

    fn kind(
        &mut self,
        properties: &DeviceProperties,
        driver: &Arc<str>,
        not_modelled: Option<&'static str>,
    ) -> Arc<DeviceKind> {
        let qualified =
            |name: &str| Arc::from(if name.contains('/') { name.to_owned() } else { format!("{driver}/{name}") });
        let is_kept = |name: &str| self.kept.as_ref().is_none_or(|kept| kept.contains(last_part(name)));
        let attributes = || properties.attributes.iter().filter(|(name, _)| is_kept(name));
        let is_unknown = attributes().any(|(_, value)| attribute(value).is_none());
        let not_modelled = not_modelled.or_else(|| is_unknown.then_some("attributes of a type that is not known"));
        let capacity = properties.capacity.iter().filter(|(name, _)| is_kept(name));
        let facts = DeviceFacts {
            driver: driver.clone(),
            attributes: attributes().filter_map(|(name, value)| Some((qualified(name), attribute(value)?))).collect(),
            capacity: capacity.map(|(name, one)| (qualified(name), one.value.0.as_str().into())).collect(),
            allow_multiple: properties.allow_multiple_allocations,
        };
        self.kinds.of(Arc::new(DeviceKind { facts, not_modelled }))
    }
}

/// Conditions that pods wait for after a device is allocated.
const BINDING: &str = "devices with binding conditions";

impl Reach {
    /// Returns the selector of the nodes, unless these are all nodes.
    pub fn selector(&self) -> Option<&Arc<NodeSelector>> {
        if let Self::Selected(nodes) = self { Some(nodes) } else { None }
    }

    fn of(nodes: &Nodes) -> Self {
        match nodes {
            Nodes { node_name, .. } if !node_name.is_empty() => Self::Node(node_name.as_str().into()),
            Nodes { all_nodes: true, .. } => Self::All,
            Nodes { node_selector: Some(selector), .. } => Self::Selected(Arc::new(selector.clone())),
            Nodes { .. } => Self::Nowhere,
        }
    }
}

fn attribute(value: &DeviceAttribute) -> Option<Attribute> {
    match value {
        DeviceAttribute { string: Some(text), .. } => Some(Attribute::Text(text.as_str().into())),
        DeviceAttribute { int: Some(number), .. } => Some(Attribute::Number(*number)),
        DeviceAttribute { bool: Some(flag), .. } => Some(Attribute::Flag(*flag)),
        DeviceAttribute { version: Some(version), .. } => Some(Attribute::Version(version.as_str().into())),
        DeviceAttribute { .. } => None,
    }
}
