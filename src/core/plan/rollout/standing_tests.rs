use serde_json::json;

use super::*;
use crate::api::status::Condition;
use crate::plan::rollout::Ordinal;
use crate::plan::test_support::{mk_group, mk_pod, mk_role, mk_workload};
use crate::plan::view::RoleView;

fn role(updated: &[bool], judged: bool) -> RoleRollout {
    let ordinal = |updated: &bool| Ordinal { updated: *updated, ready: true, ..Ordinal::default() };
    RoleRollout { ordinals: updated.iter().map(ordinal).collect(), judged, ..RoleRollout::default() }
}

fn standing(role: &RoleRollout, state: ProgressState) -> RoleStanding {
    of_open(role, Some(state))
}

#[test]
fn an_edit_that_nobody_has_seen_yet_is_in_progress_although_all_pods_look_updated() {
    let unseen = standing(&role(&[true, true], false), ProgressState::Paused);
    assert_eq!(unseen, RoleStanding { standing: Standing::InProgress, updated: 0, desired: 2 });
}

#[test]
fn only_what_its_author_has_asked_for_is_paused() {
    let of = |state| standing(&role(&[false, true], true), state).standing;
    assert_eq!(of(ProgressState::Paused), Standing::Paused);
    for state in [ProgressState::Progressing, ProgressState::Waiting, ProgressState::Blocked] {
        assert_eq!(of(state), Standing::InProgress);
    }
    assert_eq!(of(ProgressState::Complete), Standing::Complete);
}

#[test]
fn of_several_roles_the_one_counts_that_is_least_far() {
    let of = |standing| RoleStanding { standing, ..RoleStanding::default() };
    let all = |standings: &[Standing]| {
        let named = standings.iter().enumerate().map(|(role, standing)| (role.to_string(), of(*standing)));
        of_all(&named.collect())
    };
    assert_eq!(all(&[]), Standing::Complete);
    assert_eq!(all(&[Standing::Complete, Standing::Paused]), Standing::Paused);
    assert_eq!(all(&[Standing::InProgress, Standing::Paused, Standing::Complete]), Standing::InProgress);
}

#[test]
fn a_rollout_is_over_when_the_last_replica_is_ready_and_stays_over_when_one_is_lost() {
    let mut group = mk_group(&[("prefill", 4)], &json!([]));
    let mut of = |reason: &str, ready: u32| {
        let said = Condition { r#type: ROLLED.to_owned(), reason: reason.to_owned(), ..Condition::default() };
        group.status.conditions = vec![said];
        let roles = [("prefill".to_owned(), mk_role(4, 4, ready))].into();
        let view = GroupView { roles, ..GroupView::default() };
        at_rest(&group, &view, &mk_workload("prefill", "p1"))
    };
    let at = |standing, updated| RoleStanding { standing, updated, desired: 4 };
    assert_eq!(of(IN_PROGRESS, 3), at(Standing::InProgress, 3));
    assert_eq!(of(IN_PROGRESS, 4), at(Standing::Complete, 4));
    assert_eq!(of("AllReplicasUpdated", 3), at(Standing::Complete, 4));
}

/// A controller replaces one replica after the other, and waits for one that is held.
#[test]
fn a_replica_of_an_old_revision_is_in_progress_though_no_rollout_is_open_and_all_are_ready() {
    let group = mk_group(&[("prefill", 3)], &json!([]));
    let of = |revisions: [&str; 4], partition: u32| {
        let mut replicas = Replicas::default();
        for (ordinal, revision) in (0..).zip(revisions) {
            let pod = mk_pod(&ordinal.to_string(), "prefill", ordinal);
            // The highest is beyond what the group declares.
            let held = ordinal == 3;
            let pod = PodFacts { revision: Some(revision.into()), held, ready: !held, ..pod };
            replicas.add(&pod.into(), ordinal);
        }
        let roles = [("prefill".to_owned(), RoleView { replicas, ..mk_role(3, 3, 3) })].into();
        let view = GroupView { roles, ..GroupView::default() };
        at_rest(&group, &view, &RolledWorkload { partition, ..mk_workload("prefill", "p2") })
    };
    let at = |standing, updated| RoleStanding { standing, updated, desired: 4 };
    assert_eq!(of(["p2", "p2", "p1", "p2"], 0), at(Standing::InProgress, 3));
    assert_eq!(of(["p2", "p2", "p1", "p2"], 3), at(Standing::Paused, 3));
    assert_eq!(of(["p2", "p2", "p2", "p2"], 0), at(Standing::Complete, 4));
}
