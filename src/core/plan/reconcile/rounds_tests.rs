use serde_json::json;

use super::*;
use crate::plan::test_support::{mk_group, mk_workload};

fn at(seconds: u64) -> Uptime {
    Duration::from_secs(seconds)
}

const SETTLE: Duration = Duration::from_secs(10);

fn together(roles: &[&str]) -> RollingBounds {
    let strategy = json!({ "rollingUpdate": { "maxSkew": "10%" } });
    let roll = json!([{ "name": "roll", "roles": roles, "strategy": strategy }]);
    let desired: Vec<_> = roles.iter().map(|role| (*role, 4)).collect();
    RollingBounds::all_of(&mk_group(&desired, &roll)).remove(0)
}

fn open(role: &str, revision: &str, id: Option<&str>) -> RolledWorkload {
    RolledWorkload {
        partition: 4,
        user_partition: Some(0),
        rollout_id: id.map(str::to_owned),
        current_revision: None,
        ..mk_workload(role, revision)
    }
}

fn closed(role: &str, id: Option<&str>) -> RolledWorkload {
    RolledWorkload { user_partition: None, ..open(role, "old", id) }
}

/// Returns the round of each workload, and whether it has settled.
fn edits(rounds: &Rounds, bounds: &[RollingBounds], open: &[RolledWorkload], now: Uptime) -> Vec<(u32, bool)> {
    let edit = |workload| rounds.edit(bounds, workload, SETTLE, now).map(|edit| (edit.round, edit.settled));
    open.iter().filter_map(edit).collect()
}

#[test]
fn a_second_edit_of_a_role_begins_a_round_that_the_others_join() {
    let (bounds, mut rounds) = ([together(&["prefill", "decode"])], Rounds::default());
    let mut seen = [open("prefill", "b", None), closed("decode", None)];
    rounds.note(&bounds, &seen, at(0));
    assert_eq!(edits(&rounds, &bounds, &seen, at(9)), [(0, false)]);
    // A late edit, still of the first round.
    seen[1] = open("decode", "b", None);
    rounds.note(&bounds, &seen, at(60));
    assert_eq!(edits(&rounds, &bounds, &seen, at(60)), [(0, true), (0, true)]);
    assert_eq!(edits(&rounds, &bounds, &seen, at(1)), [(0, true), (0, true)], "all were edited");
    seen[0] = open("prefill", "a", None);
    rounds.note(&bounds, &seen, at(70));
    assert_eq!(edits(&rounds, &bounds, &seen, at(79)), [(1, false), (0, false)]);
    assert_eq!(edits(&rounds, &bounds, &seen, at(80)), [(1, true), (0, true)]);
    seen[1] = open("decode", "a", None);
    rounds.note(&bounds, &seen, at(80));
    assert_eq!(edits(&rounds, &bounds, &seen, at(80)), [(1, true), (1, true)]);
    // Taken back, and taken back again.
    seen[1] = open("decode", "b", None);
    rounds.note(&bounds, &seen, at(81));
    seen[1] = open("decode", "a", None);
    rounds.note(&bounds, &seen, at(82));
    assert_eq!(edits(&rounds, &bounds, &seen, at(91)), [(1, false), (3, false)]);
}

#[test]
fn rounds_end_with_the_last_rollout_and_are_of_connected_roles_only() {
    let bounds = [together(&["prefill", "decode"]), together(&["decode", "router"]), together(&["cache", "encode"])];
    let mut rounds = Rounds::default();
    let mut seen = [open("router", "b", None), open("prefill", "b", None), open("cache", "b", None)];
    rounds.note(&bounds, &seen, at(0));
    seen[1] = open("prefill", "c", None);
    rounds.note(&bounds, &seen, at(5));
    assert_eq!(edits(&rounds, &bounds, &seen, at(10)), [(0, false), (1, false), (0, true)]);
    rounds.note(&bounds, &[], at(20));
    rounds.note(&bounds, &seen, at(21));
    assert_eq!(edits(&rounds, &bounds, &seen, at(21)), [(0, false), (0, false), (0, false)]);
}

#[test]
fn an_id_of_an_earlier_edit_ties_nothing_together() {
    let (bounds, mut rounds) = ([together(&["prefill", "decode"])], Rounds::default());
    let stale = |rounds: &Rounds, workload: &RolledWorkload| {
        rounds.edit(&bounds, workload, SETTLE, at(0)).and_then(|edit| edit.stale_id)
    };
    let [first, again, new] =
        [("b", "1"), ("c", "1"), ("d", "2")].map(|(revision, id)| open("prefill", revision, Some(id)));
    for (edited, stale_id) in [(&first, None), (&again, Some("1")), (&new, Some("1"))] {
        rounds.note(&bounds, std::slice::from_ref(edited), at(0));
        assert_eq!(stale(&rounds, edited).as_deref(), stale_id, "{:?}", edited.update_revision);
        // Between two rollouts as well.
        rounds.note(&bounds, &[closed("prefill", None)], at(1));
    }
}

#[test]
fn an_edit_counts_once_its_controller_has_made_the_revision() {
    let (bounds, mut rounds) = ([together(&["prefill", "decode"])], Rounds::default());
    rounds.note(&bounds, &[closed("prefill", None), closed("decode", None)], at(0));
    // A frozen workload that its controller has not observed; a LeaderWorkerSet creates the revision later still.
    let unseen = |role| RolledWorkload { observed: false, ..open(role, "old", None) };
    for workload in [unseen("prefill"), open("prefill", "old", None)] {
        rounds.note(&bounds, std::slice::from_ref(&workload), at(1));
        assert_eq!(rounds.edit(&bounds, &workload, SETTLE, at(1)), None);
    }
    let seen = [open("prefill", "b", None), open("decode", "b", None)];
    rounds.note(&bounds, &seen, at(2));
    assert_eq!(edits(&rounds, &bounds, &seen, at(2)), [(0, true), (0, true)]);
    // The next edit is not observed yet either.
    let again = [RolledWorkload { observed: false, ..open("prefill", "b", None) }, open("decode", "b", None)];
    rounds.note(&bounds, &again, at(3));
    assert_eq!(edits(&rounds, &bounds, &again, at(3)), [(0, true), (0, true)]);
}

/// Some pods may be at another revision all the same.
#[test]
fn an_edit_that_was_taken_back_before_anybody_saw_it_waits_for_no_other_for_ever() {
    let (bounds, mut rounds) = ([together(&["prefill", "decode"])], Rounds::default());
    rounds.note(&bounds, &[closed("prefill", None), closed("decode", None)], at(0));
    let seen = [open("prefill", "old", None)];
    for (second, settled) in [(1, None), (10, None), (11, Some(true)), (12, Some(true))] {
        rounds.note(&bounds, &seen, at(second));
        assert_eq!(rounds.settled_at(&bounds, &seen[0], SETTLE), Some(at(11)));
        assert_eq!(rounds.edit(&bounds, &seen[0], SETTLE, at(second)).map(|edit| edit.settled), settled);
    }
    let edited = [open("prefill", "b", None)];
    rounds.note(&bounds, &edited, at(13));
    assert_eq!(edits(&rounds, &bounds, &edited, at(13)), [(0, false)]);
}

#[test]
fn a_role_whose_rollout_is_over_was_edited_all_the_same() {
    let (bounds, mut rounds) = ([together(&["prefill", "decode"])], Rounds::default());
    for revision in ["b", "c"] {
        rounds.note(&bounds, &[open("prefill", revision, None), open("decode", revision, None)], at(0));
    }
    let seen = [open("prefill", "c", None), RolledWorkload { user_partition: None, ..open("decode", "c", None) }];
    rounds.note(&bounds, &seen, at(1));
    assert_eq!(edits(&rounds, &bounds, &seen, at(1)), [(1, true)]);
}
