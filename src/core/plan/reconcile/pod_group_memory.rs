//! Memory of the PodGroups of a group's batches.

use std::collections::{BTreeMap, HashMap};

use crate::api::ObjectKind;
use crate::plan::decide::pod_groups::MissingPodGroup;

/// A PodGroup that is created for a batch. A PodGroup of an earlier object of the same name is garbage-collected with that
/// object, so the uid of the owner is a part of the key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PodGroupId {
    /// The uid of the object that carries the group.
    pub owner: String,
    /// The kind: each scheduler has its own.
    pub kind: ObjectKind,
    pub name: String,
}

/// An existing PodGroup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundPodGroup {
    pub kind: ObjectKind,
    pub name: String,
    /// The number of pods that start together.
    pub min_member: u32,
}

#[derive(Debug, Default)]
pub(in crate::plan) struct PodGroupMemory {
    /// Existing PodGroups, with the lowest minimum of members that they were given.
    pub(in crate::plan) made: HashMap<PodGroupId, u32>,
    /// PodGroups that are being deleted, or whose deletion failed, with their members.
    pub(in crate::plan) going: HashMap<PodGroupId, u32>,
    /// PodGroups whose creation failed, with the errors.
    failed: BTreeMap<PodGroupId, String>,
    /// The uid of the object whose PodGroups were listed.
    pub(in crate::plan) listed: Option<String>,
    /// The uid of an object that asked for no PodGroups and whose pods named none.
    pub(in crate::plan) without: Option<String>,
}

impl PodGroupMemory {
    /// Returns the number of entries.
    pub(in crate::plan) fn len(&self) -> usize {
        self.made.len() + self.going.len() + self.failed.len()
    }

    /// Returns the members of an existing PodGroup.
    pub(in crate::plan) fn members(&self, id: &PodGroupId) -> Option<u32> {
        self.made.get(id).copied()
    }

    /// Notes a try to create a PodGroup or to change its members, or to delete it where `members` is `None`.
    pub(in crate::plan) fn ended(&mut self, id: PodGroupId, members: Option<u32>, failure: Option<String>) {
        match (failure, members) {
            (None, members) => {
                self.going.remove(&id);
                self.failed.remove(&id);
                members.into_iter().for_each(|members| _ = self.made.insert(id.clone(), members));
            }
            (Some(why), Some(_)) => _ = self.failed.insert(id, why),
            (Some(_), None) => {}
        }
    }

    /// Notes the listed PodGroups. Those created or written meanwhile are kept as known.
    pub(in crate::plan) fn found(&mut self, owner: String, found: Vec<FoundPodGroup>) {
        for FoundPodGroup { kind, name, min_member } in found {
            let id = PodGroupId { owner: owner.clone(), kind, name };
            if !self.going.contains_key(&id) {
                self.made.entry(id).or_insert(min_member);
            }
        }
        self.listed = Some(owner);
    }

    /// Notes the deletion of a PodGroup: a batch that comes back waits for a new one.
    pub(in crate::plan) fn goes(&mut self, id: &PodGroupId) {
        if let Some(members) = self.made.remove(id) {
            self.going.insert(id.clone(), members);
        }
    }

    /// Removes the PodGroups of other owners.
    pub(in crate::plan) fn keep_only(&mut self, owner: &str) {
        self.made.retain(|id, _| id.owner == owner);
        self.going.retain(|id, _| id.owner == owner);
        self.failed.retain(|id, _| id.owner == owner);
    }

    /// Returns the PodGroups of an owner that could not be created. A PodGroup that could not be relaxed exists.
    pub(in crate::plan) fn missing(&self, owner: &str) -> Vec<MissingPodGroup> {
        let missing = self.failed.iter().filter(|(id, _)| id.owner == owner && !self.made.contains_key(id));
        missing.map(|(id, why)| MissingPodGroup { name: id.name.clone(), why: why.clone() }).collect()
    }
}
