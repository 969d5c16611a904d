use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use http::Request;
use kube::Client;
use kube::client::Body;
use prometheus_client::registry::Registry;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::*;
use crate::api::RoleCoordination;
use crate::api::pod_group::KUBE_POD_GROUP;
use crate::api::role_coordination::ROLE_COORDINATION;
use crate::api::status::GroupStatus;
use crate::api::workload::StatefulSet;
use crate::build::{self, typed, with};
use crate::cluster::write::write_limit::FIRST;
use crate::model::WorkloadObject as _;
use crate::model::{PodGroupPolicy, Queued};
use crate::plan::decide::surplus::Surplus;
use crate::plan::reconcile::owned_memory::OwnedId;
use crate::plan::{BatchPodGroup, Loss, MissingPods, PodRef, Suspect, Verdict};
use crate::rules::Options;

const TIMEOUT: Duration = Duration::from_secs(10);

/// An API server that accepts every request and answers none.
fn silent() -> Client {
    let service = tower::service_fn(|_: Request<Body>| {
        std::future::pending::<Result<http::Response<Body>, std::convert::Infallible>>()
    });
    Client::new(service, "ns")
}

fn executor(client: Client, metrics: &LoopMetrics) -> Executor {
    let writer = Writer::new(client.clone(), TIMEOUT);
    let lookup = Lookup::new(client, SharedIndex::default(), Options::default());
    Executor::new(writer.clone(), lookup, Events::new(writer, "test", metrics.clone()), metrics.clone())
}

fn group() -> Arc<Group> {
    let constraint = json!({ "podGroupPolicy": { "kubeScheduling": {} } });
    let deploy = json!({ "roleDeployStep": { "prefill": 4 }, "deployTopologyConstraint": constraint });
    let coordination = json!([build::coordination("c0", &json!({ "rollingDeploy": deploy }))]);
    let object = build::role_coordination("pd", "StatefulSet", &["prefill"], &coordination);
    let metadata = json!({ "namespace": "ns", "uid": "group", "resourceVersion": "1" });
    let object: RoleCoordination = typed(with(object, &json!({ "metadata": metadata })));
    Arc::new(Group::from_role_coordination(ROLE_COORDINATION, &object, &()))
}

fn pod(name: &str) -> PodRef {
    PodRef { name: name.into(), uid: name.into() }
}

fn set() -> StatefulSet {
    let labels = json!({ "rolegate.dev/group": "pd", "rolegate.dev/role": "prefill" });
    let metadata = json!({ "name": "prefill", "namespace": "ns", "uid": "set", "labels": labels });
    typed(json!({ "metadata": metadata, "spec": { "replicas": 4 } }))
}

fn release(name: &str) -> Action {
    let (pod_groups, pin) = (Vec::new(), BTreeMap::new());
    Action::Release { pod: pod(name), labels: None, pod_groups, pin, queued: Queued::Not, consumes: None }
}

fn note(reason: &str, note: &str, warning: bool) -> EventNote {
    let (reason, note) = (reason.to_owned(), note.to_owned());
    EventNote { reason, subject: String::new(), note, warning, roles: BTreeSet::new() }
}

/// Returns a client of an API server that gives these answers.
fn answering(answer: impl Fn(&Request<Body>) -> (u16, Value) + Clone + Send + 'static) -> Client {
    let service = tower::service_fn(move |request: Request<Body>| {
        let (code, body) = answer(&request);
        let answer = http::Response::builder().status(code).body(Body::from(body.to_string().into_bytes()));
        std::future::ready(Ok::<_, std::convert::Infallible>(answer.unwrap()))
    });
    Client::new(service, "ns")
}

fn not_found() -> (u16, Value) {
    (404, json!({ "kind": "Status", "status": "Failure", "code": 404, "reason": "NotFound" }))
}

/// Returns one action of each kind.
fn all() -> Vec<Action> {
    let group = group();
    let gang = BatchPodGroup {
        name: "pd-c0-0".to_owned(),
        policy: PodGroupPolicy::KubeScheduling { schedule_timeout_seconds: None },
        renewed: false,
        is_sized: true,
        min_member: 4,
    };
    let absent = MissingPods {
        role: "prefill".to_owned(),
        missing: 1,
        of: 4,
        first: 3,
        newest: None,
        depends_on: None,
        sibling: None,
        job: None,
    };
    let surplus = Surplus { role: "prefill".to_owned(), desired: 4, pods: vec![pod("prefill-4")] };
    let status = Box::<GroupStatus>::default();
    let id = |name: &str| OwnedId { owner: "group".to_owned(), kind: KUBE_POD_GROUP, name: name.to_owned() };
    vec![
        release("prefill-0"),
        Action::WriteStatus(StatusWrite::Group {
            group: group.clone(),
            status: status.clone(),
            then: Vec::new(),
            reads_first: false,
        }),
        Action::WriteStatus(StatusWrite::Conflicted { other: group.clone(), status }),
        Action::WriteOwned { group: group.clone(), id: id("pd-c0-0"), write: OwnedWrite::Ensure(gang) },
        Action::WriteOwned { group: group.clone(), id: id("pd-c0-0"), write: OwnedWrite::Relax(1) },
        Action::Read(Question::Owned { group: group.clone(), kinds: BTreeSet::from([KUBE_POD_GROUP]) }),
        Action::WriteOwned { group: group.clone(), id: id("pd-c0-1"), write: OwnedWrite::Remove },
        Action::Step(Step::Partition { workload: Box::new(set().rolled().unwrap()), partition: 0, ends: true }),
        Action::Delete { pod: pod("prefill-1"), extent: Extent::Unscheduled },
        Action::Read(Question::MissingPods { group: group.clone(), missing: vec![absent] }),
        Action::Read(Question::Surge { group: group.clone(), surplus: vec![surplus] }),
        Action::Read(Question::Gone { carrier: Some(ROLE_COORDINATION) }),
    ]
}

#[tokio::test(start_paused = true)]
async fn every_action_ends_as_failed_when_the_api_server_does_not_answer() {
    let (key, metrics) = (group().key.clone(), LoopMetrics::register(&mut Registry::default()));
    let executor = executor(silent(), &metrics);
    let mut kinds = BTreeSet::new();
    for action in all() {
        kinds.insert(row(&action).what);
        let begun = Instant::now();
        let ended = executor.carry_out(&key, action.clone()).await;
        assert_eq!(begun.elapsed(), TIMEOUT, "{action:?}");
        let late = || Ended::StatusLate { why: "no answer within 10s".to_owned() };
        let is_of_group = matches!(action, Action::WriteStatus(StatusWrite::Group { .. }));
        let expected = if is_of_group { Some(late()) } else { action.ended(Some("no answer within 10s")) };
        assert_eq!(format!("{ended:?}"), format!("{expected:?}"), "{action:?}");
    }
    assert_eq!(kinds.len(), 11, "one of each kind, but for Events: {kinds:?}");
    let failed = [("outcome", "failed")];
    for counter in [&metrics.releases, &metrics.status_writes, &metrics.partitions] {
        assert_eq!(counter.get_or_create(&failed).get(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn releases_without_answers_leave_room_for_the_next() {
    let (key, metrics) = (group().key.clone(), LoopMetrics::register(&mut Registry::default()));
    let executor = executor(silent(), &metrics);
    let begun = Instant::now();
    let releases = (0..2 * FIRST).map(|n| release(&n.to_string()));
    let ended = join_all(releases.map(|action| executor.carry_out(&key, action))).await;
    assert_eq!((ended.len(), begun.elapsed()), (2 * FIRST, 2 * TIMEOUT));
}

#[tokio::test(start_paused = true)]
async fn an_event_without_an_answer_makes_way_for_the_next() {
    let metrics = LoopMetrics::register(&mut Registry::default());
    let executor = executor(silent(), &metrics);
    let note = note("Released", "segment 1 is released", false);
    let action = Action::Publish { about: About::Group(group()), events: vec![note.clone(), note] };
    assert!(executor.carry_out(&group().key, action).await.is_none());
    tokio::time::sleep(2 * TIMEOUT + Duration::from_millis(1)).await;
    assert_eq!(metrics.events.get_or_create(&[("outcome", "failed")]).get(), 2);
}

#[tokio::test(start_paused = true)]
async fn what_is_to_be_said_of_a_written_status_is_not_said_when_somebody_was_faster() {
    for (code, said) in [(200, 1), (409, 0)] {
        let client = answering(move |request| match request.method().as_str() {
            "PATCH" if code == 200 => (200, json!({ "metadata": { "name": "pd", "namespace": "ns", "uid": "group" } })),
            "PATCH" => (code, json!({ "kind": "Status", "status": "Failure", "code": code, "reason": "Conflict" })),
            "POST" => (201, json!({ "metadata": { "name": "event" } })),
            _ => not_found(),
        });
        let metrics = LoopMetrics::register(&mut Registry::default());
        let executor = executor(client, &metrics);
        let note = note("StatusBehindPods", "what runs counts as released", true);
        let (group, status) = (group(), Box::default());
        let action = Action::WriteStatus(StatusWrite::Group {
            group: group.clone(),
            status,
            then: vec![note],
            reads_first: false,
        });
        assert!(executor.carry_out(&group.key, action).await.is_some());
        tokio::time::sleep(TIMEOUT).await;
        let written = ["written", "failed"].map(|outcome| metrics.events.get_or_create(&[("outcome", outcome)]).get());
        assert_eq!(written.iter().sum::<u64>(), said, "answered {code}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_workload_is_not_scaled_once_its_group_has_committed_something_else() {
    let object = |draining: &Value| {
        let coordination = json!([build::coordination("s", &build::segments(&[("prefill", 2)], &json!({})))]);
        let object = build::role_coordination("pd", "StatefulSet", &["prefill"], &coordination);
        let metadata = json!({ "namespace": "ns", "uid": "group", "resourceVersion": "1" });
        with(object, &json!({ "metadata": metadata, "spec": { "segments": 3 }, "status": { "draining": draining } }))
    };
    let planned: RoleCoordination = typed(object(&Value::Null));
    let planned = Arc::new(Group::from_role_coordination(ROLE_COORDINATION, &planned, &()));
    for (draining, outcome) in [(Value::Null, "written"), (json!({ "from": 1, "to": 3 }), "conflict")] {
        let stored = object(&draining);
        let client = answering(move |request| match (request.method().as_str(), request.uri().path()) {
            ("GET", path) if path.ends_with("/rolecoordinations/pd") => (200, stored.clone()),
            ("PATCH", path) if path.ends_with("/scale") => (200, json!({ "metadata": { "resourceVersion": "2" } })),
            _ => not_found(),
        });
        let metrics = LoopMetrics::register(&mut Registry::default());
        let (group, role, workload) = (planned.clone(), "prefill".to_owned(), Box::new(set().scaled().unwrap()));
        let step = Step::Replicas { group, role, workload, replicas: 6, then: Vec::new() };
        executor(client, &metrics).carry_out(&planned.key, Action::Step(step)).await;
        assert_eq!(metrics.scales.get_or_create(&[("outcome", outcome)]).get(), 1, "it has committed {draining}");
    }
}

#[tokio::test(start_paused = true)]
async fn pods_beyond_what_a_group_declares_are_of_an_update_only_while_their_workload_wants_no_more() {
    let coordination = json!([build::coordination("s", &build::segments(&[("prefill", 2)], &json!({})))]);
    let object = build::role_coordination("pd", "Deployment", &["prefill"], &coordination);
    let object: RoleCoordination = typed(with(object, &json!({ "metadata": { "namespace": "ns", "uid": "group" } })));
    let group = Arc::new(Group::from_role_coordination(ROLE_COORDINATION, &object, &()));
    for (replicas, proven) in [(4, 1), (5, 0)] {
        let spec = json!({ "replicas": replicas, "strategy": { "rollingUpdate": { "maxSurge": 1 } } });
        let deployment = json!({ "metadata": { "name": "prefill", "namespace": "ns" }, "spec": spec });
        let client = answering(move |request| match request.uri().path() {
            path if path.ends_with("/deployments/prefill") => (200, deployment.clone()),
            _ => not_found(),
        });
        let surplus = vec![Surplus { role: "prefill".to_owned(), desired: 4, pods: vec![pod("prefill-4")] }];
        let answer = look(client, &group.key, Question::Surge { group: group.clone(), surplus }).await;
        let Answer::Surge(pods) = answer else { panic!("{answer:?}") };
        assert_eq!(pods.len(), proven, "the workload wants {replicas} now");
    }
}

#[tokio::test(start_paused = true)]
async fn a_replica_that_its_workload_does_not_want_is_not_lost() {
    let (group, role) = (group(), "prefill".to_owned());
    let (metadata, status) = (json!({ "name": "prefill", "namespace": "ns" }), json!({ "observedGeneration": 1 }));
    let set = json!({ "metadata": metadata, "spec": { "replicas": 4 }, "status": status });
    for (ordinal, lost) in [(3, true), (4, false)] {
        let set = set.clone();
        let client = answering(move |request| match request.uri().path() {
            path if path.ends_with("/statefulsets/prefill") => (200, set.clone()),
            _ => not_found(),
        });
        let loss = Loss { role: role.clone(), ordinal, unready: Vec::new() };
        let suspects = vec![Suspect { id: (0, 0), loss, roles: vec![role.clone()] }];
        let answer = look(client, &group.key, Question::Losses { group: group.clone(), suspects }).await;
        let Answer::Losses(Some(judged)) = &answer else { panic!("{answer:?}") };
        let is_lost = judged.iter().any(|one| matches!(one.verdict, Verdict::Lost(_)));
        assert_eq!(is_lost, lost, "replica {ordinal} of four");
    }
}

async fn look(client: Client, key: &GroupKey, question: Question) -> Answer {
    let metrics = LoopMetrics::register(&mut Registry::default());
    let ended = executor(client, &metrics).carry_out(key, Action::Read(question)).await;
    let Some(Ended::Read(answer)) = ended else { panic!("{ended:?}") };
    answer
}
