//! The part of a look at a group that is not there: what it held is let go, when that is certain (S7).

use crate::api::ObjectKind;
use crate::model::{HoldReason, RolledWorkload};
use crate::plan::reconcile::action::Action;
use crate::plan::reconcile::options::MissingGroup;
use crate::plan::reconcile::pass::Pass;
use crate::plan::view::Snapshot;

impl Pass<'_> {
    /// The group is not there: its pods wait, and are released when a live read says so, not before (S7).
    pub(in crate::plan) fn missing(&mut self, snapshot: &Snapshot) {
        let held = u32::try_from(snapshot.pods.iter().filter(|pod| pod.held).count()).unwrap_or(u32::MAX);
        self.memory.held = vec![(HoldReason::GroupMissing, held)];
        self.memory.batches.clear();
        // It speaks for this look only: what comes later is looked for again.
        let verified_gone = std::mem::take(&mut self.memory.verified_gone);
        if held == 0 && !snapshot.workloads.iter().any(RolledWorkload::is_open) {
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
        // Also when somebody has looked: it may have been there in between.
        if since + grace > self.now {
            return self.look_again(since + grace);
        }
        if verified_gone {
            // What comes later waits its own time.
            self.memory.missing_since = Some(self.now);
            return self.release_all(snapshot);
        }
        if !std::mem::replace(&mut self.memory.verifying, true) {
            self.actions.push(Action::VerifyGone { carrier });
        }
    }

    pub(in crate::plan) fn release_all(&mut self, snapshot: &Snapshot) {
        for pod in snapshot.pods.iter().filter(|pod| pod.held) {
            self.release(&pod.pod, None);
        }
        snapshot.workloads.iter().filter(|workload| workload.is_open()).for_each(|workload| self.thaw(workload));
    }
}

/// Kind of the object that carried a group which this process has never seen: what its youngest held pod says.
fn stamped_carrier(snapshot: &Snapshot) -> Option<ObjectKind> {
    let marked = snapshot.pods.iter().filter(|pod| pod.held && pod.stamp.carrier.is_some());
    marked.max_by(|a, b| a.created.cmp(&b.created))?.stamp.carrier
}
