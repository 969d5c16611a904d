//! States with the time of their beginning, and those that are reported only if they last: a wait or a fault of a moment
//! deserves no Event, and often comes from one watch being ahead of another.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::plan::reconcile::uptime::Uptime;

/// The time after which a state is reported: by then the pods of a batch, and objects that are applied together, exist.
pub(super) const LASTS: Duration = Duration::from_secs(1);

/// Entries with a time: since when a state is as it is, or until when something counts.
#[derive(Debug)]
pub(in crate::plan) struct Timed<K, V = ()>(pub(super) BTreeMap<K, (Uptime, V)>);

impl<K, V> Default for Timed<K, V> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<K: Ord + Clone, V: Default> Timed<K, V> {
    /// Notes all current states; returns when the next of them will have lasted this long. Known ones stay as they are; a
    /// state that ends begins anew when it comes back.
    pub(in crate::plan) fn note(
        &mut self,
        states: impl IntoIterator<Item = K>,
        after: Duration,
        now: Uptime,
    ) -> Option<Uptime> {
        let mut before = std::mem::take(&mut self.0);
        for key in states {
            let known = before.remove(&key);
            self.0.entry(key).or_insert_with(|| known.unwrap_or_else(|| (now, V::default())));
        }
        self.next(after, now)
    }

    /// Notes all current unreported states; removes and returns those that have lasted and are to be reported now.
    pub(in crate::plan) fn lasted(&mut self, states: impl IntoIterator<Item = K>, now: Uptime) -> BTreeSet<K> {
        self.note(states, LASTS, now);
        let lasted: BTreeSet<K> = self.overdue(LASTS, now).into_iter().collect();
        self.0.retain(|key, _| !lasted.contains(key));
        lasted
    }
}

impl<K: Ord + Clone, V> Timed<K, V> {
    pub(in crate::plan) fn since(&self, key: &K) -> Option<Uptime> {
        self.0.get(key).map(|(since, _)| *since)
    }

    /// Returns all states, each with the time for which it has lasted.
    pub(in crate::plan) fn lasting(&self, now: Uptime) -> Vec<(K, Duration)> {
        self.0.iter().map(|(key, (since, _))| (key.clone(), now.saturating_sub(*since))).collect()
    }

    /// Returns the states that have lasted this long.
    pub(in crate::plan) fn overdue(&self, after: Duration, now: Uptime) -> Vec<K> {
        self.0.iter().filter(|(_, (since, _))| *since + after <= now).map(|(key, _)| key.clone()).collect()
    }

    /// Returns when the next of the other states will have lasted this long.
    pub(in crate::plan) fn next(&self, after: Duration, now: Uptime) -> Option<Uptime> {
        self.0.values().map(|(since, _)| *since + after).filter(|at| *at > now).min()
    }

    pub(in crate::plan) fn len(&self) -> usize {
        self.0.len()
    }
}

/// The states that were reported, each once, after they had lasted.
#[derive(Debug)]
pub(in crate::plan) struct Ledger<K, V = ()> {
    told: BTreeMap<K, V>,
    waiting: Timed<K>,
}

/// The difference between two looks at a [`Ledger`].
#[derive(Debug)]
pub(in crate::plan) struct News<K, V> {
    /// States that have lasted and were not reported.
    pub(in crate::plan) begun: Vec<(K, V)>,
    /// Reported states that have ended, as they were last.
    pub(in crate::plan) over: Vec<(K, V)>,
}

impl<K, V> Default for Ledger<K, V> {
    fn default() -> Self {
        Self { told: BTreeMap::new(), waiting: Timed::default() }
    }
}

impl<K: Ord + Clone, V: Clone> Ledger<K, V> {
    /// Takes all current states, and returns what to report.
    pub(in crate::plan) fn note(&mut self, states: impl IntoIterator<Item = (K, V)>, now: Uptime) -> News<K, V> {
        let states: Vec<_> = states.into_iter().collect();
        let new = states.iter().map(|(key, _)| key).filter(|key| !self.told.contains_key(key));
        let lasted = self.waiting.lasted(new.cloned(), now);
        let told = states.into_iter().filter(|(key, _)| self.told.contains_key(key) || lasted.contains(key));
        let told = told.collect::<Vec<_>>();
        self.at_once(told)
    }

    /// The same, for states that are reported even if they do not last.
    pub(in crate::plan) fn at_once(&mut self, states: impl IntoIterator<Item = (K, V)>) -> News<K, V> {
        let states: Vec<_> = states.into_iter().collect();
        let begun = states.iter().filter(|(key, _)| !self.told.contains_key(key)).cloned().collect();
        let before = std::mem::replace(&mut self.told, states.into_iter().collect());
        let over = before.into_iter().filter(|(key, _)| !self.told.contains_key(key)).collect();
        News { begun, over }
    }

    /// Returns when the next state will have lasted.
    pub(in crate::plan) fn again(&self) -> Option<Uptime> {
        self.waiting.next(LASTS, Uptime::ZERO)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ends_within_the_time_begins_anew() {
        let mut lasting: Timed<u32> = Timed::default();
        let mut at = |millis: u64, what: &[u32]| {
            let lasted = lasting.lasted(what.iter().copied(), Uptime::from_millis(millis));
            (lasted.into_iter().collect::<Vec<_>>(), lasting.next(LASTS, Uptime::ZERO).map(|at| at.as_millis()))
        };
        assert_eq!(at(0, &[1]), (vec![], Some(1000)));
        assert_eq!(at(500, &[1, 2]), (vec![], Some(1000)));
        assert_eq!(at(999, &[2]), (vec![], Some(1500)));
        assert_eq!(at(1000, &[1, 2]), (vec![], Some(1500)));
        assert_eq!(at(1500, &[1, 2]), (vec![2], Some(2000)));
        assert_eq!(at(2000, &[1]), (vec![1], None));
    }

    #[test]
    fn a_state_that_lasts_is_reported_once_and_again_when_it_is_over() {
        let mut ledger = Ledger::default();
        let mut at = |millis: u64, states: &[(&'static str, u32)]| {
            let News { begun, over } = ledger.note(states.iter().copied(), Uptime::from_millis(millis));
            (begun, over, ledger.again().map(|at| at.as_millis()))
        };
        assert_eq!(at(0, &[("a", 1)]), (vec![], vec![], Some(1000)));
        assert_eq!(at(1000, &[("a", 2)]), (vec![("a", 2)], vec![], None));
        assert_eq!(at(2000, &[("a", 3), ("b", 1)]), (vec![], vec![], Some(3000)));
        assert_eq!(at(2500, &[("b", 1)]), (vec![], vec![("a", 3)], Some(3000)));
        assert_eq!(at(2600, &[]), (vec![], vec![], None));
    }
}
