//! What is observed of a group's pods, counted by role and ordinal.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::api::Pod;
use crate::model::{Group, PodIdentity, names};

/// A pod, as far as planning needs it.
#[expect(clippy::struct_excessive_bools, reason = "four independent facts of a pod, not states of one machine")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodFacts {
    /// Name and unique id.
    pub pod: PodRef,
    /// Group, role, ordinal.
    pub identity: PodIdentity,
    /// True while it carries our gate.
    pub held: bool,
    /// True once it has a node.
    pub scheduled: bool,
    /// True while its `Ready` condition is.
    pub ready: bool,
    /// Labels of the batch that it should have carried since creation: false for a pod that came before its group.
    pub labelled: bool,
}

/// Names one pod, not its successor of the same name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PodRef {
    /// Name.
    pub name: Arc<str>,
    /// Unique id.
    pub uid: Arc<str>,
}

impl PodFacts {
    /// The facts of a pod; `None` for one that no count may include: terminating, Failed or Succeeded.
    pub fn of(pod: &Pod, identity: PodIdentity) -> Option<Self> {
        if pod.is_gone() {
            return None;
        }
        let meta = &pod.metadata;
        Some(Self {
            pod: PodRef {
                name: meta.name.as_deref().unwrap_or_default().into(),
                uid: meta.uid.as_deref().unwrap_or_default().into(),
            },
            identity,
            held: pod.has_gate(names::GATE),
            scheduled: pod.spec.node_name.as_deref().is_some_and(|node| !node.is_empty()),
            ready: pod.condition_is_true("Ready"),
            labelled: meta.label(names::KEP75_INSTANCE_INDEX).is_some(),
        })
    }
}

/// One instance of a role: one pod, or all pods of one LeaderWorkerSet group or RoleInstance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Replica {
    /// Pods that exist.
    pub pods: u32,
    /// Pods that carry our gate.
    pub held: u32,
    /// Pods with a node.
    pub scheduled: u32,
    /// Pods that are ready.
    pub ready: u32,
    /// Pods that it has when complete.
    pub size: u32,
}

impl Replica {
    /// All its pods exist without our gate.
    pub fn is_released(&self) -> bool {
        self.held == 0 && self.pods >= self.size
    }

    /// All its pods are released and ready.
    pub fn is_ready(&self) -> bool {
        self.is_released() && self.ready >= self.size
    }

    /// All its pods are released and have a node.
    pub fn is_scheduled(&self) -> bool {
        self.is_released() && self.scheduled >= self.size
    }
}

/// What is observed of one role.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoleView {
    /// Desired replicas; of an unknown role, what is released: it stays.
    pub desired: u32,
    /// True while the workload or group that says how many are desired is not there.
    pub unknown: bool,
    /// Committed released count, as the status keeps it; `None` when it says nothing.
    pub committed: Option<u32>,
    /// Replicas by ordinal.
    pub replicas: BTreeMap<u32, Replica>,
}

impl RoleView {
    /// Replicas that are released, among those that are desired.
    pub fn current(&self) -> u32 {
        count(self.replicas.range(..self.desired).filter(|(_, replica)| replica.is_released()).count())
    }

    /// The released count: what was committed, or, where that is lost or new, what is observed. Never above desired (S2).
    pub fn released(&self) -> u32 {
        self.committed.unwrap_or(0).max(self.current()).min(self.desired)
    }

    /// Pods that are ready, among the desired replicas.
    pub fn ready_pods(&self) -> u32 {
        self.replicas.range(..self.desired).map(|(_, replica)| replica.ready.min(replica.size)).sum()
    }

    /// Pods that the role has when complete; replicas not seen yet count with the size of those that are.
    pub fn desired_pods(&self) -> u32 {
        self.desired.saturating_mul(self.replica_size())
    }

    /// Pods in one replica: the largest that is seen, 1 before any is.
    pub fn replica_size(&self) -> u32 {
        self.replicas.values().map(|replica| replica.size).max().unwrap_or(1)
    }

    /// The lowest ordinal below `bound` whose replica is missing or fails the test; `None` when all pass.
    pub fn first_failing(&self, bound: u32, test: impl Fn(&Replica) -> bool) -> Option<u32> {
        let mut next = 0;
        for (ordinal, replica) in self.replicas.range(..bound) {
            if *ordinal != next || !test(replica) {
                return Some(next);
            }
            next = ordinal + 1;
        }
        (next < bound).then_some(next)
    }

    /// True when every ordinal of the range has a replica that passes the test; an empty range passes.
    pub fn all_in(&self, from: u32, to: u32, test: impl Fn(&Replica) -> bool) -> bool {
        from >= to || self.replicas.range(from..to).filter(|(_, replica)| test(replica)).count() == (to - from) as usize
    }
}

/// What is observed of a group.
#[derive(Clone, Debug, Default)]
pub struct GroupView {
    /// Its roles.
    pub roles: BTreeMap<String, RoleView>,
    /// Held pods with the role and ordinal they count under, in order of ordinal. A pod without role has none.
    pub held: Vec<HeldPod>,
}

/// A held pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldPod {
    /// The pod.
    pub pod: PodRef,
    /// Its role.
    pub role: String,
    /// Ordinal of its replica, given or assigned.
    pub ordinal: u32,
    /// Labels of its batch are there.
    pub labelled: bool,
}

impl GroupView {
    /// Counts the pods of a group.
    pub fn build<'a>(group: &Group, pods: impl IntoIterator<Item = &'a PodFacts>) -> Self {
        let mut view = Self { roles: named_roles(group), held: Vec::new() };
        let (numbered, unnumbered): (Vec<_>, Vec<_>) = pods.into_iter().partition(|pod| pod.identity.ordinal.is_some());
        for pod in numbered {
            view.count(pod, pod.identity.ordinal.unwrap_or_default());
        }
        view.assign(unnumbered);
        for role in view.roles.values_mut().filter(|role| role.unknown) {
            let released = role.replicas.values().filter(|replica| replica.is_released()).count();
            role.desired = role.committed.unwrap_or(0).max(count(released));
        }
        view.held.sort_by(|a, b| (a.ordinal, &a.role, &a.pod).cmp(&(b.ordinal, &b.role, &b.pod)));
        view
    }

    fn count(&mut self, pod: &PodFacts, ordinal: u32) {
        let Some(role) = pod.identity.role.as_deref() else { return };
        if let Some(view) = self.roles.get_mut(role) {
            let replica = view.replicas.entry(ordinal).or_default();
            replica.pods += 1;
            replica.held += u32::from(pod.held);
            replica.scheduled += u32::from(pod.scheduled);
            replica.ready += u32::from(pod.ready);
            replica.size = replica.size.max(pod.identity.replica_size);
        }
        if pod.held {
            let (pod, labelled) = (pod.pod.clone(), pod.labelled);
            self.held.push(HeldPod { pod, role: role.to_owned(), ordinal, labelled });
        }
    }

    /// Pods whose maker numbers nothing take the lowest free ordinals, the released ones first: they hold their place.
    fn assign(&mut self, mut pods: Vec<&PodFacts>) {
        pods.sort_by(|a, b| (a.held, &a.pod).cmp(&(b.held, &b.pod)));
        for pod in pods {
            let role = pod.identity.role.as_deref().unwrap_or_default();
            let free = self.roles.get(role).and_then(|view| view.first_failing(u32::MAX, |_| true)).unwrap_or_default();
            self.count(pod, free);
        }
    }
}

/// The roles of a group, and those that a coordination names although nobody knows them (yet): their pods are held.
fn named_roles(group: &Group) -> BTreeMap<String, RoleView> {
    let view = |name: &str, desired, unknown| RoleView {
        desired,
        unknown,
        committed: committed(group, name),
        ..RoleView::default()
    };
    let batched = group.batched().flat_map(|(_, batching)| batching.sizes.keys());
    let mut roles: BTreeMap<_, _> = batched.map(|name| (name.clone(), view(name, 0, true))).collect();
    for role in &group.roles {
        roles.insert(role.name.clone(), view(&role.name, role.desired, role.workload.desired_is_unknown));
    }
    roles
}

/// The committed released count of a role: the highest that any coordination keeps.
fn committed(group: &Group, role: &str) -> Option<u32> {
    group.status.coordination_state.iter().filter_map(|state| state.progress.get(role)?.released).max()
}

/// Counts fit 32 bits: a cluster has no more pods than that.
fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
