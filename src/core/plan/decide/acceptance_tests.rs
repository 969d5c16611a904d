use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::*;
use crate::api::status::CoordinationState;
use crate::model::{AwaitedKind, ProgressState};
use crate::plan::decide::progression::{CoordinationTarget, targets};
use crate::plan::test_support::{mk_group, mk_role};
use crate::plan::view::{AwaitedObjects, LackWhat, Replicas, SeenCondition, SeenKind, SeenObject};

/// A group of four replicas of each of two roles, in segments of one of each.
struct Story {
    group: Group,
    roles: BTreeMap<String, RoleView>,
    pauses: Pauses,
}

/// When the replica with this ordinal became ready.
fn ready_at(ordinal: u32) -> u32 {
    1_000 + 100 * ordinal
}

fn role(desired: u32, released: u32, ready: u32) -> RoleView {
    let plain = mk_role(desired, released, ready);
    let mut replicas = Replicas::default();
    for (ordinal, pod) in plain.replicas.pods() {
        let ready_since = pod.ready.then(|| ready_at(ordinal));
        replicas.add(&Arc::new(PodFacts { ready_since, ..PodFacts::clone(pod) }), ordinal);
    }
    RoleView { replicas, ..plain }
}

impl Story {
    fn new(fields: &Value) -> Self {
        let mut segments = json!({"segmentSize": {"prefill": 1, "decode": 1}});
        segments.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        let coordination = json!([{"name": "pd", "strategy": {"segmentPlacement": segments}}]);
        let group = mk_group(&[("prefill", 4), ("decode", 4)], &coordination);
        let pauses = Pauses { now: Some(Moment(1_000)), ..Pauses::default() };
        Self { group, roles: BTreeMap::new(), pauses }.with(0, 0)
    }

    fn canary() -> Self {
        Self::new(&json!({"progression": "Canary", "soak": "10m"}))
    }

    fn waiting_for_jobs(all: &[(&str, bool)]) -> Self {
        let object =
            json!({"apiVersion": "batch/v1", "kind": "Job", "name": "warm-$(SEGMENT)", "condition": "Complete"});
        let mut story = Self::new(&json!({"readyWhen": {"object": object}}));
        story.pauses.objects = jobs(all);
        story
    }

    fn with(mut self, released: u32, ready: u32) -> Self {
        self.roles = ["prefill", "decode"].map(|name| (name.to_owned(), role(4, released, ready))).into();
        self
    }

    fn at(mut self, now: i64) -> Self {
        self.pauses.now = Some(Moment(now));
        self
    }

    /// The status says that this many segments are accepted.
    fn stored(mut self, accepted: u32) -> Self {
        let state =
            CoordinationState { name: "pd".to_owned(), accepted: Some(accepted), ..CoordinationState::default() };
        self.group.status.coordination_state = vec![state];
        self
    }

    fn target(&self) -> CoordinationTarget {
        let conditions = Conditions { missing_layers: &[], pauses: Some(&self.pauses) };
        targets(&self.group, &self.roles, conditions).coordinations.swap_remove(0)
    }

    /// Returns the target of each role, which is the same, and the number of accepted segments.
    fn goes_to(&self) -> (u32, Option<u32>) {
        let target = self.target();
        assert_eq!(target.roles["prefill"], target.roles["decode"]);
        (target.roles["prefill"], target.acceptance.accepted)
    }
}

fn not_there(since: Option<Moment>) -> AcceptanceWait {
    AcceptanceWait::Object(Lack { what: LackWhat::Object, why: "Job \"warm-0\" is not there".to_owned(), since })
}

/// Returns Jobs that are there, each with whether it is complete.
fn jobs(all: &[(&str, bool)]) -> AwaitedObjects {
    let job = |(name, is_true): &(&str, bool)| {
        let since = Some(Moment(5_000));
        let complete =
            SeenCondition { kind: "Complete".into(), is_true: *is_true, reason: "".into(), message: "".into(), since };
        ((*name).into(), Arc::new(SeenObject { created: None, conditions: vec![complete] }))
    };
    let kind = AwaitedKind { group: "batch".to_owned(), kind: "Job".to_owned() };
    AwaitedObjects::Seen(BTreeMap::from([(kind, SeenKind::Known(Arc::new(all.iter().map(job).collect())))]))
}

#[test]
fn the_canary_goes_alone_and_the_others_follow_when_it_was_ready_for_its_time() {
    assert_eq!(Story::canary().goes_to(), (1, Some(0)));
    let paused = Story::canary().with(1, 1).at(1_599);
    let target = paused.target();
    assert_eq!((target.state, target.pause()), (ProgressState::Paused, Some(PauseEnd::At(Moment(1_600)))));
    assert_eq!(paused.goes_to(), (1, Some(0)));
    assert_eq!(paused.at(1_600).goes_to(), (2, Some(1)));
    // The others go by OrderedReady.
    assert_eq!(Story::canary().stored(1).with(2, 1).at(9_000).goes_to(), (2, Some(1)));
    assert_eq!(Story::canary().stored(1).with(2, 2).at(1_600).goes_to(), (3, Some(2)));
}

#[test]
fn a_canary_that_is_not_ready_is_waited_for_and_its_time_begins_anew() {
    let target = Story::canary().with(1, 0).at(9_000).target();
    assert_eq!((target.state, target.pause()), (ProgressState::Waiting, None));
    assert_eq!(target.waits_for.unwrap().ordinal, 0);
}

#[test]
fn a_person_accepts_a_canary_and_no_later_one() {
    let story = |resumed| {
        let mut story = Story::new(&json!({"progression": "Canary"})).with(1, 1).at(9_000_000);
        story.pauses.resumed = Some(Moment(resumed));
        story
    };
    assert_eq!(story(999).target().pause(), Some(PauseEnd::Resume));
    assert_eq!(story(1_000).goes_to(), (2, Some(1)));
}

#[test]
fn what_was_accepted_stays_so_while_the_segments_exist() {
    // The canary is made anew while the next segment has no room.
    assert_eq!(Story::canary().stored(1).with(1, 1).at(1_001).goes_to(), (2, Some(1)));
    // Replicas of the next segment may run: it was accepted, even if the status is lost.
    assert_eq!(Story::canary().with(2, 2).at(1_001).goes_to(), (3, Some(2)));
    // All are taken away, and made again.
    assert_eq!(Story::canary().stored(4).goes_to(), (1, Some(0)));
}

#[test]
fn the_pods_of_the_canary_count_from_the_end_of_their_min_ready_seconds() {
    let fields = json!({"progression": "Canary", "soak": "10m", "readyWhen": {"minReadySeconds": 60}});
    let target = Story::new(&fields).with(1, 1).at(1_100).target();
    assert_eq!(target.pause(), Some(PauseEnd::At(Moment(1_000 + 60 + 600))));
}

#[test]
fn a_segment_waits_for_its_object_since_its_replicas_are_ready() {
    let missing = Story::waiting_for_jobs(&[]).with(1, 1).target();
    let why = not_there(Some(Moment(1_000)));
    assert_eq!((missing.state, missing.acceptance.wait), (ProgressState::Waiting, Some(why)));
}

#[test]
fn the_last_segment_is_accepted_for_a_later_one_and_is_waited_for_by_none() {
    let all = |jobs: &[(&str, bool)]| Story::waiting_for_jobs(jobs).with(4, 4);
    let unaccepted = all(&[]).target();
    assert_eq!((unaccepted.state, unaccepted.acceptance.wait), (ProgressState::Complete, None));
    assert_eq!(all(&[]).goes_to(), (4, Some(3)));
    assert_eq!(all(&[("warm-3", true)]).goes_to(), (4, Some(4)));
}

#[test]
fn without_readiness_there_is_nothing_to_accept() {
    let object = json!({"apiVersion": "batch/v1", "kind": "Job", "name": "warm"});
    for progression in ["Ordered", "Parallel"] {
        let fields = json!({"progression": progression, "readyWhen": {"object": object}});
        assert_eq!(Story::new(&fields).with(1, 0).target().acceptance, Acceptance::default(), "{progression}");
    }
}

#[test]
fn texts_name_the_batch_the_cause_and_the_time() {
    let since = Some(Moment::parse("2026-01-01T00:00:00Z").unwrap());
    let missing = not_there(since);
    assert_eq!(
        missing.text("segment 1"),
        "segment 1 is not accepted: Job \"warm-0\" is not there, for which it waits since 2026-01-01T00:00:00Z"
    );
    let soaks = AcceptanceWait::Canary(PauseEnd::After(Duration::from_secs(600)));
    assert_eq!(soaks.text("segment 1"), "a pause follows the canary, segment 1, for 10m, or until it is resumed");
}
