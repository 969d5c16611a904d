//! Leader election: one replica releases, all answer the webhook. Two leaders do no harm, since a release is committed under
//! resourceVersion; the lease only avoids duplicate work.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::future::OptionFuture;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{ApiResource, DynamicObject, ObjectMeta, PostParams};
use kube::{Api, Client};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::cluster::failure::unless;

/// Settings of one replica in the election.
#[derive(Clone, Debug)]
pub struct LeaseOptions {
    pub namespace: String,
    pub name: String,
    /// Name of this replica, unique among the replicas.
    pub identity: String,
    /// Time for which a silent leader is still believed.
    pub duration: Duration,
    /// Annotations in which the leader publishes its settings.
    pub told: BTreeMap<String, String>,
}

/// Interval of the attempts of a follower, and of retries after a failed renewal. A leader that leaves hands over within a
/// second.
const FOLLOW: Duration = Duration::from_millis(500);

impl LeaseOptions {
    /// Returns the time for which a leader leads after sending its last successful renewal. No follower can have seen the
    /// renewal earlier than that, so the leader stops before a follower may begin, even if no later request is answered.
    fn renew_deadline(&self) -> Duration {
        self.duration * 2 / 3
    }

    /// Returns the time limit of one attempt. Two attempts fit before the deadline.
    fn attempt_timeout(&self) -> Duration {
        self.duration / 3
    }

    /// Returns `leaseDurationSeconds`, rounded up: followers never wait less than the leader leads.
    fn seconds(&self) -> Option<i32> {
        let seconds = self.duration.as_secs() + u64::from(self.duration.subsec_nanos() > 0);
        i32::try_from(seconds).ok()
    }
}

/// Longest duration that is accepted from a Lease, unless this replica is configured with a longer one: rolegate did not
/// write it.
const LONGEST: Duration = Duration::from_secs(600);

/// The fields of a Lease that count. Anybody with write access to Leases may have written them. The times are not parsed: an
/// invalid one would make the rest unreadable, and nobody would lead any more.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Record {
    /// Identity of the leader; empty after it was given back.
    pub holder_identity: Option<String>,
    lease_duration_seconds: Option<i64>,
    acquire_time: Option<Value>,
    renew_time: Option<Value>,
    lease_transitions: Option<i64>,
}

impl Record {
    /// Reads `spec`; an unreadable one gives the default.
    pub fn of(lease: &DynamicObject) -> Self {
        lease.data.get("spec").and_then(|spec| Self::deserialize(spec).ok()).unwrap_or_default()
    }

    /// Returns the time for which the holder is believed without a renewal, by a replica with the duration `own`.
    pub fn believed(&self, own: Duration) -> Duration {
        let written = self.lease_duration_seconds.and_then(|seconds| u64::try_from(seconds).ok());
        written.map(Duration::from_secs).filter(|written| *written <= own.max(LONGEST)).unwrap_or(own)
    }

    /// Returns the time since the last renewal, by the clocks of both replicas.
    fn silent_for(&self, now: jiff::Timestamp) -> Option<Duration> {
        let renewed: jiff::Timestamp = self.renew_time.as_ref()?.as_str()?.parse().ok()?;
        Some(Duration::try_from(now.duration_since(renewed)).unwrap_or_default())
    }
}

pub fn leases(client: &Client, namespace: &str) -> Api<DynamicObject> {
    Api::namespaced_with(client.clone(), namespace, &ApiResource::erase::<Lease>(&()))
}

/// The part of one replica in the election. The crates for this (kube-lease-manager 0.13, kube-leader-election 0.44) compare
/// the holder's clock with their own, and set no time limit for a renewal.
#[derive(Debug)]
pub struct Election {
    api: Api<DynamicObject>,
    options: LeaseOptions,
    leader: watch::Sender<bool>,
    /// How long nobody had led when this replica began to lead; `None` if the Lease does not tell.
    unled: watch::Sender<Option<Duration>>,
    /// The time until which this replica leads without a further renewal.
    until: watch::Sender<Option<Instant>>,
    /// The version of the Lease seen last, and the time since when it has not changed. Only the own clock is trusted.
    seen: Option<(String, Instant)>,
    history: History,
}

/// The highest version of the Lease so far. A lower one means that the store of the API server was restored from an older
/// copy: the caches of this process belong to another history, and its watches wait for versions far in the future.
#[derive(Debug, Default)]
struct History(u64);

impl History {
    /// Records a version; returns false when it is lower than an earlier one.
    fn goes_on(&mut self, metadata: &ObjectMeta) -> bool {
        let version: Option<u64> = metadata.resource_version.as_deref().and_then(|version| version.parse().ok());
        let goes_on = version.is_none_or(|version| version >= self.0);
        self.0 = version.unwrap_or_default().max(self.0);
        goes_on
    }
}

/// The result of an attempt to take or renew the lease.
enum Attempt {
    /// This replica holds it. The time is that of the request.
    Held(Instant),
    /// Another replica holds it.
    Lost,
    /// The attempt failed: the present state holds until its time is up.
    Unknown,
    /// The Lease is older than before.
    Restored,
}

impl Election {
    /// Returns the election, and a receiver that holds whether this replica leads.
    pub fn new(client: &Client, options: LeaseOptions) -> (Self, watch::Receiver<bool>) {
        let (leader, receiver) = watch::channel(false);
        let api = leases(client, &options.namespace);
        let (until, unled) = (watch::Sender::new(None), watch::Sender::new(None));
        (Self { api, options, leader, unled, until, seen: None, history: History::default() }, receiver)
    }

    /// Returns a receiver that holds how long nobody had led when this replica began to lead; `None` if the Lease does not tell.
    pub fn unled(&self) -> watch::Receiver<Option<Duration>> {
        self.unled.subscribe()
    }

    /// Takes part until `stop`, then gives the lease back. Returns early when the API server was restored from an older copy:
    /// nothing read before holds, and the process must start anew.
    pub async fn run(mut self, stop: CancellationToken) {
        // A task of its own: a hanging attempt must not delay the end of leadership.
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

    async fn attempt(&mut self) -> Attempt {
        let sent = Instant::now();
        match tokio::time::timeout(self.options.attempt_timeout(), self.take_or_renew(sent)).await {
            Ok(Ok(attempt)) => return attempt,
            Ok(Err(error)) => tracing::warn!(%error, "lease cannot be renewed"),
            Err(_) => tracing::warn!("lease cannot be renewed: no answer in time"),
        }
        Attempt::Unknown
    }

    async fn take_or_renew(&mut self, sent: Instant) -> kube::Result<Attempt> {
        let written = if let Some(lease) = self.api.get_opt(&self.options.name).await? {
            if !self.history.goes_on(&lease.metadata) {
                return Ok(Attempt::Restored);
            }
            let record = Record::of(&lease);
            let holder = record.holder_identity.as_deref().unwrap_or_default();
            if holder != self.options.identity && !holder.is_empty() && !self.is_stale(&lease.metadata, &record) {
                return Ok(Attempt::Lost);
            }
            self.note_silence(Some(&record));
            let next = self.lease(Some((&lease.metadata, &record)));
            self.api.replace(&self.options.name, &PostParams::default(), &next).await
        } else {
            self.note_silence(None);
            // By PUT: the right to create it by POST could not name it, and would be one to make any Lease.
            let made = self.api.replace(&self.options.name, &PostParams::default(), &self.lease(None)).await;
            match made {
                // A Lease that another replica made meanwhile is not replaced without its version.
                Err(kube::Error::Api(status))
                    if status.code == 422 && self.api.get_opt(&self.options.name).await?.is_some() =>
                {
                    return Ok(Attempt::Lost);
                }
                made => made,
            }
        };
        // With 409 another replica was faster, which is no error.
        Ok(match unless(&[409], written)? {
            None => Attempt::Lost,
            Some(lease) if self.history.goes_on(&lease.metadata) => Attempt::Held(sent),
            Some(_) => Attempt::Restored,
        })
    }

    /// Notes how long nobody has led, before this replica does.
    fn note_silence(&self, record: Option<&Record>) {
        if !*self.leader.borrow() {
            self.unled.send_replace(record.and_then(|record| record.silent_for(jiff::Timestamp::now())));
        }
    }

    /// Reports whether the Lease has not changed for its whole duration by the own clock.
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
                unless(&[409], self.api.replace(&self.options.name, &PostParams::default(), &lease).await)?;
            }
            Ok::<(), kube::Error>(())
        };
        if !matches!(tokio::time::timeout(Duration::from_secs(1), give_back).await, Ok(Ok(()))) {
            tracing::warn!("lease was not given back, it runs out by itself");
        }
    }
}

/// Returns the next count within 32 bits; the API server would refuse a larger one.
fn next_transition(transitions: i64) -> i64 {
    transitions.saturating_add(1).clamp(0, i64::from(i32::MAX))
}

/// Publishes whether this replica leads, until the time in `until` is up, whatever the attempts to renew do.
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
        tokio::select! {
            changed = until.changed() => if changed.is_err() { return },
            Some(()) = OptionFuture::from(end.map(sleep_until)) => {}
        }
    }
}

#[cfg(test)]
#[path = "lease_tests.rs"]
mod tests;
