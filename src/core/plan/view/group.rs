//! Pods of a group, counted by role and ordinal.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use crate::model::moment::Moment;
use crate::model::{Batching, Group, PodIdentity, Role};
use crate::plan::view::home::Home;
use crate::plan::view::ordinals::{Assigned, Makes, assign};
use crate::plan::view::succeeded::{AllSucceeded, remember};
use crate::plan::view::{GroupPods, HeldPod, Leaving, PodFacts, PodRef, ReplicaIs, RolePods, RoleView, count};

/// The observed pods of a group.
#[derive(Clone, Debug, Default)]
pub struct GroupView {
    pub roles: BTreeMap<String, RoleView>,
    /// The number of pods by role name, held or not, for roles that the group does not have.
    pub strangers: BTreeMap<String, u32>,
    /// Pods that are being deleted and still exist.
    pub leaving: Vec<Leaving>,
    /// The time at which the next ready pod counts, if one was not ready for long enough.
    pub counts_at: Option<Moment>,
    /// Replicas that have succeeded, to be committed: they count even when their pods are gone.
    pub succeeded: AllSucceeded,
    /// Held pods without a role of the group: their role is unknown, the roles of the group cannot be read, or they name none.
    pub others: Vec<HeldPod>,
    /// Pods, held or not, that name a role of the group and are no replica of it: the workload of the role did not create them.
    pub apart: Vec<Arc<PodFacts>>,
}

impl GroupView {
    /// Returns the ordinals of a batch, by role.
    pub(in crate::plan) fn ranges<'a>(
        &'a self,
        batching: &'a Batching,
        batch: u32,
    ) -> impl Iterator<Item = (&'a str, &'a RoleView, Range<u32>)> {
        batching.sizes.keys().filter_map(move |name| {
            let role = self.roles.get(name)?;
            Some((name.as_str(), role, batching.ordinals(name, batch, role.desired)))
        })
    }

    /// Returns the number of batches that are desired.
    pub(in crate::plan) fn desired_batches(&self, batching: &Batching) -> u32 {
        batching.total(|role| Some(self.roles.get(role)?.desired))
    }

    /// Returns the number of batches that may exist: while the number of replicas is unknown, any.
    pub(in crate::plan) fn possible_batches(&self, batching: &Batching) -> u32 {
        let replicas = |role: &RoleView| if role.unknown { u32::MAX } else { role.desired };
        batching.total(|role| self.roles.get(role).map(replicas))
    }

    pub(in crate::plan) fn build(group: &Group, pods: &GroupPods) -> Self {
        Self::build_while(group, (pods, &[]), |_| None)
    }

    /// Counts the pods of a group. Pods whose release is under way keep the ordinals that `given` returns. `keys` are the node
    /// labels of the domains of its coordinations.
    pub(in crate::plan) fn build_while(
        group: &Group,
        (pods, keys): (&GroupPods, &[(usize, String)]),
        given: impl Fn(&PodRef) -> Option<u32>,
    ) -> Self {
        let mut view = Self { roles: named_roles(group), ..Self::default() };
        let pods = &*by_workload(group, pods);
        for (name, pods) in pods.roles() {
            if let Some(role) = view.roles.get_mut(name) {
                let home = if pods.unnumbered.is_empty() { None } else { Home::of(group, keys, name) };
                view.apart.extend(count_in(role, Makes::of(group.role(name)), (pods, home.as_ref()), &given));
                continue;
            }
            let mut role = RoleView { unknown: true, ..RoleView::default() };
            count_in(&mut role, Makes::Anything, (pods, None), &given);
            view.others.extend(role.replicas.held(..));
            // If the roles cannot be read (the referenced group is missing), any role may be valid.
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

    /// Counts succeeded replicas whose pods are gone like existing ones.
    pub(in crate::plan) fn remember(&mut self, group: &Group, known: &AllSucceeded) {
        for (name, role) in &mut self.roles {
            let before = known.get(name).map(Vec::as_slice).unwrap_or_default();
            // The number of desired replicas of an unknown role is not known.
            let succeeded = if role.unknown { before.to_vec() } else { remember(group, (name, role), before) };
            if succeeded.is_empty() {
                self.succeeded.remove(name);
            } else {
                self.succeeded.insert(name.clone(), succeeded);
            }
        }
    }

    /// Reports whether running pods count as released although nothing was ever committed.
    pub(in crate::plan) fn adopts_pods(&self, group: &Group) -> bool {
        let adopts = |role: &RoleView| !role.unknown && role.committed.is_none() && role.current() > 0;
        self.roles.iter().any(|(name, role)| adopts(role) && group.batch_size(name).is_some())
    }

    /// Returns all held pods, lowest ordinal first.
    pub fn held(&self) -> Vec<HeldPod> {
        let mut held: Vec<_> = self.roles.values().flat_map(|role| role.replicas.held(..)).collect();
        held.extend(self.others.iter().cloned());
        held.extend(self.held_apart());
        held.sort_by(HeldPod::in_order);
        held
    }

    /// Returns the held pods that are no replica of their role.
    pub(in crate::plan) fn held_apart(&self) -> impl Iterator<Item = HeldPod> {
        self.apart.iter().filter(|pod| pod.held).map(|pod| HeldPod { facts: pod.clone(), ordinal: 0 })
    }

    /// Reports whether the pod with this uid still exists as a held replica of the role.
    pub(in crate::plan) fn holds(&self, role: &str, ordinal: u32, uid: &str) -> bool {
        let pods = self.roles.get(role).map(|role| role.replicas.pods_of(ordinal)).unwrap_or_default();
        pods.iter().any(|pod| pod.held && *pod.pod.uid == *uid)
    }
}

/// Counts the pods of a role; returns the pods that are no replica of it.
fn count_in(
    role: &mut RoleView,
    makes: Makes,
    (pods, home): (&RolePods, Option<&Home>),
    given: impl Fn(&PodRef) -> Option<u32>,
) -> Vec<Arc<PodFacts>> {
    role.replicas = pods.replicas.clone();
    if pods.unnumbered.is_empty() {
        return Vec::new();
    }
    let Assigned { placed, apart } = assign((role, home), makes, pods.unnumbered.values(), given);
    for (replica, ordinal) in placed {
        let runs = home.is_some() && replica.iter().any(|pod| !pod.held);
        role.unnumbered.extend(runs.then_some(ordinal));
        replica.into_iter().for_each(|pod| role.replicas.add(pod, ordinal));
    }
    apart.into_iter().cloned().collect()
}

/// Returns the pods of a group by role. A pod that names an unknown role counts for the role whose workload created it: its
/// template was wrong, or the role was renamed.
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

/// Reports whether the workload that the role refers to created the pod, by the kind of its creator and the name.
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

/// Returns the roles of a group, and roles that only a coordination names: their pods are held until the role is known.
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
