use serde_json::json;

use super::*;
use crate::api::status::RolloutState;
use crate::model::RollingBounds;
use crate::plan::rollout::{Ordinal, PauseEnd, plan_rollout};
use crate::plan::test_support::mk_group;

/// Passes with these open rollouts, as (role, desired, partition); no replica is updated.
fn pass(reported: &mut ReportedRollouts, open: &[(&str, usize, u32)]) -> Vec<String> {
    pass_while(false, reported, open)
}

/// Passes with all replicas updated, or none.
fn pass_while(updated: bool, reported: &mut ReportedRollouts, open: &[(&str, usize, u32)]) -> Vec<String> {
    let role = |(name, desired, partition): &(&str, usize, u32)| {
        let ordinals = vec![Ordinal { ready: true, updated, ..Ordinal::default() }; *desired];
        let role =
            RoleRollout { partition: *partition, ordinals, judged: true, settled: true, ..RoleRollout::default() };
        ((*name).to_owned(), role)
    };
    let roles: BTreeMap<_, _> = open.iter().map(role).collect();
    told(reported, roles, &[], Uptime::ZERO).0
}

/// Returns the Events of these rollouts within these bounds, and when to look again.
fn told(
    reported: &mut ReportedRollouts,
    roles: BTreeMap<String, RoleRollout>,
    bounds: &[RollingBounds],
    now: Uptime,
) -> (Vec<String>, Option<Uptime>) {
    let plan = plan_rollout(bounds, &roles, &[]);
    let (events, again) = reported.events(&Rollouts { roles, ..Rollouts::default() }, &plan, false, now);
    (events.into_iter().map(|event| format!("{}: {}", event.reason, event.note)).collect(), again)
}

/// A step may be over at once: only a wait that lasts is reported, and once.
#[test]
fn that_a_role_waits_for_another_is_told_when_that_lasts() {
    let rolling = json!({ "name": "roll", "roles": ["a", "b"], "strategy": { "rollingUpdate": { "maxSkew": "10%" } } });
    let bounds = RollingBounds::all_of(&mk_group(&[("a", 4), ("b", 4)], &json!([rolling])));
    let mut reported = ReportedRollouts::default();
    let mut at = |millis: u64, behind: bool| {
        let done = Ordinal { ready: true, updated: true, ..Ordinal::default() };
        let role = |count: usize, partition| {
            let old = vec![Ordinal { ready: true, ..Ordinal::default() }; 4 - count];
            let ordinals = old.into_iter().chain(vec![done; count]).collect();
            RoleRollout { partition, ordinals, judged: true, settled: true, ..RoleRollout::default() }
        };
        let roles = [("a".to_owned(), role(1, 3)), ("b".to_owned(), role(usize::from(!behind), 3))].into();
        let (events, again) = told(&mut reported, roles, &bounds, Uptime::from_millis(millis));
        (events, again.map(|at| at.as_millis()))
    };
    let waits = "RolloutHeld: a waits for b: 0/4 updated and ready, next is b-3".to_owned();
    assert_eq!(at(0, true), (vec![], Some(1000)));
    assert_eq!(at(900, false), (vec![], None));
    assert_eq!(at(1000, true), (vec![], Some(2000)));
    assert_eq!(at(2000, true), (vec![waits], None));
    assert_eq!(at(9000, true), (vec![], None));
}

#[test]
fn a_rollout_that_nothing_coordinates_any_more_is_not_done() {
    let mut reported = ReportedRollouts::default();
    pass(&mut reported, &[("decode", 3, 3)]);
    assert_eq!(pass(&mut reported, &[]), ["RolloutAdvanced: the rollout of decode is not coordinated any more"]);
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
    assert_eq!(pass_while(true, &mut reported, &[("prefill", 100, 0)]), [""; 0]);
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

/// A replica that falls back begins no step, and another edit begins them all.
#[test]
fn a_step_is_reported_when_it_begins_and_so_is_the_pause_after_it() {
    let mut reported = ReportedRollouts::default();
    let mut at = |step: u32, paused: bool, revision: &str| {
        let revisions = BTreeMap::from([("a".to_owned(), revision.to_owned())]);
        let stage = Stage {
            index: 0,
            name: "roll".to_owned(),
            number: StepNumber { step, steps: 3, back: false },
            limits: BTreeMap::from([("a".to_owned(), step)]),
            behind: vec!["a".to_owned()],
            lacks: None,
            pause: paused.then_some(PauseEnd::Resume),
            late: Vec::new(),
            stays: None,
            state: RolloutState { revisions, ..RolloutState::default() },
        };
        let role = RoleRollout { ordinals: vec![Ordinal::default(); 4], judged: true, ..RoleRollout::default() };
        let roles = BTreeMap::from([("a".to_owned(), role)]);
        let rollouts = Rollouts { roles, stages: vec![stage], ..Rollouts::default() };
        let (events, _) = reported.events(&rollouts, &RolloutPlan::new(), false, Uptime::ZERO);
        events.into_iter().map(|event| format!("{}: {}", event.reason, event.note)).collect::<Vec<_>>()
    };
    assert_eq!(at(1, false, "v2"), [""; 0], "what began before the first pass is not reported");
    assert_eq!(at(1, true, "v2"), [r#"RolloutPaused: "roll" pauses after step 1 of 3 until it is resumed"#]);
    assert_eq!(at(1, true, "v2"), [""; 0]);
    let second = r#"RolloutStep: "roll" is in step 2 of 3, which ends with a 2/4 updated and ready"#;
    assert_eq!(at(2, false, "v2"), [second]);
    assert_eq!(at(1, false, "v2"), [""; 0]);
    assert_eq!(at(2, false, "v2"), [""; 0]);
    let first = r#"RolloutStep: "roll" is in step 1 of 3, which ends with a 1/4 updated and ready"#;
    assert_eq!(at(1, false, "v3"), [first]);
}

/// One truth: what went back is not told as stalled as well.
#[test]
fn that_nothing_moves_on_the_way_back_is_told_under_the_name_of_the_rollback() {
    let tell = |returns: bool| {
        let down = Ordinal::default();
        let role = RoleRollout {
            partition: 1,
            ordinals: vec![down, Ordinal { updated: true, ..down }],
            judged: true,
            settled: true,
            back: returns,
            returns,
            ..RoleRollout::default()
        };
        let update = json!({ "name": "roll", "roles": ["a"], "strategy": { "rollingUpdate": {} } });
        let bounds = RollingBounds::all_of(&mk_group(&[("a", 2)], &json!([update])));
        let roles = BTreeMap::from([("a".to_owned(), role)]);
        let plan = plan_rollout(&bounds, &roles, &[]);
        let rollouts = Rollouts { roles, ..Rollouts::default() };
        let (events, _) = ReportedRollouts::default().events(&rollouts, &plan, true, Uptime::ZERO);
        events.into_iter().map(|event| event.reason).collect::<Vec<_>>()
    };
    assert_eq!(tell(false), ["RolloutStalled"]);
    assert_eq!(tell(true), ["RolledBack"]);
}
