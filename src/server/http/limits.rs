//! What a caller may take: time, bytes and connections.

use std::future::Future;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::Body;
use tokio::time::Instant;

/// Limits of one listener. [`Limits::default`] is meant for an admission webhook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// From TCP accept to the end of the TLS handshake.
    pub handshake: Duration,
    /// From the first byte of an HTTP/1 request to the end of its headers. Not counted while a kept-alive connection
    /// waits for its next request: that is [`Limits::idle`].
    pub header: Duration,
    /// Largest request body in bytes, for [`read_body`].
    pub body_bytes: usize,
    /// Longest time for a request body to arrive, for [`read_body`].
    pub body_time: Duration,
    /// How long a connection may stay open with no request in flight. Longer than the 90 s after which the API server
    /// closes an idle connection itself, so that we never close one just as it sends a request.
    pub idle: Duration,
    /// Replaces [`Limits::idle`] while every connection is taken: then idle ones make room for waiting ones.
    pub idle_when_full: Duration,
    /// How long one write may wait for a peer that does not read.
    pub write: Duration,
    /// Connections open at once; further ones wait in the kernel's backlog.
    pub connections: usize,
    /// HTTP/2 streams open at once on one connection.
    pub streams: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            handshake: Duration::from_secs(5),
            header: Duration::from_secs(5),
            // Two objects of 3 MiB (etcd's limit with its margin), one of them the old one, and 1 MiB for the envelope.
            body_bytes: 7 << 20,
            body_time: Duration::from_secs(10),
            idle: Duration::from_secs(120),
            idle_when_full: Duration::from_secs(1),
            write: Duration::from_secs(10),
            connections: 2048,
            streams: 128,
        }
    }
}

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
            Self::Broken(_) => http::StatusCode::BAD_REQUEST,
        }
    }
}

/// Reads a whole body of at most `limit` bytes that must be there before `deadline`.
///
/// An announced length over the limit is refused before a byte is read, and memory grows only with what has arrived, never
/// with what was announced.
///
/// # Errors
/// [`BodyError`], one kind for each limit.
pub async fn read_body<B>(body: B, limit: usize, deadline: Instant) -> Result<Bytes, BodyError>
where
    B: Body<Data = Bytes>,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    if usize::try_from(body.size_hint().lower()).map_or(true, |announced| announced > limit) {
        return Err(BodyError::TooLarge { limit });
    }
    within(deadline, collect(body, limit)).await
}

async fn within<T>(deadline: Instant, work: impl Future<Output = Result<T, BodyError>>) -> Result<T, BodyError> {
    tokio::time::timeout_at(deadline, work).await.unwrap_or(Err(BodyError::TooSlow))
}

async fn collect<B>(body: B, limit: usize) -> Result<Bytes, BodyError>
where
    B: Body<Data = Bytes>,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let mut body = std::pin::pin!(body);
    let mut first = Bytes::new();
    let mut rest = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|error| BodyError::Broken(error.into()))?.into_data() else { continue };
        if first.len() + rest.len() + data.len() > limit {
            return Err(BodyError::TooLarge { limit });
        }
        // Most reviews arrive in one frame, which then needs no copy.
        if first.is_empty() && rest.is_empty() {
            first = data;
        } else {
            if rest.is_empty() {
                rest.extend_from_slice(&std::mem::take(&mut first));
            }
            rest.extend_from_slice(&data);
        }
    }
    Ok(if rest.is_empty() { first } else { rest.freeze() })
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures::{StreamExt, stream};
    use http_body_util::{Empty, Full, StreamBody};
    use hyper::body::Frame;

    use super::*;

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(1)
    }

    fn frames(sizes: Vec<usize>) -> impl Body<Data = Bytes, Error = Infallible> {
        StreamBody::new(stream::iter(sizes).map(|size| Ok(Frame::data(Bytes::from(vec![b'x'; size])))))
    }

    #[tokio::test]
    async fn bodies_up_to_the_limit_are_read() {
        assert_eq!(read_body(Empty::<Bytes>::new(), 0, soon()).await.unwrap(), "");
        assert_eq!(read_body(Full::new(Bytes::from("1234")), 4, soon()).await.unwrap(), "1234");
        assert_eq!(read_body(frames(vec![3, 0, 4, 2]), 9, soon()).await.unwrap(), "xxxxxxxxx");
    }

    #[tokio::test]
    async fn one_byte_more_is_refused() {
        for body in [frames(vec![9]), frames(vec![4, 5])] {
            let error = read_body(body, 8, soon()).await.unwrap_err();
            assert!(matches!(error, BodyError::TooLarge { limit: 8 }), "{error}");
        }
    }

    #[tokio::test]
    async fn an_announced_length_is_refused_before_reading() {
        let body = Full::new(Bytes::from("12345"));
        assert_eq!(read_body(body, 4, soon()).await.unwrap_err().status(), 413);
    }

    #[tokio::test]
    async fn an_endless_body_ends_at_the_limit() {
        let endless =
            StreamBody::new(stream::repeat_with(|| Ok::<_, Infallible>(Frame::data(Bytes::from_static(&[0; 1024])))));
        assert!(matches!(read_body(endless, 1 << 20, soon()).await, Err(BodyError::TooLarge { .. })));
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_stops_is_given_up_at_the_deadline() {
        let stuck = StreamBody::new(
            stream::iter([Ok::<_, Infallible>(Frame::data(Bytes::from("{")))]).chain(stream::pending()),
        );
        let start = Instant::now();
        let error = read_body(stuck, 8, start + Duration::from_secs(3)).await.unwrap_err();
        assert_eq!((error.status().as_u16(), start.elapsed()), (408, Duration::from_secs(3)));
    }

    #[tokio::test]
    async fn a_broken_body_is_told_apart() {
        let broken = StreamBody::new(stream::iter([Err::<Frame<Bytes>, _>(std::io::Error::other("cut"))]));
        assert_eq!(read_body(broken, 8, soon()).await.unwrap_err().status(), 400);
    }
}
