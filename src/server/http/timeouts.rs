//! Timeouts of a connection, by its state.
//!
//! hyper's timer for headers also runs while a kept-alive connection is idle, so it can't tell a slow request from no request.
//! Arriving bytes distinguish the two.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep, sleep_until};

use crate::cluster::locked::locked;
use crate::server::http::limits::Limits;

#[derive(Debug)]
struct ConnectionState {
    /// True while a request is in flight.
    busy: bool,
    /// Start of the request in flight, or of the time without one.
    since: Instant,
    /// Arrival of the first byte of the next request.
    head_since: Option<Instant>,
}

impl ConnectionState {
    fn new(busy: bool) -> Self {
        Self { busy, since: Instant::now(), head_since: None }
    }
}

/// The state of one connection. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Timeouts(Arc<Mutex<ConnectionState>>);

impl Timeouts {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Mutex::new(ConnectionState::new(false))))
    }

    /// Begins a request after its headers; it lasts until the guard is dropped.
    pub(crate) fn begin(&self) -> Busy {
        *locked(&self.0) = ConnectionState::new(true);
        Busy(self.clone())
    }

    /// Reports whether a request has been in flight for longer than `time`, or none for a quarter of it; any time counts for
    /// at most `most`.
    pub(crate) fn waits_longer_than(&self, time: Duration, most: Duration) -> bool {
        let state = locked(&self.0);
        state.since.elapsed().min(most) > if state.busy { time } else { time / 4 }
    }

    fn bytes_arrived(&self) {
        let mut state = locked(&self.0);
        if !state.busy {
            state.head_since.get_or_insert_with(Instant::now);
        }
    }

    /// Returns the time at which the peer counts as gone, unless something happens.
    fn deadline(&self, limits: &Limits) -> Instant {
        let state = locked(&self.0);
        let quiet_since = if state.busy { Instant::now() } else { state.since };
        state.head_since.map_or(quiet_since + limits.idle, |since| since + limits.header)
    }
}

#[derive(Debug)]
pub(crate) struct Busy(Timeouts);

impl Drop for Busy {
    fn drop(&mut self) {
        *locked(&self.0.0) = ConnectionState::new(false);
    }
}

/// Longest wait for a peer to close a connection that the server has closed.
const LINGER: Duration = Duration::from_secs(1);
/// Number of consecutive reads of discarded bytes before other tasks run.
const READS: usize = 16;

/// A stream that ends for a peer that is overdue, and fails for one that does not read.
///
/// After its shutdown it waits for the peer to close as well, for at most [`LINGER`]. Data sent to a closed socket is
/// answered with a reset, which discards what the peer has not read yet: the answer to a request that was not read to its end.
pub(crate) struct TimedIo<I> {
    inner: I,
    timeouts: Timeouts,
    limits: Limits,
    overdue: Option<Pin<Box<Sleep>>>,
    stalled: Option<Pin<Box<Sleep>>>,
    lingers: Option<Pin<Box<Sleep>>>,
}

impl<I> TimedIo<I> {
    pub(crate) fn new(inner: I, timeouts: Timeouts, limits: &Limits) -> Self {
        Self { inner, timeouts, limits: *limits, overdue: None, stalled: None, lingers: None }
    }

    /// Waits until the peer is overdue.
    fn poll_overdue(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            let deadline = self.timeouts.deadline(&self.limits);
            let timer = self.overdue.get_or_insert_with(|| Box::pin(sleep_until(deadline)));
            // A later deadline is found when the timer fires, so that a busy connection does not reset it each time.
            if deadline < timer.deadline() || timer.is_elapsed() {
                timer.as_mut().reset(deadline);
            }
            ready!(timer.as_mut().poll(cx));
            if deadline <= Instant::now() {
                return Poll::Ready(());
            }
        }
    }

    fn writing<T>(&mut self, cx: &mut Context<'_>, result: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if result.is_ready() {
            self.stalled = None;
            return result;
        }
        let limit = self.limits.write;
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(sleep(limit)));
        ready!(stalled.as_mut().poll(cx));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "peer does not read")))
    }
}

impl<I: AsyncRead + Unpin> TimedIo<I> {
    /// Discards arriving bytes until the peer has closed.
    fn poll_closed(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let lingers = self.lingers.get_or_insert_with(|| Box::pin(sleep(LINGER)));
        for _ in 0..READS {
            let mut thrown = [0; 4 << 10];
            let mut thrown = ReadBuf::new(&mut thrown);
            match Pin::new(&mut self.inner).poll_read(cx, &mut thrown) {
                Poll::Ready(Ok(())) if !thrown.filled().is_empty() => {}
                Poll::Ready(_) => return Poll::Ready(()),
                Poll::Pending => return lingers.as_mut().poll(cx),
            }
        }
        // More bytes are left: other tasks first.
        cx.waker().wake_by_ref();
        lingers.as_mut().poll(cx)
    }
}

impl<I: AsyncRead + Unpin> AsyncRead for TimedIo<I> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buf.filled().len();
        let result = Pin::new(&mut this.inner).poll_read(cx, buf);
        if buf.filled().len() > before {
            this.timeouts.bytes_arrived();
        }
        // An empty read is the end of the stream.
        if result.is_pending() { this.poll_overdue(cx).map(Ok) } else { result }
    }
}

impl<I: AsyncRead + AsyncWrite + Unpin> AsyncWrite for TimedIo<I> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let result = Pin::new(&mut this.inner).poll_write(cx, buf);
        this.writing(cx, result)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let result = Pin::new(&mut this.inner).poll_flush(cx);
        this.writing(cx, result)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.lingers.is_none() {
            let result = Pin::new(&mut this.inner).poll_shutdown(cx);
            ready!(this.writing(cx, result))?;
        }
        this.poll_closed(cx).map(Ok)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let result = Pin::new(&mut this.inner).poll_write_vectored(cx, bufs);
        this.writing(cx, result)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

    use super::*;

    /// Returns the time until the stream ends.
    async fn ends(ours: &mut TimedIo<DuplexStream>) -> Duration {
        let start = Instant::now();
        assert_eq!(ours.read(&mut [0; 8]).await.unwrap(), 0);
        start.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn slow_headers_and_no_request_are_told_apart() {
        let (ours, mut theirs) = tokio::io::duplex(8);
        let limits = Limits::default();
        let mut ours = TimedIo::new(ours, Timeouts::new(), &limits);
        assert_eq!(ends(&mut ours).await, limits.idle);
        ours.timeouts = Timeouts::new();
        tokio::time::advance(Duration::from_secs(60)).await;
        for _ in 0..2 {
            theirs.write_all(b"a").await.unwrap();
            ours.read_exact(&mut [0]).await.unwrap();
            tokio::time::advance(Duration::from_secs(2)).await;
        }
        assert_eq!(ends(&mut ours).await + Duration::from_secs(4), limits.header);
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_in_flight_is_never_overdue_and_restarts_the_wait() {
        let (ours, mut theirs) = tokio::io::duplex(8);
        let limits = Limits::default();
        let mut ours = TimedIo::new(ours, Timeouts::new(), &limits);
        theirs.write_all(b"a").await.unwrap();
        ours.read_exact(&mut [0]).await.unwrap();
        let request = ours.timeouts.begin();
        theirs.write_all(b"a").await.unwrap();
        ours.read_exact(&mut [0]).await.unwrap();
        let waited = tokio::time::timeout(Duration::from_secs(500), ours.read(&mut [0])).await;
        assert!(waited.is_err(), "{waited:?}");
        drop(request);
        assert_eq!(ends(&mut ours).await, limits.idle);
    }

    #[tokio::test(start_paused = true)]
    async fn what_a_peer_still_sends_to_what_is_closed_is_taken() {
        let (ours, mut theirs) = tokio::io::duplex(8);
        let mut ours = TimedIo::new(ours, Timeouts::new(), &Limits::default());
        let closing = tokio::spawn(async move {
            let start = Instant::now();
            ours.shutdown().await.map(|()| start.elapsed())
        });
        assert_eq!(theirs.read(&mut [0; 8]).await.unwrap(), 0, "it is closed at once");
        theirs.write_all(&vec![0; 64 << 10]).await.unwrap();
        drop(theirs);
        assert_eq!(closing.await.unwrap().unwrap(), Duration::ZERO);
        // A peer that does not close is not awaited longer.
        let (ours, _theirs) = tokio::io::duplex(8);
        let start = Instant::now();
        TimedIo::new(ours, Timeouts::new(), &Limits::default()).shutdown().await.unwrap();
        assert_eq!(start.elapsed(), LINGER);
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_does_not_read_is_given_up() {
        let (ours, mut theirs) = tokio::io::duplex(8);
        let mut ours = TimedIo::new(ours, Timeouts::new(), &Limits::default());
        ours.write_all(b"12345678").await.unwrap();
        let start = Instant::now();
        let error = ours.write_all(b"9").await.unwrap_err();
        assert_eq!((error.kind(), start.elapsed()), (io::ErrorKind::TimedOut, Duration::from_secs(10)));
        theirs.read_exact(&mut [0; 8]).await.unwrap();
        ours.write_all(b"9").await.unwrap();
    }
}
