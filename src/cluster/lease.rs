//! Leadership: one replica releases, all answer the webhook. A lost lease is no danger, since a release is committed
//! under resourceVersion; it only keeps replicas from doing the same work twice.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{ApiResource, DynamicObject, ObjectMeta, PostParams};
use kube::{Api, Client};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How a replica takes part in the election.
#[derive(Clone, Debug)]
pub struct LeaseOptions {
    /// Namespace of the Lease.
    pub namespace: String,
    /// Name of the Lease.
    pub name: String,
    /// Name of this replica, unique among them.
    pub identity: String,
    /// How long a leader that went silent is believed.
    pub duration: Duration,
    /// Annotations by which the leader tells how it serves.
    pub told: BTreeMap<String, String>,
}

/// How often a follower looks, and who could not renew tries again: a leader that leaves hands over within a second.
const FOLLOW: Duration = Duration::from_millis(500);

impl LeaseOptions {
    /// How long a leader believes in itself after the last renewal, counted from when that was sent: no follower can have seen
    /// it earlier, so the leader has stopped before a follower may begin, even if it is never answered again.
    fn renew_deadline(&self) -> Duration {
        self.duration * 2 / 3
    }

    /// How long one attempt may take: a second one has to fit in before the deadline.
    fn attempt_timeout(&self) -> Duration {
        self.duration / 3
    }

    /// What followers are told, in whole seconds: never less than we go by ourselves.
    fn seconds(&self) -> Option<i32> {
        let seconds = self.duration.as_secs() + u64::from(self.duration.subsec_nanos() > 0);
        i32::try_from(seconds).ok()
    }
}

/// For longer no holder is believed that went silent, unless we ourselves ask for more: it was not one of us who wrote that.
const LONGEST: Duration = Duration::from_secs(600);

/// What counts in a Lease. Anybody may have written it who may write Leases: a time that no clock shows is not even read, and
/// would it keep us from reading the rest, nobody would lead for ever.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Record {
    /// Who leads; empty when it was given back.
    pub holder_identity: Option<String>,
    lease_duration_seconds: Option<i64>,
    acquire_time: Option<Value>,
    renew_time: Option<Value>,
    lease_transitions: Option<i64>,
}

impl Record {
    /// Reads it.
    pub fn of(lease: &DynamicObject) -> Self {
        lease.data.get("spec").and_then(|spec| Self::deserialize(spec).ok()).unwrap_or_default()
    }

    /// How long the holder is believed without a renewal by who asks for `own`.
    pub fn believed(&self, own: Duration) -> Duration {
        let written = self.lease_duration_seconds.and_then(|seconds| u64::try_from(seconds).ok());
        written.map(Duration::from_secs).filter(|written| *written <= own.max(LONGEST)).unwrap_or(own)
    }
}

/// Leases of a namespace.
pub fn leases(client: &Client, namespace: &str) -> Api<DynamicObject> {
    Api::namespaced_with(client.clone(), namespace, &ApiResource::erase::<Lease>(&()))
}

/// One replica's part in the election. The crates for this (kube-lease-manager 0.13, kube-leader-election 0.44) compare the
/// holder's clock with their own, and let a renewal take as long as it likes.
#[derive(Debug)]
pub struct Election {
    api: Api<DynamicObject>,
    options: LeaseOptions,
    leader: watch::Sender<bool>,
    /// Until when this replica leads if nothing is renewed.
    until: watch::Sender<Option<Instant>>,
    /// The record last seen, and since when it has not changed: only the own clock is trusted.
    seen: Option<(String, Instant)>,
    history: History,
}

/// The versions of the Lease so far. They only grow, unless what the API server stores was exchanged for an older copy: then
/// whatever this process knows of the cluster is of another history, and its watches wait for versions that are long to come.
#[derive(Debug, Default)]
struct History(u64);

impl History {
    /// Notes a version; false when it is older than one that was seen before.
    fn goes_on(&mut self, metadata: &ObjectMeta) -> bool {
        let version: Option<u64> = metadata.resource_version.as_deref().and_then(|version| version.parse().ok());
        let goes_on = version.is_none_or(|version| version >= self.0);
        self.0 = version.unwrap_or_default().max(self.0);
        goes_on
    }
}

/// What became of an attempt to take or renew the lease.
enum Attempt {
    /// It is held. The time is that at which it was asked for.
    Held(Instant),
    /// Another one holds it.
    Lost,
    /// Nobody knows: what was believed is believed until its time is up.
    Unknown,
    /// The Lease is older than it was.
    Restored,
}

impl Election {
    /// Prepares to take part; the receiver says whether this replica leads.
    pub fn new(client: &Client, options: LeaseOptions) -> (Self, watch::Receiver<bool>) {
        let (leader, receiver) = watch::channel(false);
        let api = leases(client, &options.namespace);
        (
            Self { api, options, leader, until: watch::Sender::new(None), seen: None, history: History::default() },
            receiver,
        )
    }

    /// Takes part until `stop`, then gives the lease back. Ends before that where the API server turns out to have been restored
    /// from an older copy: nothing that was read before holds, and all is to begin anew.
    pub async fn run(mut self, stop: CancellationToken) {
        // Beside the attempts: one that hangs must not keep the time from running out.
        tokio::spawn(believe(self.until.subscribe(), self.leader.clone(), self.options.identity.clone()));
        loop {
            let pause = match self.attempt().await {
                Attempt::Held(since) => {
                    self.until.send_replace(Some(since + self.options.renew_deadline()));
                    self.options.duration / 4
                }
                Attempt::Lost => {
                    self.until.send_replace(None);
                    FOLLOW
                }
                Attempt::Unknown => FOLLOW.min(self.options.duration / 4),
                Attempt::Restored => {
                    tracing::error!("the API server was restored from an older copy: beginning anew");
                    break;
                }
            };
            tokio::select! {
                () = stop.cancelled() => break,
                () = tokio::time::sleep(pause) => {}
            }
        }
        self.until.send_replace(None);
        self.leader.send_replace(false);
        self.give_back().await;
    }

    /// Takes or renews the lease.
    async fn attempt(&mut self) -> Attempt {
        let sent = Instant::now();
        match tokio::time::timeout(self.options.attempt_timeout(), self.take_or_renew(sent)).await {
            Ok(Ok(attempt)) => attempt,
            Ok(Err(error)) => {
                tracing::warn!(%error, "lease cannot be renewed");
                Attempt::Unknown
            }
            Err(_) => {
                tracing::warn!("lease cannot be renewed: no answer in time");
                Attempt::Unknown
            }
        }
    }

    async fn take_or_renew(&mut self, sent: Instant) -> Result<Attempt, kube::Error> {
        let written = if let Some(lease) = self.api.get_opt(&self.options.name).await? {
            if !self.history.goes_on(&lease.metadata) {
                return Ok(Attempt::Restored);
            }
            let record = Record::of(&lease);
            let holder = record.holder_identity.as_deref().unwrap_or_default();
            if holder != self.options.identity && !holder.is_empty() && !self.is_stale(&lease.metadata, &record) {
                return Ok(Attempt::Lost);
            }
            let next = self.lease(Some((&lease.metadata, &record)));
            self.api.replace(&self.options.name, &PostParams::default(), &next).await
        } else {
            self.api.create(&PostParams::default(), &self.lease(None)).await
        };
        Ok(match lost_race(written)? {
            None => Attempt::Lost,
            Some(lease) if self.history.goes_on(&lease.metadata) => Attempt::Held(sent),
            Some(_) => Attempt::Restored,
        })
    }

    /// True when the record has not changed for the whole duration by our own clock.
    fn is_stale(&mut self, meta: &ObjectMeta, record: &Record) -> bool {
        let version = meta.resource_version.clone().unwrap_or_default();
        match &self.seen {
            Some((seen, since)) if *seen == version => since.elapsed() > record.believed(self.options.duration),
            _ => {
                self.seen = Some((version, Instant::now()));
                false
            }
        }
    }

    fn lease(&self, before: Option<(&ObjectMeta, &Record)>) -> DynamicObject {
        let now = json!(MicroTime(jiff::Timestamp::now()));
        let renews = before.filter(|(_, record)| record.holder_identity.as_ref() == Some(&self.options.identity));
        let transitions = before.and_then(|(_, record)| record.lease_transitions).unwrap_or_default();
        let record = Record {
            holder_identity: Some(self.options.identity.clone()),
            lease_duration_seconds: self.options.seconds().map(i64::from),
            acquire_time: renews.and_then(|(_, record)| record.acquire_time.clone()).or_else(|| Some(now.clone())),
            renew_time: Some(now),
            lease_transitions: Some(if renews.is_some() { transitions } else { next_transition(transitions) }),
        };
        let mut lease =
            DynamicObject::new(&self.options.name, &ApiResource::erase::<Lease>(&())).data(json!({ "spec": record }));
        if let Some((meta, _)) = before {
            lease.metadata = meta.clone();
        }
        lease.metadata.annotations.get_or_insert_default().extend(self.options.told.clone());
        lease
    }

    async fn give_back(&self) {
        let give_back = async {
            let Some(mut lease) = self.api.get_opt(&self.options.name).await? else { return Ok(()) };
            let record = Record::of(&lease);
            if record.holder_identity.as_ref() == Some(&self.options.identity) {
                lease.data = json!({ "spec": Record { holder_identity: Some(String::new()), ..record } });
                lost_race(self.api.replace(&self.options.name, &PostParams::default(), &lease).await)?;
            }
            Ok::<(), kube::Error>(())
        };
        if !matches!(tokio::time::timeout(Duration::from_secs(1), give_back).await, Ok(Ok(()))) {
            tracing::warn!("lease was not given back, it runs out by itself");
        }
    }
}

/// The API server takes no larger number than that of 32 bits, and would refuse the Lease.
fn next_transition(transitions: i64) -> i64 {
    transitions.saturating_add(1).clamp(0, i64::from(i32::MAX))
}

/// Says whether this replica leads: `until` its time is up, whatever the attempts to renew are doing.
async fn believe(mut until: watch::Receiver<Option<Instant>>, leader: watch::Sender<bool>, identity: String) {
    loop {
        let end = until.borrow_and_update().filter(|end| Instant::now() < *end);
        leader.send_if_modified(|leads| {
            let changed = *leads != end.is_some();
            *leads = end.is_some();
            if changed {
                tracing::info!(leads = *leads, identity, "leadership");
            }
            changed
        });
        let time_is_up = async {
            match end {
                Some(end) => tokio::time::sleep_until(end).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            changed = until.changed() => if changed.is_err() { return },
            () = time_is_up => {}
        }
    }
}

/// What was written; `None` when another replica was faster, which is no error.
fn lost_race(result: Result<DynamicObject, kube::Error>) -> Result<Option<DynamicObject>, kube::Error> {
    match result {
        Ok(lease) => Ok(Some(lease)),
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
#[path = "lease_tests.rs"]
mod tests;
