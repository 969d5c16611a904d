//! Describes the certificates of a kubeconfig, for TLS errors that do not name a certificate.

use std::fs;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use kube::config::AuthInfo;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use x509_parser::prelude::X509Certificate;
use x509_parser::public_key::PublicKey;

/// Describes the client certificate of a user: `CN=jane (X.509 version 1, EC key of 256 bits)`.
pub fn client_certificate(user: &AuthInfo) -> Option<String> {
    let text = match (&user.client_certificate_data, &user.client_certificate) {
        (Some(data), _) => BASE64_STANDARD.decode(data).ok()?,
        (None, Some(file)) => fs::read(file).ok()?,
        (None, None) => return None,
    };
    let der = CertificateDer::from_pem_slice(&text).ok()?;
    let (_, certificate) = x509_parser::parse_x509_certificate(&der).ok()?;
    let version = certificate.version().0.saturating_add(1);
    Some(format!("{} (X.509 version {version}, {})", certificate.subject(), key(&certificate)))
}

/// Describes the CA certificates that are trusted for the API server.
pub fn trusted(roots: &[Vec<u8>]) -> String {
    let names = roots.iter().filter_map(|der| {
        let (_, certificate) = x509_parser::parse_x509_certificate(der).ok()?;
        let but = if certificate.is_ca() { "" } else { " (not the certificate of a CA)" };
        Some(format!("{}{but}", certificate.subject()))
    });
    names.collect::<Vec<_>>().join(", ")
}

fn key(certificate: &X509Certificate<'_>) -> String {
    match certificate.public_key().parsed() {
        Ok(key @ PublicKey::RSA(_)) => format!("RSA key of {} bits", key.key_size()),
        Ok(PublicKey::EC(point)) => format!("EC key of {} bits", curve_bits(point.data().len())),
        _ => "key of another kind than RSA and EC".to_owned(),
    }
}

/// Returns the bits of a curve from the bytes of an uncompressed point: one byte and two coordinates. P-521 has
/// 66-byte coordinates.
fn curve_bits(bytes: usize) -> usize {
    match bytes / 2 * 8 {
        528 => 521,
        bits => bits,
    }
}
