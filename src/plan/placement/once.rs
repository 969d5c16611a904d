//! Values that many have, each kept once.

use std::collections::HashSet;
use std::hash::Hash;
use std::sync::Arc;

/// So many that nobody has any more are no reason to look through all.
const FEW: usize = 64;

/// Values that many have, each once. One that nobody has any more is forgotten by its last holder, or when there are twice as
/// many as were in use at the last look: its last holder may have been somebody who knows nothing of this.
#[derive(Clone, Debug)]
pub struct Once<T> {
    all: HashSet<Arc<T>>,
    in_use: usize,
}

impl<T> Default for Once<T> {
    fn default() -> Self {
        Self { all: HashSet::new(), in_use: 0 }
    }
}

impl<T: Hash + Eq> Once<T> {
    /// The one that is like this.
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

    /// Forgets one unless somebody else has it.
    pub fn forget(&mut self, value: &Arc<T>) {
        // This one and the set's own.
        if Arc::strong_count(value) <= 2 {
            self.all.remove(value);
        }
    }

    /// Each that is known.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<T>> {
        self.all.iter()
    }

    /// How many are known.
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
            // Its holder goes without a word.
            drop(once.of(Arc::new(number)));
        }
        assert!(once.count() <= 2 * FEW + 2, "{}", once.count());
        assert!(Arc::ptr_eq(&kept, &once.of(Arc::new(0))));
        once.forget(&kept);
        assert!(once.iter().all(|one| **one != 0));
    }
}
