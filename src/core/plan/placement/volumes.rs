//! The nodes that reach the claims of pods, by volumes, classes and the room that CSI drivers tell: VolumeBinding of kube-scheduler.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use super::needs::{Needs, NotModelled};
use super::reach::Reach;
use crate::api::Meta;
use crate::api::scheduling::{NodeRequirement, NodeSelector, NodeSelectorTerm, SchedulingPod, Volume};
use crate::api::selector::LabelSelector;
use crate::api::volume::{CsiDriver, CsiStorageCapacity, PersistentVolume, PersistentVolumeClaim, StorageClass};
use crate::model::quantity::amount;

/// The binding mode of volumes that are created where the first pod with the claim goes.
const WAITS: &str = "WaitForFirstConsumer";
/// The provisioner of classes that create no volumes.
const NO_PROVISIONER: &str = "kubernetes.io/no-provisioner";

/// The target of a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Leads {
    Volume(Arc<str>),
    /// A class, and the size of the new volume.
    Class(Arc<str>, i64),
}

/// A class whose volumes are created where the first pod goes.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Class {
    provisioner: Arc<str>,
    /// Where its volumes can be created, if not everywhere.
    nodes: Option<Arc<NodeSelector>>,
}

/// The room for new volumes of a class on some nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Space {
    class: Arc<str>,
    /// The size of the largest volume.
    most: i64,
    nodes: LabelSelector,
}

/// The state of the watches of volumes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum VolumeSight {
    /// Volumes are not watched.
    #[default]
    Unseen,
    /// Volumes are watched once a pod has claims, and are not listed yet.
    Awaited,
    Known,
    /// Volumes may not be read, for this reason.
    Refused(Arc<str>),
}

/// The known claims, volumes and classes.
#[derive(Clone, Debug, Default)]
pub struct Volumes {
    pub sight: VolumeSight,
    /// Whether claims, volumes, classes, drivers and their room are listed, in this order.
    listed: [bool; 5],
    /// By `namespace/name`.
    claims: HashMap<Arc<str>, Leads>,
    /// Volumes that not every node reaches.
    reached: HashMap<Arc<str>, Arc<NodeSelector>>,
    classes: HashMap<Arc<str>, Class>,
    /// Drivers whose volumes are created only where there is room.
    drivers: HashSet<Arc<str>>,
    /// By `namespace/name`.
    space: HashMap<Arc<str>, Space>,
}

/// Returns the claims of a pod, each as `namespace/name`.
pub fn claims_of(pod: &SchedulingPod) -> Box<[Arc<str>]> {
    let (namespace, name) = (pod.metadata.namespace(), pod.metadata.display_name());
    let of_volume = |volume: &Volume| {
        let claimed = volume.persistent_volume_claim.as_ref().map(|claim| claim.claim_name.clone());
        claimed.or_else(|| volume.ephemeral.as_ref().map(|_| format!("{name}-{}", volume.name)))
    };
    let claims = pod.spec.volumes.iter().filter_map(of_volume);
    claims.map(|claim| Arc::from(format!("{namespace}/{claim}"))).collect()
}

impl Volumes {
    /// Returns the number of entries of each map.
    pub fn sizes(&self) -> [(&'static str, usize); 5] {
        [
            ("claims", self.claims.len()),
            ("volumes", self.reached.len()),
            ("storage_classes", self.classes.len()),
            ("csi_drivers", self.drivers.len()),
            ("csi_storage_capacities", self.space.len()),
        ]
    }

    /// Adds or updates a claim; returns whether its target has changed.
    pub fn apply_claim(&mut self, claim: &PersistentVolumeClaim) -> bool {
        let (key, spec) = (key_of(&claim.metadata), &claim.spec);
        let leads = match (spec.volume_name.as_str(), spec.storage_class_name.as_str()) {
            ("", "") => None,
            ("", class) => {
                let size = spec.resources.requests.get("storage").and_then(|size| amount(&size.0, 1).ok());
                Some(Leads::Class(class.into(), size.unwrap_or_default()))
            }
            (volume, _) => Some(Leads::Volume(volume.into())),
        };
        replace(&mut self.claims, key, leads)
    }

    /// Adds or updates a volume; returns whether its nodes have changed.
    pub fn apply_volume(&mut self, volume: &PersistentVolume) -> bool {
        let nodes = volume.spec.node_affinity.required.clone().map(Arc::new);
        replace(&mut self.reached, volume.metadata.display_name().into(), nodes)
    }

    /// Adds or updates a class; returns whether its nodes have changed.
    pub fn apply_class(&mut self, class: &StorageClass) -> bool {
        let terms = class.allowed_topologies.iter().map(|term| NodeSelectorTerm {
            match_expressions: term
                .match_label_expressions
                .iter()
                .map(|label| required(&label.key, "In", label.values.clone()))
                .collect(),
            ..NodeSelectorTerm::default()
        });
        let terms: Vec<_> = terms.collect();
        let nodes = (!terms.is_empty()).then(|| Arc::new(NodeSelector { node_selector_terms: terms }));
        let is_made_there = class.volume_binding_mode == WAITS && class.provisioner != NO_PROVISIONER;
        let class_of = is_made_there.then(|| Class { provisioner: class.provisioner.as_str().into(), nodes });
        replace(&mut self.classes, class.metadata.display_name().into(), class_of)
    }

    /// Adds or updates a driver; returns whether it has changed that its volumes need room.
    pub fn apply_driver(&mut self, driver: &CsiDriver) -> bool {
        let name = driver.metadata.display_name();
        if driver.spec.storage_capacity { self.drivers.insert(name.into()) } else { self.drivers.remove(name) }
    }

    /// Adds or updates the room of a driver; returns whether it has changed.
    pub fn apply_space(&mut self, space: &CsiStorageCapacity) -> bool {
        let most = space.maximum_volume_size.as_ref().or(space.capacity.as_ref());
        let most = most.and_then(|most| amount(&most.0, 1).ok());
        let of = most.zip(space.node_topology.clone());
        let of = of.map(|(most, nodes)| Space { class: space.storage_class_name.as_str().into(), most, nodes });
        replace(&mut self.space, key_of(&space.metadata), of)
    }

    /// Notes that all objects of a kind are listed: 0 for claims, 1 for volumes, 2 for classes, 3 for drivers, 4 for their room.
    pub fn are_listed(&mut self, sort: usize) {
        self.listed.get_mut(sort).into_iter().for_each(|listed| *listed = true);
        if self.listed == [true; 5] {
            self.sight = VolumeSight::Known;
        }
    }

    pub fn remove_claim(&mut self, claim: &PersistentVolumeClaim) -> bool {
        self.claims.remove(&*key_of(&claim.metadata)).is_some()
    }

    pub fn remove_volume(&mut self, name: &str) -> bool {
        self.reached.remove(name).is_some()
    }

    pub fn remove_class(&mut self, name: &str) -> bool {
        self.classes.remove(name).is_some()
    }

    pub fn remove_driver(&mut self, name: &str) -> bool {
        self.drivers.remove(name)
    }

    pub fn remove_space(&mut self, space: &CsiStorageCapacity) -> bool {
        self.space.remove(&*key_of(&space.metadata)).is_some()
    }

    /// Removes all claims but these.
    pub fn keep_claims(&mut self, claims: &[PersistentVolumeClaim]) {
        let keys: HashSet<_> = claims.iter().map(|claim| key_of(&claim.metadata)).collect();
        self.claims.retain(|claim, _| keys.contains(claim));
    }

    /// Removes all drivers but these.
    pub fn keep_drivers(&mut self, drivers: &[CsiDriver]) {
        let names: HashSet<_> = drivers.iter().map(|driver| driver.metadata.display_name()).collect();
        self.drivers.retain(|driver| names.contains(&**driver));
    }

    /// Removes all room of drivers but this.
    pub fn keep_space(&mut self, space: &[CsiStorageCapacity]) {
        let keys: HashSet<_> = space.iter().map(|space| key_of(&space.metadata)).collect();
        self.space.retain(|space, _| keys.contains(space));
    }

    /// Removes all volumes but these.
    pub fn keep_volumes(&mut self, volumes: &[PersistentVolume]) {
        let names: HashSet<_> = volumes.iter().map(|volume| volume.metadata.display_name()).collect();
        self.reached.retain(|volume, _| names.contains(&**volume));
    }

    /// Removes all classes but these.
    pub fn keep_classes(&mut self, classes: &[StorageClass]) {
        let names: HashSet<_> = classes.iter().map(|class| class.metadata.display_name()).collect();
        self.classes.retain(|class, _| names.contains(&**class));
    }

    /// Returns the needs of a pod including the reach of its claims; `None` while that is not known.
    pub fn asked(&self, needs: &Arc<Needs>, claims: &[Arc<str>]) -> Option<Arc<Needs>> {
        match self.sight {
            _ if claims.is_empty() => Some(needs.clone()),
            VolumeSight::Awaited => None,
            VolumeSight::Unseen | VolumeSight::Refused(_) => Some(needs.clone()),
            VolumeSight::Known => {
                let mut asked = Needs { reach: self.reach(claims).collect(), ..(**needs).clone() };
                for what in asked.not_modelled.iter_mut().filter(|what| **what == NotModelled::Volumes) {
                    *what = NotModelled::VolumeLimits;
                }
                Some(Arc::new(asked))
            }
        }
    }

    /// Returns the nodes that reach these claims, without claims that every node reaches.
    fn reach<'a>(&'a self, claims: &'a [Arc<str>]) -> impl Iterator<Item = Reach> + 'a {
        claims.iter().flat_map(|claim| {
            let nodes = match self.claims.get(claim) {
                Some(Leads::Volume(volume)) => [self.reached.get(volume).cloned(), None],
                Some(Leads::Class(class, size)) => {
                    let of_class = self.classes.get(class);
                    [
                        of_class.and_then(|class| class.nodes.clone()),
                        of_class.and_then(|of| self.room_for(class, of, *size)),
                    ]
                }
                None => [None, None],
            };
            nodes.into_iter().flatten().map(|nodes| Reach { claim: claim.clone(), nodes })
        })
    }

    /// Returns the nodes with room for a new volume of a class, if its driver tells what room there is.
    fn room_for(&self, name: &str, class: &Class, size: i64) -> Option<Arc<NodeSelector>> {
        self.drivers.get(&class.provisioner)?;
        let enough = self.space.values().filter(|space| *space.class == *name && space.most >= size);
        let (mut by_label, mut terms) = (BTreeMap::<_, BTreeSet<_>>::new(), Vec::new());
        for nodes in enough.map(|space| &space.nodes) {
            match nodes.match_labels.first_key_value() {
                // An empty selector selects all nodes, and an empty term none.
                None if nodes.match_expressions.is_empty() => return None,
                // Mostly one object for each node.
                Some((key, value)) if nodes.match_labels.len() == 1 && nodes.match_expressions.is_empty() => {
                    by_label.entry(key).or_default().insert(value.clone());
                }
                _ => terms.push(term_of(nodes)),
            }
        }
        // One order, whatever the order of the objects.
        terms.sort_by_cached_key(|term| format!("{term:?}"));
        terms.extend(by_label.into_iter().map(|(key, values)| NodeSelectorTerm {
            match_expressions: vec![required(key, "In", values.into_iter().collect())],
            ..NodeSelectorTerm::default()
        }));
        Some(Arc::new(NodeSelector { node_selector_terms: terms }))
    }
}

/// Returns the term that selects the nodes of a selector of labels.
fn term_of(labels: &LabelSelector) -> NodeSelectorTerm {
    let equal = labels.match_labels.iter().map(|(key, value)| required(key, "In", vec![value.clone()]));
    let others = labels.match_expressions.iter().map(|one| required(&one.key, &one.operator, one.values.clone()));
    NodeSelectorTerm { match_expressions: equal.chain(others).collect(), ..NodeSelectorTerm::default() }
}

fn required(key: &str, operator: &str, values: Vec<String>) -> NodeRequirement {
    NodeRequirement { key: key.to_owned(), operator: operator.to_owned(), values }
}

fn key_of(meta: &Meta) -> Arc<str> {
    format!("{}/{}", meta.namespace(), meta.display_name()).into()
}

/// Sets or removes a value; returns whether it has changed.
fn replace<T: PartialEq>(all: &mut HashMap<Arc<str>, T>, key: Arc<str>, value: Option<T>) -> bool {
    match value {
        Some(value) if all.get(&key) == Some(&value) => false,
        Some(value) => {
            all.insert(key, value);
            true
        }
        None => all.remove(&key).is_some(),
    }
}
