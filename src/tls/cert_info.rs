//! Facts and faults of a certificate.

use std::fmt::Write as _;

use jiff::Timestamp;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::X509Certificate;

/// Reason for which a certificate and key were not accepted.
#[derive(Debug, thiserror::Error)]
pub enum CertError {
    /// The certificate file is not PEM.
    #[error("the certificate is not PEM")]
    CertificatePem(#[source] rustls::pki_types::pem::Error),
    /// The certificate file has no certificate in it.
    #[error("no certificate in the PEM text")]
    NoCertificate,
    /// The certificate is not X.509.
    #[error("the certificate is not X.509")]
    Certificate(String),
    /// The key file is not PEM, or has no private key in it.
    #[error("there is no private key in PEM")]
    KeyPem(#[source] rustls::pki_types::pem::Error),
    /// The key is of an unusable kind, or is not the certificate's.
    #[error(
        "key and certificate are not a usable pair: the key must be that of the certificate, of RSA, P-256, P-384 or Ed25519"
    )]
    Pair(#[source] rustls::Error),
}

/// Facts of the served leaf certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertInfo {
    /// Start of validity.
    pub not_before: Timestamp,
    /// End of validity.
    pub not_after: Timestamp,
    /// DNS names among the subject alternative names.
    pub dns_names: Vec<String>,
    /// SHA-256 of the DER bytes, lowercase hex.
    pub fingerprint: String,
}

impl CertInfo {
    /// Parses a DER certificate.
    ///
    /// # Errors
    /// [`CertError::Certificate`] if it is not X.509.
    pub fn of(der: &[u8]) -> Result<Self, CertError> {
        let (_, x509) =
            x509_parser::parse_x509_certificate(der).map_err(|error| CertError::Certificate(error.to_string()))?;
        let at = |time: x509_parser::time::ASN1Time| {
            Timestamp::from_second(time.timestamp()).map_err(|error| CertError::Certificate(error.to_string()))
        };
        Ok(Self {
            not_before: at(x509.validity().not_before)?,
            not_after: at(x509.validity().not_after)?,
            dns_names: dns_names(&x509),
            fingerprint: fingerprint(der),
        })
    }
}

/// Returns the DNS names among the subject alternative names.
pub(crate) fn dns_names(x509: &X509Certificate<'_>) -> Vec<String> {
    let Ok(Some(names)) = x509.subject_alternative_name() else { return Vec::new() };
    let dns = |name: &GeneralName<'_>| match name {
        GeneralName::DNSName(name) => Some((*name).to_owned()),
        _ => None,
    };
    names.value.general_names.iter().filter_map(dns).collect()
}

/// Returns the SHA-256 as lowercase hex.
pub(crate) fn fingerprint(der: &[u8]) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, der);
    digest.as_ref().iter().fold(String::with_capacity(64), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}
