//! Request bodies: read within bounds of size, of time, and of what all of them together may take.

use std::future::Future;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::Body;
use tokio::time::Instant;

use crate::server::http::limits::Limits;

/// Why a request body could not be read.
#[derive(Debug, thiserror::Error)]
pub enum BodyError {
    /// More bytes than allowed were announced or sent: answer 413.
    #[error("request body may be at most {limit} bytes")]
    TooLarge {
        /// The limit in bytes.
        limit: usize,
    },
    /// The body did not arrive before the deadline: answer 408.
    #[error("request body did not arrive in time")]
    TooSlow,
    /// All bodies together would take more memory than they may: answer 503.
    #[error("too many large requests at a time")]
    NoMemory,
    /// Other large requests took until the deadline: answer 503.
    #[error("large requests take too long")]
    NoTurn,
    /// The connection broke or the body was framed wrongly: answer 400, if anyone still listens.
    #[error("request body could not be read: {0}")]
    Broken(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl BodyError {
    /// The HTTP status that tells the caller.
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

    /// One word, for metrics.
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

/// A body up to this size may use what is kept back from larger ones: the review of a usual pod.
const SMALL: usize = 16 << 10;

/// Reads the bodies of all connections of one listener. Clones share one memory.
#[derive(Clone, Debug)]
pub struct Bodies {
    limit: usize,
    time: Duration,
    memory: usize,
    used: Arc<AtomicUsize>,
}

impl Bodies {
    /// Reads within these limits.
    pub fn new(limits: &Limits) -> Self {
        let Limits { body_bytes, body_time, body_memory, .. } = *limits;
        Self { limit: body_bytes, time: body_time, memory: body_memory, used: Arc::default() }
    }

    /// Bytes that are buffered now.
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Reads a whole body. An announced length over the limit is refused before a byte is read, and memory grows only with
    /// what has arrived, never with what was announced. What is read counts until it is dropped.
    ///
    /// # Errors
    /// [`BodyError`], one kind for each limit.
    pub async fn read<B>(&self, body: B) -> Result<BufferedBody, BodyError>
    where
        B: Body<Data = Bytes>,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let limit = self.limit;
        if usize::try_from(body.size_hint().lower()).map_or(true, |announced| announced > limit) {
            return Err(BodyError::TooLarge { limit });
        }
        within(Instant::now() + self.time, self.collect(body)).await
    }

    async fn collect<B>(&self, body: B) -> Result<BufferedBody, BodyError>
    where
        B: Body<Data = Bytes>,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let mut body = std::pin::pin!(body);
        let mut reservation = Reservation { bodies: self.clone(), bytes: 0 };
        let mut first = Bytes::new();
        let mut rest = BytesMut::new();
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame.map_err(|error| BodyError::Broken(error.into()))?.into_data() else { continue };
            let length = first.len() + rest.len() + data.len();
            if length > self.limit {
                return Err(BodyError::TooLarge { limit: self.limit });
            }
            reservation.grow_to(length)?;
            // Most reviews arrive in one frame, which then needs no copy.
            if first.is_empty() && rest.is_empty() {
                first = data;
            } else {
                if rest.is_empty() {
                    rest.extend_from_slice(&std::mem::take(&mut first));
                }
                rest.extend_from_slice(&data);
                // A buffer that grows takes more than what is in it.
                reservation.grow_to(rest.capacity())?;
            }
        }
        let bytes = if rest.is_empty() { first } else { rest.freeze() };
        Ok(BufferedBody { bytes, reservation })
    }

    /// Takes so many bytes more for a body that then has `length`. A quarter is kept back for small ones, so that large ones
    /// do not keep pods from being admitted.
    fn take(&self, more: usize, length: usize) -> Result<(), BodyError> {
        let limit = if length <= SMALL { self.memory } else { self.memory - self.memory / 4 };
        let fits = |used: usize| used.checked_add(more).filter(|sum| *sum <= limit);
        let taken = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits);
        taken.map(|_| ()).map_err(|_| BodyError::NoMemory)
    }
}

/// What one body has taken of the memory of all; given back when it is dropped.
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
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.bodies.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// A body that was read; its memory is given back with it.
#[derive(Debug)]
pub struct BufferedBody {
    bytes: Bytes,
    #[expect(dead_code, reason = "it acts when it is dropped")]
    reservation: Reservation,
}

impl Deref for BufferedBody {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

async fn within<T>(deadline: Instant, work: impl Future<Output = Result<T, BodyError>>) -> Result<T, BodyError> {
    tokio::time::timeout_at(deadline, work).await.unwrap_or(Err(BodyError::TooSlow))
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures::{FutureExt, StreamExt, stream};
    use http_body_util::{Empty, Full, StreamBody};
    use hyper::body::Frame;

    use super::*;

    fn bodies(body_bytes: usize) -> Bodies {
        Bodies::new(&Limits { body_bytes, body_time: Duration::from_secs(3), ..Limits::default() })
    }

    /// Bodies of up to a tenth of what may be buffered together.
    fn scarce(body_memory: usize) -> Bodies {
        Bodies::new(&Limits { body_bytes: body_memory / 10, body_memory, ..Limits::default() })
    }

    fn frames(sizes: Vec<usize>) -> impl Body<Data = Bytes, Error = Infallible> {
        StreamBody::new(stream::iter(sizes).map(|size| Ok(Frame::data(Bytes::from(vec![b'x'; size])))))
    }

    #[tokio::test]
    async fn bodies_up_to_the_limit_are_read() {
        assert_eq!(bodies(0).read(Empty::<Bytes>::new()).await.unwrap()[..], *b"");
        assert_eq!(bodies(4).read(Full::new(Bytes::from("1234"))).await.unwrap()[..], *b"1234");
        assert_eq!(bodies(9).read(frames(vec![3, 0, 4, 2])).await.unwrap()[..], *b"xxxxxxxxx");
    }

    #[tokio::test]
    async fn one_byte_more_is_refused() {
        for body in [frames(vec![9]), frames(vec![4, 5])] {
            let error = bodies(8).read(body).await.unwrap_err();
            assert!(matches!(error, BodyError::TooLarge { limit: 8 }), "{error}");
        }
    }

    #[tokio::test]
    async fn an_announced_length_is_refused_before_reading() {
        let body = Full::new(Bytes::from("12345"));
        assert_eq!(bodies(4).read(body).await.unwrap_err().status(), 413);
    }

    #[tokio::test]
    async fn an_endless_body_ends_at_the_limit() {
        let endless =
            StreamBody::new(stream::repeat_with(|| Ok::<_, Infallible>(Frame::data(Bytes::from_static(&[0; 1024])))));
        assert!(matches!(bodies(1 << 20).read(endless).await, Err(BodyError::TooLarge { .. })));
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_stops_is_given_up_at_the_deadline() {
        let stuck = StreamBody::new(
            stream::iter([Ok::<_, Infallible>(Frame::data(Bytes::from("{")))]).chain(stream::pending()),
        );
        let start = Instant::now();
        let error = bodies(8).read(stuck).await.unwrap_err();
        assert_eq!((error.status().as_u16(), start.elapsed()), (408, Duration::from_secs(3)));
    }

    #[tokio::test]
    async fn a_broken_body_is_told_apart() {
        let broken = StreamBody::new(stream::iter([Err::<Frame<Bytes>, _>(std::io::Error::other("cut"))]));
        assert_eq!(bodies(8).read(broken).await.unwrap_err().status(), 400);
    }

    /// Sends some bytes and then nothing, so that they stay buffered.
    fn unfinished(bytes: usize) -> impl Body<Data = Bytes, Error = Infallible> {
        let sent = stream::iter([Ok(Frame::data(Bytes::from(vec![b'x'; bytes])))]);
        StreamBody::new(sent.chain(stream::pending()))
    }

    #[tokio::test]
    async fn all_bodies_together_take_no_more_than_their_memory() {
        let bodies = scarce(1 << 20);
        let mut waiting = Vec::new();
        let refused = loop {
            let mut read = Box::pin(bodies.read(unfinished(100_000)));
            match read.as_mut().now_or_never() {
                None => waiting.push(read),
                Some(answer) => break answer.unwrap_err(),
            }
        };
        assert_eq!((refused.status().as_u16(), waiting.len()), (503, 7));
        assert!(bodies.used() <= 1 << 20);
        drop(waiting);
        assert_eq!(bodies.used(), 0, "whoever goes gives back what was buffered");
        let whole = bodies.read(Full::new(Bytes::from(vec![b'x'; 100_000]))).await.unwrap();
        assert_eq!(bodies.used(), 100_000, "what is being answered still counts");
        drop(whole);
        assert_eq!(bodies.used(), 0);
    }

    #[tokio::test]
    async fn small_bodies_pass_while_large_ones_take_all_that_they_may() {
        let bodies = scarce(1 << 20);
        let mut large: Vec<_> = (0..7).map(|_| Box::pin(bodies.read(unfinished(100_000)))).collect();
        assert!(large.iter_mut().all(|read| read.as_mut().now_or_never().is_none()));
        assert_eq!(bodies.read(frames(vec![100_000])).await.unwrap_err().status(), 503);
        assert!(bodies.read(frames(vec![8_000, 8_000])).await.is_ok());
    }
}
