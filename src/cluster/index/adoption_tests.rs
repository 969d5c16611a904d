use std::collections::HashSet;

use serde_json::{Value, json};

use super::*;
use crate::api::rbg::ROLE_BASED_GROUP;
use crate::build::{self, typed, with};
use crate::plan::{Action, Answer, Ended, LoopOptions, MissingGroup, Question, Reconciler, StatusWrite};

const LIST: u64 = 9;

pub(super) fn key() -> GroupKey {
    GroupKey::new("ns", "pd")
}

/// Four running pods from a watch, and a group that has never committed anything.
fn with_pods() -> Index {
    let mut index = Index::default();
    index.pod_change(0, Change::Listed((0..4).map(|ordinal| pod(ordinal, 1)).collect()));
    let segments = build::segments(&[("prefill", 2)], &json!({}));
    let group = build::group("pd", &[("prefill", 4)], &json!([{ "strategy": segments }]));
    index.apply_carrier(None, stored(group, "new", 5, &json!({})));
    index
}

/// Returns a group of the namespace as it is stored.
pub(super) fn stored(group: Value, uid: &str, version: u32, status: &Value) -> CarrierObject {
    let metadata = json!({ "namespace": "ns", "uid": uid, "resourceVersion": version.to_string() });
    CarrierObject::rbg(ROLE_BASED_GROUP, &typed(with(group, &json!({ "metadata": metadata, "status": status }))))
}

/// Returns a running pod of a StatefulSet and a role of the group; `more` is merged into it.
pub(super) fn running((set, role): (&str, &str), ordinal: u32, (uid, version): (&str, u64), more: &Value) -> Pod {
    let owner = json!({ "apiVersion": "apps/v1", "kind": "StatefulSet", "name": set, "uid": set, "controller": true });
    let metadata = json!({
        "uid": uid, "resourceVersion": version.to_string(), "ownerReferences": [owner], "labels": build::labels("pd", role),
    });
    let pod = build::pod(&format!("{set}-{ordinal}"), false, &json!({}));
    typed(with(with(pod, &json!({ "metadata": metadata, "spec": { "nodeName": "n" } })), more))
}

fn pod(ordinal: u32, version: u64) -> Pod {
    running(("p", "prefill"), ordinal, (&format!("{ordinal}-{version}"), version), &json!({}))
}

pub(super) fn leader() -> Reconciler {
    let options = LoopOptions { missing_group: MissingGroup::Hold, ..LoopOptions::default() };
    let mut reconciler = Reconciler::new(options);
    reconciler.sync([], Duration::ZERO);
    reconciler.lead(true, [key()], Duration::ZERO);
    reconciler
}

/// Returns the actions of a pass: the released count it writes, or `None` for a live list of running pods.
fn pass(reconciler: &mut Reconciler, index: &Index, second: u64) -> Vec<Option<u32>> {
    let actions =
        reconciler.pass(&key(), &index.snapshot(&key()), None, Duration::from_secs(second), "2026-01-01T00:00:00Z");
    let written = |action: &Action| match action {
        Action::Read(Question::Pods) => Some(None),
        Action::WriteStatus(StatusWrite::Group { status, .. }) => {
            Some(status.coordination_state[0].progress["prefill"].released)
        }
        _ => None,
    };
    actions.iter().filter_map(written).collect()
}

fn uids(pods: std::ops::Range<u32>, version: u64) -> HashSet<String> {
    pods.map(|ordinal| format!("{ordinal}-{version}")).collect()
}

#[test]
fn what_runs_counts_for_a_new_group_when_it_is_seen_to_be_there() {
    let (mut index, mut reconciler) = (with_pods(), leader());
    assert_eq!(pass(&mut reconciler, &index, 0), [None]);
    assert!(pass(&mut reconciler, &index, 1).is_empty(), "it is asked once, and nothing is decided meanwhile");
    reconciler.ended(key(), Ended::Read(Answer::Pods { failed: true }), Duration::from_secs(1));
    assert_eq!(pass(&mut reconciler, &index, 2), [None], "it is asked again");
    index.running_pods_read(&key(), &uids(0..4, 1), Some(LIST));
    reconciler.ended(key(), Ended::Read(Answer::Pods { failed: false }), Duration::from_secs(2));
    assert_eq!(pass(&mut reconciler, &index, 3), [Some(4)]);
}

#[test]
fn pods_of_an_earlier_group_open_nothing_to_those_of_a_new_one() {
    let (mut index, mut reconciler) = (with_pods(), leader());
    assert_eq!(pass(&mut reconciler, &index, 0), [None]);
    index.running_pods_read(&key(), &HashSet::new(), Some(LIST));
    reconciler.ended(key(), Ended::Read(Answer::Pods { failed: false }), Duration::from_secs(1));
    assert_eq!(pass(&mut reconciler, &index, 2), [Some(2)], "the first segment goes, and no other");
}

#[test]
fn what_came_after_the_list_stays_and_what_the_list_lacked_does_not_come_back() {
    let mut index = with_pods();
    index.pod_change(0, Change::Applied(pod(0, LIST + 1)));
    index.running_pods_read(&key(), &uids(1..2, 1), Some(LIST));
    let names = |index: &Index| {
        let mut names: Vec<_> = index.snapshot(&key()).pods.iter().map(|pod| pod.pod.name.to_string()).collect();
        names.sort();
        names
    };
    assert_eq!(names(&index), ["p-0", "p-1"]);
    // The watch is still behind.
    index.pod_change(0, Change::Applied(pod(3, 2)));
    assert_eq!(names(&index), ["p-0", "p-1"]);
    // A list without a version proves nothing.
    index.running_pods_read(&key(), &HashSet::new(), None);
    assert_eq!(names(&index), ["p-0", "p-1"]);
}
