//! Timeouts of a connection, by its state.
//!
//! hyper starts its header timer while a kept-alive connection is idle, so it can't tell a slow request from no request.
//! Arriving bytes distinguish the two.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

use crate::server::http::limits::Limits;

/// The limit that a connection has exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Overdue {
    /// The headers of a request did not end.
    Header,
    Idle,
}

#[derive(Debug)]
struct ConnectionState {
    in_flight: usize,
    busy_since: Instant,
    quiet_since: Instant,
    head_since: Option<Instant>,
}

/// The state of one connection. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Timeouts(Arc<Mutex<ConnectionState>>);

impl Timeouts {
    pub(crate) fn new() -> Self {
        let now = Instant::now();
        Self(Arc::new(Mutex::new(ConnectionState {
            in_flight: 0,
            busy_since: now,
            quiet_since: now,
            head_since: None,
        })))
    }

    fn state(&self) -> MutexGuard<'_, ConnectionState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a request after its headers; it lasts until the guard is dropped.
    pub(crate) fn begin(&self) -> Busy {
        let mut state = self.state();
        if state.in_flight == 0 {
            state.busy_since = Instant::now();
        }
        state.in_flight += 1;
        state.head_since = None;
        Busy(self.clone())
    }

    /// Reports whether requests have been in flight for longer than `time`, or none for a quarter of it; any time counts for
    /// at most `most`.
    pub(crate) fn waits_longer_than(&self, time: Duration, most: Duration) -> bool {
        let state = self.state();
        let (since, time) = if state.in_flight > 0 { (state.busy_since, time) } else { (state.quiet_since, time / 4) };
        since.elapsed().min(most) > time
    }

    fn bytes_arrived(&self) {
        let mut state = self.state();
        if state.in_flight == 0 && state.head_since.is_none() {
            state.head_since = Some(Instant::now());
        }
    }

    /// Returns the time of the next check, and what is overdue then without a change.
    pub(crate) fn deadline(&self, limits: &Limits) -> (Instant, Option<Overdue>) {
        let state = self.state();
        match state.head_since {
            _ if state.in_flight > 0 => (Instant::now() + limits.idle, None),
            Some(since) => (since + limits.header, Some(Overdue::Header)),
            None => (state.quiet_since + limits.idle, Some(Overdue::Idle)),
        }
    }
}

#[derive(Debug)]
pub(crate) struct Busy(Timeouts);

impl Drop for Busy {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.in_flight = state.in_flight.saturating_sub(1);
        state.quiet_since = Instant::now();
        state.head_since = None;
    }
}

/// Longest wait for a peer to close a connection that the server has closed.
const LINGER: Duration = Duration::from_secs(1);
/// Number of consecutive reads of discarded bytes before other tasks run.
const READS: usize = 16;

/// A stream that reports arriving bytes to its [`Timeouts`], and gives up on a peer that does not read.
///
/// After its shutdown it waits for the peer to close as well, for at most [`LINGER`]. Data sent to a closed socket is
/// answered with a reset, which discards what the peer has not read yet. A caller with another request in flight would then
/// fail it, though it was told to use another connection.
pub(crate) struct TimedIo<I> {
    inner: I,
    timeouts: Timeouts,
    write_limit: Duration,
    stalled: Option<Pin<Box<Sleep>>>,
    lingers: Option<Pin<Box<Sleep>>>,
}

impl<I> TimedIo<I> {
    pub(crate) fn new(inner: I, timeouts: Timeouts, write_limit: Duration) -> Self {
        Self { inner, timeouts, write_limit, stalled: None, lingers: None }
    }

    fn writing<T>(&mut self, cx: &mut Context<'_>, result: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if result.is_ready() {
            self.stalled = None;
            return result;
        }
        let limit = self.write_limit;
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(tokio::time::sleep(limit)));
        ready!(stalled.as_mut().poll(cx));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "peer does not read")))
    }
}

impl<I: AsyncRead + Unpin> TimedIo<I> {
    /// Discards arriving bytes until the peer has closed.
    fn poll_closed(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let lingers = self.lingers.get_or_insert_with(|| Box::pin(tokio::time::sleep(LINGER)));
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
        result
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
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn slow_headers_and_no_request_are_told_apart() {
        let (limits, timeouts) = (Limits::default(), Timeouts::new());
        let start = Instant::now();
        assert_eq!(timeouts.deadline(&limits), (start + limits.idle, Some(Overdue::Idle)));
        tokio::time::advance(Duration::from_secs(60)).await;
        timeouts.bytes_arrived();
        let first = Instant::now();
        tokio::time::advance(Duration::from_secs(2)).await;
        timeouts.bytes_arrived();
        assert_eq!(timeouts.deadline(&limits), (first + limits.header, Some(Overdue::Header)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_in_flight_is_never_overdue_and_restarts_the_wait() {
        let (limits, timeouts) = (Limits::default(), Timeouts::new());
        timeouts.bytes_arrived();
        let (one, two) = (timeouts.begin(), timeouts.begin());
        tokio::time::advance(Duration::from_secs(500)).await;
        timeouts.bytes_arrived();
        drop(one);
        assert_eq!(timeouts.deadline(&limits).1, None);
        drop(two);
        assert_eq!(timeouts.deadline(&limits), (Instant::now() + limits.idle, Some(Overdue::Idle)));
    }

    #[tokio::test(start_paused = true)]
    async fn what_a_peer_still_sends_to_what_is_closed_is_taken() {
        let (ours, mut theirs) = tokio::io::duplex(8);
        let mut ours = TimedIo::new(ours, Timeouts::new(), Duration::from_secs(10));
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
        TimedIo::new(ours, Timeouts::new(), Duration::from_secs(10)).shutdown().await.unwrap();
        assert_eq!(start.elapsed(), LINGER);
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_does_not_read_is_given_up() {
        let (ours, mut theirs) = tokio::io::duplex(8);
        let mut ours = TimedIo::new(ours, Timeouts::new(), Duration::from_secs(10));
        ours.write_all(b"12345678").await.unwrap();
        let start = Instant::now();
        let error = ours.write_all(b"9").await.unwrap_err();
        assert_eq!((error.kind(), start.elapsed()), (io::ErrorKind::TimedOut, Duration::from_secs(10)));
        theirs.read_exact(&mut [0; 8]).await.unwrap();
        ours.write_all(b"9").await.unwrap();
    }
}
