//! Rollouts by segment (KEP-32: one segment at a time).

use crate::common::prelude::*;
use crate::pods::support::{RACK, add_rack, rack_of, stage as with_leader_worker_sets};
use crate::rollouts::support::{Duo, LWS_REVISION, create_leader_worker_sets, leader_worker_sets, revisions_of_groups};

const DELETES: [(&str, &str); 2] = [("allow", "recovery"), ("settle", "2s")];

/// Two prefill and one decode in each segment, which are updated together.
fn group(segments: u32) -> Group {
    Group::new("llm").role("prefill", 2 * segments, 2).role("decode", segments, 1)
}

fn by_segment(more: &Value) -> Value {
    let mut placement = json!({ "segmentSize": { "prefill": 2, "decode": 1 } });
    json_patch::merge(&mut placement, more);
    let strategy = json!({ "segmentPlacement": placement, "rollingUpdate": { "by": "Segment" } });
    json!([{ "name": "both", "roles": ["prefill", "decode"], "strategy": strategy }])
}

/// StatefulSets, which replace one pod at a time: rolegate deletes the old pods of a segment.
async fn serve(namespace: &str, segments: u32, flags: &[(&str, &str)]) -> Duo {
    Duo::serve_group(namespace, group(segments), &by_segment(&json!({})), flags).await.ready().await
}

/// At every event since all pods were ready first: replicas are away in one segment at most, and above a segment with a new
/// pod all are new. `serves` says whether so many replicas of a role serve, from this one on.
fn one_at_a_time(
    (stage, segments): (&Stage, u32),
    is_new: impl Fn(&Pod) -> bool,
    serves: impl Fn(&View, &str, std::ops::Range<u32>) -> bool,
) {
    let both = |segment: u32| [("prefill", 2 * segment..2 * segment + 2), ("decode", segment..segment + 1)];
    let (mut view, mut served, mut seen) = (View::default(), false, BTreeSet::new());
    for batch in stage.pods.events().chunk_by(|a, b| a.batch == b.batch) {
        batch.iter().for_each(|event| view.take(event));
        let down = |segment: &u32| both(*segment).into_iter().any(|(role, range)| !serves(&view, role, range));
        let down: Vec<_> = (0..segments).filter(down).collect();
        served |= down.is_empty();
        if !served {
            continue;
        }
        assert!(down.len() <= 1, "segments {down:?} are down: {view}");
        let has_new = |segment: &u32| {
            let count = |(role, range): (&str, std::ops::Range<u32>)| {
                view.count(role, |pod| range.contains(&pod.index) && is_new(pod))
            };
            both(*segment).into_iter().any(|part| count(part) > 0)
        };
        let Some(lowest) = (0..segments).find(has_new) else { continue };
        seen.insert(lowest);
        let is_old = |pod: &&Pod| pod.index / if pod.role == "prefill" { 2 } else { 1 } > lowest && !is_new(pod);
        let old: Vec<_> = view.all().filter(is_old).map(|pod| &pod.name).collect();
        assert!(old.is_empty(), "segment {lowest} has new pods, and {old:?} are old: {view}");
    }
    assert!(served && seen == (0..segments).collect(), "{seen:?}");
}

fn of_sets(duo: &Duo, segments: u32) {
    let serves = |view: &View, role: &str, range: std::ops::Range<u32>| view.all_in(role, range, Pod::is_ready);
    one_at_a_time((&duo.stage, segments), |pod| duo.is_new(pod), serves);
}

/// The new pods do not get ready before they are let: a StatefulSet would replace the second prefill only then.
#[tokio::test]
async fn the_pods_of_a_segment_are_replaced_together_and_the_next_segment_follows_when_it_is_ready() {
    let duo = serve("by-segment", 3, &DELETES).await;
    duo.edit_both_held_back("registry.invalid/x:2");
    for segment in (0..3).rev() {
        duo.until_new_ordinals("prefill", 2 * segment..6).await;
        duo.until_new_ordinals("decode", segment..3).await;
        duo.stage.pods.until("they run", |now| now.all().all(Pod::is_scheduled)).await;
        let new = async || duo.new_ordinals("prefill").len() + 2 * segment as usize;
        stays(Duration::from_secs(1), "the next segment waits", new, 6).await;
        duo.stage.let_ready(|pod| duo.is_new(pod)).await;
    }
    duo.until_over().await;
    of_sets(&duo, 3);
}

fn rack(status: &Status, segment: &str) -> String {
    status.0["coordinationState"][0]["domains"][segment].as_str().unwrap_or_default().to_owned()
}

/// Two segments, each in a rack that has room for no more.
async fn in_racks(namespace: &str) -> Duo {
    let stage = Stage::new(namespace).await;
    for rack in ["r1", "r2"] {
        add_rack(&stage, rack, &["a"], 3).await;
    }
    let hard = json!({ "topologyAffinity": { "strategy": "RequireSegmentAffinity", "topologyKey": RACK } });
    let duo = Duo::serve_on(stage, group(2), &by_segment(&hard), &DELETES).await.ready().await;
    add_rack(&duo.stage, "r3", &["a"], 3).await;
    duo
}

/// Checks that all pods are in the racks of their segments.
fn stand_in_their_racks(duo: &Duo, racks: &[String; 2]) {
    duo.stage.pods.now(|now| {
        for pod in now.all() {
            let segment = pod.index / if pod.role == "prefill" { 2 } else { 1 };
            assert_eq!(rack_of(&duo.stage, pod).as_ref(), racks.get(segment as usize), "{}: {now}", pod.name);
        }
    });
}

#[tokio::test]
async fn a_segment_that_shares_a_rack_stays_in_its_rack_where_that_has_room() {
    let duo = in_racks("by-segment-racks").await;
    let before = ["0", "1"].map(|segment| rack(&duo.statuses.now(), segment));
    assert!(before[0] != before[1], "{before:?}");
    duo.set_images("registry.invalid/x:2");
    duo.until_over().await;
    assert_eq!(["0", "1"].map(|segment| rack(&duo.statuses.now(), segment)), before);
    stand_in_their_racks(&duo, &before);
    of_sets(&duo, 2);
}

mod tier2 {
    use super::*;

    /// Nothing below the segment is touched, and an edit that is taken back replaces the broken pods first.
    #[tokio::test]
    async fn a_broken_version_stops_at_the_last_segment_and_is_taken_back() {
        let flags = [&DELETES[..], &[("progress-deadline", "2s")]].concat();
        let duo = serve("by-segment-broken", 3, &flags).await;
        duo.edit_both_held_back("registry.invalid/broken:2");
        duo.until_new_ordinals("prefill", 4..6).await;
        duo.until_new_ordinals("decode", 2..3).await;
        duo.stage.until_event("RolloutStalled", &["segment 3"]).await;
        let new = || (duo.new_ordinals("prefill"), duo.new_ordinals("decode"));
        let stopped = ([4, 5].into(), [2].into());
        stays(Duration::from_secs(1), "it has stopped", async || new(), stopped).await;
        duo.undo();
        duo.until_back().await;
        duo.statuses.until("it serves again", |status| status.ready().starts_with("True")).await;
    }

    /// Both ways out are named.
    #[tokio::test]
    async fn a_workload_that_replaces_one_pod_at_a_time_is_refused_where_rolegate_may_not_delete_pods() {
        let (stage, _rolegate) = Stage::new("by-segment-refused").await.serve().await;
        let group = group(2);
        stage.create_claimed_sets(&group).await;
        let answer = stage.post(GROUPS, "rolebasedgroups", &group.coordinated(&by_segment(&json!({})))).await;
        let message = answer.body["message"].as_str().unwrap();
        assert_eq!(answer.code, 422, "{message}");
        for way in [
            "`maxUnavailable: 2`",
            "`MaxUnavailableStatefulSet`",
            "`podManagementPolicy: Parallel`",
            "`--allow recovery`",
        ] {
            assert!(message.contains(way), "{way}: {message}");
        }
    }

    #[tokio::test]
    async fn a_segment_moves_as_a_whole_where_its_rack_takes_no_pods() {
        let duo = in_racks("by-segment-moves").await;
        let [first, last] = ["0", "1"].map(|segment| rack(&duo.statuses.now(), segment));
        duo.stage.plane.must(&["cordon", &format!("by-segment-moves-{last}-a")], "");
        duo.set_images("registry.invalid/x:2");
        duo.until_over().await;
        stand_in_their_racks(&duo, &[first, "r3".to_owned()]);
    }

    /// KEP-32, story 3: groups of two become groups of three, a segment at a time.
    #[tokio::test]
    async fn groups_that_grow_are_replaced_segment_by_segment() {
        let (stage, _rolegate) = with_leader_worker_sets("lws-by-segment").await.with_room(30).await.serve().await;
        let group = group(3);
        let update = json!({ "rollingUpdateConfiguration": { "maxUnavailable": 2, "maxSurge": 0 } });
        create_leader_worker_sets(&stage, &group, &json!({ "spec": { "rolloutStrategy": update } })).await;
        let mut object = group.coordination_of("LeaderWorkerSet", &json!({}));
        object["spec"]["coordination"] = by_segment(&json!({}));
        let statuses = stage.coordination_statuses("llm");
        stage.create(object).await;
        statuses.until("it serves", |status| status.ready().starts_with("True")).await;
        let first = revisions_of_groups(&stage);
        for role in ["prefill", "decode"] {
            let patch = Patch::Merge(json!({ "spec": { "leaderWorkerTemplate": { "size": 3 } } }));
            leader_worker_sets(&stage).patch(&group.set_name(role), &PatchParams::default(), &patch).await.unwrap();
        }
        let is_new = |pod: &Pod| first.get(&pod.role).is_some_and(|first| pod.labels[LWS_REVISION] != *first);
        // A group serves with two ready pods that are old, or three that are new.
        let serves = |view: &View, role: &str, mut range: std::ops::Range<u32>| {
            range.all(|index| {
                let ready =
                    |new: bool| view.count(role, |pod| pod.index == index && pod.is_ready() && is_new(pod) == new);
                ready(false) == 2 || ready(true) == 3
            })
        };
        let all_new = |now: &View| now.count_all(|pod| is_new(pod) && pod.is_ready()) == 27;
        stage.pods.until_within(PATIENT * 2, "all groups of three", all_new).await;
        one_at_a_time((&stage, 3), is_new, serves);
    }
}
