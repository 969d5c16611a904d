//! Objects that carry coordinations, and the groups read from them.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use super::context::Context;
use super::store::{Store, Stored, Tombstones, is_older};
use super::{SourceId, version};
use crate::api::role_coordination::ROLE_COORDINATION;
use crate::api::status::GroupStatus;
use crate::api::{Object, ObjectKind, RoleBasedGroup, RoleCoordination};
use crate::model::claims::{Claims, role_based_group};
use crate::model::{Group, GroupKey, WorkloadKey};
use crate::rules::{Judged, Violation, judge_group};

/// An object that carries coordinations.
#[derive(Clone, Debug)]
pub enum CarrierObject {
    /// A RoleBasedGroup of one of its kinds: with coordinations of its own, or only with the roles of a RoleCoordination.
    Rbg(Arc<Group>),
    /// A RoleCoordination, not yet joined with its RoleBasedGroup.
    Coordination(Arc<RoleCoordination>),
}

impl CarrierObject {
    pub fn rbg(kind: ObjectKind, rbg: &RoleBasedGroup) -> Self {
        Self::Rbg(Arc::new(Group::from_rbg(kind, rbg)))
    }

    pub fn coordination(coordination: RoleCoordination) -> Self {
        Self::Coordination(Arc::new(coordination))
    }

    fn id(&self) -> Id {
        match self {
            Self::Rbg(group) => (group.carrier.kind, group.key.namespace.clone(), group.carrier.name.as_str().into()),
            Self::Coordination(coordination) => {
                let meta = coordination.meta();
                (ROLE_COORDINATION, meta.namespace().into(), meta.display_name().into())
            }
        }
    }

    /// Returns the key of the group that the object coordinates.
    fn key(&self) -> GroupKey {
        match self {
            Self::Rbg(group) => group.key.clone(),
            Self::Coordination(coordination) => {
                let own = coordination.meta().display_name();
                let name = coordination.spec.group_ref.as_ref().map_or(own, |group| group.name.as_str());
                GroupKey::new(coordination.meta().namespace(), name)
            }
        }
    }

    /// Reports whether both are the same version of the same object.
    pub fn is_same(&self, other: &Self) -> bool {
        self.id() == other.id() && self.version() == other.version()
    }

    pub fn status(&self) -> &GroupStatus {
        match self {
            Self::Rbg(group) => &group.status,
            Self::Coordination(coordination) => &coordination.status,
        }
    }

    pub fn uid(&self) -> &str {
        self.version().0
    }

    /// Returns uid and resource version.
    fn version(&self) -> (&str, Option<u64>) {
        match self {
            Self::Rbg(group) => (&group.carrier.uid, version(Some(&group.carrier.resource_version))),
            Self::Coordination(coordination) => {
                let meta = coordination.meta();
                (meta.uid.as_deref().unwrap_or_default(), version(meta.resource_version.as_deref()))
            }
        }
    }
}

type Id = (ObjectKind, Arc<str>, Arc<str>);

#[derive(Debug, Default)]
pub(super) struct Carriers {
    /// Objects, and those that name a group.
    objects: Store<Id, CarrierObject>,
    gone: Tombstones<Id>,
    claims: HashMap<GroupKey, ClaimedGroup>,
    /// Groups whose reading or faults depend on a workload.
    by_workload: HashMap<WorkloadKey, HashSet<GroupKey>>,
}

/// The claims on a group, and the faults of the group.
#[derive(Debug)]
struct ClaimedGroup {
    claims: Claims,
    /// The RoleBasedGroup of the same name that the faults were judged with.
    rbg: Option<Arc<Group>>,
    faults: Arc<[Violation]>,
}

impl ClaimedGroup {
    /// Reports whether rules that read only the group and its RoleBasedGroup find the same faults.
    fn is_judged_like(&self, group: &Group, rbg: Option<&Group>) -> bool {
        let same_rbg = match (self.rbg.as_deref(), rbg) {
            (Some(known), Some(rbg)) => known.is_like(rbg),
            (known, rbg) => known.is_none() && rbg.is_none(),
        };
        same_rbg && self.claims.group.is_like(group)
    }
}

/// Why a group is rebuilt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Because {
    /// An object that carries the group has come, changed or gone: often only its status.
    Carrier,
    /// A workload or a ClusterTopology that the rules read has changed.
    Context,
}

impl Carriers {
    /// Returns the claims on a group; `None` when no object carries it, or when its RoleBasedGroup names a RoleCoordination
    /// that does not exist (yet).
    pub(super) fn claims(&self, key: &GroupKey) -> Option<&Claims> {
        self.claims.get(key).map(|carried| &carried.claims)
    }

    /// Returns the faults of a group, as far as the index has the objects that the rules read.
    pub(super) fn faults(&self, key: &GroupKey) -> Arc<[Violation]> {
        self.claims.get(key).map(|carried| carried.faults.clone()).unwrap_or_default()
    }

    pub(super) fn all(&self) -> impl Iterator<Item = (&GroupKey, &Claims)> {
        self.claims.iter().map(|(key, carried)| (key, &carried.claims))
    }

    /// Returns the RoleBasedGroup of this name.
    pub(super) fn role_based_group(&self, key: &GroupKey) -> Option<&Arc<Group>> {
        role_based_group(self.objects.of(key).filter_map(|object| match object {
            CarrierObject::Rbg(group) => Some(group),
            CarrierObject::Coordination(_) => None,
        }))
    }

    /// Returns an object as it was last seen.
    pub(super) fn object(&self, kind: ObjectKind, namespace: &str, name: &str) -> Option<CarrierObject> {
        self.objects.get(&(kind, namespace.into(), name.into())).map(|known| known.object.clone())
    }

    /// Returns the names of the RoleCoordinations that name a group.
    pub(super) fn coordinations_of(&self, key: &GroupKey) -> BTreeSet<Arc<str>> {
        self.objects
            .keys_of(key)
            .filter(|(kind, ..)| *kind == ROLE_COORDINATION)
            .map(|(.., name)| name.clone())
            .collect()
    }

    /// Stores an object unless a newer version is known or the object was deleted. Returns its group, and the other one that it
    /// carried before, when the object was news.
    pub(super) fn apply(
        &mut self,
        source: Option<SourceId>,
        object: CarrierObject,
    ) -> Option<(GroupKey, Option<GroupKey>)> {
        let id = object.id();
        let (uid, version) = object.version();
        let known = self.objects.get(&id);
        let is_newer = |known: &Stored<CarrierObject>| is_older(version, known.object.version().1);
        if known.is_some_and(is_newer) || self.gone.holds(&id, uid, version) {
            return None;
        }
        let source = source.or(known.filter(|known| known.object.uid() == uid).and_then(|known| known.source));
        let key = object.key();
        let before = self.objects.insert(id, Stored { object, source, group: Some(key.clone()) });
        Some((key, before))
    }

    /// Removes a deleted object, but not its successor of the same name; returns its group.
    pub(super) fn deleted(&mut self, object: &CarrierObject) -> Option<GroupKey> {
        let id = object.id();
        let (uid, version) = object.version();
        self.gone.add(id.clone(), Some(uid), version);
        let is_this = self.objects.get(&id).is_some_and(|known| known.object.uid() == uid);
        is_this.then(|| self.objects.remove(&id)).flatten()?.group
    }

    /// Removes the objects that a watch has not listed; returns their groups. An object that the watch had reported gets a
    /// tombstone.
    pub(super) fn keep_only<'a>(
        &mut self,
        source: SourceId,
        kind: ObjectKind,
        listed: impl IntoIterator<Item = &'a CarrierObject>,
    ) -> Vec<GroupKey> {
        let listed: HashSet<_> = listed.into_iter().map(CarrierObject::id).collect();
        let gone = self.objects.keep_only(source, |id| id.0 != kind || listed.contains(id));
        let note = |(id, known): (Id, Stored<CarrierObject>)| {
            if known.source.is_some() {
                let (uid, version) = known.object.version();
                self.gone.add(id, Some(uid), version);
            }
            known.group
        };
        gone.into_iter().filter_map(note).collect()
    }

    /// Removes all objects that a watch has reported, since their kind is no longer served. The same objects may come back.
    pub(super) fn forget_all(&mut self, source: SourceId) -> Vec<GroupKey> {
        self.objects.forget_all(source).into_iter().filter_map(|(_, known)| known.group).collect()
    }

    /// Returns the number of entries of each map.
    pub(super) fn sizes(&self) -> [(&'static str, usize); 5] {
        [
            ("objects", self.objects.len()),
            ("group_names", self.objects.groups().len()),
            ("groups", self.claims.len()),
            ("judged_with", self.by_workload.len()),
            ("deleted_objects", self.gone.len()),
        ]
    }

    /// Returns the groups whose reading or faults depend on a workload.
    pub(super) fn dependents(&self, workload: &WorkloadKey) -> Vec<GroupKey> {
        self.by_workload.get(workload).into_iter().flatten().cloned().collect()
    }

    /// Returns the groups that refer to a ClusterTopology, or with `None` to any.
    pub(super) fn referring_to(&self, topology: Option<&str>) -> Vec<GroupKey> {
        let refers = |claims: &Claims| {
            let mut layers = claims.group.batched().filter_map(|(_, batching)| batching.layer());
            layers.any(|(name, _)| topology.is_none_or(|topology| topology == name))
        };
        self.all().filter(|(_, claims)| refers(claims)).map(|(key, _)| key.clone()).collect()
    }

    /// Rebuilds a group from the known objects, and judges it again only if an input of its rules has changed. Its own
    /// status, which is written often, is no such input.
    pub(super) fn rebuild(&mut self, key: &GroupKey, context: &Context<'_>, because: Because) {
        let old = self.claims.remove(key);
        if let Some(old) = &old {
            for workload in workloads(&old.claims.group) {
                if let Some(groups) = self.by_workload.get_mut(&workload) {
                    groups.remove(key);
                    if groups.is_empty() {
                        self.by_workload.remove(&workload);
                    }
                }
            }
        }
        if let Some(claims) = self.read(key, context) {
            for workload in workloads(&claims.group) {
                self.by_workload.entry(workload).or_default().insert(key.clone());
            }
            let rbg = context.rbg.clone();
            let judged =
                old.filter(|old| because == Because::Carrier && old.is_judged_like(&claims.group, rbg.as_deref()));
            let judge = || judge_group(&claims.group, None, &context.world_of(&claims.group)).errors.into();
            let faults = judged.map_or_else(judge, |old| old.faults);
            self.claims.insert(key.clone(), ClaimedGroup { claims, rbg, faults });
        }
    }

    /// Judges a group as it is read with these objects.
    pub(super) fn judged(&self, key: &GroupKey, context: &Context<'_>) -> Judged {
        let claims = self.read(key, context);
        claims.map(|claims| judge_group(&claims.group, None, &context.world_of(&claims.group))).unwrap_or_default()
    }

    fn read(&self, key: &GroupKey, context: &Context<'_>) -> Option<Claims> {
        Claims::of(self.objects.of(key).map(|object| match object {
            CarrierObject::Rbg(group) => group.clone(),
            CarrierObject::Coordination(coordination) => {
                Arc::new(Group::from_role_coordination(ROLE_COORDINATION, coordination, context))
            }
        }))
    }
}

fn workloads(group: &Group) -> impl Iterator<Item = WorkloadKey> {
    group.roles.iter().filter_map(|role| role.workload.key.clone())
}

#[cfg(test)]
#[path = "carriers_tests.rs"]
mod tests;
