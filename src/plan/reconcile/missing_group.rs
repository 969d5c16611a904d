//! The pass over a group that is not there: what it held is let go, when that is certain, and that is said.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::api::ObjectKind;
use crate::model::RolledWorkload;
use crate::model::wording::counted;
use crate::plan::decide::placed::Pin;
use crate::plan::evaluate::Evaluation;
use crate::plan::marks::Mark;
use crate::plan::reconcile::action::Action;
use crate::plan::reconcile::decided::Decided;
use crate::plan::reconcile::events::EventNote;
use crate::plan::reconcile::options::MissingGroup;
use crate::plan::reconcile::pass::Pass;
use crate::plan::reconcile::pod_events::PodHold;
use crate::plan::view::{PodFacts, Snapshot};

/// Reason of the Event that pods go whose group is not there.
pub const UNCOORDINATED: &str = "ReleasedWithoutGroup";

impl Pass<'_> {
    /// The group is not there: its pods wait, and are released when a live read says so, not before.
    pub(in crate::plan) fn missing(&mut self, snapshot: &Snapshot, verified_gone: bool) {
        let held = Evaluation::of_missing(self.key, snapshot).decision.held;
        let waiting = held.iter().filter(|held| !held.pods.is_empty());
        self.memory.decided = Decided {
            held: waiting.map(|held| (held.reason, held.count())).collect(),
            uncoordinated: uncoordinated(snapshot),
            ..Decided::default()
        };
        // There is no other object to say it on.
        self.publish_of_pods(held.iter().filter_map(PodHold::of_missing));
        if held.iter().all(|held| held.pods.is_empty()) && !snapshot.workloads.iter().any(RolledWorkload::is_open) {
            return;
        }
        let carrier =
            self.memory.presence.carrier.as_ref().map(|(kind, _)| *kind).or_else(|| stamped_carrier(snapshot));
        let grace = match (carrier, self.options.missing_group) {
            (Some(_), _) => self.options.vanished_grace,
            (None, MissingGroup::ReleaseAfter(time)) => time,
            (None, MissingGroup::Hold) => return,
        };
        let returned = snapshot.returned.iter().filter(|(kind, _)| carrier.is_none_or(|carrier| carrier == *kind));
        let returned = returned.map(|(_, ago)| self.now.saturating_sub(*ago)).max().unwrap_or_default();
        let since = returned.max(*self.memory.presence.missing_since.get_or_insert(self.now));
        // Also when it was verified: the group may have been there in between.
        if since + grace > self.now {
            return self.pass_again(since + grace);
        }
        if verified_gone {
            self.tell_uncoordinated(snapshot, carrier.is_some());
            return self.release_all(snapshot);
        }
        // The time is the group's, and over: what is made from now on goes as soon as a live read says so again.
        let pods = snapshot.pods.iter().filter(|pod| pod.held).map(|pod| &pod.pod.uid);
        let workloads = snapshot.workloads.iter().filter(|workload| workload.is_open()).map(|workload| &workload.uid);
        let idle: Vec<_> = pods.chain(workloads).filter(|uid| !self.memory.tries.is_under_way(uid)).collect();
        let due_at = |uid: &Arc<str>| self.memory.tries.due(uid).unwrap_or(self.now);
        match idle.into_iter().map(due_at).min() {
            None => return,
            Some(at) if at > self.now => return self.pass_again(at),
            Some(_) => {}
        }
        if self.memory.presence.ask() {
            self.actions.push(Action::VerifyGone { carrier });
        }
    }

    /// Tells the first pod of each role that it goes without its group: a name that is misspelt is seen by nothing else. A
    /// group that `was_there` was deleted.
    fn tell_uncoordinated(&mut self, snapshot: &Snapshot, was_there: bool) {
        let mut roles: BTreeMap<&str, (&Arc<PodFacts>, u32)> = BTreeMap::new();
        let goes = |pod: &&Arc<PodFacts>| pod.held && !self.memory.tries.is_under_way(&pod.pod.uid);
        for pod in snapshot.pods.iter().filter(goes) {
            let (first, pods) = roles.entry(pod.identity.role.as_deref().unwrap_or_default()).or_insert((pod, 0));
            *pods += 1;
            if (pod.identity.ordinal, &pod.pod) < (first.identity.ordinal, &first.pod) {
                *first = pod;
            }
        }
        let group = &*self.key.name;
        let why = if was_there { "is gone" } else { "never came" };
        let event = |(role, (pod, pods)): (&str, (&Arc<PodFacts>, u32))| {
            let note = format!(
                "group {group:?} {why}: {} of role {role:?} go, and nothing coordinates them",
                counted(pods, "pod")
            );
            let (reason, subject) = (UNCOORDINATED.to_owned(), String::new());
            let event = EventNote { reason, subject, note, warning: !was_there, roles: BTreeSet::new() };
            (pod.pod.clone(), event)
        };
        let events: Vec<_> = roles.into_iter().map(event).collect();
        if !events.is_empty() {
            self.actions.push(Action::PublishOfPods { events });
        }
    }

    /// Nothing is held in its namespace: what was held before is released, and nothing else is written.
    pub(in crate::plan) fn let_go(&mut self, snapshot: &Snapshot) {
        self.memory.decided = Decided::default();
        self.release_all(snapshot);
        // Nothing is taken away any longer, and routers go by what pods say.
        for pod in snapshot.pods.iter().filter(|pod| pod.draining) {
            self.mark(Mark::draining(&pod.pod, false, true));
        }
    }

    pub(in crate::plan) fn release_all(&mut self, snapshot: &Snapshot) {
        for pod in snapshot.pods.iter().filter(|pod| pod.held) {
            self.release(pod, None, Pin::new());
        }
        snapshot.workloads.iter().filter(|workload| workload.is_open()).for_each(|workload| self.thaw(workload));
    }
}

/// Pods that run although the group is not there for which they were held.
fn uncoordinated(snapshot: &Snapshot) -> u32 {
    let pods = snapshot.pods.iter().filter(|pod| !pod.held && pod.stamp.held).count();
    u32::try_from(pods).unwrap_or(u32::MAX)
}

/// Kind of the object that carried a group which this process has never seen: what its youngest held pod says.
fn stamped_carrier(snapshot: &Snapshot) -> Option<ObjectKind> {
    let marked = snapshot.pods.iter().filter(|pod| pod.held && pod.stamp.carrier.is_some());
    marked.max_by(|a, b| a.created.cmp(&b.created))?.stamp.carrier
}

#[cfg(test)]
#[path = "missing_group_tests.rs"]
mod tests;
