//! Groups whose batches must share a rack, on a cluster that changes under them: no batch is split over racks, each goes where
//! its domain was committed, what is released is bound as long as nobody else takes its room, and in the end all of it runs.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use rolegate::api::rbg::ROLE_BASED_GROUP;
use rolegate::api::status::GroupStatus;
use rolegate::cluster::index::{CarrierObject, Change, Index};
use rolegate::model::{GroupKey, names};
use rolegate::plan::placement::Sight;
use rolegate::plan::{Action, Ended, LoopOptions, Pin, Reconciler};
use serde_json::{Value, json};

use crate::late_room::{LateRoom, Other, Told, object_of};
use crate::tried;

const NOW: &str = "2026-01-01T00:00:00Z";
const RACK: &str = "rack";
const HOST: &str = "kubernetes.io/hostname";
/// Replicas in one batch.
const SIZES: [(&str, u32); 2] = [("prefill", 2), ("decode", 1)];

#[derive(Clone, Debug)]
struct Shape {
    /// Rack and processors of each node.
    nodes: Vec<(u8, u32)>,
    groups: Vec<GroupShape>,
}

#[derive(Clone, Debug)]
struct GroupShape {
    batches: u32,
    /// Processors that a prefill and a decode ask for.
    cpu: [u32; 2],
    parallel: bool,
    priority: i32,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Pass(usize),
    /// The oldest of the writes that were asked for is done, or fails.
    Write(bool),
    /// The scheduler binds a pod: which, and to which of the nodes that take it.
    Bind(usize, usize),
    /// What is bound gets ready.
    Ready,
    /// The watch of nodes and pods tells of so many changes.
    Tell(usize),
    /// Another process leads, and lists nodes and pods.
    Restart,
    /// Time passes.
    Wait,
    Cordon(usize, bool),
    /// A pod is deleted and made again.
    Recreate(usize),
    /// All pods of the batch of one are deleted.
    Lose(usize),
    /// One of those that were deleted is made again.
    Make(usize),
    /// Somebody else's pod takes room.
    Other(usize, u32),
    OtherGone,
}

fn shape() -> impl Strategy<Value = Shape> {
    let group = (1..4_u32, [1..4_u32, 1..5_u32], any::<bool>(), 0..2_i32)
        .prop_map(|(batches, cpu, parallel, priority)| GroupShape { batches, cpu, parallel, priority });
    let nodes = prop::collection::vec((0..3_u8, 2..9_u32), 2..6);
    (nodes, prop::collection::vec(group, 1..4)).prop_map(|(nodes, groups)| Shape { nodes, groups })
}

fn calm() -> BoxedStrategy<Step> {
    prop_oneof![
        6 => (0..3_usize).prop_map(Step::Pass),
        8 => any::<u8>().prop_map(|luck| Step::Write(luck > 40)),
        6 => (0..9_usize, 0..9_usize).prop_map(|(pod, node)| Step::Bind(pod, node)),
        2 => Just(Step::Ready),
        6 => (1..4_usize).prop_map(Step::Tell),
        1 => Just(Step::Restart),
        1 => Just(Step::Wait),
    ]
    .boxed()
}

/// Batches are lost and come back pod by pod: writes of some are on their way while others come.
fn steady() -> BoxedStrategy<Step> {
    prop_oneof![
        10 => calm(),
        1 => (0..20_usize).prop_map(Step::Lose),
        6 => (0..3_usize).prop_map(Step::Make),
    ]
    .boxed()
}

fn rough() -> BoxedStrategy<Step> {
    prop_oneof![
        8 => calm(),
        1 => (0..6_usize, any::<bool>()).prop_map(|(node, on)| Step::Cordon(node, on)),
        2 => (0..20_usize).prop_map(Step::Recreate),
        1 => (0..6_usize, 1..6_u32).prop_map(|(node, cpu)| Step::Other(node, cpu)),
        1 => Just(Step::OtherGone),
    ]
    .boxed()
}

/// A pod as it is.
#[derive(Clone, Debug)]
struct Pod {
    group: usize,
    role: usize,
    ordinal: u32,
    held: bool,
    pin: Pin,
    node: Option<usize>,
    ready: bool,
}

struct World {
    shape: Shape,
    cordoned: BTreeSet<usize>,
    /// By unique id.
    pods: BTreeMap<String, Pod>,
    others: Vec<Other>,
    statuses: Vec<(u64, GroupStatus)>,
    index: Index,
    reconciler: Reconciler,
    room: LateRoom,
    asked: Vec<(usize, Action)>,
    now: Duration,
    version: u64,
    serial: u32,
    /// Group, role and ordinal of pods that are yet to be made again.
    unmade: Vec<(usize, usize, u32)>,
    /// Some went to any node of their rack: whether they took what was promised to others is not known.
    is_loose: bool,
}

fn key(group: usize) -> GroupKey {
    GroupKey::new("ns", &format!("g{group}"))
}

fn quiet() -> Reconciler {
    Reconciler::new(LoopOptions { bind_timeout: Duration::from_secs(1 << 20), ..LoopOptions::default() })
}

impl World {
    fn new(shape: Shape) -> Self {
        let statuses = vec![(0, GroupStatus::default()); shape.groups.len()];
        let mut world = Self {
            shape,
            cordoned: BTreeSet::new(),
            pods: BTreeMap::new(),
            others: Vec::new(),
            statuses,
            index: Index::default(),
            reconciler: quiet(),
            room: LateRoom::default(),
            asked: Vec::new(),
            now: Duration::ZERO,
            version: 0,
            serial: 0,
            unmade: Vec::new(),
            is_loose: false,
        };
        for group in 0..world.shape.groups.len() {
            world.tell_group(group);
            for (role, (_, size)) in SIZES.iter().enumerate() {
                for ordinal in 0..world.shape.groups[group].batches * size {
                    world.make(group, role, ordinal);
                }
            }
        }
        world.restart();
        world
    }

    fn make(&mut self, group: usize, role: usize, ordinal: u32) {
        self.serial += 1;
        let uid = format!("{group}-{role}-{ordinal}-{}", self.serial);
        let pod = Pod { group, role, ordinal, held: true, pin: Pin::new(), node: None, ready: false };
        self.pods.insert(uid.clone(), pod);
        self.tell_pod(&uid);
    }

    fn tell_group(&mut self, group: usize) {
        self.version += 1;
        self.statuses[group].0 = self.version;
        let shape = &self.shape.groups[group];
        let roles = SIZES.map(|(name, size)| json!({ "name": name, "replicas": shape.batches * size }));
        let mode = if shape.parallel { "Parallel" } else { "Sequential" };
        let affinity = json!({ "topologyKey": RACK, "ratios": BTreeMap::from(SIZES), "batchMode": mode });
        let object = json!({
            "metadata": {
                "name": &*key(group).name, "namespace": "ns", "uid": format!("g{group}"),
                "resourceVersion": self.version.to_string(),
            },
            "spec": { "roles": roles, "coordination": [{
                "name": "pair", "type": "AffinityScheduling", "strategy": { "affinityScheduling": affinity },
            }] },
            "status": self.statuses[group].1,
        });
        let rbg = serde_json::from_value(object).unwrap();
        self.index.apply_carrier(None, CarrierObject::rbg(ROLE_BASED_GROUP, &rbg));
    }

    fn node(&self, number: usize) -> Value {
        let (rack, cpu) = self.shape.nodes[number];
        json!({
            "metadata": { "name": format!("n{number}"), "labels": { RACK: format!("r{rack}"), HOST: format!("n{number}") } },
            "spec": { "unschedulable": self.cordoned.contains(&number) },
            "status": {
                "allocatable": { "cpu": cpu.to_string(), "pods": "100" },
                "conditions": [{ "type": "Ready", "status": "True" }],
            },
        })
    }

    fn cpu(&self, pod: &Pod) -> u32 {
        self.shape.groups[pod.group].cpu[pod.role]
    }

    fn pod(&self, uid: &str) -> Value {
        let pod = &self.pods[uid];
        let (role, _) = SIZES[pod.role];
        let name = format!("g{}-{role}-{}", pod.group, pod.ordinal);
        let owner = json!({ "apiVersion": "apps/v1", "kind": "StatefulSet", "name": format!("g{}-{role}", pod.group), "uid": "s", "controller": true });
        let gates = if pod.held { json!([{ "name": names::GATE }]) } else { json!([]) };
        json!({
            "metadata": {
                "name": name, "namespace": "ns", "uid": uid, "resourceVersion": self.version.to_string(),
                "ownerReferences": [owner],
                "labels": { (names::GROUP): &*key(pod.group).name, (names::ROLE): role },
            },
            "spec": {
                "schedulingGates": gates,
                "nodeName": pod.node.map(|node| format!("n{node}")),
                "nodeSelector": pod.pin,
                "priority": self.shape.groups[pod.group].priority,
                "containers": [{ "resources": { "requests": { "cpu": self.cpu(pod) } } }],
            },
            "status": { "conditions": [{ "type": "Ready", "status": if pod.ready { "True" } else { "False" } }] },
        })
    }

    /// The watch of groups hears of a pod at once, that of room later.
    fn tell_pod(&mut self, uid: &str) {
        self.version += 1;
        let pod = self.pod(uid);
        self.index.pod_change(0, Change::Applied(serde_json::from_value(pod.clone()).unwrap()));
        self.room.untold.push(Told::Pod(pod));
    }

    fn tell(&mut self, count: usize) {
        self.room.tell(count);
        self.reconciler.capacity_changed(self.room.capacity.freed(), self.now);
    }

    fn restart(&mut self) {
        self.reconciler = quiet();
        self.asked.clear();
        let nodes = (0..self.shape.nodes.len()).map(|number| Told::Node(self.node(number)));
        let pods = self.pods.keys().map(|uid| Told::Pod(self.pod(uid)));
        let others = self.others.iter().map(|other| Told::Pod(object_of(other)));
        self.room = LateRoom::listed(nodes.chain(pods).chain(others));
        let keys: Vec<_> = (0..self.shape.groups.len()).map(key).collect();
        self.reconciler.sync(keys.clone(), self.now);
        self.reconciler.lead(true, keys, self.now);
        self.tell(usize::MAX);
    }

    fn pass(&mut self, group: usize) -> bool {
        let key = key(group);
        self.now += Duration::from_secs(1);
        self.reconciler.changed([key.clone()], self.now);
        let snapshot = self.index.snapshot(&key);
        let sight = Some(Sight::Known(&mut self.room.capacity));
        let actions = self.reconciler.pass(&key, &snapshot, sight, self.now, NOW);
        let before = self.asked.len();
        let asked = actions
            .into_iter()
            .filter(|action| !matches!(action, Action::Publish { .. } | Action::PublishOfPods { .. }));
        self.asked.extend(asked.map(|action| (group, action)));
        self.asked.len() > before
    }

    /// Does the oldest of what was asked for, and says how it ended; false when there is nothing.
    fn write(&mut self, succeeds: bool) -> Result<bool, TestCaseError> {
        if self.asked.is_empty() {
            return Ok(false);
        }
        let failed = !succeeds;
        let (of, action) = self.asked.remove(0);
        let ended = match action {
            Action::Release { pod, pin, .. } => {
                let uid = pod.uid.to_string();
                if let (true, Some(found)) = (succeeds, self.pods.get(&uid).cloned()) {
                    let batch = found.ordinal / SIZES[found.role].1;
                    let state = &self.statuses[of].1.coordination_state[0];
                    let committed = state.domains.get(&batch.to_string());
                    prop_assert!(
                        committed.is_some() && pin.get(RACK) == committed,
                        "{pod:?} goes to {pin:?}, committed {committed:?}"
                    );
                    let released = state.progress[SIZES[found.role].0].released.unwrap_or(0);
                    prop_assert!(found.ordinal < released, "{pod:?} goes, of {released}");
                    self.is_loose |= !pin.contains_key(HOST);
                    if found.held {
                        self.pods.insert(uid.clone(), Pod { held: false, pin, ..found });
                        self.tell_pod(&uid);
                    }
                }
                Ended::Tried { object: pod, failure: failed.then(String::new) }
            }
            Action::WriteStatus { group, status, .. } => {
                if succeeds && group.carrier.resource_version == self.statuses[of].0.to_string() {
                    self.statuses[of].1 = status;
                    self.tell_group(of);
                }
                Ended::Written { failure: failed.then(String::new) }
            }
            Action::ConfirmGroup => Ended::Confirmed { failed },
            Action::ConfirmPods => Ended::PodsConfirmed { failed },
            Action::DiagnoseMissingPods { .. } => Ended::Diagnosed { diagnoses: Vec::new() },
            Action::FindSurge { .. } => Ended::Surge { proven: Vec::new() },
            other => panic!("nobody asks for {other:?} here"),
        };
        self.reconciler.ended(key(of), ended, self.now);
        Ok(true)
    }

    fn left(&self, node: usize) -> i64 {
        let of_pods = self.pods.values().filter(|pod| pod.node == Some(node)).map(|pod| self.cpu(pod));
        let of_others = self.others.iter().filter(|(_, at, _)| *at == node).map(|(_, _, cpu)| *cpu);
        i64::from(self.shape.nodes[node].1) - of_pods.chain(of_others).map(i64::from).sum::<i64>()
    }

    fn batch(pod: &Pod) -> (usize, u32) {
        (pod.group, pod.ordinal / SIZES[pod.role].1)
    }

    /// The nodes that the scheduler would bind a pod to.
    fn feasible(&self, uid: &str) -> Vec<usize> {
        let pod = &self.pods[uid];
        let rack = |node: usize| format!("r{}", self.shape.nodes[node].0);
        let beside = |other: &&Pod| Self::batch(other) == Self::batch(pod);
        let racks: BTreeSet<_> = self.pods.values().filter(beside).filter_map(|other| other.node).map(rack).collect();
        let fits = |node: &usize| {
            !self.cordoned.contains(node)
                && pod.pin.get(RACK).is_none_or(|pinned| *pinned == rack(*node))
                && pod.pin.get(HOST).is_none_or(|pinned| *pinned == format!("n{node}"))
                && (racks.is_empty() || racks.contains(&rack(*node)))
                && self.left(*node) >= i64::from(self.cpu(pod))
        };
        (0..self.shape.nodes.len()).filter(fits).collect()
    }

    fn unbound(&self) -> Vec<String> {
        self.pods.iter().filter(|(_, pod)| !pod.held && pod.node.is_none()).map(|(uid, _)| uid.clone()).collect()
    }

    /// Binds one of the pods that are not bound; false when no node takes it.
    fn bind(&mut self, which: usize, at: usize) -> Option<bool> {
        let unbound = self.unbound();
        let uid = unbound.get(which % unbound.len().max(1))?.clone();
        let nodes = self.feasible(&uid);
        let Some(node) = nodes.get(at % nodes.len().max(1)) else { return Some(false) };
        self.pods.get_mut(&uid).unwrap().node = Some(*node);
        self.tell_pod(&uid);
        Some(true)
    }

    fn ready(&mut self) {
        let bound: Vec<_> =
            self.pods.iter().filter(|(_, pod)| pod.node.is_some() && !pod.ready).map(|(uid, _)| uid.clone()).collect();
        for uid in bound {
            self.pods.get_mut(&uid).unwrap().ready = true;
            self.tell_pod(&uid);
        }
    }

    fn step(&mut self, step: Step) -> Result<(), TestCaseError> {
        let (nodes, groups) = (self.shape.nodes.len(), self.shape.groups.len());
        match step {
            Step::Pass(group) => _ = self.pass(group % groups),
            Step::Write(succeeds) => _ = self.write(succeeds)?,
            Step::Bind(which, at) => _ = self.bind(which, at),
            Step::Ready => self.ready(),
            Step::Tell(count) => self.tell(count),
            Step::Restart => self.restart(),
            Step::Wait => self.now += Duration::from_secs(100),
            Step::Cordon(node, on) => self.cordon(node % nodes, on),
            Step::Recreate(which) => {
                let uid = self.pods.keys().nth(which % self.pods.len()).unwrap().clone();
                self.recreate(&uid);
            }
            Step::Lose(which) => {
                let batch = self.pods.values().nth(which % self.pods.len().max(1)).map(Self::batch);
                let lost = self.pods.iter().filter(|(_, pod)| Some(Self::batch(pod)) == batch);
                for uid in lost.map(|(uid, _)| uid.clone()).collect::<Vec<_>>() {
                    let was = self.delete(&uid);
                    self.unmade.push(was);
                }
                self.tell(usize::MAX);
            }
            Step::Make(which) => {
                if !self.unmade.is_empty() {
                    let (group, role, ordinal) = self.unmade.remove(which % self.unmade.len());
                    self.make(group, role, ordinal);
                }
            }
            Step::Other(node, cpu) => {
                let node = node % nodes;
                if self.left(node) >= i64::from(cpu) {
                    self.serial += 1;
                    self.others.push((format!("other-{}", self.serial), node, cpu));
                    let other = object_of(self.others.last().unwrap());
                    self.room.untold.push(Told::Pod(other));
                }
            }
            Step::OtherGone => {
                if let Some((uid, _, _)) = self.others.pop() {
                    self.room.untold.push(Told::PodGone(uid));
                }
            }
        }
        self.judge()
    }

    fn recreate(&mut self, uid: &str) {
        let (group, role, ordinal) = self.delete(uid);
        self.make(group, role, ordinal);
    }

    /// Deletes a pod: its group, role and ordinal.
    fn delete(&mut self, uid: &str) -> (usize, usize, u32) {
        let mut gone = self.pod(uid);
        let Pod { group, role, ordinal, .. } = self.pods.remove(uid).unwrap();
        self.version += 1;
        gone["metadata"]["resourceVersion"] = json!(self.version.to_string());
        self.index.pod_change(0, Change::Deleted(serde_json::from_value(gone).unwrap()));
        self.room.untold.push(Told::PodGone(uid.to_owned()));
        (group, role, ordinal)
    }

    fn cordon(&mut self, node: usize, on: bool) {
        if on {
            self.cordoned.insert(node)
        } else {
            self.cordoned.remove(&node)
        };
        self.room.untold.push(Told::Node(self.node(node)));
    }

    fn judge(&self) -> Result<(), TestCaseError> {
        let mut racks: BTreeMap<_, BTreeSet<u8>> = BTreeMap::new();
        for pod in self.pods.values() {
            racks.entry(Self::batch(pod)).or_default().extend(pod.node.map(|node| self.shape.nodes[node].0));
        }
        prop_assert!(racks.values().all(|racks| racks.len() < 2), "a batch is split: {racks:?}");
        Ok(())
    }

    /// No node is promised to more pods than it takes.
    fn keeps_promises(&self) -> Result<(), TestCaseError> {
        for node in (0..self.shape.nodes.len()).filter(|_| !self.is_loose) {
            let name = format!("n{node}");
            let is_promised = |pod: &&Pod| !pod.held && pod.node.is_none() && pod.pin.get(HOST) == Some(&name);
            let promised: u32 = self.pods.values().filter(is_promised).map(|pod| self.cpu(pod)).sum();
            let left = self.left(node);
            prop_assert!(i64::from(promised) <= left, "{name} has {left} and promised {promised}: {:?}", self.pods);
        }
        Ok(())
    }

    /// What is released can be bound in whatever order.
    fn bind_all(&mut self, seed: usize) -> Result<(), TestCaseError> {
        for turn in 0.. {
            let Some(bound) = self.bind(seed.wrapping_add(turn), seed.wrapping_mul(turn + 1) >> 3) else {
                return Ok(());
            };
            if !bound && self.unbound().iter().all(|uid| self.feasible(uid).is_empty()) {
                prop_assert!(false, "released and never bound: {:?}\n{:?}", self.unbound(), self.pods);
            }
        }
        Ok(())
    }

    fn settle(&mut self, disturbed: bool) -> Result<(), TestCaseError> {
        (0..self.shape.nodes.len()).for_each(|node| self.cordon(node, false));
        for (group, role, ordinal) in std::mem::take(&mut self.unmade) {
            self.make(group, role, ordinal);
        }
        for rack in 0..3 {
            self.shape.nodes.push((rack, 1000));
            self.room.untold.push(Told::Node(self.node(self.shape.nodes.len() - 1)));
        }
        for _ in 0..100 {
            while self.write(true)? {}
            self.tell(usize::MAX);
            for which in 0..self.unbound().len() {
                _ = self.bind(which, 0);
            }
            // Whoever finds that somebody else has taken the room of a pod deletes it.
            for uid in self.unbound().into_iter().filter(|uid| self.feasible(uid).is_empty()).collect::<Vec<_>>() {
                prop_assert!(disturbed, "released and never bound: {uid} of {:?}", self.pods);
                self.recreate(&uid);
            }
            self.ready();
            self.now += Duration::from_secs(1);
            let asked = (0..self.shape.groups.len()).filter(|group| self.pass(*group)).count() > 0;
            self.judge()?;
            if !asked && self.pods.values().all(|pod| pod.ready) {
                return Ok(());
            }
        }
        prop_assert!(false, "not everything runs: {:?}\n{:?}", self.pods, self.statuses);
        Ok(())
    }
}

proptest! {
    #![proptest_config(tried(300))]

    #[test]
    fn what_is_released_is_bound_where_nobody_else_takes_its_room(
        shape in shape(),
        steps in prop::collection::vec(calm(), 0..80),
        seed in any::<u16>(),
    ) {
        let mut world = World::new(shape);
        for step in steps {
            world.step(step)?;
        }
        world.bind_all(usize::from(seed))?;
        world.settle(false)?;
    }

    #[test]
    fn no_room_is_promised_twice_to_pods_that_come_one_by_one(
        shape in shape(),
        steps in prop::collection::vec(steady(), 0..100),
    ) {
        let mut world = World::new(shape);
        for _ in 0..10 {
            (0..world.shape.groups.len()).for_each(|group| _ = world.pass(group));
            while world.write(true)? {}
            world.bind_all(0)?;
            world.ready();
            world.tell(usize::MAX);
        }
        for step in steps {
            world.step(step)?;
            world.keeps_promises()?;
        }
        world.settle(true)?;
    }

    #[test]
    fn no_batch_is_split_and_all_of_it_runs_in_the_end(
        shape in shape(),
        steps in prop::collection::vec(rough(), 0..100),
    ) {
        let mut world = World::new(shape);
        for step in steps {
            world.step(step)?;
        }
        world.settle(true)?;
    }
}
