//! What a group is read and judged with: the other objects that the index knows.

use std::sync::Arc;

use super::named::Named;
use super::workloads::Workloads;
use crate::api::status::{Condition, GroupStatus};
use crate::model::{Group, GroupKey, Layers, Sources, Standing, Workload, WorkloadKey};
use crate::rules::{Need, RuleSettings, World, needs_of_group};

/// What a group is read and judged with.
pub(super) struct Context<'a> {
    /// The RoleBasedGroup of its name.
    pub(super) rbg: Option<Arc<Group>>,
    pub(super) workloads: &'a Workloads,
    pub(super) topologies: &'a Named<Layers>,
    /// Workloads of elastic groups are scaled.
    pub(super) may_scale: Option<bool>,
    /// How much single rules weigh.
    pub(super) rules: RuleSettings,
}

impl Context<'_> {
    /// The world as the rules of this group see it. What the index does not have may be on its way: it is unknown, never
    /// absent, and nothing is held against a group from ignorance.
    pub(super) fn world_of(&self, group: &Group) -> World {
        let mut world = World::default();
        world.options.rules = self.rules;
        for need in needs_of_group(group) {
            match need {
                Need::RoleBasedGroup(_) => self.rbg.iter().for_each(|rbg| world.add_group(rbg.clone())),
                Need::Workload(key) => {
                    self.workloads.get(&key).into_iter().for_each(|workload| world.add_workload(workload.clone()));
                }
                Need::ClusterTopology(name) => {
                    self.topologies.get("", &name).into_iter().for_each(|topology| world.add_topology(topology));
                }
                // Not watched, or, as the rights of an author, of the time when the group was admitted.
                Need::Groups { .. }
                | Need::TopologyReferrers(_)
                | Need::Pods { .. }
                | Need::DisruptionBudgets { .. }
                | Need::CoordinatedPolicy(_)
                | Need::PodGroup(_)
                | Need::KaiTopology(_)
                | Need::Service(_)
                | Need::Served(_)
                | Need::MayCreatePodGroups { .. }
                | Need::MayScale(_)
                | Need::Autoscalers { .. }
                | Need::MayDeletePods { .. } => {}
            }
        }
        world
    }
}

impl Sources for Context<'_> {
    fn role_based_group(&self, key: &GroupKey) -> Option<&Group> {
        self.rbg.as_deref().filter(|group| group.key == *key)
    }

    fn workload(&self, key: &WorkloadKey) -> Option<&Workload> {
        self.workloads.get(key).map(Arc::as_ref)
    }

    /// Who is not told believes the status.
    fn may_scale(&self, status: &GroupStatus) -> bool {
        let not_allowed = |condition: &Condition| Some(&*condition.reason) == Standing::NotAllowed.reason();
        self.may_scale.unwrap_or_else(|| !status.conditions.iter().any(not_allowed))
    }
}
