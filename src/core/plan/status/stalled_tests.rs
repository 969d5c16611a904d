use serde_json::json;

use crate::api::status::{CoordinationState, GroupStatus, RolledBack, RolloutState};
use crate::plan::test_support::mk_group;
use crate::plan::view::counts::{ObservedCounts, RoleCounts};
use crate::plan::{DecisionContext, Observation, evaluate};

/// Returns the status of a group in which nothing has moved for too long, of four `a` with two new ones, of which one is not ready.
fn stalled(failed: bool, stored: Option<RolledBack>) -> GroupStatus {
    let update = json!({ "rollingUpdate": { "onFailure": "Rollback" } });
    let mut group = mk_group(&[("a", 4)], &json!([{ "name": "roll", "roles": ["a"], "strategy": update }]));
    let rollout = RolloutState { rolled_back: stored, ..RolloutState::default() };
    let state = CoordinationState { name: "roll".to_owned(), rollout: Some(rollout), ..CoordinationState::default() };
    group.status.coordination_state = vec![state];
    let counts = RoleCounts { ready: 4, updated: Some(2), updated_ready: 1, ..RoleCounts::default() };
    let observed = ObservedCounts { roles: [("a".to_owned(), counts)].into(), failed, ..ObservedCounts::default() };
    let view = observed.view(&group, &[].into()).unwrap();
    let observation = Observation { rollouts: observed.rollouts(&group), view };
    evaluate(&group, observation, DecisionContext { stalled: true, ..DecisionContext::default() }, None).status
}

fn told(status: &GroupStatus) -> (&str, &str) {
    (&status.condition("Progressing").unwrap().reason, &status.summary.as_ref().unwrap().reason)
}

#[test]
fn a_rollout_that_is_sent_back_moves_and_has_not_stalled() {
    assert_eq!(told(&stalled(false, None)), ("ProgressDeadlineExceeded", "RolloutStalled"));
    assert_eq!(told(&stalled(true, None)), ("Progressing", "RolledBack"));
}

#[test]
fn when_nothing_moves_on_the_way_back_the_rollout_is_still_the_one_that_went_back() {
    let status = stalled(true, Some(RolledBack::default()));
    assert_eq!(told(&status), ("ProgressDeadlineExceeded", "RolledBack"));
    let message = &status.summary.as_ref().unwrap().message;
    let why =
        "\"roll\" was sent back: a-2 did not get ready within 10m; a has as many replicas unavailable as it may: a-2";
    assert!(message.starts_with(why), "{message}");
}
