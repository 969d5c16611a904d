//! What is observed of a group's pods, counted by role and ordinal.

use std::collections::BTreeMap;

use crate::model::Group;
use crate::plan::view::ordinals::assign;
use crate::plan::view::{GroupPods, HeldPod, Leaving, PodRef, ReplicaIs, RolePods, RoleView, count};

/// What is observed of a group.
#[derive(Clone, Debug, Default)]
pub struct GroupView {
    /// Its roles.
    pub roles: BTreeMap<String, RoleView>,
    /// Pods whose role the group does not have, held or not, by role.
    pub strangers: BTreeMap<String, u32>,
    /// Pods that are being deleted and still there.
    pub leaving: Vec<Leaving>,
    /// Held pods of no role of the group: strangers, those of a group whose roles cannot be read, and those that name no role.
    pub others: Vec<HeldPod>,
}

impl GroupView {
    /// Counts the pods of a group.
    pub(in crate::plan) fn build(group: &Group, pods: &GroupPods) -> Self {
        Self::build_while(group, pods, |_| None)
    }

    /// Counts the pods of a group while the release of some is under way: they keep the ordinals that they were `given`.
    pub(in crate::plan) fn build_while(
        group: &Group,
        pods: &GroupPods,
        given: impl Fn(&PodRef) -> Option<u32>,
    ) -> Self {
        let mut view = Self { roles: named_roles(group), ..Self::default() };
        for (name, pods) in pods.roles() {
            if let Some(role) = view.roles.get_mut(name) {
                count_in(role, pods, &given);
                continue;
            }
            let mut role = RoleView { unknown: true, ..RoleView::default() };
            count_in(&mut role, pods, &given);
            view.others.extend(role.replicas.held(..));
            // Roles that cannot be read (the group refers to another that is not there) may be any.
            if !name.is_empty() && !group.roles.is_empty() {
                view.strangers.insert(name.to_owned(), count(role.replicas.pods().count()));
            }
        }
        for role in view.roles.values_mut().filter(|role| role.unknown) {
            role.desired = role.committed.unwrap_or(0).max(role.replicas.count_in(.., ReplicaIs::Released));
        }
        view
    }

    /// True when pods that run already are to count as released although nothing was ever committed.
    pub(in crate::plan) fn adopts_pods(&self, group: &Group) -> bool {
        let adopts = |role: &RoleView| !role.unknown && role.committed.is_none() && role.current() > 0;
        self.roles.iter().any(|(name, role)| adopts(role) && group.batch_size(name).is_some())
    }

    /// All held pods, lowest ordinal first.
    pub fn held(&self) -> Vec<HeldPod> {
        let mut held: Vec<_> = self.roles.values().flat_map(|role| role.replicas.held(..)).collect();
        held.extend(self.others.iter().cloned());
        held.sort_by(HeldPod::in_order);
        held
    }

    /// True while this very pod is there as a replica of the role, and held.
    pub(in crate::plan) fn holds(&self, role: &str, ordinal: u32, uid: &str) -> bool {
        let pods = self.roles.get(role).map(|role| role.replicas.pods_of(ordinal)).unwrap_or_default();
        pods.iter().any(|pod| pod.held && *pod.pod.uid == *uid)
    }
}

fn count_in(role: &mut RoleView, pods: &RolePods, given: impl Fn(&PodRef) -> Option<u32>) {
    role.replicas = pods.replicas.clone();
    if !pods.unnumbered.is_empty() {
        for (replica, ordinal) in assign(role, pods.unnumbered.values(), given) {
            replica.into_iter().for_each(|pod| role.replicas.add(pod, ordinal));
        }
    }
}

/// The roles of a group, and those that a coordination names although nobody knows them (yet): their pods are held.
fn named_roles(group: &Group) -> BTreeMap<String, RoleView> {
    let view = |name: &str, desired, unknown| RoleView {
        desired,
        unknown,
        committed: group.committed(name),
        is_scaled: group.scaled().is_some_and(|(_, batching)| batching.sizes.contains_key(name)),
        ..RoleView::default()
    };
    let batched = group.batched().flat_map(|(_, batching)| batching.sizes.keys());
    let mut roles: BTreeMap<_, _> = batched.map(|name| (name.clone(), view(name, 0, true))).collect();
    for role in &group.roles {
        roles.insert(role.name.clone(), view(&role.name, role.desired, role.workload.desired_is_unknown));
    }
    roles
}
