//! Memory of a KAI PodGroup that places its pods, between passes, beyond that of a group.

use std::sync::Arc;

use crate::model::HoldReason;
use crate::plan::gangs::TreePlan;
use crate::plan::reconcile::lasting::{Ledger, Timed};
use crate::plan::reconcile::uptime::Uptime;

#[derive(Debug, Default)]
pub(in crate::plan) struct TreeMemory {
    pub(in crate::plan) plan: Option<(TreePlan, Stage)>,
    /// Since when released pods have no node.
    pub(in crate::plan) unbound: Timed<Arc<str>>,
    /// Messages by reason, each with the number of pods.
    pub(in crate::plan) told: Ledger<HoldReason, (String, u32)>,
}

/// The stage of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::plan) enum Stage {
    /// To be committed, not before this time.
    Due(Uptime),
    /// Being committed, over this version of the PodGroup.
    Committing(String),
    /// Committed over this version: its pods may be released.
    Committed(String),
}

impl TreeMemory {
    pub(in crate::plan) fn commits(&self) -> bool {
        matches!(self.plan, Some((_, Stage::Committing(_))))
    }

    /// Notes the end of a commit; `again` is the time of the next try if it failed.
    pub(in crate::plan) fn committed(&mut self, again: Option<Uptime>) {
        match (&mut self.plan, again) {
            // It is planned again, since the watch may show the change by then.
            (Some((_, stage)), Some(at)) => *stage = Stage::Due(at),
            (Some((_, stage)), None) => {
                if let Stage::Committing(over) = stage {
                    *stage = Stage::Committed(std::mem::take(over));
                }
            }
            (None, _) => {}
        }
    }
}
