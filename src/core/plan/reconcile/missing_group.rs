//! The pass over a missing group: its held pods are released once it is certainly gone, and an Event reports it.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::api::ObjectKind;
use crate::model::RolledWorkload;
use crate::model::wording::counted;
use crate::plan::decide::placed::Pin;
use crate::plan::evaluate::Evaluation;
use crate::plan::marks::Mark;
use crate::plan::reconcile::action::{Action, Question};
use crate::plan::reconcile::decided::Decided;
use crate::plan::reconcile::events::EventNote;
use crate::plan::reconcile::options::MissingGroup;
use crate::plan::reconcile::pass::Pass;
use crate::plan::reconcile::pod_events::PodHold;
use crate::plan::reconcile::tries::Try;
use crate::plan::reconcile::uptime::Uptime;
use crate::plan::view::{PodFacts, Snapshot, count};

/// The reason of the Event on pods that are released without their group.
pub const UNCOORDINATED: &str = "ReleasedWithoutGroup";

impl Pass<'_> {
    /// Handles a missing group: its pods wait until a live read confirms that it is gone.
    pub(in crate::plan) fn missing(&mut self, snapshot: &Snapshot, verified_gone: bool) {
        let held = Evaluation::of_missing(self.key, snapshot).decision.held;
        let waiting = held.iter().filter(|held| !held.pods.is_empty());
        self.memory.decided = Decided {
            held: waiting.map(|held| (held.reason, held.count())).collect(),
            uncoordinated: uncoordinated(snapshot),
            ..Decided::default()
        };
        // No other object could carry the Event.
        self.publish_of_pods(held.iter().filter_map(PodHold::of_missing));
        if held.iter().all(|held| held.pods.is_empty()) && !snapshot.workloads.iter().any(RolledWorkload::is_open) {
            return;
        }
        let carrier =
            self.memory.presence.carrier.as_ref().map(|(kind, _)| *kind).or_else(|| stamped_carrier(snapshot));
        let returned = snapshot.returned.iter().filter(|(kind, _)| carrier.is_none_or(|carrier| carrier == *kind));
        let returned = returned.map(|(_, ago)| self.now.saturating_sub(*ago)).max().unwrap_or_default();
        // What a group that never came would have given a pod, nothing gives it later.
        let goes = |pod: &PodFacts| pod.held && (carrier.is_some() || !pod.stamp.asks_group());
        let pods = snapshot.pods.iter().filter(|pod| goes(pod)).map(|pod| &pod.pod.uid);
        let workloads = snapshot.workloads.iter().filter(|workload| workload.is_open()).map(|workload| &workload.uid);
        if self.is_gone(carrier, returned, verified_gone, pods.chain(workloads)) {
            self.tell_uncoordinated(snapshot, carrier.is_some(), goes);
            self.release_all(snapshot, goes);
        }
    }

    /// Reports whether a group or PodGroup is certainly gone: a live read has confirmed that after its grace, which does not
    /// begin before `returned`. `carrier` is the kind of its object, if it was ever there, and `waiting` are the uids of the
    /// objects that wait for it.
    pub(in crate::plan) fn is_gone<'a>(
        &mut self,
        carrier: Option<ObjectKind>,
        returned: Uptime,
        verified_gone: bool,
        waiting: impl Iterator<Item = &'a Arc<str>>,
    ) -> bool {
        let grace = match self.options.missing_group {
            _ if carrier.is_some() => self.options.vanished_grace,
            MissingGroup::ReleaseAfter(time) => time,
            MissingGroup::Hold => return false,
        };
        let since = returned.max(*self.memory.presence.missing_since.get_or_insert(self.now));
        // A verified group waits as well: it may have existed in between.
        if since + grace > self.now {
            self.pass_again(since + grace);
            return false;
        }
        if verified_gone {
            return true;
        }
        // The grace period is over: new pods are released as soon as a live read confirms again that it is gone.
        let tries = &self.memory.tries;
        let idle = waiting.map(|uid| Try::Object(uid.clone())).filter(|one| !tries.is_under_way(one));
        match idle.map(|one| tries.due(&one).unwrap_or(self.now)).min() {
            Some(at) if at > self.now => self.pass_again(at),
            Some(_) => _ = self.begin(Action::Read(Question::Gone { carrier })),
            None => {}
        }
        false
    }

    /// Publishes an Event on the first pod of each role that is released without its group: nothing else shows a misspelt name.
    /// `was_there` says that the group was deleted.
    fn tell_uncoordinated(&mut self, snapshot: &Snapshot, was_there: bool, goes: impl Fn(&PodFacts) -> bool) {
        let mut roles: BTreeMap<&str, (&Arc<PodFacts>, u32)> = BTreeMap::new();
        let goes_now =
            |pod: &&Arc<PodFacts>| goes(pod) && !self.memory.tries.is_under_way(&Try::Object(pod.pod.uid.clone()));
        for pod in snapshot.pods.iter().filter(goes_now) {
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
            Action::of_pod((pod.pod.clone(), EventNote::new(UNCOORDINATED, "", note, !was_there)))
        };
        let events: Vec<_> = roles.into_iter().map(event).collect();
        self.actions.extend(events);
    }

    /// Releases what was held in a namespace that holds nothing, and writes nothing else.
    pub(in crate::plan) fn let_go(&mut self, snapshot: &Snapshot) {
        self.memory.decided = Decided::default();
        self.release_all(snapshot, |pod| pod.held);
        self.drop_requests(snapshot);
        // Pods are no longer taken away, and routers rely on their labels.
        for pod in snapshot.pods.iter().filter(|pod| pod.draining) {
            self.mark(Mark::draining(&pod.pod, false, true));
        }
    }

    pub(in crate::plan) fn release_all(&mut self, snapshot: &Snapshot, goes: impl Fn(&PodFacts) -> bool) {
        for pod in snapshot.pods.iter().filter(|pod| goes(pod)) {
            self.release(&pod.pod, Pin::new(), pod.queued);
        }
        snapshot.workloads.iter().filter(|workload| workload.is_open()).for_each(|workload| self.thaw(workload));
    }
}

/// Counts the running pods that were held for the missing group.
fn uncoordinated(snapshot: &Snapshot) -> u32 {
    count(snapshot.pods.iter().filter(|pod| !pod.held && pod.stamp.held).count())
}

/// Returns the kind of the carrier on the youngest held pod, for a group that this process has never seen.
fn stamped_carrier(snapshot: &Snapshot) -> Option<ObjectKind> {
    let marked = snapshot.pods.iter().filter(|pod| pod.held && pod.stamp.carrier.is_some());
    marked.max_by(|a, b| a.created.cmp(&b.created))?.stamp.carrier
}

#[cfg(test)]
#[path = "missing_group_tests.rs"]
mod tests;
