//! Objects that the webhook looks up by name.

use std::collections::HashSet;
use std::sync::Arc;

use super::store::{Store, Stored};
use super::tombstones::Tombstones;
use super::{Name, SourceId};
use crate::cluster::index::Change;

/// One object in an event of a watch: its name, its resource version, and the object, `None` where it cannot be read.
pub type Report<T> = (Name, Option<u64>, Option<T>);

/// Objects by namespace and name, which may be of several kinds. The namespace is empty for cluster-scoped kinds.
#[derive(Debug)]
pub struct Named<T> {
    /// By the rank of the kind, and name: of two objects with one name, that of the lowest rank counts.
    all: Store<(usize, Name), Arc<T>>,
    gone: Tombstones<(usize, Name)>,
    /// Number of ranks so far.
    ranks: usize,
}

impl<T> Default for Named<T> {
    fn default() -> Self {
        Self { all: Store::default(), gone: Tombstones::default(), ranks: 0 }
    }
}

impl<T> Named<T> {
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn get(&self, namespace: &str, name: &str) -> Option<Arc<T>> {
        let name: Name = (namespace.into(), name.into());
        let known = (0..self.ranks).find_map(|rank| self.all.get(&(rank, name.clone())))?;
        Some(known.object.clone())
    }

    /// Stores an object that was read outside a watch at this version, unless a watch has reported it, or its deletion since.
    pub(super) fn read(&mut self, rank: usize, name: Name, version: Option<u64>, object: T) {
        self.ranks = self.ranks.max(rank + 1);
        let key = (rank, name);
        if !self.gone.holds(&key, "", version) && self.all.get(&key).is_none() {
            self.all.insert(key, Stored { object: Arc::new(object), source: None, group: None });
        }
    }

    /// Applies an event of a watch of one kind. `None` is an unreadable object, which keeps its known state.
    pub(super) fn take(&mut self, rank: usize, source: SourceId, change: Change<Report<T>>) {
        self.ranks = self.ranks.max(rank + 1);
        let apply = |all: &mut Store<_, _>, (name, _, object): Report<T>| {
            let stored = |object| Stored { object: Arc::new(object), source: Some(source), group: None };
            object.into_iter().for_each(|object| _ = all.insert((rank, name.clone()), stored(object)));
        };
        match change {
            Change::Listed(objects) => {
                let listed: HashSet<_> = objects.iter().map(|(name, ..)| name.clone()).collect();
                self.all.keep_only(source, |(of, name)| *of != rank || listed.contains(name));
                objects.into_iter().for_each(|object| apply(&mut self.all, object));
            }
            Change::Applied(object) => apply(&mut self.all, object),
            Change::Deleted((name, version, _)) => {
                let key = (rank, name);
                self.all.remove(&key);
                self.gone.add(key, None, version);
            }
            Change::NotServed => _ = self.all.forget_all(source),
        }
    }
}
