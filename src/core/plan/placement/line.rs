//! The line of batches that wait for room: served by priority, then by age.
//!
//! A small batch may overtake a large one that does not fit, but not forever: after some time the domain with room for most of
//! the large batch is kept for it, until it fits there or elsewhere.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use super::filter::DomainLabel;
use crate::model::GroupKey;

/// The time after which the first batch in the line has its best domain kept.
pub const KEEPS_AFTER: Duration = Duration::from_secs(60);

/// The first waiting batch of each group.
#[derive(Debug, Default)]
pub struct Line(HashMap<GroupKey, Waiting>);

#[derive(Debug)]
struct Waiting {
    priority: i32,
    since: Duration,
    /// The value of [`super::Capacity::freed`] at the last unsuccessful try, and the time of that try.
    tried: u64,
    at: Duration,
    /// The time since when it waits for earlier batches to be tried.
    asks: Option<Duration>,
    /// The node label and value of the domain with room for most of the batch.
    best: Option<(String, String)>,
}

/// Whether a batch may be placed now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Turn {
    Now {
        /// The domain that is kept for the first batch in the line.
        closed: Option<Closed>,
    },
    /// Earlier batches have not been tried since room was made.
    AfterOthers,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Closed {
    pub key: String,
    /// The value of the label.
    pub domain: String,
    /// The group of the batch.
    pub group: GroupKey,
    /// Whether pods of that group are to be bound there first; otherwise its batch waits longer.
    pub unbound: bool,
}

impl Closed {
    /// Returns the label of the domain.
    pub fn label(&self) -> DomainLabel {
        Arc::new((self.key.clone(), self.domain.clone()))
    }

    /// Returns why the domain is closed to pods of a namespace: only that of the group is told its name.
    pub fn describe(&self, namespace: &str) -> String {
        let Self { domain, group, .. } = self;
        let of = if &*group.namespace == namespace {
            format!("group {:?}", &*group.name)
        } else {
            "a group of another namespace".to_owned()
        };
        if self.unbound {
            format!("{domain} waits for pods of {of} to be bound")
        } else {
            format!("{domain} is kept for {of}, which waits longer")
        }
    }
}

impl Line {
    /// Decides whether a batch of this group and priority may be placed.
    pub fn turn(&self, group: &GroupKey, priority: i32, now: Duration, freed: u64) -> Turn {
        let known = self.0.get(group);
        let own = (Reverse(priority), known.map_or(now, |waiting| waiting.since), group);
        let asks = known.and_then(|waiting| waiting.asks).unwrap_or(now);
        let earlier =
            || self.0.iter().map(|(key, waiting)| (rank(key, waiting), waiting)).filter(|(rank, _)| *rank < own);
        // If pods come and go all the time, a batch waits for one try of the earlier batches only.
        if earlier().any(|(_, waiting)| waiting.tried < freed && waiting.at < asks) {
            return Turn::AfterOthers;
        }
        let first = earlier().min_by_key(|(rank, _)| *rank);
        let keeps = first.filter(|(_, waiting)| now.saturating_sub(waiting.since) >= KEEPS_AFTER);
        let closed = keeps.and_then(|((_, _, group), waiting)| {
            let (key, domain) = waiting.best.clone()?;
            Some(Closed { key, domain, group: group.clone(), unbound: false })
        });
        Turn::Now { closed }
    }

    pub fn waits(
        &mut self,
        group: &GroupKey,
        priority: i32,
        now: Duration,
        freed: u64,
        best: Option<(String, String)>,
    ) {
        let since = self.0.get(group).map_or(now, |waiting| waiting.since);
        self.0.insert(group.clone(), Waiting { priority, since, tried: freed, at: now, asks: None, best });
    }

    /// Notes that a batch of this group waits for earlier batches to be tried.
    pub fn joins(&mut self, group: &GroupKey, priority: i32, now: Duration) {
        let new = || Waiting { priority, since: now, tried: 0, at: Duration::ZERO, asks: None, best: None };
        self.0.entry(group.clone()).or_insert_with(new).asks.get_or_insert(now);
    }

    pub fn leaves(&mut self, group: &GroupKey) {
        self.0.remove(group);
    }

    pub fn clear(&mut self) {
        self.0.clear();
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns the waiting groups in the order of the line.
    pub fn in_order(&self) -> Vec<GroupKey> {
        let mut all: Vec<_> = self.0.iter().map(|(key, waiting)| rank(key, waiting)).collect();
        all.sort();
        all.into_iter().map(|(_, _, key)| key.clone()).collect()
    }
}

fn rank<'a>(key: &'a GroupKey, waiting: &Waiting) -> (Reverse<i32>, Duration, &'a GroupKey) {
    (Reverse(waiting.priority), waiting.since, key)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn group(name: &str) -> GroupKey {
        GroupKey::new("ns", name)
    }

    fn rack(name: &str) -> (String, String) {
        ("rack".to_owned(), name.to_owned())
    }

    #[test]
    fn priority_goes_before_age() {
        let mut line = Line::default();
        line.waits(&group("old"), 0, SECOND, 1, None);
        line.waits(&group("young"), 0, SECOND * 2, 1, None);
        line.waits(&group("important"), 9, SECOND * 3, 1, None);
        line.waits(&group("old"), 0, SECOND * 4, 1, None);
        assert_eq!(line.in_order(), [group("important"), group("old"), group("young")]);
    }

    #[test]
    fn who_comes_first_is_looked_at_first_when_room_is_made() {
        let mut line = Line::default();
        line.waits(&group("a"), 0, SECOND, 1, None);
        let free = Turn::Now { closed: None };
        assert_eq!(line.turn(&group("b"), 0, SECOND * 2, 1), free, "it fits beside what waits");
        assert_eq!(line.turn(&group("b"), 0, SECOND * 2, 2), Turn::AfterOthers);
        assert_eq!(line.turn(&group("b"), 1, SECOND * 2, 2), free, "it is more important");
        line.waits(&group("a"), 0, SECOND * 2, 2, None);
        assert_eq!(line.turn(&group("b"), 0, SECOND * 2, 2), free);
    }

    #[test]
    fn one_look_at_those_that_come_before_is_enough() {
        let mut line = Line::default();
        line.waits(&group("a"), 0, SECOND, 1, None);
        assert_eq!(line.turn(&group("b"), 0, SECOND * 2, 2), Turn::AfterOthers);
        line.joins(&group("b"), 0, SECOND * 2);
        assert_eq!(line.turn(&group("b"), 0, SECOND * 3, 3), Turn::AfterOthers);
        line.waits(&group("a"), 0, SECOND * 4, 3, None);
        let free = Turn::Now { closed: None };
        assert_eq!(line.turn(&group("b"), 0, SECOND * 5, 9), free, "however much was freed since");
        line.waits(&group("b"), 0, SECOND * 5, 9, None);
        assert_eq!(line.turn(&group("b"), 0, SECOND * 6, 10), Turn::AfterOthers, "the next time it asks anew");
    }

    #[test]
    fn a_large_batch_is_not_overtaken_for_ever() {
        let mut line = Line::default();
        line.waits(&group("large"), 0, SECOND, 1, Some(rack("r1")));
        line.waits(&group("other"), 0, SECOND * 2, 1, Some(rack("r2")));
        let closed = |now| match line.turn(&group("small"), 0, now, 1) {
            Turn::Now { closed } => closed.map(|closed| (closed.domain, closed.group)),
            Turn::AfterOthers => panic!("nothing was freed"),
        };
        assert_eq!(closed(KEEPS_AFTER), None, "not for long yet");
        assert_eq!(
            closed(KEEPS_AFTER + SECOND * 9),
            Some(("r1".to_owned(), group("large"))),
            "one domain, of the first"
        );
        let own = line.turn(&group("large"), 0, KEEPS_AFTER * 2, 1);
        assert_eq!(own, Turn::Now { closed: None }, "what is kept is kept for it");
    }
}
