use serde_json::{Value, json};

use super::*;
use crate::model::{HoldReason, RolledWorkload};
use crate::plan::recovery::RecoveryContext;
use crate::plan::rollout::Edit;
use crate::plan::test_support::{mk_group, mk_pod, mk_workload, shared};
use crate::plan::view::{GroupPods, Snapshot};
use crate::plan::{DecisionContext, Observation, evaluate};

/// Four old prefill in segments of two, of which the first segment is let go and the other one is held: prefill 1 never got ready.
fn pods(first_is_ready: bool) -> GroupPods {
    let pod = |ordinal: u32| PodFacts {
        held: ordinal >= 2,
        scheduled: ordinal < 2,
        ready: ordinal == 0 && first_is_ready,
        revision: Some("old".into()),
        ..mk_pod(&format!("prefill-{ordinal}"), "prefill", ordinal)
    };
    shared(&(0..4).map(pod).collect::<Vec<_>>())
}

/// Returns why the update waits once that has lasted, and the pods that are deleted.
fn seen(snapshot: &Snapshot, may_delete: bool) -> (Vec<String>, Vec<String>) {
    let strategy =
        json!({ "rollingUpdate": { "maxUnavailable": 2 }, "segmentPlacement": { "segmentSize": { "prefill": 2 } } });
    let group = mk_group(&[("prefill", 4)], &json!([{ "name": "roll", "roles": ["prefill"], "strategy": strategy }]));
    let observation = Observation::of(&group, snapshot, None, |_| None, |_| Edit::long_ago());
    let recovery = RecoveryContext { off: !may_delete, ..RecoveryContext::default() };
    let roles = vec!["prefill".to_owned()];
    let context = DecisionContext { recovery: &recovery, behind: Some(&roles), ..DecisionContext::default() };
    let seen = evaluate(&group, observation, context, None);
    assert_eq!(seen.decision.behind.is_empty(), snapshot.workloads.iter().any(RolledWorkload::is_open) && may_delete);
    let held = seen.decision.held.iter().filter(|held| held.reason == HoldReason::RolloutBehindHeldBatch);
    let deleted = seen.rollouts.outdated(&seen.view, &seen.decision.rollout);
    let deleted = deleted.iter().map(|deletion| deletion.pod.pod.name.to_string());
    (held.map(|held| held.message.clone()).collect(), deleted.collect())
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
    let mut workload = mk_workload("prefill", "new");
    workload.current_revision = Some("old".to_owned());
    (workload.partition, workload.user_partition, workload.at_once) = (1, Some(0), Some(1));
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
    let pod = |ordinal: u32, revision: &str| PodFacts {
        held: ordinal >= 2,
        scheduled: ordinal < 2,
        ready: ordinal < 2,
        revision: Some(revision.into()),
        ..mk_pod(&format!("prefill-{ordinal}"), "prefill", ordinal)
    };
    let mut workload = mk_workload("prefill", "new");
    workload.current_revision = Some("old".to_owned());
    (workload.partition, workload.user_partition, workload.at_once) = (2, Some(0), Some(1));
    let of_grown = |revision: &str, may_delete: bool, steps: &Value| {
        let pods: Vec<_> = (0..2).map(|n| pod(n, "new")).chain((2..4).map(|n| pod(n, revision))).collect();
        let snapshot = Snapshot { pods: shared(&pods), workloads: vec![workload.clone()], ..Snapshot::default() };
        let strategy = json!({ "rollingUpdate": steps, "segmentPlacement": { "segmentSize": { "prefill": 2 } } });
        let coordination = json!([{ "name": "roll", "roles": ["prefill"], "strategy": strategy }]);
        let group = mk_group(&[("prefill", 4)], &coordination);
        let observation = Observation::of(&group, &snapshot, None, |_| None, |_| Edit::long_ago());
        let recovery = RecoveryContext { off: !may_delete, ..RecoveryContext::default() };
        let context = DecisionContext { recovery: &recovery, ..DecisionContext::default() };
        let seen = evaluate(&group, observation, context, None);
        let deleted = seen.rollouts.outdated(&seen.view, &seen.decision.rollout);
        let deleted: Vec<_> = deleted.iter().map(|deletion| deletion.pod.pod.name.to_string()).collect();
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
