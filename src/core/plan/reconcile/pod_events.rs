//! Events on held pods: the first pod of each batch, once the hold has lasted. So `kubectl describe pod` answers a user who
//! does not know of groups, even while no group exists.

use std::ops::Range;
use std::sync::Arc;

use crate::model::{Coordination, Group};
use crate::plan::decide::held::Held;
use crate::plan::gangs::TreeHeld;
use crate::plan::reconcile::events::{EventNote, What};
use crate::plan::reconcile::lasting::{LASTS, Timed};
use crate::plan::reconcile::uptime::Uptime;
use crate::plan::view::{GroupView, HeldPod, PodRef};

/// The holds, so that no Event is repeated: since when each has a pod without an Event before it, and the pod with the Event.
pub(in crate::plan) type ReportedPods = Timed<What, Option<FirstPod>>;

/// The first pod of a batch: by ordinal, role and name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::plan) struct FirstPod {
    ordinal: u32,
    role: String,
    pod: PodRef,
}

/// A hold, and its first pod.
#[derive(Debug)]
pub(in crate::plan) struct PodHold {
    what: What,
    first: FirstPod,
    message: String,
}

impl PodHold {
    /// Returns a hold of a group; `None` if no pod of the batch exists.
    pub(in crate::plan) fn of(group: &Group, view: &GroupView, held: &Held) -> Option<Self> {
        let coordination = held.coordination.as_ref().and_then(|own| group.coordination(own.index));
        let batch = coordination.and_then(Coordination::batching).zip(held.batch);
        let ordinals = |role: &str| match (batch, view.roles.get(role)) {
            (Some((batching, batch)), Some(seen)) => batching.ordinals(role, batch, seen.desired),
            _ => 0..u32::MAX,
        };
        Self::first_of(held, view, ordinals)
    }

    /// Returns a hold of a missing group.
    pub(in crate::plan) fn of_missing(held: &Held) -> Option<Self> {
        Self::first_of(held, &GroupView::default(), |_| 0..u32::MAX)
    }

    fn first_of(held: &Held, view: &GroupView, ordinals: impl Fn(&str) -> Range<u32>) -> Option<Self> {
        let first = held.pods.first(view, ordinals)?;
        let what = (held.coordination_name().map(str::to_owned), held.reason, held.batch);
        Some(Self { what, first: FirstPod::from(&first), message: held.message.clone() })
    }

    /// Returns a hold of a PodGroup.
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

    /// Reports whether the pod succeeds the pod with the Event, which is gone or released. An earlier pod is a late one: its
    /// batch has an Event already.
    fn follows(&self, told: &Self) -> bool {
        self.place() > told.place() || self.place() == told.place() && self.pod.uid != told.pod.uid
    }
}

impl ReportedPods {
    /// Returns new Events, each with its pod, and when to look again.
    pub(in crate::plan) fn events(
        &mut self,
        holds: impl Iterator<Item = PodHold>,
        now: Uptime,
    ) -> (Vec<(PodRef, EventNote)>, Option<Uptime>) {
        let holds: Vec<_> = holds.collect();
        self.note(holds.iter().map(|hold| hold.what.clone()), LASTS, now);
        let mut events = Vec::new();
        for PodHold { what, first, message } in holds {
            let Some((since, told)) = self.0.get_mut(&what) else { continue };
            if told.as_ref().is_some_and(|known| first.follows(known)) {
                // If pods are released one after the other, not each of them gets an Event while it is the first.
                (*since, *told) = (now, None);
            }
            if told.is_none() && *since + LASTS <= now {
                events.push((first.pod.clone(), EventNote::of_pod(&what, message)));
                *told = Some(first);
            }
        }
        let untold = self.0.values().filter(|(_, told)| told.is_none());
        (events, untold.map(|(since, _)| *since + LASTS).min())
    }
}

#[cfg(test)]
#[path = "pod_events_tests.rs"]
mod tests;
