//! Objects that the webhook looks up by name.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use super::store::{Store, Stored};
use super::tombstones::Tombstones;
use super::{Name, SourceId};
use crate::cluster::index::Change;

/// One object in an event of a watch: its name, its resource version, and the object, `None` where it cannot be read.
pub type Report<T> = (Name, Option<u64>, Option<T>);

/// Objects by namespace and name, which may be of several kinds. The namespace is empty for cluster-scoped kinds.
#[derive(Debug)]
pub struct Named<T>(
    /// By the rank of the kind: of two objects with one name, that of the lowest rank counts.
    BTreeMap<usize, OfKind<T>>,
);

#[derive(Debug)]
struct OfKind<T> {
    all: Store<Name, Arc<T>>,
    gone: Tombstones<Name>,
}

impl<T> Default for Named<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<T> Default for OfKind<T> {
    fn default() -> Self {
        Self { all: Store::default(), gone: Tombstones::default() }
    }
}

impl<T> Named<T> {
    pub(super) fn len(&self) -> usize {
        self.0.values().map(|kind| kind.all.len()).sum()
    }

    pub(super) fn get(&self, namespace: &str, name: &str) -> Option<Arc<T>> {
        let name = (namespace.into(), name.into());
        self.0.values().find_map(|kind| kind.all.get(&name)).map(|known| known.object.clone())
    }

    /// Stores an object that was read outside a watch at this version, unless a watch has reported it, or its deletion since.
    pub(super) fn read(&mut self, rank: usize, name: Name, version: Option<u64>, object: T) {
        let kind = self.0.entry(rank).or_default();
        if !kind.gone.holds(&name, "", version) && kind.all.get(&name).is_none() {
            kind.insert(name, None, object);
        }
    }

    /// Applies an event of a watch of one kind. `None` is an unreadable object, which keeps its known state.
    pub(super) fn take(&mut self, rank: usize, source: SourceId, change: Change<Report<T>>) {
        let kind = self.0.entry(rank).or_default();
        match change {
            Change::Listed(objects) => {
                let listed: HashSet<_> = objects.iter().map(|(name, ..)| name.clone()).collect();
                kind.all.keep_only(source, |name| listed.contains(name));
                objects.into_iter().for_each(|object| kind.apply(source, object));
            }
            Change::Applied(object) => kind.apply(source, object),
            Change::Deleted((name, version, _)) => {
                kind.all.remove(&name);
                kind.gone.add(name, None, version);
            }
            Change::NotServed => _ = kind.all.forget_all(source),
        }
    }
}

impl<T> OfKind<T> {
    fn apply(&mut self, source: SourceId, (name, _, object): Report<T>) {
        object.into_iter().for_each(|object| self.insert(name.clone(), Some(source), object));
    }

    fn insert(&mut self, name: Name, source: Option<SourceId>, object: T) {
        self.all.insert(name, Stored { object: Arc::new(object), source, group: None });
    }
}
