use serde_json::json;

use super::*;
use crate::model::{Group, MadeBy, PodIdentity, Unnumbered};
use crate::plan::test_support::{self, mk_group, mk_segments, shared};
use crate::plan::view::{GroupPods, GroupView};

fn mk_workers(desired: u32) -> Group {
    mk_group(&[("worker", desired)], &json!([mk_segments("w", "OrderedReady", &[("worker", 2)])]))
}

/// Returns a pod of a Deployment, created in second `made`.
fn mk_pod(name: &str, made: u32, held: bool) -> PodFacts {
    let pod = test_support::mk_pod(name, "worker", 0);
    PodFacts {
        identity: PodIdentity { ordinal: None, unnumbered: Some(Unnumbered::default()), ..pod.identity },
        held,
        scheduled: !held,
        ready: !held,
        labelled: None,
        created: Some(format!("2026-01-01T00:00:{made:02}Z").into()),
        ..pod
    }
}

fn mk_released(name: &str, made: u32, ordinal: u32) -> PodFacts {
    let mut pod = mk_pod(name, made, false);
    pod.identity.ordinal = Some(ordinal);
    pod
}

fn mk_member(name: &str, instance: &str, made: u32) -> PodFacts {
    let mut pod = mk_pod(name, made, true);
    pod.identity.unnumbered = Some(Unnumbered { instance: Some(instance.into()), ..Unnumbered::default() });
    pod.identity.replica_size = 2;
    pod
}

fn ordinals(group: &Group, pods: &[PodFacts], given: &[(&str, u32)]) -> Vec<(String, u32)> {
    let view = GroupView::build(group, &GroupPods::default());
    let pods = shared(pods);
    let assigned = assign((&view.roles["worker"], None), Makes::of(group.role("worker")), pods.iter(), |pod| {
        given.iter().find(|(name, _)| *name == &*pod.name).map(|(_, ordinal)| *ordinal)
    });
    let mut all: Vec<_> = assigned
        .placed
        .into_iter()
        .flat_map(|(pods, ordinal)| pods.into_iter().map(move |pod| (pod.pod.name.to_string(), ordinal)))
        .collect();
    all.sort();
    all
}

fn are(all: &[(&str, u32)]) -> Vec<(String, u32)> {
    all.iter().map(|(name, ordinal)| ((*name).to_owned(), *ordinal)).collect()
}

#[test]
fn the_oldest_go_first_whatever_their_name() {
    let pods = [mk_pod("a", 9, true), mk_pod("z", 1, true), mk_pod("m", 5, true)];
    assert_eq!(ordinals(&mk_workers(3), &pods, &[]), are(&[("a", 2), ("m", 1), ("z", 0)]));
}

#[test]
fn a_released_pod_keeps_its_ordinal_whoever_comes_or_goes() {
    let pods = [mk_released("b", 2, 1), mk_released("d", 4, 3), mk_pod("a", 1, true), mk_pod("e", 5, true)];
    assert_eq!(ordinals(&mk_workers(4), &pods, &[]), are(&[("a", 0), ("b", 1), ("d", 3), ("e", 2)]));
}

/// It moved down when the role shrank. Its old place is free again, and its new one is not, before its label shows it.
#[test]
fn a_pod_whose_number_is_being_written_keeps_it_though_the_role_grows_again() {
    let pods = [mk_released("b", 2, 2), mk_pod("e", 5, true)];
    assert_eq!(ordinals(&mk_workers(1), &pods, &[]), are(&[("b", 0), ("e", 1)]));
    assert_eq!(ordinals(&mk_workers(3), &pods, &[("b", 0)]), are(&[("b", 0), ("e", 1)]));
}

#[test]
fn a_pod_whose_release_is_under_way_keeps_its_place_before_a_later_one_of_the_same_second() {
    let pods = [mk_pod("a", 1, true), mk_pod("b", 1, true)];
    assert_eq!(ordinals(&mk_workers(2), &pods, &[("b", 0)]), are(&[("a", 1), ("b", 0)]));
}

#[test]
fn a_pod_that_is_released_with_a_number_has_it_while_one_before_it_still_waits() {
    let pods = [mk_pod("a", 1, true), mk_pod("b", 1, true), mk_pod("c", 1, true)];
    assert_eq!(ordinals(&mk_workers(3), &pods, &[("c", 2)]), are(&[("a", 0), ("b", 1), ("c", 2)]));
}

#[test]
fn a_pod_that_is_released_with_a_number_beyond_those_desired_by_now_moves_down() {
    let pods = [mk_pod("a", 1, true), mk_pod("b", 1, true)];
    assert_eq!(ordinals(&mk_workers(2), &pods, &[("b", 3)]), are(&[("a", 1), ("b", 0)]));
}

#[test]
fn a_released_pod_beyond_the_desired_ones_moves_down() {
    let pods = [mk_released("a", 1, 0), mk_released("e", 2, 4)];
    assert_eq!(ordinals(&mk_workers(2), &pods, &[]), are(&[("a", 0), ("e", 1)]));
}

#[test]
fn two_with_one_ordinal_get_two() {
    let pods = [mk_released("a", 1, 1), mk_released("b", 2, 1)];
    assert_eq!(ordinals(&mk_workers(4), &pods, &[]), are(&[("a", 1), ("b", 0)]));
}

#[test]
fn the_pods_of_one_instance_are_one_replica() {
    let pods = [mk_member("x-0", "x", 1), mk_member("y-0", "y", 1), mk_member("x-1", "x", 2), mk_member("y-1", "y", 2)];
    assert_eq!(ordinals(&mk_workers(2), &pods, &[]), are(&[("x-0", 0), ("x-1", 0), ("y-0", 1), ("y-1", 1)]));
}

/// The workload of an elastic group has no more replicas than may run: a gap below would never be filled.
#[test]
fn of_a_workload_that_is_scaled_with_its_group_those_beyond_what_may_run_move_down() {
    let pods = shared(&[mk_released("b", 1, 1), mk_released("c", 2, 2)]);
    let places = |is_scaled| {
        let role = RoleView { desired: 8, committed: Some(2), is_scaled, ..RoleView::default() };
        let placed = assign((&role, None), Makes::Anything, pods.iter(), |_| None).placed.into_iter();
        let mut placed: Vec<_> = placed.map(|(pods, ordinal)| (pods[0].pod.name.to_string(), ordinal)).collect();
        placed.sort();
        placed
    };
    assert_eq!(places(true), are(&[("b", 1), ("c", 0)]));
    assert_eq!(places(false), are(&[("b", 1), ("c", 2)]));
}

/// Returns an orphaned pod, or a copy: it has the labels of a controller and no owner.
fn mk_left(name: &str, held: bool, ordinal: Option<u32>) -> PodFacts {
    let mut pod = mk_pod(name, 0, held);
    pod.identity.ordinal = ordinal;
    pod.identity.unnumbered = Some(Unnumbered { by: MadeBy::NobodyNow, ..Unnumbered::default() });
    pod
}

#[test]
fn a_pod_that_its_controller_let_go_keeps_its_place_until_its_successor_comes() {
    let left = mk_left("left", false, Some(1));
    assert_eq!(ordinals(&mk_workers(2), &[mk_released("a", 1, 0), left.clone()], &[]), are(&[("a", 0), ("left", 1)]));
    let successor = mk_pod("b", 9, true);
    assert_eq!(ordinals(&mk_workers(2), &[mk_released("a", 1, 0), left, successor], &[]), are(&[("a", 0), ("b", 1)]));
}

#[test]
fn a_copy_takes_no_place() {
    let copies = [mk_left("copy", true, None), mk_left("ran", false, None)];
    assert_eq!(ordinals(&mk_workers(2), &copies, &[]), are(&[]));
}

#[test]
fn beside_numbered_replicas_a_bare_pod_takes_no_place() {
    let mut bare = mk_pod("bare", 1, true);
    bare.identity.unnumbered = Some(Unnumbered { by: MadeBy::Nobody, ..Unnumbered::default() });
    assert_eq!(ordinals(&mk_workers(2), std::slice::from_ref(&bare), &[]), are(&[("bare", 0)]));
    let pods = [test_support::mk_pod("worker-0", "worker", 0), bare];
    let view = GroupView::build(&mk_workers(2), &shared(&pods));
    let apart: Vec<_> = view.apart.iter().map(|pod| &*pod.pod.name).collect();
    assert_eq!((view.roles["worker"].replicas.end(), apart), (1, vec!["bare"]));
    assert_eq!(view.held().len(), 2);
}

#[test]
fn a_held_pod_whose_name_is_not_given_again_keeps_its_place() {
    let mut let_go = mk_left("worker-1", true, Some(1));
    let_go.identity.unnumbered = Some(Unnumbered { by: MadeBy::LetGo, ..Unnumbered::default() });
    assert_eq!(ordinals(&mk_workers(2), std::slice::from_ref(&let_go), &[]), are(&[("worker-1", 1)]));
    assert_eq!(ordinals(&mk_workers(1), &[let_go], &[]), are(&[]));
}

/// Returns a pod of a Deployment that was sent to a rack, with the number that it has.
fn mk_sent(name: &str, made: u32, ordinal: Option<u32>, rack: &str) -> PodFacts {
    let pod = mk_pod(name, made, false);
    let identity = PodIdentity { ordinal, ..pod.identity };
    PodFacts { identity, pinned: Some(format!("rack={rack},kubernetes.io/hostname=n").into()), ..pod }
}

/// Numbers pods of a role in batches of two, whose domains are these.
fn in_racks(desired: u32, racks: &[&str], pods: &[PodFacts]) -> Vec<(String, u32)> {
    let affinity = json!({ "topologyKey": "rack", "strategy": "RequireSegmentAffinity" });
    let strategy = json!({ "segmentSize": { "worker": 2 }, "topologyAffinity": affinity });
    let coordination = json!([{ "name": "w", "strategy": { "segmentPlacement": strategy } }]);
    let mut group = mk_group(&[("worker", desired)], &coordination);
    let domains: BTreeMap<_, _> = racks.iter().enumerate().map(|(batch, rack)| (batch.to_string(), *rack)).collect();
    let state = json!([{ "name": "w", "domains": domains }]);
    group.status = serde_json::from_value(json!({ "coordinationState": state })).unwrap();
    let view = GroupView::build_while(&group, (&shared(pods), &[(0, "rack".to_owned())]), |_| None);
    let role = &view.roles["worker"];
    let mut all: Vec<_> = role.replicas.pods().map(|(ordinal, pod)| (pod.pod.name.to_string(), ordinal)).collect();
    all.sort();
    all
}

#[test]
fn after_a_scale_in_a_pod_takes_a_number_in_its_domain_first() {
    let pods = [
        mk_sent("b", 1, Some(1), "r1"),
        mk_sent("d", 2, Some(3), "r2"),
        mk_sent("e", 3, Some(4), "r2"),
        mk_sent("f", 4, Some(5), "r1"),
    ];
    let numbers = in_racks(4, &["r1", "r2", "r3"], &pods);
    assert_eq!(numbers, are(&[("b", 1), ("d", 3), ("e", 2), ("f", 0)]), "the oldest would have taken the lowest");
    // Where no batch is in its domain, it takes what is left.
    let pods = [mk_sent("b", 1, Some(1), "r1"), mk_sent("e", 2, Some(4), "r3")];
    assert_eq!(in_racks(2, &["r1", "r2", "r3"], &pods), are(&[("b", 1), ("e", 0)]));
}

#[test]
fn a_pod_of_a_surge_takes_a_number_in_its_domain_and_leaves_others_to_those_that_are_held() {
    let old = |numbers: &[u32]| -> Vec<_> {
        let rack = |number: u32| if number < 2 { "r1" } else { "r2" };
        numbers.iter().map(|number| mk_sent(&format!("old-{number}"), *number, Some(*number), rack(*number))).collect()
    };
    let surge = || mk_sent("new", 10, None, "r1");
    let numbers = |pods: Vec<PodFacts>| in_racks(4, &["r1", "r2"], &pods);
    let of = |numbers: Vec<(String, u32)>, name: &str| numbers.iter().find(|(known, _)| known == name).unwrap().1;
    assert_eq!(of(numbers([old(&[0, 1, 2, 3]), vec![surge()]].concat()), "new"), 4);
    let first = [old(&[0, 1, 2]), vec![surge(), mk_pod("next", 11, true)]].concat();
    let first = numbers(first);
    assert_eq!((of(first.clone(), "next"), of(first, "new")), (3, 4), "the one that is free is in the other rack");
    let second = numbers([old(&[1, 2]), vec![surge(), mk_pod("next", 11, true)]].concat());
    assert_eq!((of(second.clone(), "new"), of(second, "next")), (0, 3));
    let last = numbers([old(&[0, 1, 2]), vec![surge()]].concat());
    assert_eq!(of(last, "new"), 3, "nobody else can take it");
}
