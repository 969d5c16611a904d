//! Builders for the tests of `plan`.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::api::rbg::ROLE_BASED_GROUP;
use crate::api::role_coordination::ROLE_COORDINATION;
use crate::api::workload::StatefulSet;
use crate::build::{self, typed, with};
use crate::model::names::HOSTNAME;
use crate::model::workload_object::WorkloadObject;
use crate::model::{
    FieldPath, Group, GroupKey, HoldReason, PodIdentity, Role, RolledWorkload, RolloutClaim, Sources, Workload,
    WorkloadKey, WorkloadKind, names,
};
use crate::plan::decide::DecisionContext;
use crate::plan::decide::decision::Decision;
use crate::plan::decide::missing_pods::{Diagnosis, MissingPods, WhyMissing};
use crate::plan::evaluate::{Evaluation, Observation, evaluate};
use crate::plan::placement::{Capacity, Line, Placer, Sight};
use crate::plan::status::transition_times;
use crate::plan::view::{GroupPods, GroupView, HeldPod, LabelledPlace, PodFacts, PodRef, Replicas, RoleView, Stamp};

pub fn mk_group(roles: &[(&str, u32)], coordination: &Value) -> Group {
    let group = with(build::group("pd", roles, coordination), &json!({ "metadata": { "namespace": "ns" } }));
    Group::from_rbg(ROLE_BASED_GROUP, &typed(group))
}

/// Returns a StatefulSet with the labels of a role of a group, at itself and at the template of these pods.
pub fn mk_set(name: &str, replicas: u32, labels: &Value, pods: &Value) -> StatefulSet {
    let template = json!({ "metadata": { "labels": labels }, "spec": pods });
    let more = json!({ "namespace": "ns", "uid": name, "resourceVersion": "1", "labels": labels });
    typed(with(build::stateful_set(name, replicas, &template), &json!({ "metadata": more })))
}

/// Lets the replicas of a role stand in a StatefulSet of its own.
pub fn stands_apart(role: &mut Role) {
    let reference = json!({ "apiVersion": "apps/v1", "kind": "StatefulSet", "name": role.name });
    let key = WorkloadKey { namespace: "ns".to_owned(), kind: WorkloadKind::StatefulSet, name: role.name.clone() };
    role.workload.reference = Some((typed(reference), FieldPath::default()));
    (role.workload.key, role.replicas) = (Some(key), None);
}

/// The workloads that a group finds.
#[derive(Default)]
pub struct Workloads(pub BTreeMap<WorkloadKey, Workload>);

impl Workloads {
    pub fn of(sets: &[StatefulSet]) -> Self {
        Self(sets.iter().map(WorkloadObject::workload).map(|workload| (workload.key.clone(), workload)).collect())
    }

    /// Returns the group of a RoleCoordination of prefill and decode, whose StatefulSets have the names of their roles after this
    /// prefix; `more` is merged into it.
    pub fn group(&self, name: &str, prefix: &str, strategy: &Value, more: &Value) -> Group {
        let coordination = json!([build::coordination("s", strategy)]);
        let mut object = build::role_coordination(name, "StatefulSet", &["prefill", "decode"], &coordination);
        for role in object["spec"]["roles"].as_array_mut().unwrap() {
            role["workloadRef"]["name"] = json!(format!("{prefix}{}", role["name"].as_str().unwrap()));
        }
        let object = with(with(object, &json!({ "metadata": { "namespace": "ns", "uid": name } })), more);
        Group::from_role_coordination(ROLE_COORDINATION, &typed(object), self)
    }
}

impl Sources for Workloads {
    fn role_based_group(&self, _: &GroupKey) -> Option<&Group> {
        None
    }

    fn workload(&self, key: &WorkloadKey) -> Option<&Workload> {
        self.0.get(key)
    }
}

/// Adds a node of a rack, with room for a hundred pods; `more` is merged into it.
pub fn add_node(capacity: &mut Capacity, (name, rack, cpu): (&str, &str, u32), more: &Value) {
    let labels = json!({ "rack": rack, HOSTNAME: name });
    let node = build::node(name, &labels, &json!({ "cpu": cpu.to_string(), "pods": "100" }));
    capacity.apply_node(&typed(with(node, more))).unwrap();
}

/// Shows a pod of the group with one processor to the watch of room; `more` is merged into its spec.
pub fn show(capacity: &mut Capacity, uid: &str, held: bool, more: &Value) {
    let more = json!({ "metadata": { "labels": { (names::GROUP): "pd" } }, "spec": more });
    capacity.apply_pod(&typed(with(build::pod(uid, held, &json!({ "cpu": 1 })), &more))).unwrap();
}

/// Returns all pods of a group of two prefills and a decode in each batch, held.
pub fn mk_batches(batches: u32) -> Vec<PodFacts> {
    let replicas = [("prefill", 2 * batches), ("decode", batches)];
    let all = replicas.iter().flat_map(|(role, count)| (0..*count).map(move |ordinal| (role, ordinal)));
    all.map(|(role, ordinal)| mk_pod(&format!("{role}-{ordinal}"), role, ordinal)).collect()
}

/// Returns the evaluation of what these nodes have room for.
pub fn mk_placed(
    group: &Group,
    pods: &[PodFacts],
    (line, sight): (&mut Line, Sight<'_>),
    context: DecisionContext<'_>,
) -> Evaluation {
    let observation = Observation { view: GroupView::build(group, &shared(pods)), ..Observation::default() };
    let mut placer = Placer::new(group.key.clone(), sight, line, false, Duration::ZERO);
    let seen = evaluate(group, observation, context, Some(&mut placer));
    let held: HashSet<Arc<str>> = pods.iter().filter(|pod| pod.held).map(|pod| pod.pod.uid.clone()).collect();
    placer.finish(|| held.clone());
    seen
}

/// Returns reason, number of pods and message of what is held.
pub fn held_of(seen: &Evaluation) -> Vec<(HoldReason, u32, &str)> {
    seen.decision.held.iter().map(|held| (held.reason, held.count(), held.message.as_str())).collect()
}

pub fn mk_segments(name: &str, progression: &str, sizes: &[(&str, u32)]) -> Value {
    let sizes: serde_json::Map<_, _> = sizes.iter().map(|(role, size)| ((*role).to_owned(), json!(size))).collect();
    json!({"name": name, "strategy": {"segmentPlacement": {"segmentSize": sizes, "progression": progression}}})
}

/// Returns a role whose first `released` replicas are released, of which the first `ready` are ready.
pub fn mk_role(desired: u32, released: u32, ready: u32) -> RoleView {
    let mut replicas = Replicas::default();
    for ordinal in 0..desired {
        let (held, scheduled, ready) = (ordinal >= released, ordinal < released, ordinal < ready);
        let pod = PodFacts { held, scheduled, ready, ..mk_pod(&ordinal.to_string(), "role", ordinal) };
        replicas.add(&pod.into(), ordinal);
    }
    RoleView { desired, committed: Some(released), replicas, ..RoleView::default() }
}

/// Returns the last pods of a role of five as missing.
pub fn mk_missing(missing: u32) -> MissingPods {
    MissingPods {
        role: "decode".to_owned(),
        missing,
        of: 5,
        first: 5 - missing,
        newest: None,
        depends_on: None,
        sibling: None,
        job: None,
    }
}

pub fn mk_diagnosis(why: WhyMissing) -> Diagnosis {
    Diagnosis { role: "decode".to_owned(), why, text: "because".to_owned() }
}

/// Returns a held pod that is a replica of a role.
pub fn mk_pod(name: &str, role: &str, ordinal: u32) -> PodFacts {
    PodFacts {
        pod: PodRef { name: name.into(), uid: name.into() },
        identity: PodIdentity {
            group: GroupKey::new("ns", "pd"),
            role: Some(role.into()),
            ordinal: Some(ordinal),
            member: Some(0),
            replica_size: 1,
            named_by_us: true,
            ..PodIdentity::default()
        },
        held: true,
        labelled: Some(LabelledPlace::at(1, ordinal)),
        stamp: Stamp { held: true, ..Stamp::default() },
        ..PodFacts::default()
    }
}

/// Returns a held pod at its ordinal.
pub fn mk_held(name: &str, role: &str, ordinal: u32) -> HeldPod {
    HeldPod { facts: mk_pod(name, role, ordinal).into(), ordinal }
}

pub fn shared(pods: &[PodFacts]) -> GroupPods {
    pods.iter().cloned().collect()
}

/// Returns the evaluation of a group without rollouts.
pub fn mk_evaluation(group: &Group, view: &GroupView, context: DecisionContext<'_>) -> Evaluation {
    let observation = Observation { view: view.clone(), ..Observation::default() };
    evaluate(group, observation, context, None)
}

/// A group without rollouts, its pods, and a loop that stores each decision.
pub struct Setup {
    pub group: Group,
    pub pods: Vec<PodFacts>,
}

impl Setup {
    pub fn new(roles: &[(&str, u32)], coordination: &Value) -> Self {
        Self { group: mk_group(roles, coordination), pods: Vec::new() }
    }

    pub fn evaluate(&self, context: DecisionContext<'_>) -> Evaluation {
        mk_evaluation(&self.group, &GroupView::build(&self.group, &shared(&self.pods)), context)
    }

    pub fn decide(&self) -> Decision {
        self.evaluate(DecisionContext::default()).decision
    }

    /// Stores the decided status, as the executor does.
    pub fn store(mut self) -> Self {
        let status = self.evaluate(DecisionContext::default()).status;
        self.group.status = transition_times::set(status, &self.group.status, "2026-01-01T00:00:00Z");
        self
    }
}

/// Returns a workload of four replicas whose rollout is closed.
pub fn mk_workload(role: &str, revision: &str) -> RolledWorkload {
    RolledWorkload {
        key: WorkloadKey { namespace: "ns".to_owned(), kind: WorkloadKind::StatefulSet, name: role.to_owned() },
        uid: role.into(),
        claim: RolloutClaim { group: GroupKey::new("ns", "pd"), role: role.to_owned() },
        desired: 4,
        observed: true,
        update_revision: Some(revision.to_owned()),
        current_revision: Some(revision.to_owned()),
        takes_partition: true,
        replica_size: 1,
        ..RolledWorkload::default()
    }
}

/// Returns a workload of four replicas that is updated down to a partition.
pub fn mk_open(role: &str, (from, to): (&str, &str), partition: u32) -> RolledWorkload {
    let (current_revision, user_partition) = (Some(from.to_owned()), Some(0));
    RolledWorkload { partition, user_partition, current_revision, ..mk_workload(role, to) }
}

/// Returns a pod that serves, at a revision.
pub fn mk_serving(role: &str, ordinal: u32, revision: &str) -> PodFacts {
    let pod = mk_pod(&format!("{role}-{ordinal}"), role, ordinal);
    PodFacts { held: false, scheduled: true, ready: true, revision: Some(revision.into()), ..pod }
}
