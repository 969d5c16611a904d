//! The PodGroups of a group's batches: which were made, which are wanted, and which are left over.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use crate::api::ObjectKind;
use crate::model::Group;
use crate::plan::decide::pod_groups::{MissingPodGroup, batch_pod_groups, lasting_pod_groups};
use crate::plan::reconcile::action::Action;
use crate::plan::reconcile::pass::Pass;
use crate::plan::view::{GroupView, Snapshot};

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
    made: HashMap<PodGroupId, u32>,
    /// Those that are being removed, or could not be removed yet, with their members.
    going: HashMap<PodGroupId, u32>,
    /// Those that could not be made, and why.
    failed: BTreeMap<PodGroupId, String>,
    /// Uid of the object for which it was looked which are there.
    looked: Option<String>,
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
    fn goes(&mut self, id: &PodGroupId) {
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

impl Pass<'_> {
    /// Makes the PodGroups of committed batches, loosens them once their batch was scheduled, tightens them again while
    /// it is made anew, and removes those of batches that are no more.
    pub(in crate::plan) fn pod_groups(&mut self, group: &Arc<Group>, view: &GroupView, snapshot: &Snapshot) {
        let owner = &group.carrier.uid;
        self.look_at_pod_groups(group);
        let committed =
            view.roles.iter().map(|(role, view)| (role.clone(), view.committed.unwrap_or(0).min(view.desired)));
        let gangs = batch_pod_groups(group, view, &committed.collect());
        let may_be_left = self.memory.pod_groups.made.len() > gangs.len() || !self.memory.pod_groups.going.is_empty();
        for mut gang in gangs {
            let Some(kind) = gang.policy.kind() else { continue };
            let id = PodGroupId { owner: owner.clone(), kind, name: gang.name.clone() };
            let known = self.memory.pod_groups.members(&id);
            gang.renewed |= self.memory.pod_groups.going.contains_key(&id);
            if gang.renewed && known.is_some_and(|known| known < gang.min_member) {
                // None of its pods goes before that.
                self.memory.pod_groups.made.remove(&id);
            } else if known.is_some_and(|known| known <= gang.min_member) {
                continue;
            }
            self.begin(&id.in_flight(), || Action::EnsurePodGroup { group: group.clone(), gang });
        }
        if may_be_left && !group.deleting {
            self.remove_left_over(group, view, snapshot);
        }
    }

    /// Once for each object: a loop that begins does not know what one before it has made.
    fn look_at_pod_groups(&mut self, group: &Arc<Group>) {
        let owner = &group.carrier.uid;
        let has_policy = || group.batched().any(|(_, batching)| batching.pod_group.is_some());
        if self.memory.pod_groups.looked.as_ref() != Some(owner) && has_policy() {
            self.begin(&writes_of(owner).into(), || Action::FindPodGroups { group: group.clone() });
        }
    }

    /// A PodGroup that a pod still names stays: its scheduler would not let the pod go without.
    fn remove_left_over(&mut self, group: &Arc<Group>, view: &GroupView, snapshot: &Snapshot) {
        let lasting = lasting_pod_groups(group, view);
        let is_left = |id: &&PodGroupId| {
            id.owner == group.carrier.uid && !lasting.iter().any(|(kind, name)| *kind == id.kind && *name == id.name)
        };
        let PodGroupMemory { made, going, .. } = &self.memory.pod_groups;
        let left: Vec<_> = made.keys().chain(going.keys()).filter(is_left).cloned().collect();
        if left.is_empty() {
            return;
        }
        let named: HashSet<_> = snapshot.pods.iter().flat_map(|pod| &pod.pod_groups).map(|name| &**name).collect();
        for id in left.into_iter().filter(|id| !named.contains(&*id.name)) {
            if self.begin(&id.in_flight(), || Action::RemovePodGroup { group: group.clone(), id: id.clone() }) {
                self.memory.pod_groups.goes(&id);
            }
        }
    }

    /// True when the PodGroup was made for the object that carries the group now.
    pub(in crate::plan) fn has_pod_group(&self, group: &Group, (kind, name): (ObjectKind, String)) -> bool {
        let id = PodGroupId { owner: group.carrier.uid.clone(), kind, name };
        self.memory.pod_groups.members(&id).is_some()
    }
}
