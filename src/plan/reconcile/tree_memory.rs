//! What is remembered of a KAI PodGroup that places its pods, from one pass to the next.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use crate::model::HoldReason;
use crate::plan::gangs::{TreePlan, TreeSnapshot};
use crate::plan::reconcile::action::Ended;
use crate::plan::reconcile::lasting::Lasting;
use crate::plan::reconcile::pauses::pause;
use crate::plan::reconcile::pod_events::ReportedPods;
use crate::plan::reconcile::uptime::Uptime;

/// What is remembered of a PodGroup between passes.
#[derive(Debug, Default)]
pub(in crate::plan) struct TreeMemory {
    pub(in crate::plan) last_pass: Option<Uptime>,
    /// What is held and why.
    pub(in crate::plan) held: Vec<(HoldReason, u32)>,
    /// Pods are to be placed, or were and are not bound.
    pub(in crate::plan) needs_room: bool,
    pub(in crate::plan) plan: Option<(TreePlan, Stage)>,
    /// Pods whose release is on its way.
    pub(in crate::plan) in_flight: HashSet<Arc<str>>,
    /// Releases that failed: how often, and when they are tried again.
    pub(in crate::plan) failures: HashMap<Arc<str>, (u32, Uptime)>,
    pub(in crate::plan) commit_failures: u32,
    /// Since when pods that went have no node.
    pub(in crate::plan) unbound: BTreeMap<Arc<str>, Uptime>,
    pub(in crate::plan) missing_since: Option<Uptime>,
    /// The PodGroup was there at some time.
    pub(in crate::plan) was_there: bool,
    pub(in crate::plan) look: Look,
    pub(in crate::plan) told: BTreeMap<HoldReason, String>,
    pub(in crate::plan) waiting: Lasting<HoldReason>,
    pub(in crate::plan) told_pods: ReportedPods,
}

/// Whether the API server was asked if the PodGroup is gone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::plan) enum Look {
    /// It was not, or is there.
    #[default]
    Rest,
    /// It is being asked.
    Asking,
    /// It is gone, which speaks for one pass.
    Gone,
}

/// How far a plan is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::plan) enum Stage {
    /// It is to be committed, not before this time.
    Due(Uptime),
    /// It is being committed, over this version of the PodGroup.
    Committing(String),
    /// Its pods may go; it was committed over this version.
    Committed(String),
}

impl TreeMemory {
    /// True when nothing that was begun has yet to end.
    pub(in crate::plan) fn is_idle(&self) -> bool {
        self.in_flight.is_empty() && self.look != Look::Asking && !matches!(self.plan, Some((_, Stage::Committing(_))))
    }

    /// How many objects something is remembered of.
    pub(in crate::plan) fn len(&self) -> usize {
        self.in_flight.len() + self.failures.len() + self.unbound.len()
    }

    /// Forgets what was of pods that are gone.
    pub(in crate::plan) fn forget_gone(&mut self, snapshot: &TreeSnapshot) {
        let uids: HashSet<_> = snapshot.pods.iter().map(|pod| &pod.pod.uid).collect();
        self.failures.retain(|uid, _| uids.contains(uid));
        self.unbound.retain(|uid, _| uids.contains(uid));
        if snapshot.tree.is_some() {
            (self.was_there, self.missing_since) = (true, None);
        }
    }

    /// Notes that somebody else decides.
    pub(in crate::plan) fn decided_nothing(&mut self) {
        self.held.clear();
        self.told.clear();
        self.unbound.clear();
        (self.plan, self.needs_room) = (None, false);
        if self.look == Look::Gone {
            self.look = Look::Rest;
        }
    }

    /// Takes in the end of something that was begun; when to look again.
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
                    // The watch may have what has changed, so it is planned again.
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
