//! HTTP clients for rolegate: plain for the admin port, TLS for the webhook.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

pub type Answer = (u16, Bytes);

type Error = Box<dyn std::error::Error + Send + Sync>;

/// Sends a GET without TLS.
pub async fn get(address: SocketAddr, path: &str) -> Result<(u16, String), Error> {
    let mut sender = handshake(TcpStream::connect(address).await?).await?;
    let request = Request::get(path).header("host", address.to_string()).body(Full::default())?;
    let (status, body) = answer(&mut sender, request).await?;
    Ok((status, String::from_utf8(body.to_vec())?))
}

/// A kept-alive connection to the webhook that trusts a CA bundle.
pub struct Caller {
    sender: http1::SendRequest<Full<Bytes>>,
    host: String,
}

impl Caller {
    pub async fn connect(address: SocketAddr, ca_bundle: &[u8]) -> Self {
        Self::try_connect(address, ca_bundle).await.unwrap()
    }

    /// Connects, or returns an error.
    pub async fn try_connect(address: SocketAddr, ca_bundle: &[u8]) -> Result<Self, Error> {
        Self::over(tls_to(address, ServerName::from(address.ip()), ca_bundle).await?, address).await
    }

    /// Uses HTTP/1 over an existing stream.
    pub async fn over<S>(stream: S, address: SocketAddr) -> Result<Self, Error>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        Ok(Self { sender: handshake(stream).await?, host: address.to_string() })
    }

    /// Posts JSON.
    pub async fn post(&mut self, path: &str, body: impl Into<Bytes>) -> Result<Answer, Error> {
        self.send(Method::POST, path, "application/json", body).await
    }

    pub async fn send(
        &mut self,
        method: Method,
        path: &str,
        content_type: &str,
        body: impl Into<Bytes>,
    ) -> Result<Answer, Error> {
        let request = Request::builder().method(method).uri(path).header("host", &self.host);
        let request = request.header("content-type", content_type).body(Full::new(body.into()))?;
        answer(&mut self.sender, request).await
    }
}

/// Opens a TLS connection to the webhook that trusts a CA bundle.
pub async fn tls(address: SocketAddr, ca_bundle: &[u8]) -> TlsStream<TcpStream> {
    tls_to(address, ServerName::from(address.ip()), ca_bundle).await.unwrap()
}

/// Like [`tls`], with another name than the address; returns an error when the certificate does not match.
pub async fn tls_to(
    address: SocketAddr,
    name: ServerName<'static>,
    ca_bundle: &[u8],
) -> std::io::Result<TlsStream<TcpStream>> {
    let mut roots = rustls::RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(ca_bundle) {
        roots.add(certificate.unwrap()).unwrap();
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let stream = TcpStream::connect(address).await?;
    TlsConnector::from(Arc::new(config)).connect(name, stream).await
}

/// Starts HTTP/1.1 on a connection.
pub async fn handshake<S>(stream: S) -> Result<http1::SendRequest<Full<Bytes>>, Error>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    Ok(sender)
}

async fn answer(sender: &mut http1::SendRequest<Full<Bytes>>, request: Request<Full<Bytes>>) -> Result<Answer, Error> {
    sender.ready().await?;
    let response = sender.send_request(request).await?;
    Ok((response.status().as_u16(), response.into_body().collect().await?.to_bytes()))
}
