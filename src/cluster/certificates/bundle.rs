//! The CAs that callers should trust.

use jiff::Timestamp;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use crate::tls::authority::{Issued, leaf_info};

/// The CAs that callers should trust, PEM, the issuing one first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaBundle(pub String);

/// The most CAs in a bundle: a Secret that is deleted repeatedly must not let it grow without end.
const MOST_CAS: usize = 8;

impl CaBundle {
    /// Returns `ca`, then the CAs of `known` that have not expired.
    pub(super) fn of(ca: &Issued, known: Option<&Self>, now: Timestamp) -> Self {
        Self::joined(vec![ca.cert_pem.clone()], known.map(Self::certificates).unwrap_or_default(), now)
    }

    /// Returns these CAs, then those of `others` that have not expired.
    pub(super) fn and(&self, others: &Self, now: Timestamp) -> Self {
        Self::joined(self.certificates(), others.certificates(), now)
    }

    fn joined(mut pems: Vec<String>, more: Vec<String>, now: Timestamp) -> Self {
        for pem in more {
            if leaf_info(&pem).is_ok_and(|info| now < info.not_after) && !pems.iter().any(|have| same(have, &pem)) {
                pems.push(pem);
            }
        }
        pems.truncate(MOST_CAS);
        Self(pems.concat())
    }

    pub(super) fn contains(&self, ca_pem: &str) -> bool {
        self.certificates().iter().any(|pem| same(pem, ca_pem))
    }

    /// Returns each readable certificate, as PEM.
    pub(super) fn certificates(&self) -> Vec<String> {
        const END: &str = "-----END CERTIFICATE-----";
        self.0
            .split_inclusive(END)
            .filter(|part| CertificateDer::from_pem_slice(part.as_bytes()).is_ok())
            .map(|part| format!("{}\n", part.trim()))
            .collect()
    }
}

fn same(one: &str, other: &str) -> bool {
    match (leaf_info(one), leaf_info(other)) {
        (Ok(one), Ok(other)) => one.fingerprint == other.fingerprint,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tls::authority::new_ca;

    #[test]
    fn a_bundle_does_not_grow_without_end() {
        let now = Timestamp::now();
        let mut bundle = None;
        for _ in 0..12 {
            let ca = new_ca(now).unwrap();
            let next = CaBundle::of(&ca, bundle.as_ref(), now);
            assert!(same(&next.certificates()[0], &ca.cert_pem));
            bundle = Some(next);
        }
        assert_eq!(bundle.unwrap().certificates().len(), MOST_CAS);
    }
}
