//! Objects as they were last seen: those of one kind by key, with the objects of each group; those that are looked up by name;
//! and deleted ones, remembered so that a late answer or event does not restore them.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::hash::Hash;
use std::sync::Arc;

use super::{Change, Name, SourceId};
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

/// Number of entries kept: many more than are deleted while a request is in flight.
const MOST: usize = 4096;

#[derive(Debug)]
pub(super) struct Tombstones<K> {
    all: HashMap<K, Tombstone>,
    /// Oldest first. A name that was deleted twice appears twice.
    order: VecDeque<K>,
}

#[derive(Debug)]
struct Tombstone {
    /// `None` where the same object may return: a pod that left one watch and appears in another.
    uid: Option<Arc<str>>,
    version: Option<u64>,
}

impl<K> Default for Tombstones<K> {
    fn default() -> Self {
        Self { all: HashMap::new(), order: VecDeque::new() }
    }
}

impl<K: Clone + Eq + Hash> Tombstones<K> {
    /// Records that an object is gone since this version.
    pub(super) fn add(&mut self, name: K, uid: Option<&str>, version: Option<u64>) {
        if self.all.get(&name).is_some_and(|known| is_older(version, known.version)) {
            return;
        }
        self.order.push_back(name.clone());
        self.all.insert(name, Tombstone { uid: uid.map(Into::into), version });
        if self.order.len() > MOST
            && let Some(oldest) = self.order.pop_front()
            && !self.order.contains(&oldest)
        {
            self.all.remove(&oldest);
        }
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// Reports whether this version belongs to an object that is gone.
    pub(super) fn holds(&self, name: &K, uid: &str, version: Option<u64>) -> bool {
        let Some(tombstone) = self.all.get(name) else { return false };
        tombstone.uid.as_deref() == Some(uid) || is_older(version, tombstone.version)
    }
}

/// Reports whether `version` is certainly older than `known`. The API server numbers all changes in one sequence, so this
/// holds between an object and its successor of the same name as well.
pub(super) fn is_older(version: Option<u64>, known: Option<u64>) -> bool {
    version.zip(known).is_some_and(|(version, known)| version < known)
}

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
        match &change {
            Change::Listed(objects) => {
                let listed: HashSet<_> = objects.iter().map(|(name, ..)| name).collect();
                self.all.keep_only(source, |(of, name)| *of != rank || listed.contains(name));
            }
            Change::Deleted((name, version, _)) => {
                let key = (rank, name.clone());
                self.all.remove(&key);
                self.gone.add(key, None, *version);
            }
            Change::NotServed => _ = self.all.forget_all(source),
            Change::Applied(_) => {}
        }
        let readable = change.into_there().into_iter().filter_map(|(name, _, object)| Some((name, Arc::new(object?))));
        for (name, object) in readable {
            self.all.insert((rank, name), Stored { object, source: Some(source), group: None });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_successor_of_the_same_name_is_not_taken_for_deleted() {
        let mut tombstones = Tombstones::default();
        tombstones.add("pd", Some("a"), Some(7));
        assert!(tombstones.holds(&"pd", "a", Some(9)) && tombstones.holds(&"pd", "older", Some(6)));
        assert!(!tombstones.holds(&"pd", "b", Some(8)) && !tombstones.holds(&"other", "a", Some(1)));
    }

    #[test]
    fn what_left_one_watch_may_appear_in_another() {
        let mut tombstones = Tombstones::default();
        tombstones.add("pod", None, Some(7));
        assert!(tombstones.holds(&"pod", "a", Some(6)) && !tombstones.holds(&"pod", "a", Some(7)));
    }

    #[test]
    fn the_oldest_are_forgotten() {
        let mut tombstones = Tombstones::default();
        (0..2 * MOST as u64).for_each(|name| tombstones.add(name, None, Some(name + 1)));
        assert!(tombstones.all.len() <= MOST && tombstones.order.len() <= MOST);
        assert!(!tombstones.holds(&0, "", Some(0)) && tombstones.holds(&(MOST as u64), "", Some(0)));
    }
}
