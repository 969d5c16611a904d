//! What is observed of a group's pods, counted by role and ordinal.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::model::moment::Moment;
use crate::model::{Group, PodIdentity, Role};
use crate::plan::view::ordinals::{Assigned, Makes, assign};
use crate::plan::view::succeeded::{AllSucceeded, remember};
use crate::plan::view::{GroupPods, HeldPod, Leaving, PodFacts, PodRef, ReplicaIs, RolePods, RoleView, count};

/// What is observed of a group.
#[derive(Clone, Debug, Default)]
pub struct GroupView {
    /// Its roles.
    pub roles: BTreeMap<String, RoleView>,
    /// Pods whose role the group does not have, held or not, by role.
    pub strangers: BTreeMap<String, u32>,
    /// Pods that are being deleted and still there.
    pub leaving: Vec<Leaving>,
    /// When the next pod counts as ready that is ready, and has not been so for long enough.
    pub counts_at: Option<Moment>,
    /// Replicas that have done their work, as it is to be committed: they count when they are gone.
    pub succeeded: AllSucceeded,
    /// Held pods of no role of the group: strangers, those of a group whose roles cannot be read, and those that name no role.
    pub others: Vec<HeldPod>,
    /// Pods that name a role of the group and are none of its replicas, held or not: what makes its pods did not make them.
    pub apart: Vec<Arc<PodFacts>>,
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
        let pods = &*by_workload(group, pods);
        for (name, pods) in pods.roles() {
            if let Some(role) = view.roles.get_mut(name) {
                view.apart.extend(count_in(role, Makes::of(group.role(name)), pods, &given));
                continue;
            }
            let mut role = RoleView { unknown: true, ..RoleView::default() };
            count_in(&mut role, Makes::Anything, pods, &given);
            view.others.extend(role.replicas.held(..));
            // Roles that cannot be read (the group refers to another that is not there) may be any.
            if !name.is_empty() && !group.roles.is_empty() {
                view.strangers.insert(name.to_owned(), count(role.replicas.pods().count()));
            }
        }
        view.remember(group, &group.status.succeeded);
        for role in view.roles.values_mut().filter(|role| role.unknown) {
            role.desired = role.committed.unwrap_or(0).max(role.replicas.count_in(.., ReplicaIs::Released));
        }
        view
    }

    /// Counts replicas that have done their work, and are gone, with those that are there.
    pub(in crate::plan) fn remember(&mut self, group: &Group, known: &AllSucceeded) {
        for (name, role) in &mut self.roles {
            let before = known.get(name).map(Vec::as_slice).unwrap_or_default();
            // How many are desired of an unknown role nobody knows.
            let succeeded = if role.unknown { before.to_vec() } else { remember(group, (name, role), before) };
            if succeeded.is_empty() {
                self.succeeded.remove(name);
            } else {
                self.succeeded.insert(name.clone(), succeeded);
            }
        }
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
        held.extend(self.held_apart());
        held.sort_by(HeldPod::in_order);
        held
    }

    /// Held pods that are none of the replicas of their role.
    pub(in crate::plan) fn held_apart(&self) -> impl Iterator<Item = HeldPod> {
        self.apart.iter().filter(|pod| pod.held).map(|pod| HeldPod { facts: pod.clone(), ordinal: 0 })
    }

    /// True while this very pod is there as a replica of the role, and held.
    pub(in crate::plan) fn holds(&self, role: &str, ordinal: u32, uid: &str) -> bool {
        let pods = self.roles.get(role).map(|role| role.replicas.pods_of(ordinal)).unwrap_or_default();
        pods.iter().any(|pod| pod.held && *pod.pod.uid == *uid)
    }
}

/// Counts the pods of a role; returns those that are none of its replicas.
fn count_in(
    role: &mut RoleView,
    makes: Makes,
    pods: &RolePods,
    given: impl Fn(&PodRef) -> Option<u32>,
) -> Vec<Arc<PodFacts>> {
    role.replicas = pods.replicas.clone();
    if pods.unnumbered.is_empty() {
        return Vec::new();
    }
    let Assigned { placed, apart } = assign(role, makes, pods.unnumbered.values(), given);
    for (replica, ordinal) in placed {
        replica.into_iter().for_each(|pod| role.replicas.add(pod, ordinal));
    }
    apart.into_iter().cloned().collect()
}

/// The pods of a group by the role that they are of. A pod that names a role which the group does not have is of the role whose
/// workload made it: its template was wrong, or the role had another name.
fn by_workload<'a>(group: &Group, pods: &'a GroupPods) -> Cow<'a, GroupPods> {
    let is_stray = |name: &str| !name.is_empty() && group.role(name).is_none();
    let strays = pods.roles().filter(|(name, _)| is_stray(name)).flat_map(|(name, _)| pods.of_role(name));
    let made_for = |pod: &'a Arc<PodFacts>| Some((pod, group.roles.iter().find(|role| has_made(role, pod))?));
    let strays: Vec<_> = strays.filter_map(made_for).collect();
    if strays.is_empty() {
        return Cow::Borrowed(pods);
    }
    let mut pods = pods.clone();
    for (pod, role) in strays {
        pods.remove(pod);
        let identity = PodIdentity { role: Some(role.name.as_str().into()), ..pod.identity.clone() };
        pods.add(&Arc::new(PodFacts { identity, ..PodFacts::clone(pod) }));
    }
    Cow::Owned(pods)
}

/// The workload that the role refers to has made the pod: a controller has, and it goes by the workload's name.
fn has_made(role: &Role, pod: &PodFacts) -> bool {
    let Some(key) = role.workload.key.as_ref().filter(|_| role.workload.reference.is_some()) else { return false };
    let Some(rest) = pod.pod.name.strip_prefix(key.name.as_str()).and_then(|rest| rest.strip_prefix('-')) else {
        return false;
    };
    let (row, (least, most)) = (key.kind.row(), key.kind.row().name_parts);
    let is_its_own = match &pod.identity.unnumbered {
        None => row.numbered,
        Some(unnumbered) => row.unnumbered_by.contains(&unnumbered.by),
    };
    is_its_own && (least..=most).contains(&rest.split('-').count())
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
