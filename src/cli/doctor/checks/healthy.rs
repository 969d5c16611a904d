//! Facts of a healthy installation, for tests to break.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::api::crd;
use crate::api::selector::LabelSelector;
use crate::cli::doctor::facts::{Facts, OfGroups, Probe, Rights, Served, ServedNamespaces, Target};
use crate::cli::doctor::hooks::as_mutating;
use crate::cluster::certificates::{CaBundle, Stored};
use crate::cluster::registration::{Reach, Registration};
use crate::model::{Mode, Serving};
use crate::tls::authority::{LeafSpec, new_ca, new_leaf};

pub fn typed<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

/// Adds the status that the API server gives an established definition.
pub fn established(yaml: &str) -> (String, Value) {
    let mut definition: Value = serde_saphyr::from_str(yaml).unwrap();
    definition["status"] = json!({ "conditions": [{ "type": "Established", "status": "True" }] });
    (definition["metadata"]["name"].as_str().unwrap().to_owned(), definition)
}

pub fn stored(now: Timestamp) -> Stored {
    let ca = new_ca(now).unwrap();
    let leaf = new_leaf(&ca, &LeafSpec::for_service("rolegate", "rolegate-system"), now).unwrap();
    Stored { bundle: CaBundle(ca.cert_pem.clone()), ca, leaf }
}

fn named(name: &str) -> BTreeMap<String, String> {
    BTreeMap::from([("kubernetes.io/metadata.name".to_owned(), name.to_owned())])
}

static HEALTHY: LazyLock<Facts> = LazyLock::new(make_healthy);

pub fn healthy() -> Facts {
    HEALTHY.clone()
}

fn make_healthy() -> Facts {
    let now = Timestamp::now();
    let stored = stored(now);
    let registration = Registration {
        name: "rolegate".to_owned(),
        reach: Reach::Service { namespace: "rolegate-system".to_owned(), name: "rolegate".to_owned(), port: 443 },
        own_namespace: "rolegate-system".to_owned(),
        namespaces: Vec::new(),
        selector: LabelSelector::default(),
        mode: Mode::Enforce,
        kai_pods: true,
    };
    let service = typed(json!({ "metadata": { "name": "rolegate" }, "spec": { "ports": [{ "port": 443 }] } }));
    let lease = json!({
        "spec": { "holderIdentity": "rolegate-0", "renewTime": "2026-01-01T00:00:00.000000Z", "leaseDurationSeconds": 15 },
    });
    let mut lease: k8s_openapi::api::coordination::v1::Lease = typed(lease);
    lease.spec.as_mut().unwrap().renew_time.as_mut().unwrap().0 = now;
    let services = [(("rolegate-system".to_owned(), "rolegate".to_owned()), Some((service, 2)))];
    let namespaces = ["kube-system", "rolegate-system"].map(|name| (name.to_owned(), named(name)));
    let served = ServedNamespaces { told: Some(Serving::default()), ..ServedNamespaces::default() };
    Facts {
        target: Target { namespace: "rolegate-system".to_owned(), name: "rolegate".to_owned() },
        now,
        version: (1, 36),
        definitions: Ok(crd::files(false).iter().map(|(_, yaml)| established(yaml)).collect()),
        rights: Ok(Rights {
            user: Some("system:serviceaccount:rolegate-system:rolegate".to_owned()),
            missing: Vec::new(),
            asked: 60,
        }),
        mutating: Ok(vec![registration.mutating(Some(&stored.bundle.0))]),
        validating: Ok(vec![as_mutating(registration.validating(Some(&stored.bundle.0)))]),
        namespaces: Ok(namespaces.into()),
        services: Ok(services.into()),
        certificates: Ok(Some(Served { stored, self_managed: true, foreign: None })),
        lease: Ok(Some(lease)),
        probe: Ok(Probe::Held),
        not_made: Ok(None),
        device_classes: Ok(Some(BTreeMap::from([("gpu.example.com".to_owned(), Vec::new())]))),
        others: Ok(Vec::new()),
        nobodys: Ok(Vec::new()),
        policies: Ok(super::containment::installed()),
        rivals: Ok(Vec::new()),
        addresses: Ok(Vec::new()),
        opt_ins: Ok(Vec::new()),
        groups: Ok(OfGroups { served, ..OfGroups::default() }),
        try_in: "default".to_owned(),
    }
}
