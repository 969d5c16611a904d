//! How many Events are written about one object: a group of hundreds of segments, or one whose state goes to and fro, would fill
//! etcd with what its status says anyway. What an ordinary group of ten or twenty segments tells while it is scaled up and down is
//! well within it, which it is not within the 25 of controllers on client-go.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;

/// Events at once.
const BURST: u32 = 100;
/// After them, one in so long.
const REFILL: Duration = Duration::from_secs(60);
/// Objects that are remembered before those are looked for that may be forgotten.
const SWEPT_AT: usize = 4096;

/// What was written about each object. Warnings are counted apart, so that news leave room for them.
#[derive(Debug)]
pub struct EventLimit {
    /// By uid, and whether it is of warnings: when all that was written is made up for.
    made_up_at: HashMap<(String, bool), Instant>,
    sweep_at: usize,
}

impl Default for EventLimit {
    fn default() -> Self {
        Self { made_up_at: HashMap::new(), sweep_at: SWEPT_AT }
    }
}

impl EventLimit {
    /// Whether one more may be written about the object with this uid; if so it counts.
    pub fn allows(&mut self, uid: &str, warning: bool, now: Instant) -> bool {
        if self.made_up_at.len() >= self.sweep_at {
            self.made_up_at.retain(|_, at| *at > now);
            self.sweep_at = SWEPT_AT.max(self.made_up_at.len() * 2);
        }
        let at = self.made_up_at.entry((uid.to_owned(), warning)).or_insert(now);
        let with_this = (*at).max(now) + REFILL;
        let allowed = with_this.duration_since(now) <= REFILL * BURST;
        if allowed {
            *at = with_this;
        }
        allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many of a thousand Events at one time are written.
    fn written(limit: &mut EventLimit, uid: &str, warning: bool, now: Instant) -> usize {
        (0..1000).filter(|_| limit.allows(uid, warning, now)).count()
    }

    #[test]
    fn of_one_object_a_burst_is_written_and_then_one_in_a_minute() {
        let (mut limit, now) = (EventLimit::default(), Instant::now());
        assert_eq!(written(&mut limit, "a", false, now), 100);
        assert_eq!(written(&mut limit, "a", false, now + REFILL - Duration::from_secs(1)), 0);
        assert_eq!(written(&mut limit, "a", false, now + REFILL), 1);
        assert_eq!(written(&mut limit, "a", false, now + REFILL * 4), 3);
        assert_eq!(written(&mut limit, "a", false, now + REFILL * 1000), 100, "no more than a burst is saved up");
    }

    #[test]
    fn news_leave_room_for_warnings_and_one_object_for_another() {
        let (mut limit, now) = (EventLimit::default(), Instant::now());
        written(&mut limit, "a", false, now);
        assert_eq!(written(&mut limit, "a", true, now), 100);
        assert_eq!(written(&mut limit, "b", false, now), 100);
    }

    #[test]
    fn objects_about_which_nothing_is_written_any_more_are_forgotten() {
        let (mut limit, now) = (EventLimit::default(), Instant::now());
        written(&mut limit, "spent", false, now);
        for pod in 0..100_000_u32 {
            limit.allows(&pod.to_string(), false, now + REFILL / 2000 * pod);
        }
        assert!(limit.made_up_at.len() <= SWEPT_AT, "{} are remembered", limit.made_up_at.len());
    }
}
