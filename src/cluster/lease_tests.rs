use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use http::{Request, Response};
use kube::client::Body;

use super::*;

/// An API server with one Lease, which accepts requests but does not answer them while it is silent.
#[derive(Clone, Default)]
struct Server {
    lease: Arc<std::sync::Mutex<Option<DynamicObject>>>,
    silent: Arc<AtomicBool>,
    /// Time from a request to its answer.
    takes: Duration,
    /// When the first request of the last attempt came that was answered.
    asked: Arc<std::sync::Mutex<Option<Instant>>>,
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
        if parts.method == http::Method::GET {
            *self.asked.lock().unwrap() = Some(Instant::now());
        }
        tokio::time::sleep(self.takes).await;
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
    let (election, leads) = Election::new(
        &server.client(),
        LeaseOptions { namespace, name, identity, duration: DURATION, told: BTreeMap::new() },
    );
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
    // Only the leader's API server is silent.
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
    let mut lease = DynamicObject::new("rolegate", &ApiResource::erase::<Lease>(&())).data(json!({ "spec": absurd }));
    lease.metadata.resource_version = Some("1".to_owned());
    *server.lease.lock().unwrap() = Some(lease);
    let begun = Instant::now();
    let mut one = replica(&server, "one");
    tokio::time::timeout(DURATION * 10, one.wait_for(|leads| *leads)).await.unwrap().unwrap();
    assert!(begun.elapsed() > DURATION && begun.elapsed() < DURATION * 2, "after {:?}", begun.elapsed());
    let written = Record::of(server.lease.lock().unwrap().as_ref().unwrap());
    assert_eq!((written.believed(DURATION), written.lease_transitions), (DURATION, Some(i64::from(i32::MAX))));
}

#[tokio::test(start_paused = true)]
async fn an_election_ends_when_the_lease_is_older_than_it_was() {
    let server = Server::default();
    let names = ["system", "rolegate", "one"].map(str::to_owned);
    let [namespace, name, identity] = names;
    let (election, mut leads) = Election::new(
        &server.client(),
        LeaseOptions { namespace, name, identity, duration: DURATION, told: BTreeMap::new() },
    );
    let running = tokio::spawn(election.run(CancellationToken::new()));
    leads.wait_for(|leads| *leads).await.unwrap();
    let older = server.lease.lock().unwrap().clone();
    tokio::time::sleep(DURATION * 3).await;
    assert!(!running.is_finished(), "it has ended by itself");
    *server.lease.lock().unwrap() = older;
    tokio::time::timeout(DURATION, running).await.unwrap().unwrap();
    assert!(!*leads.borrow());
}

#[test]
fn a_holder_is_believed_as_long_as_it_asks_within_reason() {
    let believed = |seconds: Option<i64>| {
        Record { lease_duration_seconds: seconds, ..Record::default() }.believed(DURATION).as_secs()
    };
    assert_eq!([Some(3), Some(600), None, Some(601), Some(i64::MAX), Some(-1)].map(believed), [3, 600, 15, 15, 15, 15]);
}

#[tokio::test(start_paused = true)]
async fn a_leader_leads_from_when_it_asked_however_late_it_was_answered() {
    let server = Server { takes: DURATION / 8, ..Server::default() };
    let mut one = replica(&server, "one");
    one.wait_for(|leads| *leads).await.unwrap();
    let asked = server.asked.lock().unwrap().unwrap();
    server.silent.store(true, Ordering::SeqCst);
    one.wait_for(|leads| !*leads).await.unwrap();
    let led = asked.elapsed();
    assert!(led < DURATION * 2 / 3 + DURATION / 16, "for {led:?}");
}

#[test]
fn the_last_renewal_tells_how_long_nobody_led() {
    let now = "2026-01-01T12:01:00Z".parse().unwrap();
    let silent = |renewed: Value| {
        let lease = DynamicObject::new("l", &ApiResource::erase::<Lease>(&()))
            .data(json!({ "spec": { "renewTime": renewed } }));
        Record::of(&lease).silent_for(now)
    };
    assert_eq!(silent(json!("2026-01-01T12:00:00.000000Z")), Some(Duration::from_secs(60)));
    assert_eq!(silent(json!("2026-01-01T13:00:00Z")), Some(Duration::ZERO), "a clock that is ahead");
    assert_eq!([silent(json!("soon")), silent(Value::Null)], [None, None]);
}
