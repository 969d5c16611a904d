//! What is observed of a group's pods, counted by role and ordinal.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::assign::assign;
use super::marks::Marks;
use crate::api::Pod;
use crate::model::{Group, PodIdentity, names};

pub use super::role::{Replica, RoleView};

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
    /// Revision that it was made at.
    pub revision: Option<Arc<str>>,
    /// When it was made, RFC 3339: those without an ordinal are served in this order.
    pub created: Option<Arc<str>>,
    /// What admission wrote on it.
    pub marks: Marks,
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
            revision: names::REVISION_LABELS.iter().find_map(|key| meta.label(key)).map(Into::into),
            created: meta.creation_timestamp.as_deref().map(Into::into),
            marks: Marks::of(meta),
        })
    }
}

/// What is observed of a group.
#[derive(Clone, Debug, Default)]
pub struct GroupView {
    /// Its roles.
    pub roles: BTreeMap<String, RoleView>,
    /// Held pods with the role and ordinal they count under, in order of ordinal.
    pub held: Vec<HeldPod>,
}

/// A held pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldPod {
    /// The pod.
    pub pod: PodRef,
    /// Its role, empty where it names only the group.
    pub role: String,
    /// Ordinal of its replica, given or assigned.
    pub ordinal: u32,
    /// Labels of its batch are there.
    pub labelled: bool,
    /// What admission wrote on it.
    pub marks: Marks,
}

impl GroupView {
    /// Counts the pods of a group.
    pub fn build<'a>(group: &Group, pods: impl IntoIterator<Item = &'a PodFacts>) -> Self {
        Self::build_while(group, pods, |_| false)
    }

    /// Counts the pods of a group while the release of some is under way: they keep the ordinals that they were given.
    pub fn build_while<'a>(
        group: &Group,
        pods: impl IntoIterator<Item = &'a PodFacts>,
        under_way: impl Fn(&PodRef) -> bool,
    ) -> Self {
        let mut view = Self { roles: named_roles(group), held: Vec::new() };
        let mut unnumbered = Vec::new();
        for pod in pods {
            match pod.identity.ordinal {
                Some(ordinal) if pod.identity.unnumbered.is_none() => view.count(pod, ordinal),
                _ => unnumbered.push(pod),
            }
        }
        for (replica, ordinal) in assign(&view, unnumbered, under_way) {
            replica.into_iter().for_each(|pod| view.count(pod, ordinal));
        }
        for role in view.roles.values_mut().filter(|role| role.unknown) {
            let released = role.replicas.values().filter(|replica| replica.is_released()).count();
            role.desired = role.committed.unwrap_or(0).max(count(released));
        }
        view.held.sort_by(|a, b| (a.ordinal, &a.role, &a.pod).cmp(&(b.ordinal, &b.role, &b.pod)));
        view
    }

    fn count(&mut self, pod: &PodFacts, ordinal: u32) {
        let role = pod.identity.role.as_deref().unwrap_or_default();
        if let Some(view) = self.roles.get_mut(role) {
            let replica = view.replicas.entry(ordinal).or_default();
            replica.pods += 1;
            replica.held += u32::from(pod.held);
            replica.scheduled += u32::from(pod.scheduled);
            replica.ready += u32::from(pod.ready);
            replica.size = replica.size.max(pod.identity.replica_size);
            replica.made_at_once |= pod.identity.made_at_once;
            if view.newest < pod.created {
                view.newest.clone_from(&pod.created);
            }
        }
        if pod.held {
            let (pod, labelled, marks) = (pod.pod.clone(), pod.labelled, pod.marks.clone());
            self.held.push(HeldPod { pod, role: role.to_owned(), ordinal, labelled, marks });
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
pub(super) fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
