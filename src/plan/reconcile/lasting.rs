//! What is told only when it lasts: that something waits, or is wrong, for less than a moment is worth no Event, and often comes
//! from one watch being a little ahead of another.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::plan::reconcile::uptime::Uptime;

/// How long it lasts before it is told: by then the pods of a batch are made, and what is applied together is there.
pub(super) const LASTS: Duration = Duration::from_secs(1);

/// Since when something is so that was not told yet.
#[derive(Debug)]
pub(in crate::plan) struct Lasting<K>(BTreeMap<K, Uptime>);

impl<K> Default for Lasting<K> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<K: Ord + Clone> Lasting<K> {
    /// Takes in all that is so now and was not told; returns what has lasted, which is to be told now. What ends before begins
    /// anew when it comes again.
    pub(in crate::plan) fn note(&mut self, what: impl IntoIterator<Item = K>, now: Uptime) -> BTreeSet<K> {
        let before = std::mem::take(&mut self.0);
        self.0 = what
            .into_iter()
            .map(|key| (before.get(&key).copied().unwrap_or(now), key))
            .map(|(at, key)| (key, at))
            .collect();
        let lasted: BTreeSet<K> =
            self.0.iter().filter(|(_, since)| **since + LASTS <= now).map(|(key, _)| key.clone()).collect();
        self.0.retain(|key, _| !lasted.contains(key));
        lasted
    }

    /// When the next of the others will have lasted.
    pub(in crate::plan) fn again(&self) -> Option<Uptime> {
        self.0.values().min().map(|since| *since + LASTS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ends_within_the_time_begins_anew() {
        let mut lasting = Lasting::default();
        let mut at = |millis: u64, what: &[u32]| {
            let lasted = lasting.note(what.iter().copied(), Uptime::from_millis(millis));
            (lasted.into_iter().collect::<Vec<_>>(), lasting.again().map(|at| at.as_millis()))
        };
        assert_eq!(at(0, &[1]), (vec![], Some(1000)));
        assert_eq!(at(500, &[1, 2]), (vec![], Some(1000)));
        assert_eq!(at(999, &[2]), (vec![], Some(1500)));
        assert_eq!(at(1000, &[1, 2]), (vec![], Some(1500)));
        assert_eq!(at(1500, &[1, 2]), (vec![2], Some(2000)));
        assert_eq!(at(2000, &[1]), (vec![1], None));
    }
}
