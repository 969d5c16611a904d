use serde_json::json;

use super::adoption_tests::{key, leader, running, stored};
use super::*;
use crate::api::status::GroupStatus;
use crate::api::workload::StatefulSet;
use crate::build::{self, typed, with};
use crate::cluster::index::workloads::SeenWorkload;
use crate::plan::{Action, Reconciler, StatusWrite, Step};

fn with_group(index: &mut Index, version: u32, status: &GroupStatus) {
    let rolling = json!({ "rollingUpdate": { "maxSkew": "50%" } });
    let roll = json!([{ "name": "roll", "roles": ["prefill", "decode"], "strategy": rolling }]);
    let group = build::group("pd", &[("prefill", 2), ("decode", 2)], &roll);
    index.apply_carrier(None, stored(group, "g", version, &json!(status)));
}

/// Adds a claimed StatefulSet with an open rollout, and its two old pods.
fn with_open_rollout(index: &mut Index, role: &str) {
    let labels = build::labels("pd", role);
    let template = json!({ "metadata": { "labels": labels } });
    let more = json!({
        "metadata": {
            "namespace": "ns", "uid": role, "resourceVersion": "7", "generation": 2, "labels": labels,
            "annotations": { (names::USER_PARTITION): "0" },
        },
        "spec": { "updateStrategy": { "rollingUpdate": { "partition": crate::model::rolling::FROZEN } } },
        "status": { "observedGeneration": 2, "currentRevision": format!("{role}-1"), "updateRevision": format!("{role}-2") },
    });
    let set: StatefulSet = typed(with(build::stateful_set(role, 2, &template), &more));
    index.apply_workload(None, SeenWorkload::of(&set));
    let more = json!({
        "metadata": { "labels": { "controller-revision-hash": format!("{role}-1") } },
        "status": { "conditions": [{ "type": "Ready", "status": "True" }] },
    });
    let pod = |ordinal: u32| running((role, role), ordinal, (&format!("{role}-{ordinal}"), 8), &more);
    (0..2).for_each(|ordinal| index.pod_change(0, Change::Applied(pod(ordinal))));
}

/// Returns the status that a pass writes, and the roles whose partition it lowers.
fn pass(reconciler: &mut Reconciler, index: &Index, second: u64) -> (Option<GroupStatus>, Vec<String>) {
    let now = Duration::from_secs(second);
    let actions = reconciler.pass(&key(), &index.snapshot(&key()), None, now, "2026-01-01T00:00:00Z");
    let (mut written, mut lowered) = (None, Vec::new());
    for action in actions {
        match action {
            Action::WriteStatus(StatusWrite::Group { status, .. }) => written = Some(*status),
            Action::Step(Step::Partition { workload, .. }) => lowered.push(workload.claim.role),
            _ => {}
        }
    }
    (written, lowered)
}

#[test]
fn no_partition_moves_before_the_cohort_of_the_new_pods_is_committed() {
    let (mut index, mut reconciler) = (Index::default(), leader());
    with_group(&mut index, 5, &GroupStatus::default());
    ["prefill", "decode"].iter().for_each(|role| with_open_rollout(&mut index, role));
    let (written, lowered) = pass(&mut reconciler, &index, 60);
    let cohorts = written.as_ref().and_then(|status| status.cohorts.clone()).unwrap();
    assert_eq!((cohorts.last, &cohorts.roles["decode"][1].cohort, lowered.len()), (2, &"2".to_owned(), 0));
    assert!(pass(&mut reconciler, &index, 61).1.is_empty(), "while it is written");
    with_group(&mut index, 6, &written.unwrap());
    assert!(!pass(&mut reconciler, &index, 62).1.is_empty());
}
