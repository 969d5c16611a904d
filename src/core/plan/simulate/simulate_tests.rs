use serde_json::json;

use super::*;
use crate::model::HoldReason;
use crate::plan::decide::batches::{BatchState, states};
use crate::plan::status::segments;
use crate::plan::test_support::{mk_group, mk_segments};
use crate::plan::view::counts::RoleCounts;

fn mk_pd(prefill: u32, decode: u32) -> Group {
    let sizes = [("prefill", 10), ("decode", 5)];
    mk_group(&[("prefill", prefill), ("decode", decode)], &json!([mk_segments("pd", "OrderedReady", &sizes)]))
}

fn mk_observed(roles: &[(&str, RoleCounts)]) -> ObservedCounts {
    ObservedCounts {
        roles: roles.iter().map(|(name, counts)| ((*name).to_owned(), counts.clone())).collect(),
        ever_ready: false,
        recoveries: Vec::new(),
    }
}

fn condition<'a>(run: &'a Run, kind: &str) -> (&'a str, &'a str) {
    let found = run.seen.status.conditions.iter().find(|condition| condition.r#type == kind).unwrap();
    (&found.reason, &found.message)
}

#[test]
fn a_whole_run_is_one_step_for_each_release() {
    let run = simulate(&mk_pd(25, 13), &[], &BTreeMap::new()).unwrap();
    let steps: Vec<_> = run.steps.iter().map(|step| (step["prefill"], step["decode"])).collect();
    assert_eq!(steps, [(10, 5), (20, 10), (25, 13)]);
    assert!(run.complete);
    assert_eq!(condition(&run, "Ready"), ("AllReplicasReady", "38/38 pods ready"));
}

#[test]
fn a_role_that_nothing_batches_takes_no_step() {
    let sizes = [("prefill", 10), ("decode", 5)];
    let roles = [("prefill", 20), ("decode", 10), ("router", 3)];
    let group = mk_group(&roles, &json!([mk_segments("pd", "Parallel", &sizes)]));
    let run = simulate(&group, &[], &BTreeMap::new()).unwrap();
    assert_eq!(run.steps, [BTreeMap::from([("decode".to_owned(), 10), ("prefill".to_owned(), 20)])]);
    assert!(run.complete);
}

#[test]
fn replicas_of_many_pods_count_with_all_of_them() {
    let run = simulate(&mk_pd(20, 10), &[], &BTreeMap::from([("decode".to_owned(), 4)])).unwrap();
    assert_eq!(condition(&run, "Ready"), ("AllReplicasReady", "60/60 pods ready"));
}

#[test]
fn a_waiting_group_takes_no_step_and_says_why() {
    let counts = |released, ready| RoleCounts { released, scheduled: released, ready, ..RoleCounts::default() };
    let observed = mk_observed(&[("prefill", counts(30, 28)), ("decode", counts(15, 15))]);
    let group = mk_pd(100, 50);
    let run = decide_once(&group, &[], &observed, &BTreeMap::new()).unwrap();
    assert!(run.steps.is_empty() && !run.complete);
    assert_eq!(run.seen.decision.released["prefill"], 30);
    let all = run.seen.batches(&group);
    let states: Vec<_> = all.iter().take(4).map(|batch| (batch.state, batch.reason)).collect();
    let waits = Some(HoldReason::PreviousSegmentNotReady);
    assert_eq!(
        states,
        [(BatchState::Ready, None), (BatchState::Ready, None), (BatchState::Released, None), (BatchState::Held, waits)]
    );
}

#[test]
fn batches_without_any_replica_are_counted_as_if_they_were_looked_at() {
    let counts = |released, ready| RoleCounts { released, scheduled: released, ready, ..RoleCounts::default() };
    let group = mk_pd(100, 50);
    for (prefill, decode) in [((0, 0), (0, 0)), ((30, 28), (15, 15)), ((10, 10), (23, 23)), ((100, 100), (50, 49))] {
        let observed = [("prefill", prefill), ("decode", decode)].map(|(role, (of, ready))| (role, counts(of, ready)));
        let mut seen = decide_once(&group, &[], &mk_observed(&observed), &BTreeMap::new()).unwrap().seen;
        for role in seen.view.roles.values_mut() {
            let held: Vec<_> = role.replicas.held(..).collect();
            held.iter().for_each(|pod| role.replicas.remove(&pod.facts.pod, pod.ordinal));
        }
        let mut one_by_one = BTreeMap::new();
        seen.batches(&group).iter().for_each(|batch| *one_by_one.entry(batch.state).or_default() += 1);
        assert_eq!(states(&group, &seen.view, &seen.decision), one_by_one, "{prefill:?} {decode:?}");
        assert_eq!(seen.view.roles["prefill"].replicas.end(), prefill.0, "no replica is there that is held");
        let ready = one_by_one.get(&BatchState::Ready).copied().unwrap_or_default();
        let segments = segments::count(&group, &seen.view.roles);
        assert_eq!((segments.ready, segments.total), (ready, 10), "{prefill:?} {decode:?}");
    }
}

#[test]
fn a_committed_release_is_finished() {
    let counts = |released, ready| RoleCounts { released, ready, ..RoleCounts::default() };
    let observed = mk_observed(&[("prefill", counts(10, 10)), ("decode", counts(5, 5))]);
    let run = decide_once(&mk_pd(100, 50), &[], &observed, &BTreeMap::new()).unwrap();
    assert_eq!(run.steps, [BTreeMap::from([("decode".to_owned(), 10), ("prefill".to_owned(), 20)])]);
}

#[test]
fn what_is_missing_after_the_first_ready_is_scaling() {
    let counts = |ready| RoleCounts { released: ready, ready, ..RoleCounts::default() };
    let roles = [("prefill", counts(100)), ("decode", counts(50))];
    let observed = ObservedCounts { ever_ready: true, ..mk_observed(&roles) };
    let run = decide_once(&mk_pd(110, 55), &[], &observed, &BTreeMap::new()).unwrap();
    assert_eq!(condition(&run, "Ready"), ("ScalingInProgress", "150/165 pods ready"));
    assert_eq!(condition(&run, "MinimumSegmentsAvailable"), ("MinimumMet", "10/11 segments ready (150/165 pods)"));
}

#[test]
fn a_group_beyond_any_cluster_is_refused() {
    let error = simulate(&mk_pd(u32::MAX, 5), &[], &BTreeMap::new()).unwrap_err();
    assert!(matches!(error, RunError::TooLarge(_)), "{error}");
}

#[test]
fn a_role_that_another_coordination_limits_says_which() {
    let coordinations = json!([
        mk_segments("pd", "OrderedReady", &[("prefill", 5), ("decode", 3)]),
        mk_segments("dr", "OrderedReady", &[("decode", 3), ("router", 2)]),
    ]);
    let group = mk_group(&[("prefill", 300), ("decode", 100), ("router", 50)], &coordinations);
    let counts = |ready| RoleCounts { released: ready, ready, ..RoleCounts::default() };
    let observed = mk_observed(&[("prefill", counts(10)), ("decode", counts(6)), ("router", counts(2))]);
    let run = decide_once(&group, &[], &observed, &BTreeMap::new()).unwrap();
    let held = &run.seen.decision.held[0];
    assert_eq!(held.reason, HoldReason::BlockedByCoordination);
    assert_eq!(held.message, r#"segment 3 is held: coordination "dr" lets decode go to 6 only"#);
}
