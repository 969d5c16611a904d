//! Allocation of connection places under load.
//!
//! A new connection is a newcomer. It is proven once a review was read on it, or when its client certificate was allowed.
//! While all places of newcomers are taken, further connections wait in the kernel's backlog, and newcomers whose time is up
//! are displaced, oldest first. A proven connection is never displaced. So a flood of connections costs neither the
//! connections of the API server, idle ones included, nor long waits of new callers.
//!
//! The time of a newcomer counts its own delays, not those of the server: hundreds of concurrent handshakes take longer than
//! the time of one, and the API server itself causes such bursts. So the time passes no faster than the server looks.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::cluster::locked::locked;
use crate::server::http::limits::Limits;
use crate::server::http::timeouts::Timeouts;

/// Interval of looks for a newcomer whose time is up.
const LOOK: Duration = Duration::from_millis(20);

/// A look later than this means that the server was busy.
const LATE: Duration = Duration::from_millis(25);

/// An answer with this extension proves its connection.
#[derive(Clone, Copy, Debug)]
pub struct Proven;

/// The places of one listener. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    taken: Arc<Mutex<TakenPlaces>>,
    freed: Arc<Notify>,
    proven: Arc<Semaphore>,
    limits: Limits,
}

#[derive(Debug, Default)]
struct TakenPlaces {
    next: u64,
    /// In order of arrival.
    newcomers: BTreeMap<u64, Newcomer>,
    /// Time during which all places of newcomers were taken. Each pause counts for at most [`LATE`].
    waited: Duration,
}

#[derive(Debug)]
struct Newcomer {
    timeouts: Timeouts,
    /// [`TakenPlaces::waited`] at its arrival.
    came: Duration,
    ended: CancellationToken,
}

impl Places {
    pub(crate) fn new(limits: &Limits) -> Self {
        let proven = Arc::new(Semaphore::new(limits.connections.saturating_sub(limits.newcomers)));
        Self { taken: Arc::default(), freed: Arc::default(), proven, limits: *limits }
    }

    /// Reports whether every place of newcomers is taken.
    pub(crate) fn are_taken(&self) -> bool {
        locked(&self.taken).newcomers.len() >= self.limits.newcomers
    }

    /// Waits until a place is free, or a newcomer can be displaced.
    pub(crate) async fn one_more(&self) {
        while self.are_taken() && locked(&self.taken).first_to_go(&self.limits).is_none() {
            let begun = Instant::now();
            // Time passes without notice.
            _ = tokio::time::timeout(LOOK, self.freed.notified()).await;
            locked(&self.taken).waited += begun.elapsed().min(LATE);
        }
    }

    /// Takes a place for a newcomer; returns true with it if another one is displaced.
    pub(crate) fn take(&self, timeouts: Timeouts) -> (Place, bool) {
        let ended = CancellationToken::new();
        let mut taken = locked(&self.taken);
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
        (Place { places: self.clone(), number, ended, proven: OnceLock::new() }, displaced.is_some())
    }
}

impl TakenPlaces {
    /// Returns the oldest newcomer whose time is up.
    fn first_to_go(&self, limits: &Limits) -> Option<u64> {
        let has_had_its_time = |newcomer: &Newcomer| {
            newcomer.timeouts.waits_longer_than(limits.newcomer, self.waited.saturating_sub(newcomer.came))
        };
        self.newcomers.iter().find(|(_, newcomer)| has_had_its_time(newcomer)).map(|(number, _)| *number)
    }
}

/// The place of one connection; a drop frees it.
#[derive(Debug)]
pub(crate) struct Place {
    places: Places,
    number: u64,
    ended: CancellationToken,
    proven: OnceLock<OwnedSemaphorePermit>,
}

impl Place {
    /// Protects the connection from displacement, unless there are too many proven ones.
    pub(crate) fn prove(&self) {
        if self.proven.get().is_some() {
            return;
        }
        let Ok(permit) = Arc::clone(&self.places.proven).try_acquire_owned() else { return };
        // A displaced connection is no longer among them.
        if locked(&self.places.taken).newcomers.remove(&self.number).is_some() {
            _ = self.proven.set(permit);
            self.places.freed.notify_one();
        }
    }

    /// Returns a token that is cancelled when another connection needs the place.
    pub(crate) fn ended(&self) -> &CancellationToken {
        &self.ended
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        locked(&self.places.taken).newcomers.remove(&self.number);
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
        assert_eq!((places.proven.available_permits(), locked(&places.taken).newcomers.len()), (1, 2));
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
            // Another task kept the processor for so long.
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
