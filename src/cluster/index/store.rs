//! Objects of one kind as they were last seen, by key, and the objects of each group.

use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;

use super::SourceId;
use crate::model::GroupKey;

#[derive(Debug)]
pub(super) struct Stored<V> {
    pub(super) object: V,
    /// The watch that reported the object; `None` for one that was only read or written.
    pub(super) source: Option<SourceId>,
    pub(super) group: Option<GroupKey>,
}

#[derive(Debug)]
pub(super) struct Store<K, V> {
    all: HashMap<K, Stored<V>>,
    by_group: HashMap<GroupKey, BTreeSet<K>>,
}

impl<K, V> Default for Store<K, V> {
    fn default() -> Self {
        Self { all: HashMap::new(), by_group: HashMap::new() }
    }
}

impl<K: Clone + Eq + Hash + Ord, V> Store<K, V> {
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn get(&self, key: &K) -> Option<&Stored<V>> {
        self.all.get(key)
    }

    pub(super) fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        self.all.get_mut(key).map(|stored| &mut stored.object)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.all.iter().map(|(key, stored)| (key, &stored.object))
    }

    pub(super) fn groups(&self) -> impl ExactSizeIterator<Item = &GroupKey> {
        self.by_group.keys()
    }

    /// Returns the keys of the objects of a group, in order.
    pub(super) fn keys_of(&self, group: &GroupKey) -> impl Iterator<Item = &K> {
        self.by_group.get(group).into_iter().flatten()
    }

    /// Returns the objects of a group, by key.
    pub(super) fn of(&self, group: &GroupKey) -> impl Iterator<Item = &V> {
        self.keys_of(group).filter_map(|key| self.all.get(key)).map(|stored| &stored.object)
    }

    /// Adds or replaces an object; returns the other group that it was in before.
    pub(super) fn insert(&mut self, key: K, stored: Stored<V>) -> Option<GroupKey> {
        let group = stored.group.clone();
        let before = self.all.insert(key.clone(), stored).and_then(|before| before.group);
        let before = before.filter(|before| group.as_ref() != Some(before));
        self.detach(&key, before.as_ref());
        if let Some(group) = group {
            self.by_group.entry(group).or_default().insert(key);
        }
        before
    }

    pub(super) fn remove(&mut self, key: &K) -> Option<Stored<V>> {
        let gone = self.all.remove(key)?;
        self.detach(key, gone.group.as_ref());
        Some(gone)
    }

    /// Removes the objects that a list of a watch lacks. An object that was only read or written may be newer than the list;
    /// the watch will report it.
    pub(super) fn keep_only(&mut self, source: SourceId, is_listed: impl Fn(&K) -> bool) -> Vec<(K, Stored<V>)> {
        self.extract(|key, stored| stored.source.is_none_or(|from| from == source) && !is_listed(key))
    }

    /// Removes the objects that a watch has reported.
    pub(super) fn forget_all(&mut self, source: SourceId) -> Vec<(K, Stored<V>)> {
        self.extract(|_, stored| stored.source == Some(source))
    }

    fn extract(&mut self, is_gone: impl Fn(&K, &Stored<V>) -> bool) -> Vec<(K, Stored<V>)> {
        let gone: Vec<_> = self.all.extract_if(|key, stored| is_gone(key, stored)).collect();
        gone.iter().for_each(|(key, stored)| self.detach(key, stored.group.as_ref()));
        gone
    }

    fn detach(&mut self, key: &K, group: Option<&GroupKey>) {
        if let Some((group, keys)) = group.and_then(|group| Some((group, self.by_group.get_mut(group)?))) {
            keys.remove(key);
            if keys.is_empty() {
                self.by_group.remove(group);
            }
        }
    }
}
