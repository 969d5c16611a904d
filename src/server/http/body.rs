//! Request bodies, read within limits of size, time, and total memory.

use std::convert::Infallible;
use std::ops::Deref;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Body;
use tokio::time::{Instant, timeout_at};

use crate::server::http::limits::Limits;

/// Reason for which a request body could not be read.
#[derive(Debug, thiserror::Error)]
pub enum BodyError {
    /// More bytes than allowed were announced or sent: answer 413.
    #[error("request body may be at most {limit} bytes")]
    TooLarge {
        /// In bytes.
        limit: usize,
    },
    /// The body did not arrive before the deadline: answer 408.
    #[error("request body did not arrive in time")]
    TooSlow,
    /// All bodies together would take too much memory: answer 503.
    #[error("too many large requests at a time")]
    NoMemory,
    /// Other large requests took until the deadline: answer 503.
    #[error("large requests take too long")]
    NoTurn,
    /// The connection broke or the body was framed wrongly: answer 400, if the caller still listens.
    #[error("request body could not be read: {0}")]
    Broken(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl BodyError {
    /// Returns the HTTP status of the answer.
    pub fn status(&self) -> http::StatusCode {
        match self {
            Self::TooLarge { .. } => http::StatusCode::PAYLOAD_TOO_LARGE,
            Self::TooSlow => http::StatusCode::REQUEST_TIMEOUT,
            Self::NoMemory | Self::NoTurn => http::StatusCode::SERVICE_UNAVAILABLE,
            Self::Broken(_) => http::StatusCode::BAD_REQUEST,
        }
    }

    /// Every word of [`BodyError::as_str`].
    pub const REASONS: &[&str] = &["TooLarge", "TooSlow", "NoMemory", "NoTurn", "Broken"];

    /// Returns one word, for metrics.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::TooLarge { .. } => "TooLarge",
            Self::TooSlow => "TooSlow",
            Self::NoMemory => "NoMemory",
            Self::NoTurn => "NoTurn",
            Self::Broken(_) => "Broken",
        }
    }
}

/// Largest body that may use the memory reserved for small ones: the review of a usual pod.
const SMALL: usize = 16 << 10;

/// Longest time for reading a discarded body.
const DISCARD: Duration = Duration::from_secs(5);

/// Reader of the bodies of one listener. Clones share one memory.
#[derive(Clone, Debug)]
pub struct Bodies {
    limit: usize,
    time: Duration,
    memory: usize,
    used: Arc<AtomicUsize>,
}

impl Bodies {
    pub fn new(limits: &Limits) -> Self {
        let Limits { body_bytes, body_time, body_memory, .. } = *limits;
        Self { limit: body_bytes, time: body_time, memory: body_memory, used: Arc::default() }
    }

    /// Returns the number of buffered bytes.
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Reads a whole body. Memory grows only with received bytes, never with announced ones. The bytes count until the body
    /// is dropped. It is not read for longer than until `deadline`.
    ///
    /// A refused body that may end soon is first read and discarded: a caller that is still sending would lose the answer
    /// with the connection.
    ///
    /// # Errors
    /// [`BodyError`], one kind for each limit.
    pub async fn read<B>(&self, body: B, deadline: Instant) -> Result<BufferedBody, BodyError>
    where
        B: Body<Data = Bytes>,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let deadline = deadline.min(Instant::now() + self.time);
        let mut body = std::pin::pin!(body);
        let read = timeout_at(deadline, self.collect(body.as_mut())).await.unwrap_or(Err(BodyError::TooSlow));
        if matches!(read, Err(BodyError::NoMemory | BodyError::TooLarge { .. })) {
            _ = timeout_at(deadline.min(Instant::now() + DISCARD), self.discard(body)).await;
        }
        read
    }

    /// Reads the rest of a refused body, unless it exceeds the size limit.
    async fn discard<B: Body<Data = Bytes>>(&self, mut body: Pin<&mut B>) {
        let mut left = self.limit;
        while usize::try_from(body.size_hint().lower()).is_ok_and(|announced| announced <= left) {
            let Some(Ok(frame)) = body.frame().await else { return };
            let Some(after) = left.checked_sub(frame.data_ref().map_or(0, Bytes::len)) else { return };
            left = after;
        }
    }

    async fn collect<B>(&self, mut body: Pin<&mut B>) -> Result<BufferedBody, BodyError>
    where
        B: Body<Data = Bytes>,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let limit = self.limit;
        if usize::try_from(body.size_hint().lower()).map_or(true, |announced| announced > limit) {
            return Err(BodyError::TooLarge { limit });
        }
        let most = body.size_hint().upper().and_then(|most| usize::try_from(most).ok()).unwrap_or(limit);
        let mut reservation = Reservation { bodies: self.clone(), bytes: 0 };
        let mut read = Vec::new();
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame.map_err(|error| BodyError::Broken(error.into()))?.into_data() else { continue };
            let length = read.len() + data.len();
            if length > limit {
                return Err(BodyError::TooLarge { limit });
            }
            // Most reviews arrive in one frame, which needs no copy. A partial frame is copied at once: it would keep its
            // whole read buffer alive.
            if read.is_empty() && body.is_end_stream() {
                reservation.grow_to(length)?;
                return Ok(BufferedBody { bytes: data, reservation });
            }
            if length > read.capacity() {
                // Doubles, up to the announced length.
                let room = (2 * read.capacity()).min(most).max(length);
                // Both copies exist while the bytes move.
                let moved = if room > SMALL { read.capacity() } else { 0 };
                reservation.grow_to(room + moved)?;
                read.reserve_exact(room - read.len());
                reservation.become_of(room)?;
            }
            read.extend_from_slice(&data);
        }
        Ok(BufferedBody { bytes: read.into(), reservation })
    }

    /// Reserves bytes for a body of total length `length`. A quarter is reserved for small bodies, so that large ones do not
    /// block the admission of pods.
    fn take(&self, more: usize, length: usize) -> Result<(), BodyError> {
        let limit = if length <= SMALL { self.memory } else { self.memory - self.memory / 4 };
        let fits = |used: usize| used.checked_add(more).filter(|sum| *sum <= limit);
        let taken = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits);
        taken.map(|_| ()).map_err(|_| BodyError::NoMemory)
    }
}

/// Memory reserved by one body; a drop returns it.
#[derive(Debug)]
struct Reservation {
    bodies: Bodies,
    bytes: usize,
}

impl Reservation {
    fn grow_to(&mut self, length: usize) -> Result<(), BodyError> {
        if let Some(more) = length.checked_sub(self.bytes) {
            self.bodies.take(more, length)?;
            self.bytes = length;
        }
        Ok(())
    }

    /// Adjusts the reservation to another length.
    fn become_of(&mut self, length: usize) -> Result<(), BodyError> {
        self.bodies.used.fetch_sub(self.bytes.saturating_sub(length), Ordering::Relaxed);
        self.bytes = self.bytes.min(length);
        self.grow_to(length)
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.bodies.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// A complete body; its memory is returned with it.
#[derive(Debug)]
pub struct BufferedBody {
    bytes: Bytes,
    reservation: Reservation,
}

impl BufferedBody {
    /// Replaces the body by its answer, whose memory counts until the caller has received it.
    ///
    /// # Errors
    /// [`BodyError::NoMemory`] if there is no room for an answer that is longer than the body.
    pub fn answered(self, answer: impl Into<Bytes>) -> Result<impl Body<Data = Bytes, Error = Infallible>, BodyError> {
        let (answer, Self { bytes, mut reservation }) = (answer.into(), self);
        drop(bytes);
        reservation.become_of(answer.len())?;
        Ok(holding(Full::new(answer), reservation))
    }
}

/// Returns a body that keeps `guard` until it is dropped, which is when all of it is sent.
pub(super) fn holding<B: Body, G>(body: B, guard: G) -> impl Body<Data = B::Data, Error = B::Error> {
    body.map_frame(move |frame| {
        _ = &guard;
        frame
    })
}

impl Deref for BufferedBody {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use futures::{FutureExt, StreamExt, stream};
    use http_body_util::{Empty, StreamBody};
    use hyper::body::Frame;

    use super::*;

    fn bodies(body_bytes: usize) -> Bodies {
        Bodies::new(&Limits { body_bytes, body_time: Duration::from_secs(3), ..Limits::default() })
    }

    /// Returns a reader of bodies up to a tenth of the total memory.
    fn scarce(body_memory: usize) -> Bodies {
        Bodies::new(&Limits { body_bytes: body_memory / 10, body_memory, ..Limits::default() })
    }

    fn late() -> Instant {
        Instant::now() + Duration::from_secs(3600)
    }

    fn frames(sizes: Vec<usize>) -> impl Body<Data = Bytes, Error = Infallible> {
        StreamBody::new(stream::iter(sizes).map(|size| Ok(Frame::data(Bytes::from(vec![b'x'; size])))))
    }

    #[tokio::test]
    async fn bodies_up_to_the_limit_are_read() {
        assert_eq!(bodies(0).read(Empty::<Bytes>::new(), late()).await.unwrap()[..], *b"");
        assert_eq!(bodies(4).read(Full::new(Bytes::from("1234")), late()).await.unwrap()[..], *b"1234");
        assert_eq!(bodies(9).read(frames(vec![3, 0, 4, 2]), late()).await.unwrap()[..], *b"xxxxxxxxx");
    }

    #[tokio::test]
    async fn one_byte_more_is_refused() {
        for body in [frames(vec![9]), frames(vec![4, 5])] {
            let error = bodies(8).read(body, late()).await.unwrap_err();
            assert!(matches!(error, BodyError::TooLarge { limit: 8 }), "{error}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_stops_is_given_up_at_the_deadline() {
        let start = Instant::now();
        let error = bodies(8).read(unfinished(1), late()).await.unwrap_err();
        assert_eq!((error.status().as_u16(), start.elapsed()), (408, Duration::from_secs(3)));
    }

    #[tokio::test]
    async fn a_broken_body_is_told_apart() {
        let broken = StreamBody::new(stream::iter([Err::<Frame<Bytes>, _>(std::io::Error::other("cut"))]));
        assert_eq!(bodies(8).read(broken, late()).await.unwrap_err().status(), 400);
    }

    /// Sends some bytes and then nothing, so that they stay buffered.
    fn unfinished(bytes: usize) -> impl Body<Data = Bytes, Error = Infallible> {
        let sent = stream::iter([Ok(Frame::data(Bytes::from(vec![b'x'; bytes])))]);
        StreamBody::new(sent.chain(stream::pending()))
    }

    #[tokio::test]
    async fn all_together_take_no_more_than_their_memory_and_small_ones_pass_while_large_ones_take_all_they_may() {
        let bodies = scarce(1 << 20);
        let mut waiting: Vec<_> = (0..7).map(|_| Box::pin(bodies.read(unfinished(100_000), late()))).collect();
        assert!(waiting.iter_mut().all(|read| read.as_mut().now_or_never().is_none()));
        assert_eq!(bodies.read(frames(vec![100_000]), late()).await.unwrap_err().status(), 503);
        assert!(bodies.read(frames(vec![8_000, 8_000]), late()).await.is_ok());
        assert_eq!(bodies.used(), 700_000);
        drop(waiting);
        assert_eq!(bodies.used(), 0, "whoever goes gives back what was buffered");
        let whole = bodies.read(Full::new(Bytes::from(vec![b'x'; 100_000])), late()).await.unwrap();
        assert_eq!(bodies.used(), 100_000, "what is being answered still counts");
        drop(whole);
        assert_eq!(bodies.used(), 0);
    }

    #[tokio::test]
    async fn an_answer_counts_until_it_is_taken() {
        let bodies = scarce(1 << 20);
        let read = async || bodies.read(Full::new(Bytes::from(vec![b'x'; 100_000])), late()).await.unwrap();
        let mut answer = read().await.answered(vec![b'y'; 300]).unwrap();
        assert_eq!(bodies.used(), 300);
        assert_eq!(answer.frame().await.unwrap().unwrap().into_data().unwrap().len(), 300);
        assert!(answer.is_end_stream() && answer.frame().await.is_none());
        drop(answer);
        assert_eq!(bodies.used(), 0);
        assert_eq!(read().await.answered(vec![b'y'; 1 << 20]).err().unwrap().status(), 503);
        assert_eq!(bodies.used(), 0);
    }

    /// Returns a body, and the number of frames taken from it.
    fn counted(frames: usize, size: usize) -> (impl Body<Data = Bytes, Error = Infallible>, Arc<AtomicUsize>) {
        let taken = Arc::new(AtomicUsize::new(0));
        let counter = taken.clone();
        let body = StreamBody::new(stream::iter(0..frames).map(move |_| {
            counter.fetch_add(1, Ordering::Relaxed);
            Ok(Frame::data(Bytes::from(vec![b'x'; size])))
        }));
        (body, taken)
    }

    #[tokio::test]
    async fn what_is_refused_is_read_to_its_end_but_no_more_than_a_body_of_it() {
        for (frames, taken) in [(15, 15), (1000, 22)] {
            let (body, counter) = counted(frames, 100);
            assert_eq!(bodies(1000).read(body, late()).await.unwrap_err().status(), 413);
            assert_eq!(counter.load(Ordering::Relaxed), taken);
        }
    }
}
