//! A cluster of nodes in racks, groups whose batches share one, and the loop beside it, step by step.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use rolegate::api::rbg::ROLE_BASED_GROUP;
use rolegate::api::status::GroupStatus;
use rolegate::cluster::index::{CarrierObject, Change, Index};
use rolegate::model::{GroupKey, names};
use rolegate::plan::placement::Sight;
use rolegate::plan::{Action, Answer, Ended, LoopOptions, Pin, Question, Reconciler, StatusWrite, Target};
use serde_json::{Value, json};

use crate::late_room::{LateRoom, Other, Told, left, object_of};

const NOW: &str = "2026-01-01T00:00:00Z";
const RACK: &str = "rack";
pub const HOST: &str = "kubernetes.io/hostname";
/// Replicas in one batch.
pub const SIZES: [(&str, u32); 2] = [("prefill", 2), ("decode", 1)];

#[derive(Clone, Debug)]
pub struct Shape {
    /// Rack and processors of each node.
    pub nodes: Vec<(u8, u32)>,
    pub groups: Vec<GroupShape>,
}

#[derive(Clone, Debug)]
pub struct GroupShape {
    pub batches: u32,
    /// Processors that a prefill and a decode ask for.
    pub cpu: [u32; 2],
    pub parallel: bool,
    pub priority: i32,
}

/// A pod as it is.
#[derive(Clone, Debug)]
pub struct Pod {
    pub group: usize,
    pub role: usize,
    pub ordinal: u32,
    pub held: bool,
    pub pin: Pin,
    pub node: Option<usize>,
    pub ready: bool,
}

pub struct World {
    pub shape: Shape,
    pub cordoned: BTreeSet<usize>,
    /// By unique id.
    pub pods: BTreeMap<String, Pod>,
    pub others: Vec<Other>,
    pub statuses: Vec<(u64, GroupStatus)>,
    pub index: Index,
    pub reconciler: Reconciler,
    pub room: LateRoom,
    pub asked: Vec<(usize, Action)>,
    pub now: Duration,
    pub version: u64,
    pub serial: u32,
    /// Group, role and ordinal of pods that are yet to be made again.
    pub unmade: Vec<(usize, usize, u32)>,
    /// Some went to any node of their rack: whether they took what was promised to others is not known.
    pub is_loose: bool,
}

pub fn key(group: usize) -> GroupKey {
    GroupKey::new("ns", &format!("g{group}"))
}

pub fn quiet() -> Reconciler {
    Reconciler::new(LoopOptions { bind_timeout: Duration::from_secs(1 << 20), ..LoopOptions::default() })
}

impl World {
    pub fn new(shape: Shape) -> Self {
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

    pub fn make(&mut self, group: usize, role: usize, ordinal: u32) {
        self.serial += 1;
        let uid = format!("{group}-{role}-{ordinal}-{}", self.serial);
        let pod = Pod { group, role, ordinal, held: true, pin: Pin::new(), node: None, ready: false };
        self.pods.insert(uid.clone(), pod);
        self.tell_pod(&uid);
    }

    pub fn tell_group(&mut self, group: usize) {
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

    pub fn node(&self, number: usize) -> Value {
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

    pub fn cpu(&self, pod: &Pod) -> u32 {
        self.shape.groups[pod.group].cpu[pod.role]
    }

    pub fn pod(&self, uid: &str) -> Value {
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
    pub fn tell_pod(&mut self, uid: &str) {
        self.version += 1;
        let pod = self.pod(uid);
        self.index.pod_change(0, Change::Applied(serde_json::from_value(pod.clone()).unwrap()));
        self.room.untold.push(Told::Pod(pod));
    }

    pub fn tell(&mut self, count: usize) {
        self.room.tell(count);
        self.reconciler.capacity_changed(self.room.capacity.freed(), self.now);
    }

    pub fn restart(&mut self) {
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

    pub fn pass(&mut self, group: usize) -> bool {
        let key = key(group);
        self.now += Duration::from_secs(1);
        self.reconciler.changed([key.clone()], self.now);
        let snapshot = self.index.snapshot(&key);
        let sight = Some(Sight::Known(&mut self.room.capacity));
        let actions = self.reconciler.pass(&key, &snapshot, sight, self.now, NOW);
        let before = self.asked.len();
        let asked = actions.into_iter().filter(|action| !matches!(action, Action::Publish { .. }));
        self.asked.extend(asked.map(|action| (group, action)));
        self.asked.len() > before
    }

    /// Does the oldest of what was asked for, and says how it ended; false when there is nothing.
    pub fn write(&mut self, succeeds: bool) -> Result<bool, TestCaseError> {
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
                Ended::Written { target: Target::Object(pod.uid), failure: failed.then(String::new) }
            }
            Action::WriteStatus(StatusWrite::Group { group, status, .. }) => {
                if succeeds && group.carrier.resource_version == self.statuses[of].0.to_string() {
                    self.statuses[of].1 = *status;
                    self.tell_group(of);
                }
                Ended::Written { target: Target::Status, failure: failed.then(String::new) }
            }
            Action::Read(Question::Group) => Ended::Read(Answer::Group { failed }),
            Action::Read(Question::Pods) => Ended::Read(Answer::Pods { failed }),
            Action::Read(Question::MissingPods { .. }) => Ended::Read(Answer::MissingPods(Vec::new())),
            Action::Read(Question::Surge { .. }) => Ended::Read(Answer::Surge(Vec::new())),
            // Its pods came without labels of their place.
            Action::Mark(mark) => Ended::Written { target: Target::Object(mark.pod.uid), failure: None },
            other => panic!("nobody asks for {other:?} here"),
        };
        self.reconciler.ended(key(of), ended, self.now);
        Ok(true)
    }

    pub fn left(&self, node: usize) -> i64 {
        let ours = self.pods.values().filter(|pod| pod.node == Some(node)).map(|pod| self.cpu(pod));
        left(node, self.shape.nodes[node].1, ours, &self.others)
    }

    pub fn batch(pod: &Pod) -> (usize, u32) {
        (pod.group, pod.ordinal / SIZES[pod.role].1)
    }

    /// The nodes that the scheduler would bind a pod to.
    pub fn feasible(&self, uid: &str) -> Vec<usize> {
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

    pub fn unbound(&self) -> Vec<String> {
        self.pods.iter().filter(|(_, pod)| !pod.held && pod.node.is_none()).map(|(uid, _)| uid.clone()).collect()
    }

    /// Binds one of the pods that are not bound; false when no node takes it.
    pub fn bind(&mut self, which: usize, at: usize) -> Option<bool> {
        let unbound = self.unbound();
        let uid = unbound.get(which % unbound.len().max(1))?.clone();
        let nodes = self.feasible(&uid);
        let Some(node) = nodes.get(at % nodes.len().max(1)) else { return Some(false) };
        self.pods.get_mut(&uid).unwrap().node = Some(*node);
        self.tell_pod(&uid);
        Some(true)
    }

    pub fn ready(&mut self) {
        let bound: Vec<_> =
            self.pods.iter().filter(|(_, pod)| pod.node.is_some() && !pod.ready).map(|(uid, _)| uid.clone()).collect();
        for uid in bound {
            self.pods.get_mut(&uid).unwrap().ready = true;
            self.tell_pod(&uid);
        }
    }

    pub fn recreate(&mut self, uid: &str) {
        let (group, role, ordinal) = self.delete(uid);
        self.make(group, role, ordinal);
    }

    /// Deletes a pod: its group, role and ordinal.
    pub fn delete(&mut self, uid: &str) -> (usize, usize, u32) {
        let mut gone = self.pod(uid);
        let Pod { group, role, ordinal, .. } = self.pods.remove(uid).unwrap();
        self.version += 1;
        gone["metadata"]["resourceVersion"] = json!(self.version.to_string());
        self.index.pod_change(0, Change::Deleted(serde_json::from_value(gone).unwrap()));
        self.room.untold.push(Told::PodGone(uid.to_owned()));
        (group, role, ordinal)
    }

    pub fn cordon(&mut self, node: usize, on: bool) {
        if on {
            self.cordoned.insert(node)
        } else {
            self.cordoned.remove(&node)
        };
        self.room.untold.push(Told::Node(self.node(node)));
    }
}
