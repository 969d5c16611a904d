//! Pods of batches that are recreated: they wait for each other and are released together.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use crate::model::{Group, HoldReason};
use crate::plan::decide::decision::Release;
use crate::plan::decide::held::Held;
use crate::plan::recovery::{BatchId, Blocked, RecoveryPlan};
use crate::plan::view::{GroupView, HeldPod};

/// Batches that are recreated, and their waiting pods.
pub(super) struct Recovering<'a> {
    group: &'a Group,
    pub(super) plan: RecoveryPlan,
    waiting: BTreeMap<BatchId, Vec<HeldPod>>,
}

impl<'a> Recovering<'a> {
    pub(super) fn of(group: &'a Group, plan: RecoveryPlan) -> Self {
        Self { group, plan, waiting: BTreeMap::new() }
    }

    /// Notes a pod whose batch is recreated and incomplete; returns false for a pod that may go.
    pub(super) fn holds(&mut self, pod: &HeldPod) -> bool {
        if self.plan.blocked.is_empty() {
            return false;
        }
        let ids = self.group.batches_of(pod.role(), pod.ordinal).map(|batch| (batch.coordination.index, batch.index));
        let Some(id) = ids.into_iter().find(|id| self.plan.blocked.contains_key(id)) else { return false };
        self.waiting.entry(id).or_default().push(pod.clone());
        true
    }

    /// Releases complete batches of which every pod may go; the change of phase is committed first.
    pub(super) fn go_together(&mut self, view: &GroupView, release: &mut Vec<Release>, without_place: &[Held]) {
        let mut stays: HashSet<Arc<str>> = HashSet::new();
        for id in self.plan.ready_to_go.clone() {
            let pods = self.held_pods(view, id);
            let goes: HashSet<_> = release.iter().map(|release| release.pod.pod.uid.clone()).collect();
            if pods.iter().all(|pod| goes.contains(&pod.pod.uid)) {
                let own: HashSet<_> = pods.iter().map(|pod| &pod.pod.uid).collect();
                let own = release.iter_mut().filter(|release| own.contains(&release.pod.pod.uid));
                own.for_each(|release| release.at_once = false);
                self.plan.goes(self.group, id);
                continue;
            }
            let is_told = |pod: &&HeldPod| without_place.iter().any(|held| held.pods.has(pod));
            if let Some(batch) = self.group.coordination(id.0).and_then(|c| c.batching()) {
                let message = format!("{} is held: a pod of it may not go", batch.batch_name(id.1));
                self.plan.blocked.insert(id, Blocked { message });
            }
            let waiting = pods.iter().filter(|pod| goes.contains(&pod.pod.uid) && !is_told(pod));
            self.waiting.entry(id).or_default().extend(waiting.cloned());
            stays.extend(pods.into_iter().map(|pod| pod.pod.uid.clone()));
        }
        release.retain(|release| !stays.contains(&release.pod.pod.uid));
    }

    fn held_pods(&self, view: &GroupView, (index, batch): BatchId) -> Vec<HeldPod> {
        let batching = self.group.coordination(index).and_then(|coordination| coordination.batching());
        let roles = batching.into_iter().flat_map(|batching| batching.sizes.keys().map(move |name| (batching, name)));
        let pods = roles.filter_map(|(batching, name)| {
            let role = view.roles.get(name)?;
            Some(role.replicas.held(batching.ordinals(name, batch, role.desired)))
        });
        pods.flatten().collect()
    }

    /// Returns the plan, and one entry for each batch with waiting pods.
    pub(super) fn end(self) -> (RecoveryPlan, Vec<Held>) {
        let Self { group, plan, waiting } = self;
        let entry = |(id, pods): (BatchId, Vec<HeldPod>)| {
            let message = plan.blocked.get(&id).map(|blocked| blocked.message.clone())?;
            Some(Held::of((group.coordination(id.0), Some(id.1)), HoldReason::Recovering, message, pods))
        };
        let held = waiting.into_iter().filter(|(_, pods)| !pods.is_empty()).filter_map(entry).collect();
        (plan, held)
    }
}
