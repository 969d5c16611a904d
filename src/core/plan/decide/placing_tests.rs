use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use serde_json::{Value, json};

use crate::build::{self, typed, with};
use crate::model::names::HOSTNAME;
use crate::model::{Batching, Coordination, Group, GroupKey, HoldReason, Queued};
use crate::plan::decide::DecisionContext;
use crate::plan::decide::decision::Release;
use crate::plan::decide::placed::{Awaits, GivenUp, Placed, Refused};
use crate::plan::decide::placing::no_room;
use crate::plan::evaluate::Evaluation;
use crate::plan::placement::line::Closed;
use crate::plan::placement::{Capacity, Line, NoFit, Sight, VolumeSight};
use crate::plan::recovery::RecoveryContext;
use crate::plan::status::transition_times;
pub(super) use crate::plan::test_support::held_of as held;
use crate::plan::test_support::{add_node, mk_batches, mk_group, mk_placed, mk_pod, show, stands_apart};
use crate::plan::view::{PodFacts, PodRef};

pub(super) const RACK: &str = "rack";

/// Batches of two prefills and a decode that share a rack, each pod with one processor.
pub(super) struct Scene {
    pub(super) group: Group,
    pods: Vec<PodFacts>,
    pub(super) capacity: Capacity,
    pub(super) line: Line,
    spec: Value,
}

impl Scene {
    pub(super) fn new(batches: u32, when_no_fit: &str) -> Self {
        let affinity = json!({ "topologyKey": RACK, "ratios": { "prefill": 2, "decode": 1 }, "batchMode": "Parallel" });
        Self::of(batches, when_no_fit, &json!({ "affinityScheduling": affinity }))
    }

    pub(super) fn of(batches: u32, when_no_fit: &str, strategy: &Value) -> Self {
        let coordination = json!([{ "name": "pair", "whenNoFit": when_no_fit, "strategy": strategy }]);
        let group = mk_group(&[("prefill", 2 * batches), ("decode", batches)], &coordination);
        let (pods, capacity) = (mk_batches(batches), Capacity::default());
        let mut scene = Self { group, pods, capacity, line: Line::default(), spec: json!({ "priority": 5 }) };
        (0..scene.pods.len()).for_each(|at| scene.show(at, None));
        scene
    }

    /// Batches of two coordinations that share the prefills.
    pub(super) fn with_routers(batches: u32, first: &Value, second: &Value) -> Self {
        let mut scene = Self::of(batches, "hold", first);
        let coordinations = json!([{ "name": "pd", "strategy": first }, { "name": "pr", "strategy": second }]);
        scene.group = mk_group(&[("prefill", 2 * batches), ("decode", batches), ("router", batches)], &coordinations);
        scene.pods.extend((0..batches).map(|ordinal| mk_pod(&format!("router-{ordinal}"), "router", ordinal)));
        (0..scene.pods.len()).for_each(|at| scene.show(at, None));
        scene
    }

    /// Merges a patch into the spec of one pod.
    pub(super) fn asking_of(mut self, name: &str, spec: &Value) -> Self {
        let at = self.pods.iter().position(|pod| &*pod.pod.name == name).unwrap();
        let of_all = std::mem::replace(&mut self.spec, spec.clone());
        self.show(at, None);
        self.spec = of_all;
        self
    }

    pub(super) fn node(mut self, name: &str, rack: &str, cpu: u32, cordoned: bool) -> Self {
        add_node(&mut self.capacity, (name, rack, cpu), &json!({ "spec": { "unschedulable": cordoned } }));
        self
    }

    /// Gives a node of this size the name of another one as a label.
    pub(super) fn node_named(mut self, name: &str, rack: &str, host: &str) -> Self {
        add_node(&mut self.capacity, (name, rack, 1), &json!({ "metadata": { "labels": { HOSTNAME: host } } }));
        self
    }

    /// Lets the scheduler say this of a pod.
    pub(super) fn says(&mut self, name: &str, why: &str) {
        let pod = self.pods.iter_mut().find(|pod| &*pod.pod.name == name).unwrap();
        pod.unschedulable = Some(why.into());
    }

    /// Gives a pod that runs on a node a volume that only its rack reaches.
    pub(super) fn volume_in(&mut self, name: &str, rack: &str, node: &str) {
        let volumes = json!([{ "name": "data", "persistentVolumeClaim": { "claimName": "data" } }]);
        self.capacity.remove_pod(name);
        show(&mut self.capacity, name, false, &json!({ "nodeName": node, "volumes": volumes }));
        let only = json!([{ "matchExpressions": [{ "key": RACK, "operator": "In", "values": [rack] }] }]);
        let volume = json!({ "metadata": { "name": "v" }, "spec": { "nodeAffinity": { "required": { "nodeSelectorTerms": only } } } });
        let claim = json!({ "metadata": { "name": "data", "namespace": "ns" }, "spec": { "volumeName": "v" } });
        self.capacity.change_volumes(|volumes| {
            volumes.sight = VolumeSight::Known;
            volumes.apply_claim(&typed(claim)) | volumes.apply_volume(&typed(volume))
        });
    }

    /// Adds a pod without a group on a node.
    pub(super) fn other(mut self, node: &str, cpu: u32, priority: i32) -> Self {
        let more = json!({ "nodeName": node, "priority": priority });
        let pod = with(build::pod(&format!("other-{node}"), false, &json!({ "cpu": cpu })), &json!({ "spec": more }));
        self.capacity.apply_pod(&typed(pod)).unwrap();
        self
    }

    fn affine(self, affinity: &Value) -> Self {
        self.asking(&json!({ "affinity": affinity }))
    }

    /// Merges a patch into the spec of all pods.
    pub(super) fn asking(mut self, spec: &Value) -> Self {
        json_patch::merge(&mut self.spec, spec);
        (0..self.pods.len()).for_each(|at| self.show(at, None));
        self
    }

    /// Shows a pod to the watch of room.
    fn show(&mut self, at: usize, node: Option<&str>) {
        let more = with(json!({ "nodeName": node }), &self.spec);
        show(&mut self.capacity, &self.pods[at].pod.uid, self.pods[at].held, &more);
    }

    /// Makes a pod a released one, bound to a node or not.
    pub(super) fn went(mut self, name: &str, node: Option<&str>) -> Self {
        let at = self.pods.iter().position(|pod| &*pod.pod.name == name).unwrap();
        (self.pods[at].held, self.pods[at].scheduled) = (false, node.is_some());
        self.show(at, node);
        self
    }

    /// Makes the pods of the first batch released ones.
    fn first_went(self, node: Option<&str>) -> Self {
        ["prefill-0", "prefill-1", "decode-0"].into_iter().fold(self, |scene, name| scene.went(name, node))
    }

    /// Deletes and recreates a pod.
    pub(super) fn comes_back(mut self, name: &str) -> Self {
        let at = self.pods.iter().position(|pod| &*pod.pod.name == name).unwrap();
        self.capacity.remove_pod(&self.pods[at].pod.uid);
        let (role, ordinal) = name.rsplit_once('-').unwrap();
        let made = mk_pod(&format!("{name}-again"), role, ordinal.parse().unwrap());
        self.pods[at] = PodFacts { pod: PodRef { name: name.into(), ..made.pod }, ..made };
        self.show(at, None);
        self
    }

    /// Stores an earlier commit: all pods may run, and the batches have these domains.
    pub(super) fn committed(mut self, domains: &[(&str, &str)]) -> Self {
        self = self.store();
        let domains = domains.iter().map(|(index, domain)| ((*index).to_owned(), (*domain).to_owned())).collect();
        let state = &mut self.group.status.coordination_state[0];
        state.domains = domains;
        for (role, progress) in &mut state.progress {
            progress.released = self.group.roles.iter().find(|of| of.name == *role).map(|role| role.desired);
        }
        self
    }

    pub(super) fn store(mut self) -> Self {
        let status = self.decide(DecisionContext::default()).status;
        self.group.status = transition_times::set(status, &self.group.status, "2026-01-01T00:00:00Z");
        self
    }

    pub(super) fn decide(&mut self, context: DecisionContext<'_>) -> Evaluation {
        let sight = Sight::Known(&mut self.capacity);
        decide(&self.group, &self.pods, (&mut self.line, sight), context)
    }
}

fn decide(group: &Group, pods: &[PodFacts], line: (&mut Line, Sight<'_>), context: DecisionContext<'_>) -> Evaluation {
    let key = |(coordination, batching): (&Coordination, &Batching)| {
        Some((coordination.index, batching.placed_in()?.key(|_, _| None)?))
    };
    let keys: Vec<_> = group.batched().filter_map(key).collect();
    mk_placed(group, pods, line, DecisionContext { domain_keys: &keys, ..context })
}

pub(super) fn domains(seen: &Evaluation) -> BTreeMap<String, String> {
    seen.status.coordination_state[0].domains.clone()
}

/// What is known when the first batch has waited for its nodes.
fn waited<'a>() -> DecisionContext<'a> {
    DecisionContext { waited: &[(0, 0, Awaits::Node)], ..DecisionContext::default() }
}

/// Returns the name of each pod to release, whether it needs no commit, and its pin.
pub(super) fn going(seen: &Evaluation) -> Vec<(&str, bool, Vec<&str>)> {
    seen.decision.release.iter().map(one_going).collect()
}

fn one_going(release: &Release) -> (&str, bool, Vec<&str>) {
    let pin = [RACK, HOSTNAME].into_iter().filter_map(|key| release.pin.get(key)).map(String::as_str);
    (&*release.pod.pod.name, release.at_once, pin.collect())
}

#[test]
fn a_batch_goes_to_its_domain_when_that_is_committed() {
    let mut scene = Scene::new(1, "hold").node("a", "r1", 2, false).node("b", "r2", 2, false).node("c", "r2", 1, false);
    let first = scene.decide(DecisionContext::default());
    assert!(first.needs_commit(&scene.group));
    assert!(going(&first).iter().all(|(_, now, _)| !now), "nothing goes without a commit");
    assert_eq!(domains(&first), [("0".to_owned(), "r2".to_owned())].into());
    let mut scene = scene.store();
    let second = scene.decide(DecisionContext::default());
    let expected = ["decode-0", "prefill-0", "prefill-1"].map(|pod| (pod, true, vec!["r2"]));
    assert_eq!(going(&second), expected);
    assert!(!second.needs_commit(&scene.group));
    // Another group finds the room taken.
    let room = scene.capacity.room();
    let mut in_r2 = room.nodes().filter(|(_, _, facts)| facts.label(RACK) == Some("r2"));
    assert!(in_r2.all(|(_, room, _)| room.free("cpu") == 0));
}

/// Each pod must be near a foreign pod: only the scheduler can assign nodes.
#[test]
fn where_the_scheduler_looks_at_more_the_node_is_its_choice() {
    let terms = json!([{ "topologyKey": HOSTNAME, "labelSelector": { "matchLabels": { "app": "x" } } }]);
    let near = json!({ "podAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": terms } });
    let mut scene = Scene::new(1, "hold").affine(&near).node("a", "r1", 9, false).store();
    let seen = scene.decide(DecisionContext::default());
    assert!(going(&seen).iter().all(|(_, now, pin)| *now && *pin == ["r1"]), "{:?}", going(&seen));
}

#[test]
fn what_does_not_fit_waits_and_so_does_what_comes_after_it() {
    let mut scene = Scene::new(3, "hold").node("a", "r1", 3, false).node("b", "r2", 2, false);
    let seen = scene.decide(DecisionContext::default());
    assert_eq!(going(&seen).len(), 3);
    let why = "no rack fits batch 2: best r2 fits 2 of 3 pods, short of 1 cpu";
    assert_eq!(held(&seen), [(HoldReason::NoRoom, 6, why)]);
    assert_eq!(scene.line.in_order(), [scene.group.key.clone()]);
}

#[test]
fn for_whom_a_domain_is_kept_is_told_in_its_own_namespace_only() {
    let group = Scene::new(1, "hold").group;
    let (_, batching) = group.batched().next().unwrap();
    let (key, domain, group) = (RACK.to_owned(), "r1".to_owned(), GroupKey::new("theirs", "first"));
    let closed = Closed { key, domain, group, unbound: false };
    let told = |namespace| no_room(batching, RACK, 0, &NoFit::default(), (Some(&closed), namespace));
    let why = "no rack fits batch 1: no node has one; r1 is kept for";
    assert_eq!(told("theirs"), format!("{why} group \"first\", which waits longer"));
    assert_eq!(told("ours"), format!("{why} a group of another namespace, which waits longer"));
}

/// Returns the released count of each role, and its state.
fn progress(seen: &Evaluation) -> Vec<(&str, u32, &str)> {
    let progress = seen.status.coordination_state[0].progress.iter();
    progress.map(|(role, of)| (role.as_str(), of.released.unwrap(), of.state.as_str())).collect()
}

#[test]
fn a_batch_without_a_place_is_not_told_to_be_released() {
    let scene = || Scene::new(2, "hold").node("a", "r1", 3, false).node("b", "r2", 2, false);
    let mut scene = scene().store();
    let seen = scene.decide(DecisionContext::default());
    assert_eq!(progress(&seen), [("decode", 1, "Progressing"), ("prefill", 2, "Progressing")]);
    assert_eq!(held(&seen)[0].0, HoldReason::NoRoom);
    assert!(!seen.needs_commit(&scene.group), "nothing is written for a batch that does not go");
    let mut scene = scene.node("c", "r2", 1, false);
    let seen = scene.decide(DecisionContext::default());
    assert_eq!(progress(&seen), [("decode", 2, "Complete"), ("prefill", 4, "Complete")]);
    assert!(seen.needs_commit(&scene.group), "count and domain are committed at once");
}

/// Some or all of its pods are made anew: told to be released, it would be taken for one that runs once they are there and do not fit.
#[test]
fn a_batch_that_lacks_pods_has_no_place_and_is_not_told_to_be_released() {
    for missing in [["prefill-3"].as_slice(), &["prefill-2", "prefill-3", "decode-1"]] {
        let mut scene = Scene::new(2, "hold").node("a", "r1", 3, false).node("b", "r2", 3, false);
        scene.pods.retain(|pod| !missing.contains(&&*pod.pod.name));
        let seen = scene.decide(DecisionContext::default());
        assert_eq!(progress(&seen), [("decode", 1, "Progressing"), ("prefill", 2, "Progressing")], "{missing:?}");
    }
}

/// The third batch has no pods yet.
#[test]
fn what_comes_after_a_batch_without_a_place_waits_for_room_too() {
    let mut scene = Scene::new(3, "hold").node("a", "r1", 3, false).node("b", "r2", 2, false);
    scene.pods.retain(|pod| !["prefill-4", "prefill-5", "decode-2"].contains(&&*pod.pod.name));
    let seen = scene.decide(DecisionContext::default());
    let reasons: Vec<_> = seen.batches(&scene.group).iter().map(|batch| batch.reason).collect();
    assert_eq!(reasons, [None, Some(HoldReason::NoRoom), Some(HoldReason::NoRoom)]);
}

#[test]
fn a_batch_that_has_lost_its_room_stays_released_and_is_not_complete() {
    let mut scene = Scene::new(1, "hold").node("a", "r1", 2, false).committed(&[("0", "r1")]);
    let seen = scene.decide(DecisionContext::default());
    assert_eq!(progress(&seen), [("decode", 1, "Progressing"), ("prefill", 2, "Progressing")]);
    assert_eq!(held(&seen)[0].0, HoldReason::NoRoom);
}

/// Batch 1 waits for Kueue, batch 2 does not.
#[test]
fn a_batch_that_goes_before_one_that_waits_is_committed_with_it() {
    let mut scene = Scene::new(3, "hold").node("a", "r1", 9, false);
    scene.pods[0].queued = Queued::Waits;
    scene.pods[5].queued = Queued::Waits;
    let seen = scene.decide(DecisionContext::default());
    assert_eq!(progress(&seen), [("decode", 2, "Progressing"), ("prefill", 4, "Progressing")]);
    let mut scene = scene.store();
    let seen = scene.decide(DecisionContext::default());
    let names: Vec<_> = going(&seen).into_iter().map(|(name, now, _)| (name, now)).collect();
    assert_eq!(names, [("decode-1", true), ("prefill-2", true), ("prefill-3", true)]);
}

#[test]
fn a_batch_that_is_to_go_all_the_same_goes_where_most_of_it_fits() {
    let mut scene = Scene::new(1, "release").node("a", "r1", 1, false).node("b", "r2", 2, false).store();
    let seen = scene.decide(DecisionContext::default());
    assert!(going(&seen).iter().all(|(_, now, pin)| *now && *pin == ["r2"]), "{:?}", going(&seen));
    assert_eq!(held(&seen), []);
}

#[test]
fn a_batch_that_may_preempt_goes_where_lower_priorities_make_way() {
    let crowded = |priority| {
        let scene = Scene::new(1, "preempt").node("a", "r1", 2, false).node("b", "r2", 3, false);
        scene.other("b", 3, priority).store()
    };
    let seen = crowded(4).decide(DecisionContext::default());
    assert!(going(&seen).iter().all(|(_, now, pin)| *now && *pin == ["r2"]), "{:?}", going(&seen));
    let seen = crowded(5).decide(DecisionContext::default());
    assert_eq!(held(&seen)[0].0, HoldReason::NoRoom, "its own priority is no higher");
}

#[test]
fn a_batch_of_which_nothing_runs_leaves_a_domain_that_is_lost() {
    let mut scene = Scene::new(1, "hold").node("a", "r1", 9, true).node("b", "r2", 3, false).committed(&[("0", "r1")]);
    let seen = scene.decide(DecisionContext::default());
    assert_eq!(domains(&seen), [("0".to_owned(), "r2".to_owned())].into());
    assert_eq!(seen.decision.placed.moved[0].message, "batch 1 goes to r2: it does not fit into r1 any more");
    assert!(going(&seen).iter().all(|(_, now, _)| !now));
}

#[test]
fn what_is_made_again_goes_to_where_the_others_of_its_batch_are() {
    for node in [Some("a"), None] {
        let scene = Scene::new(1, "hold").node("a", "r1", 9, true).node("b", "r2", 3, false);
        let mut scene = scene.committed(&[("0", "r1")]).went("prefill-0", node).went("decode-0", node);
        let seen = scene.decide(DecisionContext::default());
        assert_eq!(going(&seen), [("prefill-1", true, vec!["r1"])], "{node:?}");
        assert_eq!(seen.decision.placed.moved, []);
    }
}

/// The release may be done: that pod would be in the old domain, and the others elsewhere.
#[test]
fn a_batch_stays_while_releases_are_under_way() {
    let mut scene = Scene::new(1, "hold").node("a", "r1", 9, true).node("b", "r2", 3, false).committed(&[("0", "r1")]);
    let uid: Arc<str> = "prefill-0".into();
    let (in_flight, refused) = (HashSet::from([uid.clone()]), BTreeMap::from([(uid, "no".into())]));
    let contexts = [
        DecisionContext { in_flight: Some(&in_flight), ..DecisionContext::default() },
        DecisionContext { refused: Some(&refused), ..DecisionContext::default() },
    ];
    for context in contexts {
        assert_eq!(domains(&scene.decide(context)), [("0".to_owned(), "r1".to_owned())].into());
    }
}

/// The release may be done, with the node it names: later pods fit in beside it.
#[test]
fn a_pod_that_is_being_released_keeps_its_node_while_others_of_its_batch_come() {
    let orders = [["prefill-0", "prefill-1", "decode-0"], ["decode-0", "prefill-1", "prefill-0"]].into_iter();
    for (order, [a, b]) in orders.flat_map(|order| [[1, 2], [2, 1], [1, 3], [2, 3]].map(|free| (order, free))) {
        let scene = Scene::new(1, "hold").node("a", "r1", a, false).node("b", "r1", b, false);
        let mut scene = scene.committed(&[("0", "r1")]);
        // The pods ran on a node that is gone.
        for name in order {
            scene = scene.went(name, Some("gone"));
        }
        let (mut pins, mut in_flight) = (BTreeMap::new(), HashSet::new());
        for name in order {
            scene = scene.comes_back(name);
            let context = DecisionContext { in_flight: Some(&in_flight), ..DecisionContext::default() };
            for Release { pod, pin, at_once } in scene.decide(context).decision.release {
                assert!(at_once);
                assert_eq!(pins.entry(pod.pod.uid.clone()).or_insert_with(|| pin.clone()), &pin, "{}", pod.pod.name);
                in_flight.insert(pod.pod.uid.clone());
            }
        }
        assert_eq!(pins.len(), 3);
    }
}

#[test]
fn a_pod_is_where_its_release_bound_it_whatever_was_assumed_since() {
    let scene = Scene::new(1, "hold").node("a", "r1", 3, false).node("b", "r1", 3, false);
    let mut scene = scene.asking_of("decode-0", &json!({ "priority": 6 })).committed(&[("0", "r1")]);
    let seen = scene.decide(DecisionContext::default());
    let other = |host: &str| if host == "a" { "b" } else { "a" };
    for release in seen.decision.release {
        let (uid, node) = (&release.pod.pod.uid, other(&release.pin[HOSTNAME]));
        show(&mut scene.capacity, uid, false, &json!({ "nodeSelector": { HOSTNAME: node } }));
        assert_eq!(scene.capacity.assumed(uid).map(|node| &**node), Some(node));
    }
}

/// The pods are deleted one by one: the first recreated pod need not follow the remaining ones.
#[test]
fn a_batch_that_was_never_bound_leaves_a_domain_that_has_no_node_left_for_it() {
    let scene = Scene::new(1, "hold").node("b", "r2", 3, false).committed(&[("0", "r1")]);
    let mut scene = scene.went("prefill-0", None).went("decode-0", None);
    // The watch of room may know already that a pod is deleted.
    scene.capacity.remove_pod("decode-0");
    let seen = scene.decide(DecisionContext::default());
    assert_eq!(domains(&seen), [("0".to_owned(), "r2".to_owned())].into());
    assert!(going(&seen).iter().all(|(name, now, pin)| (*name, *now, pin[0]) == ("prefill-1", false, "r2")));
}

#[test]
fn a_recreated_pod_waits_until_the_others_that_got_no_node_are_deleted() {
    let scene = Scene::new(1, "hold").node("a", "r1", 3, false).node("b", "r2", 3, false).committed(&[("0", "r1")]);
    let mut scene = scene.went("prefill-0", None).went("prefill-1", None);
    let pods = ["prefill-0", "prefill-1", "the decode-0 before"].map(Arc::from).into_iter().collect();
    let known = [((0, 0), GivenUp { domain: "r1".to_owned(), pods })];
    let seen = scene.decide(DecisionContext { given_up: &known, ..waited() });
    assert_eq!(seen.decision.placed.made_again.len(), 2);
    assert!(going(&seen).is_empty(), "decode-0 would keep the others in r1");
}

#[test]
fn room_that_is_not_used_in_time_is_free_again() {
    let scene = Scene::new(1, "hold").node("a", "r1", 3, false).committed(&[("0", "r1")]);
    let mut scene = scene.went("prefill-0", None).went("prefill-1", None).went("decode-0", Some("a"));
    let free = |scene: &Scene| scene.capacity.room().nodes().map(|(_, room, _)| room.free("cpu")).sum::<i64>();
    let seen = scene.decide(DecisionContext::default());
    assert_eq!(seen.decision.placed.waits, [(0, 0, Awaits::Node)].into());
    assert_eq!((held(&seen), free(&scene)), (vec![], 0));
    let seen = scene.decide(waited());
    let why =
        "batch 1 was placed in r1, and 2 of its pods have no node there; they are deleted, made again and placed again";
    assert_eq!((held(&seen), free(&scene)), (vec![(HoldReason::PlacedNotBound, 0, why)], 2000));
    let names =
        |seen: &Evaluation| seen.decision.placed.made_again.iter().map(|pod| pod.name.to_string()).collect::<Vec<_>>();
    assert_eq!(names(&seen), ["prefill-0", "prefill-1"], "what is bound stays");
    let given_up = |pods: &[&str]| {
        let pods = pods.iter().map(|uid| Arc::from(*uid)).collect();
        [((0, 0), GivenUp { domain: "r1".to_owned(), pods })]
    };
    let known = given_up(&["prefill-0"]);
    let later = DecisionContext { given_up: &known, ..waited() };
    assert_eq!(names(&scene.decide(later)), ["prefill-0"], "it is still to go");
    let given_up = given_up(&[]);
    let later = DecisionContext { given_up: &given_up, ..waited() };
    let seen = scene.decide(later);
    assert_eq!(names(&seen), Vec::<String>::new(), "once, and again after a while");
    let recovery = &RecoveryContext { off: true, ..RecoveryContext::default() };
    let seen = scene.decide(DecisionContext { recovery, ..waited() });
    let why = "batch 1 was placed in r1, and 2 of its pods have no node there; \
               `kubectl delete pod -n ns prefill-0 prefill-1` has them placed again";
    assert_eq!((held(&seen)[0].2, names(&seen)), (why, vec![]));
}

#[test]
fn a_batch_whose_rest_has_no_room_in_its_domain_moves_as_a_whole_or_not_at_all() {
    let scene = |room: u32| {
        let scene = Scene::new(1, "hold").node("a", "r1", 2, false).node("b", "r2", room, false);
        let scene = scene.committed(&[("0", "r1")]);
        scene.went("prefill-0", Some("a")).went("prefill-1", Some("a")).went("decode-0", None)
    };
    let of = |seen: &Evaluation| {
        let Placed { moves, made_again, given_up, .. } = seen.decision.placed.clone();
        (moves.len(), made_again.len(), given_up.len())
    };
    let told = "batch 1 was placed in r1, and 1 of its pods have no node there; they have no room there, and ";
    let seen = scene(3).decide(waited());
    assert_eq!((of(&seen), seen.decision.placed.moves.first()), ((1, 0, 1), Some(&(0, 0))));
    assert_eq!(held(&seen)[0].2, format!("{told}r2 has room for all of it: it is recreated as a whole"));
    let seen = scene(2).decide(waited());
    assert_eq!(of(&seen), (0, 0, 0), "nothing is deleted");
    assert_eq!(held(&seen)[0].2, format!("{told}no other domain has room for all of it, so nothing is deleted"));
    let recovery = &RecoveryContext { off: true, ..RecoveryContext::default() };
    let seen = scene(3).decide(DecisionContext { recovery, ..waited() });
    let command = "`kubectl delete pod -n ns decode-0 prefill-0 prefill-1` has them placed again";
    assert_eq!((of(&seen), held(&seen)[0].2), ((0, 0, 0), &*format!("{told}r2 has room for all of it: {command}")));
    let seen = scene(3).node("c", "r1", 1, false).decide(waited());
    assert_eq!(of(&seen), (0, 1, 1), "the rest has room in its own domain: it alone is placed again");
}

#[test]
fn a_cut_batch_goes_where_it_has_room_to_grow() {
    let scene = |room: u32| {
        let mut scene =
            Scene::new(2, "hold").node("a", "r1", 2, false).node("b", "r2", room, false).node("c", "r3", 9, false);
        scene.group.roles.iter_mut().filter(|role| role.name == "decode").for_each(|role| {
            role.desired = 1;
            stands_apart(role);
        });
        scene.pods.retain(|pod| &*pod.pod.name != "decode-1");
        scene.capacity.remove_pod("decode-1");
        scene.first_went(Some("c")).other("c", 6, 9)
    };
    let to = |mut scene: Scene| domains(&scene.decide(DecisionContext::default())).get("1").cloned();
    assert_eq!(to(scene(3)).as_deref(), Some("r2"), "a decode may come");
    assert_eq!(to(scene(1)).as_deref(), Some("r1"), "else where it fits");
}

/// The time of the scheduler begins when the last pod is free of gates.
#[test]
fn pods_that_others_hold_are_not_made_again_and_lose_their_room_meanwhile() {
    let scene = || Scene::new(1, "hold").node("a", "r1", 3, false).committed(&[("0", "r1")]);
    let went = |scene: Scene| scene.went("prefill-0", None).went("prefill-1", None).went("decode-0", Some("a"));
    let mut scene = went(scene());
    scene.pods[1].gated = true;
    let waits = |scene: &mut Scene| scene.decide(DecisionContext::default()).decision.placed.waits;
    assert_eq!(waits(&mut scene), [(0, 0, Awaits::Gates)].into());
    let waited = DecisionContext { waited: &[(0, 0, Awaits::Gates)], ..DecisionContext::default() };
    let seen = scene.decide(waited);
    let why = "batch 1 was placed in r1, and 2 of its pods have no node there; scheduling gates of others hold 1 of them \
               (`rolegate explain pod -n ns prefill-1` names the gates)";
    assert_eq!(held(&seen), vec![(HoldReason::PlacedNotBound, 0, why)]);
    let Placed { made_again, given_up, .. } = &seen.decision.placed;
    assert_eq!((made_again.len(), given_up.len()), (0, 0), "the domain is not to blame");
    scene.pods[1].gated = false;
    assert_eq!(waits(&mut scene), [(0, 0, Awaits::Node)].into(), "a wait of its own");
    assert_eq!(held(&scene.decide(waited)), vec![]);
}

/// The group was recreated, or has lost its status: pods that wait for a node state their domain.
#[test]
fn a_batch_without_a_committed_domain_has_that_of_its_pods_which_wait_for_a_node() {
    let scene = Scene::new(1, "hold").node("b", "r2", 9, false).asking(&json!({ "nodeSelector": { RACK: "r1" } }));
    let seen = scene.first_went(None).decide(DecisionContext::default());
    assert_eq!(domains(&seen), [("0".to_owned(), "r1".to_owned())].into());
    let waits = seen.decision.placed.waits;
    assert_eq!(waits, [(0, 0, Awaits::Node)].into(), "and they are waited for no longer than others");
}

#[test]
fn a_batch_that_got_no_node_in_time_goes_elsewhere_when_all_its_pods_are_there_again() {
    let given_up = [((0, 0), GivenUp { domain: "r1".to_owned(), pods: BTreeSet::new() })];
    let context = || DecisionContext { given_up: &given_up, ..DecisionContext::default() };
    let scene = || {
        let scene = Scene::new(1, "hold").node("a", "r1", 3, false).committed(&[("0", "r1")]);
        ["prefill-0", "prefill-1", "decode-0"].into_iter().fold(scene, Scene::comes_back)
    };
    let mut other = scene().node("b", "r2", 9, false);
    let seen = other.decide(context());
    assert_eq!(domains(&seen), [("0".to_owned(), "r2".to_owned())].into());
    assert_eq!(seen.decision.placed.moved[0].message, "batch 1 goes to r2: its pods got no node in r1");
    let seen = scene().node("b", "r2", 2, false).decide(context());
    assert!(going(&seen).iter().all(|(_, now, pin)| (*now, pin[0]) == (true, "r1")), "no other has room");
    let mut other = scene();
    let missing = other.pods.pop().unwrap();
    let seen = other.decide(context());
    let why = "batch 1 is held: 0/1 decode and 2/2 prefill exist";
    assert_eq!((going(&seen), held(&seen)[0]), (vec![], (HoldReason::IncompleteBatch, 2, why)));
    other.pods.push(missing);
    let mut runs = other.went("decode-0", Some("a"));
    assert_eq!(domains(&runs.decide(context())), [("0".to_owned(), "r1".to_owned())].into(), "what runs in part stays");
}

#[test]
fn a_node_that_refuses_pods_of_a_batch_gets_none_of_it_and_who_runs_there_is_waited_for() {
    let nodes = BTreeMap::from([(Arc::from("a"), None)]);
    let refusing = [Refused { batch: (0, 0), pod: None, why: Arc::default(), nodes }];
    let context = || DecisionContext { refusing: &refusing, ..DecisionContext::default() };
    let scene = || Scene::new(1, "hold").node("a", "r1", 3, false).node("b", "r1", 3, false);
    let hosts = |seen: &Evaluation| going(seen).iter().map(|(_, _, pin)| pin[1].to_owned()).collect::<Vec<_>>();
    assert_eq!(hosts(&scene().decide(context())), ["b", "b", "b"]);
    let mut runs = scene().committed(&[("0", "r1")]).went("decode-0", Some("b")).went("prefill-0", Some("b"));
    runs = runs.comes_back("prefill-1").other("b", 1, 0);
    let seen = runs.decide(context());
    let why = "batch 1 is in r1, and the rest of it does not fit there: there is room for 0 of 1 pods, short of 1 cpu, nodes where \
               its pods were refused: 1";
    assert_eq!((going(&seen), held(&seen)), (vec![], vec![(HoldReason::NoRoom, 1, why)]));
    let again = [("prefill-1", true, vec!["r1"])];
    assert_eq!(going(&runs.decide(DecisionContext::default())), again, "after a while it is tried again");
}

#[test]
fn a_domain_of_another_name_is_that_of_the_nodes_on_which_the_batch_runs() {
    let scene = Scene::new(1, "hold").node("a", "r9", 3, false).node("b", "r2", 9, false).committed(&[("0", "r1")]);
    let mut scene = scene.went("decode-0", Some("a")).went("prefill-0", Some("a"));
    let seen = scene.decide(DecisionContext::default());
    assert_eq!(domains(&seen), [("0".to_owned(), "r9".to_owned())].into());
    assert_eq!(seen.decision.placed.moved[0].message, "batch 1 goes to r9: no node is in r1 any more");
    assert_eq!(going(&scene.store().decide(DecisionContext::default())), [("prefill-1", true, vec!["r9"])]);
}

#[test]
fn without_a_look_at_nodes_batches_wait_or_go_as_they_are() {
    let Scene { group, pods, mut line, .. } = Scene::new(1, "hold").committed(&[]);
    let seen = decide(&group, &pods, (&mut line, Sight::NotYet), DecisionContext::default());
    let why = "batch 1 is held: what room there is, is not known yet";
    assert_eq!((going(&seen), held(&seen)), (vec![], vec![(HoldReason::RoomUnknown, 3, why)]));
    let sight = Sight::Refused("nodes may not be read");
    let seen = decide(&group, &pods, (&mut line, sight), DecisionContext::default());
    assert_eq!(held(&seen), [(HoldReason::RoomUnknown, 0, "batch 1 goes without a place: nodes may not be read")]);
    assert!(going(&seen).iter().all(|(_, now, pin)| *now && pin.is_empty()));
    assert_eq!(unjudged(&seen), Some("what is to go as a whole goes without a place: nodes may not be read"));
}

/// Returns what the condition says on batches that went without a look.
pub(super) fn unjudged(seen: &Evaluation) -> Option<&str> {
    let mut conditions = seen.status.conditions.iter();
    conditions.find(|told| told.r#type == "RoomUnknown").map(|told| told.message.as_str())
}

#[test]
fn a_batch_that_is_gone_has_no_domain() {
    let mut scene = Scene::new(1, "hold").node("a", "r1", 3, false).committed(&[("0", "r1"), ("1", "r1"), ("x", "r1")]);
    assert_eq!(domains(&scene.decide(DecisionContext::default())), [("0".to_owned(), "r1".to_owned())].into());
}

#[test]
fn a_batch_is_placed_when_the_last_of_its_pods_is_let_go_by_kueue() {
    let mut scene = Scene::new(1, "hold").node("a", "r1", 3, false);
    scene.pods[0].queued = Queued::Waits;
    let seen = scene.decide(DecisionContext::default());
    let why = "batch 1 is held: one of its pods waits for Kueue, which may say on which nodes it runs";
    assert_eq!((going(&seen), held(&seen)), (vec![], vec![(HoldReason::GatedByOthers, 3, why)]));
    assert!(domains(&seen).is_empty(), "no domain is chosen before");
    scene.pods[0].queued = Queued::Admitted;
    let seen = scene.decide(DecisionContext::default());
    assert_eq!((going(&seen).len(), held(&seen)), (3, vec![]));
}

#[test]
fn a_pod_that_comes_back_to_a_placed_batch_waits_alone() {
    let scene = Scene::new(1, "hold").node("a", "r1", 3, false).committed(&[("0", "r1")]);
    let mut scene = scene.went("decode-0", Some("a"));
    scene.pods[0].queued = Queued::Waits;
    let seen = scene.decide(DecisionContext::default());
    assert!(going(&seen).iter().map(|(name, ..)| *name).eq(["prefill-1"]), "{:?}", going(&seen));
    let held = held(&seen).into_iter().map(|(reason, count, _)| (reason, count)).collect::<Vec<_>>();
    assert_eq!(held, [(HoldReason::GatedByOthers, 1)]);
}
