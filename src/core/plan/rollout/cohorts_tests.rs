use serde_json::json;

use super::*;
use crate::api::Pod;
use crate::api::status::GroupStatus;
use crate::model::identify;
use crate::plan::test_support::{mk_group, mk_open, mk_workload};

/// Returns a group whose three roles are rolled together, with these cohorts in its status.
fn group(status: Option<Cohorts>) -> Group {
    let strategy = json!({ "rollingUpdate": { "maxSkew": "10%" } });
    let roles = ["prefill", "decode", "router"];
    let roll = json!({ "name": "roll", "type": "RollingUpdate", "roles": roles, "strategy": strategy });
    let mut group = mk_group(&roles.map(|role| (role, 4)), &json!([roll]));
    group.status = GroupStatus { cohorts: status, ..GroupStatus::default() };
    group
}

fn known(last: u32, roles: &[(&str, &[(&str, &str)])]) -> Cohorts {
    let one = |(revision, cohort): &(&str, &str)| RevisionCohort {
        revision: (*revision).to_owned(),
        cohort: (*cohort).to_owned(),
    };
    let roles = roles.iter().map(|(role, known)| ((*role).to_owned(), known.iter().map(one).collect()));
    Cohorts { last, roles: roles.collect() }
}

fn open(role: &str, from: &str, to: &str) -> RolledWorkload {
    mk_open(role, (from, to), 0)
}

fn pod(role: &str, revision: &str, cohort: Option<&str>) -> Arc<PodFacts> {
    let mut labels = json!({
        names::GROUP: "pd", names::ROLE: role, names::REVISION: revision, "controller-revision-hash": revision,
    });
    cohort.into_iter().for_each(|cohort| labels[names::COHORT] = json!(cohort));
    let name = format!("{role}-{revision}");
    let pod: Pod =
        serde_json::from_value(json!({ "metadata": { "name": name, "uid": name, "labels": labels } })).unwrap();
    PodFacts::of(&pod, identify(&pod, "ns", &()).unwrap()).unwrap().into()
}

fn settled(workload: &RolledWorkload) -> RolledRole<'_> {
    RolledRole { workload, edit: Edit::long_ago() }
}

/// Returns the cohorts to commit for these workloads, whose edits have settled.
fn decide(group: &Group, pods: &[Arc<PodFacts>], workloads: &[RolledWorkload]) -> Cohorts {
    let rolled: Vec<_> = workloads.iter().map(settled).collect();
    cohorts(group, &RollingBounds::all_of(group), &pods.iter().collect(), &rolled).unwrap()
}

#[test]
fn a_group_begins_with_one_cohort() {
    let workloads = [mk_workload("prefill", "p1"), mk_workload("decode", "d1")];
    let begun = decide(&group(None), &[], &workloads);
    assert_eq!(begun, known(1, &[("prefill", &[("p1", "1")]), ("decode", &[("d1", "1")])]));
    assert_eq!(decide(&group(Some(begun.clone())), &[], &workloads), begun, "and stays there");
    let group = group(Some(begun));
    assert_eq!((group.cohort("prefill", "p1"), group.cohort("router", "r1")), (Some("1"), Some("1")));
    assert!(group.lacks_cohort("prefill", "p2") && !group.lacks_cohort("router", "r1"));
}

#[test]
fn roles_that_are_edited_together_begin_a_cohort_and_one_alone_keeps_its_own() {
    let begun = known(1, &[("prefill", &[("p1", "1")]), ("decode", &[("d1", "1")]), ("router", &[("r1", "1")])]);
    let together = [open("prefill", "p1", "p2"), open("decode", "d1", "d2"), mk_workload("router", "r1")];
    let roles: &[(&str, &[(&str, &str)])] = &[
        ("prefill", &[("p1", "1"), ("p2", "2")]),
        ("decode", &[("d1", "1"), ("d2", "2")]),
        ("router", &[("r1", "1")]),
    ];
    let second = known(2, roles);
    assert_eq!(decide(&group(Some(begun.clone())), &[], &together), second);
    assert_eq!(decide(&group(Some(second.clone())), &[], &together), second);
    let alone = [open("prefill", "p1", "p2"), mk_workload("decode", "d1"), mk_workload("router", "r1")];
    let kept = decide(&group(Some(begun)), &[], &alone);
    assert_eq!(kept.roles["prefill"], known(1, &[("x", &[("p1", "1"), ("p2", "1")])]).roles["x"]);
    // The router is edited while the rollouts of the other two are open.
    let late = [open("prefill", "p1", "p2"), open("decode", "d1", "d2"), open("router", "r1", "r2")];
    let joined = decide(&group(Some(second)), &[], &late);
    assert_eq!(joined.roles["router"], known(2, &[("x", &[("r1", "1"), ("r2", "2")])]).roles["x"]);
    assert_eq!(joined.last, 2);
}

#[test]
fn nothing_is_decided_before_the_edits_have_settled_or_every_revision_is_known() {
    let begun = known(1, &[("prefill", &[("p1", "1")]), ("decode", &[("d1", "1")])]);
    let stored = group(Some(begun.clone()));
    let bounds = RollingBounds::all_of(&stored);
    let (prefill, decode) = (open("prefill", "p1", "p2"), open("decode", "d1", "d2"));
    let unsettled = RolledRole { workload: &decode, edit: Edit::default() };
    assert_eq!(cohorts(&stored, &bounds, &GroupPods::default(), &[settled(&prefill), unsettled]).unwrap(), begun);
    let unseen = RolledWorkload { observed: false, ..open("decode", "d1", "d1") };
    assert_eq!(decide(&stored, &[], &[prefill.clone(), unseen]), begun);
    assert_eq!(decide(&stored, &[], &[prefill, decode]).last, 2);
}

#[test]
fn what_ties_the_edits_is_the_cohort_unless_it_is_an_earlier_one() {
    let begun = known(1, &[("prefill", &[("p1", "1")]), ("decode", &[("d1", "1")])]);
    let stored = group(Some(begun));
    let with = |id: &str, workload: RolledWorkload| RolledWorkload { rollout_id: Some(id.to_owned()), ..workload };
    let tied = [with("r 7", open("prefill", "p1", "p2")), with("r 7", open("decode", "d1", "d2"))];
    let decided = decide(&stored, &[], &tied);
    assert_eq!(decided.last, 1);
    let cohort = |role: &str| decided.roles[role].last().unwrap().cohort.clone();
    assert_eq!((cohort("prefill"), cohort("decode")), (names::label_value("r 7"), names::label_value("r 7")));
    let stale = |workload| RolledRole { workload, edit: Edit { stale_id: Some("r 7".to_owned()), ..Edit::long_ago() } };
    let (bounds, stale) = (RollingBounds::all_of(&stored), [stale(&tied[0]), stale(&tied[1])]);
    let again = cohorts(&stored, &bounds, &GroupPods::default(), &stale).unwrap();
    assert_eq!((again.last, again.roles["decode"].last().unwrap().cohort.as_str()), (2, "2"));
}

#[test]
fn a_way_back_in_the_middle_is_to_the_cohort_that_it_had() {
    let roles: &[(&str, &[(&str, &str)])] =
        &[("prefill", &[("p1", "1"), ("p2", "2")]), ("decode", &[("d1", "1"), ("d2", "2")])];
    let back = [open("prefill", "p1", "p1"), open("decode", "d1", "d1")];
    let pods = [pod("prefill", "p2", Some("2")), pod("decode", "d1", Some("1"))];
    let decided = decide(&group(Some(known(2, roles))), &pods, &back);
    // A revision without pods is forgotten; its number is not given again.
    assert_eq!(decided, known(2, &[("prefill", &[("p2", "2"), ("p1", "1")]), ("decode", &[("d1", "1")])]));
    let next = [open("prefill", "p1", "p3"), open("decode", "d1", "d3")];
    assert_eq!(decide(&group(Some(decided)), &[], &next).last, 3);
}

#[test]
fn what_the_status_has_lost_is_read_from_the_pods() {
    let workloads = [open("prefill", "p1", "p2"), mk_workload("decode", "d2")];
    let pods = [pod("prefill", "p1", Some("4")), pod("prefill", "p2", Some("5")), pod("decode", "d2", Some("5"))];
    let decided = decide(&group(None), &pods, &workloads);
    assert_eq!(decided, known(5, &[("prefill", &[("p1", "4"), ("p2", "5")]), ("decode", &[("d2", "5")])]));
    // Pods of an earlier version of rolegate have no cohort label.
    let pods = [pod("prefill", "p1", None)];
    let decided = decide(&group(None), &pods, &[open("prefill", "p1", "p2"), open("decode", "d1", "d2")]);
    assert_eq!(decided.roles["prefill"], known(0, &[("x", &[("p1", "1"), ("p2", "2")])]).roles["x"]);
}

#[test]
fn a_role_that_comes_later_begins_with_what_the_others_are_at() {
    let stored = group(Some(known(3, &[("prefill", &[("p3", "3")]), ("decode", &[("d3", "3")])])));
    assert_eq!(stored.cohort("router", "r1"), Some("3"));
    let workloads = [mk_workload("prefill", "p3"), mk_workload("decode", "d3"), mk_workload("router", "r1")];
    assert_eq!(decide(&stored, &[], &workloads).roles["router"][0].cohort, "3");
}

#[test]
fn a_group_that_has_served_and_lost_its_status_says_no_cohort_rather_than_a_wrong_one() {
    let mut lost = group(None);
    assert_eq!(lost.cohort("prefill", "p1"), Some("1"));
    lost.status.served = [("prefill".to_owned(), 1)].into();
    assert_eq!((lost.cohort("prefill", "p1"), lost.cohort("decode", "d1")), (None, Some("1")));
}

#[test]
fn a_group_that_rolls_nothing_has_no_cohorts() {
    assert_eq!(cohorts(&mk_group(&[("prefill", 4)], &json!([])), &[], &GroupPods::default(), &[]), None);
}
