//! Self-managed certificates in one Secret that all replicas share, watch and renew.
//!
//! The Secret is watched, not mounted: the kubelet updates a mount half a minute or more after a change, and a missing Secret
//! keeps a pod from starting.

mod bundle;
mod plan;
mod secret;

use std::pin::pin;
use std::time::Duration;

use futures::StreamExt;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::api::PostParams;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

pub use crate::cluster::certificates::bundle::CaBundle;
pub use crate::cluster::certificates::plan::{
    CertificateAction, Policy, Published, SecretState, Stored, carry_out, plan_certificates,
};
pub use crate::cluster::certificates::secret::read as read_secret;
use crate::cluster::write::deadline::{WRITE_TIMEOUT, within};
use crate::tls::acceptor::CertStore;
use crate::tls::authority::AuthorityError;

/// Pause after an error.
const RETRY: Duration = Duration::from_secs(5);
/// Longest time between two checks. A check too many costs nothing; a changed clock may.
const LONGEST: Duration = Duration::from_secs(3600);

/// Reason for which a step failed.
#[derive(Debug, thiserror::Error)]
pub enum CertificatesError {
    #[error(transparent)]
    Authority(#[from] AuthorityError),
    /// The API server refused.
    #[error("Secret could not be written: {0}")]
    Write(#[source] Box<kube::Error>),
}

/// Maintains the Secret, and the [`CertStore`] from it.
pub struct Certificates {
    secrets: Api<Secret>,
    name: String,
    policy: Policy,
    store: CertStore,
    bundle: watch::Sender<Option<CaBundle>>,
    published: watch::Receiver<Option<Published>>,
    remembered: Option<Stored>,
}

/// Reports which bundle the webhook configurations have.
#[derive(Debug)]
pub struct Confirmation(watch::Sender<Option<Published>>);

impl Confirmation {
    /// Reports that every webhook configuration has this bundle.
    pub fn published(&self, bundle: &CaBundle, now: Timestamp) {
        self.0.send_if_modified(|known| {
            let new = known.as_ref().is_none_or(|known| known.bundle != *bundle);
            if new {
                *known = Some(Published { bundle: bundle.clone(), since: now });
            }
            new
        });
    }

    /// Reports that a webhook configuration lacks the bundle.
    pub fn lost(&self) {
        self.0.send_if_modified(|known| known.take().is_some());
    }
}

/// The other ends of the channels of [`Certificates`].
#[derive(Debug)]
pub struct Publication {
    /// The wanted `caBundle`; `None` until the Secret was read.
    pub bundle: watch::Receiver<Option<CaBundle>>,
    /// Reports the published bundle. Without it, a new CA comes into use only when the old leaf expires.
    pub confirmation: Confirmation,
}

impl Certificates {
    /// Returns the certificates in the Secret `namespace`/`name`, served by `store`.
    pub fn new(client: Client, namespace: &str, name: &str, policy: Policy, store: CertStore) -> (Self, Publication) {
        let (bundle, bundle_seen) = watch::channel(None);
        let (confirm, published) = watch::channel(None);
        let secrets = Api::namespaced(client, namespace);
        let certificates = Self { secrets, name: name.to_owned(), policy, store, bundle, published, remembered: None };
        (certificates, Publication { bundle: bundle_seen, confirmation: Confirmation(confirm) })
    }

    /// Watches and renews until `stop` is cancelled.
    pub async fn run(mut self, stop: CancellationToken) {
        let mut events = pin!(watcher::watch_object(self.secrets.clone(), &self.name).default_backoff());
        let mut published = self.published.clone();
        let mut reporting = true;
        let mut known: Option<Option<Secret>> = None;
        loop {
            let wait = match &known {
                Some(secret) => match self.step(secret.as_ref()).await {
                    Ok(Step::Written(secret)) => {
                        known = Some(Some(*secret));
                        continue;
                    }
                    Ok(Step::Wait(wait)) => wait,
                    Err(error) => {
                        tracing::warn!(%error, secret = self.name, "certificates not renewed; trying again");
                        RETRY
                    }
                },
                None => LONGEST,
            };
            tokio::select! {
                () = stop.cancelled() => return,
                event = events.next() => match event {
                    Some(Ok(secret)) => known = Some(secret),
                    Some(Err(error)) => tracing::warn!(%error, secret = self.name, "watch of the certificates failed"),
                    None => return,
                },
                // The sender may be gone; then there are no more reports.
                changed = published.changed(), if reporting => reporting = changed.is_ok(),
                () = tokio::time::sleep(wait) => {}
            }
        }
    }

    async fn step(&mut self, secret: Option<&Secret>) -> Result<Step, CertificatesError> {
        let now = Timestamp::now();
        let observed = match secret {
            Some(secret) => {
                let stored = secret::read(secret);
                self.serve(&stored);
                SecretState::Present(stored)
            }
            None => SecretState::Absent(self.remembered.clone()),
        };
        let action = plan_certificates(&observed, self.published.borrow().as_ref(), &self.policy, now);
        let base = match &observed {
            SecretState::Present(stored) | SecretState::Absent(Some(stored)) => Some(stored),
            SecretState::Absent(None) => None,
        };
        let Some(next) = carry_out(action, base, &self.policy, now)? else {
            return Ok(Step::Wait(until(action, now)));
        };
        tracing::info!(?action, secret = self.name, "renewing certificates");
        let next = secret::write(secret, &self.name, &next);
        let written = match secret {
            Some(_) => within(WRITE_TIMEOUT, self.secrets.replace(&self.name, &PostParams::default(), &next)).await,
            None => within(WRITE_TIMEOUT, self.secrets.create(&PostParams::default(), &next)).await,
        };
        match written {
            Ok(secret) => Ok(Step::Written(Box::new(secret))),
            // Another replica was first. Its certificates arrive by the watch.
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(Step::Wait(RETRY)),
            Err(error) => Err(CertificatesError::Write(Box::new(error))),
        }
    }

    fn serve(&mut self, stored: &Stored) {
        match self.store.set(stored.leaf.cert_pem.as_bytes(), stored.leaf.key_pem.as_bytes()) {
            Ok(_) => self.remembered = Some(stored.clone()),
            Err(error) => tracing::warn!(%error, secret = self.name, "stored leaf can't be served"),
        }
        if !stored.bundle.0.is_empty() {
            let new = &stored.bundle;
            self.bundle.send_if_modified(|known| known.replace(new.clone()).as_ref() != Some(new));
        }
    }
}

enum Step {
    Written(Box<Secret>),
    Wait(Duration),
}

fn until(action: CertificateAction, now: Timestamp) -> Duration {
    match action {
        CertificateAction::Nothing(then) | CertificateAction::WaitForBundle(Some(then)) => {
            Duration::try_from(then.duration_since(now)).unwrap_or_default().clamp(Duration::from_secs(1), LONGEST)
        }
        _ => LONGEST,
    }
}
