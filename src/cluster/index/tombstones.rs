//! Deleted objects, remembered so that a late answer or event does not restore them.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::sync::Arc;

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
