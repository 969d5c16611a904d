//! Maintains the webhook configurations: all fields, or only `caBundle`.

use std::collections::BTreeSet;
use std::pin::pin;
use std::time::Duration;

use futures::future::OptionFuture;
use futures::{Stream, StreamExt, stream};
use jiff::Timestamp;
use k8s_openapi::api::admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration};
use kube::api::{ApiResource, DynamicObject, ListParams, Patch, PatchParams};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client};
use prometheus_client::metrics::counter::Counter;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::cluster::certificates::{CaBundle, Publication};
use crate::cluster::registration::{Reach, Registration};
use crate::cluster::write::deadline::{WRITE_TIMEOUT, within};
use crate::cluster::write::writer::{MANAGER, params};

/// The maintained part of the webhook configurations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// All fields: configurations are created and repaired.
    All,
    /// Only `caBundle`; somebody else installs the configurations.
    CaBundle,
}

/// Time for which a deleted configuration stays away: deletion is the emergency stop of the webhook. A configuration that
/// cannot be watched is written at this interval.
const EVERY: Duration = Duration::from_secs(60);
const RETRY: Duration = Duration::from_secs(1);
/// Pause between two repairs after changes by others. Doubles up to `EVERY` while they go on, to avoid a race.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

pub struct Webhooks {
    /// Validation first: once pods are held, groups are judged as well.
    apis: [Api<DynamicObject>; 2],
    registration: Registration,
    keep: Keep,
    repairs: Counter,
}

impl Webhooks {
    /// Returns the maintenance of these configurations; `repairs` counts repairs of changes by others.
    pub fn new(client: &Client, registration: Registration, keep: Keep, repairs: Counter) -> Self {
        let kinds = [
            ApiResource::erase::<ValidatingWebhookConfiguration>(&()),
            ApiResource::erase::<MutatingWebhookConfiguration>(&()),
        ];
        Self { apis: kinds.map(|kind| Api::all_with(client.clone(), &kind)), registration, keep, repairs }
    }

    /// Publishes each new bundle, repairs changes by others, and confirms the published bundle, until `stop` is cancelled.
    pub async fn run(self, mut publication: Publication, stop: CancellationToken) {
        let mut watches = pin!(self.watches());
        let mut state = State::default();
        loop {
            let bundle = publication.bundle.borrow_and_update().clone();
            let wanted = bundle.as_ref().map(|bundle| self.wanted(bundle, &state.seen));
            if let Some((bundle, wanted)) = bundle.as_ref().zip(wanted.as_ref()) {
                // Another replica may have written the present state.
                match state.carries(wanted) {
                    Some(true) => publication.confirmation.published(bundle, Timestamp::now()),
                    Some(false) => publication.confirmation.lost(),
                    None => {}
                }
            }
            let due = bundle.as_ref().zip(wanted.as_ref()).and_then(|(bundle, wanted)| state.due(bundle, wanted));
            tokio::select! {
                () = stop.cancelled() => return,
                changed = publication.bundle.changed() => if changed.is_err() { return },
                Some((which, seen)) = watches.next() => {
                    if self.keep == Keep::All && let Some(wanted) = wanted.as_ref().and_then(|wanted| wanted.get(which)) {
                        state.tell(&seen, wanted);
                    }
                    state.see(which, seen);
                }
                Some(()) = OptionFuture::from(due.map(sleep_until)) => {
                    let Some((bundle, wanted)) = bundle.zip(wanted) else { continue };
                    if state.repairs(&bundle, &wanted) {
                        self.repairs.inc();
                        tracing::warn!(name = self.registration.name, "somebody else has changed the webhook configurations: they are put right");
                    }
                    match within(WRITE_TIMEOUT, self.write(&wanted, &bundle)).await {
                        Ok(seen) => state.written(bundle, seen),
                        Err(error) => {
                            publication.confirmation.lost();
                            tracing::warn!(%error, "webhook configurations cannot be written, will retry");
                            state.failed();
                        }
                    }
                }
            }
        }
    }

    /// Returns the events of the watches of both.
    fn watches(&self) -> impl Stream<Item = (usize, Configuration)> + use<> {
        let name = &self.registration.name;
        let watch = |(which, api): (usize, &Api<DynamicObject>)| {
            let seen = move |event: Result<Option<DynamicObject>, watcher::Error>| match event {
                Ok(Some(object)) => (which, Configuration::There(webhooks(&object))),
                Ok(None) => (which, Configuration::Gone(Instant::now())),
                Err(error) => {
                    tracing::warn!(%error, "watch of the webhook configurations failed");
                    (which, Configuration::Unknown)
                }
            };
            watcher::watch_object(api.clone(), name).default_backoff().map(seen).boxed()
        };
        stream::select_all(self.apis.iter().enumerate().map(watch).collect::<Vec<_>>())
    }

    /// Returns the content that each should have.
    fn wanted(&self, bundle: &CaBundle, seen: &[Configuration; 2]) -> [Value; 2] {
        match self.keep {
            Keep::All => {
                let pem = Some(bundle.0.as_str());
                [json!(self.registration.validating(pem)), json!(self.registration.mutating(pem))]
            }
            Keep::CaBundle => seen.each_ref().map(|seen| match seen {
                Configuration::There(found) => ca_bundles(found, &self.registration.reach, bundle),
                Configuration::Unknown | Configuration::Gone(_) => json!({ "webhooks": [] }),
            }),
        }
    }

    /// Writes both, and returns their new state.
    async fn write(
        &self,
        [of_validating, of_mutating]: &[Value; 2],
        bundle: &CaBundle,
    ) -> kube::Result<[Configuration; 2]> {
        let (Registration { name, reach, .. }, [validating, mutating]) = (&self.registration, &self.apis);
        let write = async |api: &Api<DynamicObject>, wanted: &Value| {
            let written = match self.keep {
                Keep::All => api.patch(name, &PatchParams::apply(MANAGER).force(), &Patch::Apply(wanted)).await?,
                Keep::CaBundle => {
                    // Those of another version may be others: a name that is not there would be a new webhook.
                    let only = ListParams::default().fields(&format!("metadata.name={name}"));
                    let found = api.list(&only).await?.items.pop();
                    let filled = |found: DynamicObject| ca_bundles(&webhooks(&found), reach, bundle);
                    let wanted = found.map_or_else(|| json!({}), filled);
                    api.patch(name, &params(), &Patch::Strategic(wanted)).await?
                }
            };
            Ok::<_, kube::Error>(Configuration::There(webhooks(&written)))
        };
        Ok([write(validating, of_validating).await?, write(mutating, of_mutating).await?])
    }
}

/// Returns the bundle for each webhook that leads to us. Webhooks merge by name: only the bundle changes.
fn ca_bundles(found: &Value, reach: &Reach, bundle: &CaBundle) -> Value {
    use base64::Engine as _;
    let encoded = base64::engine::general_purpose::STANDARD.encode(&bundle.0);
    let ours = hooks(found).filter(|webhook| webhook.get("clientConfig").is_some_and(|client| leads_to(client, reach)));
    let bundle = |webhook: &Value| json!({ "name": webhook.get("name"), "clientConfig": { "caBundle": encoded } });
    json!({ "webhooks": ours.map(bundle).collect::<Vec<_>>() })
}

/// Reports whether a `clientConfig` leads to this address, whatever the path and the port of the Service.
fn leads_to(client: &Value, reach: &Reach) -> bool {
    let text = |path: &str| client.pointer(path).and_then(Value::as_str).unwrap_or_default();
    match reach {
        Reach::Service { namespace, name, .. } => {
            text("/service/namespace") == namespace && text("/service/name") == name
        }
        Reach::Url(base) => text("/url").strip_prefix(base.as_str()).is_some_and(|path| path.starts_with('/')),
    }
}

fn webhooks(configuration: &DynamicObject) -> Value {
    json!({ "webhooks": configuration.data.get("webhooks") })
}

/// The last seen state of a configuration.
#[derive(Debug, Default)]
enum Configuration {
    /// It could not be read.
    #[default]
    Unknown,
    /// It does not exist since this time.
    Gone(Instant),
    /// It has these webhooks.
    There(Value),
}

impl Configuration {
    /// Reports whether it has the wanted content; `None` when unknown.
    fn carries(&self, wanted: &Value) -> Option<bool> {
        match self {
            Self::Unknown => None,
            Self::Gone(_) => Some(false),
            Self::There(found) => Some(has(found, &json!({ "webhooks": wanted.get("webhooks") }))),
        }
    }
}

/// Reports whether all wanted requirements are found, and others only exclude namespaces. Platforms exclude their own
/// namespaces, and would restore the requirements for ever.
fn excludes_more(found: &[Value], wanted: &[Value]) -> bool {
    let excludes =
        |found: &Value| matches!(found.get("operator").and_then(Value::as_str), Some("NotIn" | "DoesNotExist"));
    wanted.iter().all(|wanted| found.iter().any(|found| has(found, wanted)))
        && found.iter().all(|found| is_among(found, wanted) || excludes(found))
}

fn is_among(found: &Value, wanted: &[Value]) -> bool {
    wanted.iter().any(|wanted| has(found, wanted))
}

fn hooks(configuration: &Value) -> impl Iterator<Item = &Value> {
    configuration.get("webhooks").and_then(Value::as_array).into_iter().flatten()
}

/// Returns the requirements on namespaces that were found but are not wanted, as text.
fn exclusions(found: &Value, wanted: &Value) -> BTreeSet<String> {
    let at = "/namespaceSelector/matchExpressions";
    let wanted: Vec<_> = hooks(wanted).filter_map(|hook| hook.pointer(at)?.as_array()).flatten().cloned().collect();
    let found = hooks(found).filter_map(|hook| hook.pointer(at)?.as_array()).flatten();
    found.filter(|found| !is_among(found, &wanted)).map(Value::to_string).collect()
}

/// Reports whether all wanted content is found. Additions of others and defaults of the API server are ignored, and so are
/// further entries of lists with named entries.
fn has(found: &Value, wanted: &Value) -> bool {
    match (found, wanted) {
        (Value::Object(found), Value::Object(wanted)) => wanted.iter().all(|(field, wanted)| {
            found.get(field).is_some_and(|found| match (field.as_str(), found.as_array(), wanted.as_array()) {
                ("matchExpressions", Some(found), Some(wanted)) => excludes_more(found, wanted),
                _ => has(found, wanted),
            })
        }),
        (Value::Array(found), Value::Array(wanted)) => {
            let named = wanted.iter().all(|entry| entry.get("name").is_some());
            let same_name = |found: &&Value, wanted: &Value| found.get("name") == wanted.get("name");
            if named {
                let of_name = |wanted: &Value| found.iter().find(|found| same_name(found, wanted));
                wanted.iter().all(|wanted| of_name(wanted).is_some_and(|found| has(found, wanted)))
            } else {
                found.len() == wanted.len() && found.iter().zip(wanted).all(|(found, wanted)| has(found, wanted))
            }
        }
        (found, wanted) => found == wanted,
    }
}

/// The state of the configurations, and of the last write.
#[derive(Debug, Default)]
struct State {
    seen: [Configuration; 2],
    /// The bundle that was written last.
    written: Option<CaBundle>,
    last: Option<Instant>,
    failed: bool,
    pause: Duration,
    /// Requirements of others that are logged already.
    told: BTreeSet<String>,
}

impl State {
    /// Logs once which namespaces others have excluded. The exclusion stays.
    fn tell(&mut self, seen: &Configuration, wanted: &Value) {
        let Configuration::There(found) = seen else { return };
        for requirement in exclusions(found, wanted) {
            if self.told.insert(requirement.clone()) {
                tracing::warn!(
                    requirement,
                    "somebody else has taken namespaces out of the webhook configurations, which stays: nothing is held or judged there"
                );
            }
        }
    }

    /// Reports whether the next write is a repair of a change by others.
    fn repairs(&self, bundle: &CaBundle, wanted: &[Value; 2]) -> bool {
        let is_there = |seen: &Configuration| matches!(seen, Configuration::There(_));
        let changed = |(seen, wanted): (&Configuration, &Value)| is_there(seen) && seen.carries(wanted) == Some(false);
        !self.failed && self.written.as_ref() == Some(bundle) && self.seen.iter().zip(wanted).any(changed)
    }

    fn see(&mut self, which: usize, seen: Configuration) {
        if let Some(known) = self.seen.get_mut(which) {
            *known = seen;
        }
    }

    /// Reports whether both have the wanted content; `None` when unknown.
    fn carries(&self, wanted: &[Value; 2]) -> Option<bool> {
        let both: Vec<_> = self.seen.iter().zip(wanted).map(|(seen, wanted)| seen.carries(wanted)).collect();
        if both.contains(&Some(false)) {
            Some(false)
        } else {
            both.into_iter().collect::<Option<Vec<_>>>().map(|_| true)
        }
    }

    /// Returns the time of the next write; `None` while none is needed.
    fn due(&self, bundle: &CaBundle, wanted: &[Value; 2]) -> Option<Instant> {
        let Some(last) = self.last else { return Some(Instant::now()) };
        if self.failed {
            return Some(last + RETRY);
        }
        if self.written.as_ref() != Some(bundle) {
            return Some(last);
        }
        let due = |(seen, wanted): (&Configuration, &Value)| match seen {
            Configuration::Unknown => Some(last + EVERY),
            Configuration::Gone(since) => Some(*since + EVERY),
            Configuration::There(_) => (seen.carries(wanted) == Some(false)).then_some(last + self.pause),
        };
        self.seen.iter().zip(wanted).filter_map(due).min()
    }

    fn written(&mut self, bundle: CaBundle, seen: [Configuration; 2]) {
        // A new bundle is not a repair.
        let again = self.written.as_ref() == Some(&bundle) && self.last.is_some_and(|last| last.elapsed() < 2 * EVERY);
        self.pause = if again { (2 * self.pause).clamp(FIRST_PAUSE, EVERY) } else { FIRST_PAUSE };
        (self.seen, self.written, self.last, self.failed) = (seen, Some(bundle), Some(Instant::now()), false);
    }

    fn failed(&mut self) {
        (self.last, self.failed) = (Some(Instant::now()), true);
    }
}

#[cfg(test)]
#[path = "webhooks_tests.rs"]
mod tests;
