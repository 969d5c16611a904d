//! Limit of concurrent writes of pods, adapted to the API server. Writes beyond its capacity would only queue there, in front
//! of admission reviews and the requests of others.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use prometheus_client::metrics::gauge::Gauge;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use crate::cluster::locked::locked;

/// Smallest limit. One group whose writes are slow, because of a webhook of others, must not take every place.
const LEAST: usize = 16;
pub(super) const FIRST: usize = 32;
const MOST: usize = 512;
/// Answers within this time are never too slow, however fast earlier ones were.
const SOON: Duration = Duration::from_millis(100);

/// Permits for writes. Clones share one limit.
#[derive(Clone, Debug)]
pub(super) struct WriteLimit {
    places: Arc<Semaphore>,
    state: Arc<Mutex<State>>,
    shown: Gauge,
}

#[derive(Debug)]
struct State {
    window: Window,
    /// Places to be removed as soon as a write returns them.
    surplus: usize,
}

/// Load of the API server, as seen by the end of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Load {
    Answered,
    /// It answered that it is overloaded.
    Overloaded,
    /// No answer, as after a lost connection or with a slow webhook; tells nothing.
    Unknown,
}

/// The permit of one write; a drop frees its place.
#[derive(Debug)]
pub(super) struct Turn<'a> {
    limit: &'a WriteLimit,
    /// The semaphore is never closed; if it were, the write would go on without a place.
    place: Option<OwnedSemaphorePermit>,
    began: Instant,
    load: Load,
}

impl WriteLimit {
    /// Returns a limit that is shown in this gauge.
    pub fn new(shown: Gauge) -> Self {
        let state = State { window: Window::new(Instant::now()), surplus: 0 };
        let new = Self { places: Arc::new(Semaphore::new(FIRST)), state: Arc::new(Mutex::new(state)), shown };
        new.show(FIRST);
        new
    }

    fn show(&self, limit: usize) {
        self.shown.set(i64::try_from(limit).unwrap_or(i64::MAX));
    }

    pub async fn turn(&self) -> Turn<'_> {
        let place = Arc::clone(&self.places).acquire_owned().await.ok();
        Turn { limit: self, place, began: Instant::now(), load: Load::Unknown }
    }

    fn ended(&self, turn: &mut Turn<'_>) {
        let now = Instant::now();
        let mut state = locked(&self.state);
        let before = state.window.limit;
        state.window.ended(turn.began, now, turn.load, self.places.available_permits() == 0);
        let after = state.window.limit;
        if after > before {
            let more = after - before;
            let kept = more.min(state.surplus);
            state.surplus -= kept;
            self.places.add_permits(more - kept);
        }
        state.surplus += before.saturating_sub(after);
        if state.surplus > 0
            && let Some(place) = turn.place.take()
        {
            state.surplus -= 1;
            place.forget();
        }
        self.show(after);
    }
}

impl Turn<'_> {
    /// Ends the turn with the observed load.
    pub fn end(mut self, load: Load) {
        self.load = load;
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.limit.ended(self);
    }
}

/// The limit, and the observations since its last change.
#[derive(Debug)]
struct Window {
    limit: usize,
    since: Instant,
    /// Time of each answer.
    times: Vec<Duration>,
    /// True when a write had to wait for its turn.
    was_full: bool,
    /// Lowest median time of an answer.
    quickest: Option<Duration>,
}

impl Window {
    fn new(now: Instant) -> Self {
        Self { limit: FIRST, since: now, times: Vec::new(), was_full: false, quickest: None }
    }

    /// Counts the end of a write. After as many answers as the limit: raises it by a quarter if all places were taken and
    /// answers were fast, and lowers it by a quarter if they were slow. Halves it when the API server is overloaded; writes
    /// that were already in flight then do not count again.
    fn ended(&mut self, began: Instant, now: Instant, load: Load, is_full: bool) {
        match load {
            Load::Overloaded if began >= self.since => self.change(self.limit / 2, now),
            Load::Overloaded | Load::Unknown => {}
            Load::Answered => {
                self.was_full |= is_full;
                self.times.push(now - began);
                if self.times.len() >= self.limit {
                    self.judge(now);
                }
            }
        }
    }

    fn judge(&mut self, now: Instant) {
        self.times.sort_unstable();
        // The median: answers delayed by one webhook tell nothing about the others.
        let Some(usual) = self.times.get(self.times.len() / 2).copied() else { return };
        // With the least load, slow answers are the new normal.
        let quickest = self.quickest.filter(|quickest| *quickest < usual && self.limit > LEAST).unwrap_or(usual);
        self.quickest = Some(quickest);
        let soon = SOON.max(quickest * 2);
        let limit = match (usual <= soon, self.was_full) {
            (false, _) => self.limit - self.limit / 4,
            (true, true) if usual <= soon / 2 => self.limit + self.limit / 4,
            (true, _) => self.limit,
        };
        self.change(limit, now);
    }

    fn change(&mut self, limit: usize, now: Instant) {
        self.limit = limit.clamp(LEAST, MOST);
        self.since = now;
        self.times.clear();
        self.was_full = false;
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use futures::stream::{self, StreamExt};

    use super::*;

    /// An API server that processes a number of writes at a time, each for a fixed time; further ones queue. It refuses
    /// writes beyond its queue.
    struct Server {
        seats: Semaphore,
        time: Duration,
        queue: usize,
        in_flight: Cell<usize>,
        most: Cell<usize>,
        refused: Cell<usize>,
    }

    impl Server {
        fn new(seats: usize, time: Duration, queue: usize) -> Self {
            let (in_flight, most, refused) = (Cell::new(0), Cell::new(0), Cell::new(0));
            Self { seats: Semaphore::new(seats), time, queue, in_flight, most, refused }
        }

        async fn write(&self) -> Load {
            self.in_flight.set(self.in_flight.get() + 1);
            self.most.set(self.most.get().max(self.in_flight.get()));
            let load = if self.in_flight.get() > self.queue {
                self.refused.set(self.refused.get() + 1);
                Load::Overloaded
            } else {
                let _seat = self.seats.acquire().await;
                tokio::time::sleep(self.time).await;
                Load::Answered
            };
            self.in_flight.set(self.in_flight.get() - 1);
            load
        }
    }

    /// Sends so many writes, repeating refused ones. Returns the time that they took.
    async fn write(limit: &WriteLimit, server: &Server, count: usize) -> Duration {
        let begun = Instant::now();
        let one = async |_| loop {
            let turn = limit.turn().await;
            let load = server.write().await;
            turn.end(load);
            if load == Load::Answered {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        };
        stream::iter(0..count).map(one).buffer_unordered(count).collect::<Vec<_>>().await;
        begun.elapsed()
    }

    fn limit() -> WriteLimit {
        WriteLimit::new(Gauge::default())
    }

    #[tokio::test(start_paused = true)]
    async fn an_api_server_that_takes_more_gets_more() {
        let (limit, server) = (limit(), Server::new(300, Duration::from_millis(10), usize::MAX));
        let time = write(&limit, &server, 20_000).await;
        assert_eq!((server.most.get(), limit.shown.get()), (MOST, 512));
        // 300 at a time take 0.67 s; a fixed 64 would take 3.1 s.
        assert!(time < Duration::from_millis(1200), "{time:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn what_would_only_wait_at_the_api_server_is_not_sent() {
        let (limit, server) = (limit(), Server::new(2, Duration::from_millis(4), usize::MAX));
        let time = write(&limit, &server, 5_000).await;
        // 500 a second: no write waits there for more than a tenth of a second, and the server is never idle.
        assert!(server.most.get() <= 50, "{}", server.most.get());
        assert!(time <= Duration::from_millis(10_100), "{time:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn an_api_server_that_refuses_gets_fewer_and_has_done_all_in_the_end() {
        let (limit, server) = (limit(), Server::new(20, Duration::from_millis(5), 24));
        write(&limit, &server, 5_000).await;
        assert!(server.refused.get() < 500, "{} of 5000", server.refused.get());
        assert!(limit.shown.get() < 60, "{}", limit.shown.get());
        assert_eq!(server.in_flight.get(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn slow_answers_of_a_few_and_lost_ones_do_not_slow_the_others() {
        let (limit, server) = (limit(), Server::new(1000, Duration::from_millis(5), usize::MAX));
        let slow = Server::new(1000, Duration::from_secs(5), usize::MAX);
        let lost = async {
            let turn = limit.turn().await;
            tokio::time::sleep(Duration::from_secs(10)).await;
            turn.end(Load::Unknown);
        };
        let (time, _, ()) = tokio::join!(write(&limit, &server, 20_000), write(&limit, &slow, 10), lost);
        assert!(time < Duration::from_secs(1), "{time:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn places_are_as_many_as_the_limit_whatever_it_was_before() {
        let limit = limit();
        for (seats, queue) in [(500, usize::MAX), (2, 20), (500, usize::MAX), (2, usize::MAX)] {
            write(&limit, &Server::new(seats, Duration::from_millis(4), queue), 10_000).await;
            let state = limit.state.lock().unwrap();
            assert_eq!(limit.places.available_permits(), state.window.limit + state.surplus);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_write_that_is_dropped_leaves_its_place() {
        let limit = limit();
        for _ in 0..10 * MOST {
            drop(limit.turn().await);
        }
        assert_eq!((limit.places.available_permits(), limit.shown.get()), (FIRST, 32));
    }
}
