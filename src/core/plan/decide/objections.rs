//! Reasons to hold a pod whose turn has come.

use crate::model::Group;
use crate::plan::decide::DecisionContext;
use crate::plan::decide::all_or_nothing::Incomplete;
use crate::plan::decide::gated::Gated;
use crate::plan::decide::growing::Growing;
use crate::plan::decide::mis_stamped::{self, MisStamped};
use crate::plan::decide::recovering::Recovering;
use crate::plan::recovery::RecoveryPlan;
use crate::plan::rollout::Rollouts;
use crate::plan::view::{GroupView, HeldPod};

/// What the objections know, and the pods that each of them holds.
pub(super) struct Objections<'a> {
    pub(super) mis_stamped: MisStamped,
    pub(super) recovering: Recovering<'a>,
    pub(super) growing: Growing<'a>,
    pub(super) incomplete: Incomplete<'a>,
    pub(super) gated: Gated<'a>,
}

/// Reports whether the pod stays.
type Objection = for<'a> fn(&mut Objections<'a>, &HeldPod) -> bool;

/// The objections in order: the first that applies to a pod is the reason why it stays.
const OBJECTIONS: &[Objection] = &[
    |objections, pod| objections.mis_stamped.has(pod),
    |objections, pod| objections.recovering.holds(pod),
    |objections, pod| objections.growing.holds(pod),
    |objections, pod| objections.incomplete.holds(pod),
    |objections, pod| objections.gated.holds(pod),
];

impl<'a> Objections<'a> {
    pub(super) fn of(
        group: &'a Group,
        view: &'a GroupView,
        rollouts: &Rollouts,
        recovery: RecoveryPlan,
        context: DecisionContext<'a>,
    ) -> Self {
        Self {
            mis_stamped: mis_stamped::find(group, view, context),
            recovering: Recovering::of(group, recovery),
            growing: Growing::of(group, view, rollouts, context.growing.map(Vec::as_slice).unwrap_or_default()),
            incomplete: Incomplete::new(group, view, context.overdue),
            gated: Gated::of(group, view, context),
        }
    }

    /// Reports whether an objection applies to the pod, and notes the pod under it.
    pub(super) fn hold(&mut self, pod: &HeldPod) -> bool {
        OBJECTIONS.iter().any(|objection| objection(self, pod))
    }
}
