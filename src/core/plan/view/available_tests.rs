use serde_json::json;

use super::*;
use crate::plan::test_support::{mk_group, mk_pod};
use crate::plan::view::{GroupPods, ReplicaIs};

/// The longer of the times counts, of the workload and of each coordination of the role.
#[test]
fn ready_when_lengthens_the_time_of_the_workload() {
    for (workload, segments, rollout, all) in [(30, 0, 0, 30), (0, 60, 0, 60), (30, 20, 90, 90), (90, 60, 30, 90)] {
        let when = |seconds: u32| json!({ "minReadySeconds": seconds });
        let placed = json!({"segmentSize": {"decode": 1}, "readyWhen": when(segments)});
        let strategy = json!({"segmentPlacement": placed, "rollingUpdate": {"readyWhen": when(rollout)}});
        let mut group = mk_group(
            &[("decode", 3), ("router", 1)],
            &json!([{"name": "d", "roles": ["decode"], "strategy": strategy}]),
        );
        group.roles[0].workload.min_ready_seconds = workload;
        let seconds: Vec<_> = group.roles.iter().map(|role| group.min_ready_seconds(role)).collect();
        assert_eq!(seconds, [all, 0]);
    }
}

#[test]
fn a_pod_counts_when_it_was_ready_for_long_enough() {
    let mut group = mk_group(&[("decode", 3)], &json!([]));
    group.roles[0].workload.min_ready_seconds = 30;
    let pod = |ordinal, ready_since| {
        let made = mk_pod(&format!("decode-{ordinal}"), "decode", ordinal);
        PodFacts { held: false, scheduled: true, ready: true, ready_since, ..made }
    };
    // The last pod has no transition time.
    let pods: GroupPods = [pod(0, Some(1_000)), pod(1, Some(1_010)), pod(2, None)].into_iter().collect();
    let look = |now| {
        let mut view = GroupView::build(&group, &pods);
        view.wait_until_available(&group, Moment(now));
        (view.roles["decode"].replicas.count_in(.., ReplicaIs::Ready), view.counts_at)
    };
    assert_eq!(look(1_020), (1, Some(Moment(1_030))));
    assert_eq!(look(1_029), (1, Some(Moment(1_030))));
    assert_eq!(look(1_030), (2, Some(Moment(1_040))));
    assert_eq!(look(1_040), (3, None));
}
