//! Memory of a KAI PodGroup that places its pods, between passes.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use crate::model::HoldReason;
use crate::plan::gangs::{TreePlan, TreeSnapshot};
use crate::plan::reconcile::action::Ended;
use crate::plan::reconcile::lasting::Lasting;
use crate::plan::reconcile::pauses::pause;
use crate::plan::reconcile::pod_events::ReportedPods;
use crate::plan::reconcile::uptime::Uptime;

#[derive(Debug, Default)]
pub(in crate::plan) struct TreeMemory {
    pub(in crate::plan) last_pass: Option<Uptime>,
    /// The number of held pods by reason.
    pub(in crate::plan) held: Vec<(HoldReason, u32)>,
    /// Whether pods are to be placed, or are placed and not bound.
    pub(in crate::plan) needs_room: bool,
    pub(in crate::plan) plan: Option<(TreePlan, Stage)>,
    /// The uids of pods whose release is in flight.
    pub(in crate::plan) in_flight: HashSet<Arc<str>>,
    /// Failed releases: how often, and when to try again.
    pub(in crate::plan) failures: HashMap<Arc<str>, (u32, Uptime)>,
    pub(in crate::plan) commit_failures: u32,
    /// Since when released pods have no node.
    pub(in crate::plan) unbound: BTreeMap<Arc<str>, Uptime>,
    pub(in crate::plan) missing_since: Option<Uptime>,
    /// Whether the PodGroup existed at some time.
    pub(in crate::plan) was_there: bool,
    pub(in crate::plan) look: Look,
    pub(in crate::plan) told: BTreeMap<HoldReason, String>,
    pub(in crate::plan) waiting: Lasting<HoldReason>,
    pub(in crate::plan) told_pods: ReportedPods,
}

/// Whether the API server was asked if the PodGroup is gone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::plan) enum Look {
    /// It was not asked, or the PodGroup exists.
    #[default]
    Rest,
    /// The question is under way.
    Asking,
    /// The PodGroup is gone; this counts for one pass.
    Gone,
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
        self.in_flight.is_empty() && self.look != Look::Asking && !matches!(self.plan, Some((_, Stage::Committing(_))))
    }

    /// Returns the number of remembered objects.
    pub(in crate::plan) fn len(&self) -> usize {
        self.in_flight.len() + self.failures.len() + self.unbound.len()
    }

    /// Removes what is remembered of pods that are gone.
    pub(in crate::plan) fn forget_gone(&mut self, snapshot: &TreeSnapshot) {
        let uids: HashSet<_> = snapshot.pods.iter().map(|pod| &pod.pod.uid).collect();
        self.failures.retain(|uid, _| uids.contains(uid));
        self.unbound.retain(|uid, _| uids.contains(uid));
        if snapshot.tree.is_some() {
            (self.was_there, self.missing_since) = (true, None);
        }
    }

    /// Clears the last decision, since another replica decides.
    pub(in crate::plan) fn decided_nothing(&mut self) {
        self.held.clear();
        self.told.clear();
        self.unbound.clear();
        (self.plan, self.needs_room) = (None, false);
        if self.look == Look::Gone {
            self.look = Look::Rest;
        }
    }

    /// Notes a result; returns when to look again.
    pub(in crate::plan) fn ended(&mut self, ended: &Ended, now: Uptime) -> Uptime {
        match ended {
            Ended::Tried { object, failure } => {
                self.in_flight.remove(&object.uid);
                if failure.is_none() {
                    self.failures.remove(&object.uid);
                    return now;
                }
                let failures = self.failures.get(&object.uid).map_or(0, |(failures, _)| *failures) + 1;
                let at = now + pause(failures);
                self.failures.insert(object.uid.clone(), (failures, at));
                at
            }
            Ended::PlacementCommitted { failed } => {
                self.commit_failures = if *failed { self.commit_failures + 1 } else { 0 };
                match self.plan.as_mut() {
                    // It is planned again, since the watch may show the change by then.
                    Some((_, stage)) if *failed => *stage = Stage::Due(now + pause(self.commit_failures)),
                    Some((_, stage)) => {
                        if let Stage::Committing(over) = stage {
                            *stage = Stage::Committed(std::mem::take(over));
                        }
                    }
                    None => {}
                }
                if *failed { now + pause(self.commit_failures) } else { now }
            }
            Ended::Verified { gone } => {
                self.look = if *gone { Look::Gone } else { Look::Rest };
                if !gone {
                    self.missing_since = Some(now);
                }
                now
            }
            _ => now,
        }
    }
}
