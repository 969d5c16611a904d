//! What is observed of a group's pods, counted by role and ordinal.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::model::Group;
use crate::plan::view::ordinals::assign;
use crate::plan::view::replica::{RoleView, count};
use crate::plan::view::{HeldPod, PodFacts, PodRef};

/// What is observed of a group.
#[derive(Clone, Debug, Default)]
pub struct GroupView {
    /// Its roles.
    pub roles: BTreeMap<String, RoleView>,
    /// Held pods with the role and ordinal they count under, in order of ordinal.
    pub held: Vec<HeldPod>,
    /// Pods whose role the group does not have, held or not, by role.
    pub strangers: BTreeMap<String, u32>,
}

impl GroupView {
    /// Counts the pods of a group.
    pub(in crate::plan) fn build<'a>(group: &Group, pods: impl IntoIterator<Item = &'a Arc<PodFacts>>) -> Self {
        Self::build_while(group, pods, |_| None)
    }

    /// Counts the pods of a group while the release of some is under way: they keep the ordinals that they were `given`.
    pub(in crate::plan) fn build_while<'a>(
        group: &Group,
        pods: impl IntoIterator<Item = &'a Arc<PodFacts>>,
        given: impl Fn(&PodRef) -> Option<u32>,
    ) -> Self {
        let mut view = Self { roles: named_roles(group), ..Self::default() };
        let mut unnumbered = Vec::new();
        for pod in pods {
            match pod.identity.ordinal {
                Some(ordinal) if pod.identity.unnumbered.is_none() => view.count(pod, ordinal),
                _ => unnumbered.push(pod),
            }
        }
        for (replica, ordinal) in assign(&view.roles, unnumbered, given) {
            replica.into_iter().for_each(|pod| view.count(pod, ordinal));
        }
        // Roles that cannot be read (the group refers to another that is not there) may be any.
        if group.roles.is_empty() {
            view.strangers.clear();
        }
        for role in view.roles.values_mut().filter(|role| role.unknown) {
            let released = role.replicas.values().filter(|replica| replica.is_released()).count();
            role.desired = role.committed.unwrap_or(0).max(count(released));
        }
        view.held.sort_by(|a, b| (a.ordinal, a.role(), &a.pod).cmp(&(b.ordinal, b.role(), &b.pod)));
        view
    }

    /// True when pods that run already are to count as released although nothing was ever committed.
    pub(in crate::plan) fn adopts_pods(&self, group: &Group) -> bool {
        let adopts = |role: &RoleView| !role.unknown && role.committed.is_none() && role.current() > 0;
        self.roles.iter().any(|(name, role)| adopts(role) && group.batch_size(name).is_some())
    }

    fn count(&mut self, pod: &Arc<PodFacts>, ordinal: u32) {
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
        } else if !role.is_empty() {
            *self.strangers.entry(role.to_owned()).or_default() += 1;
        }
        if pod.held {
            self.held.push(HeldPod { facts: pod.clone(), ordinal });
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
