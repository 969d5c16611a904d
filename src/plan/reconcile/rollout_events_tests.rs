use super::*;
use crate::plan::rollout::{Ordinal, plan_rollout};

/// Partitions of roles with an open rollout, as (role, desired, partition).
fn look(said: &mut ReportedRollouts, open: &[(&str, usize, u32)]) -> Vec<String> {
    let role = |(name, desired, partition): &(&str, usize, u32)| {
        let ordinals = vec![Ordinal { ready: true, ..Ordinal::default() }; *desired];
        ((*name).to_owned(), RoleRollout { partition: *partition, ordinals, ..RoleRollout::default() })
    };
    let roles: BTreeMap<_, _> = open.iter().map(role).collect();
    let plan = plan_rollout(&[], &roles);
    let news = said.news(&Rollouts { roles, ..Rollouts::default() }, &plan, false);
    news.into_iter().map(|news| format!("{}: {}", news.reason, news.note)).collect()
}

#[test]
fn every_tenth_of_a_role_is_told_once() {
    let mut said = ReportedRollouts::default();
    let frozen = u32::MAX;
    assert_eq!(look(&mut said, &[("prefill", 100, frozen)]), [""; 0]);
    let told: Vec<_> = (0..100).rev().flat_map(|partition| look(&mut said, &[("prefill", 100, partition)])).collect();
    assert_eq!(told.len(), 10, "{told:?}");
    assert_eq!(told[0], "RolloutAdvanced: prefill 90-99 may be updated");
    assert_eq!(told[9], "RolloutAdvanced: prefill 0-9 may be updated");
    assert_eq!(look(&mut said, &[]), ["RolloutAdvanced: prefill is done"]);
    assert_eq!(look(&mut said, &[]), [""; 0]);
}

#[test]
fn of_a_small_role_every_step_is_told() {
    let mut said = ReportedRollouts::default();
    look(&mut said, &[("decode", 3, 3), ("prefill", 4, 4)]);
    let told = look(&mut said, &[("decode", 3, 2), ("prefill", 4, 2)]);
    assert_eq!(told, ["RolloutAdvanced: decode 2 may be updated, prefill 2-3 may be updated"]);
}

#[test]
fn what_was_granted_before_the_first_look_is_no_news_and_neither_is_a_smaller_role() {
    let mut said = ReportedRollouts::default();
    assert_eq!(look(&mut said, &[("prefill", 100, 40)]), [""; 0]);
    assert_eq!(look(&mut said, &[("prefill", 20, 40)]), [""; 0]);
    assert_eq!(look(&mut said, &[("prefill", 20, 18)]), ["RolloutAdvanced: prefill 18-19 may be updated"]);
}

#[test]
fn a_rollout_that_begins_anew_is_told_anew() {
    let mut said = ReportedRollouts::default();
    look(&mut said, &[("prefill", 10, 10)]);
    let told = |said: &mut ReportedRollouts, partition| look(said, &[("prefill", 10, partition)]);
    assert_eq!(told(&mut said, 4), ["RolloutAdvanced: prefill 4-9 may be updated"]);
    assert_eq!(told(&mut said, u32::MAX), [""; 0]);
    assert_eq!(told(&mut said, 8), ["RolloutAdvanced: prefill 8-9 may be updated"]);
}
