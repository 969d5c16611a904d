//! HTTP as callers of rolegate speak it: plain to the admin port, TLS to the webhook.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Status and body of an answer.
pub type Answer = (u16, Bytes);

type Error = Box<dyn std::error::Error + Send + Sync>;

/// One plain GET.
pub async fn get(address: SocketAddr, path: &str) -> Result<(u16, String), Error> {
    let mut sender = handshake(TcpStream::connect(address).await?).await?;
    let request = Request::get(path).header("host", address.to_string()).body(Full::default())?;
    let (status, body) = answer(&mut sender, request).await?;
    Ok((status, String::from_utf8(body.to_vec())?))
}

/// A kept-alive connection to the webhook, trusting what its configuration carries.
pub struct Caller {
    sender: Sender,
    host: String,
}

enum Sender {
    Http1(http1::SendRequest<Full<Bytes>>),
    Http2(http2::SendRequest<Full<Bytes>>),
}

impl Caller {
    /// Connects.
    pub async fn connect(address: SocketAddr, ca_bundle: &[u8]) -> Self {
        Self::try_connect(address, ca_bundle).await.unwrap()
    }

    /// Connects where that may fail.
    pub async fn try_connect(address: SocketAddr, ca_bundle: &[u8]) -> Result<Self, Error> {
        Self::over(tls_to(address, ServerName::from(address.ip()), ca_bundle).await?, address).await
    }

    /// Speaks HTTP/1 over a stream to this address.
    pub async fn over<S>(stream: S, address: SocketAddr) -> Result<Self, Error>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        Ok(Self { sender: Sender::Http1(handshake(stream).await?), host: address.to_string() })
    }

    /// So many that share one connection of HTTP/2, as the requests of an API server do.
    pub async fn connect_http2(address: SocketAddr, ca_bundle: &[u8], callers: usize) -> Vec<Self> {
        let stream = speaking(&[b"h2"], address, ServerName::from(address.ip()), ca_bundle).await.unwrap();
        let stream = TokioIo::new(stream);
        let (sender, connection) = http2::handshake(TokioExecutor::new(), stream).await.unwrap();
        tokio::spawn(connection);
        let caller = || Self { sender: Sender::Http2(sender.clone()), host: address.to_string() };
        std::iter::repeat_with(caller).take(callers).collect()
    }

    /// One POST of JSON.
    pub async fn post(&mut self, path: &str, body: impl Into<Bytes>) -> Result<Answer, Error> {
        self.send(Method::POST, path, "application/json", body).await
    }

    /// Any request.
    pub async fn send(
        &mut self,
        method: Method,
        path: &str,
        content_type: &str,
        body: impl Into<Bytes>,
    ) -> Result<Answer, Error> {
        let request = Request::builder().method(method).header("content-type", content_type);
        let body = Full::new(body.into());
        match &mut self.sender {
            Sender::Http1(sender) => answer(sender, request.uri(path).header("host", &self.host).body(body)?).await,
            Sender::Http2(sender) => {
                sender.ready().await?;
                let request = request.uri(format!("https://{}{path}", self.host)).body(body)?;
                whole(sender.send_request(request).await?).await
            }
        }
    }
}

/// A connection to the webhook, trusting what its configuration carries.
pub async fn tls(address: SocketAddr, ca_bundle: &[u8]) -> TlsStream<TcpStream> {
    tls_to(address, ServerName::from(address.ip()), ca_bundle).await.unwrap()
}

/// The same under another name than the address; an error when the certificate is not for it.
pub async fn tls_to(
    address: SocketAddr,
    name: ServerName<'static>,
    ca_bundle: &[u8],
) -> std::io::Result<TlsStream<TcpStream>> {
    speaking(&[], address, name, ca_bundle).await
}

/// The same for a caller who says by ALPN what it speaks.
async fn speaking(
    protocols: &[&[u8]],
    address: SocketAddr,
    name: ServerName<'static>,
    ca_bundle: &[u8],
) -> std::io::Result<TlsStream<TcpStream>> {
    let mut roots = rustls::RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(ca_bundle) {
        roots.add(certificate.unwrap()).unwrap();
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    let stream = TcpStream::connect(address).await?;
    TlsConnector::from(Arc::new(config)).connect(name, stream).await
}

/// Speaks HTTP/1.1 on a connection.
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
    whole(sender.send_request(request).await?).await
}

async fn whole(response: http::Response<hyper::body::Incoming>) -> Result<Answer, Error> {
    Ok((response.status().as_u16(), response.into_body().collect().await?.to_bytes()))
}
