use serde_json::{Value, json};

use super::*;
use crate::model::{HoldReason, RolledWorkload};
use crate::plan::recovery::RecoveryContext;
use crate::plan::rollout::Edit;
use crate::plan::test_support::{mk_group, mk_open, mk_serving, shared};
use crate::plan::view::{GroupPods, Snapshot};
use crate::plan::{DecisionContext, Evaluation, Observation, evaluate};

/// A prefill, of which the first two are let go.
fn two_run(ordinal: u32, revision: &str) -> PodFacts {
    let runs = ordinal < 2;
    PodFacts { held: !runs, scheduled: runs, ready: runs, ..mk_serving("prefill", ordinal, revision) }
}

/// Four old prefill in segments of two, of which the first segment is let go and the other one is held: prefill 1 never got ready.
fn pods(first_is_ready: bool) -> GroupPods {
    let ready = |ordinal| ordinal == 0 && first_is_ready;
    let pod = |ordinal| PodFacts { ready: ready(ordinal), ..two_run(ordinal, "old") };
    shared(&(0..4).map(pod).collect::<Vec<_>>())
}

/// Returns what is decided for a snapshot, and the pods that are deleted.
fn decided(
    update: &Value,
    snapshot: &Snapshot,
    may_delete: bool,
    behind: Option<&Vec<String>>,
) -> (Evaluation, Vec<String>) {
    let strategy = json!({ "rollingUpdate": update, "segmentPlacement": { "segmentSize": { "prefill": 2 } } });
    let group = mk_group(&[("prefill", 4)], &json!([{ "name": "roll", "roles": ["prefill"], "strategy": strategy }]));
    let observation = Observation::of(&group, snapshot, None, |_| None, |_| Edit::long_ago());
    let recovery = RecoveryContext { off: !may_delete, ..RecoveryContext::default() };
    let context = DecisionContext { recovery: &recovery, behind, ..DecisionContext::default() };
    let seen = evaluate(&group, observation, context, None);
    let deleted = seen.rollouts.outdated(&seen.view, &seen.decision.rollout);
    let deleted = deleted.iter().map(|deletion| deletion.pod.pod.name.to_string()).collect();
    (seen, deleted)
}

/// Returns why the update waits once that has lasted, and the pods that are deleted.
fn seen(snapshot: &Snapshot, may_delete: bool) -> (Vec<String>, Vec<String>) {
    let roles = vec!["prefill".to_owned()];
    let (seen, deleted) = decided(&json!({ "maxUnavailable": 2 }), snapshot, may_delete, Some(&roles));
    assert_eq!(seen.decision.behind.is_empty(), snapshot.workloads.iter().any(RolledWorkload::is_open) && may_delete);
    let held = seen.decision.held.iter().filter(|held| held.reason == HoldReason::RolloutBehindHeldBatch);
    (held.map(|held| held.message.clone()).collect(), deleted)
}

fn why(pod: u32) -> Vec<String> {
    let deletion = format!("`kubectl delete pod prefill-{pod} -n ns`");
    vec![format!(
        "prefill cannot be rolled: its workload waits for held replicas on top; {deletion} replaces the next pod; or scale it to 2 \
         replicas to go on"
    )]
}

#[test]
fn old_pods_below_held_ones_are_deleted_where_they_may_be_and_else_that_is_told() {
    let mut workload = RolledWorkload { at_once: Some(1), ..mk_open("prefill", ("old", "new"), 1) };
    let snapshot = |workload: &RolledWorkload| Snapshot {
        pods: pods(true),
        workloads: vec![workload.clone()],
        ..Snapshot::default()
    };
    let open = snapshot(&workload);
    assert_eq!(seen(&open, true), (vec![], ["prefill-1", "prefill-2", "prefill-3"].map(str::to_owned).to_vec()));
    assert_eq!(seen(&open, false), (why(1), vec![]));
    // A controller that makes pods in order makes none again above one that is not ready.
    workload.ordered = true;
    assert_eq!(seen(&snapshot(&workload), true), (vec![], vec!["prefill-1".to_owned()]));
}

#[test]
fn a_first_version_that_is_broken_is_deleted_and_one_that_serves_is_not() {
    let update = OwnUpdate { revision: "new".to_owned(), from: 0 };
    let snapshot = |first_is_ready: bool, from: u32| Snapshot {
        pods: pods(first_is_ready),
        updates: [("prefill".to_owned(), OwnUpdate { from, ..update.clone() })].into(),
        ..Snapshot::default()
    };
    let broken = ["prefill-0", "prefill-1"].map(str::to_owned).to_vec();
    assert_eq!(seen(&snapshot(false, 0), true), (vec![], broken));
    assert_eq!(seen(&snapshot(false, 0), false), (why(1), vec![]));
    assert_eq!(seen(&snapshot(true, 0), true), (vec![], vec!["prefill-1".to_owned()]));
    assert_eq!(seen(&snapshot(true, 0), false), (why(1), vec![]));
}

#[test]
fn a_segment_that_grew_in_a_rollout_begins_with_new_pods_where_old_ones_may_be_deleted() {
    let workload = RolledWorkload { at_once: Some(1), ..mk_open("prefill", ("old", "new"), 2) };
    let of_grown = |revision: &str, may_delete: bool, steps: &Value| {
        let pods: Vec<_> = (0..4).map(|n| two_run(n, if n < 2 { "new" } else { revision })).collect();
        let snapshot = Snapshot { pods: shared(&pods), workloads: vec![workload.clone()], ..Snapshot::default() };
        let (seen, deleted) = decided(steps, &snapshot, may_delete, None);
        let told: Vec<_> = seen.decision.held.iter().map(|held| (held.reason, held.message.clone())).collect();
        (told, deleted, seen.decision.released["prefill"])
    };
    let at_one_rate = json!({});
    let why = "segment 2 is held: prefill-2 is old, and the rollout replaces it first".to_owned();
    let old = ["prefill-2", "prefill-3"].map(str::to_owned).to_vec();
    assert_eq!(of_grown("old", true, &at_one_rate), (vec![(HoldReason::SegmentOutdated, why)], old, 2));
    assert_eq!(of_grown("new", true, &at_one_rate), (vec![], vec![], 4));
    assert_eq!(of_grown("old", false, &at_one_rate), (vec![], vec![], 4), "nobody would replace them");
    let steps = json!({ "steps": [{ "updated": "50%" }, { "updated": "100%" }] });
    assert_eq!(of_grown("old", true, &steps), (vec![], vec![], 4), "steps bound how many new pods there are");
}
