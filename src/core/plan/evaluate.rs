//! Evaluation of one group: observation, decision and status. The loop and all commands share it and cannot disagree.

use crate::api::status::GroupStatus;
use crate::model::moment::Moment;
use crate::model::{Group, GroupKey, RolledWorkload};
use crate::plan::decide::batches::{Batch, batches};
use crate::plan::decide::decision::Decision;
use crate::plan::decide::held::Held;
use crate::plan::decide::{DecisionContext, decide};
use crate::plan::placement::Placer;
use crate::plan::rollout::{Edit, Rollouts};
use crate::plan::status::{needs_commit, status};
use crate::plan::view::{GroupView, PodRef, Snapshot};

/// The observed state of a group.
#[derive(Clone, Debug, Default)]
pub struct Observation {
    pub view: GroupView,
    /// The open rollouts of the group.
    pub rollouts: Rollouts,
}

impl Observation {
    /// Counts the pods of a group. Without `now`, a ready pod counts as available at once. `given` returns the ordinal of a pod
    /// whose release is under way; `edit` returns what is remembered of the last edit of a workload.
    pub fn of(
        group: &Group,
        snapshot: &Snapshot,
        now: Option<Moment>,
        given: impl Fn(&PodRef) -> Option<u32>,
        edit: impl Fn(&RolledWorkload) -> Edit,
    ) -> Self {
        let mut view = GroupView::build_while(group, (&snapshot.pods, &snapshot.domain_keys), given);
        now.into_iter().for_each(|now| view.wait_until_available(group, now));
        view.leaving.clone_from(&snapshot.leaving);
        let mut rollouts = Rollouts::observe(group, &view, &snapshot.pods, (&snapshot.workloads, now), edit);
        rollouts.pauses.objects.clone_from(&snapshot.objects);
        rollouts.updates.clone_from(&snapshot.updates);
        Self { view, rollouts }
    }
}

/// The observed state of a group, and the decision that follows from it.
#[derive(Clone, Debug, Default)]
pub struct Evaluation {
    pub view: GroupView,
    /// The open rollouts of the group.
    pub rollouts: Rollouts,
    pub decision: Decision,
    /// The status of the carrier, without timestamps.
    pub status: GroupStatus,
}

impl Evaluation {
    /// Returns the evaluation of a group that does not exist: its pods are held for that reason, and nothing else is decided.
    pub fn of_missing(key: &GroupKey, snapshot: &Snapshot) -> Self {
        let held = vec![Held::of_missing_group(key, &snapshot.pods)];
        Self { decision: Decision { held, ..Decision::default() }, ..Self::default() }
    }

    /// Returns the batches of all coordinations, in order.
    pub fn batches(&self, group: &Group) -> Vec<Batch> {
        batches(group, &self.view, &self.decision)
    }

    /// Reports whether the status must be committed before anything is released or rolled.
    pub fn needs_commit(&self, group: &Group) -> bool {
        needs_commit(&self.status, &group.status)
    }
}

/// Decides for a group and computes its new status. Without a placer, no batch is given a domain.
pub fn evaluate(
    group: &Group,
    observation: Observation,
    context: DecisionContext<'_>,
    placer: Option<&mut Placer<'_>>,
) -> Evaluation {
    let Observation { view, mut rollouts } = observation;
    let decision = decide(group, &view, &mut rollouts, context, placer);
    let status = status(group, &view, &rollouts, &decision, context);
    Evaluation { view, rollouts, decision, status }
}
