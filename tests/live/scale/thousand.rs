//! A thousand pods in forty segments: what it costs the API server, and the order seen from outside.

use crate::common::audit::{Request, count};
use crate::common::prelude::*;

const SEGMENTS: u32 = 40;
const PODS: usize = 1000;

/// All that rolegate may ask for while a group comes up, beside watches and its own Lease. A StatefulSet is read once when
/// its first pod is faster than the watch.
const KNOWN: &[&str] = &[
    "patch pods",
    "patch rolebasedgroups/status",
    "create events",
    "get statefulsets",
    "get rolebasedgroups",
    "get rolecoordinations",
];

#[tokio::test]
async fn a_thousand_pods_cost_one_patch_each_and_a_status_write_a_segment() {
    let stage = crate::scale::stage("thousand").await;
    for node in 0..4 {
        stage.add_node(&node.to_string(), 250).await;
    }
    let account = Account::of(&stage);
    // Longer than a busy machine may be silent: a new leader would tell the Events of what is held once more.
    let _rolegate = stage.launch().flag("lease-duration", "15s").start().await;
    let group = Group::new("llm").role("prefill", 600, 15).role("decode", 400, 10);
    let statuses = stage.statuses(&group);
    // Judging a group reads what it refers to; after that nothing is read.
    stage.create_group(&group).await;
    let before = account.requests().len();

    let start = Instant::now();
    stage.create_sets(&group).await;
    let ready = format!("True AllReplicasReady: {PODS}/{PODS} pods ready");
    statuses.until_within(2 * PATIENT, "all ready", |status| status.ready() == ready).await;
    let time = start.elapsed();

    let asked = async || account.requests().split_off(before);
    let all_released = |asked: &Vec<Request>| count(asked).get("patch pods").is_some_and(|all| *all as usize >= PODS);
    let asked = until_found("the last release is in the log", asked, all_released).await;
    costs_no_more_than_it_must(&asked, time);

    assert_eq!(invariants::all_born_held(&stage.pods), PODS);
    invariants::released_in_order(&stage.pods, &group);
    invariants::released_counts_never_fell(&statuses, &group);
    invariants::committed_before_released(&stage.pods, &statuses);
    invariants::nobody_was_held_again(&stage.pods);
    println!("{PODS} pods in {SEGMENTS} segments ready after {time:.1?}: {:?}", count(&asked));
    let steps = steps(&stage, &group);
    println!("a segment's last pod ready to the next one's last pod released, seen by a watch: {steps}");
}

fn costs_no_more_than_it_must(asked: &[Request], time: Duration) {
    let counts = count(asked);
    let of = |what: &str| counts.get(what).copied().unwrap_or_default();
    let other = |what: &&String| {
        let beside = what.starts_with("watch ") || what.ends_with(" leases");
        !KNOWN.contains(&what.as_str()) && !beside
    };
    let others: Vec<_> = counts.keys().filter(other).collect();
    assert!(others.is_empty(), "{others:?} of {counts:?}");
    // What may carry a group is looked for under each kind.
    let absent = |request: &&Request| request.code == 404 && request.what.starts_with("get role");
    let refused = asked.iter().filter(|request| request.code >= 400 && !request.what.ends_with(" leases"));
    let refused: Vec<_> = refused.filter(|request| !absent(request)).collect();
    assert!(refused.is_empty(), "{refused:?}");

    // One patch for each pod.
    let mut patches = BTreeMap::<&str, u32>::new();
    let of_pods = asked.iter().filter(|request| request.what == "patch pods");
    of_pods.for_each(|request| *patches.entry(&request.name).or_default() += 1);
    assert_eq!((patches.len(), of("patch pods") as usize), (PODS, PODS));
    // One status write for each segment, one each for what the conditions say (deploying, some ready, all ready), and counts
    // once a second.
    let seconds = u32::try_from(time.as_secs()).unwrap() + 1;
    let bound = SEGMENTS + 3 + seconds;
    let written = of("patch rolebasedgroups/status");
    assert!((SEGMENTS..=bound).contains(&written), "{written} status writes, {bound} allowed");
    // Each segment is released, and those that wait for more than a moment were held: that stands on the group and on the
    // two workloads, which may not be known yet when the first segment goes and the second is held.
    // One pod of those that are held for more than a moment is told as well.
    let told = 3 * SEGMENTS - 4..3 * (2 * SEGMENTS - 1) + SEGMENTS;
    assert!(told.contains(&of("create events")), "{counts:?}");
    assert!(of("get statefulsets") <= 2, "{counts:?}");
    // The group is looked at once for all pods that came since the last look.
    assert!(of("get rolecoordinations") <= 100, "{counts:?}");
}

/// Median and longest time from a segment's readiness to the release of the next, as an observer sees it.
fn steps(stage: &Stage, group: &Group) -> String {
    let segment = |pod: &Pod| pod.index / group.find(&pod.role).segment;
    let mut times: BTreeMap<(u32, bool), Instant> = BTreeMap::new();
    for event in stage.pods.events() {
        match event.step {
            Step::Ready => _ = times.insert((segment(&event.pod), true), event.at),
            Step::Released => _ = times.insert((segment(&event.pod), false), event.at),
            _ => {}
        }
    }
    let step = |number| times[&(number, false)] - times[&(number - 1, true)];
    let mut steps: Vec<_> = (1..SEGMENTS).map(step).collect();
    steps.sort();
    format!("median {:.1?}, longest {:.1?}", steps[steps.len() / 2], steps[steps.len() - 1])
}
