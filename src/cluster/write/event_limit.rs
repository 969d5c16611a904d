//! How many Events are written about one object: a group of hundreds of segments, or one whose state goes to and fro, would fill
//! etcd with what its status says anyway. Each reason has a budget of its own, so that news of one kind leave room for another; what
//! an ordinary group of ten or twenty segments tells while it is scaled up and down is well within it, which it is not within the
//! 25 of controllers on client-go. A Warning that was not told yet is always written.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;

/// Events at once.
const BURST: u32 = 100;
/// After them, one in so long.
const REFILL: Duration = Duration::from_secs(60);
/// The API server keeps an Event for so long by default: a Warning that is older is a new one.
const KEPT: Duration = Duration::from_secs(3600);
/// What is remembered before it is looked for what may be forgotten.
const SWEPT_AT: usize = 4096;

/// An Event to be.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// Unique id of the object that it is about.
    pub uid: &'a str,
    /// Its reason.
    pub reason: &'a str,
    /// Its name: the same for the same reason and subject.
    pub name: &'a str,
    /// Somebody should see to it.
    pub warning: bool,
}

/// What was written about each object.
#[derive(Debug)]
pub struct EventLimit {
    /// By unique id and reason: when all that was written is made up for.
    made_up_at: HashMap<(String, String), Instant>,
    /// Warnings that were written, by their names, and until when they are there.
    told: HashMap<String, Instant>,
    sweep_at: usize,
}

impl Default for EventLimit {
    fn default() -> Self {
        Self { made_up_at: HashMap::new(), told: HashMap::new(), sweep_at: SWEPT_AT }
    }
}

impl EventLimit {
    /// Whether this one may be written; if so it counts.
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

    /// How many of a thousand Events at one time are written.
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
