//! Tests that every surface reports every hold reason.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::pod::Story;
use crate::api::Pod;
use crate::api::rbg::ROLE_BASED_GROUP;
use crate::api::status::{CoordinationState, GroupStatus, RolledBack, RolloutState, Summary};
use crate::api::workload::StatefulSet;
use crate::build::{self, typed, with};
use crate::cli::data::Data;
use crate::cli::{doctor, status};
use crate::model::rolling::FROZEN;
use crate::model::{AwaitedKind, Claims, Fact, Group, GroupKey, HoldReason, WorkloadObject as _, identify, names};
use crate::plan::reconcile::rollout_events::ReportedRollouts;
use crate::plan::rollout::{RolloutPlan, Rollouts};
use crate::plan::status::conditions::PROGRESSING;
use crate::plan::{AwaitedObjects, Held, PodFacts, SeenKind, Snapshot, Uptime};
use crate::report::{self, Drawing, Line, Picture};

const WHY: &str = "because of this and that";

/// Returns the pods of a group of two segments.
fn pods(gated: bool) -> Vec<Pod> {
    let pod = |ordinal: u32| -> Pod {
        let owner = json!([{ "apiVersion": "apps/v1", "kind": "StatefulSet", "name": "prefill", "uid": "s", "controller": true }]);
        let more = json!({
            "metadata": { "labels": build::labels("pd", "prefill"), "ownerReferences": owner },
            "spec": { "nodeSelector": { "example.com/rack": "rack-2", "kubernetes.io/hostname": "n1" } },
        });
        typed(with(build::pod(&format!("prefill-{ordinal}"), gated, &json!({})), &more))
    };
    (0..2).map(pod).collect()
}

/// Returns a group that holds its pods for this reason, with the status that the loop wrote.
fn picture(reason: HoldReason, pods: &[Pod]) -> Picture {
    let coordination = json!([build::coordination("pd", &build::segments(&[("prefill", 1)], &json!({})))]);
    let object = build::group("pd", &[("prefill", 2)], &coordination);
    let object = with(object, &json!({ "metadata": { "namespace": "ns" } }));
    let mut group = Group::from_rbg(ROLE_BASED_GROUP, &typed(object));
    let summary = Summary { held: 2, reason: reason.to_string(), message: WHY.to_owned(), ..Summary::default() };
    let domains = [("0".to_owned(), "rack-2".to_owned())].into();
    let state = CoordinationState { name: "pd".to_owned(), domains, ..CoordinationState::default() };
    group.status = GroupStatus { summary: Some(summary), coordination_state: vec![state], ..GroupStatus::default() };
    let facts = |pod: &Pod| PodFacts::of(pod, identify(pod, "ns", &()).unwrap()).unwrap();
    let snapshot = Snapshot {
        claims: Some(Claims { group: Arc::new(group), others: Vec::new() }),
        domain_keys: vec![(0, "example.com/rack".to_owned())],
        pods: pods.iter().map(facts).collect(),
        ..Snapshot::default()
    };
    let mut picture = Picture::of(&GroupKey::new("ns", "pd"), snapshot);
    if !reason.is(Fact::ByLoop) {
        let held = if reason.is(Fact::WithoutPods) { Vec::new() } else { picture.seen.view.held() };
        picture.seen.decision.held = vec![Held::new(reason, WHY.to_owned(), held)];
    }
    picture
}

fn explained(pod: &Pod, picture: &Picture) -> String {
    Story::seen(pod, &identify(pod, "ns", &()).unwrap(), picture, Timestamp::UNIX_EPOCH).text()
}

/// Returns what each surface that shows groups says of one.
fn of_group(picture: &Picture) -> [(&'static str, String); 3] {
    [
        ("status and explain group", status::one(picture)),
        ("page, overview", serde_json::to_string(&Line::of(picture)).unwrap()),
        ("page, group", serde_json::to_string(&Drawing::of(picture, None)).unwrap()),
    ]
}

#[test]
fn every_reason_is_told_on_every_surface() {
    for reason in HoldReason::ALL {
        let pods = pods(true);
        let picture = picture(*reason, &pods);
        let mut surfaces = of_group(&picture).to_vec();
        surfaces.push(("doctor", doctor::told_of(&picture)));
        if !reason.is(Fact::WithoutPods) || *reason == HoldReason::NoRoom {
            surfaces.push(("explain pod", explained(&pods[0], &picture)));
        }
        for (surface, text) in surfaces {
            assert!(text.contains(reason.as_str()) && text.contains(WHY), "{reason} in {surface}:\n{text}");
        }
    }
}

#[test]
fn an_explanation_is_a_hold_with_advice_in_every_format() {
    let picture = picture(HoldReason::NoRoom, &pods(true));
    let explanations = report::Story::of(&picture).explanations();
    let json: Value = serde_json::from_str(&Data::Json.text(&explanations)).unwrap();
    let fields: BTreeSet<_> = json[0].as_object().unwrap().keys().map(String::as_str).collect();
    let expected = ["coordination", "batch", "reason", "message", "pods", "waitsFor", "next", "youCan"];
    assert_eq!(fields, expected.into());
    assert_eq!(serde_saphyr::from_str::<Value>(&Data::Yaml.text(&explanations)).unwrap(), json);
}

/// No pod is held for this reason: the released pods without a node report it, and their domain.
#[test]
fn a_pod_that_was_placed_and_has_no_node_says_where_it_was_sent() {
    let pods = pods(false);
    let reason = HoldReason::PlacedNotBound;
    let text = explained(&pods[0], &picture(reason, &pods));
    assert!(text.contains(reason.as_str()) && text.contains(WHY), "{text}");
    assert!(text.contains("example.com/rack=rack-2, kubernetes.io/hostname=n1 (nodeSelector, by rolegate)"), "{text}");
    // A pod of another batch, without a domain, does not report it.
    let other = explained(&pods[1], &picture(reason, &pods));
    assert!(!other.contains("by rolegate") && !other.contains(reason.as_str()), "{other}");
}

/// Returns a group of two replicas with this strategy, after the loop has written its status. Each pod has a revision, and is ready,
/// or held where it has none.
fn coordinated(
    strategy: &Value,
    rollout: Option<&RolloutState>,
    revisions: [&str; 2],
    objects: &AwaitedObjects,
) -> Picture {
    let object = json!({
        "metadata": { "name": "pd", "namespace": "ns" },
        "spec": {
            "roles": [{ "name": "prefill", "replicas": 2 }],
            "coordination": [{ "name": "pd", "roles": ["prefill"], "strategy": strategy }],
        },
    });
    let mut group = Group::from_rbg(ROLE_BASED_GROUP, &serde_json::from_value(object).unwrap());
    let metadata = json!({
        "name": "prefill", "namespace": "ns", "uid": "s", "generation": 1,
        "labels": { names::GROUP: "pd", names::ROLE: "prefill" }, "annotations": { names::USER_PARTITIONS[0]: "0" },
    });
    let partition = if rollout.is_some_and(|state| state.rolled_back.is_some()) { FROZEN } else { 1 };
    let set: StatefulSet = serde_json::from_value(json!({
        "metadata": metadata,
        "spec": { "replicas": 2, "updateStrategy": { "rollingUpdate": { "partition": partition } } },
        "status": { "observedGeneration": 1, "currentRevision": "1", "updateRevision": "2" },
    }))
    .unwrap();
    let facts = |(pod, revision): (&Pod, &&str)| {
        let pod = PodFacts::of(pod, identify(pod, "ns", &()).unwrap()).unwrap();
        let held = revision.is_empty();
        PodFacts { held, ready: !held, scheduled: !held, revision: Some((*revision).into()), ..pod }
    };
    let (name, pods) = ("pd".to_owned(), pods(true));
    let state = CoordinationState { name, rollout: rollout.cloned(), ..CoordinationState::default() };
    group.status.coordination_state = vec![state];
    let seen = |group: &Group| {
        let snapshot = Snapshot {
            claims: Some(Claims { group: Arc::new(group.clone()), others: Vec::new() }),
            workloads: set.rolled().filter(|_| rollout.is_some()).into_iter().collect(),
            pods: pods.iter().zip(&revisions).map(facts).collect(),
            objects: objects.clone(),
            ..Snapshot::default()
        };
        Picture::of(&GroupKey::new("ns", "pd"), snapshot)
    };
    group.status = seen(&group).seen.status;
    seen(&group)
}

/// Returns the state of a rollout to revision 2.
fn under_way(rolled_back: Option<RolledBack>) -> RolloutState {
    let revisions = [("prefill".to_owned(), "2".to_owned())].into();
    RolloutState { revisions, rolled_back, ..RolloutState::default() }
}

#[test]
fn a_rollout_that_went_back_is_told_alike_on_every_surface() {
    let message = "prefill-1 did not get ready within 10m".to_owned();
    let back = RolledBack { since: String::new(), reason: "ReplicasNotReady".to_owned(), message };
    let update = json!({ "rollingUpdate": { "onFailure": "Rollback" } });
    let picture = coordinated(&update, Some(&under_way(Some(back))), ["1", "1"], &AwaitedObjects::Unknown);
    let (rollouts, plan) = (&picture.seen.rollouts, &picture.seen.decision.rollout);
    let mut reported = ReportedRollouts::default();
    reported.events(&Rollouts::default(), &RolloutPlan::default(), false, Uptime::ZERO);
    let (events, _) = reported.events(rollouts, plan, false, Uptime::ZERO);
    let events: Vec<_> = events.iter().map(|event| format!("{}: {}", event.reason, event.note)).collect();
    for (surface, text) in of_group(&picture).into_iter().chain([("Events", events.join("\n"))]) {
        let told =
            text.contains("was sent back: prefill-1 did not get ready within 10m") && text.contains("RolledBack");
        assert!(told && !text.contains("RolloutStalled"), "{surface}:\n{text}");
    }
}

/// Steps of rollouts and segments wait for an object: which, and what helps, follows from what is missing.
#[test]
fn an_object_that_is_waited_for_is_named_with_the_advice_that_helps() {
    let seen = |kind| {
        let job = AwaitedKind { group: "batch".to_owned(), kind: "Job".to_owned() };
        AwaitedObjects::Seen([(job, kind)].into())
    };
    let known =
        |names: &[&str]| SeenKind::Known(Arc::new(names.iter().map(|name| ((*name).into(), Arc::default())).collect()));
    let cases = [
        (AwaitedObjects::Seen([].into()), "is not looked at", "`rolegate manifests --ready-kinds`"),
        (seen(SeenKind::Unread), "could not be listed", "`rolegate doctor`"),
        (seen(known(&[])), "is not there", "apply it"),
        (seen(known(&["check-0", "check-1"])), "has no condition Complete", "kubectl get KIND NAME -n ns"),
    ];
    let object = |number: &str| {
        let name = format!("check-$({number})");
        json!({ "object": { "apiVersion": "batch/v1", "kind": "Job", "name": name, "condition": "Complete" } })
    };
    let steps = json!([{ "prefill": "50%" }, { "prefill": "100%" }]);
    let update = json!({ "rollingUpdate": { "steps": steps, "readyWhen": object("STEP") } });
    let segments = json!({ "segmentPlacement": { "segmentSize": { "prefill": 1 }, "readyWhen": object("SEGMENT") } });
    for (objects, why, helps) in &cases {
        let waits = [
            coordinated(&update, Some(&under_way(None)), ["1", "2"], objects),
            coordinated(&segments, None, ["1", ""], objects),
        ];
        for text in waits.map(|picture| status::one(&picture)) {
            let misleads = cases.iter().any(|(.., other)| other != helps && text.contains(other));
            assert!(text.contains(why) && text.contains(helps) && !misleads, "{why}:\n{text}");
            assert!(!text.contains("nothing is held back"), "{text}");
        }
    }
}

/// The status has room for one reason and names the other one in its condition: only the loop knows that nothing deletes old pods. The
/// overview has one reason for each group.
#[test]
fn a_rollout_behind_held_replicas_is_told_with_its_command_beside_a_reason_that_goes_first() {
    let object = json!({ "apiVersion": "batch/v1", "kind": "Job", "name": "warm", "condition": "Complete" });
    let segments = json!({ "segmentSize": { "prefill": 1 }, "readyWhen": { "object": object } });
    let strategy = json!({ "rollingUpdate": {}, "segmentPlacement": segments });
    let picture = coordinated(&strategy, Some(&under_way(None)), ["1", ""], &AwaitedObjects::Unknown);
    let command = "`kubectl delete pod prefill-0 -n ns` replaces the next pod";
    let told = |message: &str| {
        let claims = picture.snapshot.claims.clone().unwrap();
        let mut group = Group::clone(&claims.group);
        let progressing = group.status.conditions.iter_mut().find(|condition| condition.r#type == PROGRESSING).unwrap();
        progressing.message = message.to_owned();
        let claims = Some(Claims { group: Arc::new(group), ..claims });
        Picture::of(&picture.key, Snapshot { claims, ..picture.snapshot.clone() })
    };
    let behind = "prefill cannot be rolled: its workload waits for held replicas on top";
    let surfaces = of_group(&told(&format!("decode waits; {behind}; {command}; or more")));
    for (surface, text) in surfaces.into_iter().filter(|(surface, _)| *surface != "page, overview") {
        assert!(text.contains("RolloutBehindHeldBatch") && text.contains(command), "{surface}:\n{text}");
    }
    for other in ["", "decode waits", &format!("my-{behind}; or more")] {
        for (surface, text) in of_group(&told(other)) {
            assert!(!text.contains("RolloutBehindHeldBatch"), "{surface}:\n{text}");
        }
    }
}
