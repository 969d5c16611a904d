use std::collections::HashSet;
use std::time::Duration;

use serde_json::{Value, json};

use crate::api::scheduling::SchedulingPod;
use crate::build;
use crate::model::workload_object::WorkloadObject;
use crate::model::{Group, HoldReason, ScaledWorkload};
use crate::plan::decide::DecisionContext;
use crate::plan::decide::placed::Awaits;
use crate::plan::elastic::ElasticContext;
use crate::plan::evaluate::Evaluation;
use crate::plan::placement::{Capacity, Line, Placer, Sight, VolumeSight};
use crate::plan::status::transition_times;
use crate::plan::test_support::{Workloads, add_node, held_of as held, mk_batches, mk_placed, mk_set, show};
use crate::plan::view::PodFacts;

const RACK: &str = "rack";

/// An elastic group with two prefills and a decode in each segment, which share a rack, each pod with one processor; no pod
/// exists.
struct Scene {
    group: Group,
    scaled: Vec<ScaledWorkload>,
    capacity: Capacity,
    line: Line,
}

impl Scene {
    fn new(name: &str, spec: &Value) -> Self {
        let containers = json!([{ "resources": { "requests": { "cpu": 1 } } }]);
        let pods = json!({ "containers": containers, "nodeSelector": { "pool": "gpu" } });
        let set = |role: &str| mk_set(&format!("{name}-{role}"), 0, &build::labels(name, role), &pods);
        let sets = ["prefill", "decode"].map(set);
        let affinity = json!({ "strategy": "RequireSegmentAffinity", "topologyKey": RACK });
        let segments = build::segments(&[("prefill", 2), ("decode", 1)], &json!({ "topologyAffinity": affinity }));
        Self {
            group: Workloads::of(&sets).group(name, &format!("{name}-"), &segments, &json!({ "spec": spec })),
            scaled: sets.iter().filter_map(WorkloadObject::scaled).collect(),
            capacity: Capacity::default(),
            line: Line::default(),
        }
    }

    fn node(&mut self, name: &str, rack: &str, cpu: u32, pool: &str) {
        add_node(&mut self.capacity, (name, rack, cpu), &json!({ "metadata": { "labels": { "pool": pool } } }));
    }

    /// Changes the pods of all templates.
    fn each_pod(&mut self, change: impl Fn(&mut SchedulingPod)) {
        let replicas = self.scaled.iter_mut().map(|workload| &mut std::sync::Arc::make_mut(&mut workload.replica).0);
        replicas.flatten().for_each(|(pod, _)| change(pod));
    }

    fn decide(&mut self, pods: &[PodFacts], context: DecisionContext<'_>) -> Evaluation {
        let (group, sight) = (&self.group, Sight::Known(&mut self.capacity));
        decide(group, &self.scaled, pods, (&mut self.line, sight), context)
    }

    /// Commits the decided status.
    fn store(&mut self, seen: &Evaluation) {
        self.group.status = transition_times::set(seen.status.clone(), &self.group.status, "2026-01-01T00:00:00Z");
    }

    fn free(&self) -> i64 {
        self.capacity.room().nodes().map(|(_, room, _)| room.free("cpu") / 1000).sum()
    }
}

fn decide(
    group: &Group,
    workloads: &[ScaledWorkload],
    pods: &[PodFacts],
    line: (&mut Line, Sight<'_>),
    context: DecisionContext<'_>,
) -> Evaluation {
    let keys = [(0, RACK.to_owned())];
    let elastic = ElasticContext { workloads, ..ElasticContext::default() };
    mk_placed(group, pods, line, DecisionContext { domain_keys: &keys, elastic, ..context })
}

fn released(seen: &Evaluation) -> [u32; 2] {
    ["prefill", "decode"].map(|role| seen.decision.released[role])
}

#[test]
fn a_segment_is_let_when_a_rack_has_room_for_what_its_templates_ask_for() {
    let mut scene = Scene::new("pd", &json!({ "segments": 2 }));
    scene.node("a", "r1", 2, "gpu");
    scene.node("other", "r2", 64, "cpu");
    let seen = scene.decide(&[], DecisionContext::default());
    assert_eq!(released(&seen), [0, 0]);
    let why = "no rack fits segment 1: best r1 fits 2 of 3 pods, short of 1 cpu";
    assert_eq!(held(&seen), [(HoldReason::NoRoom, 0, why)]);
    let told = seen.status.condition("Elastic").unwrap();
    assert_eq!((told.reason.as_str(), &*told.message), ("NoRoom", &*format!("0 of 2 segments released: {why}")));
    assert!(seen.decision.placed.needs_room, "a node that comes ends it");
    assert_eq!(scene.line.in_order(), [scene.group.key.clone()]);
    scene.node("b", "r1", 2, "gpu");
    let seen = scene.decide(&[], DecisionContext::default());
    assert_eq!((released(&seen), held(&seen)), ([2, 1], vec![]));
    assert!(scene.line.is_empty());
}

#[test]
fn its_room_is_kept_until_its_pods_are_there_and_then_it_is_theirs() {
    let mut scene = Scene::new("pd", &json!({ "segments": 1 }));
    scene.node("a", "r1", 4, "gpu");
    let seen = scene.decide(&[], DecisionContext::default());
    scene.store(&seen);
    assert_eq!(scene.free(), 1);
    let mut pods = Vec::new();
    for pod in mk_batches(1) {
        let seen = scene.decide(&pods, DecisionContext::default());
        assert_eq!((scene.free(), seen.decision.release.len()), (1, 0), "{} pods are there", pods.len());
        show(&mut scene.capacity, &pod.pod.uid, true, &json!({}));
        pods.push(pod);
    }
    let seen = scene.decide(&pods, DecisionContext::default());
    assert_eq!((scene.free(), seen.decision.release.len()), (1, 3), "no room is taken twice");
}

#[test]
fn of_two_groups_one_has_the_last_rack_and_the_other_makes_no_pod() {
    let mut first = Scene::new("pd", &json!({ "segments": 1 }));
    first.node("a", "r1", 3, "gpu");
    let second = Scene::new("other", &json!({ "segments": 1 }));
    let seen = first.decide(&[], DecisionContext::default());
    assert_eq!(released(&seen), [2, 1]);
    let sight = Sight::Known(&mut first.capacity);
    let seen = decide(&second.group, &second.scaled, &[], (&mut first.line, sight), DecisionContext::default());
    assert_eq!((released(&seen), held(&seen)[0].0), ([0, 0], HoldReason::NoRoom));
}

#[test]
fn room_of_pods_that_never_come_is_not_kept_for_ever_nor_that_of_a_group_that_is_gone() {
    let mut scene = Scene::new("pd", &json!({ "segments": 1 }));
    scene.node("a", "r1", 3, "gpu");
    let seen = scene.decide(&[], DecisionContext::default());
    scene.store(&seen);
    let seen = scene.decide(&[], DecisionContext::default());
    assert_eq!((scene.free(), &seen.decision.placed.waits), (0, &[(0, 0, Awaits::Pods)].into()));
    let seen = scene.decide(&[], DecisionContext { waited: &[(0, 0, Awaits::Pods)], ..DecisionContext::default() });
    assert_eq!((scene.free(), released(&seen)), (3, [2, 1]), "what was let stays so");
    scene.decide(&[], DecisionContext::default());
    assert_eq!(scene.free(), 0);
    Placer::new(scene.group.key, Sight::Known(&mut scene.capacity), &mut scene.line, false, Duration::ZERO)
        .finish(HashSet::new);
    assert_eq!(scene.capacity.room().nodes().map(|(_, room, _)| room.free("cpu")).sum::<i64>(), 3000);
}

#[test]
fn nothing_is_made_before_nodes_are_known_and_everything_where_they_may_not_be_read() {
    let Scene { group, scaled, mut line, .. } = Scene::new("pd", &json!({ "segments": 1 }));
    let seen = decide(&group, &scaled, &[], (&mut line, Sight::NotYet), DecisionContext::default());
    assert_eq!((released(&seen), held(&seen)), ([0, 0], vec![]));
    assert!(seen.decision.placed.is_blind && seen.decision.placed.needs_room);
    let told = seen.status.condition("Elastic").unwrap();
    assert_eq!(told.reason, "RoomUnknown");
    let sight = Sight::Refused("nodes may not be read");
    let seen = decide(&group, &scaled, &[], (&mut line, sight), DecisionContext::default());
    assert_eq!(released(&seen), [2, 1]);
}

#[test]
fn what_admission_adds_to_pods_decides_where_a_segment_goes() {
    let mut scene = Scene::new("pd", &json!({ "segments": 1 }));
    scene.each_pod(|pod| pod.spec.runtime_class_name = Some("kata".to_owned()));
    scene.node("a", "r1", 3, "gpu");
    // While classes are listed nothing is made; without the right to read them everything is, and that is told.
    let sight = |scene: &mut Scene, sight: VolumeSight| {
        scene.capacity.change_runtime_classes(|classes| {
            classes.sight = sight;
            true
        });
    };
    sight(&mut scene, VolumeSight::Awaited);
    let seen = scene.decide(&[], DecisionContext::default());
    assert_eq!(released(&seen), [0, 0]);
    sight(&mut scene, VolumeSight::Refused("runtimeclasses may not be read".into()));
    let seen = scene.decide(&[], DecisionContext::default());
    let why = "the room for segment 1 is looked for without RuntimeClass \"kata\" (runtimeclasses may not be read)";
    assert_eq!((released(&seen), held(&seen)), ([2, 1], vec![(HoldReason::RoomUnknown, 0, why)]));
    let class = json!({ "metadata": { "name": "kata" }, "overhead": { "podFixed": { "cpu": "1" } } });
    scene.capacity.change_runtime_classes(|classes| {
        classes.set_all(&[build::typed(class)]);
        true
    });
    let seen = scene.decide(&[], DecisionContext::default());
    let why = "no rack fits segment 1: best r1 fits 1 of 3 pods, short of 3 cpu";
    assert_eq!((released(&seen), held(&seen)), ([0, 0], vec![(HoldReason::NoRoom, 0, why)]));
    scene.node("b", "r2", 6, "gpu");
    let seen = scene.decide(&[], DecisionContext::default());
    assert_eq!((released(&seen), held(&seen)), ([2, 1], vec![]));
}

#[test]
fn pods_that_lack_the_toleration_that_was_expected_of_admission_are_held_and_it_is_told() {
    const GPU: &str = "nvidia.com/gpu";
    let mut scene = Scene::new("pd", &json!({ "segments": 2 }));
    scene
        .each_pod(|pod| _ = pod.spec.containers[0].resources.requests.insert(GPU.to_owned(), build::typed(json!("1"))));
    let (labels, taints) = (json!({ "pool": "gpu" }), json!([{ "key": GPU, "effect": "NoSchedule" }]));
    let status = json!({ "allocatable": { (GPU): "8" } });
    let tainted = json!({ "metadata": { "labels": labels }, "spec": { "taints": taints }, "status": status });
    add_node(&mut scene.capacity, ("a", "r1", 8), &tainted);
    let seen = scene.decide(&[], DecisionContext::default());
    assert_eq!((released(&seen), held(&seen)), ([2, 1], vec![]));
    scene.store(&seen);
    let pods = mk_batches(1);
    let asks = json!({ "containers": [{ "resources": { "requests": { "cpu": 1, (GPU): 1 } } }] });
    pods.iter().for_each(|pod| show(&mut scene.capacity, &pod.pod.uid, true, &asks));
    let seen = scene.decide(&pods, DecisionContext::default());
    let why = "no rack fits segment 1: best r1 fits 0 of 3 pods, short of 3 cpu, short of 3 nvidia.com/gpu, \
               nodes with taints that its pods do not tolerate: 1";
    assert_eq!((released(&seen), held(&seen)), ([2, 1], vec![(HoldReason::NoRoom, 3, why)]));
}
