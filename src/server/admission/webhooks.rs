//! Keeps the webhook configurations: all of them, or only their `caBundle`.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration};
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::cluster::write::deadline::{WRITE_TIMEOUT, within};
use crate::cluster::write::writer::MANAGER;
use crate::server::admission::registration::Registration;
use crate::server::tls::certificates::{CaBundle, Publication};

/// What is kept of the webhook configurations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// Everything: they are created and corrected.
    All,
    /// Their `caBundle`; somebody else installs them.
    CaBundle,
}

/// How often they are looked at when nothing happens: somebody may have changed them.
const EVERY: Duration = Duration::from_secs(60);
/// Pause after a failure.
const RETRY: Duration = Duration::from_secs(1);

/// Keeps the webhook configurations.
pub struct Webhooks {
    client: Client,
    registration: Registration,
    keep: Keep,
}

impl Webhooks {
    /// Keeps these.
    pub fn new(client: Client, registration: Registration, keep: Keep) -> Self {
        Self { client, registration, keep }
    }

    /// Publishes each new bundle, and says so, until `stop` is cancelled.
    pub async fn run(self, mut publication: Publication, stop: CancellationToken) {
        loop {
            let bundle = publication.bundle.borrow_and_update().clone();
            let pause = match &bundle {
                None => EVERY,
                Some(bundle) => match within(WRITE_TIMEOUT, self.publish(bundle)).await {
                    Ok(()) => {
                        publication.confirmation.published(bundle, Timestamp::now());
                        EVERY
                    }
                    Err(error) => {
                        publication.confirmation.lost();
                        tracing::warn!(%error, "webhook configurations cannot be written, will retry");
                        RETRY
                    }
                },
            };
            tokio::select! {
                () = stop.cancelled() => return,
                changed = publication.bundle.changed() => if changed.is_err() { return },
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    /// Writes both configurations once.
    async fn publish(&self, bundle: &CaBundle) -> Result<(), kube::Error> {
        let name = &self.registration.name;
        let mutating: Api<MutatingWebhookConfiguration> = Api::all(self.client.clone());
        let validating: Api<ValidatingWebhookConfiguration> = Api::all(self.client.clone());
        if self.keep == Keep::All {
            let apply = PatchParams::apply(MANAGER).force();
            // Validation first: once pods are held, groups are judged as well.
            validating.patch(name, &apply, &Patch::Apply(self.registration.validating(Some(&bundle.0)))).await?;
            mutating.patch(name, &apply, &Patch::Apply(self.registration.mutating(Some(&bundle.0)))).await?;
            return Ok(());
        }
        let params = PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
        let validating_names =
            self.registration.validating(None).webhooks.unwrap_or_default().into_iter().map(|w| w.name);
        validating.patch(name, &params, &Patch::Strategic(ca_bundles(validating_names, bundle))).await?;
        let mutating_names = self.registration.mutating(None).webhooks.unwrap_or_default().into_iter().map(|w| w.name);
        mutating.patch(name, &params, &Patch::Strategic(ca_bundles(mutating_names, bundle))).await?;
        Ok(())
    }
}

/// Webhooks are merged by name: nothing but the bundle is touched.
fn ca_bundles(names: impl Iterator<Item = String>, bundle: &CaBundle) -> Value {
    use base64::Engine as _;
    let encoded = base64::engine::general_purpose::STANDARD.encode(&bundle.0);
    let webhooks = names.map(|name| json!({ "name": name, "clientConfig": { "caBundle": encoded } }));
    json!({ "webhooks": webhooks.collect::<Vec<_>>() })
}
