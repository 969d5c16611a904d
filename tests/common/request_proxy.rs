//! A proxy for the API server that parses requests: requests of one kind are lost, refused or partly answered, all
//! others pass.

use std::io::Error;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use http::request::Parts;
use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::client::conn::http1::SendRequest;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio_rustls::server::TlsStream;
use tokio_util::task::AbortOnDropHandle;

use super::build::with;
use super::control_plane::ControlPlane;
use super::http::{handshake, tls_to};
use super::tls::TlsListener;

/// A kind of request.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    pub method: &'static str,
    /// Part of its path with the query, such as `/pods/llm-main-0` or `/pods?`.
    pub path: &'static str,
}

/// The handling of a request.
#[derive(Clone, Copy, Debug)]
pub enum Fate {
    /// The request is neither forwarded nor answered.
    Lost,
    /// The request is forwarded, but not answered.
    Unanswered,
    /// The request is answered with this status, and not forwarded.
    Refused(u16),
    /// The request is answered like a watch of a compacted resourceVersion.
    Expired,
    /// The connection ends after this number of bytes of the answer's body.
    Cut(usize),
}

type Body = UnsyncBoxBody<Bytes, Error>;

/// A proxy; it ends on drop.
pub struct RequestProxy {
    /// The listen address.
    pub address: SocketAddr,
    /// CA certificate of the proxy, as PEM.
    pub ca: String,
    state: Arc<State>,
    _task: AbortOnDropHandle<()>,
}

struct State {
    target: SocketAddr,
    target_ca: Vec<u8>,
    broken: Mutex<Broken>,
    /// A change ends all connections.
    cuts: watch::Sender<u64>,
}

#[derive(Default)]
struct Broken {
    kind: Option<(Kind, Fate)>,
    count: usize,
}

impl RequestProxy {
    /// Starts a proxy for the API server.
    pub async fn before(plane: &ControlPlane) -> Self {
        let server = TlsListener::bind().await;
        let (address, ca) = (server.address, server.ca.clone());
        let target = plane.server.trim_start_matches("https://").parse().unwrap();
        let target_ca = std::fs::read(plane.dir.join("pki/ca.crt")).unwrap();
        let state = Arc::new(State { target, target_ca, broken: Mutex::default(), cuts: watch::Sender::new(0) });
        let serving = state.clone();
        let task = tokio::spawn(server.accept(move |caller| serving.clone().serve(caller)));
        Self { address, ca, state, _task: AbortOnDropHandle::new(task) }
    }

    /// Loses requests of this kind from now on.
    pub fn lose(&self, kind: Kind) {
        self.meet(kind, Fate::Lost);
    }

    /// Handles requests of this kind in this way from now on.
    pub fn meet(&self, kind: Kind, fate: Fate) {
        *self.state.broken.lock().unwrap() = Broken { kind: Some((kind, fate)), count: 0 };
    }

    /// Answers all requests from now on. Lost requests stay lost.
    pub fn answer(&self) {
        self.state.broken.lock().unwrap().kind = None;
    }

    /// Ends every open connection, including all watches. New connections are accepted.
    pub fn cut(&self) {
        self.state.cuts.send_modify(|cuts| *cuts += 1);
    }

    /// Returns the number of requests that were lost or handled in another way.
    pub fn lost(&self) -> usize {
        self.state.broken.lock().unwrap().count
    }
}

impl State {
    async fn serve(self: Arc<Self>, caller: TlsStream<TcpStream>) {
        let Ok(target) = tls_to(self.target, ServerName::from(self.target.ip()), &self.target_ca).await else { return };
        let Ok(sender) = handshake(target).await else { return };
        // A connection to the target for each connection of the caller; requests follow one another.
        let sender = Arc::new(tokio::sync::Mutex::new(sender));
        let service = service_fn(|request| {
            let (state, sender) = (self.clone(), sender.clone());
            async move { state.pass(request, &mut *sender.lock().await).await }
        });
        let mut cut = self.cuts.subscribe();
        tokio::select! {
            _ = http1::Builder::new().serve_connection(TokioIo::new(caller), service) => {}
            _ = cut.changed() => {}
        }
    }

    async fn pass(
        &self,
        request: Request<Incoming>,
        sender: &mut SendRequest<Full<Bytes>>,
    ) -> Result<Response<Body>, Error> {
        let (parts, body) = request.into_parts();
        let body = body.collect().await.map_err(Error::other)?.to_bytes();
        let fate = self.fate(&parts);
        match fate {
            // The request ends with the caller's connection.
            Some(Fate::Lost) => std::future::pending::<()>().await,
            Some(Fate::Refused(code)) => return Ok(refusal(code)),
            Some(Fate::Expired) => return Ok(expired()),
            Some(Fate::Unanswered | Fate::Cut(_)) | None => {}
        }
        sender.ready().await.map_err(Error::other)?;
        let request = Request::from_parts(parts, Full::new(body));
        let answer = sender.send_request(request).await.map_err(Error::other)?;
        match fate {
            Some(Fate::Unanswered) => {
                answer.into_body().collect().await.map_err(Error::other)?;
                std::future::pending().await
            }
            Some(Fate::Cut(bytes)) => Ok(answer.map(|body| cut_after(body, bytes))),
            _ => Ok(answer.map(|body| body.map_err(Error::other).boxed_unsync())),
        }
    }

    fn fate(&self, parts: &Parts) -> Option<Fate> {
        let mut broken = self.broken.lock().unwrap();
        let asked = parts.uri.path_and_query().map(ToString::to_string).unwrap_or_default();
        let (_, fate) = broken.kind.filter(|(kind, _)| parts.method == kind.method && asked.contains(kind.path))?;
        broken.count += 1;
        Some(fate)
    }
}

fn whole(body: String) -> Body {
    Full::new(Bytes::from(body)).map_err(|never| match never {}).boxed_unsync()
}

fn failure(code: u16, reason: &str, message: &str) -> Value {
    let told = json!({ "status": "Failure", "code": code, "reason": reason, "message": message });
    with(told, &json!({ "kind": "Status", "apiVersion": "v1" }))
}

/// Returns an error like those of the API server.
fn refusal(code: u16) -> Response<Body> {
    let reason = match code {
        409 => "Conflict",
        422 => "Invalid",
        429 => "TooManyRequests",
        _ => "InternalError",
    };
    let status = failure(code, reason, "refused by the proxy");
    let answer = Response::builder().status(code).header("content-type", "application/json");
    let answer = if code == 429 { answer.header("retry-after", "1") } else { answer };
    answer.body(whole(status.to_string())).unwrap()
}

/// Returns the API server's answer to a watch of a compacted resourceVersion.
fn expired() -> Response<Body> {
    let event = json!({ "type": "ERROR", "object": failure(410, "Expired", "too old resource version") });
    let answer = Response::builder().header("content-type", "application/json");
    answer.body(whole(format!("{event}\n"))).unwrap()
}

/// Returns the beginning of a body; then the connection breaks.
fn cut_after(body: Incoming, bytes: usize) -> Body {
    let begin = (body.into_data_stream(), bytes);
    let stream = futures::stream::unfold(Some(begin), |rest| async move {
        let (mut body, left) = rest?;
        let Some(Ok(mut chunk)) = body.next().await else { return None };
        if left == 0 {
            return Some((Err(Error::other("cut")), None));
        }
        chunk.truncate(left);
        let left = left - chunk.len();
        Some((Ok(Frame::data(chunk)), Some((body, left))))
    });
    StreamBody::new(stream).boxed_unsync()
}
