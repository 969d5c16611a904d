use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::json;

use super::*;
use crate::api::status::LostPod;
use crate::model::HoldReason;
use crate::plan::decide::DecisionContext;
use crate::plan::evaluate::Evaluation;
use crate::plan::rollout::RoleRollout;
use crate::plan::test_support::{mk_evaluation, mk_group, mk_pod, shared};
use crate::plan::view::{Leaving, LossKind, PodFacts};

const NOW: Moment = Moment(1_767_225_600);

/// A group of two segments of two `p` and one `d`, with a loop that stores each decision.
struct Case {
    group: Group,
    pods: BTreeMap<String, PodFacts>,
    leaving: Vec<Leaving>,
    now: Moment,
    judged: Vec<Judged>,
    unready: Vec<BatchId>,
    moves: BTreeSet<BatchId>,
    off: bool,
    rests: bool,
    brake: BrakeContext,
    made: u32,
}

impl Case {
    fn new(recovery: &serde_json::Value) -> Self {
        let placement = json!({ "segmentSize": { "p": 2, "d": 1 }, "recovery": recovery });
        let group =
            mk_group(&[("p", 4), ("d", 2)], &json!([{ "name": "pd", "strategy": { "segmentPlacement": placement } }]));
        let (pods, leaving, judged, unready, moves) = Default::default();
        let (now, off, rests, brake, made) = (NOW, false, false, BrakeContext::default(), 0);
        let mut case = Self { group, pods, leaving, now, judged, unready, moves, off, rests, brake, made };
        let all = [("p", 0), ("p", 1), ("p", 2), ("p", 3), ("d", 0), ("d", 1)];
        all.into_iter().for_each(|(role, ordinal)| case.make(role, ordinal, false));
        case.all_ready();
        case.commit();
        assert_eq!(case.complete(), "0-1");
        case
    }

    /// Segments that are made anew.
    fn recreating() -> Self {
        Self::new(&json!({ "policy": "Recreate" }))
    }

    /// The second of them has lost a pod's readiness for longer than it may.
    fn unready() -> Self {
        let mut case = Self::new(&json!({ "policy": "Recreate", "unreadyFor": "30s" }));
        case.fails("d-1");
        case.unready = vec![(0, 1)];
        case
    }

    /// Adds a pod, held or released.
    fn make(&mut self, role: &str, ordinal: u32, held: bool) {
        self.made += 1;
        let name = format!("{role}-{ordinal}");
        let mut pod = mk_pod(&name, role, ordinal);
        pod.pod.uid = format!("{name}-{}", self.made).into();
        pod.created = Some(format!("2026-01-01T00:{:02}:00Z", self.made).into());
        (pod.held, pod.scheduled) = (held, !held);
        self.pods.insert(name, pod);
    }

    fn all_ready(&mut self) {
        self.pods.values_mut().for_each(|pod| (pod.scheduled, pod.ready) = (!pod.held, !pod.held));
    }

    fn evaluate(&self) -> Evaluation {
        let pods: Vec<_> = self.pods.values().cloned().collect();
        let mut view = GroupView::build(&self.group, &shared(&pods));
        view.leaving.clone_from(&self.leaving);
        let recovery = RecoveryContext {
            off: self.off,
            now: Some(self.now),
            rests: self.rests,
            verdicts: &self.judged,
            unready: &self.unready,
            moves: &self.moves,
            brake: self.brake,
        };
        mk_evaluation(&self.group, &view, DecisionContext { recovery: &recovery, ..DecisionContext::default() })
    }

    /// Stores the decision; returns the next one.
    fn commit(&mut self) -> Evaluation {
        self.group.status = self.evaluate().status;
        self.evaluate()
    }

    /// Judges all losses like this.
    fn judge(&mut self, verdict: &Verdict) {
        let suspects = self.evaluate().decision.recovery.suspects;
        assert_ne!(suspects, []);
        let of = |one: Suspect| Judged { id: one.id, loss: one.loss, verdict: verdict.clone() };
        self.judged = suspects.into_iter().map(of).collect();
    }

    /// Judges all losses as real.
    fn lost(&mut self) -> Evaluation {
        self.judge(&failed());
        self.commit()
    }

    /// Makes the pods of batch 0 anew.
    fn made_anew(&mut self, held: bool) {
        [("p", 0), ("p", 1), ("d", 0)].into_iter().for_each(|(role, ordinal)| self.make(role, ordinal, held));
    }

    /// Lets the pods of batch 0 go and get ready.
    fn runs(&mut self) {
        for name in ["p-0", "p-1", "d-0"] {
            let pod = self.pods.get_mut(name).unwrap();
            (pod.held, pod.scheduled, pod.ready) = (false, true, true);
        }
    }

    /// The batches that were complete.
    fn complete(&self) -> &str {
        &self.group.status.coordination_state[0].complete_batches
    }

    /// A pod is not ready any more.
    fn fails(&mut self, pod: &str) {
        self.pods.get_mut(pod).unwrap().ready = false;
    }

    fn phases(&self) -> Vec<(u32, &str, u32)> {
        let entries = self.group.status.recoveries.iter();
        entries.map(|entry| (entry.batch, entry.phase.as_str(), entry.attempt)).collect()
    }

    /// Recreates the pods of batch 0, releases them and makes them ready.
    fn recreated(&mut self) {
        self.made_anew(true);
        self.judged.clear();
        self.commit();
        assert_eq!(self.phases()[0].1, "Releasing");
        self.runs();
        self.commit();
    }
}

/// The verdict on a pod that failed.
fn failed() -> Verdict {
    Verdict::Lost(LastWords { pod: "p-1".to_owned(), kind: LossKind::PodFailed, ..LastWords::default() })
}

fn released(seen: &Evaluation) -> Vec<(String, bool)> {
    seen.decision.release.iter().map(|release| (release.pod.pod.name.to_string(), release.at_once)).collect()
}

fn deleted(seen: &Evaluation) -> Vec<&str> {
    seen.decision.recovery.delete.iter().map(|deletion| &*deletion.pod.pod.uid).collect()
}

#[test]
fn a_batch_that_loses_a_replica_is_looked_at_committed_deleted_awaited_and_let_go_together() {
    let mut case = Case::recreating();
    case.make("p", 1, true);
    let seen = case.evaluate();
    assert_eq!(seen.decision.recovery.suspects[0].loss, Loss { role: "p".to_owned(), ordinal: 1, unready: Vec::new() });
    assert_eq!((released(&seen), deleted(&seen)), (vec![], vec![]), "until it is looked at, nothing is done");
    assert_eq!(seen.decision.held[0].reason, HoldReason::Recovering);
    assert!(!seen.needs_commit(&case.group), "nothing is forgotten meanwhile");
    let seen = case.lost();
    assert_eq!(case.phases(), [(0, "Recreating", 1)]);
    let entry = case.group.status.recoveries[0].clone();
    assert_eq!((entry.reason.as_str(), entry.since.as_deref()), ("PodFailed", Some("2026-01-01T00:00:00Z")));
    let lost = LostPod { role: "p".to_owned(), ordinal: 1, pod: "p-1".to_owned(), ..LostPod::default() };
    assert_eq!(entry.lost, Some(lost));
    assert_eq!(case.complete(), "1");
    assert_eq!(deleted(&seen), ["d-0-5", "p-0-1"], "none that is held, and none of the other batch");
    case.pods.remove("d-0");
    case.make("p", 0, true);
    let seen = case.commit();
    assert_eq!((released(&seen), deleted(&seen)), (vec![], vec![]));
    let told = "segment 1 is held: it is made anew (recovery 1 of 3), since pod p-1 failed: 0/1 d and 2/2 p exist";
    assert_eq!(seen.decision.held[0].message, told);
    case.make("d", 0, true);
    let leaving = Leaving { pod: case.pods["d-0"].pod.clone(), role: "d".into(), ordinal: 0, node: "n1".into() };
    case.leaving = vec![leaving];
    let seen = case.commit();
    assert_eq!(released(&seen), [], "an old pod still runs");
    assert!(seen.decision.held[0].message.ends_with("1/1 d and 2/2 p exist, 1 old pod still there (d-0 on node n1)"));
    case.leaving.clear();
    let seen = case.evaluate();
    let all = |at_once| vec![("d-0".to_owned(), at_once), ("p-0".to_owned(), at_once), ("p-1".to_owned(), at_once)];
    assert_eq!(released(&seen), all(false), "that they go is committed first");
    let seen = case.commit();
    assert_eq!((case.phases(), released(&seen)), (vec![(0, "Releasing", 1)], all(true)));
    case.pods.values_mut().for_each(|pod| pod.held = false);
    assert_eq!(deleted(&case.commit()), Vec::<&str>::new(), "the new ones are let go, and stay");
    case.all_ready();
    case.commit();
    assert_eq!(case.phases(), [(0, "Complete", 1)]);
    assert_eq!(case.complete(), "0-1");
}

#[test]
fn a_batch_that_was_never_complete_is_not_recovered() {
    let mut case = Case::recreating();
    case.group.status.coordination_state[0].complete_batches = "1".to_owned();
    case.make("p", 1, true);
    let seen = case.commit();
    assert_eq!((released(&seen), seen.decision.recovery.broken.len()), (vec![("p-1".to_owned(), true)], 0));
}

#[test]
fn what_is_not_lost_comes_back_at_once_and_its_batch_has_to_be_complete_again() {
    let mut case = Case::recreating();
    case.make("p", 1, true);
    case.judge(&Verdict::NotLost);
    let seen = case.commit();
    assert_eq!(released(&seen), [("p-1".to_owned(), true)]);
    assert_eq!(case.complete(), "1");
    case.pods.get_mut("p-1").unwrap().held = false;
    case.all_ready();
    case.judged.clear();
    case.commit();
    assert_eq!((case.complete(), case.phases()), ("0-1", vec![]));
}

#[test]
fn the_second_recovery_waits_and_beyond_the_limit_the_batch_is_left_until_all_are_ready_or_the_spec_changes() {
    let mut case = Case::new(&json!({ "policy": "Recreate", "limit": 2, "window": "10m" }));
    let lose = |case: &mut Case| {
        case.make("p", 1, true);
        case.lost()
    };
    lose(&mut case);
    case.recreated();
    let seen = lose(&mut case);
    assert_eq!((case.phases(), deleted(&seen)), (vec![(0, "Waiting", 2)], vec![]));
    assert_eq!(seen.decision.recovery.due, Some(NOW.after(Duration::from_secs(10))));
    assert_eq!(released(&seen), []);
    case.now = NOW.after(Duration::from_secs(10));
    assert_eq!((deleted(&case.commit()).len(), case.phases()), (2, vec![(0, "Recreating", 2)]));
    case.recreated();
    let seen = lose(&mut case);
    assert_eq!((case.phases(), deleted(&seen)), (vec![(0, "Exhausted", 2)], vec![]));
    let is_said = |case: &Case| case.group.status.condition("RecoveryExhausted").is_some();
    assert!(is_said(&case));
    assert_eq!(released(&seen), [("p-1".to_owned(), true)], "it is left to itself");
    case.pods.get_mut("p-1").unwrap().held = false;
    case.judged.clear();
    let exhausted = case.group.clone();
    case.group.carrier.generation = Some(7);
    case.commit();
    assert_eq!((case.phases(), is_said(&case)), (vec![], false), "the spec has changed");
    case.group = exhausted;
    case.all_ready();
    case.commit();
    assert_eq!((case.phases(), is_said(&case)), (vec![(0, "Complete", 2)], false), "all are ready again");
    case.now = case.now.after(Duration::from_secs(600));
    case.commit();
    assert_eq!(case.phases(), [], "what is older than the window is forgotten");
}

#[test]
fn a_replica_that_is_not_ready_for_too_long_is_lost_and_a_recovery_that_waits_ends_when_it_is_ready_again() {
    let mut case = Case::new(&json!({ "policy": "Recreate", "unreadyFor": "60s" }));
    case.fails("d-1");
    let seen = case.evaluate();
    assert_eq!(seen.decision.recovery.unready, [((0, 1), Duration::from_secs(60))]);
    assert!(seen.decision.recovery.suspects.is_empty());
    case.unready = vec![(0, 1)];
    let seen = case.lost();
    assert_eq!((case.phases(), deleted(&seen)), (vec![(1, "Recreating", 1)], vec!["d-1-6", "p-2-3", "p-3-4"]));
    let mut case = Case::recreating();
    case.fails("d-1");
    assert!(case.evaluate().decision.recovery.unready.is_empty(), "by default none is lost for that");
    case.group.status.recoveries = vec![RecoveryState {
        coordination: "pd".to_owned(),
        batch: 1,
        phase: "Waiting".to_owned(),
        not_before: Some("2026-01-01T00:01:00Z".to_owned()),
        ..RecoveryState::default()
    }];
    case.commit();
    assert_eq!(case.phases(), [(1, "Waiting", 0)]);
    case.all_ready();
    case.commit();
    assert_eq!(case.phases()[0].1, "Complete");
}

#[test]
fn a_rollout_a_fault_growth_or_no_right_begins_no_recovery() {
    let mut case = Case::recreating();
    case.make("p", 1, true);
    let pods: Vec<_> = case.pods.values().cloned().collect();
    let view = GroupView::build(&case.group, &shared(&pods));
    let mut rollouts = Rollouts::default();
    rollouts.roles.insert("d".to_owned(), RoleRollout::default());
    let plan = plan_recovery(&case.group, &view, &rollouts, RecoveryContext::default());
    assert_eq!((plan.suspects.len(), plan.blocked.len(), plan.complete[&0].batches.as_str()), (0, 0, "1"));
    case.rests = true;
    let (seen, back) = (case.evaluate(), [("p-1".to_owned(), true)]);
    assert_eq!((released(&seen), &*seen.decision.recovery.complete[&0].batches), (back.to_vec(), "0-1"));
    (case.rests, case.off) = (false, true);
    let seen = case.evaluate();
    assert_eq!((released(&seen), seen.decision.recovery.without_effect), (back.to_vec(), vec!["pd".to_owned()]));
    let progressing = seen.status.condition("Progressing").unwrap();
    assert!(progressing.message.is_empty() || progressing.message.contains("--allow recovery"));
    let mut case = Case::recreating();
    case.group.status.coordination_state[0].complete_replicas.insert("p".to_owned(), 3);
    case.make("p", 3, true);
    assert_eq!(released(&case.evaluate()), [("p-3".to_owned(), true)], "what has grown was never complete");
    let mut case = Case::recreating();
    case.group.status.coordination_state[0].complete_sizes.insert("p".to_owned(), 1);
    case.make("p", 3, true);
    assert_eq!(released(&case.evaluate()), [("p-3".to_owned(), true)], "with other sizes they are other batches");
}

#[test]
fn a_pod_that_came_without_its_gate_is_not_deleted_again() {
    let mut case = Case::recreating();
    case.pods.remove("p-1");
    case.lost();
    case.made_anew(false);
    let seen = case.commit();
    assert_eq!((deleted(&seen), case.phases()), (vec![], vec![(0, "Releasing", 1)]));
}

#[test]
fn the_leader_of_several_pods_goes_and_takes_the_others_with_it() {
    let mut case = Case::recreating();
    for (name, member) in [("d-0", 0), ("d-0-1", 1)] {
        let mut pod = case.pods["d-0"].clone();
        pod.pod = PodRef { name: name.into(), uid: name.into() };
        (pod.identity.replica_size, pod.identity.member) = (2, Some(member));
        case.pods.insert(name.to_owned(), pod);
    }
    case.pods.remove("p-1");
    let seen = case.lost();
    let all = seen.decision.recovery.delete.iter().map(|one| (&*one.pod.pod.name, one.with_dependents));
    assert!(all.eq([("d-0", true), ("p-0", false)]));
}

fn at(seconds: i64) -> Moment {
    Moment(NOW.0 + seconds)
}

/// Both segments have lost a replica, and both losses are judged.
fn both_lost(recovery: &serde_json::Value) -> Case {
    let mut case = Case::new(recovery);
    case.make("p", 1, true);
    case.make("p", 3, true);
    case.judge(&failed());
    case
}

#[test]
fn of_two_batches_the_second_waits_until_the_first_is_complete_again_or_takes_too_long() {
    let mut case = both_lost(&json!({ "policy": "Recreate" }));
    let seen = case.commit();
    assert_eq!(case.phases(), [(0, "Recreating", 1), (1, "Waiting", 1)]);
    let recovery = &seen.decision.recovery;
    assert_eq!((recovery.brake.stop == Some(Stop::Others), recovery.due), (true, Some(at(600))));
    let held: Vec<_> = seen.decision.held.iter().map(|held| held.message.as_str()).collect();
    let told = "it waits until another recovery of the group is over (`maxConcurrent: 1`)";
    assert!(held.iter().any(|held| held.contains(told)), "{held:?}");
    let stuck = case.now;
    case.now = at(599);
    case.commit();
    assert_eq!(case.phases()[1].1, "Waiting");
    case.now = at(600);
    case.commit();
    assert_eq!(case.phases()[1].1, "Recreating", "what takes so long waits for something itself");
    let mut case = both_lost(&json!({ "policy": "Recreate" }));
    case.now = stuck;
    case.commit();
    case.judged.clear();
    case.made_anew(true);
    case.commit();
    assert_eq!(case.phases(), [(0, "Releasing", 1), (1, "Waiting", 1)]);
    case.runs();
    case.commit();
    case.commit();
    assert_eq!(case.phases(), [(0, "Complete", 1), (1, "Recreating", 1)]);
}

#[test]
fn so_many_are_made_anew_at_once_as_the_group_says_and_all_groups_together_may() {
    let begins = |concurrent: u32, brake: BrakeContext| {
        let mut case = both_lost(&json!({ "policy": "Recreate", "maxConcurrent": concurrent }));
        case.brake = brake;
        case.commit();
        case.phases().into_iter().filter(|(_, phase, _)| *phase == "Recreating").count()
    };
    let others = |batches, under_way| Tally { batches, under_way, unready: 0 };
    let brake = |others, most| BrakeContext { others, most, unseen: false };
    assert_eq!(begins(2, brake(others(0, 0), Some(2))), 2);
    assert_eq!(begins(2, brake(others(0, 0), None)), 1, "a tenth of two, and at least one");
    assert_eq!(begins(2, brake(others(18, 0), None)), 2);
    assert_eq!(begins(2, brake(others(18, 1), None)), 1);
    assert_eq!(begins(2, brake(others(18, 2), None)), 0);
    assert_eq!(begins(2, brake(others(18, 2), Some(3))), 1);
    assert_eq!(begins(2, BrakeContext { most: Some(2), unseen: true, ..BrakeContext::default() }), 0);
}

#[test]
fn while_many_batches_look_broken_none_is_made_anew_until_fewer_do_or_a_person_says_so() {
    let told = |case: &Case| {
        case.group.status.condition("RecoveryPaused").map(|told| (told.status.clone(), told.message.clone()))
    };
    let stamp = |case: &mut Case, time: &str| {
        let all = case.group.status.conditions.iter_mut();
        all.filter(|told| told.last_transition_time.is_none()).for_each(|told| {
            told.last_transition_time = Some(time.to_owned());
        });
    };
    let mut case = Case::unready();
    case.brake = BrakeContext { others: Tally { batches: 7, unready: 2, under_way: 0 }, ..BrakeContext::default() };
    assert_eq!(case.evaluate().decision.recovery.suspects.len(), 1, "three of nine are a third, and not more");
    case.brake.others.batches = 6;
    let seen = case.commit();
    assert!(seen.decision.recovery.suspects.is_empty());
    let message = "3 of 8 batches look broken at once, which one cause is likely to do: none is made anew until fewer do; \
                   `rolegate resume pd -n ns` has them made anew all the same";
    assert_eq!(told(&case), Some(("True".to_owned(), message.to_owned())));
    assert_eq!(case.complete(), "0-1", "it is not forgotten that it was complete");
    let paused = case.group.clone();
    case.brake.others.unready = 1;
    assert_eq!(case.commit().decision.recovery.suspects.len(), 1);
    assert_eq!(told(&case), None, "fewer do");
    case.group = paused.clone();
    let seen = case.evaluate();
    assert!(seen.decision.recovery.brake.cleared && seen.decision.recovery.suspects.is_empty(), "it has its time anew");
    (case.group, case.brake.others.unready) = (paused, 2);
    stamp(&mut case, "2026-01-01T00:00:10Z");
    case.group.carrier.resumed = Some(at(9));
    assert!(case.commit().decision.recovery.suspects.is_empty(), "that was said of an earlier pause");
    stamp(&mut case, "2026-01-01T00:00:10Z");
    case.group.carrier.resumed = Some(at(10));
    assert_eq!(case.commit().decision.recovery.suspects.len(), 1);
    assert_eq!(told(&case).unwrap().0, "False");
    stamp(&mut case, "2026-01-01T00:00:20Z");
    assert_eq!(case.commit().decision.recovery.suspects.len(), 1, "that it goes on is said once, and stays so");
    case.brake.others.unready = 0;
    case.commit();
    assert_eq!(told(&case), None);
    case.brake.others.unready = 2;
    assert!(case.commit().decision.recovery.suspects.is_empty(), "the next time is another one");
}

#[test]
fn a_batch_on_a_node_that_does_not_answer_is_kept_and_looked_at_again() {
    let mut case = Case::unready();
    case.judge(&Verdict::Unknown { pod: "d-1".to_owned(), node: "n1".to_owned() });
    let seen = case.commit();
    let told = "segment 2 is not made anew: node n1 of pod d-1 does not answer, and the pod is not deleted";
    assert_eq!(seen.decision.recovery.unknown[&(0, 1)], told);
    assert_eq!((case.phases(), deleted(&seen), seen.decision.recovery.suspects.len()), (vec![], vec![], 0));
    assert_eq!(case.complete(), "0-1");
    let paused = seen.status.condition("RecoveryPaused").unwrap();
    assert_eq!((&*paused.status, &*paused.reason), ("True", "NodeNotReady"), "{paused:?}");
    let mut resumed = case.group.clone();
    for told in resumed.status.conditions.iter_mut().filter(|told| told.r#type == "RecoveryPaused") {
        told.last_transition_time = Some("2026-01-01T00:00:00Z".to_owned());
    }
    resumed.carrier.resumed = Some(NOW);
    let silent = std::mem::replace(&mut case.group, resumed);
    case.commit();
    assert_eq!(case.phases(), [(1, "Recreating", 1)], "a person says so");
    case.group = silent;
    case.pods.remove("d-1");
    assert_eq!(case.commit().decision.recovery.suspects.len(), 1, "its pod goes: that is another loss");
}

#[test]
fn what_was_made_anew_too_often_is_again_when_a_person_says_so() {
    let mut case = Case::new(&json!({ "policy": "Recreate", "limit": 1 }));
    case.make("p", 1, true);
    case.lost();
    case.recreated();
    case.make("p", 1, true);
    case.lost();
    assert_eq!(case.phases(), [(0, "Exhausted", 1)]);
    case.group.carrier.resumed = Some(at(-1));
    case.commit();
    assert_eq!(case.phases(), [(0, "Exhausted", 1)], "that was said before");
    case.group.carrier.resumed = Some(at(0));
    let seen = case.commit();
    assert_eq!((case.phases(), deleted(&seen).len()), (vec![(0, "Recreating", 1)], 2));
    assert_eq!(case.group.status.recoveries[0].attempts.len(), 1, "what was before does not count");
}

#[test]
fn batches_that_wait_or_are_recreated_for_unready_pods_count_as_broken_until_they_are_ready() {
    let mut case = Case::new(&json!({ "policy": "Recreate", "unreadyFor": "30s" }));
    let unready = |case: &Case| case.evaluate().decision.recovery.brake.own.unready;
    for (batch, name) in [(0, "d-0"), (1, "d-1")] {
        case.pods.get_mut(name).unwrap().ready = false;
        case.unready = vec![(0, batch)];
        case.lost();
    }
    assert_eq!(case.phases(), [(0, "Recreating", 1), (1, "Waiting", 1)]);
    assert_eq!(unready(&case), 2, "a slow cause has broken both");
    case.now = at(600);
    assert_eq!(unready(&case), 1, "what takes so long holds up no other");
    case.now = NOW;
    case.brake.others = Tally { batches: 4, unready: 1, under_way: 0 };
    case.commit();
    let paused = |case: &Case| case.group.status.condition("RecoveryPaused").is_some();
    assert!(paused(&case));
    case.brake.others.unready = 0;
    case.commit();
    assert_eq!((case.phases()[1].1, paused(&case)), ("Waiting", false));
    let not_before = case.group.status.recoveries[1].not_before.as_deref();
    assert_eq!(not_before, Some("2026-01-01T00:00:30Z"), "it has its time anew");
    case.pods.remove("p-3");
    assert_eq!(unready(&case), 1, "a batch that lacks a replica does not come back by itself");
    case.made_anew(true);
    case.commit();
    assert_eq!((case.phases()[0].1, unready(&case)), ("Releasing", 1));
    case.runs();
    assert_eq!(unready(&case), 0);
}

#[test]
fn the_own_cause_of_a_group_shows_among_many_other_batches() {
    let mut case = Case::new(&json!({ "policy": "Recreate", "unreadyFor": "30s" }));
    case.brake.others = Tally { batches: 9, unready: 0, under_way: 0 };
    let brake = |unready| Brake::of(&case.group, Tally { batches: 3, unready, under_way: 0 }, case.brake);
    assert!(!brake(2).is_on());
    assert!(brake(3).is_on());
    assert_eq!(text::many_text(&brake(3)), "3 of 3 batches of the group look broken at once");
    case.brake.others.unready = 4;
    let many = Brake::of(&case.group, Tally { batches: 3, unready: 3, under_way: 0 }, case.brake);
    assert_eq!(text::many_text(&many), "7 of 12 batches look broken at once");
}

#[test]
fn a_batch_that_moves_is_recreated_without_a_policy_within_the_usual_limit_unless_its_rest_finds_room() {
    let mut case = Case::recreating();
    for coordination in &mut case.group.coordinations {
        coordination.batchings.iter_mut().for_each(|batching| batching.recovery = None);
    }
    let stuck = |case: &mut Case| {
        let pod = case.pods.get_mut("d-0").unwrap();
        (pod.scheduled, pod.ready) = (false, false);
        case.moves = [(0, 0)].into();
    };
    assert_eq!((deleted(&case.commit()), case.phases()), (vec![], vec![]));
    stuck(&mut case);
    case.off = true;
    assert_eq!((deleted(&case.commit()), case.phases()), (vec![], vec![]), "without the right");
    case.off = false;
    let seen = case.commit();
    assert_eq!((case.phases(), deleted(&seen)), (vec![(0, "Recreating", 1)], vec!["d-0-5", "p-0-1", "p-1-2"]));
    assert_eq!(case.group.status.recoveries[0].reason, "NoRoom");
    case.moves.clear();
    case.recreated();
    assert_eq!(case.phases(), [(0, "Complete", 1)]);
    stuck(&mut case);
    case.commit();
    assert_eq!(case.phases(), [(0, "Waiting", 2)], "the second time after a pause");
    case.moves.clear();
    let seen = case.commit();
    assert_eq!((deleted(&seen), case.phases()), (vec![], vec![(0, "Complete", 2)]), "its rest has room by now");
    case.all_ready();
    for _ in 0..2 {
        stuck(&mut case);
        case.commit();
        case.now = at(case.now.0 - NOW.0 + 400);
        case.commit();
        case.moves.clear();
        case.recreated();
    }
    stuck(&mut case);
    let seen = case.commit();
    assert_eq!((case.phases(), deleted(&seen)), (vec![(0, "Exhausted", 3)], vec![]));
    case.pods.remove("p-3");
    assert_eq!(case.evaluate().decision.recovery.suspects, [], "a loss is none of its business");
}
