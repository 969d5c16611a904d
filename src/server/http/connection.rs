//! One connection: handshake, then requests until someone ends it.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::Body;
use bytes::Bytes;
use http::{HeaderValue, Request, Response, Version, header};
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_rustls::TlsAcceptor;
use tower::{Service, ServiceExt};

use crate::server::http::limits::Limits;
use crate::server::http::metrics::{HandshakeFailure, ServerMetrics};
use crate::server::http::timeouts::{Busy, Overdue, TimedIo, Timeouts};

/// What a listener is doing, as its connections need to know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// Serving.
    Open,
    /// Serving, with every connection taken.
    Full,
    /// About to stop: each answer tells its caller to come back on another connection.
    Draining,
    /// No longer accepting: connections end as soon as their requests are answered.
    Closing,
}

/// The address of who asks: an extension of each request on a port without TLS.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer(pub(crate) SocketAddr);

/// What the connections of one listener have in common.
pub(crate) struct Shared<S> {
    pub(crate) tls: Option<Arc<ServerConfig>>,
    pub(crate) app: S,
    pub(crate) limits: Limits,
    pub(crate) metrics: ServerMetrics,
    pub(crate) phase: watch::Receiver<Phase>,
}

/// Serves one accepted connection to its end.
pub(crate) async fn serve<S>(stream: TcpStream, shared: Arc<Shared<S>>)
where
    S: Service<Request<Incoming>, Response = Response<Body>, Error = Infallible> + Clone + Send + Sync + 'static,
    S::Future: Send,
{
    // A review's answer is one small write: waiting to fill a packet only costs.
    let _ = stream.set_nodelay(true);
    let Some(tls) = shared.tls.clone() else {
        let peer = stream.peer_addr().ok().map(Peer);
        return requests(stream, false, peer, &shared).await;
    };
    match timeout(shared.limits.handshake, handshake(stream, tls)).await {
        Ok(Ok(stream)) => {
            let http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
            requests(stream, http2, None, &shared).await;
        }
        Ok(Err(reason)) => shared.metrics.handshake_failed(reason),
        Err(_) => shared.metrics.handshake_failed(HandshakeFailure::timeout),
    }
}

async fn handshake(
    mut stream: TcpStream,
    tls: Arc<ServerConfig>,
) -> Result<tokio_rustls::server::TlsStream<TcpStream>, HandshakeFailure> {
    // TLS begins with byte 22, HTTP with a letter. Someone who took the wrong port is told so in words.
    let mut first = [0; 1];
    match stream.peek(&mut first).await {
        Ok(1) if first.first().is_some_and(u8::is_ascii_uppercase) => {
            let answer = b"HTTP/1.0 400 Bad Request\r\nContent-Type: text/plain\r\n\r\nThis port speaks HTTPS only.\n";
            let _ = stream.write_all(answer).await;
            let _ = stream.shutdown().await;
            return Err(HandshakeFailure::plain_http);
        }
        Ok(1) => {}
        _ => return Err(HandshakeFailure::closed),
    }
    TlsAcceptor::from(tls).accept(stream).await.map_err(|error| {
        let reason = failure(&error);
        tracing::debug!(%error, ?reason, "TLS handshake failed");
        reason
    })
}

fn failure(error: &io::Error) -> HandshakeFailure {
    use rustls::{AlertDescription as Alert, Error};
    match error.get_ref().and_then(|error| error.downcast_ref::<Error>()) {
        Some(Error::NoCertificatesPresented | Error::InvalidCertificate(_)) => HandshakeFailure::client_certificate,
        // What rustls says when the resolver has nothing to serve.
        Some(Error::General(why)) if why.contains("no server certificate chain resolved") => {
            HandshakeFailure::no_certificate
        }
        // The last one is what some libraries say when a CA of the right name did not sign our certificate.
        Some(Error::AlertReceived(
            Alert::BadCertificate
            | Alert::UnknownCA
            | Alert::CertificateUnknown
            | Alert::CertificateExpired
            | Alert::DecryptError,
        )) => HandshakeFailure::untrusted,
        Some(_) => HandshakeFailure::tls,
        None => HandshakeFailure::closed,
    }
}

async fn requests<I, S>(stream: I, http2: bool, peer: Option<Peer>, shared: &Arc<Shared<S>>)
where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    S: Service<Request<Incoming>, Response = Response<Body>, Error = Infallible> + Clone + Send + Sync + 'static,
    S::Future: Send,
{
    let limits = &shared.limits;
    let timeouts = Timeouts::new();
    let service = service_fn({
        let (shared, timeouts) = (Arc::clone(shared), timeouts.clone());
        move |mut request: Request<Incoming>| {
            peer.map(|peer| request.extensions_mut().insert(peer));
            respond(request, Arc::clone(&shared), timeouts.begin())
        }
    });
    let builder = protocol(limits, http2);
    let stream = TokioIo::new(TimedIo::new(stream, timeouts.clone(), limits.write));
    let mut connection = pin!(builder.serve_connection(stream, service));
    let mut phase = shared.phase.clone();
    let mut timer = pin!(sleep_until(Instant::now()));
    let mut ended_since = None;
    loop {
        let now = *phase.borrow_and_update();
        // HTTP/2 can say goodbye without losing a request, so it does at once. Closing an idle HTTP/1 connection may
        // cross with a request on its way, so these wait for one to answer with `Connection: close`.
        if ended_since.is_none() && (now == Phase::Closing || (now == Phase::Draining && http2)) {
            connection.as_mut().graceful_shutdown();
            ended_since = Some(Instant::now());
        }
        let idle = if now == Phase::Full { limits.idle_when_full } else { limits.idle };
        let overdue = {
            let watch = std::future::poll_fn(|cx| {
                if connection.as_mut().poll(cx).is_ready() {
                    return Poll::Ready(None);
                }
                loop {
                    let (deadline, overdue) = timeouts.deadline(limits, idle, !http2);
                    // Once told to end, a peer has some time left to say goodbye.
                    let deadline = ended_since.map_or(deadline, |since: Instant| deadline.max(since + limits.write));
                    // A later deadline is found when the timer fires; so a busy connection does not reset it each time.
                    if deadline < timer.deadline() || timer.is_elapsed() {
                        timer.as_mut().reset(deadline);
                    }
                    if timer.as_mut().poll(cx).is_pending() {
                        return Poll::Pending;
                    }
                    if deadline <= Instant::now() && overdue.is_some() {
                        return Poll::Ready(overdue);
                    }
                }
            });
            tokio::select! {
                biased;
                overdue = watch => match overdue { Some(overdue) => overdue, None => return },
                changed = phase.changed() => match changed { Ok(()) => continue, Err(_) => return },
            }
        };
        // An idle connection is closed politely once; whatever does not follow is cut.
        if overdue == Overdue::Header || ended_since.is_some() {
            return;
        }
        connection.as_mut().graceful_shutdown();
        ended_since = Some(Instant::now());
    }
}

fn protocol(limits: &Limits, http2: bool) -> Builder<TokioExecutor> {
    // Which protocol is known from the handshake. Letting hyper guess would mean a read without a time limit.
    let mut builder = Builder::new(TokioExecutor::new());
    builder = if http2 { builder.http2_only() } else { builder.http1_only() };
    builder.http1().timer(TokioTimer::new()).header_read_timeout(None).max_buf_size(64 << 10);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(limits.streams)
        .max_header_list_size(64 << 10)
        .keep_alive_interval(limits.idle / 4)
        .keep_alive_timeout(limits.write);
    builder
}

async fn respond<S>(
    request: Request<Incoming>,
    shared: Arc<Shared<S>>,
    busy: Busy,
) -> Result<Response<HeldBody>, Infallible>
where
    S: Service<Request<Incoming>, Response = Response<Body>, Error = Infallible> + Clone,
{
    let counted = shared.metrics.start(request.uri().path());
    let version = request.version();
    let mut response = shared.app.clone().oneshot(request).await?;
    counted.finish(response.status());
    if *shared.phase.borrow() >= Phase::Draining && version < Version::HTTP_2 {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    Ok(response.map(|inner| HeldBody { inner, _busy: busy }))
}

/// A response body that keeps its request in flight until all of it is handed on.
struct HeldBody {
    inner: Body,
    _busy: Busy,
}

impl HttpBody for HeldBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.inner).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
