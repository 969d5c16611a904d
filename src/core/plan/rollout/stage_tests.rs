use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::model::rolling::FROZEN;
use crate::model::{AwaitedKind, ProgressState};
use crate::plan::rollout::{
    Ordinal, RolePlan, RolloutPlan, Rollouts, WaitReason, plan_rollout, rollouts, stage_text, waits_for,
};
use crate::plan::test_support::mk_group;
use crate::plan::view::{SeenCondition, SeenKind, SeenObject};

const OLD: Ordinal =
    Ordinal { updated: false, ready: true, held: false, new: false, displaced: false, given_up: false };
const NEW: Ordinal = Ordinal { updated: true, ..OLD };

/// A group of ten prefill and four decode in a rollout, with what its status and its annotations say.
struct Story {
    bounds: Vec<RollingBounds>,
    roles: BTreeMap<String, RoleRollout>,
    pauses: Pauses,
    /// Updated prefill and decode after each change.
    seen: Vec<[u32; 2]>,
}

impl Story {
    /// Both roles were edited, with at most one unavailable replica.
    fn new(steps: &Value) -> Self {
        Self::with(&json!({ "steps": steps }))
    }

    fn with(update: &Value) -> Self {
        let mut story = Self {
            bounds: Vec::new(),
            roles: BTreeMap::new(),
            pauses: Pauses { now: Some(Moment(1000)), ..Pauses::default() },
            seen: Vec::new(),
        };
        story.spell(update);
        story.edit("prefill", 10, "v2");
        story.edit("decode", 4, "v2");
        story
    }

    fn spell(&mut self, update: &Value) {
        let roll = json!({ "name": "roll", "roles": ["prefill", "decode"], "strategy": { "rollingUpdate": update } });
        self.bounds = RollingBounds::all_of(&mk_group(&[("prefill", 10), ("decode", 4)], &json!([roll])));
    }

    /// Somebody edits a role: all its replicas are old.
    fn edit(&mut self, role: &str, desired: usize, to: &str) {
        let rollout = RoleRollout {
            partition: FROZEN,
            ordinals: vec![OLD; desired],
            judged: true,
            settled: true,
            revision: Some(to.to_owned()),
            can_return: true,
            ..RoleRollout::default()
        };
        self.roles.insert(role.to_owned(), rollout);
    }

    /// Somebody takes the edit of a role back: the replicas that were updated are old.
    fn take_back(&mut self, role: &str) {
        let rollout = self.role(role);
        rollout.ordinals.iter_mut().for_each(|one| one.updated = !one.updated);
        rollout.partition = FROZEN;
        rollout.revision = Some("v1".to_owned());
        rollout.back = true;
    }

    /// Replicas of a role from this ordinal on are updated and ready.
    fn update(&mut self, role: &str, from: usize) {
        let rollout = self.role(role);
        rollout.partition = u32::try_from(from).unwrap();
        rollout.ordinals.iter_mut().skip(from).for_each(|one| *one = NEW);
    }

    /// The rollouts of both roles go back.
    fn turn(&mut self) {
        for rollout in self.roles.values_mut() {
            rollout.ordinals.iter_mut().for_each(|one| one.updated = !one.updated);
            (rollout.partition, rollout.back, rollout.returns) = (FROZEN, true, true);
        }
    }

    /// What is not ready now was not for longer than it may.
    fn is_late(&mut self) -> Stage {
        self.pauses.late = self.stage().late;
        self.stage()
    }

    fn role(&mut self, role: &str) -> &mut RoleRollout {
        self.roles.get_mut(role).unwrap()
    }

    fn stage(&self) -> Stage {
        stages(&self.bounds, &self.roles, &self.pauses).remove(0)
    }

    /// What is said of the rollout as a whole.
    fn text(&self) -> String {
        stage_text(&self.stage(), &self.roles)
    }

    /// What is said of the plan: of the rollout as a whole, then of each role.
    fn told(&self) -> Vec<String> {
        rollouts(&self.plan().1, &Rollouts { roles: self.roles.clone(), ..Rollouts::default() })
    }

    /// Why a role waits.
    fn waits(&self, role: &str) -> String {
        let rollouts = Rollouts { roles: self.roles.clone(), ..Rollouts::default() };
        waits_for(role, self.plan().1[role].waits.as_ref().unwrap(), &rollouts)
    }

    fn plan(&self) -> (Stage, RolloutPlan) {
        let stage = self.stage();
        let plan = plan_rollout(&self.bounds, &self.roles, std::slice::from_ref(&stage));
        (stage, plan)
    }

    /// Rolls on for as long as anything moves: what is granted gets ready, and the rollout of a role that is over is closed.
    /// Returns the counts on the way, and what the rollout waits for.
    fn go_on(&mut self) -> (Vec<[u32; 2]>, String) {
        self.seen.clear();
        loop {
            if self.roles.is_empty() {
                return (std::mem::take(&mut self.seen), "nothing".to_owned());
            }
            let (stage, plan) = self.plan();
            self.pauses.past.insert(0, stage.state.clone());
            let mut moved = false;
            for (name, decided) in &plan {
                let role = self.roles.get_mut(name).unwrap();
                moved |= decided.partition < role.partition;
                role.partition = decided.partition;
                let granted = role.ordinals.iter_mut().skip(usize::try_from(decided.partition).unwrap());
                granted.for_each(|one| *one = NEW);
            }
            let counts = ["prefill", "decode"].map(|role| self.roles.get(role).map_or(u32::MAX, RoleRollout::updated));
            if self.seen.last() != Some(&counts) {
                self.seen.push(counts);
            }
            self.roles.retain(|_, role| !role.is_over());
            if !moved && !self.roles.is_empty() {
                return (std::mem::take(&mut self.seen), stage_text(&stage, &self.roles));
            }
        }
    }

    /// Notes the decision, and moves nothing.
    fn decide(&mut self) {
        let stage = self.stage();
        self.pauses.past.insert(0, stage.state);
    }

    fn at(&mut self, seconds: i64) -> &mut Self {
        self.pauses.now = Some(Moment(seconds));
        self
    }

    /// Somebody resumes the rollout now.
    fn resume(&mut self) -> &mut Self {
        self.pauses.resumed = self.pauses.now;
        self
    }
}

/// A role whose rollout is over, and closed.
const OVER: u32 = u32::MAX;
const PAUSED: &str = r#""roll" pauses after step 1 of 2 until it is resumed"#;

/// A part of prefill, all of decode, the rest of prefill.
fn prefill_first() -> Value {
    json!([{ "prefill": "30%" }, { "decode": "100%" }, { "prefill": "100%" }])
}

/// A part of both roles, a pause, the rest.
fn in_halves(pause: &Value) -> Value {
    json!([{ "prefill": "30%", "decode": "50%" }, { "pause": pause }, { "prefill": "100%", "decode": "100%" }])
}

/// The objects of a kind that are there, each with whether its condition is true since a moment.
fn seen(group: &str, kind: &str, condition: &str, all: &[(&str, bool)], since: Option<Moment>) -> AwaitedObjects {
    let object = |(name, is_true): &(&str, bool)| {
        let (kind, reason, message) = (condition.into(), "".into(), "".into());
        let conditions = vec![SeenCondition { kind, is_true: *is_true, reason, message, since }];
        ((*name).into(), Arc::new(SeenObject { created: None, conditions }))
    };
    let known = SeenKind::Known(Arc::new(all.iter().map(object).collect()));
    AwaitedObjects::Seen([(AwaitedKind { group: group.to_owned(), kind: kind.to_owned() }, known)].into())
}

/// KEP-30: a frontend in part, then a backend completely, then the rest of the frontend.
#[test]
fn each_step_begins_when_the_one_before_is_ready() {
    let mut story =
        Story::new(&json!([{ "prefill": "30%", "decode": 0 }, { "decode": "100%" }, { "prefill": "100%" }]));
    let (stage, plan) = story.plan();
    assert_eq!(stage.number.to_string(), "step 1 of 3");
    assert_eq!((plan["prefill"].partition, plan["decode"].partition), (9, FROZEN));
    let text = "decode waits for the end of step 1 of 3: prefill is at 0/10 updated and ready, next is prefill-9";
    assert_eq!(story.waits("decode"), text);
    let way = [[1, 0], [2, 0], [3, 0], [3, 1], [3, 2], [3, 3], [3, 4]];
    let rest = (4..=10).map(|prefill| [prefill, OVER]);
    assert_eq!(story.go_on(), (way.into_iter().chain(rest).collect(), "nothing".to_owned()));
}

#[test]
fn a_replica_that_is_not_ready_holds_the_next_step_back() {
    let mut story = Story::new(&prefill_first());
    story.update("prefill", 7);
    story.role("prefill").ordinals[8].ready = false;
    let (stage, plan) = story.plan();
    assert_eq!((stage.number.step, plan["decode"].partition), (1, FROZEN));
    assert_eq!(story.text(), r#""roll" is in step 1 of 3, which ends with prefill 3/10 updated and ready"#);
    // One that fails later, in step 2, stops what goes on as well.
    story.role("prefill").ordinals[8].ready = true;
    let (stage, plan) = story.plan();
    assert_eq!((stage.number.step, plan["decode"].partition), (2, 3));
}

/// The skew bounds the way to the shares of a step, and not the shares.
#[test]
fn within_a_step_the_skew_holds_and_its_shares_may_differ_by_more() {
    let steps = json!([{ "prefill": "50%", "decode": "50%" }, { "prefill": "100%" }, { "decode": "100%" }]);
    let mut story = Story::with(&json!({ "maxSkew": "10%", "maxUnavailable": "100%", "steps": steps }));
    let (way, _) = story.go_on();
    // A role may be one replica of the other ahead: prefill by 25 %.
    assert_eq!(way[..5], [[2, 0], [2, 1], [5, 1], [5, 2], [10, 2]]);
}

#[test]
fn a_pause_lasts_until_somebody_resumes_the_rollout() {
    let mut story = Story::new(&json!([
        { "prefill": "30%", "decode": "50%" }, { "pause": {} }, { "decode": "100%" }, { "pause": {} }, { "prefill": "100%" },
    ]));
    // It does not wait yet: who resumes it now has resumed nothing.
    story.resume().at(1010);
    let paused = r#""roll" pauses after step 1 of 3 until it is resumed"#;
    assert_eq!(story.go_on().1, paused);
    assert_eq!(story.at(9000).go_on(), (vec![[3, 2]], paused.to_owned()));
    assert_eq!(story.plan().1["prefill"].state, ProgressState::Paused);
    let told = "rollout of prefill: 3/10 updated, 3 of them ready, partition 7, Paused: prefill pauses after step 1 of 3 until it \
                is resumed";
    assert_eq!(story.told()[1], told);
    // Once resumed, it goes on to the next pause, however soon that comes.
    let paused = r#""roll" pauses after step 2 of 3 until it is resumed"#.to_owned();
    assert_eq!(story.resume().go_on(), (vec![[3, 3], [3, 4], [3, OVER]], paused));
    assert_eq!(story.at(9001).go_on().0, [[3, OVER]]);
    assert_eq!(story.resume().go_on().1, "nothing");
}

#[test]
fn a_pause_with_a_duration_ends_by_itself_or_when_it_is_resumed() {
    let steps = in_halves(&json!({ "duration": "10m" }));
    let mut story = Story::new(&steps);
    let paused = r#""roll" pauses after step 1 of 2 until 1970-01-01T00:26:40Z, or until it is resumed"#;
    assert_eq!(story.go_on().1, paused);
    assert_eq!(story.at(1599).go_on().1, paused);
    assert_eq!(story.at(1600).go_on().1, "nothing");
    let mut story = Story::new(&steps);
    assert_eq!(story.go_on().1, paused);
    assert_eq!(story.at(1001).resume().go_on().1, "nothing");
    // A shorter duration counts from the same time.
    let mut story = Story::new(&steps);
    story.go_on();
    story.spell(&json!({ "steps": in_halves(&json!({ "duration": "1m" })) }));
    assert_eq!(story.at(1060).go_on().1, "nothing");
}

/// Without the time of the loop, as in files, no pause ends.
#[test]
fn without_a_clock_a_pause_is_told_by_its_duration() {
    let mut story = Story::new(&in_halves(&json!({ "duration": "10m" })));
    story.pauses.now = None;
    assert_eq!(story.go_on().1, r#""roll" pauses after step 1 of 2 for 10m, or until it is resumed"#);
}

/// The status is all that another leader knows.
#[test]
fn another_edit_begins_at_the_first_step_and_pauses_again() {
    let mut story = Story::new(&in_halves(&json!({})));
    story.go_on();
    story.at(2000).resume();
    let (stage, _) = story.plan();
    assert_eq!(stage.state.passed, BTreeMap::from([("prefill".to_owned(), 30), ("decode".to_owned(), 50)]));
    story.pauses.past.insert(0, stage.state);
    // The pause is over also for a leader that knows only the status, and after the annotation is gone.
    story.pauses.resumed = None;
    assert_eq!(story.stage().number.step, 2);
    story.edit("prefill", 10, "v3");
    story.edit("decode", 4, "v3");
    assert_eq!(story.stage().number.step, 1);
    assert_eq!(story.at(2100).go_on().1, PAUSED);
    // Only decode is edited once more: nothing goes on unasked.
    story.edit("decode", 4, "v4");
    assert_eq!(story.go_on(), (vec![[3, 1], [3, 2]], PAUSED.to_owned()));
}

#[test]
fn an_edit_that_is_taken_back_walks_the_steps_back_without_a_pause() {
    let mut story = Story::new(&json!([
        { "prefill": "70%" }, { "pause": {} }, { "decode": "100%" }, { "pause": {} }, { "prefill": "100%" },
    ]));
    story.go_on();
    story.at(2000).resume();
    story.roles.get_mut("decode").unwrap().ordinals[3] = Ordinal { ready: false, ..NEW };
    story.role("decode").partition = 3;
    assert_eq!(story.stage().number.to_string(), "step 2 of 3");
    story.take_back("prefill");
    story.take_back("decode");
    // Decode was under way, and goes back first.
    let (stage, plan) = story.plan();
    assert_eq!((stage.number.to_string().as_str(), plan["decode"].partition), ("step 2 of 3 back", 3));
    assert_eq!(plan["prefill"].partition, FROZEN);
    let (way, end) = story.go_on();
    assert_eq!((way[0], way[1], end.as_str()), ([3, 4], [4, OVER], "nothing"));
}

/// The bad one is taken back at once, and the other goes on.
#[test]
fn a_role_that_is_taken_back_alone_waits_for_no_step() {
    let mut story = Story::new(&prefill_first());
    story.update("prefill", 7);
    story.take_back("prefill");
    let (stage, plan) = story.plan();
    assert_eq!((stage.number.to_string().as_str(), plan["decode"].partition), ("step 2 of 3", 3));
    assert_eq!(plan["prefill"].partition, 9);
}

#[test]
fn a_scale_out_ends_no_pause() {
    let mut story = Story::new(&in_halves(&json!({})));
    story.go_on();
    // Above the partition, new replicas are created at the new revision.
    story.role("prefill").ordinals.extend([NEW; 10]);
    assert_eq!(story.go_on(), (vec![[13, 2]], PAUSED.to_owned()));
    // A scale-in may take the updated replicas away: the step is done again, and the pause is the same.
    story.role("prefill").ordinals.truncate(7);
    assert_eq!(story.go_on(), (vec![[1, 2], [2, 2]], PAUSED.to_owned()));
    assert_eq!(story.at(2000).resume().go_on().1, "nothing");
}

#[test]
fn steps_may_change_in_the_middle() {
    let mut story = Story::new(&in_halves(&json!({})));
    story.go_on();
    story.at(2000).resume();
    story.decide();
    // An earlier pause is behind, and a later one is not.
    story.spell(&json!({ "steps": [
        { "prefill": "20%", "decode": "25%" }, { "pause": {} }, { "prefill": "60%", "decode": "50%" }, { "pause": {} },
        { "prefill": "100%", "decode": "100%" },
    ] }));
    assert_eq!(story.go_on().1, r#""roll" pauses after step 2 of 3 until it is resumed"#);
    // Without steps it goes on.
    story.spell(&json!({ "maxUnavailable": 1 }));
    assert!(!story.stage().is_told());
    assert_eq!(story.plan().1["prefill"].state, ProgressState::Progressing);
}

/// Only decode is edited: no step of prefill is waited for, and nothing pauses after one.
#[test]
fn a_role_that_does_not_take_part_holds_nothing_back() {
    let mut story =
        Story::new(&json!([{ "prefill": "30%" }, { "pause": {} }, { "decode": "100%" }, { "prefill": "100%" }]));
    story.roles.remove("prefill");
    assert_eq!(story.go_on(), ((1..=4).map(|decode| [OVER, decode]).collect(), "nothing".to_owned()));
}

/// A pause holds after a role whose rollout is over.
#[test]
fn a_pause_after_a_complete_role_is_a_pause() {
    let mut story = Story::new(&json!([{ "prefill": "100%" }, { "pause": {} }, { "decode": "100%" }]));
    let (way, end) = story.go_on();
    assert_eq!((way.last(), end.as_str()), (Some(&[OVER, 0]), PAUSED));
    story.edit("decode", 4, "v3");
    assert_eq!(story.go_on().1, end, "an edit of the rest is not let go unasked");
}

#[test]
fn what_partition_keeps_old_no_step_updates() {
    let mut story = Story::with(&json!({ "partition": "50%", "steps": prefill_first() }));
    let (way, end) = story.go_on();
    assert_eq!((way.last(), end.as_str()), (Some(&[5, 2]), r#""roll" is in step 3 of 3"#));
    let (_, plan) = story.plan();
    assert!(plan.values().all(|role| role.state == ProgressState::Paused), "{plan:?}");
}

#[test]
fn what_the_partition_of_its_user_keeps_old_says_so() {
    let mut story = Story::with(&json!({ "maxSkew": "100%" }));
    story.update("prefill", 8);
    story.role("prefill").floor = 8;
    let (bounds, roles) = (story.bounds.clone(), story.roles.clone());
    let told = rollouts(&story.plan().1, &Rollouts { bounds, roles, ..Rollouts::default() });
    let kept = "partition 8, Paused: its user asked for partition 8, and replicas below stay old";
    assert!(told[1].ends_with(kept), "{told:?}");
}

#[test]
fn before_the_controllers_have_seen_the_edits_nothing_is_known() {
    let mut story = Story::new(&in_halves(&json!({})));
    story.role("decode").judged = false;
    assert_eq!(stages(&story.bounds, &story.roles, &story.pauses), []);
    story.role("decode").judged = true;
    story.go_on();
    let before = story.pauses.past[&0].clone();
    story.role("decode").judged = false;
    assert_eq!(story.stage().state, before, "a write to a workload changes nothing of what is remembered");
}

/// Each step but the last waits for its own Job, whose end is remembered: the Job may be gone later. The pause begins then.
#[test]
fn a_step_ends_when_its_object_has_the_condition() {
    let object = json!({"apiVersion": "batch/v1", "kind": "Job", "name": "check-$(STEP)", "condition": "Complete"});
    let mut story = Story::with(&json!({
        "readyWhen": { "object": object },
        "steps": [{ "prefill": "30%" }, { "pause": {} }, { "decode": "100%" }, { "prefill": "100%" }],
    }));
    let jobs = |name: &str| seen("batch", "Job", "Complete", &[(name, true)], None);
    story.pauses.objects = jobs("check-2");
    let (way, end) = story.go_on();
    assert_eq!((way.last(), &*end), (Some(&[3, 0]), r#""roll" waits after step 1 of 3: Job "check-1" is not there"#));
    let prefill = &story.plan().1["prefill"];
    let reason = prefill.waits.as_ref().unwrap().reason;
    assert_eq!((reason, prefill.state), (WaitReason::Object(story.stage().number), ProgressState::Waiting));
    story.pauses.objects = jobs("check-1");
    assert_eq!(story.go_on().1, r#""roll" pauses after step 1 of 3 until it is resumed"#);
    story.at(2000).resume();
    assert_eq!(story.go_on().1, r#""roll" waits after step 2 of 3: Job "check-2" is not there"#);
    story.pauses.objects = jobs("check-2");
    assert_eq!(story.go_on().1, "nothing", "no Job is waited for after the last step, or once more");
}

/// Two prefill and one decode are updated, and prefill 8 is not ready.
fn failing() -> Story {
    let mut story = Story::with(&json!({ "onFailure": "Rollback" }));
    story.update("prefill", 8);
    story.update("decode", 3);
    story.role("prefill").ordinals[8].ready = false;
    story
}

#[test]
fn what_is_not_ready_in_time_fails_the_rollout_of_all_roles() {
    let mut story = failing();
    let what = LateWhat::Replica { role: "prefill".to_owned(), ordinal: 8, revision: Some("v2".to_owned()) };
    assert_eq!(story.stage().late, [Late { index: 0, since: Some(Moment(1000).text()), what }]);
    assert_eq!(story.stage().state.rolled_back, None, "there is time left");
    let stage = story.is_late();
    let back = stage.state.rolled_back.clone().unwrap();
    assert_eq!((back.reason.as_str(), back.since), ("ReplicasNotReady", Moment(1000).text()));
    assert_eq!(story.text(), r#""roll" was sent back: prefill-8 did not get ready within 10m"#);
    story.spell(&json!({ "onFailure": "Pause" }));
    assert!(story.stage().late.is_empty());
    assert_eq!(story.stage().state.rolled_back, None);
}

/// What is held has no room, and a replica that is not granted is not of the new revision.
#[test]
fn what_is_held_or_old_fails_nothing() {
    let mut story = failing();
    story.role("prefill").ordinals[8].held = true;
    story.role("prefill").ordinals[2].ready = false;
    assert_eq!(story.stage().late, []);
}

/// The controller of a StatefulSet comes to the next replica when the one above is ready.
#[test]
fn the_time_of_a_replica_that_is_not_updated_yet_runs_while_none_above_it_is_awaited() {
    let mut story = failing();
    let role = story.role("prefill");
    (role.partition, role.ordinals[7].ready) = (7, false);
    let late = |story: &Story| {
        let of = |late: Late| match late.what {
            LateWhat::Replica { ordinal, .. } => ordinal,
            LateWhat::Object { step } => step,
        };
        story.stage().late.into_iter().map(of).collect::<Vec<_>>()
    };
    assert_eq!(late(&story), [8]);
    story.role("prefill").ordinals[8].ready = true;
    assert_eq!(late(&story), [7]);
}

/// No replica counts before its pods were ready for as long as they must.
#[test]
fn the_time_of_a_replica_is_counted_after_the_time_for_which_its_pods_must_be_ready() {
    let mut story = failing();
    story.bounds[0].min_ready.insert("prefill".to_owned(), Duration::from_secs(900));
    let seconds = |role| story.bounds[0].fails_after(role).map(|time| time.as_secs());
    assert_eq!([Some("prefill"), Some("decode"), None].map(seconds), [Some(1500), Some(600), Some(600)]);
    story.is_late();
    assert_eq!(story.text(), r#""roll" was sent back: prefill-8 did not get ready within 25m"#);
}

/// All that is known is kept until an edit: the revisions from which it went back are not tried again.
#[test]
fn a_rollout_that_went_back_stays_so_until_the_next_edit() {
    let mut story = failing();
    story.is_late();
    story.decide();
    let before = story.pauses.past[&0].clone();
    (story.pauses.late, story.pauses.now) = (Vec::new(), Some(Moment(9000)));
    story.turn();
    assert_eq!(story.stage().state.rolled_back, before.rolled_back);
    story.edit("prefill", 10, "v3");
    let anew = story.stage().state;
    assert_eq!((anew.rolled_back, anew.since), (None, Some(Moment(9000).text())));
}

#[test]
fn a_replica_that_serves_until_it_is_replaced_is_not_told_to_be_unavailable() {
    let told = Story::with(&json!({ "maxSkew": "100%" })).told();
    assert!(told[1].ends_with(": prefill waits: prefill-9 is not replaced yet (0/10 updated and ready)"), "{told:?}");
}

#[test]
fn what_is_not_ready_goes_back_first_and_what_serves_within_the_bounds() {
    let mut story = failing();
    story.turn();
    let (_, plan) = story.plan();
    let again = |plan: &RolloutPlan| ["prefill", "decode"].map(|role| plan[role].made_again.clone());
    assert_eq!(again(&plan), [vec![8], vec![3]]);
    assert!(plan.values().all(|role| role.partition == FROZEN && role.state == ProgressState::Progressing), "{plan:?}");
    let told = "rollout of prefill: 8/10 back, 8 of them ready, partition 10, 8 made again, Progressing: prefill has as many \
                replicas unavailable as it may: prefill-8 is not ready (8/10 back and ready)";
    assert_eq!(story.told()[1], told);
    // Prefill 8 is back, and prefill 9 follows.
    story.role("prefill").ordinals[8] = NEW;
    assert_eq!(again(&story.plan().1)[0], [9]);
    story.role("prefill").ordinals[9] = NEW;
    story.role("decode").ordinals[3] = NEW;
    let (_, plan) = story.plan();
    let is_back = |role: &RolePlan| role.state == ProgressState::RolledBack && role.made_again.is_empty();
    assert!(plan.values().all(is_back), "{plan:?}");
}

#[test]
fn a_rollout_of_which_one_role_cannot_go_back_stays_as_it_is() {
    let stays = |change: &dyn Fn(&mut Story)| {
        let mut story = failing();
        story.decide();
        change(&mut story);
        let stage = story.is_late();
        assert_eq!(stage.state.rolled_back, None);
        stage.stays.unwrap()
    };
    let late = "prefill-8 did not get ready within 10m";
    let undo = "undo the edits of all its templates instead";
    let because = |why: &str| format!("{late}, and the rollout cannot go back: {why}; {undo}");
    assert_eq!(stays(&|story| _ = story.roles.remove("decode")), because(r#"the rollout of role "decode" is over"#));
    let none_old = |story: &mut Story| story.role("decode").can_return = false;
    assert_eq!(stays(&none_old), because(r#"role "decode" has no old replica"#));
    let resized = |story: &mut Story| story.role("decode").resized = true;
    assert_eq!(stays(&resized), because(r#"role "decode" changes its size, which all its revisions share"#));
    assert_eq!(stays(&|story| story.take_back("decode")), because(r#"the edit of role "decode" was taken back"#));
    assert_eq!(stays(&|story| story.pauses.off = true), because("rolegate runs without `--allow recovery`"));
}

/// The other role is tried again, and goes back alone: the first one has all its replicas at the old revision already.
#[test]
fn after_going_back_an_undo_of_one_role_leaves_it_out_of_the_rollout() {
    let mut story = failing();
    story.is_late();
    story.decide();
    (story.pauses.late, story.pauses.now) = (Vec::new(), Some(Moment(9000)));
    story.edit("prefill", 10, "v1");
    story.role("prefill").ordinals.fill(NEW);
    story.role("prefill").can_return = false;
    story.decide();
    let is_over = |story: &Story| story.pauses.past[&0].revisions.keys().cloned().collect::<Vec<_>>();
    assert_eq!((is_over(&story), story.stage().state.since), (vec!["decode".to_owned()], Some(Moment(9000).text())));
    story.roles.remove("prefill");
    story.role("decode").ordinals[3].ready = false;
    story.is_late();
    assert_eq!(story.text(), r#""roll" was sent back: decode-3 did not get ready within 10m"#);
}

/// It goes back by itself, and the others may, once it is there.
#[test]
fn a_role_whose_edit_was_taken_back_is_not_awaited_by_a_rollout_that_goes_back() {
    let mut story = failing();
    story.decide();
    story.take_back("decode");
    story.decide();
    assert!(story.is_late().stays.unwrap().contains("the edit of role \"decode\" was taken back"));
    story.roles.remove("decode");
    assert_eq!(story.is_late().state.rolled_back.unwrap().reason, "ReplicasNotReady");
}

#[test]
fn a_person_sends_the_rollout_of_that_time_back_and_no_later_one() {
    let mut story = failing();
    story.spell(&json!({ "maxSkew": "10%" }));
    story.pauses.rolled_back = Some(Moment(2000));
    story.at(1500).decide();
    assert_eq!(story.stage().state.rolled_back, None, "it was asked for before the rollout was seen");
    story.pauses.rolled_back = Some(Moment(2500));
    assert_eq!(story.text(), r#""roll" was sent back: a person asked for it"#);
    story.edit("prefill", 10, "v3");
    assert_eq!(story.stage().state.rolled_back, None);
}

/// A workload without old replicas has no older revision any more.
#[test]
fn where_a_rollout_may_go_back_the_last_old_replicas_of_all_roles_go_together() {
    let ends = |update: &Value| {
        let mut story = Story::with(update);
        let (way, end) = story.go_on();
        assert_eq!(end, "nothing");
        way
    };
    assert!(ends(&json!({})).contains(&[5, OVER]), "decode is done long before prefill");
    let way = ends(&json!({ "onFailure": "Rollback" }));
    assert_eq!(way[way.len() - 2..], [[9, 3], [10, 4]], "{way:?}");
    let way = ends(&json!({ "onFailure": "Rollback", "steps": prefill_first() }));
    assert_eq!(way[..7], [[1, 0], [2, 0], [3, 0], [3, 1], [3, 2], [3, 3], [4, 3]], "{way:?}");
    assert_eq!(way[way.len() - 2..], [[9, 3], [10, 4]], "{way:?}");
}

#[test]
fn the_last_old_replica_waits_for_the_others() {
    let mut story = Story::with(&json!({ "onFailure": "Rollback" }));
    story.update("prefill", 1);
    story.update("decode", 2);
    let (_, plan) = story.plan();
    assert_eq!((plan["prefill"].partition, plan["decode"].partition), (1, 1));
    let text = "prefill keeps its last old replica until all roles can go: decode is at 2/4 updated and ready, next is decode-1";
    assert_eq!(story.waits("prefill"), text);
}

/// The canary of a rollout, which a check judges by a condition.
#[test]
fn an_object_that_does_not_get_its_condition_fails_the_rollout() {
    let object = json!({"apiVersion": "example.com/v1", "kind": "Check", "name": "canary", "condition": "Passed"});
    let mut story = Story::with(&json!({
        "onFailure": "Rollback", "failAfter": "30s", "readyWhen": { "object": object },
        "steps": [{ "prefill": "30%" }, { "pause": {} }, { "prefill": "100%", "decode": "100%" }],
    }));
    let check = |is_true: Option<bool>| {
        let all: Vec<_> = is_true.map(|is_true| ("canary", is_true)).into_iter().collect();
        seen("example.com", "Check", "Passed", &all, Some(Moment(7)))
    };
    // Before the check is there, nobody has judged the canary.
    story.pauses.objects = check(None);
    story.go_on();
    assert_eq!(story.stage().late, []);
    story.pauses.objects = check(Some(true));
    assert_eq!(story.go_on().1, PAUSED);
    // It fails during the pause.
    story.pauses.objects = check(Some(false));
    let late = Late { index: 0, since: Some(Moment(1000).text()), what: LateWhat::Object { step: 1 } };
    assert_eq!(story.stage().late, [late]);
    let stage = story.is_late();
    let text = "\"roll\" was sent back: the step was not accepted within 30s: condition Passed of Check \"canary\" is not True, since 1970-01-01T00:00:07Z";
    assert_eq!(story.text(), text);
    assert_eq!(stage.state.rolled_back.unwrap().reason, "ObjectNotReady");
}
