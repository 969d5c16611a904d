//! A TLS server of the tests' own on loopback, with a CA that the other side is told of.

use std::net::SocketAddr;
use std::sync::Arc;

use jiff::Timestamp;
use rolegate::server::tls::acceptor::{CertStore, server_config};
use rolegate::server::tls::authority::{LeafSpec, new_ca, new_leaf};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// Listens on a free port; speaks HTTP/1.1.
pub struct TlsListener {
    pub address: SocketAddr,
    pub listener: TcpListener,
    pub acceptor: TlsAcceptor,
    /// PEM.
    pub ca: String,
}

impl TlsListener {
    /// Listens from now on; its certificate is for `localhost` and its address.
    pub async fn bind() -> Self {
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
        Self { address, listener, acceptor: TlsAcceptor::from(Arc::new(config)), ca: ca.cert_pem }
    }
}
