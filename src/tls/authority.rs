//! Issues certificates: a CA and leaves signed by it. No I/O and no clock: the time is an argument.

use std::fmt;
use std::net::IpAddr;

use jiff::{SignedDuration, Timestamp};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, SanType,
};
use rustls::RootCertStore;
use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::ParsedCertificate;
use x509_parser::extensions::GeneralName;

use crate::tls::cert_info::{CertError, CertInfo};
use crate::tls::crypto::provider;

/// Lifetime of a CA.
pub const CA_LIFE: SignedDuration = SignedDuration::from_hours(10 * 365 * 24);

/// Certificates start this long before they are made, for callers whose clock is behind.
pub const BACKDATE: SignedDuration = SignedDuration::from_mins(10);

/// Reason for which a certificate could not be issued or judged.
#[derive(Debug, thiserror::Error)]
pub enum AuthorityError {
    /// The library that issues certificates refused.
    #[error("certificate could not be issued: {0}")]
    Issue(#[from] rcgen::Error),
    #[error(transparent)]
    Read(#[from] CertError),
    /// A certificate would end before it begins, or a date is out of range.
    #[error("certificate would not be valid: {0}")]
    Dates(String),
}

/// A certificate and its private key, both PEM.
#[derive(Clone, PartialEq, Eq)]
pub struct Issued {
    pub cert_pem: String,
    /// PKCS#8.
    pub key_pem: String,
}

impl fmt::Debug for Issued {
    // Without the key: the text may end in a log.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Issued").field("cert_pem", &self.cert_pem).finish_non_exhaustive()
    }
}

/// Names and lifetime of a serving certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeafSpec {
    /// DNS names, the first of which also becomes the common name.
    pub names: Vec<String>,
    pub addresses: Vec<IpAddr>,
    /// Lifetime in days.
    pub days: u16,
}

impl LeafSpec {
    /// Returns a spec of 30 days for these names.
    pub fn for_names<N: Into<String>>(names: impl IntoIterator<Item = N>) -> Self {
        Self { names: names.into_iter().map(Into::into).collect(), addresses: Vec::new(), days: 30 }
    }

    /// Returns a spec with the names of a Service in the cluster.
    pub fn for_service(service: &str, namespace: &str) -> Self {
        let host = format!("{service}.{namespace}.svc");
        Self::for_names([host.clone(), format!("{service}.{namespace}"), format!("{host}.cluster.local")])
    }
}

/// Makes a CA: P-256, ten years, allowed to sign leaves only.
///
/// # Errors
/// [`AuthorityError`] if no key can be made or `now` is out of range.
pub fn new_ca(now: Timestamp) -> Result<Issued, AuthorityError> {
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
    let mut params = params("rolegate-ca", now, now.saturating_add(CA_LIFE).map_err(dates)?)?;
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    Ok(Issued { cert_pem: params.self_signed(&key)?.pem(), key_pem: key.serialize_pem() })
}

/// Makes a serving certificate with its own key: P-256, signed by `ca`, which it does not outlive.
///
/// # Errors
/// [`AuthorityError`] if the CA can't be read or has expired, or a name is not a DNS name.
pub fn new_leaf(ca: &Issued, spec: &LeafSpec, now: Timestamp) -> Result<Issued, AuthorityError> {
    let issuer = Issuer::from_ca_cert_pem(&ca.cert_pem, KeyPair::from_pem(&ca.key_pem)?)?;
    let end = now.saturating_add(SignedDuration::from_hours(24 * i64::from(spec.days))).map_err(dates)?;
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
    let common_name = spec.names.first().map_or("rolegate", String::as_str);
    let mut params = params(common_name, now, end.min(leaf_info(&ca.cert_pem)?.not_after))?;
    params.subject_alt_names = alt_names(spec)?;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    Ok(Issued { cert_pem: params.signed_by(&key, &issuer)?.pem(), key_pem: key.serialize_pem() })
}

/// Reads the first certificate of a PEM text.
///
/// # Errors
/// [`CertError`] if there is none or it can't be parsed.
pub fn leaf_info(cert_pem: &str) -> Result<CertInfo, CertError> {
    CertInfo::of(&first_der(cert_pem)?)
}

/// Returns the time at which `fraction` (0 to 1) of a certificate's life has passed.
pub fn renewal_time(info: &CertInfo, fraction: f64) -> Timestamp {
    let life = info.not_after.duration_since(info.not_before).as_secs_f64() * fraction;
    let life = SignedDuration::try_from_secs_f64(life).unwrap_or(SignedDuration::ZERO);
    info.not_before.saturating_add(life).unwrap_or(info.not_after)
}

/// Reports whether the certificate has exactly these names and addresses.
///
/// # Errors
/// [`CertError`] if it can't be read.
pub fn covers(cert_pem: &str, spec: &LeafSpec) -> Result<bool, CertError> {
    let der = first_der(cert_pem)?;
    let (_, x509) =
        x509_parser::parse_x509_certificate(&der).map_err(|error| CertError::Certificate(error.to_string()))?;
    let Ok(Some(found)) = x509.subject_alternative_name() else { return Ok(false) };
    let mut found: Vec<String> = found
        .value
        .general_names
        .iter()
        .filter_map(|name| match name {
            GeneralName::DNSName(name) => Some((*name).to_owned()),
            GeneralName::IPAddress(octets) => address(octets).map(|address| address.to_string()),
            _ => None,
        })
        .collect();
    let mut wanted: Vec<String> =
        spec.names.iter().cloned().chain(spec.addresses.iter().map(ToString::to_string)).collect();
    found.sort_unstable();
    wanted.sort_unstable();
    Ok(found == wanted)
}

/// Reports whether one of the CAs in `bundle_pem` signed this certificate, even an expired one.
pub fn issued_by(cert_pem: &str, bundle_pem: &str) -> bool {
    let (Ok(leaf), Ok(info)) = (first_der(cert_pem), leaf_info(cert_pem)) else { return false };
    let Ok(parsed) = ParsedCertificate::try_from(&leaf) else { return false };
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(CertificateDer::pem_slice_iter(bundle_pem.as_bytes()).flatten());
    let Ok(then) = std::time::Duration::try_from(info.not_before.as_duration()) else { return false };
    let algorithms = provider().signature_verification_algorithms;
    verify_server_cert_signed_by_trust_anchor(&parsed, &roots, &[], UnixTime::since_unix_epoch(then), algorithms.all)
        .is_ok()
}

fn params(common_name: &str, now: Timestamp, end: Timestamp) -> Result<CertificateParams, AuthorityError> {
    let start = now.saturating_sub(BACKDATE).map_err(dates)?;
    if end <= now {
        return Err(AuthorityError::Dates(format!("it would end at {end}")));
    }
    let mut params = CertificateParams::default();
    params.not_before = date(start)?;
    params.not_after = date(end)?;
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, common_name);
    Ok(params)
}

fn alt_names(spec: &LeafSpec) -> Result<Vec<SanType>, rcgen::Error> {
    let names = spec.names.iter().map(|name| Ok(SanType::DnsName(name.as_str().try_into()?)));
    names.chain(spec.addresses.iter().map(|address| Ok(SanType::IpAddress(*address)))).collect()
}

fn first_der(cert_pem: &str) -> Result<CertificateDer<'static>, CertError> {
    let mut certificates = CertificateDer::pem_slice_iter(cert_pem.as_bytes());
    certificates.next().ok_or(CertError::NoCertificate)?.map_err(CertError::CertificatePem)
}

fn address(octets: &[u8]) -> Option<IpAddr> {
    <[u8; 4]>::try_from(octets).map(IpAddr::from).or_else(|_| <[u8; 16]>::try_from(octets).map(IpAddr::from)).ok()
}

fn date(at: Timestamp) -> Result<time::OffsetDateTime, AuthorityError> {
    time::OffsetDateTime::from_unix_timestamp(at.as_second()).map_err(|error| AuthorityError::Dates(error.to_string()))
}

#[allow(clippy::needless_pass_by_value, reason = "used with map_err")]
fn dates(error: jiff::Error) -> AuthorityError {
    AuthorityError::Dates(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn days(count: i64) -> SignedDuration {
        SignedDuration::from_hours(24 * count)
    }

    #[test]
    fn a_leaf_is_signed_by_its_ca_and_by_no_other_of_the_same_name() {
        let now = at("2026-01-01T00:00:00Z");
        let (ca, other) = (new_ca(now).unwrap(), new_ca(now).unwrap());
        let leaf = new_leaf(&ca, &LeafSpec::for_service("rolegate", "system"), now).unwrap();
        assert!(issued_by(&leaf.cert_pem, &ca.cert_pem));
        assert!(!issued_by(&leaf.cert_pem, &other.cert_pem));
        assert!(issued_by(&leaf.cert_pem, &format!("{}{}", other.cert_pem, ca.cert_pem)));
        assert!(!issued_by(&leaf.cert_pem, "") && !issued_by("", &ca.cert_pem));
    }

    #[test]
    fn dates_follow_the_given_clock() {
        let now = at("2031-05-06T07:08:09Z");
        let ca = new_ca(now).unwrap();
        let leaf = new_leaf(&ca, &LeafSpec::for_names(["a.example"]), now).unwrap();
        let (ca, leaf) = (leaf_info(&ca.cert_pem).unwrap(), leaf_info(&leaf.cert_pem).unwrap());
        assert_eq!((ca.not_before, ca.not_after), (now - BACKDATE, now + CA_LIFE));
        assert_eq!((leaf.not_before, leaf.not_after), (now - BACKDATE, now + days(30)));
    }

    #[test]
    fn a_leaf_does_not_outlive_its_ca() {
        let now = at("2026-01-01T00:00:00Z");
        let ca = new_ca(now).unwrap();
        let late = now + CA_LIFE - days(3);
        let leaf = new_leaf(&ca, &LeafSpec::for_names(["a.example"]), late).unwrap();
        assert_eq!(leaf_info(&leaf.cert_pem).unwrap().not_after, now + CA_LIFE);
        assert!(matches!(
            new_leaf(&ca, &LeafSpec::for_names(["a.example"]), now + CA_LIFE),
            Err(AuthorityError::Dates(_))
        ));
    }

    #[test]
    fn renewal_is_due_after_its_fraction_of_life() {
        let now = at("2026-01-01T00:00:00Z");
        let leaf = new_leaf(&new_ca(now).unwrap(), &LeafSpec::for_names(["a.example"]), now).unwrap();
        let renewal = renewal_time(&leaf_info(&leaf.cert_pem).unwrap(), 2.0 / 3.0);
        for (day, due) in [(0, false), (19, false), (20, true), (31, true)] {
            assert_eq!(now + days(day) >= renewal, due, "day {day}");
        }
    }

    #[test]
    fn names_and_addresses_are_compared_as_a_set() {
        let now = at("2026-01-01T00:00:00Z");
        let mut spec = LeafSpec::for_service("rolegate", "system");
        spec.addresses = vec!["127.0.0.1".parse().unwrap(), "::1".parse().unwrap()];
        let leaf = new_leaf(&new_ca(now).unwrap(), &spec, now).unwrap();
        assert!(covers(&leaf.cert_pem, &spec).unwrap());
        spec.names.reverse();
        assert!(covers(&leaf.cert_pem, &spec).unwrap());
        spec.addresses.pop();
        assert!(!covers(&leaf.cert_pem, &spec).unwrap());
    }

    #[test]
    fn keys_do_not_reach_logs() {
        let ca = new_ca(at("2026-01-01T00:00:00Z")).unwrap();
        assert!(!format!("{ca:?}").contains("PRIVATE"));
    }
}
