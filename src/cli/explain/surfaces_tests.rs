//! Tests that every surface reports every hold reason.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::group;
use super::pod::Story;
use crate::api::Pod;
use crate::api::rbg::ROLE_BASED_GROUP;
use crate::api::status::{CoordinationState, GroupStatus, Summary};
use crate::cli::{doctor, status};
use crate::model::{Claims, Group, GroupKey, HoldReason, identify, names};
use crate::plan::{Held, PodFacts, Snapshot};
use crate::report::{Drawing, Line, Picture};

const WHY: &str = "because of this and that";

/// Returns the pods of a group of two segments.
fn pods(gated: bool) -> Vec<Pod> {
    let pod = |ordinal: u32| -> Pod {
        let holds = if gated { json!([{ "name": names::GATE }]) } else { Value::Null };
        let labels = json!({ names::GROUP: "pd", names::ROLE: "prefill" });
        let owner = json!([{ "apiVersion": "apps/v1", "kind": "StatefulSet", "name": "prefill", "uid": "s", "controller": true }]);
        let name = format!("prefill-{ordinal}");
        let metadata =
            json!({ "name": name, "uid": name, "namespace": "ns", "labels": labels, "ownerReferences": owner });
        let selector = json!({ "example.com/rack": "rack-2", "kubernetes.io/hostname": "n1" });
        let spec = json!({ "schedulingGates": holds, "nodeSelector": selector });
        serde_json::from_value(json!({ "metadata": metadata, "spec": spec })).unwrap()
    };
    (0..2).map(pod).collect()
}

/// Returns a group that holds its pods for this reason, with the status that the loop wrote.
fn picture(reason: HoldReason, pods: &[Pod]) -> Picture {
    let strategy = json!({ "segmentPlacement": { "segmentSize": { "prefill": 1 } } });
    let object = json!({
        "metadata": { "name": "pd", "namespace": "ns" },
        "spec": {
            "roles": [{ "name": "prefill", "replicas": 2 }],
            "coordination": [{ "name": "pd", "strategy": strategy }],
        },
    });
    let mut group = Group::from_rbg(ROLE_BASED_GROUP, &serde_json::from_value(object).unwrap());
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
    if !reason.is_of_loop() {
        let held = if reason.may_be_of_no_pod() { Vec::new() } else { picture.seen.view.held() };
        picture.seen.decision.held = vec![Held::new(reason, WHY.to_owned(), held)];
    }
    picture
}

fn explained(pod: &Pod, picture: &Picture) -> String {
    Story::seen(pod, &identify(pod, "ns", &()).unwrap(), picture, Timestamp::UNIX_EPOCH).text()
}

#[test]
fn every_reason_is_told_on_every_surface() {
    for reason in HoldReason::ALL {
        let pods = pods(true);
        let picture = picture(*reason, &pods);
        let mut surfaces = vec![
            ("status", status::one(&picture)),
            ("explain group", group::text(&picture)),
            ("doctor", doctor::told_of(&picture)),
            ("page, overview", serde_json::to_string(&Line::of(&picture)).unwrap()),
            ("page, group", serde_json::to_string(&Drawing::of(&picture, None)).unwrap()),
        ];
        if !reason.may_be_of_no_pod() || *reason == HoldReason::NoRoom {
            surfaces.push(("explain pod", explained(&pods[0], &picture)));
        }
        for (surface, text) in surfaces {
            assert!(text.contains(reason.as_str()) && text.contains(WHY), "{reason} in {surface}:\n{text}");
        }
    }
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
