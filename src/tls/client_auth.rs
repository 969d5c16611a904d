//! Authentication of callers by a client certificate with a given CA and name.
//!
//! The whole pod network reaches the webhook port. Where the API server can be given a client certificate for webhooks (in
//! its admission configuration file), this refuses all other callers.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};

use rustls::crypto::WebPkiSupportedAlgorithms;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{VerifierBuilderError, WebPkiClientVerifier};
use rustls::{CertificateError, DistinguishedName, Error, RootCertStore};

use crate::tls::cert_info::dns_names;
use crate::tls::crypto::{provider, signatures_are_verified_by};
use crate::tls::files::PolledFiles;

/// Reason for which client certificates can't be checked.
#[derive(Debug, thiserror::Error)]
pub enum ClientAuthError {
    /// The CA file is not PEM.
    #[error("client CA is not PEM")]
    Pem(#[source] rustls::pki_types::pem::Error),
    /// A certificate in the CA file can't be a trust anchor.
    #[error("client CA is not the certificate of an authority")]
    Anchor(#[source] Error),
    /// The CA file has no certificate in it.
    #[error("client CA has no certificate in it")]
    Verifier(#[source] VerifierBuilderError),
    /// No name is allowed, so nobody could call.
    #[error("client authentication needs at least one allowed name")]
    NoNames,
    /// The TLS library refused the configuration.
    #[error("TLS configuration: {0}")]
    Tls(#[source] Error),
}

/// CAs of the callers' certificates, exchangeable while connections run. Initially none, so that no caller is accepted.
/// Clones share them.
#[derive(Clone, Default)]
pub struct ClientCas(Arc<RwLock<Option<Arc<dyn ClientCertVerifier>>>>);

impl ClientCas {
    /// Trusts only these CAs from the next handshake on. Open connections stay open.
    ///
    /// # Errors
    /// [`ClientAuthError`] if one of them can't be a trust anchor, or there is none; then the former CAs stay trusted.
    pub fn set(&self, pem: &[u8]) -> Result<(), ClientAuthError> {
        let mut roots = RootCertStore::empty();
        for der in CertificateDer::pem_slice_iter(pem) {
            roots.add(der.map_err(ClientAuthError::Pem)?).map_err(ClientAuthError::Anchor)?;
        }
        let chain = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider())
            .build()
            .map_err(ClientAuthError::Verifier)?;
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Some(chain);
        Ok(())
    }

    /// Keeps the CAs equal to a file.
    pub fn follow(&self, path: PathBuf) -> PolledFiles<1, ClientAuthError> {
        let cas = self.clone();
        PolledFiles::new("client CA", [path], move |[pem]| {
            cas.set(pem)?;
            tracing::info!("client CA read from its file");
            Ok(())
        })
    }
}

/// The accepted callers.
#[derive(Clone)]
pub struct ClientAuth {
    /// CAs of the callers' certificates.
    pub cas: ClientCas,
    /// A caller's common name or one of its DNS names must be in this list.
    pub allowed_names: Vec<String>,
    /// The certificate (DER) of this process for its readiness check, see
    /// [`SelfIdentity`](crate::server::http::self_dial::SelfIdentity). Its key never leaves the process.
    pub own: Option<CertificateDer<'static>>,
}

impl ClientAuth {
    pub(crate) fn verifier(self) -> Result<Arc<dyn ClientCertVerifier>, ClientAuthError> {
        if self.allowed_names.is_empty() {
            return Err(ClientAuthError::NoNames);
        }
        let algorithms = provider().signature_verification_algorithms;
        Ok(Arc::new(NamedClients { cas: self.cas, allowed: self.allowed_names, own: self.own, algorithms }))
    }
}

struct NamedClients {
    cas: ClientCas,
    allowed: Vec<String>,
    own: Option<CertificateDer<'static>>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl NamedClients {
    fn allows(&self, der: &CertificateDer<'_>) -> bool {
        let Ok((_, x509)) = x509_parser::parse_x509_certificate(der) else { return false };
        let common = x509.subject().iter_common_name().filter_map(|name| name.as_str().ok()).map(str::to_owned);
        common.chain(dns_names(&x509)).any(|name| self.allowed.contains(&name))
    }
}

impl fmt::Debug for NamedClients {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NamedClients").field("allowed", &self.allowed).finish_non_exhaustive()
    }
}

impl ClientCertVerifier for NamedClients {
    // None: a hint could not follow an exchange of CAs, and a caller with one certificate needs none.
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        if self.own.as_ref() == Some(end_entity) {
            return Ok(ClientCertVerified::assertion());
        }
        let chain = self.cas.0.read().unwrap_or_else(PoisonError::into_inner).clone();
        let chain = chain.ok_or(Error::InvalidCertificate(CertificateError::UnknownIssuer))?;
        let verified = chain.verify_client_cert(end_entity, intermediates, now)?;
        if self.allows(end_entity) {
            Ok(verified)
        } else {
            Err(Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure))
        }
    }

    signatures_are_verified_by!(algorithms);
}
