use std::collections::BTreeMap;

use serde_json::json;

use super::*;
use crate::plan::test_support::{mk_group, mk_role, mk_segments};

fn roles(all: &[(&str, RoleView)]) -> BTreeMap<String, RoleView> {
    all.iter().map(|(name, view)| ((*name).to_owned(), view.clone())).collect()
}

fn of(targets: &Targets) -> Vec<(&str, u32)> {
    targets.roles.iter().map(|(role, target)| (role.as_str(), *target)).collect()
}

/// Makes every released replica ready; returns the merged targets of each step.
fn whole_run(group: &Group) -> Vec<Vec<u32>> {
    let mut counts: BTreeMap<String, u32> = group.roles.iter().map(|role| (role.name.clone(), 0)).collect();
    let mut steps = Vec::new();
    loop {
        let views = group.roles.iter().map(|r| (r.name.clone(), mk_role(r.desired, counts[&r.name], counts[&r.name])));
        let next = targets(group, &views.collect(), Conditions::default()).roles;
        if next == counts {
            return steps;
        }
        assert!(next.iter().all(|(role, target)| *target >= counts[role]), "a target fell: {counts:?} -> {next:?}");
        steps.push(next.values().copied().collect());
        counts = next;
    }
}

#[test]
fn the_first_segment_goes_at_once() {
    let group = mk_group(
        &[("prefill", 100), ("decode", 50)],
        &json!([mk_segments("pd", "OrderedReady", &[("prefill", 10), ("decode", 5)])]),
    );
    let next = targets(
        &group,
        &roles(&[("prefill", mk_role(100, 0, 0)), ("decode", mk_role(50, 0, 0))]),
        Conditions::default(),
    );
    assert_eq!(of(&next), [("decode", 5), ("prefill", 10)]);
}

#[test]
fn ordered_ready_waits_for_the_segment_before() {
    let group = mk_group(
        &[("prefill", 100), ("decode", 50)],
        &json!([mk_segments("pd", "OrderedReady", &[("prefill", 10), ("decode", 5)])]),
    );
    let waiting = targets(
        &group,
        &roles(&[("prefill", mk_role(100, 10, 9)), ("decode", mk_role(50, 5, 5))]),
        Conditions::default(),
    );
    assert_eq!(of(&waiting), [("decode", 5), ("prefill", 10)]);
    assert_eq!(waiting.coordinations[0].state, ProgressState::Waiting);
    assert_eq!(waiting.coordinations[0].waits_for, Some(WaitsFor { role: "prefill".to_owned(), ordinal: 9 }));
    let ready = targets(
        &group,
        &roles(&[("prefill", mk_role(100, 10, 10)), ("decode", mk_role(50, 5, 5))]),
        Conditions::default(),
    );
    assert_eq!(of(&ready), [("decode", 10), ("prefill", 20)]);
}

#[test]
fn ordered_does_not_look_at_readiness_and_parallel_at_nothing() {
    let sizes = [("prefill", 10), ("decode", 5)];
    let started = roles(&[("prefill", mk_role(100, 10, 0)), ("decode", mk_role(50, 5, 0))]);
    let ordered = mk_group(&[("prefill", 100), ("decode", 50)], &json!([mk_segments("pd", "Ordered", &sizes)]));
    assert_eq!(of(&targets(&ordered, &started, Conditions::default())), [("decode", 10), ("prefill", 20)]);
    let parallel = mk_group(&[("prefill", 100), ("decode", 50)], &json!([mk_segments("pd", "Parallel", &sizes)]));
    assert_eq!(of(&targets(&parallel, &started, Conditions::default())), [("decode", 50), ("prefill", 100)]);
}

#[test]
fn a_role_that_runs_out_first_does_not_stop_the_other() {
    let group = mk_group(
        &[("prefill", 300), ("decode", 100)],
        &json!([mk_segments("pd", "OrderedReady", &[("prefill", 4), ("decode", 2)])]),
    );
    let steps = whole_run(&group);
    assert_eq!(steps.last(), Some(&vec![100, 300]));
    assert_eq!(steps.len(), 75);
}

#[test]
fn kep_32_story_2_runs_to_the_end() {
    let coordinations = json!([
        mk_segments("pd", "OrderedReady", &[("prefill", 5), ("decode", 3)]),
        mk_segments("dr", "OrderedReady", &[("decode", 3), ("router", 2)]),
    ]);
    let group = mk_group(&[("prefill", 300), ("decode", 100), ("router", 50)], &coordinations);
    assert_eq!(whole_run(&group).last(), Some(&vec![100, 300, 50]));
}

#[test]
fn kep_32_merge_example() {
    let coordinations = json!([
        mk_segments("pd", "OrderedReady", &[("prefill", 5), ("decode", 3)]),
        mk_segments("dr", "OrderedReady", &[("decode", 3), ("router", 2)]),
    ]);
    let group = mk_group(&[("prefill", 300), ("decode", 100), ("router", 50)], &coordinations);
    let views =
        roles(&[("prefill", mk_role(300, 10, 10)), ("decode", mk_role(100, 6, 6)), ("router", mk_role(50, 2, 2))]);
    assert_eq!(of(&targets(&group, &views, Conditions::default())), [("decode", 6), ("prefill", 15), ("router", 4)]);
}

#[test]
fn a_waiting_coordination_blocks_those_that_share_a_role() {
    let coordinations = json!([
        mk_segments("pd", "OrderedReady", &[("prefill", 5), ("decode", 3)]),
        mk_segments("dr", "OrderedReady", &[("decode", 3), ("router", 2)]),
    ]);
    let group = mk_group(&[("prefill", 300), ("decode", 100), ("router", 50)], &coordinations);
    let views =
        roles(&[("prefill", mk_role(300, 5, 4)), ("decode", mk_role(100, 3, 3)), ("router", mk_role(50, 2, 2))]);
    let blocked = targets(&group, &views, Conditions::default());
    assert_eq!(of(&blocked), [("decode", 3), ("prefill", 5), ("router", 2)]);
    assert_eq!(blocked.coordinations[1].blocked_by, Some(0));
}

#[test]
fn a_partial_last_segment_is_capped_at_desired() {
    let group = mk_group(
        &[("prefill", 25), ("decode", 13)],
        &json!([mk_segments("pd", "OrderedReady", &[("prefill", 10), ("decode", 5)])]),
    );
    assert_eq!(whole_run(&group), [vec![5, 10], vec![10, 20], vec![13, 25]]);
}

#[test]
fn a_stored_size_of_zero_never_divides() {
    let group = mk_group(
        &[("prefill", 4), ("decode", 4)],
        &json!([mk_segments("pd", "OrderedReady", &[("prefill", 2), ("decode", 0)])]),
    );
    let next =
        targets(&group, &roles(&[("prefill", mk_role(4, 0, 0)), ("decode", mk_role(4, 0, 0))]), Conditions::default());
    assert_eq!(of(&next), [("prefill", 2)]);
}

#[test]
fn a_role_that_nobody_desires_limits_nobody() {
    let group = mk_group(
        &[("prefill", 20), ("decode", 0)],
        &json!([mk_segments("pd", "OrderedReady", &[("prefill", 10), ("decode", 5)])]),
    );
    assert_eq!(whole_run(&group), [vec![0, 10], vec![0, 20]]);
}
