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
use kube::api::{Patch, PatchParams, PostParams};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

pub use crate::cluster::certificates::bundle::CaBundle;
pub use crate::cluster::certificates::plan::{
    CertificateAction, Policy, Published, SecretState, Stored, carry_out, plan_certificates,
};
use crate::cluster::certificates::plan::{Pace, exchanged_at, serviceable};
pub use crate::cluster::certificates::secret::{foreign, read as read_secret};
use crate::cluster::write::deadline::{WRITE_TIMEOUT, within};
use crate::tls::acceptor::CertStore;
use crate::tls::authority::AuthorityError;

/// Pause after an error.
const RETRY: Duration = Duration::from_secs(5);
/// Longest time between two checks. A check too many costs nothing; a changed clock may.
const LONGEST: Duration = Duration::from_secs(3600);
/// Longest name of a field manager that the API server accepts.
const LONGEST_MANAGER: usize = 128;

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
    /// Field manager of this replica: of two that make the Secret at once, the second is refused.
    manager: String,
    standing: watch::Sender<Standing>,
    pace: Pace,
    /// Version that this replica wrote last.
    written: Option<String>,
}

/// Whether certificates are served, and why the Secret is not read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    pub serves: bool,
    /// Why the Secret is not ours.
    pub foreign: Option<&'static str>,
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
    /// Returns the certificates in the Secret `namespace`/`name`, served by `store`, as kept by the replica `identity`.
    pub fn new(
        client: Client,
        namespace: &str,
        name: &str,
        identity: &str,
        policy: Policy,
        store: CertStore,
    ) -> (Self, Publication) {
        let (bundle, bundle_seen) = watch::channel(None);
        let (confirm, published) = watch::channel(None);
        let certificates = Self {
            secrets: Api::namespaced(client, namespace),
            name: name.to_owned(),
            policy,
            store,
            bundle,
            published,
            remembered: None,
            manager: format!("rolegate/{identity}").chars().take(LONGEST_MANAGER).collect(),
            standing: watch::Sender::default(),
            pace: Pace::default(),
            written: None,
        };
        (certificates, Publication { bundle: bundle_seen, confirmation: Confirmation(confirm) })
    }

    pub fn standing(&self) -> watch::Receiver<Standing> {
        self.standing.subscribe()
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
        let foreign = secret.and_then(secret::foreign);
        self.tell(foreign);
        if foreign.is_some() {
            return Ok(Step::Wait(LONGEST));
        }
        let mut exchanged = None;
        let observed = match secret {
            Some(secret) => {
                let stored = secret::read(secret);
                exchanged = self.serve(&stored, now);
                SecretState::Present(stored)
            }
            None => SecretState::Absent(self.remembered.clone()),
        };
        let action = plan_certificates(&observed, self.published.borrow().as_ref(), &self.policy, now);
        let known = self.remembered.as_ref().filter(|known| serviceable(known, now).is_some());
        let next = match (action, &observed, known) {
            // Nothing stored is of use, and callers trust what is served: it is stored again.
            (CertificateAction::CreateAll(_), SecretState::Present(_), Some(known)) => Some(known.clone()),
            (_, SecretState::Present(stored) | SecretState::Absent(Some(stored)), _) => {
                carry_out(action, Some(stored), &self.policy, now)?
            }
            (_, SecretState::Absent(None), _) => carry_out(action, None, &self.policy, now)?,
        };
        let Some(next) = next else {
            let then = [until(action, now)].into_iter().chain(exchanged.map(|then| left(then, now))).min();
            return Ok(Step::Wait(then.unwrap_or(LONGEST)));
        };
        // What this replica wrote is a step of a renewal that was counted.
        let version = secret.and_then(|secret| secret.metadata.resource_version.as_ref());
        let goes_on = version.is_some() && version == self.written.as_ref();
        let is_counted = !action.is_dated() && !goes_on;
        if let Some(due) = self.pace.due().filter(|due| is_counted && now < *due) {
            tracing::warn!(?action, secret = self.name, %due, "somebody else writes the Secret of the certificates: it is put right later");
            return Ok(Step::Wait(left(due, now)));
        }
        tracing::info!(?action, secret = self.name, "renewing certificates");
        let next = secret::write(secret, &self.name, &next);
        let written = if secret.is_some() {
            within(WRITE_TIMEOUT, self.secrets.replace(&self.name, &PostParams::default(), &next)).await
        } else {
            // The right to create it by POST could not name it, and would be one to make any Secret.
            let params = PatchParams::apply(&self.manager);
            within(WRITE_TIMEOUT, self.secrets.patch(&self.name, &params, &Patch::Apply(&next))).await
        };
        let is_second = matches!(&written, Err(kube::Error::Api(status)) if status.code == 409);
        if is_counted && (written.is_ok() || is_second) {
            self.pace.count(&self.policy, now);
        }
        match written {
            Ok(secret) => {
                self.written.clone_from(&secret.metadata.resource_version);
                Ok(Step::Written(Box::new(secret)))
            }
            // Another replica was first. Its certificates arrive by the watch.
            Err(_) if is_second => Ok(Step::Wait(RETRY)),
            Err(error) => Err(CertificatesError::Write(Box::new(error))),
        }
    }

    /// Serves the stored leaf, or returns when it may be served: until callers are known to have its CA, the leaf from before is
    /// served, and its CA is published as well.
    fn serve(&mut self, stored: &Stored, now: Timestamp) -> Option<Timestamp> {
        let published = self.published.borrow().clone();
        let then = exchanged_at(self.remembered.as_ref(), stored, published.as_ref(), &self.policy, now);
        if then.is_none() {
            match self.store.set(stored.leaf.cert_pem.as_bytes(), stored.leaf.key_pem.as_bytes()) {
                Ok(_) => self.remembered = Some(stored.clone()),
                Err(error) => tracing::warn!(%error, secret = self.name, "stored leaf can't be served"),
            }
            self.tell(None);
        }
        if !stored.bundle.0.is_empty() {
            let served = self.remembered.as_ref().filter(|_| then.is_some());
            let new = served.map_or_else(|| stored.bundle.clone(), |served| stored.bundle.and(&served.bundle, now));
            self.bundle.send_if_modified(|known| known.replace(new.clone()).as_ref() != Some(&new));
        }
        then
    }

    fn tell(&self, foreign: Option<&'static str>) {
        let standing = Standing { serves: self.remembered.is_some(), foreign };
        self.standing.send_if_modified(|known| {
            let why = foreign.filter(|_| known.foreign != foreign);
            if let Some(why) = why {
                let name = &self.name;
                tracing::error!(
                    secret = name,
                    why,
                    "the Secret of the certificates is not rolegate's, and is neither read nor written: delete it"
                );
            }
            std::mem::replace(known, standing) != standing
        });
    }
}

enum Step {
    Written(Box<Secret>),
    Wait(Duration),
}

fn until(action: CertificateAction, now: Timestamp) -> Duration {
    match action {
        CertificateAction::Nothing(then) | CertificateAction::WaitForBundle(Some(then)) => left(then, now),
        _ => LONGEST,
    }
}

fn left(then: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(then.duration_since(now)).unwrap_or_default().clamp(Duration::from_secs(1), LONGEST)
}
