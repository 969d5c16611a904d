//! A Lease and a Secret that anybody may have written: somebody leads in the end, and there are certificates to serve.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::Method;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Secret;
use kube::api::DynamicObject;
use rolegate::cluster::certificates::{
    CertificateAction, Policy, Published, SecretState, Stored, carry_out, plan_certificates, read_secret,
};
use rolegate::cluster::lease::{Election, LeaseOptions, Record};
use rolegate::tls::acceptor::{CertStore, check_pair};
use rolegate::tls::authority::{LeafSpec, issued_by, new_ca, new_leaf};
use rolegate::tls::cert_info::CertInfo;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::api_server::{block_on, client, not_found};

/// Steps after which the certificates are as they should be.
const MOST_STEPS: usize = 8;
const OURS: &str = "replica-0";

#[derive(Deserialize)]
struct Input {
    #[serde(default)]
    lease: Value,
    #[serde(default)]
    secret: Value,
    /// Days since 2026.
    #[serde(default)]
    day: u16,
}

/// Tries one input.
pub fn run(data: &[u8]) {
    _ = CertInfo::of(data);
    _ = check_pair(data, data);
    let Ok(input) = serde_json::from_slice::<Input>(data) else { return };
    if !input.lease.is_null() {
        lease(&input.lease);
    }
    if let Ok(secret) = serde_json::from_value::<Secret>(input.secret) {
        certificates(&secret, start() + SignedDuration::from_hours(24 * i64::from(input.day)));
    }
}

fn start() -> Timestamp {
    "2026-01-01T00:00:00Z".parse().unwrap()
}

fn policy() -> Policy {
    Policy::for_leaf(LeafSpec::for_service("rolegate", "system"))
}

/// From any Secret, in a few steps, to a leaf that callers take.
fn certificates(secret: &Secret, mut now: Timestamp) {
    let (mut stored, policy) = (read_secret(secret), policy());
    _ = CertStore::empty().set(stored.leaf.cert_pem.as_bytes(), stored.leaf.key_pem.as_bytes());
    for _ in 0..MOST_STEPS {
        let published = Published { bundle: stored.bundle.clone(), since: now - policy.settle };
        let observed = SecretState::Present(stored.clone());
        let action = plan_certificates(&observed, Some(&published), &policy, now);
        match carry_out(action, Some(&stored), &policy, now).unwrap_or_else(|error| panic!("{action:?}: {error}")) {
            Some(next) => stored = next,
            None if matches!(action, CertificateAction::WaitForBundle(_)) => now += policy.settle,
            None => return serves(&stored, now),
        }
        // The bundle has been out for long enough at the next look.
        now += policy.settle;
    }
    panic!("no rest after {MOST_STEPS} steps");
}

fn serves(stored: &Stored, now: Timestamp) {
    let info = check_pair(stored.leaf.cert_pem.as_bytes(), stored.leaf.key_pem.as_bytes()).expect("a leaf");
    assert!(now < info.not_after && issued_by(&stored.leaf.cert_pem, &stored.bundle.0), "{info:?}");
}

/// One look at a Lease, and what is written in its place.
fn lease(lease: &Value) {
    let Ok(object) = serde_json::from_value::<DynamicObject>(lease.clone()) else { return };
    let (record, own) = (Record::of(&object), Duration::from_secs(15));
    assert!(record.believed(own) <= Duration::from_secs(600), "{record:?}");
    let written = Arc::new(Mutex::new(Vec::new()));
    block_on(async {
        let (stop, stored) = (CancellationToken::new(), lease.clone());
        let (told, writes) = (stop.clone(), written.clone());
        let client = client(move |method, _, body| {
            // One look is enough.
            told.cancel();
            if *method == Method::GET {
                return (200, stored.clone());
            }
            match serde_json::from_slice::<Value>(body) {
                Ok(body) => {
                    writes.lock().unwrap().push(body.clone());
                    (200, body)
                }
                Err(_) => not_found(),
            }
        });
        let options = LeaseOptions {
            namespace: "ns".into(),
            name: "rolegate".into(),
            identity: OURS.into(),
            duration: own,
            told: std::collections::BTreeMap::new(),
        };
        Election::new(&client, options).0.run(stop).await;
    });
    // An API server keeps none with negative numbers.
    let stored = serde_json::from_value::<Lease>(lease.clone()).ok().and_then(|lease| lease.spec);
    let is_kept = stored.is_some_and(|spec| spec.lease_transitions.is_none_or(|count| count >= 0));
    for body in written.lock().unwrap().iter().filter(|body| is_kept && body["spec"]["holderIdentity"] == OURS) {
        let spec = serde_json::from_value::<Lease>(body.clone()).expect("a Lease").spec.expect("a spec");
        let is_valid = spec.lease_transitions.is_none_or(|count| count >= 0) && spec.lease_duration_seconds == Some(15);
        assert!(is_valid, "{body}");
    }
}

/// Leases and Secrets as they should be, and not.
pub fn seeds() -> Vec<Vec<u8>> {
    let now = start();
    let ca = new_ca(now).unwrap();
    let leaf = new_leaf(&ca, &policy().leaf, now).unwrap();
    let text = |text: &str| json!(k8s_openapi::ByteString(text.as_bytes().to_vec()));
    let data = json!({
        "ca.crt": text(&ca.cert_pem), "ca.key": text(&ca.key_pem), "tls.crt": text(&leaf.cert_pem),
        "tls.key": text(&leaf.key_pem), "ca-bundle.crt": text(&ca.cert_pem),
    });
    let lease = |spec: Value| {
        let metadata = json!({ "name": "rolegate", "namespace": "ns", "resourceVersion": "7" });
        json!({ "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec })
    };
    let time = "2026-01-01T00:00:00.000000Z";
    let inputs = [
        json!({ "day": 1, "secret": { "metadata": {}, "data": data } }),
        json!({ "day": 25, "secret": { "metadata": {}, "data": { "ca.crt": data["ca.crt"], "ca.key": data["ca.key"] } } }),
        json!({ "day": 2600, "secret": { "metadata": {}, "data": data } }),
        json!({ "lease": lease(json!({ "holderIdentity": OURS, "leaseDurationSeconds": 15, "acquireTime": time, "renewTime": time, "leaseTransitions": 3 })) }),
        json!({ "lease": lease(json!({ "holderIdentity": "", "leaseTransitions": i64::MAX, "renewTime": "then" })) }),
        json!({ "lease": lease(json!({ "holderIdentity": "another", "leaseDurationSeconds": -1 })) }),
    ];
    let texts = inputs.into_iter().map(|input| input.to_string());
    texts.chain([leaf.cert_pem, leaf.key_pem]).map(String::into_bytes).collect()
}
