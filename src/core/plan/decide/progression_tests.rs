use std::collections::BTreeMap;

use serde_json::json;

use super::*;
use crate::plan::test_support::{mk_group, mk_role, mk_segments};

fn of(targets: &Targets) -> Vec<(&str, u32)> {
    targets.roles.iter().map(|(role, target)| (role.as_str(), *target)).collect()
}

/// Makes every released replica ready; returns the merged targets of each step.
fn whole_run(group: &Group) -> Vec<Vec<u32>> {
    let mut counts: BTreeMap<String, u32> = group.roles.iter().map(|role| (role.name.clone(), 0)).collect();
    let mut steps = Vec::new();
    loop {
        let seen: Vec<_> = group.roles.iter().map(|role| (counts[&role.name], counts[&role.name])).collect();
        let next = next(group, &seen).roles;
        if next == counts {
            return steps;
        }
        assert!(next.iter().all(|(role, target)| *target >= counts[role]), "a target fell: {counts:?} -> {next:?}");
        steps.push(next.values().copied().collect());
        counts = next;
    }
}

/// Prefill and decode of these replicas, in segments of these sizes.
fn pair(desired: [u32; 2], progression: &str, sizes: [u32; 2]) -> Group {
    let named = |counts: [u32; 2]| [("prefill", counts[0]), ("decode", counts[1])];
    mk_group(&named(desired), &json!([mk_segments("pd", progression, &named(sizes))]))
}

/// What follows where so many replicas of each role are released and ready.
fn next(group: &Group, seen: &[(u32, u32)]) -> Targets {
    let seen = group.roles.iter().zip(seen);
    let views = seen.map(|(role, (released, ready))| (role.name.clone(), mk_role(role.desired, *released, *ready)));
    targets(group, &views.collect(), Conditions::default())
}

#[test]
fn the_first_segment_goes_at_once() {
    let group = pair([100, 50], "OrderedReady", [10, 5]);
    assert_eq!(of(&next(&group, &[(0, 0), (0, 0)])), [("decode", 5), ("prefill", 10)]);
}

#[test]
fn ordered_ready_waits_for_the_segment_before() {
    let group = pair([100, 50], "OrderedReady", [10, 5]);
    let waiting = next(&group, &[(10, 9), (5, 5)]);
    assert_eq!(of(&waiting), [("decode", 5), ("prefill", 10)]);
    assert_eq!(waiting.coordinations[0].state, ProgressState::Waiting);
    assert_eq!(waiting.coordinations[0].waits_for, Some(WaitsFor { role: "prefill".to_owned(), ordinal: 9 }));
    assert_eq!(of(&next(&group, &[(10, 10), (5, 5)])), [("decode", 10), ("prefill", 20)]);
}

#[test]
fn ordered_does_not_look_at_readiness_and_parallel_at_nothing() {
    let goes_to = |progression| next(&pair([100, 50], progression, [10, 5]), &[(10, 0), (5, 0)]);
    assert_eq!(of(&goes_to("Ordered")), [("decode", 10), ("prefill", 20)]);
    assert_eq!(of(&goes_to("Parallel")), [("decode", 50), ("prefill", 100)]);
}

#[test]
fn a_role_that_runs_out_first_does_not_stop_the_other() {
    let steps = whole_run(&pair([300, 100], "OrderedReady", [4, 2]));
    assert_eq!(steps.last(), Some(&vec![100, 300]));
    assert_eq!(steps.len(), 75);
}

/// KEP-32, Story 2: two coordinations that share a role.
fn story_2() -> Group {
    let coordinations = json!([
        mk_segments("pd", "OrderedReady", &[("prefill", 5), ("decode", 3)]),
        mk_segments("dr", "OrderedReady", &[("decode", 3), ("router", 2)]),
    ]);
    mk_group(&[("prefill", 300), ("decode", 100), ("router", 50)], &coordinations)
}

#[test]
fn kep_32_story_2_runs_to_the_end() {
    assert_eq!(whole_run(&story_2()).last(), Some(&vec![100, 300, 50]));
}

#[test]
fn kep_32_merge_example() {
    let merged = next(&story_2(), &[(10, 10), (6, 6), (2, 2)]);
    assert_eq!(of(&merged), [("decode", 6), ("prefill", 15), ("router", 4)]);
}

#[test]
fn a_waiting_coordination_blocks_those_that_share_a_role() {
    let blocked = next(&story_2(), &[(5, 4), (3, 3), (2, 2)]);
    assert_eq!(of(&blocked), [("decode", 3), ("prefill", 5), ("router", 2)]);
    assert_eq!(blocked.coordinations[1].blocked_by, Some(0));
}

#[test]
fn a_partial_last_segment_is_capped_at_desired() {
    assert_eq!(whole_run(&pair([25, 13], "OrderedReady", [10, 5])), [vec![5, 10], vec![10, 20], vec![13, 25]]);
}

#[test]
fn a_stored_size_of_zero_never_divides() {
    assert_eq!(of(&next(&pair([4, 4], "OrderedReady", [2, 0]), &[(0, 0), (0, 0)])), [("prefill", 2)]);
}

#[test]
fn a_role_that_nobody_desires_limits_nobody() {
    assert_eq!(whole_run(&pair([20, 0], "OrderedReady", [10, 5])), [vec![0, 10], vec![0, 20]]);
}
