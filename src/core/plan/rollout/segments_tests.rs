use serde_json::{Value, json};

use crate::model::ProgressState;
use crate::model::RollingBounds;
use crate::model::rolling::FROZEN;
use crate::plan::rollout::{Ordinal, RoleRollout, RolloutPlan, Rollouts, plan_rollout, waits_for};
use crate::plan::test_support::mk_group;

use super::*;

const OLD: Ordinal =
    Ordinal { updated: false, ready: true, held: false, new: false, displaced: false, given_up: false };
const NEW: Ordinal = Ordinal { updated: true, ..OLD };
const DOWN: Ordinal = Ordinal { ready: false, ..OLD };

/// Ten prefill and five decode in segments of two and one.
fn bounds(update: &Value) -> Vec<RollingBounds> {
    let mut update = update.clone();
    update["by"] = json!("Segment");
    let segments = json!({ "segmentSize": { "prefill": 2, "decode": 1 } });
    let roll = json!({
        "name": "roll",
        "roles": ["prefill", "decode"],
        "strategy": { "rollingUpdate": update, "segmentPlacement": segments },
    });
    RollingBounds::all_of(&mk_group(&[("prefill", 10), ("decode", 5)], &json!([roll])))
}

fn roles(parts: [&[(usize, Ordinal)]; 2], partitions: [u32; 2]) -> BTreeMap<String, RoleRollout> {
    let role = |(parts, partition): (&[(usize, Ordinal)], u32)| {
        let ordinals = parts.iter().flat_map(|(count, one)| std::iter::repeat_n(*one, *count)).collect();
        RoleRollout { partition, ordinals, judged: true, settled: true, ..RoleRollout::default() }
    };
    let [prefill, decode] = [(parts[0], partitions[0]), (parts[1], partitions[1])].map(role);
    BTreeMap::from([("prefill".to_owned(), prefill), ("decode".to_owned(), decode)])
}

fn plan(update: &Value, roles: &BTreeMap<String, RoleRollout>) -> RolloutPlan {
    plan_rollout(&bounds(update), roles, &[])
}

fn partitions(plan: &RolloutPlan) -> [u32; 2] {
    ["prefill", "decode"].map(|role| plan.get(role).map_or(0, |role| role.partition))
}

#[test]
fn the_replicas_of_one_segment_go_together_and_the_next_follows_when_all_are_ready() {
    let start = roles([&[(10, OLD)], &[(5, OLD)]], [FROZEN, FROZEN]);
    assert_eq!(partitions(&plan(&json!({}), &start)), [8, 4]);
    // Prefill is ready, and decode is not.
    let half = roles([&[(8, OLD), (2, NEW)], &[(4, OLD), (1, Ordinal { ready: false, ..NEW })]], [8, 4]);
    let waiting = plan(&json!({}), &half);
    assert_eq!(partitions(&waiting), [8, 4]);
    let rollouts = Rollouts { roles: half, ..Rollouts::default() };
    let text = "prefill waits for segment 5: decode-4 is not ready (decode is at 0/5 updated and ready)";
    assert_eq!(waits_for("prefill", waiting["prefill"].waits.as_ref().unwrap(), &rollouts), text);
    assert_eq!(waiting["prefill"].state, ProgressState::Waiting);
    let ready = roles([&[(8, OLD), (2, NEW)], &[(4, OLD), (1, NEW)]], [8, 4]);
    assert_eq!(partitions(&plan(&json!({}), &ready)), [6, 3]);
    assert_eq!(partitions(&plan(&json!({ "maxUnavailable": "40%" }), &ready)), [4, 2]);
}

#[test]
fn a_segment_that_was_granted_in_part_is_granted_wholly() {
    let part = roles([&[(10, OLD)], &[(5, OLD)]], [8, FROZEN]);
    assert_eq!(partitions(&plan(&json!({}), &part)), [8, 4]);
}

#[test]
fn a_broken_segment_costs_nothing_and_stops_those_above_it() {
    let top = roles([&[(8, OLD), (2, DOWN)], &[(5, OLD)]], [FROZEN, FROZEN]);
    let decided = plan(&json!({}), &top);
    assert_eq!(partitions(&decided), [8, 4]);
    let low = roles([&[(2, DOWN), (8, OLD)], &[(5, OLD)]], [FROZEN, FROZEN]);
    let waiting = plan(&json!({}), &low);
    assert_eq!(partitions(&waiting), [FROZEN, FROZEN]);
    let wait = waiting["decode"].waits.clone().unwrap();
    assert_eq!((wait.reason, wait.role.as_str(), wait.ordinal), (WaitReason::Segment(1), "prefill", Some(1)));
}

/// Its pods were made again, and wait for room; those of a batch that was never released did not serve.
#[test]
fn a_segment_that_is_held_is_waited_for_where_it_may_run() {
    let held = Ordinal { ready: false, held: true, ..NEW };
    let mut top = roles([&[(8, OLD), (2, held)], &[(4, OLD), (1, NEW)]], [8, 4]);
    assert_eq!(partitions(&plan(&json!({}), &top)), [6, 3]);
    top.get_mut("prefill").unwrap().may_run = 10;
    let waiting = plan(&json!({}), &top);
    assert_eq!(partitions(&waiting), [8, 4]);
    let wait = waiting["decode"].waits.clone().unwrap();
    assert_eq!((wait.reason, wait.role.as_str(), wait.ordinal), (WaitReason::Segment(5), "prefill", Some(9)));
}

/// The remainder beyond the whole segments is a smaller one.
#[test]
fn what_partition_keeps_old_are_whole_segments() {
    let start = roles([&[(9, OLD)], &[(5, OLD)]], [FROZEN, FROZEN]);
    let decided = plan(&json!({ "partition": "50%", "maxUnavailable": 5 }), &start);
    assert_eq!(partitions(&decided), [6, 3]);
    let over = roles([&[(6, OLD), (3, NEW)], &[(3, OLD), (2, NEW)]], [6, 3]);
    let paused = plan(&json!({ "partition": "50%", "maxUnavailable": 5 }), &over);
    assert!(paused.values().all(|role| role.state == ProgressState::Paused), "{paused:?}");
}

#[test]
fn a_role_that_is_edited_alone_goes_segment_by_segment_as_well() {
    let mut alone = roles([&[(10, OLD)], &[(5, OLD)]], [FROZEN, FROZEN]);
    alone.remove("decode");
    assert_eq!(plan(&json!({}), &alone)["prefill"].partition, 8);
}

/// Its controller would wait for held replicas on top; rolegate deletes the old ones below.
#[test]
fn a_role_whose_old_pods_are_deleted_waits_for_no_held_batch() {
    let held = Ordinal { ready: false, held: true, ..OLD };
    let mut top = roles([&[(8, OLD), (2, held)], &[(4, OLD), (1, held)]], [8, 4]);
    let reason = |roles: &BTreeMap<String, RoleRollout>| {
        plan(&json!({}), roles)["prefill"].waits.as_ref().map(|wait| wait.reason)
    };
    assert_eq!(reason(&top), Some(WaitReason::HeldBatch));
    top.values_mut().for_each(|role| role.remade = true);
    assert_ne!(reason(&top), Some(WaitReason::HeldBatch));
}

/// Prefill 8 and decode 4 are in the last segment, which is broken; the segment before serves.
#[test]
fn what_goes_back_goes_segment_by_segment_and_what_is_broken_first() {
    let mut back = roles([&[(6, NEW), (2, OLD), (1, DOWN), (1, OLD)], &[(3, NEW), (2, OLD)]], [FROZEN, FROZEN]);
    back.values_mut().for_each(|role| (role.back, role.returns) = (true, true));
    let again = |update: &Value, roles: &BTreeMap<String, RoleRollout>| {
        let plan = plan(update, roles);
        ["prefill", "decode"].map(|role| plan[role].made_again.clone())
    };
    assert_eq!(again(&json!({}), &back), [vec![8, 9], vec![4]]);
    assert_eq!(again(&json!({ "maxUnavailable": 2 }), &back), [vec![8, 9, 6, 7], vec![4, 3]]);
    // The lower one is broken.
    let mut lower = roles([&[(6, NEW), (1, DOWN), (3, OLD)], &[(3, NEW), (2, OLD)]], [FROZEN, FROZEN]);
    lower.values_mut().for_each(|role| (role.back, role.returns) = (true, true));
    assert_eq!(again(&json!({}), &lower), [vec![6, 7], vec![3]]);
}

#[test]
fn where_a_rollout_may_go_back_the_last_segment_waits_for_all_others() {
    let busy = roles([&[(4, OLD), (6, NEW)], &[(2, OLD), (2, NEW), (1, NEW)]], [4, 2]);
    let two = json!({ "maxUnavailable": 2 });
    assert_eq!(partitions(&plan(&two, &busy)), [0, 0]);
    let two = json!({ "maxUnavailable": 2, "onFailure": "Rollback" });
    assert_eq!(partitions(&plan(&two, &busy)), [2, 1]);
    let ready = roles([&[(2, OLD), (8, NEW)], &[(1, OLD), (4, NEW)]], [2, 1]);
    assert_eq!(partitions(&plan(&two, &ready)), [0, 0]);
}
