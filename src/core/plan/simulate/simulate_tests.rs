use serde_json::{Value, json};

use super::*;
use crate::build::{self, typed};
use crate::model::HoldReason;
use crate::plan::decide::batches::{BatchState, states};
use crate::plan::placement::{Needs, Room};
use crate::plan::status::segments;
use crate::plan::test_support::{mk_group, mk_segments};
use crate::plan::view::counts::RoleCounts;

fn mk_pd(prefill: u32, decode: u32) -> Group {
    let sizes = [("prefill", 10), ("decode", 5)];
    mk_group(&[("prefill", prefill), ("decode", decode)], &json!([mk_segments("pd", "OrderedReady", &sizes)]))
}

/// Roles with so many released and ready replicas.
fn mk_observed(roles: &[(&str, u32, u32)]) -> ObservedCounts {
    let counts = |released, ready| RoleCounts { released, scheduled: released, ready, ..RoleCounts::default() };
    let roles = roles.iter().map(|(name, released, ready)| ((*name).to_owned(), counts(*released, *ready))).collect();
    ObservedCounts { roles, ..ObservedCounts::default() }
}

fn condition<'a>(run: &'a Run, kind: &str) -> (&'a str, &'a str) {
    let found = run.seen.status.condition(kind).unwrap();
    (&found.reason, &found.message)
}

#[test]
fn a_waiting_group_takes_no_step_and_says_why() {
    let observed = mk_observed(&[("prefill", 30, 28), ("decode", 15, 15)]);
    let group = mk_pd(100, 50);
    let run = decide_once(&group, &[], &observed, &BTreeMap::new(), None).unwrap();
    assert!(run.steps.is_empty() && !run.complete);
    assert_eq!(run.seen.decision.released["prefill"], 30);
    let all = run.seen.batches(&group);
    let states: Vec<_> = all.iter().take(4).map(|batch| (batch.state, batch.reason)).collect();
    let waits = Some(HoldReason::PreviousSegmentNotReady);
    let [ready, released] = [BatchState::Ready, BatchState::Released].map(|state| (state, None));
    assert_eq!(states, [ready, ready, released, (BatchState::Held, waits)]);
}

#[test]
fn batches_without_any_replica_are_counted_as_if_they_were_looked_at() {
    let group = mk_pd(100, 50);
    for (prefill, decode) in [((0, 0), (0, 0)), ((30, 28), (15, 15)), ((10, 10), (23, 23)), ((100, 100), (50, 49))] {
        let observed = [("prefill", prefill.0, prefill.1), ("decode", decode.0, decode.1)];
        let mut seen = decide_once(&group, &[], &mk_observed(&observed), &BTreeMap::new(), None).unwrap().seen;
        for role in seen.view.roles.values_mut() {
            let held: Vec<_> = role.replicas.held(..).collect();
            held.iter().for_each(|pod| role.replicas.remove(&pod.facts.pod, pod.ordinal));
        }
        let mut one_by_one = BTreeMap::new();
        seen.batches(&group).iter().for_each(|batch| *one_by_one.entry(batch.state).or_default() += 1);
        assert_eq!(states(&group, &seen.view, &seen.decision), one_by_one, "{prefill:?} {decode:?}");
        assert_eq!(seen.view.roles["prefill"].replicas.end(), prefill.0, "no replica is there that is held");
        let ready = one_by_one.get(&BatchState::Ready).copied().unwrap_or_default();
        let segments = segments::count(&group, &seen.view.roles);
        assert_eq!((segments.ready, segments.total), (ready, 10), "{prefill:?} {decode:?}");
    }
}

#[test]
fn a_group_beyond_any_cluster_is_refused() {
    let error = simulate(&mk_pd(u32::MAX, 5), &[], &BTreeMap::new(), None).unwrap_err();
    assert!(matches!(error, RunError::TooLarge(_)), "{error}");
}

#[test]
fn a_role_that_another_coordination_limits_says_which() {
    let coordinations = json!([
        mk_segments("pd", "OrderedReady", &[("prefill", 5), ("decode", 3)]),
        mk_segments("dr", "OrderedReady", &[("decode", 3), ("router", 2)]),
    ]);
    let group = mk_group(&[("prefill", 300), ("decode", 100), ("router", 50)], &coordinations);
    let observed = mk_observed(&[("prefill", 10, 10), ("decode", 6, 6), ("router", 2, 2)]);
    let run = decide_once(&group, &[], &observed, &BTreeMap::new(), None).unwrap();
    let held = &run.seen.decision.held[0];
    assert_eq!(held.reason, HoldReason::BlockedByCoordination);
    assert_eq!(held.message, r#"segment 3 is held: coordination "dr" lets decode go to 6 only"#);
}

/// Nodes with a rack and free processors, for pods of which each asks for one.
fn mk_site(group: &Group, nodes: &[(&str, &str, u32)]) -> Site {
    let mut room = Room::default();
    for (name, rack, cpu) in nodes {
        let node = build::node(name, &json!({ "rack": rack }), &json!({ "cpu": cpu.to_string(), "pods": "100" }));
        room.apply_node(&typed(node)).unwrap();
    }
    let replicas = group.roles.iter().flat_map(|role| (0..role.desired).map(|ordinal| (role.name.clone(), ordinal)));
    let pods = replicas.map(|replica| (replica, vec![SitePod::Asks(mk_needs(&json!({})))])).collect();
    Site { room, layers: BTreeMap::new(), pods }
}

fn mk_needs(spec: &Value) -> Arc<Needs> {
    let mut spec = spec.clone();
    spec["containers"] = json!([{ "resources": { "requests": { "cpu": 1 } } }]);
    let pod = json!({ "metadata": { "namespace": "ns", "labels": { "app": "pd" } }, "spec": spec });
    Arc::new(Needs::of(&serde_json::from_value(pod).unwrap()).unwrap())
}

/// Three batches of two prefills and one decode.
fn mk_batches(strategy: &Value, when_no_fit: &str) -> Group {
    let coordination = json!([{ "name": "pd", "whenNoFit": when_no_fit, "strategy": strategy }]);
    mk_group(&[("prefill", 6), ("decode", 3)], &coordination)
}

fn mk_racks() -> Value {
    let racks = json!({ "topologyAffinity": { "topologyKey": "rack", "strategy": "RequireSegmentAffinity" } });
    build::segments(&[("prefill", 2), ("decode", 1)], &racks)
}

/// Returns the number of pods on each node.
fn nodes_of(run: &Run) -> BTreeMap<String, usize> {
    let room = &run.occupied.as_ref().unwrap().room;
    let mut nodes = BTreeMap::new();
    room.tenants().for_each(|(_, node)| *nodes.entry(node.to_string()).or_default() += 1);
    nodes
}

fn run_on(group: &Group, nodes: &[(&str, &str, u32)]) -> Run {
    simulate(group, &[], &BTreeMap::new(), Some(mk_site(group, nodes))).unwrap()
}

#[test]
fn a_segment_that_goes_all_the_same_runs_in_part_where_most_of_it_fits() {
    // Preempted or not, no domain would hold the last one.
    for (when_no_fit, ready, on_b, held) in
        [("release", "7/9 pods ready", 5, vec![]), ("preempt", "6/9 pods ready", 4, vec![HoldReason::NoRoom])]
    {
        let group = mk_batches(&mk_racks(), when_no_fit);
        let mut site = mk_site(&group, &[("a", "r1", 3), ("b", "r2", 5)]);
        // Other pods are of a lower priority: they are not thought away.
        let mut other = (*mk_needs(&json!({}))).clone();
        other.load.priority = -1;
        site.room.apply_pod("other", "b", other.load, &other.peer);
        let run = simulate(&group, &[], &BTreeMap::new(), Some(site)).unwrap();
        let nodes = [("a".to_owned(), 3), ("b".to_owned(), on_b)].into();
        assert_eq!((condition(&run, "Ready").1, nodes_of(&run)), (ready, nodes), "{when_no_fit}");
        assert_eq!(run.seen.decision.held.iter().map(|held| held.reason).collect::<Vec<_>>(), held, "{when_no_fit}");
    }
}

#[test]
fn a_gang_runs_as_a_whole_or_not_at_all() {
    let policy = json!({ "kubeScheduling": {} });
    let steps = json!({ "rollingDeploy": { "prefill": 2, "decode": 1, "deployTopologyConstraint": { "podGroupPolicy": policy } } });
    let run = run_on(&mk_batches(&steps, ""), &[("a", "r1", 8)]);
    assert_eq!(condition(&run, "Ready").1, "6/9 pods ready");
}

#[test]
fn pods_that_keep_apart_run_one_by_one_as_far_as_they_may() {
    let group = mk_group(&[("prefill", 4)], &json!([mk_segments("p", "OrderedReady", &[("prefill", 4)])]));
    let terms = json!([{ "topologyKey": "rack", "labelSelector": { "matchLabels": { "app": "pd" } } }]);
    let apart =
        json!({ "affinity": { "podAntiAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": terms } } });
    let mut site = mk_site(&group, &[("a", "r1", 1), ("b", "r2", 1), ("c", "r2", 1)]);
    for pods in site.pods.values_mut() {
        *pods = vec![SitePod::Asks(mk_needs(&apart))];
    }
    let run = simulate(&group, &[], &BTreeMap::new(), Some(site)).unwrap();
    assert_eq!(condition(&run, "Ready").1, "2/4 pods ready");
}

#[test]
fn a_role_in_no_batch_takes_its_room_first_and_says_when_it_has_too_little() {
    let segments = json!([mk_segments("p", "OrderedReady", &[("prefill", 2)])]);
    let group = mk_group(&[("prefill", 2), ("router", 3)], &segments);
    let run = run_on(&group, &[("a", "r1", 4)]);
    assert_eq!(condition(&run, "Ready").1, "4/5 pods ready");
    assert!(run.occupied.unwrap().without_batch.is_empty());
    let run = run_on(&group, &[("a", "r1", 2)]);
    let without = run.occupied.unwrap().without_batch;
    assert_eq!(without.iter().map(|(role, _)| role.as_str()).collect::<Vec<_>>(), ["router"]);
    // Nobody says what they ask for: they count as running.
    let mut site = mk_site(&group, &[("a", "r1", 2)]);
    site.pods.retain(|(role, _), _| role != "router");
    assert!(simulate(&group, &[], &BTreeMap::new(), Some(site)).unwrap().complete);
}

#[test]
fn pods_that_run_stay_where_they_are_and_take_their_room_once() {
    let group = mk_batches(&mk_racks(), "hold");
    let mut site = mk_site(&group, &[("a", "r1", 3), ("b", "r2", 3), ("c", "r3", 3)]);
    let needs = mk_needs(&json!({}));
    for replica in [("prefill", 0), ("decode", 0)] {
        let uid: Arc<str> = format!("{replica:?}").into();
        site.room.apply_pod(&uid, "b", needs.load.clone(), &needs.peer);
        let pods = vec![SitePod::Bound { uid, node: "b".into() }];
        site.pods.insert((replica.0.to_owned(), replica.1), pods);
    }
    let run = simulate(&group, &[], &BTreeMap::new(), Some(site)).unwrap();
    assert!(run.complete);
    assert_eq!(run.begun, [("decode".to_owned(), 1), ("prefill".to_owned(), 1)].into());
    let steps = run.steps.iter().map(|step| (step["prefill"], step["decode"]));
    assert!(steps.eq([(2, 1), (4, 2), (6, 3)]), "{:?}", run.steps);
    let first = run.occupied.unwrap().room.node_of("prefill/1/0").map(ToString::to_string);
    assert_eq!(first.as_deref(), Some("b"), "it goes where the rest of its segment runs");
}

#[test]
fn a_single_decision_asks_for_room_beside_the_pods_that_it_counts() {
    let group = mk_batches(&mk_racks(), "hold");
    let observed = mk_observed(&[("prefill", 2, 2), ("decode", 1, 1)]);
    let decide = |nodes| decide_once(&group, &[], &observed, &BTreeMap::new(), Some(mk_site(&group, nodes))).unwrap();
    let run = decide(&[("a", "r1", 3), ("b", "r2", 2)]);
    assert!(run.steps.is_empty() && run.seen.decision.held.iter().any(|held| held.reason == HoldReason::NoRoom));
    let run = decide(&[("a", "r1", 3), ("b", "r2", 3)]);
    assert_eq!(run.steps, [BTreeMap::from([("decode".to_owned(), 2), ("prefill".to_owned(), 4)])]);
}
