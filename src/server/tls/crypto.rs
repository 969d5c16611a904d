//! The cryptography in use.

use std::sync::Arc;

use rustls::crypto::CryptoProvider;

/// The one set of cryptographic functions in use. Passed explicitly: a process default is set by whoever comes first, and
/// two crates that each bring another one make rustls panic.
pub(crate) fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}
