//! The objects that the carrier of a group owns: PodGroups of its batches, and requests for nodes. They are created if wanted, and
//! deleted if left over.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use crate::api::ObjectKind;
use crate::api::provisioning::{POD_TEMPLATE, REQUESTS};
use crate::model::Group;
use crate::model::batch::PodGroupOf;
use crate::plan::decide::decision::Decision;
use crate::plan::decide::pod_groups::{awaited, batch_pod_groups, lasting_pod_groups};
use crate::plan::reconcile::action::{Action, OwnedWrite, Question};
use crate::plan::reconcile::owned_memory::OwnedId;
use crate::plan::reconcile::pass::Pass;
use crate::plan::view::{GroupView, Snapshot};

impl Pass<'_> {
    /// Creates the PodGroups of committed batches, relaxes them once their batch was scheduled, tightens them again while it is
    /// recreated, and deletes those of batches that no longer exist. Creates the objects of committed requests for nodes, and
    /// deletes those of others.
    pub(in crate::plan) fn owned(
        &mut self,
        group: &Arc<Group>,
        view: &GroupView,
        snapshot: &Snapshot,
        Decision { provision, release, .. }: &Decision,
    ) {
        self.look_at_owned(group, snapshot);
        let committed =
            view.roles.iter().map(|(role, view)| (role.clone(), view.committed.unwrap_or(0).min(view.desired)));
        let mut gangs = batch_pod_groups(group, view, &committed.collect());
        // The first pod of a role tells its size, unless pods go without those that are missing.
        let awaited = awaited(group, view, release);
        gangs.retain(|gang| gang.is_sized || awaited.contains_key(&gang.name));
        let wanted = gangs.len() + provision.keeps.len();
        let may_be_left = self.memory.owned.made.len() > wanted || self.memory.owned.may_be_more();
        for mut gang in gangs {
            let Some(kind) = gang.policy.kind() else { continue };
            let id = id(group, kind, gang.name.clone());
            let known = self.memory.owned.members(&id);
            gang.renewed |= self.memory.owned.going.contains_key(&id);
            if gang.renewed && known.is_some_and(|known| known < gang.min_member) {
                // None of its pods is released before that.
                self.memory.owned.made.remove(&id);
            } else if known.is_some_and(|known| known <= gang.min_member) {
                continue;
            }
            if self.write_owned(group, id.clone(), OwnedWrite::Ensure(gang)) {
                self.memory.owned.asks(id);
            }
        }
        self.memory.owned.forget_failures(&provision.keeps);
        for object in &provision.makes {
            let is_made = |kind, name: &String| self.memory.owned.members(&id(group, kind, name.clone())).is_some();
            if !is_made(object.kind, &object.name) && object.templates.iter().all(|name| is_made(POD_TEMPLATE, name)) {
                let id = id(group, object.kind, object.name.clone());
                if self.write_owned(group, id.clone(), OwnedWrite::Create(Box::new(object.clone()))) {
                    self.memory.owned.asks(id);
                }
            }
        }
        if (may_be_left || self.requests_nodes(group)) && !group.deleting {
            let lasting = lasting_pod_groups(group, view).into_iter().chain(provision.keeps.iter().cloned());
            self.remove_left_over(group, &lasting.collect(), snapshot);
        }
    }

    /// Deletes all requests for nodes: rolegate no longer holds the pods of the group.
    pub(in crate::plan) fn drop_requests(&mut self, snapshot: &Snapshot) {
        let Some(group) = snapshot.claims.as_ref().map(|claims| claims.group.clone()) else { return };
        if group.status.provisioning.is_empty() || !self.options.allowed.provision {
            return;
        }
        self.look_at_owned(&group, snapshot);
        let is_other = |id: &&OwnedId| !REQUESTS.contains(&id.kind);
        let others = self.memory.owned.all().filter(is_other);
        let others = others.map(|id| (id.kind, id.name.clone())).collect();
        self.remove_left_over(&group, &others, snapshot);
    }

    fn write_owned(&mut self, group: &Arc<Group>, id: OwnedId, write: OwnedWrite) -> bool {
        self.begin(Action::WriteOwned { group: group.clone(), id, write })
    }

    fn remove_owned(&mut self, group: &Arc<Group>, id: &OwnedId) {
        if self.write_owned(group, id.clone(), OwnedWrite::Remove) {
            self.memory.owned.goes(id);
        }
    }

    /// Reports whether requests for nodes of the group may exist.
    fn requests_nodes(&self, group: &Group) -> bool {
        self.options.allowed.provision && (!group.status.provisioning.is_empty() || group.requests_nodes())
    }

    /// Lists the owned objects once for each owner: a new process does not know which ones exist. It lists the kinds that the
    /// group asks for, and those that pods name: the policy may have been removed since.
    fn look_at_owned(&mut self, group: &Arc<Group>, snapshot: &Snapshot) {
        let owner = Some(&group.carrier.uid);
        if self.memory.owned.listed.as_ref() == owner {
            return;
        }
        let wanted = group.batched().filter_map(|(_, batching)| batching.gangs.as_ref()?.policy.kind());
        let mut kinds: BTreeSet<_> = wanted.collect();
        if self.memory.owned.without.as_ref() != owner {
            kinds.extend(snapshot.pods.iter().flat_map(|pod| &pod.pod_groups).map(|(key, _)| key.kind()));
        }
        if self.requests_nodes(group) {
            kinds.extend(REQUESTS);
        }
        if kinds.is_empty() {
            self.memory.owned.without = owner.cloned();
        } else {
            self.begin(Action::Read(Question::Owned { group: group.clone(), kinds }));
        }
    }

    /// Deletes left-over objects. A PodGroup that a pod still names stays: its scheduler would not schedule the pod without
    /// it. It waits for the pods that name it only, since those that are lost come back without it.
    fn remove_left_over(&mut self, group: &Arc<Group>, lasting: &BTreeSet<(ObjectKind, String)>, snapshot: &Snapshot) {
        let is_left = |id: &&OwnedId| id.owner == group.carrier.uid && !lasting.contains(&(id.kind, id.name.clone()));
        let left: BTreeSet<_> = self.memory.owned.all().filter(is_left).cloned().collect();
        // The autoscaler reads a template as long as an object refers to it.
        let refers = left.iter().any(|id| REQUESTS.contains(&id.kind) && id.kind != POD_TEMPLATE);
        let left: Vec<_> = left.into_iter().filter(|id| !refers || id.kind != POD_TEMPLATE).collect();
        if left.is_empty() {
            return;
        }
        let mut named: HashMap<(ObjectKind, &str), u32> = HashMap::new();
        for (key, name) in snapshot.pods.iter().flat_map(|pod| &pod.pod_groups) {
            *named.entry((key.kind(), name)).or_default() += 1;
        }
        for id in left {
            let pods = named.get(&(id.kind, &*id.name)).copied();
            match (pods, self.memory.owned.members(&id)) {
                (None, _) => self.remove_owned(group, &id),
                (Some(pods), Some(members)) if pods < members => {
                    _ = self.write_owned(group, id, OwnedWrite::Relax(pods));
                }
                (Some(_), _) => {}
            }
        }
    }

    /// Reports whether the PodGroup was created for the object that carries the group now.
    pub(in crate::plan) fn has_pod_group(&self, group: &Group, of: &PodGroupOf<'_>) -> bool {
        let is_made = |kind| self.memory.owned.members(&id(group, kind, of.name.clone())).is_some();
        of.policy.kind().is_some_and(is_made)
    }
}

fn id(group: &Group, kind: ObjectKind, name: String) -> OwnedId {
    OwnedId { owner: group.carrier.uid.clone(), kind, name }
}

#[cfg(test)]
#[path = "owned_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "requests_tests.rs"]
mod requests_tests;
