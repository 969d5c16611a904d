//! Which nodes the claims of pods can be reached from, as far as volumes and their classes say: kube-scheduler's VolumeBinding.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::needs::{Needs, NotModelled};
use super::reach::Reach;
use crate::api::scheduling::{NodeRequirement, NodeSelector, NodeSelectorTerm, SchedulingPod, Volume};
use crate::api::volume::{PersistentVolume, PersistentVolumeClaim, StorageClass};

/// A volume is made where the first pod with its claim goes.
const WAITS: &str = "WaitForFirstConsumer";
/// What makes no volumes: they are there, or are not.
const NO_PROVISIONER: &str = "kubernetes.io/no-provisioner";

/// Where a claim leads.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Leads {
    /// To a volume.
    Volume(Arc<str>),
    /// To a class.
    Class(Arc<str>),
}

/// Whether volumes are looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum VolumeSight {
    /// Nobody looks at them.
    #[default]
    Unseen,
    /// They are looked at once a pod has claims, and are not listed yet.
    Awaited,
    /// All of them are listed.
    Known,
    /// They may not be read, for this reason.
    Refused(Arc<str>),
}

/// What is known of claims, volumes and classes.
#[derive(Clone, Debug, Default)]
pub struct Volumes {
    /// Whether they are looked at.
    pub sight: VolumeSight,
    /// Claims, volumes and classes, whichever were listed.
    listed: [bool; 3],
    /// By namespace and name.
    claims: HashMap<Arc<str>, Leads>,
    /// Volumes that not every node reaches.
    reached: HashMap<Arc<str>, Arc<NodeSelector>>,
    /// Classes whose volumes cannot be made everywhere.
    classes: HashMap<Arc<str>, Arc<NodeSelector>>,
}

/// The claims of a pod, each as its namespace and name with a slash between.
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
    /// How many entries each map has.
    pub fn sizes(&self) -> [(&'static str, usize); 3] {
        [("claims", self.claims.len()), ("volumes", self.reached.len()), ("storage_classes", self.classes.len())]
    }

    /// Takes in a claim; true when it leads elsewhere than before.
    pub fn apply_claim(&mut self, claim: &PersistentVolumeClaim) -> bool {
        let (key, spec) = (key(claim), &claim.spec);
        let leads = match (spec.volume_name.as_str(), spec.storage_class_name.as_str()) {
            ("", "") => None,
            ("", class) => Some(Leads::Class(class.into())),
            (volume, _) => Some(Leads::Volume(volume.into())),
        };
        replace(&mut self.claims, key, leads)
    }

    /// Takes in a volume; true when other nodes reach it than before.
    pub fn apply_volume(&mut self, volume: &PersistentVolume) -> bool {
        let nodes = volume.spec.node_affinity.required.clone().map(Arc::new);
        replace(&mut self.reached, volume.metadata.display_name().into(), nodes)
    }

    /// Takes in a class; true when its volumes can be made elsewhere than before.
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

    /// Notes that all of a sort are listed, by its place among claims, volumes and classes.
    pub fn are_listed(&mut self, sort: usize) {
        self.listed.get_mut(sort).into_iter().for_each(|listed| *listed = true);
        if self.listed == [true; 3] {
            self.sight = VolumeSight::Known;
        }
    }

    /// Forgets a claim.
    pub fn remove_claim(&mut self, claim: &PersistentVolumeClaim) -> bool {
        self.claims.remove(&*key(claim)).is_some()
    }

    /// Forgets a volume.
    pub fn remove_volume(&mut self, name: &str) -> bool {
        self.reached.remove(name).is_some()
    }

    /// Forgets a class.
    pub fn remove_class(&mut self, name: &str) -> bool {
        self.classes.remove(name).is_some()
    }

    /// Forgets all claims but these.
    pub fn keep_claims(&mut self, claims: &[PersistentVolumeClaim]) {
        let keys: HashSet<_> = claims.iter().map(key).collect();
        self.claims.retain(|claim, _| keys.contains(claim));
    }

    /// Forgets all volumes but these.
    pub fn keep_volumes(&mut self, volumes: &[PersistentVolume]) {
        let names: HashSet<_> = volumes.iter().map(|volume| volume.metadata.display_name()).collect();
        self.reached.retain(|volume, _| names.contains(&**volume));
    }

    /// Forgets all classes but these.
    pub fn keep_classes(&mut self, classes: &[StorageClass]) {
        let names: HashSet<_> = classes.iter().map(|class| class.metadata.display_name()).collect();
        self.classes.retain(|class, _| names.contains(&**class));
    }

    /// What a pod with claims asks for; `None` while that is not known.
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

    /// The nodes that claims can be reached from, as far as they cannot be from every node.
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

/// Puts a value, or none; true when it is another than before.
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
