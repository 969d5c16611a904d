//! Limits of Events per object. A group of hundreds of segments, or one whose state flaps, would fill etcd with what its
//! status says anyway. Each reason has its own budget, so that one reason does not use up that of another. A group of ten or
//! twenty segments stays well within the budget while it is scaled up and down; it would exceed the 25 that client-go allows.
//! A new Warning is always written.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;

/// Events of one reason at once.
const BURST: u32 = 100;
/// Interval of one further Event after a burst.
const REFILL: Duration = Duration::from_secs(60);
/// Lifetime of an Event in the API server by default. A Warning that is older is written again.
const KEPT: Duration = Duration::from_secs(3600);
/// Number of entries at which expired ones are removed.
const SWEPT_AT: usize = 4096;

/// An Event to be written.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// Uid of the regarded object.
    pub uid: &'a str,
    pub reason: &'a str,
    /// Name of the Event: equal for equal reason and subject.
    pub name: &'a str,
    /// True for the type Warning.
    pub warning: bool,
}

/// The budgets of all objects.
#[derive(Debug)]
pub struct EventLimit {
    /// By uid and reason: when the budget is full again.
    made_up_at: HashMap<(String, String), Instant>,
    /// Names of written Warnings, and the time until which the API server keeps them.
    told: HashMap<String, Instant>,
    sweep_at: usize,
}

impl Default for EventLimit {
    fn default() -> Self {
        Self { made_up_at: HashMap::new(), told: HashMap::new(), sweep_at: SWEPT_AT }
    }
}

impl EventLimit {
    /// Reports whether an Event may be written, and counts it if so.
    pub fn allows(&mut self, asked: Asked<'_>, now: Instant) -> bool {
        if self.made_up_at.len() + self.told.len() >= self.sweep_at {
            self.made_up_at.retain(|_, at| *at > now);
            self.told.retain(|_, until| *until > now);
            self.sweep_at = SWEPT_AT.max((self.made_up_at.len() + self.told.len()) * 2);
        }
        let is_told = self.told.get(asked.name).is_some_and(|until| *until > now);
        let at = self.made_up_at.entry((asked.uid.to_owned(), asked.reason.to_owned())).or_insert(now);
        let with_this = (*at).max(now) + REFILL;
        let within = with_this.duration_since(now) <= REFILL * BURST;
        if within {
            *at = with_this;
        }
        let allowed = within || asked.warning && !is_told;
        if allowed && asked.warning {
            self.told.insert(asked.name.to_owned(), now + KEPT);
        }
        allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked<'a>(uid: &'a str, reason: &'a str, name: &'a str) -> Asked<'a> {
        Asked { uid, reason, name, warning: false }
    }

    fn warning<'a>(uid: &'a str, reason: &'a str, name: &'a str) -> Asked<'a> {
        Asked { warning: true, ..asked(uid, reason, name) }
    }

    /// Returns how many of a thousand Events at one time are written.
    fn written(limit: &mut EventLimit, asked: Asked<'_>, now: Instant) -> usize {
        (0..1000).filter(|_| limit.allows(asked, now)).count()
    }

    #[test]
    fn of_one_object_and_reason_a_burst_is_written_and_then_one_in_a_minute() {
        let (mut limit, now) = (EventLimit::default(), Instant::now());
        let released = asked("a", "Released", "a.1");
        assert_eq!(written(&mut limit, released, now), 100);
        assert_eq!(written(&mut limit, released, now + REFILL - Duration::from_secs(1)), 0);
        assert_eq!(written(&mut limit, released, now + REFILL), 1);
        assert_eq!(written(&mut limit, released, now + REFILL * 4), 3);
        assert_eq!(written(&mut limit, released, now + REFILL * 1000), 100, "no more than a burst is saved up");
    }

    #[test]
    fn one_reason_leaves_room_for_another_and_one_object_for_another() {
        let (mut limit, now) = (EventLimit::default(), Instant::now());
        written(&mut limit, asked("a", "Released", "a.1"), now);
        assert_eq!(written(&mut limit, asked("a", "RolloutAdvanced", "a.2"), now), 100);
        assert_eq!(written(&mut limit, warning("a", "NoRoom", "a.3"), now), 100);
        assert_eq!(written(&mut limit, asked("b", "Released", "b.1"), now), 100);
    }

    #[test]
    fn a_warning_that_was_not_told_yet_is_always_written() {
        let (mut limit, now) = (EventLimit::default(), Instant::now());
        written(&mut limit, warning("a", "RolloutStalled", "a.prefill-3"), now);
        assert_eq!(written(&mut limit, warning("a", "RolloutStalled", "a.decode-1"), now), 1);
        assert_eq!(written(&mut limit, warning("a", "RolloutStalled", "a.prefill-3"), now), 0);
        assert_eq!(written(&mut limit, asked("a", "RolloutStalled", "a.news"), now), 0);
        let later = now + KEPT;
        written(&mut limit, warning("a", "RolloutStalled", "a.other"), later);
        assert!(limit.allows(warning("a", "RolloutStalled", "a.prefill-3"), later), "the one before is gone by now");
    }

    #[test]
    fn what_is_old_is_forgotten() {
        let (mut limit, now) = (EventLimit::default(), Instant::now());
        written(&mut limit, asked("spent", "Released", "spent"), now);
        for pod in 0..100_000_u32 {
            let (uid, at) = (pod.to_string(), now + REFILL / 2000 * pod);
            limit.allows(asked(&uid, "Released", &uid), at);
        }
        assert!(limit.made_up_at.len() <= SWEPT_AT, "{} are remembered", limit.made_up_at.len());
        for pod in 0..100_000_u32 {
            let (uid, at) = (pod.to_string(), now + REFILL * 100 + KEPT / 1000 * pod);
            limit.allows(warning(&uid, "NoRoom", &uid), at);
        }
        assert!(limit.told.len() <= SWEPT_AT, "{} are remembered", limit.told.len());
    }
}
