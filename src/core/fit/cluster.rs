//! Nodes, pods and workloads: the free room, and the pods of a group that want some of it.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::iter;
use std::sync::Arc;

use serde_json::Value;

use crate::api::device::{DEVICE_CLASS, DEVICE_TAINT_RULE, RESOURCE_CLAIM, RESOURCE_CLAIM_TEMPLATE, RESOURCE_SLICE};
use crate::api::node::NODE;
use crate::api::pod::POD;
use crate::api::rbg::ROLE_BASED_GROUP;
use crate::api::runtime_class::{RUNTIME_CLASS, RuntimeClass};
use crate::api::scheduling::SchedulingPod;
use crate::api::volume::{CSI_DRIVER, PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM, STORAGE_CLASS, VOLUME_KINDS};
use crate::api::{Node, ObjectKind, Pod, RoleBasedGroup};
use crate::model::role_templates::role_templates;
use crate::model::{Batching, CARRIERS, Group, GroupKey, OrdinalStarts, Role, identify, names};
use crate::mutate::expand::expand;
use crate::plan::devices::DeviceObject;
use crate::plan::placement::{
    BatchPods, Capacity, Fit, Needs, Question, Room, RuntimeClasses, VolumeSight, Volumes, claims_of, place, place_some,
};
use crate::plan::simulate::{Site, SitePod};
use crate::plan::view::{GroupPods, counts};
use crate::rules::{DecodeError, decode_value};

/// Largest number of pods expanded from templates, where the caller has no other limit.
pub const MOST_PODS: u64 = 100_000;

/// Node labels of the domains of coordinations that name a layer, by index of the coordination.
pub type DomainKeys = BTreeMap<usize, String>;

/// Group, role and ordinal of a replica.
type ReplicaKey = (GroupKey, Arc<str>, u32);
/// Group and role of a replica without an ordinal.
type Unnumbered = (GroupKey, Arc<str>);

#[derive(Debug, Default)]
pub struct Cluster {
    /// Free room of the nodes.
    pub room: Room,
    /// Nodes from which claims can be reached.
    volumes: Volumes,
    /// Existing pods of replicas: their templates are not used.
    pods: BTreeMap<ReplicaKey, Vec<ReplicaPod>>,
    unnumbered: Vec<(Unnumbered, ReplicaPod)>,
    /// Requests of the pods of a replica that does not exist yet.
    templates: BTreeMap<ReplicaKey, Vec<Arc<Needs>>>,
    unnumbered_templates: Vec<(Unnumbered, Arc<Needs>)>,
    /// Requests of the pods of any replica of a claimed workload: it may be scaled to as many as its group wants.
    of_any: BTreeMap<Unnumbered, Vec<Arc<Needs>>>,
    /// Templates of the roles of groups, where no workload has one.
    own_templates: BTreeMap<ReplicaKey, Vec<Arc<Needs>>>,
    /// Number of pods that may still be expanded from templates.
    left: u64,
    /// Objects of devices that are not read yet.
    devices: Vec<DeviceObject>,
}

/// An existing pod of a replica.
#[derive(Clone, Debug)]
enum ReplicaPod {
    /// The uid of the pod in the room, and its node; empty for an unknown node.
    Bound(Arc<str>, Arc<str>),
    /// Requests and claims of a pod without a node.
    Unbound(Arc<Needs>, Box<[Arc<str>]>),
}

/// Batches whose pods are all bound.
#[derive(Debug, Default)]
pub struct Bound {
    pub count: u32,
    /// Number of batches by domain.
    pub domains: BTreeMap<String, u32>,
}

/// Reason for which the fit is unknown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoAnswer {
    /// No object has the role's pods.
    #[error("nothing says what the pods of role {0:?} ask for: neither pods nor a workload of it are known")]
    NoPods(String),
    /// The layer is unknown.
    #[error("layer {1:?} of ClusterTopology {0:?} is not there")]
    NoLayer(String, String),
}

impl Cluster {
    /// Returns an empty cluster, in which templates expand to at most `most_pods` pods.
    pub fn new(most_pods: u64) -> Self {
        Self { left: most_pods, ..Self::default() }
    }

    /// Returns the cluster as watches know it: its room, and the pods of one group.
    pub fn seen(capacity: &Capacity, group: &GroupKey, pods: &GroupPods, most_pods: u64) -> Self {
        let mut cluster = Self { room: capacity.room().clone(), ..Self::new(most_pods) };
        for pod in pods.iter() {
            // A pod that is bound to no node is placed anew.
            if !pod.scheduled && capacity.is_sent(&pod.pod.uid) {
                cluster.room.remove_pod(&pod.pod.uid);
            }
            let Some(role) = pod.identity.role.clone() else { continue };
            let uid = &pod.pod.uid;
            let node = cluster.room.node_of(uid).cloned().or_else(|| pod.scheduled.then(|| Arc::from("")));
            let needs = || capacity.asked(uid).or_else(|| capacity.needs(uid).cloned());
            let asks = || needs().map(|needs| ReplicaPod::Unbound(needs, Box::default()));
            let bound = |node| ReplicaPod::Bound(uid.clone(), node);
            let Some(one) = node.map(bound).or_else(asks) else { continue };
            match pod.identity.ordinal {
                Some(ordinal) => cluster.pods.entry((group.clone(), role, ordinal)).or_default().push(one),
                None => cluster.unnumbered.push(((group.clone(), role), one)),
            }
        }
        cluster
    }

    /// Adds a node, a pod, a workload or a group; ignores other kinds. RuntimeClasses come before the templates that name them.
    ///
    /// # Errors
    ///
    /// When the object has an invalid shape or quantity, or expands to too many pods; the text tells which.
    pub fn add(
        &mut self,
        api_version: &str,
        kind: &str,
        object: &Value,
        starts: &impl OrdinalStarts,
    ) -> Result<(), String> {
        let is = |known: ObjectKind| kind == known.kind && api_version == known.api_version();
        if is(NODE) {
            self.add_node(object)
        } else if is(POD) {
            self.add_pod(object, starts)
        } else if VOLUME_KINDS.into_iter().any(is) {
            self.add_volume(kind, object).map_err(|error| error.to_string())
        } else if is(RUNTIME_CLASS) {
            let class: RuntimeClass = decode_value(object).map_err(|error| error.to_string())?;
            self.room.runtime_classes_mut().apply(&class);
            Ok(())
        } else if let Some(read) = device_object(api_version, kind) {
            self.devices.push(read(object).map_err(|error| error.to_string())?);
            Ok(())
        } else if kind == ROLE_BASED_GROUP.kind && CARRIERS.iter().any(|carrier| is(*carrier)) {
            self.add_group(object)
        } else {
            self.add_workload(api_version, kind, object, starts)
        }
    }

    fn add_node(&mut self, object: &Value) -> Result<(), String> {
        let node: Node = decode_value(object).map_err(|error| error.to_string())?;
        self.room.apply_node(&node).map(|_| ()).map_err(|error| error.to_string())
    }

    fn add_volume(&mut self, kind: &str, object: &Value) -> Result<(), DecodeError> {
        self.volumes.sight = VolumeSight::Known;
        if kind == PERSISTENT_VOLUME_CLAIM.kind {
            self.volumes.apply_claim(&decode_value(object)?);
        } else if kind == PERSISTENT_VOLUME.kind {
            self.volumes.apply_volume(&decode_value(object)?);
        } else if kind == STORAGE_CLASS.kind {
            self.volumes.apply_class(&decode_value(object)?);
        } else if kind == CSI_DRIVER.kind {
            self.volumes.apply_driver(&decode_value(object)?);
        } else {
            self.volumes.apply_space(&decode_value(object)?);
        }
        Ok(())
    }

    fn add_pod(&mut self, object: &Value, starts: &impl OrdinalStarts) -> Result<(), String> {
        let (replica, pod) = read_pod(object, starts)?;
        if pod.has_ended() || pod.metadata.is_deleting() && pod.node().is_none() {
            return Ok(());
        }
        let needs = Arc::new(Needs::of(&pod).map_err(|error| error.to_string())?);
        let name: Arc<str> = format!("{}/{}", pod.metadata.namespace(), pod.metadata.display_name()).into();
        let pod_of = if let Some(node) = pod.node() {
            self.room.apply_pod(&name, node, needs.load.clone(), &needs.peer);
            ReplicaPod::Bound(name, node.into())
        } else if let Some(node) = pod.nominated_node() {
            self.room.nominate(&name, node, needs.load.clone(), &needs.peer);
            ReplicaPod::Bound(name, node.into())
        } else {
            ReplicaPod::Unbound(needs, claims_of(&pod))
        };
        match replica.filter(|_| !pod.metadata.is_deleting()) {
            Some((group, role, Some(ordinal))) => self.pods.entry((group, role, ordinal)).or_default().push(pod_of),
            Some((group, role, None)) => self.unnumbered.push(((group, role), pod_of)),
            None => {}
        }
        Ok(())
    }

    fn add_workload(
        &mut self,
        api_version: &str,
        kind: &str,
        object: &Value,
        starts: &impl OrdinalStarts,
    ) -> Result<(), String> {
        if object.pointer("/metadata/labels").is_some_and(|labels| labels.get(names::GROUP).is_some()) {
            self.add_pattern(api_version, kind, object, starts)?;
        }
        let pods = expanded(api_version, kind, object, (self.left, self.room.runtime_classes()), starts)?;
        for pod in pods {
            self.left = self.left.saturating_sub(1);
            let Some((replica, needs)) = pod else { continue };
            match replica {
                (group, role, Some(ordinal)) => {
                    self.templates.entry((group, role, ordinal)).or_default().push(needs);
                }
                (group, role, None) => self.unnumbered_templates.push(((group, role), needs)),
            }
        }
        Ok(())
    }

    /// Records the requests of the first replica of a workload, even if it wants none.
    fn add_pattern(
        &mut self,
        api_version: &str,
        kind: &str,
        object: &Value,
        starts: &impl OrdinalStarts,
    ) -> Result<(), String> {
        let mut one = object.clone();
        let Some(spec) = one.get_mut("spec").and_then(Value::as_object_mut) else { return Ok(()) };
        spec.insert("replicas".to_owned(), Value::from(1));
        let pods = expanded(api_version, kind, &one, (self.left, self.room.runtime_classes()), starts)?;
        let mut of_any: BTreeMap<Unnumbered, Vec<Arc<Needs>>> = BTreeMap::new();
        for ((group, role, _), needs) in pods.into_iter().flatten() {
            of_any.entry((group, role)).or_default().push(needs);
        }
        self.of_any.extend(of_any);
        Ok(())
    }

    /// Expands the templates of the roles of a RoleBasedGroup. Roles whose templates stand elsewhere are left to the workloads
    /// that their operator makes.
    fn add_group(&mut self, object: &Value) -> Result<(), String> {
        let group: RoleBasedGroup = decode_value(object).map_err(|error| error.to_string())?;
        let key = GroupKey::new(group.metadata.namespace(), group.metadata.display_name());
        for role in &group.spec.roles {
            let mut of_replica = Vec::new();
            for (template, pods) in role_templates(role) {
                let mut pod: SchedulingPod = decode_value(&template).map_err(|error| error.to_string())?;
                pod.metadata.namespace = Some(key.namespace.to_string());
                let needs = self.room.runtime_classes().needs(&pod).map_err(|error| error.to_string())?;
                of_replica.push((Arc::new(needs), pods));
            }
            if of_replica.is_empty() {
                continue;
            }
            let replicas = u32::try_from(role.replicas.unwrap_or(1)).unwrap_or(0);
            let size = of_replica.iter().map(|(_, pods)| *pods).fold(0, u64::saturating_add);
            let pods = u64::from(replicas).saturating_mul(size);
            let left = self.left.checked_sub(pods);
            self.left = left.ok_or_else(|| format!("role {:?} makes {pods} pods: too many", role.name))?;
            for ordinal in 0..replicas {
                let replica = (key.clone(), Arc::from(role.name.as_str()), ordinal);
                let asked = self.own_templates.entry(replica).or_default();
                asked.extend(of_replica.iter().flat_map(|(needs, pods)| (0..*pods).map(|_| needs.clone())));
            }
        }
        Ok(())
    }

    /// Completes the cluster after all objects are added: reads devices by the attributes that their selectors name, and gives
    /// each unnumbered replica the lowest free number.
    pub fn complete(&mut self) {
        let objects = std::mem::take(&mut self.devices);
        if !objects.is_empty() {
            self.room.devices_mut().apply_all(&objects);
        }
        number(&mut self.pods, std::mem::take(&mut self.unnumbered));
        number(&mut self.templates, std::mem::take(&mut self.unnumbered_templates));
    }

    /// Returns the batches of a coordination with unbound pods, at most `most`, and the bound batches.
    pub(super) fn batches(
        &self,
        group: &Group,
        batching: &Batching,
        key: Option<&str>,
        most: usize,
    ) -> Result<(Vec<BatchPods>, Bound), NoAnswer> {
        let desired = |role: &str| group.role(role).map(|role| role.desired);
        let (mut batches, mut bound) = (Vec::new(), Bound::default());
        for index in 0..batching.total(desired) {
            if batches.len() >= most {
                break;
            }
            let (mut pods, mut nodes) = (Vec::new(), Vec::<Arc<str>>::new());
            for role in &group.roles {
                for ordinal in batching.ordinals(&role.name, index, role.desired) {
                    let replica = (group.key.clone(), Arc::from(role.name.as_str()), ordinal);
                    for pod in self.replica(&replica, group.scaled().is_some())? {
                        match pod {
                            SitePod::Bound { node, .. } => nodes.push(node),
                            SitePod::Asks(needs) => pods.push(needs),
                        }
                    }
                }
            }
            let domain = nodes.iter().find_map(|node| self.domain(node, key?));
            if pods.is_empty() {
                bound.count += 1;
                domain.into_iter().for_each(|domain| *bound.domains.entry(domain).or_default() += 1);
            } else {
                batches.push(BatchPods { index, pods, domain });
            }
        }
        Ok((batches, bound))
    }

    /// Returns the pods of a replica: the existing ones, and those that its template adds. `is_scaled`: the workload may have
    /// fewer replicas than its group wants, for now.
    fn replica(&self, replica: &ReplicaKey, is_scaled: bool) -> Result<Vec<SitePod>, NoAnswer> {
        let there = self.pods.get(replica).map(Vec::as_slice).unwrap_or_default();
        let (group, role, _) = replica;
        let of_any = || self.of_any.get(&(group.clone(), role.clone())).filter(|_| is_scaled);
        let template = self.templates.get(replica).or_else(|| self.own_templates.get(replica)).or_else(of_any);
        let template = template.map(Vec::as_slice).unwrap_or_default();
        if there.is_empty() && template.is_empty() {
            return Err(NoAnswer::NoPods(replica.1.to_string()));
        }
        let pod = |pod: &ReplicaPod| match pod {
            ReplicaPod::Bound(uid, node) => Some(SitePod::Bound { uid: uid.clone(), node: node.clone() }),
            ReplicaPod::Unbound(needs, claims) => {
                let asked = self.volumes.asked(needs, claims);
                asked.and_then(|needs| self.room.reached(needs)).map(SitePod::Asks)
            }
        };
        let missing = template.iter().skip(there.len()).cloned().map(SitePod::Asks);
        Ok(there.iter().filter_map(pod).chain(missing).collect())
    }

    /// Returns the nodes and the pods of a group for a simulation.
    pub fn site(&self, group: &Group, layers: DomainKeys) -> Site {
        let pods = group.roles.iter().flat_map(|role| self.site_of(group, role));
        Site { room: self.room.clone(), layers, pods: pods.collect() }
    }

    /// Returns the pods of the replicas of a role, as far as they are known.
    fn site_of(&self, group: &Group, role: &Role) -> Vec<((String, u32), Vec<SitePod>)> {
        let most = u32::try_from(counts::MOST_PODS).unwrap_or(u32::MAX);
        let is_scaled = group.scaled().is_some();
        let of_replica = |ordinal| {
            let replica = (group.key.clone(), Arc::from(role.name.as_str()), ordinal);
            Some(((role.name.clone(), ordinal), self.replica(&replica, is_scaled).ok()?))
        };
        (0..role.desired.min(most)).filter_map(of_replica).collect()
    }

    /// Returns the pods of any replica of a role, by its template.
    pub(super) fn replica_of(&self, group: &Group, role: &str) -> Result<Vec<Arc<Needs>>, NoAnswer> {
        let key: Unnumbered = (group.key.clone(), Arc::from(role));
        let first = (key.0.clone(), key.1.clone(), 0);
        let template = self.of_any.get(&key).or_else(|| self.templates.get(&first));
        let template = template.or_else(|| self.own_templates.get(&first)).cloned();
        let unbound = || {
            let asks = |pod| match pod {
                SitePod::Asks(needs) => Some(needs),
                SitePod::Bound { .. } => None,
            };
            self.replica(&first, false).ok()?.into_iter().map(asks).collect::<Option<Vec<_>>>()
        };
        template.or_else(unbound).ok_or_else(|| NoAnswer::NoPods(role.to_owned()))
    }

    /// Returns the room for the batches of a group: the pods of its roles in no batch take theirs first.
    pub(super) fn room_for(&self, group: &Group) -> Cow<'_, Room> {
        let has_free = group.roles.iter().any(|role| group.batch_size(&role.name).is_none());
        if has_free { Cow::Owned(self.room_without(group, iter::empty())) } else { Cow::Borrowed(&self.room) }
    }

    /// Returns the room without the pods of some roles of a group, and with those of its roles in no batch, as far as they fit.
    pub(super) fn room_without<'a>(&self, group: &Group, roles: impl Iterator<Item = &'a String>) -> Room {
        let mut room = self.room.clone();
        let roles: BTreeSet<_> = roles.collect();
        for ((of, role, _), pods) in &self.pods {
            if *of != group.key || !roles.iter().any(|own| ***own == **role) {
                continue;
            }
            for pod in pods {
                if let ReplicaPod::Bound(uid, _) = pod {
                    room.remove_pod(uid);
                }
            }
        }
        let free = group.roles.iter().filter(|role| !roles.contains(&role.name));
        for role in free.filter(|role| group.batch_size(&role.name).is_none()) {
            let site = self.site_of(group, role);
            let asks = site.into_iter().flat_map(|(_, pods)| pods).filter_map(|pod| match pod {
                SitePod::Asks(needs) => Some(needs),
                SitePod::Bound { .. } => None,
            });
            let pods: Vec<_> = asks.collect();
            let none = BTreeMap::new();
            let question = Question::new(&pods, None, &none);
            let placed: Vec<_> = match place(&room, &question) {
                Fit::Fits(placement) => placement.nodes.into_iter().enumerate().collect(),
                Fit::Not(no_fit) => place_some(&room, &question, &no_fit),
            };
            for (at, node) in placed {
                if let Some(needs) = pods.get(at) {
                    // The pods of batches are numbered with `/`.
                    room.apply_pod(&format!("{}:{at}", role.name), &node, needs.load.clone(), &needs.peer);
                }
            }
        }
        room
    }

    fn domain(&self, node: &str, key: &str) -> Option<String> {
        self.room.facts(node)?.label(key).map(str::to_owned)
    }
}

/// Group, role, and the ordinal where the maker assigns one.
type OfReplica = (GroupKey, Arc<str>, Option<u32>);

fn number<T>(numbered: &mut BTreeMap<ReplicaKey, Vec<T>>, unnumbered: Vec<(Unnumbered, T)>) {
    let mut next: BTreeMap<Unnumbered, u32> = BTreeMap::new();
    for ((group, role), one) in unnumbered {
        let next = next.entry((group.clone(), role.clone())).or_default();
        while numbered.contains_key(&(group.clone(), role.clone(), *next)) {
            *next += 1;
        }
        numbered.insert((group, role, *next), vec![one]);
    }
}

/// A replica, and the requests of one of its pods.
type Asking = (OfReplica, Arc<Needs>);

/// Returns the pods of a workload: for pods of groups the replica and the requests, which most pods share.
fn expanded(
    api_version: &str,
    kind: &str,
    object: &Value,
    (most, classes): (u64, &RuntimeClasses),
    starts: &impl OrdinalStarts,
) -> Result<Vec<Option<Asking>>, String> {
    let pods = expand(api_version, kind, object, most).map_err(|error| error.to_string())?;
    let mut last: Option<Arc<Needs>> = None;
    let needs = |pod| {
        let (Some(replica), pod) = read_pod(&pod, starts)? else { return Ok(None) };
        let needs = classes.needs(&pod).map_err(|error| error.to_string())?;
        let needs = last.take().filter(|last| **last == needs).unwrap_or_else(|| Arc::new(needs));
        last = Some(needs.clone());
        Ok(Some((replica, needs)))
    };
    pods.into_iter().flatten().map(needs).collect()
}

/// Reads a pod, and the replica that it belongs to.
type ReadDevice = fn(&Value) -> Result<DeviceObject, DecodeError>;

/// Returns the function that reads objects of a kind of DRA, in any version.
fn device_object(api_version: &str, kind: &str) -> Option<ReadDevice> {
    let table: [(ObjectKind, ReadDevice); 5] = [
        (DEVICE_CLASS, |object| decode_value(object).map(DeviceObject::Class)),
        (RESOURCE_CLAIM_TEMPLATE, |object| decode_value(object).map(DeviceObject::Template)),
        (RESOURCE_CLAIM, |object| decode_value(object).map(DeviceObject::Claim)),
        (DEVICE_TAINT_RULE, |object| decode_value(object).map(DeviceObject::TaintRule)),
        (RESOURCE_SLICE, |object| decode_value(object).map(DeviceObject::Slice)),
    ];
    let group = api_version.split_once('/').map(|(group, _)| group);
    table.into_iter().find(|(known, _)| known.kind == kind && Some(known.group) == group).map(|(_, read)| read)
}

fn read_pod(object: &Value, starts: &impl OrdinalStarts) -> Result<(Option<OfReplica>, SchedulingPod), String> {
    let scheduling: SchedulingPod = decode_value(object).map_err(|error| error.to_string())?;
    let pod: Pod = decode_value(object).map_err(|error| error.to_string())?;
    let identity = identify(&pod, pod.metadata.namespace(), starts);
    let replica = identity.and_then(|identity| Some((identity.group, identity.role?, identity.ordinal)));
    Ok((replica, scheduling))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::api::workload::STATEFUL_SET;

    #[test]
    fn templates_stand_for_no_more_pods_than_they_may() {
        let group = |replicas: u32| {
            let role = json!({ "name": "a", "replicas": replicas, "template": { "spec": { "containers": [] } } });
            json!({ "metadata": { "name": "g", "namespace": "ns" }, "spec": { "roles": [role] } })
        };
        let set = |replicas: u32| {
            let labels = json!({ "rolegate.dev/group": "g", "rolegate.dev/role": "b" });
            let template = json!({ "metadata": { "labels": labels }, "spec": { "containers": [] } });
            json!({ "metadata": { "name": "b", "namespace": "ns" }, "spec": { "replicas": replicas, "template": template } })
        };
        let add = |cluster: &mut Cluster, kind: ObjectKind, object: Value| {
            cluster.add(&kind.api_version(), kind.kind, &object, &()).is_ok()
        };
        let mut cluster = Cluster::new(5);
        assert!(add(&mut cluster, ROLE_BASED_GROUP, group(3)));
        assert!(!add(&mut cluster, STATEFUL_SET, set(3)));
        assert!(add(&mut cluster, STATEFUL_SET, set(2)));
        assert!(!add(&mut cluster, ROLE_BASED_GROUP, group(1)));
    }
}
