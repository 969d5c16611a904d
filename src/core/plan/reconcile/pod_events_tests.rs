use std::time::Duration;

use serde_json::json;

use super::*;
use crate::model::HoldReason;
use crate::plan::decide::held::CoordinationRef;
use crate::plan::decide::held_pods::HeldPods;
use crate::plan::test_support::{mk_group, mk_pod, mk_segments};
use crate::plan::view::{PodFacts, RoleView};

const MOMENT: Duration = Duration::from_millis(999);

/// Segments of 10 prefill and 5 decode; pods with these ordinals exist, all of them held.
struct World {
    group: Group,
    view: GroupView,
    reported: ReportedPods,
    now: Uptime,
}

impl World {
    fn new(prefill: Range<u32>, decode: Range<u32>) -> Self {
        let sizes = [("prefill", 10), ("decode", 5)];
        let group = mk_group(&[("prefill", 100), ("decode", 50)], &json!([mk_segments("pd", "OrderedReady", &sizes)]));
        let mut world =
            Self { group, view: GroupView::default(), reported: ReportedPods::default(), now: Uptime::default() };
        for (role, desired, pods) in [("prefill", 100, prefill), ("decode", 50, decode)] {
            let seen = RoleView { desired, ..RoleView::default() };
            world.view.roles.insert(role.to_owned(), seen);
            pods.for_each(|ordinal| world.add(role, ordinal, &format!("{role}-{ordinal}")));
        }
        world
    }

    fn add(&mut self, role: &str, ordinal: u32, uid: &str) {
        let pod = PodRef { name: format!("{role}-{ordinal}").into(), uid: uid.into() };
        let pod = PodFacts { pod, ..mk_pod("", role, ordinal) };
        self.view.roles.get_mut(role).unwrap().replicas.add(&pod.into(), ordinal);
    }

    fn remove(&mut self, role: &str, ordinal: u32) {
        let replicas = &mut self.view.roles.get_mut(role).unwrap().replicas;
        let pods = replicas.pods_of(ordinal).to_vec();
        pods.iter().for_each(|pod| replicas.remove(&pod.pod, ordinal));
    }

    /// Returns the Events after some time, with all existing pods held and `batch` as the lowest batch.
    fn pass(&mut self, after: Duration, reason: HoldReason, batch: u32) -> Vec<String> {
        self.now += after;
        let all = (std::ops::Bound::Unbounded, std::ops::Bound::Unbounded);
        let pods = HeldPods::run(&self.view, "prefill", all).and(HeldPods::run(&self.view, "decode", all));
        let coordination = Some(CoordinationRef { index: 0, name: "pd".to_owned() });
        let message = format!("segment {} is held", batch + 1);
        let held = Held { coordination, batch: Some(batch), ..Held::new(reason, message, pods) };
        let told_of = PodHold::of(&self.group, &self.view, &held);
        let (events, again) = self.reported.events(told_of.into_iter(), self.now);
        assert!(again.is_none_or(|at| at > self.now && at <= self.now + LASTS));
        let text = |(pod, note): &(PodRef, EventNote)| format!("{} {}: {}", pod.uid, note.reason, note.note);
        events.iter().map(text).collect()
    }
}

const TURN: HoldReason = HoldReason::PreviousSegmentNotReady;
const NOTHING: [&str; 0] = [];

#[test]
fn one_pod_of_each_batch_is_told_once_the_hold_has_lasted() {
    let mut world = World::new(10..100, 5..50);
    assert_eq!(world.pass(Duration::ZERO, TURN, 1), NOTHING);
    assert_eq!(world.pass(MOMENT, TURN, 1), NOTHING, "it may go on in a moment");
    assert_eq!(world.pass(LASTS, TURN, 1), ["decode-5 PreviousSegmentNotReady: segment 2 is held"]);
    assert_eq!(world.pass(LASTS, TURN, 1), NOTHING);
    assert_eq!(world.pass(LASTS, HoldReason::NoRoom, 1), NOTHING);
    assert_eq!(world.pass(LASTS, HoldReason::NoRoom, 1), ["decode-5 NoRoom: segment 2 is held"]);
    assert_eq!(world.pass(LASTS, TURN, 2), NOTHING);
    assert_eq!(world.pass(LASTS, TURN, 2), ["decode-10 PreviousSegmentNotReady: segment 3 is held"]);
}

#[test]
fn batches_that_go_on_at_once_are_told_nothing() {
    let mut world = World::new(10..100, 5..50);
    for batch in 1..10 {
        assert_eq!(world.pass(MOMENT, TURN, batch), NOTHING);
    }
}

#[test]
fn pods_of_a_later_batch_are_not_told_of_an_earlier_one() {
    let mut world = World::new(20..30, 10..15);
    world.pass(LASTS, TURN, 1);
    assert_eq!(world.pass(LASTS, TURN, 1), NOTHING);
    world.add("prefill", 14, "late");
    assert_eq!(world.pass(LASTS, TURN, 1), NOTHING, "its time begins with its first pod");
    assert_eq!(world.pass(LASTS, TURN, 1), ["late PreviousSegmentNotReady: segment 2 is held"]);
    world.add("decode", 5, "later");
    assert_eq!(world.pass(LASTS, TURN, 1), NOTHING, "a pod of the batch was told");
}

#[test]
fn when_the_pod_that_was_told_is_gone_its_successor_is() {
    let mut world = World::new(10..12, 5..5);
    world.pass(LASTS, TURN, 1);
    assert_eq!(world.pass(LASTS, TURN, 1), ["prefill-10 PreviousSegmentNotReady: segment 2 is held"]);
    world.remove("prefill", 10);
    assert_eq!(world.pass(LASTS, TURN, 1), NOTHING, "it may come back in a moment");
    assert_eq!(world.pass(LASTS, TURN, 1), ["prefill-11 PreviousSegmentNotReady: segment 2 is held"]);
    world.remove("prefill", 11);
    world.add("prefill", 11, "remade");
    assert_eq!(world.pass(LASTS, TURN, 1), NOTHING);
    assert_eq!(world.pass(LASTS, TURN, 1), ["remade PreviousSegmentNotReady: segment 2 is held"]);
}
