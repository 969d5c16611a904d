//! A server for tests, and its clients.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::extract::Request as AxumRequest;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use jiff::Timestamp;
use prometheus_client::registry::Registry;
use rolegate::server::http::accept::{Drain, Drained, Listener};
use rolegate::server::http::body::Bodies;
use rolegate::server::http::limits::Limits;
use rolegate::server::http::metrics;
use rolegate::tls::acceptor::{CertStore, ClientAuth, OldestTls, server_config};
use rolegate::tls::authority::{Issued, LeafSpec, new_ca, new_leaf};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_util::sync::CancellationToken;

pub const NAME: &str = "rolegate.system.svc";
pub const PATIENT: Duration = Duration::from_secs(20);

/// Blocks requests in the handler until the test lets them go.
#[derive(Clone, Default)]
pub struct Gate {
    pub arrived: Arc<AtomicUsize>,
    pub open: CancellationToken,
    pub seen: Arc<Notify>,
}

impl Gate {
    pub async fn pass(&self) -> &'static str {
        self.arrived.fetch_add(1, Ordering::SeqCst);
        self.seen.notify_one();
        self.open.cancelled().await;
        "held"
    }

    pub async fn arrived(&self, count: usize) {
        within(async {
            while self.arrived.load(Ordering::SeqCst) < count {
                self.seen.notified().await;
            }
        })
        .await;
    }
}

pub struct Server {
    pub address: SocketAddr,
    pub ca: Issued,
    pub store: CertStore,
    pub gate: Gate,
    pub registry: Registry,
    pub draining: CancellationToken,
    pub running: JoinHandle<Drained>,
}

pub struct Options {
    pub limits: Limits,
    pub drain: Drain,
    pub client: Option<ClientAuth>,
    pub loaded: bool,
}

impl Default for Options {
    fn default() -> Self {
        let drain = Drain { grace: Duration::from_millis(200), deadline: Duration::from_secs(10) };
        Self { limits: Limits::default(), drain, client: None, loaded: true }
    }
}

pub fn limits(change: impl FnOnce(&mut Limits)) -> Options {
    let mut options = Options::default();
    change(&mut options.limits);
    options
}

pub async fn within<T>(work: impl Future<Output = T>) -> T {
    timeout(PATIENT, work).await.expect("not done in time")
}

pub async fn echo(limits: Limits, request: AxumRequest) -> Response {
    match Bodies::new(&limits).read(request.into_body(), Instant::now() + limits.body_time).await {
        Ok(body) => body.to_vec().into_response(),
        Err(error) => (error.status(), error.to_string()).into_response(),
    }
}

pub async fn panics() -> &'static str {
    panic!("on purpose")
}

impl Server {
    pub async fn start(options: Options) -> Self {
        let now = Timestamp::now();
        let (ca, store, gate) = (new_ca(now).unwrap(), CertStore::empty(), Gate::default());
        if options.loaded {
            serve_leaf(&store, &ca);
        }
        let held = gate.clone();
        let limits = options.limits;
        let app = Router::new()
            .route("/livez", get(|| async { "ok" }))
            .route("/hold", get(move || async move { held.pass().await }))
            .route("/validate", post(move |request| echo(limits, request)))
            .route("/panic", get(panics))
            .layer(tower_http::catch_panic::CatchPanicLayer::new());
        let mut registry = Registry::default();
        let metrics = metrics::register(&mut registry);
        tokio::spawn(metrics.clone().follow_certificate(store.changes()));
        let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = socket.local_addr().unwrap();
        let tls = Some(Arc::new(server_config(OldestTls::default(), &store, options.client).unwrap()));
        let draining = CancellationToken::new();
        let listener = Listener { socket, tls, app, limits, metrics, drain: options.drain };
        let running = tokio::spawn(listener.run(draining.clone()));
        Self { address, ca, store, gate, registry, draining, running }
    }

    pub async fn tls(&self) -> TlsStream<TcpStream> {
        connect(self.address, &self.ca, None).await.unwrap()
    }

    pub async fn h1(&self) -> H1 {
        H1::over(self.tls().await).await
    }

    pub async fn finish(self) -> Drained {
        self.draining.cancel();
        within(self.running).await.unwrap()
    }

    pub async fn counts(&self, line: &str) {
        within(async {
            while !self.metrics().contains(line) {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }

    pub fn accept_errors(&self) -> usize {
        let text = self.metrics();
        let line = text.lines().find_map(|line| line.strip_prefix("server_accept_errors_total "));
        line.unwrap().parse().unwrap()
    }

    pub fn metrics(&self) -> String {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &self.registry).unwrap();
        text
    }
}

pub fn serve_leaf(store: &CertStore, ca: &Issued) {
    let leaf = new_leaf(ca, &LeafSpec::for_service("rolegate", "system"), Timestamp::now()).unwrap();
    store.set(leaf.cert_pem.as_bytes(), leaf.key_pem.as_bytes()).unwrap();
}

/// Connects with the protocols that an API server offers to a Service.
pub async fn connect(address: SocketAddr, ca: &Issued, own: Option<&Issued>) -> std::io::Result<TlsStream<TcpStream>> {
    offering(&["http/1.1"], address, ca, own).await
}

/// Connects with these protocols.
pub async fn offering(
    protocols: &[&str],
    address: SocketAddr,
    ca: &Issued,
    own: Option<&Issued>,
) -> std::io::Result<TlsStream<TcpStream>> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(ca.cert_pem.as_bytes()).unwrap()).unwrap();
    let builder = rustls::ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let mut config = match own {
        Some(own) => builder
            .with_client_auth_cert(
                vec![CertificateDer::from_pem_slice(own.cert_pem.as_bytes()).unwrap()],
                PrivateKeyDer::from_pem_slice(own.key_pem.as_bytes()).unwrap(),
            )
            .unwrap(),
        None => builder.with_no_client_auth(),
    };
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
    let stream = TcpStream::connect(address).await?;
    TlsConnector::from(Arc::new(config)).connect(ServerName::try_from(NAME).unwrap(), stream).await
}

/// A kept-alive HTTP/1.1 connection.
pub struct H1 {
    pub sender: http1::SendRequest<Full<Bytes>>,
    pub closed: JoinHandle<()>,
}

pub struct Answer {
    pub status: StatusCode,
    pub close: bool,
    pub body: Bytes,
}

impl H1 {
    pub async fn over(stream: TlsStream<TcpStream>) -> Self {
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
        let closed = tokio::spawn(async move {
            let _ = connection.await;
        });
        Self { sender, closed }
    }

    pub async fn get(&mut self, path: &str) -> hyper::Result<Answer> {
        self.send(Request::get(path).header("host", NAME).body(Full::default()).unwrap()).await
    }

    pub async fn post(&mut self, body: Vec<u8>) -> hyper::Result<Answer> {
        self.send(Request::post("/validate").header("host", NAME).body(Full::from(body)).unwrap()).await
    }

    pub async fn send(&mut self, request: Request<Full<Bytes>>) -> hyper::Result<Answer> {
        within(async {
            self.sender.ready().await?;
            let response = self.sender.send_request(request).await?;
            let close = response.headers().get("connection").is_some_and(|value| value == "close");
            let status = response.status();
            Ok(Answer { status, close, body: response.into_body().collect().await?.to_bytes() })
        })
        .await
    }
}

/// Reads until the peer closes.
pub async fn rest<S: AsyncReadExt + Unpin>(mut stream: S) -> String {
    let mut bytes = Vec::new();
    let _ = within(stream.read_to_end(&mut bytes)).await;
    String::from_utf8_lossy(&bytes).into()
}
