//! Objects that are looked up by name beside groups: from watches, or from single reads.

use super::carriers::Because;
use super::trees::KaiLevels;
use super::{Index, Name, SourceId};
use crate::api::ObjectKind;
use crate::cluster::index::Change;
use crate::model::{CliqueSet, GangTree, GroupKey, Layers};

/// An object that the webhook looks up by name.
#[derive(Debug)]
pub enum LookedUp {
    /// A ClusterTopology.
    Topology(Layers),
    /// A Grove set.
    CliqueSet(CliqueSet),
    /// A KAI PodGroup.
    PodGroup(Box<GangTree>),
    /// A Topology of KAI.
    KaiTopology(KaiLevels),
}

fn narrow<T>(change: Change<(Name, Option<LookedUp>)>, to: fn(LookedUp) -> Option<T>) -> Change<(Name, Option<T>)> {
    change.map(|(name, object)| (name, object.and_then(to)))
}

impl LookedUp {
    fn topology(self) -> Option<Layers> {
        if let Self::Topology(topology) = self { Some(topology) } else { None }
    }

    fn clique_set(self) -> Option<CliqueSet> {
        if let Self::CliqueSet(set) = self { Some(set) } else { None }
    }

    fn pod_group(self) -> Option<GangTree> {
        if let Self::PodGroup(tree) = self { Some(*tree) } else { None }
    }

    fn kai_topology(self) -> Option<KaiLevels> {
        if let Self::KaiTopology(levels) = self { Some(levels) } else { None }
    }
}

impl Index {
    /// Takes in an object that was read outside a watch.
    pub fn read_outside(&mut self, name: (&str, &str), object: LookedUp) {
        let name = (name.0.into(), name.1.into());
        match object {
            LookedUp::Topology(topology) => self.topologies.read(name, topology),
            LookedUp::CliqueSet(set) => self.clique_sets.read(name, set),
            LookedUp::PodGroup(tree) => self.pod_groups.read(name, *tree),
            LookedUp::KaiTopology(levels) => self.kai_topologies.read(name, levels),
        }
    }

    /// Takes in what a watch of such objects reports, each with its namespace and name.
    pub fn looked_up_change(&mut self, source: SourceId, kind: ObjectKind, change: Change<(Name, Option<LookedUp>)>) {
        if matches!(change, Change::Listed(_) | Change::NotServed) {
            self.served.insert(kind, !matches!(change, Change::NotServed));
            self.awaited.remove(&source);
        }
        // Each kind has a watch of its own, so a list is of one store only.
        match kind.kind {
            "ClusterTopology" => {
                let touched = match &change {
                    Change::Applied((name, _)) | Change::Deleted((name, _)) => Some(name.1.clone()),
                    Change::Listed(_) | Change::NotServed => None,
                };
                self.topologies.take(source, narrow(change, LookedUp::topology));
                self.touch_trees(None);
                self.rebuild(self.carriers.referring_to(touched.as_deref()), Because::Context);
            }
            "PodGroup" => {
                let touched = match &change {
                    Change::Applied((name, _)) | Change::Deleted((name, _)) => Some(GroupKey::new(&name.0, &name.1)),
                    Change::Listed(_) | Change::NotServed => None,
                };
                self.pod_groups.take(source, narrow(change, LookedUp::pod_group));
                self.touch_trees(touched.as_ref());
            }
            "Topology" => {
                self.kai_topologies.take(source, narrow(change, LookedUp::kai_topology));
                self.touch_trees(None);
            }
            _ => self.clique_sets.take(source, narrow(change, LookedUp::clique_set)),
        }
    }
}
