//! The PodGroups of a group's batches: created if wanted, and deleted if left over.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use crate::api::ObjectKind;
use crate::model::Group;
use crate::model::batch::PodGroupOf;
use crate::plan::decide::pod_groups::{batch_pod_groups, lasting_pod_groups};
use crate::plan::reconcile::action::{Action, PodGroupWrite, Question};
use crate::plan::reconcile::pass::Pass;
use crate::plan::reconcile::pod_group_memory::{PodGroupId, PodGroupMemory};
use crate::plan::view::{GroupView, Snapshot};

impl Pass<'_> {
    /// Creates the PodGroups of committed batches, relaxes them once their batch was scheduled, tightens them again while it is
    /// recreated, and deletes those of batches that no longer exist.
    pub(in crate::plan) fn pod_groups(&mut self, group: &Arc<Group>, view: &GroupView, snapshot: &Snapshot) {
        let owner = &group.carrier.uid;
        self.look_at_pod_groups(group, snapshot);
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
                // None of its pods is released before that.
                self.memory.pod_groups.made.remove(&id);
            } else if known.is_some_and(|known| known <= gang.min_member) {
                continue;
            }
            self.write_pod_group(group, id, PodGroupWrite::Ensure(gang));
        }
        if may_be_left && !group.deleting {
            self.remove_left_over(group, view, snapshot);
        }
    }

    fn write_pod_group(&mut self, group: &Arc<Group>, id: PodGroupId, write: PodGroupWrite) -> bool {
        self.begin(Action::WritePodGroup { group: group.clone(), id, write })
    }

    /// Lists the PodGroups once for each object: a new process does not know which ones exist. It lists the kinds that the group
    /// asks for, and those that pods name: the policy may have been removed since.
    fn look_at_pod_groups(&mut self, group: &Arc<Group>, snapshot: &Snapshot) {
        let owner = Some(&group.carrier.uid);
        if self.memory.pod_groups.listed.as_ref() == owner {
            return;
        }
        let wanted = group.batched().filter_map(|(_, batching)| batching.gangs.as_ref()?.policy.kind());
        let mut kinds: BTreeSet<_> = wanted.collect();
        if self.memory.pod_groups.without.as_ref() != owner {
            kinds.extend(snapshot.pods.iter().flat_map(|pod| &pod.pod_groups).map(|(key, _)| key.kind()));
        }
        if kinds.is_empty() {
            self.memory.pod_groups.without = owner.cloned();
        } else {
            self.begin(Action::Read(Question::PodGroups { group: group.clone(), kinds }));
        }
    }

    /// Deletes left-over PodGroups. A PodGroup that a pod still names stays: its scheduler would not schedule the pod without
    /// it. It waits for the pods that name it only, since those that are lost come back without it.
    fn remove_left_over(&mut self, group: &Arc<Group>, view: &GroupView, snapshot: &Snapshot) {
        let lasting = lasting_pod_groups(group, view);
        let is_left =
            |id: &&PodGroupId| id.owner == group.carrier.uid && !lasting.contains(&(id.kind, id.name.clone()));
        let PodGroupMemory { made, going, .. } = &self.memory.pod_groups;
        let left: Vec<_> = made.keys().chain(going.keys()).filter(is_left).cloned().collect();
        if left.is_empty() {
            return;
        }
        let mut named: HashMap<(ObjectKind, &str), u32> = HashMap::new();
        for (key, name) in snapshot.pods.iter().flat_map(|pod| &pod.pod_groups) {
            *named.entry((key.kind(), name)).or_default() += 1;
        }
        for id in left {
            let pods = named.get(&(id.kind, &*id.name)).copied();
            match (pods, self.memory.pod_groups.members(&id)) {
                (None, _) => {
                    if self.write_pod_group(group, id.clone(), PodGroupWrite::Remove) {
                        self.memory.pod_groups.goes(&id);
                    }
                }
                (Some(pods), Some(members)) if pods < members => {
                    self.write_pod_group(group, id, PodGroupWrite::Relax(pods));
                }
                (Some(_), _) => {}
            }
        }
    }

    /// Reports whether the PodGroup was created for the object that carries the group now.
    pub(in crate::plan) fn has_pod_group(&self, group: &Group, of: &PodGroupOf<'_>) -> bool {
        let id = |kind| PodGroupId { owner: group.carrier.uid.clone(), kind, name: of.name.clone() };
        of.policy.kind().is_some_and(|kind| self.memory.pod_groups.members(&id(kind)).is_some())
    }
}

#[cfg(test)]
#[path = "pod_groups_tests.rs"]
mod tests;
