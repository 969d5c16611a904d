//! Memory of the objects that the carrier of a group owns.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use crate::api::ObjectKind;
use crate::api::provisioning::REQUESTS;
use crate::plan::decide::pod_groups::MissingOwned;

/// An owned object. One of an earlier carrier of the same name is garbage-collected with that carrier, so the uid of the owner
/// is a part of the key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OwnedId {
    /// The uid of the object that carries the group.
    pub owner: String,
    pub kind: ObjectKind,
    pub name: String,
}

/// An existing object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundOwned {
    pub kind: ObjectKind,
    pub name: String,
    /// The number of pods that start together, for a PodGroup; else 1.
    pub min_member: u32,
}

#[derive(Debug, Default)]
pub(in crate::plan) struct OwnedMemory {
    /// Existing objects; PodGroups with the lowest minimum of members that they were given.
    pub(in crate::plan) made: HashMap<OwnedId, u32>,
    /// Objects that are being deleted, or whose deletion failed, with their members.
    pub(in crate::plan) going: HashMap<OwnedId, u32>,
    /// Objects whose creation has begun: without a good answer, they may be there or not.
    asked: HashSet<OwnedId>,
    /// Objects whose creation failed, with the errors.
    failed: BTreeMap<OwnedId, String>,
    /// The uid of the carrier whose objects were listed.
    pub(in crate::plan) listed: Option<String>,
    /// The uid of a carrier that asked for no object and whose pods named none.
    pub(in crate::plan) without: Option<String>,
}

impl OwnedMemory {
    /// Returns the number of entries.
    pub(in crate::plan) fn len(&self) -> usize {
        self.made.len() + self.going.len() + self.asked.len() + self.failed.len()
    }

    /// Returns the members of an existing object.
    pub(in crate::plan) fn members(&self, id: &OwnedId) -> Option<u32> {
        self.made.get(id).copied()
    }

    /// Iterates over the objects that may be there.
    pub(in crate::plan) fn all(&self) -> impl Iterator<Item = &OwnedId> {
        self.made.keys().chain(self.going.keys()).chain(&self.asked)
    }

    /// Reports whether objects may be there beside those that are known to exist.
    pub(in crate::plan) fn may_be_more(&self) -> bool {
        !self.going.is_empty() || !self.asked.is_empty()
    }

    /// Forgets failures to create objects of requests for nodes beside these.
    pub(in crate::plan) fn forget_failures(&mut self, requests: &BTreeSet<(ObjectKind, String)>) {
        self.failed.retain(|id, _| !REQUESTS.contains(&id.kind) || requests.contains(&(id.kind, id.name.clone())));
    }

    /// Notes that the creation of an object begins.
    pub(in crate::plan) fn asks(&mut self, id: OwnedId) {
        self.asked.insert(id);
    }

    /// Returns the objects of these kinds that an owner may have, or that are being deleted; `None` before they were listed.
    pub(in crate::plan) fn present(&self, owner: &str, kinds: &[ObjectKind]) -> Option<Vec<(ObjectKind, String)>> {
        self.listed.as_deref().filter(|listed| *listed == owner)?;
        let of_kinds = self.all().filter(|id| id.owner == owner && kinds.contains(&id.kind));
        Some(of_kinds.map(|id| (id.kind, id.name.clone())).collect())
    }

    /// Notes a try to create an object or to change its members, or to delete it where `members` is `None`.
    pub(in crate::plan) fn ended(&mut self, id: OwnedId, members: Option<u32>, failure: Option<String>) {
        match (failure, members) {
            (None, members) => {
                self.going.remove(&id);
                self.asked.remove(&id);
                self.failed.remove(&id);
                members.into_iter().for_each(|members| _ = self.made.insert(id.clone(), members));
            }
            (Some(why), Some(_)) => _ = self.failed.insert(id, why),
            (Some(_), None) => {}
        }
    }

    /// Notes the listed objects. Those created or written meanwhile are kept as known.
    pub(in crate::plan) fn found(&mut self, owner: String, found: Vec<FoundOwned>) {
        for FoundOwned { kind, name, min_member } in found {
            let id = OwnedId { owner: owner.clone(), kind, name };
            if !self.going.contains_key(&id) {
                self.made.entry(id).or_insert(min_member);
            }
        }
        self.listed = Some(owner);
    }

    /// Notes the deletion of an object: a batch that comes back waits for a new one.
    pub(in crate::plan) fn goes(&mut self, id: &OwnedId) {
        if let Some(members) = self.made.remove(id) {
            self.going.insert(id.clone(), members);
        }
    }

    /// Removes the objects of other owners.
    pub(in crate::plan) fn keep_only(&mut self, owner: &str) {
        self.made.retain(|id, _| id.owner == owner);
        self.going.retain(|id, _| id.owner == owner);
        self.asked.retain(|id| id.owner == owner);
        self.failed.retain(|id, _| id.owner == owner);
    }

    /// Returns the objects of an owner that could not be created. A PodGroup that could not be relaxed exists.
    pub(in crate::plan) fn missing(&self, owner: &str) -> Vec<MissingOwned> {
        let missing = self.failed.iter().filter(|(id, _)| id.owner == owner && !self.made.contains_key(id));
        missing.map(|(id, why)| MissingOwned { name: id.name.clone(), why: why.clone() }).collect()
    }
}
