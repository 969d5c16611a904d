//! Cases with known answers.

use rolegate::plan::rollout::{Ordinal, RoleRollout, RolloutPlan, WaitReason, plan_rollout};

use super::world::{Controller, Role, World, mk_bounds};
use crate::prelude::*;

const OLD: Ordinal =
    Ordinal { updated: false, ready: true, held: false, new: false, displaced: false, given_up: false };
const NEW: Ordinal = Ordinal { updated: true, ..OLD };
const BROKEN: Ordinal = Ordinal { ready: false, ..NEW };
const HELD: Ordinal = Ordinal { ready: false, held: true, ..OLD };

/// A role with these replicas from the bottom, of which the topmost are granted.
fn mk_rollout(parts: &[(usize, Ordinal)], partition: u32) -> RoleRollout {
    let ordinals = parts.iter().flat_map(|(count, ordinal)| std::iter::repeat_n(*ordinal, *count)).collect();
    RoleRollout { partition, ordinals, judged: true, settled: true, ..RoleRollout::default() }
}

fn plan(max_skew: u32, unavailable: Unavailable, roles: &[(&str, RoleRollout)]) -> RolloutPlan {
    let names: Vec<_> = roles.iter().map(|(name, _)| *name).collect();
    let roles: BTreeMap<_, _> = roles.iter().map(|(name, role)| ((*name).to_owned(), role.clone())).collect();
    plan_rollout(&[mk_bounds(&names, max_skew, unavailable, 0)], &roles, &[])
}

fn rounds(skew: u32, unavailable: Unavailable) -> usize {
    let role = |desired| Role::new(desired, Controller::StatefulSet);
    let mut world = World::new(
        vec![mk_bounds(&["decode", "prefill"], skew, unavailable, 0)],
        BTreeMap::from([("decode".to_owned(), role(100)), ("prefill".to_owned(), role(200))]),
    );
    let rounds = std::iter::from_fn(|| world.round().then_some(())).count();
    assert!(world.roles.values().all(|role| role.updated() == role.desired()));
    println!("200 prefills and 100 decodes, maxSkew {skew} %, {unavailable:?} unavailable: {rounds} rounds");
    rounds
}

#[test]
fn as_many_rounds_as_the_bounds_demand() {
    assert_eq!(rounds(1, Unavailable::Percent(5)), 100);
    assert_eq!(rounds(10, Unavailable::Percent(5)), 20);
    assert_eq!(rounds(10, Unavailable::Percent(100)), 10);
}

#[test]
fn what_is_down_is_replaced_first_and_costs_nothing() {
    let down = Ordinal { ready: false, ..OLD };
    let role = || mk_rollout(&[(6, OLD), (4, down)], FROZEN);
    let plan = plan(100, Unavailable::Count(1), &[("prefill", role()), ("decode", role())]);
    assert_eq!(plan["prefill"].partition, 6);
    assert_eq!(plan["prefill"].waits.clone().unwrap().reason, WaitReason::Unavailable);
}

/// Below ready replicas of a revision that was given up one is down: after a while it no longer keeps them from going.
#[test]
fn a_replica_that_was_given_up_blocks_nobody_for_ever() {
    let [ready, down] = [true, false].map(|ready| Ordinal { ready, given_up: true, ..OLD });
    let mut role = mk_rollout(&[(6, NEW), (1, down), (3, ready)], FROZEN);
    let waiting = plan(100, Unavailable::Count(1), &[("prefill", role.clone())]);
    assert_eq!((waiting["prefill"].partition, waiting["prefill"].state), (FROZEN, ProgressState::Waiting));
    assert_eq!(waiting["prefill"].waits.clone().unwrap().ordinal, Some(6));
    role.stuck = true;
    assert_eq!(plan(100, Unavailable::Count(1), &[("prefill", role)])["prefill"].partition, 9);
}

#[test]
fn a_broken_replica_stops_its_role_and_is_named() {
    let prefill = mk_rollout(&[(38, OLD), (2, NEW)], 38);
    let decode = mk_rollout(&[(19, OLD), (1, BROKEN)], 19);
    let plan = plan(5, Unavailable::Count(1), &[("prefill", prefill), ("decode", decode)]);
    assert_eq!((plan["decode"].partition, plan["prefill"].partition), (19, 38));
    assert_eq!(plan["prefill"].state, ProgressState::Waiting);
    for name in ["prefill", "decode"] {
        let wait = plan[name].waits.clone().unwrap();
        assert_eq!((wait.role.as_str(), wait.ordinal), ("decode", Some(19)), "{name}");
    }
}

#[test]
fn small_roles_do_not_stall_the_rest() {
    let router = mk_rollout(&[(1, OLD)], FROZEN);
    let other = mk_rollout(&[(50, OLD), (50, NEW)], 50);
    let plan = plan(1, Unavailable::Percent(10), &[("router", router), ("prefill", other)]);
    assert_eq!((plan["prefill"].partition, plan["prefill"].state), (40, ProgressState::Progressing));
    assert_eq!((plan["router"].partition, plan["router"].state), (FROZEN, ProgressState::Waiting));
}

/// What is to stay old is updated already where an edit is taken back. The other role has all that is not to stay old, or comes to it,
/// or goes back as well.
#[test]
fn a_role_that_is_taken_back_does_not_wait_for_what_stays_old() {
    let bounds = [mk_bounds(&["prefill", "decode"], 0, Unavailable::Count(2), 40)];
    let decided = |prefill: RoleRollout, decode: RoleRollout| {
        let roles = BTreeMap::from([("prefill".to_owned(), prefill), ("decode".to_owned(), decode)]);
        plan_rollout(&bounds, &roles, &[])
    };
    let decode = || mk_rollout(&[(2, NEW), (1, OLD), (1, NEW)], 3);
    let plan = decided(mk_rollout(&[(2, OLD), (2, NEW)], 2), decode());
    assert_eq!((plan["prefill"].state, plan["decode"].partition), (ProgressState::Paused, 2));
    let plan = decided(mk_rollout(&[(3, OLD), (1, NEW)], 3), decode());
    assert_eq!((plan["prefill"].partition, plan["decode"].partition), (2, 3));
    assert_eq!(plan["decode"].waits.clone().unwrap().reason, WaitReason::Skew);
    let back = || mk_rollout(&[(2, NEW), (2, OLD)], FROZEN);
    let plan = decided(back(), back());
    assert_eq!((plan["prefill"].partition, plan["decode"].partition), (3, 3));
}

#[test]
fn held_replicas_on_top_are_named() {
    let plan = plan(100, Unavailable::Count(1), &[("prefill", mk_rollout(&[(4, OLD), (2, HELD)], FROZEN))]);
    let wait = plan["prefill"].waits.clone().unwrap();
    assert_eq!((wait.reason, wait.ordinal), (WaitReason::HeldBatch, Some(5)));
}

/// A third of each role lacks room or waits for its turn: the others go on in step, and what has yet to serve goes with them.
#[test]
fn what_never_served_costs_nothing_and_counts_for_no_share() {
    for waits in [Ordinal { ready: false, new: true, ..OLD }, HELD] {
        let (prefill, decode) = ([(4, OLD), (2, waits)], [(2, OLD), (1, waits)]);
        let roles = [("prefill", mk_rollout(&prefill, FROZEN)), ("decode", mk_rollout(&decode, FROZEN))];
        let begun = plan(10, Unavailable::Count(1), &roles);
        assert_eq!((begun["prefill"].partition, begun["decode"].partition), (3, 2), "{waits:?}");
        let waits = Ordinal { updated: true, ..waits };
        let (prefill, decode) = ([(3, OLD), (1, NEW), (2, waits)], [(2, OLD), (1, waits)]);
        let roles = [("prefill", mk_rollout(&prefill, 3)), ("decode", mk_rollout(&decode, 2))];
        let ahead = plan(10, Unavailable::Count(1), &roles);
        assert_eq!((ahead["prefill"].partition, ahead["decode"].partition), (2, 1), "{waits:?}");
    }
}

/// Its controller lets one be unavailable, and that is an old one.
#[test]
fn an_old_replica_that_is_down_is_named_where_the_controller_waits_for_it() {
    let down = Ordinal { ready: false, ..OLD };
    let role = RoleRollout { at_once: Some(1), ..mk_rollout(&[(1, down), (5, OLD)], FROZEN) };
    let wait =
        |role: &RoleRollout| plan(100, Unavailable::Count(2), &[("prefill", role.clone())])["prefill"].waits.clone();
    let named = wait(&role).unwrap();
    assert_eq!((named.reason, named.ordinal), (WaitReason::OldReplica, Some(0)));
    // Where rolegate deletes old pods, only the bound is waited for.
    assert_eq!(wait(&RoleRollout { remade: true, ..role }).unwrap().reason, WaitReason::Unavailable);
}

#[test]
fn a_role_waits_for_the_edits_of_the_others() {
    let role = RoleRollout { settled: false, ..mk_rollout(&[(4, OLD)], FROZEN) };
    let bounds = [mk_bounds(&["prefill", "decode"], 100, Unavailable::Count(1), 0)];
    let alone = BTreeMap::from([("prefill".to_owned(), role.clone())]);
    let decided = plan_rollout(&bounds, &alone, &[]);
    assert_eq!((decided["prefill"].partition, decided["prefill"].state), (FROZEN, ProgressState::Waiting));
    assert_eq!(decided["prefill"].waits.clone().unwrap().reason, WaitReason::Settling);
    let both = BTreeMap::from([("prefill".to_owned(), role.clone()), ("decode".to_owned(), role.clone())]);
    assert_eq!(plan_rollout(&bounds, &both, &[])["prefill"].partition, 3);
    let unseen = RoleRollout { judged: false, ..role };
    let both = BTreeMap::from([("prefill".to_owned(), unseen.clone()), ("decode".to_owned(), unseen)]);
    assert_eq!(plan_rollout(&bounds, &both, &[])["prefill"].waits.clone().unwrap().reason, WaitReason::NotObserved);
}
