//! The cryptography in use.

use std::sync::Arc;

use rustls::crypto::CryptoProvider;

/// The one set of cryptographic functions in use. Passed explicitly: a process default is set by whoever comes first, and
/// two crates that each bring another one make rustls panic.
pub(crate) fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// The methods in which verifiers of callers and of servers are alike, by the field that holds their algorithms: which
/// certificates are taken differs, how a signature is checked does not.
macro_rules! signatures_are_verified_by {
    ($algorithms:ident) => {
        fn verify_tls12_signature(
            &self,
            message: &[u8],
            cert: &rustls::pki_types::CertificateDer<'_>,
            dss: &rustls::DigitallySignedStruct,
        ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
            rustls::crypto::verify_tls12_signature(message, cert, dss, &self.$algorithms)
        }

        fn verify_tls13_signature(
            &self,
            message: &[u8],
            cert: &rustls::pki_types::CertificateDer<'_>,
            dss: &rustls::DigitallySignedStruct,
        ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
            rustls::crypto::verify_tls13_signature(message, cert, dss, &self.$algorithms)
        }

        fn supported_verify_schemes(&self) -> Vec<rustls::SignatureScheme> {
            self.$algorithms.supported_schemes()
        }
    };
}

pub(crate) use signatures_are_verified_by;
