//! The part of a pass on recoveries: live reads and deletions.

use std::sync::Arc;

use crate::model::Group;
use crate::model::moment::Moment;
use crate::plan::reconcile::action::{Action, Extent, Question};
use crate::plan::reconcile::pass::Pass;
use crate::plan::recovery::{Deletion, RecoveryPlan};
use crate::plan::view::Snapshot;

impl Pass<'_> {
    /// Reads losses live, and deletes pods by committed entries.
    pub(in crate::plan) fn recover(&mut self, group: &Arc<Group>, plan: &RecoveryPlan, snapshot: &Snapshot) {
        let again = self.memory.recovery.note(plan, self.now);
        self.pass_again(again);
        self.pass_again(Moment::parse(self.now_text).zip(plan.due).map(|(now, due)| self.now + now.until(due)));
        if !plan.suspects.is_empty() {
            let (group, suspects) = (group.clone(), plan.suspects.clone());
            self.begin(Action::Read(Question::Losses { group, suspects }));
        }
        for Deletion { pod, with_dependents } in &plan.delete {
            if self.memory.pods.deleted.contains(&pod.pod.uid) {
                continue;
            }
            // The known state of the group may be older than the pod: another leader may be further by now.
            if !self.memory.looks.show_group_of(pod) {
                self.look_at_group(snapshot);
                continue;
            }
            let (pod, extent) = (pod.pod.clone(), if *with_dependents { Extent::Dependents } else { Extent::Pod });
            if self.begin(Action::Delete { pod: pod.clone(), extent }) {
                self.memory.pods.deleted.insert(pod.uid);
            }
        }
    }
}
