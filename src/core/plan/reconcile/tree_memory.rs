//! Memory of a KAI PodGroup that places its pods, between passes.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use crate::model::HoldReason;
use crate::plan::gangs::{TreePlan, TreeSnapshot};
use crate::plan::reconcile::action::{Answer, Ended, Target};
use crate::plan::reconcile::decided::Decided;
use crate::plan::reconcile::lasting::Ledger;
use crate::plan::reconcile::pauses::pause;
use crate::plan::reconcile::pod_events::ReportedPods;
use crate::plan::reconcile::presence::Presence;
use crate::plan::reconcile::tries::{Tries, Try};
use crate::plan::reconcile::uptime::Uptime;

#[derive(Debug, Default)]
pub(in crate::plan) struct TreeMemory {
    pub(in crate::plan) last_pass: Option<Uptime>,
    pub(in crate::plan) decided: Decided,
    pub(in crate::plan) plan: Option<(TreePlan, Stage)>,
    pub(in crate::plan) tries: Tries,
    pub(in crate::plan) commit_failures: u32,
    /// Since when released pods have no node.
    pub(in crate::plan) unbound: BTreeMap<Arc<str>, Uptime>,
    pub(in crate::plan) presence: Presence,
    /// Whether the PodGroup existed at some time.
    pub(in crate::plan) was_there: bool,
    /// Messages by reason, each with the number of pods.
    pub(in crate::plan) told: Ledger<HoldReason, (String, u32)>,
    pub(in crate::plan) told_pods: ReportedPods,
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
    /// Reports whether no write or question is under way.
    pub(in crate::plan) fn is_idle(&self) -> bool {
        self.tries.is_idle() && !matches!(self.plan, Some((_, Stage::Committing(_))))
    }

    /// Returns the number of remembered objects.
    pub(in crate::plan) fn len(&self) -> usize {
        self.tries.len() + self.unbound.len()
    }

    /// Removes what is remembered of pods that are gone.
    pub(in crate::plan) fn forget_gone(&mut self, snapshot: &TreeSnapshot) {
        let uids: HashSet<_> = snapshot.pods.iter().map(|pod| &*pod.pod.uid).collect();
        self.tries.keep_only(|one| matches!(one, Try::Object(uid) if uids.contains(&**uid)));
        self.unbound.retain(|uid, _| uids.contains(&**uid));
        if snapshot.tree.is_some() {
            (self.was_there, self.presence.missing_since) = (true, None);
        }
    }

    /// Clears the last decision, since another replica decides.
    pub(in crate::plan) fn decided_nothing(&mut self) {
        self.decided = Decided::default();
        self.told.clear();
        self.unbound.clear();
        self.plan = None;
        self.presence.take_gone();
    }

    /// Notes a result; returns when to look again.
    pub(in crate::plan) fn ended(&mut self, ended: &Ended, now: Uptime) -> Uptime {
        let at = ended.key().map_or(now, |key| self.tries.end(key, ended.failure(), now));
        match ended {
            Ended::Written { target: Target::Status, failure } => {
                let failed = failure.is_some();
                self.commit_failures = if failed { self.commit_failures + 1 } else { 0 };
                match self.plan.as_mut() {
                    // It is planned again, since the watch may show the change by then.
                    Some((_, stage)) if failed => *stage = Stage::Due(now + pause(self.commit_failures)),
                    Some((_, stage)) => {
                        if let Stage::Committing(over) = stage {
                            *stage = Stage::Committed(std::mem::take(over));
                        }
                    }
                    None => {}
                }
                if failed { now + pause(self.commit_failures) } else { now }
            }
            Ended::Read(Answer::Gone(gone)) => {
                self.presence.answered(*gone, now);
                now
            }
            _ => at,
        }
    }
}
