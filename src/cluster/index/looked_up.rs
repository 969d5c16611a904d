//! Objects looked up by name beside groups, from watches or single reads; and what topologies say of the layers of a group.

use std::sync::Arc;

use super::carriers::Because;
use super::store::{Named, Report};
use super::trees::KaiLevels;
use super::{Index, Name, SourceId};
use crate::api::cluster_topology::CLUSTER_TOPOLOGIES;
use crate::api::grove::{POD_CLIQUE_SET, POD_GANG_SET};
use crate::api::pod_group::{POD_GROUP, TOPOLOGY, Topology};
use crate::api::{ClusterTopology, ObjectKind, PodCliqueSet, PodGroup};
use crate::cluster::index::{Change, Readable};
use crate::model::{CliqueSet, Dialect, GangTree, Group, GroupKey, Layers};

/// How an object of a kind is read.
type Reading<T> = fn(ObjectKind, &<T as LookedUp>::Object) -> T;

type Place<T> = (fn(&Index) -> &Named<T>, fn(&mut Index) -> &mut Named<T>);

/// The part of an object that counts once it is found by name.
pub trait LookedUp: Sized + 'static {
    /// The object of the API server.
    type Object: Readable;
    /// The kinds that have such objects; the first that has one counts.
    const KINDS: &'static [ObjectKind];
    /// The place in the index, to read and to write.
    const PLACE: Place<Self>;

    const OF: Reading<Self>;

    /// Marks as changed what depends on an object, or with `None` on any.
    fn touch(_: &mut Index, _: Option<&Name>) {}
}

impl LookedUp for Layers {
    type Object = ClusterTopology;
    const KINDS: &'static [ObjectKind] = CLUSTER_TOPOLOGIES;
    const PLACE: Place<Self> = (|index| &index.topologies, |index| &mut index.topologies);

    const OF: Reading<Self> = Self::parse;

    fn touch(index: &mut Index, name: Option<&Name>) {
        index.touch_trees(None);
        index.rebuild(index.carriers.referring_to(name.map(|(_, name)| &**name)), Because::Context);
    }
}

impl LookedUp for CliqueSet {
    type Object = PodCliqueSet;
    const KINDS: &'static [ObjectKind] = &[POD_CLIQUE_SET, POD_GANG_SET];
    const PLACE: Place<Self> = (|index| &index.clique_sets, |index| &mut index.clique_sets);

    const OF: Reading<Self> = Self::from_set;
}

impl LookedUp for GangTree {
    type Object = PodGroup;
    const KINDS: &'static [ObjectKind] = &[POD_GROUP];
    const PLACE: Place<Self> = (|index| &index.pod_groups, |index| &mut index.pod_groups);

    /// Reads the meaning of the counts where the fields of the object tell it.
    const OF: Reading<Self> = |_, group| Self::from_pod_group(group, Dialect::of_object(&group.spec));

    fn touch(index: &mut Index, name: Option<&Name>) {
        index.touch_trees(name.map(|(namespace, name)| GroupKey::new(namespace, name)).as_ref());
    }
}

impl LookedUp for KaiLevels {
    type Object = Topology;
    const KINDS: &'static [ObjectKind] = &[TOPOLOGY];
    const PLACE: Place<Self> = (|index| &index.kai_topologies, |index| &mut index.kai_topologies);

    const OF: Reading<Self> = |_, topology| Self::of(topology);

    fn touch(index: &mut Index, _: Option<&Name>) {
        index.touch_trees(None);
    }
}

impl Index {
    /// Returns an object by its name; the namespace is empty for cluster-scoped kinds.
    pub fn looked_up<T: LookedUp>(&self, key: &GroupKey) -> Option<Arc<T>> {
        T::PLACE.0(self).get(&key.namespace, &key.name)
    }

    /// Stores an object that was read outside a watch at this resource version.
    pub fn read_outside<T: LookedUp>(&mut self, kind: ObjectKind, name: Name, version: Option<u64>, object: T) {
        T::PLACE.1(self).read(rank::<T>(kind), name, version, object);
    }

    /// Applies an event of the watch of such a kind.
    pub fn looked_up_change<T: LookedUp>(&mut self, source: SourceId, kind: ObjectKind, change: Change<Report<T>>) {
        self.heard(source, kind, &change);
        let touched = match &change {
            Change::Applied((name, ..)) | Change::Deleted((name, ..)) => Some(name.clone()),
            Change::Listed(_) | Change::NotServed => None,
        };
        T::PLACE.1(self).take(rank::<T>(kind), source, change);
        T::touch(self, touched.as_ref());
    }

    /// Returns the indexes of coordinations whose layer is missing. None is missing before the ClusterTopologies are listed.
    pub(super) fn missing_layers(&self, group: &Group) -> impl Iterator<Item = usize> {
        let known = CLUSTER_TOPOLOGIES.iter().all(|kind| self.is_served(*kind).is_some());
        group.batched().filter(move |_| known).filter_map(|(coordination, batching)| {
            let (topology, layer) = batching.layer()?;
            self.layer_key(topology, layer).is_none().then_some(coordination.index)
        })
    }

    /// Returns the node label of the domains of each coordination whose batches are placed.
    pub(super) fn domain_keys(&self, group: &Group) -> impl Iterator<Item = (usize, String)> {
        group.batched().filter_map(|(coordination, batching)| {
            let key = batching.placed_in()?.key(|topology, layer| self.layer_key(topology, layer))?;
            Some((coordination.index, key))
        })
    }
}

/// Returns the position of a kind among those of its objects.
fn rank<T: LookedUp>(kind: ObjectKind) -> usize {
    T::KINDS.iter().position(|known| *known == kind).unwrap_or(T::KINDS.len())
}
