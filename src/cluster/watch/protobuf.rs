//! Protobuf for watches of pods and nodes. The API server encodes JSON anew for each object and caller, which takes most of
//! the startup time with a hundred thousand pods. Readers get JSON as always.
//!
//! An unreadable message is logged once; all later watches use JSON.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use http::header::{ACCEPT, CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderValue, Method, Request, Response, Uri};
use http_body_util::{BodyExt, Limited};
use hyper::body::{Body, Frame};
use kube::client::Body as RequestBody;
use tower::{BoxError, Service};

use crate::api::protobuf::{Unread, object, write_event};
use crate::cluster::watch::is_watch;

/// Protobuf, or else JSON.
const ACCEPTED: HeaderValue =
    HeaderValue::from_static("application/vnd.kubernetes.protobuf;stream=watch,application/json");
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// Largest frame: ten times the largest object.
const LARGEST_FRAME: usize = 16 << 20;
/// Largest body of a failed watch.
const LARGEST_STATUS: usize = 1 << 20;
/// Capacity of the buffer kept between frames.
const KEPT: usize = 64 << 10;

/// Whether protobuf was understood so far. Clones fall back to JSON together.
#[derive(Clone, Debug, Default)]
pub struct Protobuf {
    given_up: Arc<AtomicBool>,
}

/// Requests protobuf where it can be read, and converts the answers to JSON.
#[derive(Clone, Debug)]
pub struct Asking<S> {
    pub inner: S,
    pub protobuf: Protobuf,
}

/// Reports whether all events of a request have a schema: watches of pods and nodes of the cluster, and of pods of a
/// namespace.
fn is_readable(method: &Method, uri: &Uri) -> bool {
    let path: Vec<_> = uri.path().split('/').collect();
    let has_schema =
        matches!(path[..], ["", "api", "v1", "pods" | "nodes"] | ["", "api", "v1", "namespaces", _, "pods"]);
    has_schema && is_watch(uri) && method == Method::GET
}

fn is_protobuf<B>(answer: &Response<B>) -> bool {
    let kind = answer.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    kind.is_some_and(|kind| kind.starts_with(PROTOBUF))
}

impl<S, B> Service<Request<RequestBody>> for Asking<S>
where
    S: Service<Request<RequestBody>, Response = Response<B>>,
    S::Future: Send + 'static,
    S::Error: Into<BoxError>,
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<Answered<B>>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, mut request: Request<RequestBody>) -> Self::Future {
        if !is_readable(request.method(), request.uri()) || self.protobuf.given_up.load(Ordering::Relaxed) {
            let answer = self.inner.call(request);
            return async { Ok(answer.await.map_err(Into::into)?.map(Answered::AsItIs)) }.boxed();
        }
        request.headers_mut().insert(ACCEPT, ACCEPTED);
        let (answer, protobuf) = (self.inner.call(request), self.protobuf.clone());
        async move {
            let answer = answer.await.map_err(Into::into)?;
            if !is_protobuf(&answer) {
                return Ok(answer.map(Answered::AsItIs));
            }
            let (mut head, body) = answer.into_parts();
            head.headers.insert(CONTENT_TYPE, JSON);
            head.headers.remove(CONTENT_LENGTH);
            if head.status.is_success() {
                return Ok(Response::from_parts(head, Answered::Events { body, frames: Frames::default(), protobuf }));
            }
            let status = Limited::new(body, LARGEST_STATUS).collect().await?.to_bytes();
            let status = object(&status).map_err(|why| protobuf.give_up(why))?;
            Ok(Response::from_parts(head, Answered::Status(Some(status.into()))))
        }
        .boxed()
    }
}

impl Protobuf {
    fn give_up(&self, why: Unread) -> BoxError {
        if !self.given_up.swap(true, Ordering::Relaxed) {
            tracing::warn!(%why, "protobuf of the API server is not understood: watches go on in JSON");
        }
        why.into()
    }
}

#[derive(Debug)]
pub enum Answered<B> {
    AsItIs(B),
    /// Frames of protobuf, converted to lines of JSON.
    Events {
        body: B,
        /// Received bytes that are not a whole frame yet.
        frames: Frames,
        /// Told of an unreadable frame.
        protobuf: Protobuf,
    },
    /// A converted Status: why there is no watch.
    Status(Option<Bytes>),
}

impl<B> Body for Answered<B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let (body, frames, protobuf) = match self.get_mut() {
            Self::AsItIs(body) => {
                return Pin::new(body).poll_frame(context).map(|frame| frame.map(|frame| frame.map_err(Into::into)));
            }
            Self::Status(status) => return Poll::Ready(status.take().map(|status| Ok(Frame::data(status)))),
            Self::Events { body, frames, protobuf } => (body, frames, protobuf),
        };
        loop {
            let Some(frame) = ready!(Pin::new(&mut *body).poll_frame(context)) else { return Poll::Ready(None) };
            let Ok(data) = frame.map_err(Into::into)?.into_data() else { continue };
            let lines = frames.lines(&data).map_err(|why| protobuf.give_up(why))?;
            if !lines.is_empty() {
                return Poll::Ready(Some(Ok(Frame::data(lines.into()))));
            }
        }
    }
}

/// A buffer of the frames of a watch. Each frame follows its length in four bytes, and may arrive in pieces.
#[derive(Debug, Default)]
pub struct Frames(Vec<u8>);

impl Frames {
    /// Adds received bytes, and returns the JSON lines of all complete frames.
    fn lines(&mut self, data: &[u8]) -> Result<Vec<u8>, Unread> {
        self.0.extend_from_slice(data);
        let (mut rest, mut lines) = (self.0.as_slice(), Vec::new());
        while let Some((length, frames)) = rest.split_first_chunk() {
            let length = u32::from_be_bytes(*length) as usize;
            if length > LARGEST_FRAME {
                return Err(Unread::TooLarge(length));
            }
            let Some((frame, following)) = frames.split_at_checked(length) else { break };
            write_event(&mut lines, frame)?;
            rest = following;
        }
        let read = self.0.len() - rest.len();
        self.0.drain(..read);
        self.0.shrink_to(KEPT);
        Ok(lines)
    }
}

#[cfg(test)]
#[path = "protobuf_tests.rs"]
mod tests;
