//! The nodes that reach the claims of pods, by volumes and classes: VolumeBinding of kube-scheduler.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::needs::{Needs, NotModelled};
use super::reach::Reach;
use crate::api::scheduling::{NodeRequirement, NodeSelector, NodeSelectorTerm, SchedulingPod, Volume};
use crate::api::volume::{PersistentVolume, PersistentVolumeClaim, StorageClass};

/// The binding mode of volumes that are created where the first pod with the claim goes.
const WAITS: &str = "WaitForFirstConsumer";
/// The provisioner of classes that create no volumes.
const NO_PROVISIONER: &str = "kubernetes.io/no-provisioner";

/// The target of a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Leads {
    Volume(Arc<str>),
    Class(Arc<str>),
}

/// The state of the watches of volumes, and of that of RuntimeClasses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum VolumeSight {
    /// They are not watched.
    #[default]
    Unseen,
    /// They are not listed yet. Volumes are watched once a pod has claims.
    Awaited,
    Known,
    /// They may not be read, for this reason.
    Refused(Arc<str>),
}

/// The known claims, volumes and classes.
#[derive(Clone, Debug, Default)]
pub struct Volumes {
    pub sight: VolumeSight,
    /// Whether claims, volumes and classes are listed, in this order.
    listed: [bool; 3],
    /// By `namespace/name`.
    claims: HashMap<Arc<str>, Leads>,
    /// Volumes that not every node reaches.
    reached: HashMap<Arc<str>, Arc<NodeSelector>>,
    /// Classes whose volumes cannot be created everywhere.
    classes: HashMap<Arc<str>, Arc<NodeSelector>>,
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
    pub fn sizes(&self) -> [(&'static str, usize); 3] {
        [("claims", self.claims.len()), ("volumes", self.reached.len()), ("storage_classes", self.classes.len())]
    }

    /// Adds or updates a claim; returns whether its target has changed.
    pub fn apply_claim(&mut self, claim: &PersistentVolumeClaim) -> bool {
        let (key, spec) = (key(claim), &claim.spec);
        let leads = match (spec.volume_name.as_str(), spec.storage_class_name.as_str()) {
            ("", "") => None,
            ("", class) => Some(Leads::Class(class.into())),
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
        let is_made_there = class.volume_binding_mode == WAITS && class.provisioner != NO_PROVISIONER;
        let terms = class.allowed_topologies.iter().map(|term| NodeSelectorTerm {
            match_expressions: term
                .match_label_expressions
                .iter()
                .map(|label| NodeRequirement {
                    key: label.key.clone(),
                    operator: "In".to_owned(),
                    values: label.values.clone(),
                })
                .collect(),
            ..NodeSelectorTerm::default()
        });
        let terms: Vec<_> = terms.filter(|_| is_made_there).collect();
        let nodes = (!terms.is_empty()).then(|| Arc::new(NodeSelector { node_selector_terms: terms }));
        replace(&mut self.classes, class.metadata.display_name().into(), nodes)
    }

    /// Notes that all objects of a kind are listed: 0 for claims, 1 for volumes, 2 for classes.
    pub fn are_listed(&mut self, sort: usize) {
        self.listed.get_mut(sort).into_iter().for_each(|listed| *listed = true);
        if self.listed == [true; 3] {
            self.sight = VolumeSight::Known;
        }
    }

    pub fn remove_claim(&mut self, claim: &PersistentVolumeClaim) -> bool {
        self.claims.remove(&*key(claim)).is_some()
    }

    pub fn remove_volume(&mut self, name: &str) -> bool {
        self.reached.remove(name).is_some()
    }

    pub fn remove_class(&mut self, name: &str) -> bool {
        self.classes.remove(name).is_some()
    }

    /// Removes all claims but these.
    pub fn keep_claims(&mut self, claims: &[PersistentVolumeClaim]) {
        let keys: HashSet<_> = claims.iter().map(key).collect();
        self.claims.retain(|claim, _| keys.contains(claim));
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
        claims.iter().filter_map(|claim| {
            let nodes = match self.claims.get(claim)? {
                Leads::Volume(volume) => self.reached.get(volume)?,
                Leads::Class(class) => self.classes.get(class)?,
            };
            Some(Reach { claim: claim.clone(), nodes: nodes.clone() })
        })
    }
}

fn key(claim: &PersistentVolumeClaim) -> Arc<str> {
    format!("{}/{}", claim.metadata.namespace(), claim.metadata.display_name()).into()
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
