//! Holds the Lease of a rolegate, so that it answers reviews and lifts no gate.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use tokio::task::JoinHandle;

use crate::common::control_plane::SYSTEM;

/// Renewal interval, well within the duration of rolegate's Lease.
const RENEWED: Duration = Duration::from_secs(3);

/// Holds the Lease of the rolegates with this name until it is dropped.
pub struct LeaseHeld(JoinHandle<()>);

impl LeaseHeld {
    pub fn hold(client: &Client, name: &str) -> Self {
        let (leases, name) = (Api::<Lease>::namespaced(client.clone(), SYSTEM), name.to_owned());
        Self(tokio::spawn(async move {
            loop {
                let now = MicroTime(jiff::Timestamp::now());
                let spec = LeaseSpec {
                    holder_identity: Some("bench".to_owned()),
                    lease_duration_seconds: Some(15),
                    renew_time: Some(now),
                    ..LeaseSpec::default()
                };
                let metadata = ObjectMeta { name: Some(name.clone()), ..ObjectMeta::default() };
                let lease = Lease { metadata, spec: Some(spec) };
                let params = PatchParams::apply("bench").force();
                leases.patch(&name, &params, &Patch::Apply(lease)).await.expect("the Lease is held");
                tokio::time::sleep(RENEWED).await;
            }
        }))
    }
}

impl Drop for LeaseHeld {
    fn drop(&mut self) {
        self.0.abort();
    }
}
