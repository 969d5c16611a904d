//! The cryptographic provider.

use std::sync::Arc;

use rustls::crypto::CryptoProvider;

/// Returns the only provider in use. Passed explicitly: the process default belongs to its first setter, and two crates with
/// different providers make rustls panic.
pub(crate) fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// Common methods of the verifiers of callers and of servers, by the field with their algorithms. They accept different
/// certificates, but check signatures alike.
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
