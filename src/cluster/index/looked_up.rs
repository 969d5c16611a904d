//! Objects looked up by name beside groups, from watches or single reads.

use super::carriers::Because;
use super::named::Report;
use super::trees::KaiLevels;
use super::{Index, SourceId};
use crate::api::ObjectKind;
use crate::cluster::index::Change;
use crate::model::{CliqueSet, GangTree, GroupKey, Layers};

#[derive(Debug)]
pub enum LookedUp {
    Topology(Layers),
    CliqueSet(CliqueSet),
    PodGroup(Box<GangTree>),
    KaiTopology(KaiLevels),
}

fn narrow<T>(change: Change<Report<LookedUp>>, to: fn(LookedUp) -> Option<T>) -> Change<Report<T>> {
    change.map(|(name, version, object)| (name, version, object.and_then(to)))
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
    /// Stores an object that was read outside a watch at this resource version.
    pub fn read_outside(&mut self, name: (&str, &str), version: Option<u64>, object: LookedUp) {
        let name = (name.0.into(), name.1.into());
        match object {
            LookedUp::Topology(topology) => self.topologies.read(name, version, topology),
            LookedUp::CliqueSet(set) => self.clique_sets.read(name, version, set),
            LookedUp::PodGroup(tree) => self.pod_groups.read(name, version, *tree),
            LookedUp::KaiTopology(levels) => self.kai_topologies.read(name, version, levels),
        }
    }

    /// Applies an event of the watch of such a kind.
    pub fn looked_up_change(&mut self, source: SourceId, kind: ObjectKind, change: Change<Report<LookedUp>>) {
        if matches!(change, Change::Listed(_) | Change::NotServed) {
            self.served.insert(kind, !matches!(change, Change::NotServed));
            self.awaited.remove(&source);
        }
        // Each kind has its own watch, so a list replaces one store only.
        match kind.kind {
            "ClusterTopology" => {
                let touched = match &change {
                    Change::Applied((name, ..)) | Change::Deleted((name, ..)) => Some(name.1.clone()),
                    Change::Listed(_) | Change::NotServed => None,
                };
                self.topologies.take(source, narrow(change, LookedUp::topology));
                self.touch_trees(None);
                self.rebuild(self.carriers.referring_to(touched.as_deref()), Because::Context);
            }
            "PodGroup" => {
                let touched = match &change {
                    Change::Applied((name, ..)) | Change::Deleted((name, ..)) => Some(GroupKey::new(&name.0, &name.1)),
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
