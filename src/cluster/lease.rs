//! Leadership: one replica releases, all answer the webhook. A lost lease is no danger, since a release is committed
//! under resourceVersion; it only keeps replicas from doing the same work twice.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client};
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
}

/// How often a follower looks: a leader that leaves hands over within a second.
const FOLLOW: Duration = Duration::from_millis(500);

/// One replica's part in the election.
#[derive(Debug)]
pub struct Election {
    api: Api<Lease>,
    options: LeaseOptions,
    leader: watch::Sender<bool>,
    /// The record last seen, and since when it has not changed: only the own clock is trusted.
    seen: Option<(String, Instant)>,
    renewed: Option<Instant>,
}

impl Election {
    /// Prepares to take part; the receiver says whether this replica leads.
    pub fn new(client: &Client, options: LeaseOptions) -> (Self, watch::Receiver<bool>) {
        let (leader, receiver) = watch::channel(false);
        let api = Api::namespaced(client.clone(), &options.namespace);
        (Self { api, options, leader, seen: None, renewed: None }, receiver)
    }

    /// Takes part until `stop`, then gives the lease back.
    pub async fn run(mut self, stop: CancellationToken) {
        loop {
            let held = self.attempt().await;
            let fresh = self.renewed.is_some_and(|at| at.elapsed() < self.options.duration * 2 / 3);
            self.leader.send_if_modified(|leads| {
                let changed = *leads != (held && fresh);
                *leads = held && fresh;
                if changed {
                    tracing::info!(leads = *leads, identity = %self.options.identity, "leadership");
                }
                changed
            });
            let pause = if held { self.options.duration / 4 } else { FOLLOW };
            tokio::select! {
                () = stop.cancelled() => break,
                () = tokio::time::sleep(pause) => {}
            }
        }
        self.leader.send_replace(false);
        self.give_back().await;
    }

    /// Takes or renews the lease; true when it is held. An error keeps what was, until the lease runs out.
    async fn attempt(&mut self) -> bool {
        match tokio::time::timeout(self.options.duration / 3, self.take_or_renew()).await {
            Ok(Ok(held)) => {
                if held {
                    self.renewed = Some(Instant::now());
                }
                held
            }
            Ok(Err(error)) => {
                tracing::warn!(%error, "lease cannot be renewed");
                *self.leader.borrow()
            }
            Err(_) => *self.leader.borrow(),
        }
    }

    async fn take_or_renew(&mut self) -> Result<bool, kube::Error> {
        let Some(mut lease) = self.api.get_opt(&self.options.name).await? else {
            return lost_race(self.api.create(&PostParams::default(), &self.lease(None)).await);
        };
        let spec = lease.spec.take().unwrap_or_default();
        let holder = spec.holder_identity.clone().unwrap_or_default();
        if holder != self.options.identity && !holder.is_empty() && !self.is_stale(&lease, &spec) {
            return Ok(false);
        }
        let next = self.lease(Some((&lease, &spec)));
        lost_race(self.api.replace(&self.options.name, &PostParams::default(), &next).await)
    }

    /// True when the record has not changed for the whole duration by our own clock.
    fn is_stale(&mut self, lease: &Lease, spec: &LeaseSpec) -> bool {
        let version = lease.metadata.resource_version.clone().unwrap_or_default();
        let duration = spec.lease_duration_seconds.and_then(|seconds| u64::try_from(seconds).ok());
        let duration = duration.map_or(self.options.duration, Duration::from_secs);
        match &self.seen {
            Some((seen, since)) if *seen == version => since.elapsed() > duration,
            _ => {
                self.seen = Some((version, Instant::now()));
                false
            }
        }
    }

    fn lease(&self, before: Option<(&Lease, &LeaseSpec)>) -> Lease {
        let now = MicroTime(jiff::Timestamp::now());
        let renews = before.filter(|(_, spec)| spec.holder_identity.as_ref() == Some(&self.options.identity));
        let transitions = before.and_then(|(_, spec)| spec.lease_transitions).unwrap_or_default();
        Lease {
            metadata: before.map_or_else(
                || ObjectMeta { name: Some(self.options.name.clone()), ..ObjectMeta::default() },
                |(lease, _)| lease.metadata.clone(),
            ),
            spec: Some(LeaseSpec {
                holder_identity: Some(self.options.identity.clone()),
                lease_duration_seconds: i32::try_from(self.options.duration.as_secs()).ok(),
                acquire_time: renews.and_then(|(_, spec)| spec.acquire_time.clone()).or_else(|| Some(now.clone())),
                renew_time: Some(now),
                lease_transitions: Some(if renews.is_some() { transitions } else { transitions + 1 }),
                ..LeaseSpec::default()
            }),
        }
    }

    async fn give_back(&self) {
        let give_back = async {
            let Some(mut lease) = self.api.get_opt(&self.options.name).await? else { return Ok(()) };
            let spec = lease.spec.get_or_insert_default();
            if spec.holder_identity.as_ref() == Some(&self.options.identity) {
                spec.holder_identity = Some(String::new());
                lost_race(self.api.replace(&self.options.name, &PostParams::default(), &lease).await)?;
            }
            Ok::<(), kube::Error>(())
        };
        if !matches!(tokio::time::timeout(Duration::from_secs(1), give_back).await, Ok(Ok(()))) {
            tracing::warn!("lease was not given back, it runs out by itself");
        }
    }
}

/// Another replica was faster: not an error.
fn lost_race(result: Result<Lease, kube::Error>) -> Result<bool, kube::Error> {
    match result {
        Ok(_) => Ok(true),
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(false),
        Err(error) => Err(error),
    }
}
