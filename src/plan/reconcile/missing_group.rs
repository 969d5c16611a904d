//! The pass over a group that is not there: what it held is let go, when that is certain.

use std::sync::Arc;

use crate::api::ObjectKind;
use crate::model::RolledWorkload;
use crate::plan::decide::placed::Pin;
use crate::plan::elastic::Mark;
use crate::plan::evaluate::Evaluation;
use crate::plan::reconcile::action::Action;
use crate::plan::reconcile::options::MissingGroup;
use crate::plan::reconcile::pass::Pass;
use crate::plan::reconcile::pod_events::PodHold;
use crate::plan::view::Snapshot;

impl Pass<'_> {
    /// The group is not there: its pods wait, and are released when a live read says so, not before.
    pub(in crate::plan) fn missing(&mut self, snapshot: &Snapshot) {
        let held = Evaluation::of_missing(self.key, snapshot).decision.held;
        let waiting = held.iter().filter(|held| !held.pods.is_empty());
        self.memory.held = waiting.map(|held| (held.reason, held.count())).collect();
        self.memory.batches.clear();
        self.memory.stalled = false;
        // There is no other object to say it on.
        self.publish_of_pods(held.iter().filter_map(PodHold::of_missing));
        // It speaks for this pass only: what comes later is verified again.
        let verified_gone = std::mem::take(&mut self.memory.verified_gone);
        if held.iter().all(|held| held.pods.is_empty()) && !snapshot.workloads.iter().any(RolledWorkload::is_open) {
            return;
        }
        let carrier = self.memory.carrier.or_else(|| stamped_carrier(snapshot));
        let grace = match (carrier, self.options.missing_group) {
            (Some(_), _) => self.options.vanished_grace,
            (None, MissingGroup::ReleaseAfter(time)) => time,
            (None, MissingGroup::Hold) => return,
        };
        let returned = snapshot.returned.iter().filter(|(kind, _)| carrier.is_none_or(|carrier| carrier == *kind));
        let returned = returned.map(|(_, ago)| self.now.saturating_sub(*ago)).max().unwrap_or_default();
        let since = returned.max(*self.memory.missing_since.get_or_insert(self.now));
        // Also when it was verified: the group may have been there in between.
        if since + grace > self.now {
            return self.pass_again(since + grace);
        }
        if verified_gone {
            return self.release_all(snapshot);
        }
        // The time is the group's, and over: what is made from now on goes as soon as a live read says so again.
        let pods = snapshot.pods.iter().filter(|pod| pod.held).map(|pod| &pod.pod.uid);
        let workloads = snapshot.workloads.iter().filter(|workload| workload.is_open()).map(|workload| &workload.uid);
        let idle: Vec<_> = pods.chain(workloads).filter(|uid| !self.memory.in_flight.contains(*uid)).collect();
        let due_at = |uid: &Arc<str>| self.memory.retry_due(uid).unwrap_or(self.now);
        match idle.into_iter().map(due_at).min() {
            None => return,
            Some(at) if at > self.now => return self.pass_again(at),
            Some(_) => {}
        }
        if !std::mem::replace(&mut self.memory.verifying, true) {
            self.actions.push(Action::VerifyGone { carrier });
        }
    }

    /// Nothing is held in its namespace: what was held before is released, and nothing else is written.
    pub(in crate::plan) fn let_go(&mut self, snapshot: &Snapshot) {
        self.memory.held.clear();
        self.memory.batches.clear();
        self.memory.recoveries.clear();
        self.memory.stalled = false;
        self.release_all(snapshot);
        // Nothing is taken away any longer, and routers go by what pods say.
        for pod in snapshot.pods.iter().filter(|pod| pod.draining) {
            let mark = Mark { pod: pod.pod.clone(), draining: false, by_cost: true };
            self.begin(&pod.pod.uid, || Action::MarkDraining { mark });
        }
    }

    pub(in crate::plan) fn release_all(&mut self, snapshot: &Snapshot) {
        for pod in snapshot.pods.iter().filter(|pod| pod.held) {
            self.release(pod, None, Pin::new());
        }
        snapshot.workloads.iter().filter(|workload| workload.is_open()).for_each(|workload| self.thaw(workload));
    }
}

/// Kind of the object that carried a group which this process has never seen: what its youngest held pod says.
fn stamped_carrier(snapshot: &Snapshot) -> Option<ObjectKind> {
    let marked = snapshot.pods.iter().filter(|pod| pod.held && pod.stamp.carrier.is_some());
    marked.max_by(|a, b| a.created.cmp(&b.created))?.stamp.carrier
}
