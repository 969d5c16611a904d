//! Pods that KAI PodGroups place, and the topologies of their levels.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use super::store::{Store, Stored, is_older};
use super::{Change, Index, SourceId, version};
use crate::api::Pod;
use crate::api::pod::POD;
use crate::api::pod_group::{POD_GROUP, Topology};
use crate::model::topology::DEFAULT_CLUSTER_TOPOLOGY;
use crate::model::{Dialect, GangTree, GroupKey, names, placed_by};
use crate::plan::PodRef;
use crate::plan::gangs::{Level, Shape, TreePod, TreeSnapshot};

/// Pods by uid, with their versions, and those of each PodGroup.
#[derive(Debug, Default)]
pub(super) struct TreePods(pub(super) Store<Arc<str>, (TreePod, Option<u64>)>);

/// Node labels of the levels of a KAI Topology, by each name of a level.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KaiLevels(BTreeMap<String, String>);

impl KaiLevels {
    pub fn of(topology: &Topology) -> Self {
        let levels = topology.spec.levels.iter();
        let names =
            levels.flat_map(|level| level.alias.iter().chain([&level.node_label]).map(move |name| (name, level)));
        Self(names.map(|(name, level)| (name.clone(), level.node_label.clone())).collect())
    }
}

impl TreePods {
    /// Stores a pod; returns its PodGroup when the pod was news.
    pub(super) fn apply(&mut self, source: SourceId, pod: &Pod) -> Option<GroupKey> {
        let meta = &pod.metadata;
        let uid: Arc<str> = meta.uid.as_deref()?.into();
        let Some(name) = placed_by(meta).filter(|_| !pod.is_gone()) else { return self.remove(&uid) };
        let key = GroupKey::new(meta.namespace(), name);
        let version = version(meta.resource_version.as_deref());
        let known = self.0.get(&uid).filter(|known| known.group.as_ref() == Some(&key)).map(|known| &known.object);
        if known.is_some_and(|(_, known)| is_older(version, *known)) {
            return None;
        }
        let facts = TreePod {
            pod: PodRef { name: meta.display_name().into(), uid: uid.clone() },
            leaf: meta.label(names::KAI_SUBGROUP).filter(|leaf| !leaf.is_empty()).map(str::to_owned),
            held: pod.has_gate(names::GATE),
            scheduled: pod.has_node(),
        };
        let changed = known.is_none_or(|(known, _)| *known != facts);
        self.0.insert(uid, Stored { object: (facts, version), source: Some(source), group: Some(key.clone()) });
        changed.then_some(key)
    }

    /// Applies a pod as a write returned it. An unknown pod is gone by now.
    pub(super) fn written(&mut self, pod: &Pod) -> Option<GroupKey> {
        let uid = pod.metadata.uid.as_deref()?;
        self.apply(self.0.get(&uid.into())?.source?, pod)
    }

    /// Removes a pod; returns its PodGroup.
    pub(super) fn remove(&mut self, uid: &str) -> Option<GroupKey> {
        self.0.remove(&uid.into())?.group
    }

    /// Removes the pods that a watch has not listed; returns their PodGroups.
    pub(super) fn keep_only(&mut self, source: SourceId, listed: &[Pod]) -> Vec<GroupKey> {
        let listed: HashSet<_> = listed.iter().filter_map(|pod| pod.metadata.uid.as_deref()).collect();
        let gone = self.0.keep_only(source, |uid| listed.contains(&**uid));
        gone.into_iter().filter_map(|(_, known)| known.group).collect()
    }
}

impl Index {
    /// Returns the PodGroups that have pods.
    pub fn tree_keys(&self) -> HashSet<GroupKey> {
        self.tree_pods.0.groups().map(GroupKey::of_pod_group).collect()
    }

    /// Returns the planning input for every PodGroup with pods, by namespace and name, or only for those with this name.
    pub fn tree_snapshots(&self, name: Option<&str>) -> Vec<TreeSnapshot> {
        let mut keys: Vec<_> = self.tree_pods.0.groups().collect();
        keys.retain(|key| name.is_none_or(|name| *key.name == *name));
        keys.sort();
        keys.into_iter().map(|key| self.tree_snapshot(key)).collect()
    }

    /// Sets the meaning of the counts of all PodGroups, which overrides their definition.
    pub fn choose_dialect(&mut self, dialect: Option<Dialect>) {
        self.dialect = dialect;
    }

    /// Returns the planning input for a PodGroup.
    pub fn tree_snapshot(&self, key: &GroupKey) -> TreeSnapshot {
        let tree = self.looked_up(key).map(|tree: Arc<GangTree>| {
            let dialect = self.dialect.or(self.definitions.dialect).or(tree.dialect);
            let mut tree = Arc::unwrap_or_clone(tree);
            tree.dialect = dialect;
            Arc::new(tree)
        });
        let levels = tree.as_deref().and_then(Shape::of).into_iter().flat_map(|shape| shape.shares);
        TreeSnapshot {
            pods: self.tree_pods.0.of(key).map(|(pod, _)| pod.clone()).collect(),
            keys: levels.filter_map(|share| Some((share.level.clone(), self.key_of(&share.level)?))).collect(),
            stance: self.stance(&key.namespace).unwrap_or_default(),
            rests: self.rests_in(&key.namespace),
            served: self.is_served(POD_GROUP) == Some(true),
            key: key.clone(),
            tree,
        }
    }

    /// Returns the node label of a level: of a layer of the named ClusterTopology, of a level of the KAI Topology with that
    /// name, or, where no topology is named, the level name itself.
    fn key_of(&self, level: &Level) -> Option<String> {
        let name = level.topology.as_deref().unwrap_or(DEFAULT_CLUSTER_TOPOLOGY);
        let layer = || self.layer_key(name, &level.name);
        let of_kai = || self.kai_topologies.get("", name).and_then(|levels| levels.0.get(&level.name).cloned());
        let plain = || level.topology.is_none().then(|| level.name.clone());
        layer().or_else(of_kai).or_else(plain)
    }

    /// Applies an event of the watch of pods that PodGroups place.
    pub fn tree_pod_change(&mut self, source: SourceId, change: Change<Pod>) {
        self.heard(source, POD, &change);
        let mut trees = match &change {
            Change::Listed(pods) => self.tree_pods.keep_only(source, pods),
            Change::Deleted(pod) => {
                let uid = pod.metadata.uid.as_deref().unwrap_or_default();
                self.tree_pods.remove(uid).into_iter().collect()
            }
            Change::Applied(_) | Change::NotServed => Vec::new(),
        };
        trees.extend(change.into_there().iter().filter_map(|pod| self.tree_pods.apply(source, pod)));
        self.dirty.extend(trees.iter().map(GroupKey::of_pod_group));
    }

    /// Marks all PodGroups with pods as changed, or only this one.
    pub(super) fn touch_trees(&mut self, only: Option<&GroupKey>) {
        let is_meant = |key: &&GroupKey| only.is_none_or(|only| only == *key);
        let keys: Vec<_> = self.tree_pods.0.groups().filter(is_meant).map(GroupKey::of_pod_group).collect();
        self.dirty.extend(keys);
    }
}
