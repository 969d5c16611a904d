//! What is remembered of the PodGroups of a group's batches.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::api::ObjectKind;
use crate::plan::decide::pod_groups::MissingPodGroup;

/// A PodGroup that is made for a batch. One that was made for an earlier object of the same name is garbage-collected with
/// that object, so the owner's uid is a part of it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PodGroupId {
    /// Uid of the object that carries the group.
    pub owner: String,
    /// Its kind: each scheduler has its own.
    pub kind: ObjectKind,
    /// Its name.
    pub name: String,
}

impl PodGroupId {
    /// What it is called among the objects with a write on its way, where pods are known by their uids.
    pub(in crate::plan) fn in_flight(&self) -> Arc<str> {
        format!("{}{}/{}", writes_of(&self.owner), self.kind.group, self.name).into()
    }
}

/// How the PodGroups of an owner begin among the objects with a write on its way, and what a look at all of them is called.
pub(in crate::plan) fn writes_of(owner: &str) -> String {
    format!("podgroup/{owner}/")
}

/// A PodGroup that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundPodGroup {
    /// Its kind.
    pub kind: ObjectKind,
    /// Its name.
    pub name: String,
    /// Pods that start together.
    pub min_member: u32,
}

/// What is remembered of the PodGroups of a group's batches.
#[derive(Debug, Default)]
pub(in crate::plan) struct PodGroupMemory {
    /// Those that are there, with the fewest members that they were given.
    pub(in crate::plan) made: HashMap<PodGroupId, u32>,
    /// Those that are being removed, or could not be removed yet, with their members.
    pub(in crate::plan) going: HashMap<PodGroupId, u32>,
    /// Those that could not be made, and why.
    failed: BTreeMap<PodGroupId, String>,
    /// Uid of the object for which it was looked which are there.
    pub(in crate::plan) looked: Option<String>,
}

impl PodGroupMemory {
    /// How many are remembered.
    pub(in crate::plan) fn len(&self) -> usize {
        self.made.len() + self.going.len() + self.failed.len()
    }

    /// The members of one that is there.
    pub(in crate::plan) fn members(&self, id: &PodGroupId) -> Option<u32> {
        self.made.get(id).copied()
    }

    /// It was tried to make one, or to change its members.
    pub(in crate::plan) fn ensured(&mut self, id: PodGroupId, min_member: u32, failure: Option<String>) {
        if let Some(why) = failure {
            self.failed.insert(id, why);
            return;
        }
        self.forget(&id);
        self.made.insert(id, min_member);
    }

    /// It was looked which are there. What was made or written meanwhile is known better.
    pub(in crate::plan) fn found(&mut self, owner: String, found: Vec<FoundPodGroup>) {
        for FoundPodGroup { kind, name, min_member } in found {
            let id = PodGroupId { owner: owner.clone(), kind, name };
            if !self.going.contains_key(&id) {
                self.made.entry(id).or_insert(min_member);
            }
        }
        self.looked = Some(owner);
    }

    /// One is gone.
    pub(in crate::plan) fn forget(&mut self, id: &PodGroupId) {
        self.going.remove(id);
        self.failed.remove(id);
    }

    /// One is being removed: a batch that comes back waits for another.
    pub(in crate::plan) fn goes(&mut self, id: &PodGroupId) {
        if let Some(members) = self.made.remove(id) {
            self.going.insert(id.clone(), members);
        }
    }

    /// Forgets those of other owners.
    pub(in crate::plan) fn keep_only(&mut self, owner: &str) {
        self.made.retain(|id, _| id.owner == owner);
        self.going.retain(|id, _| id.owner == owner);
        self.failed.retain(|id, _| id.owner == owner);
    }

    /// Those of an owner that could not be made. One that was made and could not be loosened is there.
    pub(in crate::plan) fn missing(&self, owner: &str) -> Vec<MissingPodGroup> {
        let missing = self.failed.iter().filter(|(id, _)| id.owner == owner && !self.made.contains_key(id));
        missing.map(|(id, why)| MissingPodGroup { name: id.name.clone(), why: why.clone() }).collect()
    }
}
