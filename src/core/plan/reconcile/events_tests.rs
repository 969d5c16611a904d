use std::collections::BTreeMap;

use serde_json::json;

use super::*;
use crate::api::status::RoleProgress;
use crate::plan::decide::held::CoordinationRef;
use crate::plan::test_support::{mk_group, mk_held, mk_pod, mk_role, mk_segments};
use crate::plan::view::{GroupView, PodFacts, Replicas};

fn group() -> Group {
    let sizes = [("prefill", 10), ("decode", 5)];
    mk_group(&[("prefill", 100), ("decode", 50)], &json!([mk_segments("pd", "OrderedReady", &sizes)]))
}

fn progress(counts: &[(&str, u32)]) -> BTreeMap<String, RoleProgress> {
    let one = |released| RoleProgress { released: Some(released), ..RoleProgress::default() };
    counts.iter().map(|(role, count)| ((*role).to_owned(), one(*count))).collect()
}

fn held(reason: HoldReason, batch: u32) -> Held {
    let message = format!("segment {} is held", batch + 1);
    let coordination = Some(CoordinationRef { index: 0, name: "pd".to_owned() });
    let pods: Vec<_> = (0..15).map(|ordinal| mk_held(&ordinal.to_string(), "prefill", ordinal)).collect();
    Held { coordination, batch: Some(batch), ..Held::new(reason, message, pods) }
}

/// Runs passes with these stored counts and holds, until nothing is new; returns the reasons and notes.
fn pass(reported: &mut Reported, stored: &[(&str, u32)], holds: &[Held]) -> Vec<String> {
    pass_while(false, reported, stored, holds)
}

/// Does the same; `asked` says whether a surplus is being examined.
fn pass_while(asked: bool, reported: &mut Reported, stored: &[(&str, u32)], holds: &[Held]) -> Vec<String> {
    let mut group = group();
    let state = CoordinationState { name: "pd".to_owned(), progress: progress(stored), ..CoordinationState::default() };
    group.status.coordination_state = vec![state];
    let status = group.status.clone();
    let decision = Decision { held: holds.to_vec(), ..Decision::default() };
    let seen = Evaluation { decision, status, ..Evaluation::default() };
    let all = told(reported, &group, &seen, asked);
    all.into_iter().map(|event| format!("{}: {}", event.reason, event.note)).collect()
}

/// Returns the Events of this state, now and when it has lasted.
fn told(reported: &mut Reported, group: &Group, seen: &Evaluation, asked: bool) -> Vec<EventNote> {
    let (mut events, again) = reported.events(group, seen, asked, Uptime::ZERO);
    if let Some(at) = again {
        let (later, again) = reported.events(group, seen, asked, at);
        assert_eq!(again, None);
        events.extend(later);
    }
    events
}

#[test]
fn each_batch_is_reported_once_with_its_own_text() {
    let mut reported = Reported::default();
    let turn = |batch| [held(HoldReason::PreviousSegmentNotReady, batch)];
    let first = pass(&mut reported, &[("prefill", 10), ("decode", 5)], &turn(1));
    assert_eq!(
        first,
        ["PreviousSegmentNotReady: segment 2 is held (15 pods; segment 2 is rolegate.dev/segment=1)"],
        "what was released before is not reported"
    );
    assert_eq!(pass(&mut reported, &[("prefill", 10), ("decode", 5)], &turn(1)), [""; 0]);
    let second = pass(&mut reported, &[("prefill", 20), ("decode", 10)], &turn(2));
    assert_eq!(
        second,
        [
            "Released: segment 2 (rolegate.dev/segment=1) is released: decode 5-9, prefill 10-19",
            "PreviousSegmentNotReady: segment 3 is held (15 pods; segment 3 is rolegate.dev/segment=2)"
        ]
    );
    let all = pass(&mut reported, &[("prefill", 100), ("decode", 50)], &[]);
    assert_eq!(
        all,
        ["Released: segments 3 to 10 (rolegate.dev/segment=2 to 9) are released: decode 10-49, prefill 20-99"]
    );
    assert_eq!(
        pass(&mut reported, &[("prefill", 62), ("decode", 31)], &[]),
        [""; 0],
        "counts that fall are not reported"
    );
}

#[test]
fn that_a_batch_waits_for_its_turn_is_reported_when_that_lasts() {
    let mut reported = Reported::default();
    let mut look = |batch, at: u64| {
        let held = vec![held(HoldReason::PreviousSegmentNotReady, batch)];
        let seen = Evaluation { decision: Decision { held, ..Decision::default() }, ..Evaluation::default() };
        let (events, again) = reported.events(&group(), &seen, false, Uptime::from_millis(at));
        (events.len(), again.map(|at| at.as_millis()))
    };
    assert_eq!(look(1, 500), (0, Some(1500)));
    assert_eq!(look(1, 1499), (0, Some(1500)));
    assert_eq!(look(2, 1500), (0, Some(2500)), "the next one begins to wait");
    assert_eq!(look(2, 2500), (1, None));
    assert_eq!(look(2, 9000), (0, None));
    assert_eq!(look(1, 9500), (0, Some(10_500)));
}

#[test]
fn a_hold_that_no_release_ends_is_reported_to_be_over() {
    let mut reported = Reported::default();
    let stored = [("prefill", 20), ("decode", 10)];
    pass(&mut reported, &stored, &[held(HoldReason::InvalidCoordination, 2)]);
    let over = pass(&mut reported, &stored, &[held(HoldReason::PreviousSegmentNotReady, 2)]);
    assert_eq!(
        over,
        [
            "HoldCleared: no longer so: segment 3 is held",
            "PreviousSegmentNotReady: segment 3 is held (15 pods; segment 3 is rolegate.dev/segment=2)"
        ]
    );
}

#[test]
fn a_surplus_is_reported_when_it_is_known_and_not_taken_back_while_it_is_asked_again() {
    let (mut reported, stored) = (Reported::default(), [("prefill", 20), ("decode", 10)]);
    let surplus = [held(HoldReason::BeyondDesired, 2)];
    assert_eq!(pass_while(true, &mut reported, &stored, &surplus), [""; 0]);
    assert_eq!(
        pass_while(false, &mut reported, &stored, &surplus),
        ["BeyondDesired: segment 3 is held (15 pods; segment 3 is rolegate.dev/segment=2)"]
    );
    assert_eq!(pass_while(true, &mut reported, &stored, &surplus), [""; 0]);
    assert_eq!(pass_while(false, &mut reported, &stored, &surplus), [""; 0]);
    assert_eq!(pass_while(true, &mut reported, &stored, &[]), ["HoldCleared: no longer so: segment 3 is held"]);
}

#[test]
fn the_same_event_again_has_the_same_subject_and_no_other_has() {
    let subjects = |batch: u32| {
        let mut reported = Reported::default();
        let mut group = group();
        told(&mut reported, &group, &Evaluation::default(), false);
        let grown = progress(&[("prefill", batch * 10 + 10), ("decode", batch * 5 + 5)]);
        group.status.coordination_state =
            vec![CoordinationState { name: "pd".to_owned(), progress: grown, ..CoordinationState::default() }];
        let held = vec![held(HoldReason::PreviousSegmentNotReady, batch + 1)];
        let decision = Decision { held, ..Decision::default() };
        let seen = Evaluation { decision, status: group.status.clone(), ..Evaluation::default() };
        told(&mut reported, &group, &seen, false)
            .into_iter()
            .map(|event| (event.reason, event.subject))
            .collect::<Vec<_>>()
    };
    assert_eq!(subjects(1), subjects(1));
    let all: std::collections::BTreeSet<_> = (0..9).flat_map(subjects).collect();
    assert_eq!(all.len(), 18);
}

#[test]
fn what_runs_already_is_not_said_to_be_released_when_a_status_takes_it_in_again() {
    let mut reported = Reported::default();
    let mut look = |stored: u32| {
        let mut group = group();
        let progress = progress(&[("prefill", stored), ("decode", 15)]);
        let state = CoordinationState { name: "pd".to_owned(), progress, ..CoordinationState::default() };
        group.status.coordination_state = vec![state];
        let prefill = RoleView { committed: Some(stored), ..mk_role(100, 30, 30) };
        let view = GroupView { roles: [("prefill".to_owned(), prefill)].into(), ..GroupView::default() };
        let seen = Evaluation { view, ..Evaluation::default() };
        told(&mut reported, &group, &seen, false).into_iter().map(|event| event.note).collect::<Vec<_>>()
    };
    let none: [Vec<String>; 3] = Default::default();
    assert_eq!([30, 10, 30].map(&mut look), none);
    assert_eq!(look(40), ["segment 4 (rolegate.dev/segment=3) is released: prefill 30-39"]);
}

#[test]
fn what_runs_without_labels_was_never_held_and_is_not_said_to_be_released() {
    let (mut reported, mut group) = (Reported::default(), group());
    let mut prefill = mk_role(100, 0, 0);
    prefill.replicas = Replicas::default();
    for ordinal in 0..30 {
        let adopted = ordinal < 20;
        prefill.replicas.add(&PodFacts { adopted, ..mk_pod(&ordinal.to_string(), "prefill", ordinal) }.into(), ordinal);
    }
    let view = GroupView { roles: [("prefill".to_owned(), prefill)].into(), ..GroupView::default() };
    let seen = Evaluation { view, ..Evaluation::default() };
    assert_eq!(told(&mut reported, &group, &seen, false), []);
    let third = "segment 3 (rolegate.dev/segment=2) is released: prefill 20-29";
    for (stored, expected) in [(20, None), (30, Some(third))] {
        let progress = progress(&[("prefill", stored)]);
        let state = CoordinationState { name: "pd".to_owned(), progress, ..CoordinationState::default() };
        group.status.coordination_state = vec![state];
        let notes: Vec<_> = told(&mut reported, &group, &seen, false).into_iter().map(|event| event.note).collect();
        assert_eq!(notes, expected.into_iter().collect::<Vec<_>>());
    }
}

#[test]
fn what_goes_without_a_look_at_nodes_is_not_said_to_be_over_when_it_has_gone() {
    let mut reported = Reported::default();
    let blind = Held { pods: Vec::new().into(), ..held(HoldReason::RoomUnknown, 1) };
    let told = pass(&mut reported, &[], &[blind]);
    assert_eq!(told, ["RoomUnknown: segment 2 is held (segment 2 is rolegate.dev/segment=1)"]);
    assert_eq!(pass(&mut reported, &[("prefill", 20), ("decode", 10)], &[]).len(), 1, "it is released");
    assert_eq!(pass(&mut reported, &[("prefill", 20), ("decode", 10)], &[]), [""; 0]);
}

#[test]
fn a_second_workload_that_is_missing_is_told_as_well() {
    let lacks = |texts: &[&str]| [Held::new(HoldReason::WorkloadMissing, texts.join("; "), Vec::new())];
    let mut reported = Reported::default();
    let both = ["a is not there", "b is not there"];
    assert_eq!(pass(&mut reported, &[], &lacks(&both[..1])), ["WorkloadMissing: a is not there"]);
    assert_eq!(pass(&mut reported, &[], &lacks(&both)), ["WorkloadMissing: a is not there; b is not there"]);
    assert_eq!(pass(&mut reported, &[], &lacks(&both)), [""; 0]);
    assert_eq!(pass(&mut reported, &[], &lacks(&both[1..])), [""; 0], "one less is no news");
    assert_eq!(pass(&mut reported, &[], &[]), ["HoldCleared: no longer so: b is not there"]);
}
