use serde_json::{Value, json};

use super::cut;
use crate::model::{Group, HoldReason};
use crate::plan::decide::DecisionContext;
use crate::plan::evaluate::Evaluation;
use crate::plan::recovery::BatchId;
use crate::plan::test_support::{mk_evaluation, mk_group, mk_pod, mk_segments, shared, stands_apart};
use crate::plan::view::{GroupView, PodFacts};

/// Segments of two prefills and a decode, whose replicas stand in workloads of their own.
fn scaled_apart(roles: &[(&str, u32)], coordinations: &Value) -> Group {
    let mut group = mk_group(roles, coordinations);
    for role in &mut group.roles {
        stands_apart(role);
    }
    group
}

fn whole(progression: &str) -> Value {
    let sizes = json!({ "prefill": 2, "decode": 1 });
    json!([{ "name": "pd", "strategy": { "segmentPlacement": {
        "segmentSize": sizes, "progression": progression, "podGroupPolicy": { "kubeScheduling": {} },
    } } }])
}

/// Returns the pods of these replicas, of which the first `run` of each role run.
fn pods(replicas: &[(&str, u32)], run: &[(&str, u32)]) -> Vec<PodFacts> {
    let running = |role: &str| run.iter().find(|(name, _)| *name == role).map_or(0, |(_, count)| *count);
    let of = |(role, count): &(&str, u32)| {
        let run = running(role);
        let pod = |ordinal: u32| {
            let runs = ordinal < run;
            let pod = mk_pod(&format!("{role}-{ordinal}"), role, ordinal);
            PodFacts { held: !runs, scheduled: runs, ready: runs, ..pod }
        };
        (0..*count).map(pod).collect::<Vec<_>>()
    };
    replicas.iter().flat_map(of).collect()
}

fn seen(group: &mut Group, pods: &[PodFacts], growing: &[BatchId]) -> Evaluation {
    let view = GroupView::build(group, &shared(pods));
    let growing = growing.to_vec();
    let seen = mk_evaluation(group, &view, DecisionContext { growing: Some(&growing), ..DecisionContext::default() });
    group.status = seen.status.clone();
    seen
}

fn cut_of(group: &Group, pods: &[PodFacts]) -> Vec<BatchId> {
    cut(group, &GroupView::build(group, &shared(pods)))
}

fn going(seen: &Evaluation) -> Vec<&str> {
    seen.decision.release.iter().map(|release| &*release.pod.pod.name).collect()
}

fn held(seen: &Evaluation) -> Vec<(HoldReason, Option<u32>, u32)> {
    seen.decision.held.iter().map(|held| (held.reason, held.batch, held.count())).collect()
}

fn desire(group: &mut Group, role: &str, desired: u32) {
    group.roles.iter_mut().filter(|of| of.name == role).for_each(|of| of.desired = desired);
}

#[test]
fn a_segment_that_a_role_does_not_fill_yet_waits_and_goes_whole_when_it_does() {
    for progression in ["OrderedReady", "Ordered", "Parallel"] {
        let mut group = scaled_apart(&[("prefill", 4), ("decode", 2)], &whole(progression));
        let run = [("prefill", 4), ("decode", 2)];
        seen(&mut group, &pods(&run, &run), &[]);
        seen(&mut group, &pods(&run, &run), &[]);
        desire(&mut group, "prefill", 6);
        let grown = pods(&[("prefill", 6), ("decode", 2)], &run);
        let growing = cut_of(&group, &grown);
        assert_eq!(growing, [(0, 2)], "{progression}");
        let now = seen(&mut group, &grown, &growing);
        assert_eq!((going(&now), held(&now)), (vec![], vec![(HoldReason::SegmentGrowing, Some(2), 2)]));
        let why =
            "segment 3 is held: of it 0/1 decode and 2/2 prefill are asked for, and its roles may still be growing";
        assert_eq!(now.decision.held[0].message, why);
        assert_eq!(now.decision.released["prefill"], 4, "it is not released");
        let summary = now.status.summary.as_ref().unwrap();
        assert_eq!((&*summary.reason, summary.held), ("SegmentGrowing", 2));
        desire(&mut group, "decode", 3);
        let full = pods(&[("prefill", 6), ("decode", 3)], &run);
        assert_eq!(cut_of(&group, &full), []);
        seen(&mut group, &full, &[]);
        assert_eq!(going(&seen(&mut group, &full, &[])).len(), 3, "{progression}: it goes at once");
    }
}

#[test]
fn a_segment_that_stays_cut_goes_as_it_is_and_what_was_let_go_waits_no_more() {
    let mut group = scaled_apart(&[("prefill", 3), ("decode", 1)], &whole("Parallel"));
    let run = [("prefill", 2), ("decode", 1)];
    let now = seen(&mut group, &pods(&run, &run), &[(0, 1)]);
    assert_eq!(now.decision.released["prefill"], 2, "also before its pods are made");
    let all = pods(&[("prefill", 3), ("decode", 1)], &run);
    assert_eq!(cut_of(&group, &all), [(0, 1)]);
    seen(&mut group, &all, &[]);
    assert_eq!(cut_of(&group, &all), [], "it is committed");
    assert_eq!(going(&seen(&mut group, &all, &[])), ["prefill-2"]);
    let runs = pods(&[("prefill", 3), ("decode", 1)], &[("prefill", 3), ("decode", 1)]);
    desire(&mut group, "prefill", 4);
    assert_eq!(cut_of(&group, &runs), [], "what joins it goes at once");
}

#[test]
fn a_number_that_stands_in_one_object_is_not_waited_for() {
    let uneven = [("prefill", 6), ("decode", 2)];
    let of = |group: &Group| cut_of(group, &pods(&uneven, &[]));
    assert_eq!(of(&scaled_apart(&uneven, &whole("Parallel"))), [(0, 2)]);
    assert_eq!(of(&mk_group(&uneven, &whole("Parallel"))), [], "the roles of one object");
    let mut apart = scaled_apart(&uneven, &whole("Parallel"));
    apart.roles[0].replicas = Some(6);
    assert_eq!(of(&apart), [(0, 2)], "one role has a workload");
    apart.roles[1].replicas = Some(2);
    assert_eq!(of(&apart), []);
    let in_part = json!([mk_segments("pd", "Parallel", &[("prefill", 2), ("decode", 1)])]);
    assert_eq!(of(&scaled_apart(&uneven, &in_part)), [], "segments that go in part");
    let mut unknown = scaled_apart(&uneven, &whole("Parallel"));
    unknown.roles[1].workload.desired_is_unknown = true;
    assert_eq!(of(&unknown), [], "another reason holds it");
}

/// Returns a group of which two coordinations share the prefills.
fn sharing(roles: &[(&str, u32)]) -> Group {
    let sizes = json!({ "prefill": 2, "router": 1 });
    let segments = json!({ "segmentSize": sizes, "progression": "Parallel", "whole": true });
    let mut all = whole("Parallel");
    all.as_array_mut().unwrap().push(json!({ "name": "pr", "strategy": { "segmentPlacement": segments } }));
    scaled_apart(roles, &all)
}

#[test]
fn segments_that_share_replicas_with_one_that_grows_wait_with_it() {
    let roles = [("prefill", 4), ("decode", 1), ("router", 2)];
    let mut group = sharing(&roles);
    let pods = pods(&roles, &[]);
    let growing = cut_of(&group, &pods);
    assert_eq!(growing, [(0, 1)], "each coordination waits for itself");
    let now = seen(&mut group, &pods, &growing);
    let expected = [(HoldReason::SegmentGrowing, Some(1), 2), (HoldReason::BlockedByCoordination, Some(1), 1)];
    assert_eq!(held(&now), expected);
    let mut going_now = going(&seen(&mut group, &pods, &growing)).into_iter().map(str::to_owned).collect::<Vec<_>>();
    going_now.sort();
    assert_eq!(going_now, ["decode-0", "prefill-0", "prefill-1", "router-0"]);
    assert_eq!(now.decision.released["router"], 1);
}

#[test]
fn segments_that_share_replicas_with_one_that_lacks_pods_wait_with_it() {
    let mut group = sharing(&[("prefill", 2), ("decode", 1), ("router", 1)]);
    let pods = pods(&[("prefill", 2), ("router", 1)], &[]);
    seen(&mut group, &pods, &[]);
    let now = seen(&mut group, &pods, &[]);
    assert_eq!((going(&now), held(&now)), (vec![], vec![(HoldReason::IncompleteBatch, Some(0), 3)]));
}

/// Whatever the roles have, and whatever runs: what waits to grow is all that goes later than without the wait.
#[test]
fn nothing_is_held_longer_but_what_waits_to_grow() {
    let mut waited = 0;
    for progression in ["OrderedReady", "Ordered", "Parallel"] {
        for (prefill, decode, runs) in (0..6).flat_map(|p| (0..4).flat_map(move |d| (0..3).map(move |r| (p, d, r)))) {
            let roles = [("prefill", prefill), ("decode", decode)];
            let run = [("prefill", (2 * runs).min(prefill)), ("decode", runs.min(decode))];
            let mut group = scaled_apart(&[("prefill", 2 * runs), ("decode", runs)], &whole(progression));
            seen(&mut group, &pods(&run, &run), &[]);
            roles.iter().for_each(|(role, count)| desire(&mut group, role, *count));
            let pods = pods(&roles, &run);
            let view = GroupView::build(&group, &shared(&pods));
            let growing = cut(&group, &view);
            let with =
                mk_evaluation(&group, &view, DecisionContext { growing: Some(&growing), ..DecisionContext::default() });
            let without = mk_evaluation(&group, &view, DecisionContext::default());
            let what = format!("{progression}: {prefill} prefills and {decode} decodes, {runs} segments run");
            let later: Vec<_> =
                without.decision.release.iter().filter(|one| !with.decision.release.contains(one)).collect();
            let is_told = |pod: &crate::plan::view::HeldPod| {
                let mut growing = with.decision.held.iter().filter(|held| held.reason == HoldReason::SegmentGrowing);
                growing.any(|held| held.pods.has(pod))
            };
            assert!(later.iter().all(|release| is_told(&release.pod)), "{what}: {later:?}");
            let going = with.decision.release.len() + later.len();
            assert_eq!(going, without.decision.release.len(), "{what}: and nothing goes earlier");
            waited += later.len();
        }
    }
    assert!(waited > 0);
}
