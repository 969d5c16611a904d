use super::*;
use crate::plan::rollout::{Ordinal, plan_rollout};

/// Partitions of roles with an open rollout, as (role, desired, partition).
fn pass(reported: &mut ReportedRollouts, open: &[(&str, usize, u32)]) -> Vec<String> {
    let role = |(name, desired, partition): &(&str, usize, u32)| {
        let ordinals = vec![Ordinal { ready: true, ..Ordinal::default() }; *desired];
        ((*name).to_owned(), RoleRollout { partition: *partition, ordinals, ..RoleRollout::default() })
    };
    let roles: BTreeMap<_, _> = open.iter().map(role).collect();
    let plan = plan_rollout(&[], &roles);
    let events = reported.events(&Rollouts { roles, ..Rollouts::default() }, &plan, false);
    events.into_iter().map(|event| format!("{}: {}", event.reason, event.note)).collect()
}

#[test]
fn every_tenth_of_a_role_is_reported_once() {
    let mut reported = ReportedRollouts::default();
    let frozen = u32::MAX;
    assert_eq!(pass(&mut reported, &[("prefill", 100, frozen)]), [""; 0]);
    let events: Vec<_> =
        (0..100).rev().flat_map(|partition| pass(&mut reported, &[("prefill", 100, partition)])).collect();
    assert_eq!(events.len(), 10, "{events:?}");
    assert_eq!(events[0], "RolloutAdvanced: prefill 90-99 may be updated");
    assert_eq!(events[9], "RolloutAdvanced: prefill 0-9 may be updated");
    assert_eq!(pass(&mut reported, &[]), ["RolloutAdvanced: prefill is done"]);
    assert_eq!(pass(&mut reported, &[]), [""; 0]);
}

#[test]
fn of_a_small_role_every_step_is_reported() {
    let mut reported = ReportedRollouts::default();
    pass(&mut reported, &[("decode", 3, 3), ("prefill", 4, 4)]);
    let events = pass(&mut reported, &[("decode", 3, 2), ("prefill", 4, 2)]);
    assert_eq!(events, ["RolloutAdvanced: decode 2 may be updated, prefill 2-3 may be updated"]);
}

#[test]
fn what_was_granted_before_the_first_pass_is_not_reported_and_neither_is_a_smaller_role() {
    let mut reported = ReportedRollouts::default();
    assert_eq!(pass(&mut reported, &[("prefill", 100, 40)]), [""; 0]);
    assert_eq!(pass(&mut reported, &[("prefill", 20, 40)]), [""; 0]);
    assert_eq!(pass(&mut reported, &[("prefill", 20, 18)]), ["RolloutAdvanced: prefill 18-19 may be updated"]);
}

#[test]
fn a_rollout_that_begins_anew_is_reported_anew() {
    let mut reported = ReportedRollouts::default();
    pass(&mut reported, &[("prefill", 10, 10)]);
    let events = |reported: &mut ReportedRollouts, partition| pass(reported, &[("prefill", 10, partition)]);
    assert_eq!(events(&mut reported, 4), ["RolloutAdvanced: prefill 4-9 may be updated"]);
    assert_eq!(events(&mut reported, u32::MAX), [""; 0]);
    assert_eq!(events(&mut reported, 8), ["RolloutAdvanced: prefill 8-9 may be updated"]);
}
