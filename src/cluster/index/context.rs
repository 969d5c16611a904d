//! The other objects of the index that a group is read and judged with.

use std::sync::Arc;

use super::store::Named;
use super::workloads::Workloads;
use crate::api::status::{Condition, GroupStatus};
use crate::model::{Group, GroupKey, Layers, Sources, Standing, Workload, WorkloadKey};
use crate::rules::{Need, Options, World, needs_of_group};

pub(super) struct Context<'a> {
    /// The RoleBasedGroup of the same name.
    pub(super) rbg: Option<Arc<Group>>,
    pub(super) workloads: &'a Workloads,
    pub(super) topologies: &'a Named<Layers>,
    /// Whether workloads of elastic groups may be scaled; `None` before it is set.
    pub(super) may_scale: Option<bool>,
    pub(super) options: Options,
    /// A workload as it is about to be.
    pub(super) coming: Option<&'a Arc<Workload>>,
}

impl Context<'_> {
    /// Returns the world as the rules of this group see it. An object that the index lacks may be on its way: it counts as
    /// unknown, never as absent, so that ignorance causes no fault.
    pub(super) fn world_of(&self, group: &Group) -> World {
        let mut world = World::default();
        world.options = self.options;
        for need in needs_of_group(group) {
            match need {
                Need::RoleBasedGroup(_) => self.rbg.iter().for_each(|rbg| world.add_group(rbg.clone())),
                Need::Workload(key) => {
                    self.arc(&key).into_iter().for_each(|workload| world.add_workload(workload.clone()));
                }
                Need::ClusterTopology(name) => {
                    self.topologies.get("", &name).into_iter().for_each(|topology| world.add_topology(topology));
                }
                // Not watched, or, like the rights of an author, checked when the group was admitted.
                _ => {}
            }
        }
        world
    }

    fn arc(&self, key: &WorkloadKey) -> Option<&Arc<Workload>> {
        self.coming.filter(|coming| coming.key == *key).or_else(|| self.workloads.get(key))
    }
}

impl Sources for Context<'_> {
    fn role_based_group(&self, key: &GroupKey) -> Option<&Group> {
        self.rbg.as_deref().filter(|group| group.key == *key)
    }

    fn workload(&self, key: &WorkloadKey) -> Option<&Workload> {
        self.arc(key).map(Arc::as_ref)
    }

    /// Falls back to the status where the index was not told.
    fn may_scale(&self, status: &GroupStatus) -> bool {
        let not_allowed = |condition: &Condition| Some(&*condition.reason) == Standing::NotAllowed.reason();
        self.may_scale.unwrap_or_else(|| !status.conditions.iter().any(not_allowed))
    }
}
