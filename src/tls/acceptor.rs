//! The served certificate, which can be exchanged while connections run, and the TLS configuration around it.

use std::fmt;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, NoServerSessionStorage, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{ServerConfig, SupportedProtocolVersion};
use tokio::sync::watch;

use crate::tls::cert_info::{CertError, CertInfo};
pub use crate::tls::client_auth::{ClientAuth, ClientAuthError, ClientCas};
use crate::tls::crypto::provider;

/// Reads a chain (leaf first) and a key that must be the leaf's.
fn pair(chain_pem: &[u8], key_pem: &[u8]) -> Result<(CertifiedKey, CertInfo), CertError> {
    let chain =
        CertificateDer::pem_slice_iter(chain_pem).collect::<Result<Vec<_>, _>>().map_err(CertError::CertificatePem)?;
    let info = CertInfo::of(chain.first().ok_or(CertError::NoCertificate)?)?;
    let key = PrivateKeyDer::from_pem_slice(key_pem).map_err(CertError::KeyPem)?;
    let key = provider().key_provider.load_private_key(key).map_err(CertError::Pair)?;
    let key = CertifiedKey::new(chain, key);
    key.keys_match().map_err(CertError::Pair)?;
    Ok((key, info))
}

/// Reads the first certificate, and checks that the key is its own.
///
/// # Errors
/// [`CertError`] if either can't be read or they are not a pair.
pub fn check_pair(chain_pem: &[u8], key_pem: &[u8]) -> Result<CertInfo, CertError> {
    pair(chain_pem, key_pem).map(|(_, info)| info)
}

/// A served certificate.
pub struct Loaded {
    key: Arc<CertifiedKey>,
    pub info: CertInfo,
}

/// The certificate of new connections. Clones share it.
#[derive(Clone)]
pub struct CertStore(Arc<watch::Sender<Option<Loaded>>>);

impl CertStore {
    /// Returns a store that refuses every handshake until [`CertStore::set`] succeeds.
    pub fn empty() -> Self {
        Self(Arc::new(watch::Sender::new(None)))
    }

    /// Serves this chain (leaf first) and key from the next handshake on. Open connections keep theirs.
    ///
    /// Does not check validity in time: an expired certificate may be the only one, and the readiness check reports it.
    ///
    /// # Errors
    /// [`CertError`] if either can't be read or they are not a pair; then the former certificate stays in use.
    pub fn set(&self, chain_pem: &[u8], key_pem: &[u8]) -> Result<CertInfo, CertError> {
        let (key, info) = pair(chain_pem, key_pem)?;
        let loaded = Loaded { key: Arc::new(key), info: info.clone() };
        self.0.send_if_modified(|known| known.replace(loaded).is_none_or(|known| known.info != info));
        Ok(info)
    }

    /// Returns the served leaf.
    pub fn info(&self) -> Option<CertInfo> {
        self.0.borrow().as_ref().map(|loaded| loaded.info.clone())
    }

    /// Reports whether there is a certificate to serve.
    pub fn is_loaded(&self) -> bool {
        self.0.borrow().is_some()
    }

    /// Returns a receiver of the served leaf.
    pub fn changes(&self) -> watch::Receiver<Option<Loaded>> {
        self.0.subscribe()
    }

    /// Reports whether this certificate (DER) is served now.
    pub(crate) fn serves(&self, der: &[u8]) -> bool {
        self.0.borrow().as_ref().and_then(|loaded| loaded.key.cert.first()).is_some_and(|leaf| leaf.as_ref() == der)
    }
}

impl ResolvesServerCert for CertStore {
    // The requested name is ignored: callers use a service name, an IP or a URL, and there is one certificate.
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.0.borrow().as_ref().map(|loaded| Arc::clone(&loaded.key))
    }
}

impl fmt::Debug for CertStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CertStore").field(&self.info()).finish()
    }
}

/// The oldest accepted version of TLS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OldestTls {
    /// TLS 1.2, only with suites that have forward secrecy and authenticated encryption: rustls has no others.
    Tls12,
    #[default]
    Tls13,
}

impl OldestTls {
    fn versions(self) -> Vec<&'static SupportedProtocolVersion> {
        match self {
            Self::Tls12 => vec![&rustls::version::TLS13, &rustls::version::TLS12],
            Self::Tls13 => vec![&rustls::version::TLS13],
        }
    }
}

/// Returns a configuration with HTTP/1.1 only, as API servers speak to every Service. A caller that offers only HTTP/2 fails
/// the handshake. With `client`, callers must show an allowed certificate.
///
/// # Errors
/// [`ClientAuthError`] if the client CA can't be used.
pub fn server_config(
    oldest: OldestTls,
    store: &CertStore,
    client: Option<ClientAuth>,
) -> Result<ServerConfig, ClientAuthError> {
    let authenticated = client.is_some();
    let builder = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&oldest.versions())
        .map_err(ClientAuthError::Tls)?;
    let builder = match client {
        Some(client) => builder.with_client_cert_verifier(client.verifier()?),
        None => builder.with_no_client_auth(),
    };
    let mut config = builder.with_cert_resolver(Arc::new(store.clone()));
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    if authenticated {
        // A resumed session skips the certificate check, so a caller would stay trusted after its certificate no longer is.
        config.send_tls13_tickets = 0;
        config.session_storage = Arc::new(NoServerSessionStorage {});
    }
    Ok(config)
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::{
        super::authority::{LeafSpec, new_ca, new_leaf},
        *,
    };

    fn pair(name: &str) -> (String, String) {
        let now = Timestamp::now();
        let leaf = new_leaf(&new_ca(now).unwrap(), &LeafSpec::for_names([name]), now).unwrap();
        (leaf.cert_pem, leaf.key_pem)
    }

    #[test]
    fn a_broken_pair_keeps_the_old_one() {
        let store = CertStore::empty();
        let (cert, key) = pair("a.example");
        let (other_cert, other_key) = pair("b.example");
        assert!(!store.is_loaded());
        let info = store.set(cert.as_bytes(), key.as_bytes()).unwrap();
        assert_eq!(info.dns_names, ["a.example"]);
        for (cert, key, why) in [
            (&other_cert, &key, "not a usable pair"),
            (&cert, &other_key, "not a usable pair"),
            (&String::new(), &key, "no certificate"),
            (&cert, &String::new(), "private key"),
            (&key, &cert, "no certificate"),
            (&"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n".to_owned(), &key, "is not X.509"),
            (&"-----BEGIN CERTIFICATE-----\nAAAA\n".to_owned(), &key, "PEM"),
        ] {
            let error = store.set(cert.as_bytes(), key.as_bytes()).unwrap_err();
            assert!(error.to_string().contains(why), "{error}: {why}");
            assert_eq!(store.info(), Some(info.clone()));
        }
        assert!(store.set(other_cert.as_bytes(), other_key.as_bytes()).is_ok());
        assert_ne!(store.info(), Some(info));
    }

    #[test]
    fn a_caller_with_a_certificate_shows_it_on_every_connection() {
        let ca = new_ca(Timestamp::now()).unwrap().cert_pem;
        let cas = ClientCas::default();
        cas.set(ca.as_bytes()).unwrap();
        let client = ClientAuth { cas, allowed_names: vec!["kube-apiserver".to_owned()], own: None };
        let config = server_config(OldestTls::Tls12, &CertStore::empty(), Some(client.clone())).unwrap();
        let (tickets, of_tls_12) = (config.send_tls13_tickets, config.session_storage.can_cache());
        assert_eq!((tickets, of_tls_12), (0, false), "a session would be resumed without it");
        let unnamed = ClientAuth { allowed_names: Vec::new(), ..client.clone() };
        let error = server_config(OldestTls::default(), &CertStore::empty(), Some(unnamed)).unwrap_err().to_string();
        assert!(error.contains("at least one"), "{error}");
        let error = client.cas.set(b"nothing").unwrap_err().to_string();
        assert!(error.contains("client CA"), "{error}");
    }

    #[test]
    fn watchers_hear_only_of_real_changes() {
        let store = CertStore::empty();
        let mut changes = store.changes();
        let (cert, key) = pair("a.example");
        store.set(cert.as_bytes(), key.as_bytes()).unwrap();
        assert!(changes.has_changed().unwrap());
        changes.mark_unchanged();
        store.set(cert.as_bytes(), key.as_bytes()).unwrap();
        assert!(!changes.has_changed().unwrap());
    }
}
