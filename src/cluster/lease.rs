//! Leadership: one replica releases, all answer the webhook. A lost lease is no danger, since a release is committed
//! under resourceVersion; it only keeps replicas from doing the same work twice.

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
}

/// What became of an attempt to take or renew the lease.
enum Attempt {
    /// It is held. The time is that at which it was asked for.
    Held(Instant),
    /// Another one holds it.
    Lost,
    /// Nobody knows: what was believed is believed until its time is up.
    Unknown,
}

impl Election {
    /// Prepares to take part; the receiver says whether this replica leads.
    pub fn new(client: &Client, options: LeaseOptions) -> (Self, watch::Receiver<bool>) {
        let (leader, receiver) = watch::channel(false);
        let api = leases(client, &options.namespace);
        (Self { api, options, leader, until: watch::Sender::new(None), seen: None }, receiver)
    }

    /// Takes part until `stop`, then gives the lease back.
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
        match tokio::time::timeout(self.options.attempt_timeout(), self.take_or_renew()).await {
            Ok(Ok(true)) => Attempt::Held(sent),
            Ok(Ok(false)) => Attempt::Lost,
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

    async fn take_or_renew(&mut self) -> Result<bool, kube::Error> {
        let Some(lease) = self.api.get_opt(&self.options.name).await? else {
            return lost_race(self.api.create(&PostParams::default(), &self.lease(None)).await);
        };
        let record = Record::of(&lease);
        let holder = record.holder_identity.as_deref().unwrap_or_default();
        if holder != self.options.identity && !holder.is_empty() && !self.is_stale(&lease.metadata, &record) {
            return Ok(false);
        }
        let next = self.lease(Some((&lease.metadata, &record)));
        lost_race(self.api.replace(&self.options.name, &PostParams::default(), &next).await)
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
    (transitions + 1).clamp(0, i64::from(i32::MAX))
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

/// Another replica was faster: not an error.
fn lost_race(result: Result<DynamicObject, kube::Error>) -> Result<bool, kube::Error> {
    match result {
        Ok(_) => Ok(true),
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use http::{Request, Response};
    use kube::client::Body;

    use super::*;

    /// An API server with one Lease, which accepts requests and does not answer them while it is silent.
    #[derive(Clone, Default)]
    struct Server {
        lease: Arc<std::sync::Mutex<Option<DynamicObject>>>,
        silent: Arc<AtomicBool>,
    }

    impl Server {
        fn client(&self) -> Client {
            let server = self.clone();
            let service = tower::service_fn(move |request| server.clone().serve(request));
            Client::new(service, "default")
        }

        async fn serve(self, request: Request<Body>) -> Result<Response<Body>, std::convert::Infallible> {
            let (parts, body) = request.into_parts();
            let written = serde_json::from_slice::<DynamicObject>(&body.collect_bytes().await.unwrap()).ok();
            if self.silent.load(Ordering::SeqCst) {
                std::future::pending::<()>().await;
            }
            let mut stored = self.lease.lock().unwrap();
            if let Some(mut lease) = written {
                let version = stored.as_ref().and_then(|lease| lease.metadata.resource_version.clone());
                let is_current = lease.metadata.resource_version == version;
                if !is_current || (parts.method == http::Method::POST && stored.is_some()) {
                    return Ok(status(409, "Conflict"));
                }
                let next = version.map_or(1, |version| version.parse::<u32>().unwrap() + 1);
                lease.metadata.resource_version = Some(next.to_string());
                *stored = Some(lease);
            }
            let answer = stored.as_ref().map(|lease| Response::new(Body::from(serde_json::to_vec(lease).unwrap())));
            Ok(answer.unwrap_or_else(|| status(404, "NotFound")))
        }
    }

    fn status(code: u16, reason: &str) -> Response<Body> {
        let status =
            serde_json::json!({ "kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": "" });
        Response::builder().status(code).body(Body::from(status.to_string().into_bytes())).unwrap()
    }

    const DURATION: Duration = Duration::from_secs(15);

    fn replica(server: &Server, identity: &str) -> watch::Receiver<bool> {
        let names = ("system".to_owned(), "rolegate".to_owned(), identity.to_owned());
        let (namespace, name, identity) = names;
        let (election, leads) =
            Election::new(&server.client(), LeaseOptions { namespace, name, identity, duration: DURATION });
        tokio::spawn(election.run(CancellationToken::new()));
        leads
    }

    #[tokio::test(start_paused = true)]
    async fn a_leader_without_answers_stops_before_another_may_begin() {
        let server = Server::default();
        let mut one = replica(&server, "one");
        one.wait_for(|leads| *leads).await.unwrap();
        let mut two = replica(&Server { silent: Arc::default(), ..server.clone() }, "two");
        tokio::time::sleep(Duration::from_secs(7)).await;
        // To the leader alone the API server is silent.
        server.silent.store(true, Ordering::SeqCst);
        let silent = Instant::now();
        one.wait_for(|leads| !*leads).await.unwrap();
        let stopped = silent.elapsed();
        assert!(stopped <= DURATION * 2 / 3 && !*two.borrow(), "stopped after {stopped:?}");
        two.wait_for(|leads| *leads).await.unwrap();
        let begun = silent.elapsed();
        assert!(begun > stopped + DURATION / 4, "stopped after {stopped:?}, the other begun after {begun:?}");
        assert!(!*one.borrow());
    }

    #[tokio::test(start_paused = true)]
    async fn a_leader_that_is_answered_late_but_in_time_goes_on() {
        let server = Server::default();
        let mut one = replica(&server, "one");
        one.wait_for(|leads| *leads).await.unwrap();
        one.borrow_and_update();
        for _ in 0..5 {
            tokio::time::sleep(DURATION / 4).await;
            server.silent.store(true, Ordering::SeqCst);
            tokio::time::sleep(DURATION / 3).await;
            server.silent.store(false, Ordering::SeqCst);
        }
        assert!(!one.has_changed().unwrap(), "it stopped in between");
    }

    #[tokio::test(start_paused = true)]
    async fn a_record_that_nobody_could_have_written_does_not_stop_leadership_for_ever() {
        let absurd = json!({
            "holderIdentity": "nobody",
            "leaseDurationSeconds": i32::MAX,
            "acquireTime": "9999-12-31T23:59:59.000000Z",
            "renewTime": "9999-12-31T23:59:59.000000Z",
            "leaseTransitions": i32::MAX,
        });
        let server = Server::default();
        let mut lease =
            DynamicObject::new("rolegate", &ApiResource::erase::<Lease>(&())).data(json!({ "spec": absurd }));
        lease.metadata.resource_version = Some("1".to_owned());
        *server.lease.lock().unwrap() = Some(lease);
        let begun = Instant::now();
        let mut one = replica(&server, "one");
        tokio::time::timeout(DURATION * 10, one.wait_for(|leads| *leads)).await.unwrap().unwrap();
        assert!(begun.elapsed() > DURATION && begun.elapsed() < DURATION * 2, "after {:?}", begun.elapsed());
        let written = Record::of(server.lease.lock().unwrap().as_ref().unwrap());
        assert_eq!((written.believed(DURATION), written.lease_transitions), (DURATION, Some(i64::from(i32::MAX))));
    }

    #[test]
    fn a_holder_is_believed_as_long_as_it_asks_within_reason() {
        let believed = |seconds: Option<i64>| {
            Record { lease_duration_seconds: seconds, ..Record::default() }.believed(DURATION).as_secs()
        };
        assert_eq!(
            [Some(3), Some(600), None, Some(601), Some(i64::MAX), Some(-1)].map(believed),
            [3, 600, 15, 15, 15, 15]
        );
    }
}
