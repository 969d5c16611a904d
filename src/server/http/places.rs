//! Who has a place when not all can have one.
//!
//! A connection comes as a newcomer, and is proven once a review that came on it was read (or when its client certificate was
//! allowed). While all places of newcomers are taken, those who come next wait in the kernel's backlog, and the newcomers who
//! have had their time make room, the first first. One that is proven never makes room for another. So a flood of connections
//! costs neither the API server's connections, idle ones included, nor long waits to whoever comes anew.
//!
//! The time of a newcomer is what it makes us wait, and not what we make it wait: hundreds of handshakes at once take longer than
//! one has, and it is an API server's own burst that asks for them. So that time passes no faster than we get round to look.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::server::http::limits::Limits;
use crate::server::http::timeouts::Timeouts;

/// Between two looks whether a newcomer has had its time.
const LOOK: Duration = Duration::from_millis(20);

/// Whoever looks later than this was busy with others, who therefore waited for us.
const LATE: Duration = Duration::from_millis(25);

/// An answer with this extension proves its connection.
#[derive(Clone, Copy, Debug)]
pub struct Proven;

/// The places of one listener. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    taken: Arc<Mutex<Taken>>,
    freed: Arc<Notify>,
    limits: Limits,
}

#[derive(Debug, Default)]
struct Taken {
    next: u64,
    /// In the order in which they came.
    newcomers: BTreeMap<u64, Newcomer>,
    proven: usize,
    /// Time that has passed while all places of newcomers were taken, of which no pause counts for more than [`LATE`].
    waited: Duration,
}

#[derive(Debug)]
struct Newcomer {
    timeouts: Timeouts,
    /// [`Taken::waited`] when it came.
    came: Duration,
    ended: CancellationToken,
}

impl Places {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self { taken: Arc::default(), freed: Arc::default(), limits: *limits }
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether every place of newcomers is taken.
    pub(crate) fn are_taken(&self) -> bool {
        self.taken().newcomers.len() >= self.limits.newcomers
    }

    /// Waits until one more can be let in: one place is free, or somebody can make room.
    pub(crate) async fn one_more(&self) {
        while self.are_taken() && self.taken().first_to_go(&self.limits).is_none() {
            let begun = Instant::now();
            // Time passes without notice.
            _ = tokio::time::timeout(LOOK, self.freed.notified()).await;
            self.taken().waited += begun.elapsed().min(LATE);
        }
    }

    /// A place for a newcomer; true with it if another one has to go for it.
    pub(crate) fn take(&self, timeouts: Timeouts) -> (Place, bool) {
        let ended = CancellationToken::new();
        let mut taken = self.taken();
        let full = taken.newcomers.len() >= self.limits.newcomers;
        let goes = full.then(|| taken.first_to_go(&self.limits)).flatten();
        let displaced = goes.and_then(|first| taken.newcomers.remove(&first));
        let number = taken.next;
        taken.next += 1;
        let came = taken.waited;
        taken.newcomers.insert(number, Newcomer { timeouts, came, ended: ended.clone() });
        drop(taken);
        if let Some(displaced) = &displaced {
            displaced.ended.cancel();
        }
        (Place { places: self.clone(), number, ended, proven: Mutex::new(false) }, displaced.is_some())
    }
}

impl Taken {
    /// The newcomer who came first of those who have had their time.
    fn first_to_go(&self, limits: &Limits) -> Option<u64> {
        let has_had_its_time = |newcomer: &Newcomer| {
            newcomer.timeouts.waits_longer_than(limits.newcomer, self.waited.saturating_sub(newcomer.came))
        };
        self.newcomers.iter().find(|(_, newcomer)| has_had_its_time(newcomer)).map(|(number, _)| *number)
    }
}

/// The place of one connection; given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    places: Places,
    number: u64,
    ended: CancellationToken,
    proven: Mutex<bool>,
}

impl Place {
    /// From now on it makes room for nobody; while there are too many of these it stays what it is.
    pub(crate) fn prove(&self) {
        let mut proven = self.proven.lock().unwrap_or_else(PoisonError::into_inner);
        if *proven {
            return;
        }
        let limits = &self.places.limits;
        let mut taken = self.places.taken();
        let room = taken.proven < limits.connections.saturating_sub(limits.newcomers);
        // One that has to go is not among them any longer.
        if room && taken.newcomers.remove(&self.number).is_some() {
            taken.proven += 1;
            *proven = true;
            drop(taken);
            self.places.freed.notify_one();
        }
    }

    /// Cancelled when another connection needs the place.
    pub(crate) fn ended(&self) -> &CancellationToken {
        &self.ended
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let proven = *self.proven.get_mut().unwrap_or_else(PoisonError::into_inner);
        let mut taken = self.places.taken();
        if proven {
            taken.proven = taken.proven.saturating_sub(1);
        } else {
            taken.newcomers.remove(&self.number);
        }
        drop(taken);
        self.places.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    fn places() -> Places {
        let newcomer = Duration::from_secs(1);
        Places::new(&Limits { connections: 3, newcomers: 2, newcomer, ..Limits::default() })
    }

    fn newcomer(places: &Places) -> (Place, bool) {
        places.take(Timeouts::new())
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_newcomer_goes_once_it_has_had_its_time() {
        let places = places();
        let (first, second) = (newcomer(&places).0, newcomer(&places).0);
        assert!(places.one_more().now_or_never().is_none(), "both have just come");
        tokio::time::advance(Duration::from_millis(1001)).await;
        places.one_more().await;
        let (third, displaced) = newcomer(&places);
        assert!(displaced && first.ended().is_cancelled() && !second.ended().is_cancelled());
        drop((first, third));
        assert!(!places.are_taken());
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_proven_stays_and_no_more_than_there_is_room_for() {
        let places = places();
        let (first, second) = (newcomer(&places).0, newcomer(&places).0);
        first.prove();
        first.prove();
        second.prove();
        assert!(!places.are_taken(), "one is proven, and there is room for no other");
        let _third = newcomer(&places).0;
        tokio::time::advance(Duration::from_secs(60)).await;
        places.one_more().await;
        let (_fourth, displaced) = newcomer(&places);
        assert!(displaced && second.ended().is_cancelled() && !first.ended().is_cancelled());
        second.prove();
        drop(first);
        let taken = places.taken();
        assert_eq!((taken.proven, taken.newcomers.len()), (0, 2));
        // The places of those that are left are given back after this.
        drop(taken);
    }

    #[tokio::test(start_paused = true)]
    async fn time_in_which_nobody_got_round_to_look_counts_for_nobody() {
        let places = places();
        let (first, _second) = (newcomer(&places).0, newcomer(&places).0);
        for _ in 0..9 {
            assert!(places.one_more().now_or_never().is_none());
            let look = tokio::spawn({
                let places = places.clone();
                async move { places.one_more().await }
            });
            tokio::task::yield_now().await;
            // Somebody else kept the processor for so long.
            tokio::time::advance(Duration::from_millis(400)).await;
            tokio::task::yield_now().await;
            assert!(!look.is_finished() && !first.ended().is_cancelled());
            look.abort();
        }
        places.one_more().await;
        assert!(newcomer(&places).1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_has_more_time_than_silence() {
        let places = places();
        let (asking, timeouts) = (Timeouts::new(), Timeouts::new());
        let (busy, _) = places.take(asking.clone());
        let (silent, _) = places.take(timeouts);
        let request = asking.begin();
        tokio::time::advance(Duration::from_millis(300)).await;
        places.one_more().await;
        let (_third, displaced) = newcomer(&places);
        assert!(displaced && silent.ended().is_cancelled() && !busy.ended().is_cancelled());
        drop(request);
    }
}
