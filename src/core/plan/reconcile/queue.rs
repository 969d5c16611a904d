//! The queue of groups by the time of their next pass.

use std::collections::{BTreeSet, HashMap};

use crate::model::GroupKey;
use crate::plan::reconcile::uptime::Uptime;

/// Groups by the time of their next pass, one entry for each group.
#[derive(Debug, Default)]
pub(in crate::plan) struct Queue {
    due: BTreeSet<(Uptime, GroupKey)>,
    planned: HashMap<GroupKey, Uptime>,
}

impl Queue {
    /// Plans a pass, or brings a later one forward.
    pub(in crate::plan) fn schedule(&mut self, key: GroupKey, at: Uptime) {
        match self.planned.get(&key) {
            Some(planned) if *planned <= at => return,
            Some(planned) => _ = self.due.remove(&(*planned, key.clone())),
            None => {}
        }
        self.planned.insert(key.clone(), at);
        self.due.insert((at, key));
    }

    /// Returns the number of planned passes.
    pub(in crate::plan) fn len(&self) -> usize {
        self.planned.len()
    }

    /// Returns when the next group is due.
    pub(in crate::plan) fn next(&self) -> Option<Uptime> {
        self.due.first().map(|(at, _)| *at)
    }

    /// Removes and returns the next group that is due by now.
    pub(in crate::plan) fn take(&mut self, now: Uptime) -> Option<GroupKey> {
        self.next().filter(|at| *at <= now)?;
        let (_, key) = self.due.pop_first()?;
        self.planned.remove(&key);
        Some(key)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_group_is_planned_once_at_the_earliest_time_asked_for() {
        let (second, key) = (Duration::from_secs(1), |name: &str| GroupKey::new("ns", name));
        let mut queue = Queue::default();
        queue.schedule(key("a"), second * 3);
        queue.schedule(key("b"), second * 2);
        queue.schedule(key("a"), second);
        queue.schedule(key("a"), second * 4);
        assert_eq!((queue.next(), queue.take(Uptime::ZERO)), (Some(second), None));
        assert_eq!((queue.take(second * 2), queue.take(second * 2)), (Some(key("a")), Some(key("b"))));
        assert_eq!((queue.next(), queue.take(second * 9)), (None, None));
    }
}
