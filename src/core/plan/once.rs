//! Deduplication of values with many holders.

use std::collections::HashSet;
use std::hash::Hash;
use std::sync::Arc;

/// The number of unused values that does not justify a search through all.
const FEW: usize = 64;

/// Deduplicated values. An unused value is removed by its last holder, or when there are twice as many values as were in use at
/// the last search: the last holder may not know this set.
#[derive(Debug)]
pub struct Once<T: ?Sized> {
    all: HashSet<Arc<T>>,
    in_use: usize,
}

impl<T: ?Sized> Clone for Once<T> {
    fn clone(&self) -> Self {
        Self { all: self.all.clone(), in_use: self.in_use }
    }
}

impl<T: ?Sized> Default for Once<T> {
    fn default() -> Self {
        Self { all: HashSet::new(), in_use: 0 }
    }
}

impl<T: Hash + Eq + ?Sized> Once<T> {
    /// Returns the shared copy of a value.
    pub fn of(&mut self, value: Arc<T>) -> Arc<T> {
        if let Some(known) = self.all.get(&value) {
            return known.clone();
        }
        if self.all.len() >= 2 * self.in_use + FEW {
            self.all.retain(|one| Arc::strong_count(one) > 1);
            self.in_use = self.all.len();
        }
        self.all.insert(value.clone());
        value
    }

    /// Removes a value unless it has another holder.
    pub fn forget(&mut self, value: &Arc<T>) {
        // Two references: this one, and the one of the set.
        if Arc::strong_count(value) <= 2 {
            self.all.remove(value);
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = &Arc<T>> {
        self.all.iter()
    }

    pub fn count(&self) -> usize {
        self.all.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_has_is_forgotten() {
        let mut once = Once::default();
        let kept = once.of(Arc::new(0));
        assert!(Arc::ptr_eq(&kept, &once.of(Arc::new(0))));
        for number in 1..10_000 {
            // The holder goes without a call of `forget`.
            drop(once.of(Arc::new(number)));
        }
        assert!(once.count() <= 2 * FEW + 2, "{}", once.count());
        assert!(Arc::ptr_eq(&kept, &once.of(Arc::new(0))));
        once.forget(&kept);
        assert!(once.iter().all(|one| **one != 0));
    }
}
