use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::api::RoleCoordination;
use crate::api::role_coordination::ROLE_COORDINATION;
use crate::api::workload::StatefulSet;
use crate::model::workload_object::WorkloadObject;
use crate::model::{Group, GroupKey, HoldReason, ScaledWorkload, Sources, Workload, WorkloadKey};
use crate::plan::decide::DecisionContext;
use crate::plan::decide::placed::Awaits;
use crate::plan::elastic::ElasticContext;
use crate::plan::evaluate::{Evaluation, Observation, evaluate};
use crate::plan::placement::capacity::HOSTNAME;
use crate::plan::placement::{Capacity, Line, Placer, Sight};
use crate::plan::status::transition_times;
use crate::plan::test_support::{mk_pod, shared};
use crate::plan::view::{GroupView, PodFacts};

const RACK: &str = "rack";

struct Sets(BTreeMap<WorkloadKey, Workload>);

impl Sources for Sets {
    fn role_based_group(&self, _: &GroupKey) -> Option<&Group> {
        None
    }

    fn workload(&self, key: &WorkloadKey) -> Option<&Workload> {
        self.0.get(key)
    }
}

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
        let set = |role: &str| -> StatefulSet {
            let labels = json!({ "rolegate.dev/group": name, "rolegate.dev/role": role });
            let metadata =
                json!({ "name": format!("{name}-{role}"), "namespace": "ns", "uid": role, "labels": labels });
            let spec = json!({ "containers": containers, "nodeSelector": { "pool": "gpu" } });
            let template = json!({ "metadata": { "labels": labels }, "spec": spec });
            serde_json::from_value(json!({ "metadata": metadata, "spec": { "replicas": 0, "template": template } }))
                .unwrap()
        };
        let sets = [set("prefill"), set("decode")];
        let workloads = sets.iter().map(WorkloadObject::workload).map(|workload| (workload.key.clone(), workload));
        let role = |role: &str| json!({ "name": role, "workloadRef": { "kind": "StatefulSet", "name": format!("{name}-{role}") } });
        let affinity = json!({ "strategy": "RequireSegmentAffinity", "topologyKey": RACK });
        let segments = json!({ "segmentSize": { "prefill": 2, "decode": 1 }, "topologyAffinity": affinity });
        let coordination = json!([{ "name": "s", "strategy": { "segmentPlacement": segments } }]);
        let mut object = json!({
            "metadata": { "name": name, "namespace": "ns", "uid": name },
            "spec": { "roles": [role("prefill"), role("decode")], "coordination": coordination },
        });
        json_patch::merge(&mut object, &json!({ "spec": spec }));
        let object: RoleCoordination = serde_json::from_value(object).unwrap();
        Self {
            group: Group::from_role_coordination(ROLE_COORDINATION, &object, &Sets(workloads.collect())),
            scaled: sets.iter().filter_map(WorkloadObject::scaled).collect(),
            capacity: Capacity::default(),
            line: Line::default(),
        }
    }

    fn node(&mut self, name: &str, rack: &str, cpu: u32, pool: &str) {
        let node = json!({
            "metadata": { "name": name, "labels": { RACK: rack, HOSTNAME: name, "pool": pool } },
            "status": {
                "allocatable": { "cpu": cpu.to_string(), "pods": "100" },
                "conditions": [{ "type": "Ready", "status": "True" }],
            },
        });
        self.capacity.apply_node(&serde_json::from_value(node).unwrap()).unwrap();
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
    scaled: &[ScaledWorkload],
    pods: &[PodFacts],
    (line, sight): (&mut Line, Sight<'_>),
    context: DecisionContext<'_>,
) -> Evaluation {
    let keys = [(0, RACK.to_owned())];
    let elastic = ElasticContext { workloads: scaled, ..ElasticContext::default() };
    let observation = Observation { view: GroupView::build(group, &shared(pods)), ..Observation::default() };
    let mut placer = Placer::new(group.key.clone(), sight, line, false, Duration::ZERO);
    let context = DecisionContext { domain_keys: &keys, elastic, ..context };
    let seen = evaluate(group, observation, context, Some(&mut placer));
    let held: HashSet<Arc<str>> = pods.iter().filter(|pod| pod.held).map(|pod| pod.pod.uid.clone()).collect();
    placer.finish(|| held.clone());
    seen
}

fn released(seen: &Evaluation) -> [u32; 2] {
    ["prefill", "decode"].map(|role| seen.decision.released[role])
}

fn held(seen: &Evaluation) -> Vec<(HoldReason, u32, &str)> {
    seen.decision.held.iter().map(|held| (held.reason, held.count(), held.message.as_str())).collect()
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
    let told = seen.status.conditions.iter().find(|condition| condition.r#type == "Elastic").unwrap();
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
    for (role, ordinal) in [("prefill", 0), ("prefill", 1), ("decode", 0)] {
        let seen = scene.decide(&pods, DecisionContext::default());
        assert_eq!((scene.free(), seen.decision.release.len()), (1, 0), "{} pods are there", pods.len());
        let pod = mk_pod(&format!("{role}-{ordinal}"), role, ordinal);
        let spec = json!({
            "containers": [{ "resources": { "requests": { "cpu": 1 } } }],
            "schedulingGates": [{ "name": "rolegate.dev/hold" }],
        });
        let labels = json!({ "rolegate.dev/group": "pd" });
        let shown = json!({ "metadata": { "uid": &*pod.pod.uid, "namespace": "ns", "labels": labels }, "spec": spec });
        scene.capacity.apply_pod(&serde_json::from_value(shown).unwrap()).unwrap();
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
    let told = seen.status.conditions.iter().find(|condition| condition.r#type == "Elastic").unwrap();
    assert_eq!(told.reason, "RoomUnknown");
    let sight = Sight::Refused("nodes may not be read");
    let seen = decide(&group, &scaled, &[], (&mut line, sight), DecisionContext::default());
    assert_eq!(released(&seen), [2, 1]);
}
