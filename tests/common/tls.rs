//! A TLS server on loopback, with a CA of its own.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use jiff::Timestamp;
use rolegate::tls::acceptor::{CertStore, OldestTls, server_config};
use rolegate::tls::authority::{LeafSpec, new_ca, new_leaf};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// A server on a free port; it speaks HTTP/1.1.
pub struct TlsListener {
    pub address: SocketAddr,
    listener: TcpListener,
    acceptor: TlsAcceptor,
    /// CA certificate, as PEM.
    pub ca: String,
}

impl TlsListener {
    /// Starts to listen; the certificate is for `localhost` and the address.
    pub async fn bind() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let now = Timestamp::now();
        let ca = new_ca(now).unwrap();
        let leaf = LeafSpec { addresses: vec![address.ip()], ..LeafSpec::for_names(["localhost"]) };
        let leaf = new_leaf(&ca, &leaf, now).unwrap();
        let store = CertStore::empty();
        store.set(leaf.cert_pem.as_bytes(), leaf.key_pem.as_bytes()).unwrap();
        let config = server_config(OldestTls::default(), &store, None).unwrap();
        Self { address, listener, acceptor: TlsAcceptor::from(Arc::new(config)), ca: ca.cert_pem }
    }

    /// Answers all callers until dropped.
    pub async fn serve<A, E>(self, answer: impl Fn(Request<Incoming>) -> A + Clone + Send + 'static)
    where
        A: Future<Output = Result<Response<Full<Bytes>>, E>> + Send + 'static,
        E: std::error::Error + Send + Sync + 'static,
    {
        self.accept(move |caller| {
            let answered = http1::Builder::new().serve_connection(TokioIo::new(caller), service_fn(answer.clone()));
            async move { _ = answered.await }
        })
        .await;
    }

    /// Passes each caller's stream to `serve` until dropped.
    pub async fn accept<S>(self, serve: impl Fn(TlsStream<TcpStream>) -> S + Clone + Send + 'static)
    where
        S: Future<Output = ()> + Send + 'static,
    {
        let mut callers = JoinSet::new();
        while let Ok((caller, _)) = self.listener.accept().await {
            while callers.try_join_next().is_some() {}
            let (acceptor, serve) = (self.acceptor.clone(), serve.clone());
            callers.spawn(async move {
                let Ok(caller) = acceptor.accept(caller).await else { return };
                serve(caller).await;
            });
        }
    }
}
