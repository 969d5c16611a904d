//! Calls the own webhook port over TLS, as the API server would: readiness requires it.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use rcgen::{CertificateParams, KeyPair};
use rustls::client::Resumption;
use rustls::client::danger::{ServerCertVerified, ServerCertVerifier};
use rustls::crypto::WebPkiSupportedAlgorithms;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, Error};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_util::sync::CancellationToken;

use crate::server::http::admin::Check;
use crate::tls::acceptor::CertStore;
use crate::tls::cert_info::CertInfo;
use crate::tls::crypto::{provider, signatures_are_verified_by};

/// The requested path; the webhook's router must answer it with 200.
pub const SELF_DIAL_PATH: &str = "/livez";

const PERIOD: Duration = Duration::from_secs(5);
/// Time limit of a call.
const PATIENCE: Duration = Duration::from_secs(3);

/// Reason for which the own port did not answer.
#[derive(Debug, thiserror::Error)]
pub enum SelfDialError {
    #[error("no certificate is loaded")]
    NoCertificate,
    #[error("no answer within {PATIENCE:?}")]
    TimedOut,
    /// The connection or its handshake failed.
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("unexpected answer {0:?}")]
    Answer(String),
    /// The TLS library refused the configuration.
    #[error("TLS configuration: {0}")]
    Tls(#[from] Error),
}

/// The client certificate of the process for calls to itself. Generated at startup, never stored.
pub struct SelfIdentity {
    cert: CertificateDer<'static>,
    key: PrivatePkcs8KeyDer<'static>,
}

impl SelfIdentity {
    /// Makes a new key and a self-signed certificate.
    ///
    /// # Errors
    /// When no key can be generated.
    pub fn generate() -> Result<Self, rcgen::Error> {
        let key = KeyPair::generate()?;
        let cert = CertificateParams::new(vec!["rolegate-itself".to_owned()])?.self_signed(&key)?;
        Ok(Self { cert: cert.der().clone(), key: key.serialize_der().into() })
    }

    /// Returns the value of [`ClientAuth::own`](crate::tls::acceptor::ClientAuth::own).
    pub fn certificate(&self) -> CertificateDer<'static> {
        self.cert.clone()
    }
}

/// Calls the own port, and trusts only the served certificate in the store.
pub struct SelfDial {
    /// The first one that accepts a connection is called.
    addresses: Vec<SocketAddr>,
    store: CertStore,
    connector: TlsConnector,
}

impl SelfDial {
    /// `bound` is the address of the webhook; an unspecified one is called by loopback.
    ///
    /// # Errors
    /// [`SelfDialError::Tls`] if the identity can't be used.
    pub fn new(bound: SocketAddr, store: CertStore, identity: Option<SelfIdentity>) -> Result<Self, SelfDialError> {
        let provider = provider();
        let verifier = Pinned { store: store.clone(), algorithms: provider.signature_verification_algorithms };
        let builder = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier));
        let mut config = match identity {
            Some(own) => builder.with_client_auth_cert(vec![own.cert], PrivateKeyDer::Pkcs8(own.key))?,
            None => builder.with_no_client_auth(),
        };
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        // Each call must see the certificate.
        config.resumption = Resumption::disabled();
        let connector = TlsConnector::from(Arc::new(config));
        Ok(Self { addresses: reachable(bound), store, connector })
    }

    /// Calls once.
    ///
    /// # Errors
    /// [`SelfDialError`], which tells what a caller would meet.
    pub async fn dial(&self) -> Result<(), SelfDialError> {
        if !self.store.is_loaded() {
            return Err(SelfDialError::NoCertificate);
        }
        let before = self.store.info();
        let once = async || timeout(PATIENCE, self.call()).await.unwrap_or(Err(SelfDialError::TimedOut));
        match once().await {
            // The certificate changed between the handshake and the comparison: that is no failure.
            Err(_) if self.store.info() != before => once().await,
            result => result,
        }
    }

    async fn call(&self) -> Result<(), SelfDialError> {
        let stream = TcpStream::connect(&*self.addresses).await?;
        stream.set_nodelay(true)?;
        let name = ServerName::IpAddress(stream.peer_addr()?.ip().into());
        let mut stream = self.connector.connect(name, stream).await?;
        let request = format!("GET {SELF_DIAL_PATH} HTTP/1.1\r\nHost: rolegate\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        stream.flush().await?;
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).await?;
        let _ = stream.shutdown().await;
        if answer == *b"HTTP/1.1 200" {
            Ok(())
        } else {
            Err(SelfDialError::Answer(String::from_utf8_lossy(&answer).into()))
        }
    }

    /// Updates `check` until `stop` is cancelled: every five seconds, and at once when the certificate changes.
    ///
    /// A ready process becomes unready only after two failures in a row: a single slow answer under load must not push that
    /// load onto the other replicas.
    pub async fn run(self, check: Check, stop: CancellationToken) {
        let mut changes = self.store.changes();
        let mut excused = false;
        loop {
            changes.mark_unchanged();
            match self.dial().await {
                Ok(()) => {
                    check.set(true, "");
                    excused = true;
                }
                Err(error) if excused => {
                    tracing::debug!(%error, "self dial failed once");
                    excused = false;
                }
                Err(error) => check.set(false, error.to_string()),
            }
            tokio::select! {
                () = stop.cancelled() => return,
                Ok(()) = changes.changed() => {}
                () = tokio::time::sleep(PERIOD) => {}
            }
        }
    }
}

/// Returns the addresses of the own port. An unspecified IPv6 address stands for both families, of which a machine may lack
/// either.
fn reachable(bound: SocketAddr) -> Vec<SocketAddr> {
    let (v4, v6) = (Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into());
    let all = match bound.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => vec![v4],
        IpAddr::V6(ip) if ip.is_unspecified() => vec![v6, v4],
        ip => vec![ip],
    };
    all.into_iter().map(|ip| SocketAddr::new(ip, bound.port())).collect()
}

/// Accepts only the certificate in the store, while it is valid.
#[derive(Debug)]
struct Pinned {
    store: CertStore,
    algorithms: WebPkiSupportedAlgorithms,
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if !self.store.serves(end_entity) {
            return Err(Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure));
        }
        let info = CertInfo::of(end_entity).map_err(|_| CertificateError::BadEncoding)?;
        let now = i64::try_from(now.as_secs()).ok().and_then(|now| Timestamp::from_second(now).ok());
        match now {
            Some(now) if now < info.not_before => Err(CertificateError::NotValidYet.into()),
            Some(now) if now <= info.not_after => Ok(ServerCertVerified::assertion()),
            _ => Err(CertificateError::Expired.into()),
        }
    }

    signatures_are_verified_by!(algorithms);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unspecified_address_is_called_by_loopback() {
        for (bound, called) in [
            ("0.0.0.0:8443", &["127.0.0.1:8443"][..]),
            ("[::]:8443", &["[::1]:8443", "127.0.0.1:8443"]),
            ("10.1.2.3:8443", &["10.1.2.3:8443"]),
        ] {
            let all: Vec<_> = reachable(bound.parse().unwrap()).iter().map(ToString::to_string).collect();
            assert_eq!(all, called);
        }
    }
}
