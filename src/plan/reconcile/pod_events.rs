//! Which held pods are told why they are held: the first of each batch, once that has lasted a moment. So `kubectl describe
//! pod` answers whoever knows nothing of groups, and also while there is no group to look at.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use crate::model::{Coordination, Group};
use crate::plan::decide::held::Held;
use crate::plan::gangs::TreeHeld;
use crate::plan::reconcile::events::{EventNote, What};
use crate::plan::reconcile::lasting::LASTS;
use crate::plan::reconcile::uptime::Uptime;
use crate::plan::view::{GroupView, HeldPod, PodRef};

/// What was told to pods, so that it is not told again.
#[derive(Debug, Default)]
pub(in crate::plan) struct ReportedPods(BTreeMap<What, Told>);

/// What was told of one hold.
#[derive(Debug)]
struct Told {
    /// When a pod was first seen that it holds, or the one that was told was gone.
    since: Uptime,
    /// The pod that was told.
    pod: Option<FirstPod>,
}

/// The first pod of a batch: by ordinal, role and name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct FirstPod {
    ordinal: u32,
    role: String,
    pod: PodRef,
}

/// A hold, and the first pod that it holds.
#[derive(Debug)]
pub(in crate::plan) struct PodHold {
    what: What,
    first: FirstPod,
    message: String,
}

impl PodHold {
    /// One of a group; `None` when no pod of the batch is there.
    pub(in crate::plan) fn of(group: &Group, view: &GroupView, held: &Held) -> Option<Self> {
        let coordination = held.coordination.as_ref().and_then(|own| group.coordination(own.index));
        let batch = coordination.and_then(Coordination::batching).zip(held.batch);
        let ordinals = |role: &str| match (batch, view.roles.get(role)) {
            (Some((batching, batch)), Some(seen)) => batching.ordinals(role, batch, seen.desired),
            _ => 0..u32::MAX,
        };
        Self::first_of(held, view, ordinals)
    }

    /// One of a group that is not there.
    pub(in crate::plan) fn of_missing(held: &Held) -> Option<Self> {
        Self::first_of(held, &GroupView::default(), |_| 0..u32::MAX)
    }

    fn first_of(held: &Held, view: &GroupView, ordinals: impl Fn(&str) -> Range<u32>) -> Option<Self> {
        let first = held.pods.first(view, ordinals)?;
        let what = (held.coordination_name().map(str::to_owned), held.reason, held.batch);
        Some(Self { what, first: FirstPod::from(&first), message: held.message.clone() })
    }

    /// One of a PodGroup.
    pub(in crate::plan) fn of_tree(held: &TreeHeld) -> Option<Self> {
        let pod = held.pods.iter().min()?.clone();
        let first = FirstPod { ordinal: 0, role: String::new(), pod };
        Some(Self { what: (None, held.reason, None), first, message: held.message.clone() })
    }
}

impl From<&HeldPod> for FirstPod {
    fn from(held: &HeldPod) -> Self {
        Self { ordinal: held.ordinal, role: held.role().to_owned(), pod: held.pod.clone() }
    }
}

impl FirstPod {
    fn place(&self) -> (u32, &str, &Arc<str>) {
        (self.ordinal, &self.role, &self.pod.name)
    }

    /// True when it is the successor of a pod that was told, which is gone or released. One before it came later: a pod of
    /// the batch was told already.
    fn follows(&self, told: &Self) -> bool {
        self.place() > told.place() || self.place() == told.place() && self.pod.uid != told.pod.uid
    }
}

impl ReportedPods {
    /// What is to be told, each to one pod, and when to look again.
    pub(in crate::plan) fn events(
        &mut self,
        holds: impl Iterator<Item = PodHold>,
        now: Uptime,
    ) -> (Vec<(PodRef, EventNote)>, Option<Uptime>) {
        let (mut events, mut again) = (Vec::new(), None::<Uptime>);
        let mut before = std::mem::take(&mut self.0);
        for PodHold { what, first, message } in holds {
            let mut told = before.remove(&what).unwrap_or(Told { since: now, pod: None });
            if told.pod.as_ref().is_some_and(|known| first.follows(known)) {
                // Where many go one after the other, not each of them is told for the moment that it is the first.
                told = Told { since: now, pod: None };
            }
            if told.pod.is_none() {
                let at = told.since + LASTS;
                if at <= now {
                    events.push((first.pod.clone(), EventNote::of_pod(&what, message)));
                    told.pod = Some(first);
                } else {
                    again = Some(again.map_or(at, |again| again.min(at)));
                }
            }
            self.0.insert(what, told);
        }
        (events, again)
    }
}

#[cfg(test)]
#[path = "pod_events_tests.rs"]
mod tests;
