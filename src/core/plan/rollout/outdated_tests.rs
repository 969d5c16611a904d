use std::collections::BTreeMap;

use serde_json::json;

use super::*;
use crate::api::status::{CoordinationState, RolledBack, RolloutState};
use crate::model::rolling::FROZEN;
use crate::model::{RolledWorkload, RollingBounds};
use crate::plan::rollout::{Edit, plan_rollout, rollouts, stages};
use crate::plan::test_support::{mk_group, mk_open, mk_serving, shared};

/// Four prefill in segments of two, of which the ordinals from `partition` may be replaced; prefill 3 is new.
fn outdated(by: &str, change: impl Fn(&mut RolledWorkload)) -> Vec<String> {
    let strategy = json!({ "rollingUpdate": { "by": by }, "segmentPlacement": { "segmentSize": { "prefill": 2 } } });
    let group = mk_group(&[("prefill", 4)], &json!([{ "name": "roll", "roles": ["prefill"], "strategy": strategy }]));
    let pod = |ordinal| mk_serving("prefill", ordinal, if ordinal == 3 { "new" } else { "old" });
    let pods = shared(&(0..4).map(pod).collect::<Vec<_>>());
    let view = GroupView::build(&group, &pods);
    let mut workload = RolledWorkload { at_once: Some(1), ..mk_open("prefill", ("old", "new"), 2) };
    change(&mut workload);
    let seen = Rollouts::observe(&group, &view, &pods, (&[workload], None), |_| Edit::long_ago());
    assert_eq!(seen.bounds, RollingBounds::all_of(&group));
    seen.outdated(&view, &RolloutPlan::new()).iter().map(|deletion| deletion.pod.pod.name.to_string()).collect()
}

#[test]
fn only_old_pods_of_what_is_open_are_deleted() {
    assert_eq!(outdated("Segment", |_| {}), ["prefill-2"]);
    assert_eq!(outdated("Segment", |workload| workload.partition = 1), ["prefill-1", "prefill-2"]);
    assert_eq!(outdated("Segment", |workload| workload.partition = 4), [""; 0]);
}

/// Two prefill and two decode in segments of two, of which prefill is edited; returns what each role is told, and the hold that
/// ends.
fn told(off: bool, change: impl Fn(&mut RolledWorkload)) -> (Vec<String>, Vec<String>) {
    let sizes = json!({ "prefill": 2, "decode": 2 });
    let strategy = json!({ "rollingUpdate": { "by": "Segment" }, "segmentPlacement": { "segmentSize": sizes } });
    let coordination = json!([{ "name": "roll", "roles": ["prefill", "decode"], "strategy": strategy }]);
    let group = mk_group(&[("prefill", 2), ("decode", 2)], &coordination);
    let pods = ["prefill", "decode"].map(|role| [0, 1].map(|ordinal| mk_serving(role, ordinal, "old"))).concat();
    let workload = |role| {
        let open = mk_open(role, ("old", "new"), FROZEN);
        let mut workload = RolledWorkload { desired: 2, at_once: Some(1), ..open };
        change(&mut workload);
        workload
    };
    let workloads = ["prefill", "decode"].map(workload);
    let view = GroupView::build(&group, &shared(&pods));
    let mut seen = Rollouts::observe(&group, &view, &shared(&pods), (&workloads, None), |_| Edit::long_ago());
    seen.bar(None, off);
    seen.stages = stages(&seen.bounds, &seen.roles, &seen.pauses);
    let mut plan = plan_rollout(&seen.bounds, &seen.roles, &seen.stages);
    for (name, decided) in plan.iter_mut().filter(|(name, _)| seen.barred.contains_key(*name)) {
        decided.bar(name, &seen.roles[name]);
    }
    (rollouts(&plan, &seen), seen.strays.iter().map(|stray| stray.key.name.clone()).collect())
}

/// Their controllers would replace the replicas of a segment one after another.
#[test]
fn by_segment_nothing_moves_where_no_pod_may_be_deleted_and_controllers_replace_fewer_at_once() {
    let why = "is not rolled: `by: Segment` replaces the replicas of a segment together, StatefulSet ns/prefill replaces fewer at \
               once, and rolegate runs without `--allow recovery`";
    let (lines, _) =
        self::told(true, |edited| edited.at_once = edited.at_once.filter(|_| edited.key.name == "prefill"));
    let told = |role| format!("rollout of {role}: 0/2 updated, 0 of them ready, partition 2, Waiting: {role} {why}");
    assert_eq!(lines, ["decode", "prefill"].map(told));
    for (off, at_once) in [(false, Some(1)), (true, Some(2)), (true, None)] {
        let (lines, _) = self::told(off, |workload| workload.at_once = at_once);
        assert!(lines.iter().all(|line| line.contains("partition 0, Progressing")), "{lines:?}");
    }
}

/// The API server would refuse the partition.
#[test]
fn a_workload_whose_strategy_takes_no_partition_is_not_rolled_and_its_hold_ends() {
    let (lines, ends) = told(false, |workload| workload.takes_partition = workload.key.name == "prefill");
    assert_eq!((lines.len(), ends), (1, vec!["decode".to_owned()]), "{lines:?}");
}

/// Until its controller has seen the partition, a successor would be old again.
#[test]
fn nothing_is_deleted_before_the_partition_is_observed() {
    assert_eq!(outdated("Segment", |workload| workload.observed = false), [""; 0]);
}

#[test]
fn nothing_is_deleted_where_the_controller_suffices_or_replaces_replicas_one_by_one() {
    assert_eq!(outdated("Segment", |workload| workload.at_once = Some(2)), [""; 0]);
    assert_eq!(outdated("Segment", |workload| workload.at_once = None), [""; 0]);
    assert_eq!(outdated("Replica", |_| {}), [""; 0]);
}

/// Prefill 2 and 3 are of the revision from which the rollout goes back. Nothing is deleted before the partition is observed above
/// the top: it would come back as it was.
#[test]
fn of_what_goes_back_the_updated_pods_are_deleted_once_the_partition_is_above_the_top() {
    let strategy = json!({ "rollingUpdate": { "onFailure": "Rollback", "maxUnavailable": 2 } });
    let coordination = json!([{ "name": "roll", "roles": ["prefill"], "strategy": strategy }]);
    let mut group = mk_group(&[("prefill", 4)], &coordination);
    let revisions = BTreeMap::from([("prefill".to_owned(), "new".to_owned())]);
    let rollout = RolloutState { revisions, rolled_back: Some(RolledBack::default()), ..RolloutState::default() };
    let state = CoordinationState { name: "roll".to_owned(), rollout: Some(rollout), ..CoordinationState::default() };
    group.status.coordination_state = vec![state];
    let revision = |ordinal| if ordinal >= 2 { "new" } else { "old" };
    let pod = |ordinal| PodFacts { ready: ordinal != 2, ..mk_serving("prefill", ordinal, revision(ordinal)) };
    let pods = shared(&(0..4).map(pod).collect::<Vec<_>>());
    let view = GroupView::build(&group, &pods);
    let deleted = |change: &dyn Fn(&mut RolledWorkload)| {
        let mut workload = mk_open("prefill", ("old", "new"), FROZEN);
        change(&mut workload);
        let mut seen = Rollouts::observe(&group, &view, &pods, (&[workload], None), |_| Edit::long_ago());
        seen.stages = stages(&seen.bounds, &seen.roles, &seen.pauses);
        let plan = plan_rollout(&seen.bounds, &seen.roles, &seen.stages);
        seen.outdated(&view, &plan).iter().map(|deletion| deletion.pod.pod.name.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(deleted(&|_| {}), ["prefill-2", "prefill-3"]);
    assert_eq!(deleted(&|workload| workload.partition = 2), [""; 0]);
    assert_eq!(deleted(&|workload| workload.observed = false), [""; 0]);
    // A LeaderWorkerSet does not tell the revision at which it makes pods again.
    assert_eq!(deleted(&|workload| workload.current_revision = None), ["prefill-2", "prefill-3"]);
    // The template was edited since, or the controller has moved on.
    assert_eq!(deleted(&|workload| workload.update_revision = Some("newer".to_owned())), [""; 0]);
    assert_eq!(deleted(&|workload| workload.current_revision = Some("new".to_owned())), [""; 0]);
}
