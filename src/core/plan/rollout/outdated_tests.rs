use serde_json::json;

use super::*;
use crate::model::{RolledWorkload, RollingBounds};
use crate::plan::rollout::Edit;
use crate::plan::test_support::{mk_group, mk_pod, mk_workload, shared};

/// Four prefill in segments of two, of which the ordinals from `partition` may be replaced; prefill 3 is new.
fn outdated(by: &str, change: impl Fn(&mut RolledWorkload)) -> Vec<String> {
    let strategy = json!({ "rollingUpdate": { "by": by }, "segmentPlacement": { "segmentSize": { "prefill": 2 } } });
    let group = mk_group(&[("prefill", 4)], &json!([{ "name": "roll", "roles": ["prefill"], "strategy": strategy }]));
    let pod = |ordinal: u32| PodFacts {
        held: false,
        ready: true,
        revision: Some(if ordinal == 3 { "new" } else { "old" }.into()),
        ..mk_pod(&format!("prefill-{ordinal}"), "prefill", ordinal)
    };
    let pods = shared(&(0..4).map(pod).collect::<Vec<_>>());
    let view = GroupView::build(&group, &pods);
    let mut workload = mk_workload("prefill", "new");
    workload.current_revision = Some("old".to_owned());
    (workload.partition, workload.user_partition, workload.at_once) = (2, Some(0), Some(1));
    change(&mut workload);
    let seen = Rollouts::observe(&group, &view, &pods, (&[workload], None), |_| Edit::long_ago());
    assert_eq!(seen.bounds, RollingBounds::all_of(&group));
    seen.outdated(&view).iter().map(|pod| pod.name.to_string()).collect()
}

#[test]
fn only_old_pods_of_what_is_open_are_deleted() {
    assert_eq!(outdated("Segment", |_| {}), ["prefill-2"]);
    assert_eq!(outdated("Segment", |workload| workload.partition = 1), ["prefill-1", "prefill-2"]);
    assert_eq!(outdated("Segment", |workload| workload.partition = 4), [""; 0]);
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
