//! Objects of one kind that the webhook looks up by name.

use std::collections::HashSet;
use std::sync::Arc;

use super::store::{Store, Stored};
use super::tombstones::Tombstones;
use super::{Name, SourceId};
use crate::cluster::index::Change;

/// One object in an event of a watch: its name, its resource version, and the object, `None` where it cannot be read.
pub type Report<T> = (Name, Option<u64>, Option<T>);

/// Objects by namespace and name. The namespace is empty for cluster-scoped kinds.
#[derive(Debug)]
pub struct Named<T> {
    all: Store<Name, Arc<T>>,
    gone: Tombstones<Name>,
}

impl<T> Default for Named<T> {
    fn default() -> Self {
        Self { all: Store::default(), gone: Tombstones::default() }
    }
}

impl<T> Named<T> {
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn get(&self, namespace: &str, name: &str) -> Option<Arc<T>> {
        self.all.get(&(namespace.into(), name.into())).map(|known| known.object.clone())
    }

    /// Stores an object that was read outside a watch at this version, unless a watch has reported it, or its deletion since.
    pub(super) fn read(&mut self, name: Name, version: Option<u64>, object: T) {
        if !self.gone.holds(&name, "", version) && self.all.get(&name).is_none() {
            self.insert(name, None, object);
        }
    }

    /// Applies an event of a watch. `None` is an unreadable object, which keeps its known state.
    pub(super) fn take(&mut self, source: SourceId, change: Change<Report<T>>) {
        match change {
            Change::Listed(objects) => {
                let listed: HashSet<_> = objects.iter().map(|(name, ..)| name.clone()).collect();
                self.all.keep_only(source, |name| listed.contains(name));
                objects.into_iter().for_each(|object| self.apply(source, object));
            }
            Change::Applied(object) => self.apply(source, object),
            Change::Deleted((name, version, _)) => {
                self.all.remove(&name);
                self.gone.add(name, None, version);
            }
            Change::NotServed => _ = self.all.forget_all(source),
        }
    }

    fn apply(&mut self, source: SourceId, (name, _, object): Report<T>) {
        object.into_iter().for_each(|object| self.insert(name.clone(), Some(source), object));
    }

    fn insert(&mut self, name: Name, source: Option<SourceId>, object: T) {
        self.all.insert(name, Stored { object: Arc::new(object), source, group: None });
    }
}
