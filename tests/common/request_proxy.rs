//! A proxy before the API server that reads what it is asked: requests of one kind are taken and never answered, all others
//! go on.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::SendRequest;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use jiff::Timestamp;
use rolegate::server::tls::acceptor::{CertStore, server_config};
use rolegate::server::tls::authority::{LeafSpec, new_ca, new_leaf};
use rustls::pki_types::ServerName;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};
use tokio_rustls::TlsAcceptor;

use super::control_plane::ControlPlane;
use super::http::{handshake, tls_to};

/// A kind of request.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    pub method: &'static str,
    /// The end of its path.
    pub path: &'static str,
}

/// A proxy; it ends with this handle.
pub struct RequestProxy {
    /// Where it listens.
    pub address: SocketAddr,
    /// What its callers must trust.
    pub ca: String,
    state: Arc<State>,
    task: JoinHandle<()>,
}

struct State {
    target: SocketAddr,
    target_ca: Vec<u8>,
    lost: Mutex<Lost>,
}

#[derive(Default)]
struct Lost {
    kind: Option<Kind>,
    count: usize,
}

impl RequestProxy {
    /// Starts one before the API server.
    pub async fn before(plane: &ControlPlane) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let now = Timestamp::now();
        let ca = new_ca(now).unwrap();
        let leaf = LeafSpec { addresses: vec![address.ip()], ..LeafSpec::for_names(["localhost"]) };
        let leaf = new_leaf(&ca, &leaf, now).unwrap();
        let store = CertStore::empty();
        store.set(leaf.cert_pem.as_bytes(), leaf.key_pem.as_bytes()).unwrap();
        let mut config = server_config(&store, None).unwrap();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let target = plane.server.trim_start_matches("https://").parse().unwrap();
        let target_ca = std::fs::read(plane.dir.join("pki/ca.crt")).unwrap();
        let state = Arc::new(State { target, target_ca, lost: Mutex::default() });
        let serving = state.clone();
        let task = tokio::spawn(async move {
            let mut callers = JoinSet::new();
            while let Ok((caller, _)) = listener.accept().await {
                callers.spawn(serving.clone().serve(acceptor.clone(), caller));
            }
        });
        Self { address, ca: ca.cert_pem, state, task }
    }

    /// From now on requests of this kind get lost.
    pub fn lose(&self, kind: Kind) {
        *self.state.lost.lock().unwrap() = Lost { kind: Some(kind), count: 0 };
    }

    /// From now on all requests are answered. Those that were lost stay lost.
    pub fn answer(&self) {
        self.state.lost.lock().unwrap().kind = None;
    }

    /// How many got lost.
    pub fn lost(&self) -> usize {
        self.state.lost.lock().unwrap().count
    }
}

impl Drop for RequestProxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl State {
    async fn serve(self: Arc<Self>, acceptor: TlsAcceptor, caller: TcpStream) {
        let Ok(caller) = acceptor.accept(caller).await else { return };
        let Ok(target) = tls_to(self.target, ServerName::from(self.target.ip()), &self.target_ca).await else { return };
        let Ok(sender) = handshake(target).await else { return };
        // One connection for each of the caller's, on which one request follows the other.
        let sender = Arc::new(tokio::sync::Mutex::new(sender));
        let service = service_fn(|request| {
            let (state, sender) = (self.clone(), sender.clone());
            async move { state.pass(request, &mut *sender.lock().await).await }
        });
        _ = http1::Builder::new().serve_connection(TokioIo::new(caller), service).await;
    }

    async fn pass(
        &self,
        request: Request<Incoming>,
        sender: &mut SendRequest<Full<Bytes>>,
    ) -> Result<Response<Incoming>, hyper::Error> {
        let (parts, body) = request.into_parts();
        let body = body.collect().await?.to_bytes();
        if self.loses(&parts) {
            // It ends with the caller's connection.
            std::future::pending::<()>().await;
        }
        sender.ready().await?;
        sender.send_request(Request::from_parts(parts, Full::new(body))).await
    }

    fn loses(&self, parts: &Parts) -> bool {
        let mut lost = self.lost.lock().unwrap();
        let is_it = lost.kind.is_some_and(|kind| parts.method == kind.method && parts.uri.path().ends_with(kind.path));
        lost.count += usize::from(is_it);
        is_it
    }
}
