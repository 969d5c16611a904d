//! A group, evaluated: what is observed of it, what is decided, what its status says. The loop and every command evaluate
//! through this, so that they cannot disagree.

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

/// What is observed of a group.
#[derive(Clone, Debug, Default)]
pub struct Observation {
    /// Its pods, counted.
    pub view: GroupView,
    /// Its open rollouts.
    pub rollouts: Rollouts,
}

impl Observation {
    /// Counts the pods of a group; without the time those that are ready count as soon as they are. The pods whose release is under way keep the ordinals that they were `given`; `edit`
    /// says what is remembered of the last edit of a workload.
    pub fn of(
        group: &Group,
        snapshot: &Snapshot,
        now: Option<Moment>,
        given: impl Fn(&PodRef) -> Option<u32>,
        edit: impl Fn(&RolledWorkload) -> Edit,
    ) -> Self {
        let mut view = GroupView::build_while(group, &snapshot.pods, given);
        now.into_iter().for_each(|now| view.wait_until_available(group, now));
        view.leaving.clone_from(&snapshot.leaving);
        let rollouts = Rollouts::observe(group, &view, &snapshot.pods, &snapshot.workloads, edit);
        Self { view, rollouts }
    }
}

/// What is observed of a group, and what follows from it.
#[derive(Clone, Debug, Default)]
pub struct Evaluation {
    /// Its pods, counted.
    pub view: GroupView,
    /// Its open rollouts.
    pub rollouts: Rollouts,
    /// What is decided.
    pub decision: Decision,
    /// The status of the carrier, without times.
    pub status: GroupStatus,
}

impl Evaluation {
    /// That of a group that is not there: nothing is decided, and its pods are held for that reason.
    pub fn of_missing(key: &GroupKey, snapshot: &Snapshot) -> Self {
        let held = vec![Held::of_missing_group(key, &snapshot.pods)];
        Self { decision: Decision { held, ..Decision::default() }, ..Self::default() }
    }

    /// The batches of all coordinations, in order.
    pub fn batches(&self, group: &Group) -> Vec<Batch> {
        batches(group, &self.view, &self.decision)
    }

    /// True when something is to be committed before anything is released or rolled.
    pub fn needs_commit(&self, group: &Group) -> bool {
        needs_commit(&self.status, &group.status)
    }
}

/// Decides for a group, and says what its status is to be. Without a placer no batch is given a domain.
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
