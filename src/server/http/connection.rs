//! One connection: the handshake, then requests until either side ends it.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode, header};
use hyper::body::{Body as HttpBody, Incoming};
use hyper::server::conn::http1::Builder;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt;

use crate::server::http::body::holding;
use crate::server::http::limits::Limits;
use crate::server::http::metrics::{HandshakeFailure, ServerMetrics};
use crate::server::http::places::{Place, Proven};
use crate::server::http::timeouts::{Busy, TimedIo, Timeouts};

/// The phase of a listener, for its connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    Open,
    /// About to stop: each answer tells its caller to use another connection.
    Draining,
    /// No longer accepting: connections end as soon as their requests are answered.
    Closing,
}

/// The address of the caller: an extension of each request on a port without TLS.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer(pub(crate) SocketAddr);

/// Common state of the connections of one listener.
pub(crate) struct Shared {
    pub(crate) tls: Option<Arc<ServerConfig>>,
    pub(crate) app: Router,
    pub(crate) limits: Limits,
    pub(crate) metrics: ServerMetrics,
    pub(crate) phase: watch::Receiver<Phase>,
}

/// Serves one accepted connection to its end, or until another one needs its place.
pub(crate) async fn serve(stream: TcpStream, shared: Arc<Shared>, timeouts: Timeouts, place: Place) {
    let ended = place.ended().clone();
    let place = Arc::new(place);
    // The answer to a review is one small write: a delay to fill a packet only costs.
    let _ = stream.set_nodelay(true);
    ended.run_until_cancelled(to_its_end(stream, shared, timeouts, place)).await;
}

async fn to_its_end(stream: TcpStream, shared: Arc<Shared>, timeouts: Timeouts, place: Arc<Place>) {
    // Later states are boxed: a connection that never reaches them does not pay for them.
    let Some(tls) = shared.tls.clone() else {
        let peer = stream.peer_addr().ok().map(Peer);
        return Box::pin(requests(stream, peer, timeouts, place, &shared)).await;
    };
    match timeout(shared.limits.handshake, handshake(stream, tls)).await {
        Ok(Ok(stream)) => {
            shared.metrics.handshakes.inc();
            if stream.get_ref().1.peer_certificates().is_some() {
                place.prove();
            }
            Box::pin(requests(stream, None, timeouts, place, &shared)).await;
        }
        Ok(Err(reason)) => shared.metrics.handshake_failed(reason),
        Err(_) => shared.metrics.handshake_failed(HandshakeFailure::Timeout),
    }
}

async fn handshake(
    mut stream: TcpStream,
    tls: Arc<ServerConfig>,
) -> Result<tokio_rustls::server::TlsStream<TcpStream>, HandshakeFailure> {
    // TLS begins with byte 22, HTTP with a letter. A caller on the wrong port gets a text.
    let mut first = [0; 1];
    match stream.peek(&mut first).await {
        Ok(1) if first.first().is_some_and(u8::is_ascii_uppercase) => {
            let answer = b"HTTP/1.0 400 Bad Request\r\nContent-Type: text/plain\r\n\r\nThis port speaks HTTPS only.\n";
            let _ = stream.write_all(answer).await;
            let _ = stream.shutdown().await;
            return Err(HandshakeFailure::PlainHttp);
        }
        Ok(1) => {}
        _ => return Err(HandshakeFailure::Closed),
    }
    Box::pin(TlsAcceptor::from(tls).accept(stream)).await.map_err(|error| {
        let reason = failure(&error);
        tracing::debug!(%error, %reason, "TLS handshake failed");
        reason
    })
}

fn failure(error: &io::Error) -> HandshakeFailure {
    use rustls::{AlertDescription as Alert, Error};
    match error.get_ref().and_then(|error| error.downcast_ref::<Error>()) {
        Some(Error::NoCertificatesPresented | Error::InvalidCertificate(_)) => HandshakeFailure::ClientCertificate,
        // rustls has no kind of error for a resolver without a certificate. The others of this kind are of keys that cannot sign.
        Some(Error::General(_)) => HandshakeFailure::NoCertificate,
        // Some libraries send the last one when a CA of the right name did not sign the certificate.
        Some(Error::AlertReceived(
            Alert::BadCertificate
            | Alert::UnknownCA
            | Alert::CertificateUnknown
            | Alert::CertificateExpired
            | Alert::DecryptError,
        )) => HandshakeFailure::Untrusted,
        Some(_) => HandshakeFailure::Tls,
        None => HandshakeFailure::Closed,
    }
}

async fn requests<I>(stream: I, peer: Option<Peer>, timeouts: Timeouts, place: Arc<Place>, shared: &Arc<Shared>)
where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let stream = TokioIo::new(TimedIo::new(stream, timeouts.clone(), &shared.limits));
    let service = service_fn({
        let shared = Arc::clone(shared);
        move |mut request: Request<Incoming>| {
            peer.map(|peer| request.extensions_mut().insert(peer));
            respond(request, Arc::clone(&shared), Arc::clone(&place), timeouts.begin())
        }
    });
    let mut protocol = Builder::new();
    // The buffer bounds headers, and unread parts of a body. `timeouts` limits the time for headers.
    protocol.header_read_timeout(None).max_buf_size(16 << 10);
    let mut connection = pin!(protocol.serve_connection(stream, service));
    let mut phase = shared.phase.clone();
    tokio::select! {
        biased;
        _ = connection.as_mut() => return,
        // Closing an idle connection may cross with a request. So while draining the connection waits for a request and
        // answers it with `Connection: close`.
        _ = phase.wait_for(|phase| *phase == Phase::Closing) => {}
    }
    connection.as_mut().graceful_shutdown();
    _ = connection.await;
}

async fn respond(
    request: Request<Incoming>,
    shared: Arc<Shared>,
    place: Arc<Place>,
    busy: Busy,
) -> Result<Response<impl HttpBody<Data = Bytes, Error = axum::Error>>, Infallible> {
    let counted = shared.metrics.start(request.uri().path());
    let is_framed_oddly = is_framed_oddly(&request);
    let mut response = if is_framed_oddly { not_implemented() } else { shared.app.clone().oneshot(request).await? };
    counted.finish(response.status());
    if response.extensions_mut().remove::<Proven>().is_some() {
        place.prove();
    }
    if is_framed_oddly || *shared.phase.borrow() >= Phase::Draining {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    Ok(response.map(|body| holding(body, busy)))
}

/// Reports whether a body has another transfer coding than `chunked`: it is framed, but not decoded here (RFC 9112, 6.1).
fn is_framed_oddly<B>(request: &Request<B>) -> bool {
    let codings = request.headers().get_all(header::TRANSFER_ENCODING);
    codings.iter().any(|coding| !coding.as_bytes().trim_ascii().eq_ignore_ascii_case(b"chunked"))
}

fn not_implemented() -> Response<Body> {
    let mut response = Response::new(Body::from("Transfer-Encoding may only be chunked\n"));
    *response.status_mut() = StatusCode::NOT_IMPLEMENTED;
    response
}
