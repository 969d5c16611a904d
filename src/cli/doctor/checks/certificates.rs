//! Checks of the serving certificate and the CA bundles.

use std::collections::BTreeMap;

use jiff::Timestamp;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use super::admission::ours;
use crate::cli::doctor::facts::{Facts, Served};
use crate::cli::doctor::finding::Findings;
use crate::cli::terminal::age;
use crate::cluster::certificates::Stored;
use crate::tls::authority::{issued_by, leaf_info, renewal_time};
use crate::tls::cert_info::CertInfo;

/// Fraction of a certificate's life after which it is overdue: renewal is due at 2/3.
const LATE: f64 = 0.8;
/// Hint for self-managed certificates.
const RENEW: &str = "a running `rolegate serve` renews it; to start afresh, delete the Secret";
/// Hint for a Secret of our name that another program made.
const FOREIGN: &str =
    "rolegate neither reads nor writes it, and serves what it remembers: find who made it, and delete it";
/// Returns the hint for certificates of cert-manager.
fn renew_elsewhere(facts: &Facts) -> String {
    format!("cert-manager renews it: see `kubectl describe certificate -n {}`", facts.target.namespace)
}

/// Checks that the serving certificate is valid for a while.
pub fn served(facts: &Facts, found: &mut Findings) {
    let Some(stored) = found.known(facts.certificates.as_ref(), "the Secret of the certificates") else { return };
    let Some(Served { stored, self_managed, foreign }) = stored else {
        found.info("the Secret of certificates does not exist: another program provides them, or none has yet");
        return;
    };
    if let Some(why) = foreign {
        found.error(format!("the Secret of the certificates is not rolegate's: {why}"), FOREIGN);
        return;
    }
    let renew = if *self_managed { RENEW.to_owned() } else { renew_elsewhere(facts) };
    for (what, pem) in [("the serving certificate", &stored.leaf.cert_pem), ("its CA", &stored.ca.cert_pem)] {
        let unread = |error| found.error(format!("{what} cannot be read: {error}"), &*renew);
        let Ok(info) = leaf_info(pem).map_err(unread) else { continue };
        let left = info.not_after.as_second() - facts.now.as_second();
        let span = age(left.unsigned_abs());
        if left <= 0 {
            found.error(format!("{what} expired {span} ago"), &*renew);
        } else if facts.now >= renewal_time(&info, LATE) {
            found.warning(format!("{what} expires in {span} and was not renewed"), &*renew);
        } else {
            found.ok(format!("{what} is good for {span}"));
        }
    }
}

/// Returns the fault of a caBundle, and whether it is temporary.
fn fault_of(bundle: &str, stored: Option<&Stored>, now: Timestamp) -> Option<(&'static str, bool)> {
    let cas: Vec<_> =
        CertificateDer::pem_slice_iter(bundle.as_bytes()).filter_map(|der| CertInfo::of(&der.ok()?).ok()).collect();
    let trusts = |stored: &Stored| issued_by(&stored.leaf.cert_pem, bundle);
    let holds = |pem: &str| leaf_info(pem).is_ok_and(|info| cas.contains(&info));
    match stored {
        _ if bundle.trim().is_empty() => Some(("is empty", false)),
        _ if cas.is_empty() => Some(("holds no certificate", false)),
        _ if cas.iter().all(|ca| now >= ca.not_after) => Some(("holds only certificates that have expired", false)),
        Some(stored) if !trusts(stored) => Some(("does not hold the CA of the serving certificate", false)),
        Some(stored) if !holds(&stored.ca.cert_pem) => Some(("does not hold the next CA yet", true)),
        _ => None,
    }
}

/// Checks that the webhooks trust the serving certificate. Webhooks of one configuration with the same fault are one
/// finding.
pub fn trusted(facts: &Facts, found: &mut Findings) {
    let stored = facts.certificates.as_ref().ok().and_then(Option::as_ref).map(|served| &served.stored);
    let all = ours(facts);
    let mut faults = BTreeMap::<_, Vec<_>>::new();
    for ours in &all {
        let bundle = ours.spec.client_config.ca_bundle.as_ref().map(|bundle| String::from_utf8_lossy(&bundle.0));
        let Some((says, passes)) = fault_of(&bundle.unwrap_or_default(), stored, facts.now) else { continue };
        faults.entry((ours.kind, says, passes)).or_default().push(ours.spec.name.as_str());
    }
    for ((kind, says, passes), names) in &faults {
        let plural = if names.len() > 1 { "s" } else { "" };
        let says = format!("caBundle of {kind} webhook{plural} {} {says}", names.join(", "));
        if *passes {
            found.warning(says, "wait for `rolegate serve` to publish it; see its log");
        } else {
            found.error(
                says,
                "`rolegate serve` fills it in with --webhooks ca-bundle or all; with cert-manager, its CA injector does",
            );
        }
    }
    if !all.is_empty() && faults.is_empty() {
        found.ok("every caBundle holds the CA of the serving certificate");
    }
}
