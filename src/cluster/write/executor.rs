//! Carries out the decisions of the loop. Each action reports its end to the reconciler, whatever the API server does: an
//! action without an answer, or with a panic, has failed.

use crate::api::status::GroupStatus;
use crate::cluster::failure::{namespace_is_gone, short};
use crate::cluster::index::{CarrierObject, SharedIndex};
use crate::cluster::metrics::{LoopMetrics, Outcome};
use crate::cluster::read::lookup::{Lookup, LookupError};
use crate::cluster::read::pod_groups::TAKEN;
use crate::cluster::read::{losses, missing_pods, running_pods, surge, unlabelled};
use crate::cluster::write::deadline::Unfinished;
use crate::cluster::write::events::Events;
use crate::cluster::write::write_limit::{Load, WriteLimit};
use crate::cluster::write::writer::{Writer, Written};
use crate::model::{Group, GroupKey, ScaledWorkload};
use crate::mutate::late_labels;
use crate::plan::marks::Mark;
use crate::plan::reconcile::events::EventNote;
use crate::plan::reconcile::pod_group_memory::PodGroupId;
use crate::plan::reconcile::scales::ScaleOutcome;
use crate::plan::status::dropped;
use crate::plan::{Action, BatchPodGroup, Ended, MissingLabels, MissingPods, PodRef, StatusCarrier, Suspect};

#[derive(Clone)]
pub struct Executor {
    writer: Writer,
    lookup: Lookup,
    events: Events,
    metrics: LoopMetrics,
    limit: WriteLimit,
}

#[derive(Debug, thiserror::Error)]
enum ActionError {
    #[error(transparent)]
    Api(#[from] kube::Error),
    #[error(transparent)]
    Lookup(#[from] LookupError),
    #[error(transparent)]
    Unfinished(#[from] Unfinished),
}

impl ActionError {
    fn text(&self) -> String {
        match self {
            Self::Api(error) => short(error),
            other => other.to_string(),
        }
    }

    /// Reports whether the write failed because its namespace is being deleted.
    fn is_of_gone_namespace(&self) -> bool {
        matches!(self, Self::Api(error) if namespace_is_gone(error))
    }

    /// Returns the load of the API server, as far as the error shows it.
    fn load(&self) -> Load {
        match self {
            Self::Api(kube::Error::Api(status)) if status.code == 429 => Load::Overloaded,
            Self::Api(kube::Error::Api(_)) => Load::Answered,
            _ => Load::Unknown,
        }
    }
}

/// Result of an action: a word for the metrics, and a report to the reconciler.
type Done = (&'static str, Option<Ended>);
/// Result of a deletion: a word for the metrics, and why nothing was deleted.
type Deleted = (&'static str, Option<&'static str>);

impl Executor {
    /// Returns an executor that writes with `writer`, and applies the results to the index of `lookup`.
    pub fn new(writer: Writer, lookup: Lookup, events: Events, metrics: LoopMetrics) -> Self {
        let limit = WriteLimit::new(metrics.write_limit.clone());
        Self { writer, lookup, events, metrics, limit }
    }

    pub fn index(&self) -> &SharedIndex {
        self.lookup.index()
    }

    /// Carries out an action. `None` for an action that ends without a report.
    pub async fn carry_out(&self, key: &GroupKey, action: Action) -> Option<Ended> {
        // The time limit starts with the permit.
        let turn = if is_of_pod(&action) { Some(self.limit.turn().await) } else { None };
        let done = self.writer.in_time(self.act(key, &action)).await;
        if let Some(turn) = turn {
            turn.end(done.as_ref().map_or_else(ActionError::load, |_| Load::Answered));
        }
        let (outcome, ended) = match done {
            Ok(done) => done,
            Err(error) => {
                let (what, name) = described(&action);
                let text = error.text();
                if error.is_of_gone_namespace() {
                    tracing::debug!(group = %key, name, error = text, "the namespace is being deleted: {what}");
                } else {
                    tracing::warn!(group = %key, name, error = text, "failed, will be tried again: {what}");
                }
                ("failed", action.ended(Some(&text)))
            }
        };
        self.count(&action, outcome);
        ended
    }

    /// Queues the Events of an action; `false` for an action of another kind.
    pub fn publish(&self, key: &GroupKey, action: &Action) -> bool {
        match action {
            Action::Publish { group, events } => self.publish_of_group(group, events),
            Action::PublishOfPodGroup { tree, events } => self.events.publish_of_pod_group(tree, events),
            Action::PublishOfPods { events } => self.events.publish_of_pods(&key.namespace, events),
            _ => return false,
        }
        true
    }

    fn publish_of_group(&self, group: &Group, events: &[EventNote]) {
        self.events.publish(group, events, |role| self.index().read().workload_of(group, role));
    }

    async fn act(&self, key: &GroupKey, action: &Action) -> Result<Done, ActionError> {
        let (outcome, failure) = match action {
            Action::Release { pod, labels, pin, queued } => {
                let late = |of: &MissingLabels| {
                    late_labels(&of.group, &of.role, of.ordinal, of.size_only, of.revision.as_deref())
                };
                let labels = labels.as_ref().map(late);
                match self.writer.release(&key.namespace, pod, &labels.unwrap_or_default(), pin, *queued).await? {
                    Some(pod) => {
                        self.index().write(|index| index.pod_written(&pod));
                        ("released", None)
                    }
                    None => ("gone", None),
                }
            }
            Action::WriteStatus { group, status, then } => match self.writer.write_status(group, status).await? {
                Written::Done(object) => {
                    self.publish_of_group(group, then);
                    return Ok(self.status_written(action, group, status, object));
                }
                // Another writer was faster: plan again from the current object.
                Written::Conflict => ("conflict", self.reread(group).await.is_err().then_some("it cannot be read")),
                // The watch will report it; a read now gains nothing.
                Written::Gone => ("gone", Some("it is gone")),
            },
            Action::WriteConflicted { other, status } => {
                if let Written::Done(object) = self.writer.write_status(other, status).await? {
                    return Ok(self.status_written(action, other, status, object));
                }
                ("written", None)
            }
            Action::EnsurePodGroup { group, gang } => {
                let made = self.ensure_pod_group(key, group, gang).await?;
                ("written", (!made).then_some(TAKEN))
            }
            Action::FindPodGroups { group } => return self.find_pod_groups(group).await,
            Action::RemovePodGroup { group, id } => (self.remove_pod_group(key, group, id).await?, None),
            Action::SetPartition { workload, partition, ends } => {
                match self.writer.set_partition(workload, *partition, *ends).await? {
                    Some(seen) => {
                        self.index().write(|index| index.apply_workload(None, seen));
                        ("written", None)
                    }
                    None => ("conflict", Some("somebody was faster")),
                }
            }
            Action::Scale { group, role, workload, replicas, then } => {
                return self.scale(group, role, workload, *replicas, then).await;
            }
            Action::Mark { mark } => (self.mark(key, mark).await?, None),
            Action::Recreate { pod } => self.recreate(key, pod).await?,
            Action::Delete { pod, with_dependents } => self.delete(key, pod, *with_dependents).await?,
            Action::LookAtLosses { group, suspects } => return self.look_at_losses(key, group, suspects).await,
            Action::DiagnoseMissingPods { group, missing } => {
                let roles = missing.iter().map(|missing| &*missing.role);
                let makers = missing_pods::makers(&self.index().read(), group, roles);
                let adopted = self.adopt(key, group, missing).await?;
                let mut diagnoses = missing_pods::find(&self.writer.client, group, missing, &makers).await?;
                // The watch will report the adopted pods.
                diagnoses.retain(|diagnosis| !adopted.contains(&diagnosis.role));
                return Ok(("found", Some(Ended::Diagnosed { diagnoses })));
            }
            Action::FindSurge { group, surplus } => {
                let proven = surge::find(&self.writer.client, self.index(), group, surplus).await?;
                return Ok(("found", Some(Ended::Surge { proven })));
            }
            Action::ConfirmGroup => {
                self.lookup.read_live(key).await?;
                ("found", None)
            }
            Action::ConfirmPods => {
                let found = running_pods::list(&self.writer.client, key).await?;
                self.index().write(|index| index.running_pods_read(key, &found.uids, found.at));
                ("found", None)
            }
            Action::VerifyGone { carrier } => {
                let gone = self.lookup.is_gone(key, *carrier).await?;
                return Ok(("found", Some(Ended::Verified { gone })));
            }
            Action::CommitPlacement { tree, placement } => {
                let noted = self.writer.note_placement(tree, placement).await?;
                if noted { ("written", None) } else { ("conflict", Some("somebody was faster")) }
            }
            Action::VerifyPodGroupGone => {
                let gone = match key.pod_group() {
                    Some(key) => self.lookup.is_pod_group_gone(&key).await?,
                    None => false,
                };
                return Ok(("found", Some(Ended::Verified { gone })));
            }
            Action::Publish { .. } | Action::PublishOfPodGroup { .. } | Action::PublishOfPods { .. } => {
                self.publish(key, action);
                return Ok(("queued", None));
            }
        };
        Ok((outcome, action.ended(failure)))
    }

    async fn ensure_pod_group(&self, key: &GroupKey, group: &Group, gang: &BatchPodGroup) -> Result<bool, ActionError> {
        let made = self.writer.ensure_pod_group(group, gang).await?;
        if !made {
            tracing::info!(group = %key, name = gang.name, "PodGroup of a batch is not made: {TAKEN}");
        }
        Ok(made)
    }

    async fn find_pod_groups(&self, group: &Group) -> Result<Done, ActionError> {
        let (owner, found) = (group.carrier.uid.clone(), self.writer.find_pod_groups(group).await?);
        Ok(("found", Some(Ended::PodGroupsFound { owner, found: Some(found) })))
    }

    async fn remove_pod_group(
        &self,
        key: &GroupKey,
        group: &Group,
        id: &PodGroupId,
    ) -> Result<&'static str, ActionError> {
        self.writer.remove_pod_group(group, id).await?;
        tracing::info!(group = %key, name = id.name, "PodGroup removed: its batch is no more");
        Ok("deleted")
    }

    /// Scales a workload by the committed status of its group. A stale group would scale it to an earlier number.
    async fn scale(
        &self,
        group: &Group,
        role: &str,
        workload: &ScaledWorkload,
        replicas: u32,
        then: &[EventNote],
    ) -> Result<Done, ActionError> {
        let ended = |outcome| Some(Ended::Scaled { role: role.to_owned(), uid: workload.uid.clone(), outcome });
        self.lookup.read_live(&group.key).await?;
        let now = self.index().read().group(&group.key);
        if !now.is_some_and(|now| now.has_committed_like(group)) {
            return Ok(("conflict", ended(ScaleOutcome::Again)));
        }
        let Some(version) = self.writer.scale(workload, replicas).await? else {
            return Ok(("conflict", ended(ScaleOutcome::Again)));
        };
        self.index().write(|index| index.workload_scaled(workload, replicas, &version));
        self.publish_of_group(group, then);
        Ok(("written", ended(ScaleOutcome::Done(replicas))))
    }

    async fn mark(&self, key: &GroupKey, mark: &Mark) -> Result<&'static str, ActionError> {
        let Some(pod) = self.writer.mark(&key.namespace, mark).await? else { return Ok("gone") };
        self.index().write(|index| index.pod_written(&pod));
        Ok("written")
    }

    /// Labels running pods of roles that lack some and do not name the group: their workload made them before it could. They
    /// count from then on. Returns the roles with such pods.
    async fn adopt(&self, key: &GroupKey, group: &Group, missing: &[MissingPods]) -> Result<Vec<String>, ActionError> {
        let mut adopted = Vec::new();
        for role in missing.iter().filter_map(|missing| group.role(&missing.role)) {
            let workload = &role.workload;
            let Some(maker) = workload.key.as_ref().filter(|_| workload.reference.is_some()) else { continue };
            let pods = unlabelled::find(&self.writer.client, key, &role.name, maker).await?;
            for pod in &pods {
                self.mark(key, &Mark::adopted(pod, key, &role.name)).await?;
            }
            if !pods.is_empty() {
                tracing::info!(group = %key, role = role.name, pods = pods.len(), "pods run that do not name the group: counted");
                adopted.push(role.name.clone());
            }
        }
        Ok(adopted)
    }

    async fn recreate(&self, key: &GroupKey, pod: &PodRef) -> Result<Deleted, ActionError> {
        let deleted = self.writer.delete_without_node(&key.namespace, pod).await?;
        if deleted {
            tracing::info!(group = %key, name = %pod.name, "deleted: it is made again for its batch and its place");
        }
        Ok(("deleted", (!deleted).then_some("nobody would make it again, or it runs")))
    }

    async fn delete(&self, key: &GroupKey, pod: &PodRef, with_dependents: bool) -> Result<Deleted, ActionError> {
        self.writer.delete(&key.namespace, pod, with_dependents).await?;
        tracing::info!(group = %key, name = %pod.name, "deleted: its batch is made anew");
        Ok(("deleted", None))
    }

    async fn look_at_losses(&self, key: &GroupKey, group: &Group, suspects: &[Suspect]) -> Result<Done, ActionError> {
        self.lookup.read_live(key).await?;
        let judged = losses::look(&self.writer.client, self.index(), group, suspects).await?;
        Ok(("found", Some(Ended::LossesSeen { judged: Some(judged) })))
    }

    /// Applies a status as the write returned it, and reports whether all its fields were stored.
    fn status_written(
        &self,
        action: &Action,
        group: &Group,
        status: &GroupStatus,
        object: Option<CarrierObject>,
    ) -> Done {
        let Some(object) = object else { return ("written", action.ended(None)) };
        let fields = dropped(status, object.status());
        self.index().write(|index| index.apply_carrier(None, object));
        if fields.is_empty() {
            return ("written", action.ended(None));
        }
        let carrier = &group.carrier;
        let (kind, name, fields_text) = (carrier.kind.full_name(), &carrier.name, fields.join(", "));
        tracing::warn!(group = %group.key, kind, name, "status does not keep {fields_text}: not written again");
        ("dropped", Some(Ended::StatusDropped { object: StatusCarrier::of(group), fields }))
    }

    async fn reread(&self, group: &Group) -> Result<(), LookupError> {
        let read = self.lookup.read_live(&group.key).await;
        read.inspect_err(|error| tracing::warn!(group = %group.key, %error, "group cannot be read after a conflict"))
    }

    fn count(&self, action: &Action, outcome: &'static str) {
        let counter = match action {
            Action::Release { .. } => &self.metrics.releases,
            Action::WriteStatus { .. } => &self.metrics.status_writes,
            Action::SetPartition { .. } => &self.metrics.partitions,
            Action::Scale { .. } => &self.metrics.scales,
            Action::Delete { .. } => &self.metrics.recovery_deletions,
            _ => return,
        };
        counter.get_or_create(&Outcome { outcome }).inc();
    }
}

/// Reports whether the action writes a pod. Hundreds of pods may be due at a time.
const fn is_of_pod(action: &Action) -> bool {
    matches!(action, Action::Release { .. } | Action::Recreate { .. } | Action::Delete { .. } | Action::Mark { .. })
}

/// Returns a description of an action for people, and the name of its object; empty where that is the group.
fn described(action: &Action) -> (&'static str, &str) {
    match action {
        Action::Release { pod, .. } => ("release of a pod", &pod.name),
        Action::WriteStatus { .. } => ("status of the group", ""),
        Action::WriteConflicted { other, .. } => ("status of an object that controls nothing", &other.carrier.name),
        Action::EnsurePodGroup { gang, .. } => ("PodGroup of a batch", &gang.name),
        Action::FindPodGroups { .. } => ("look at which PodGroups are there", ""),
        Action::RemovePodGroup { id, .. } => ("removal of the PodGroup of a batch that is no more", &id.name),
        Action::SetPartition { workload, .. } => ("partition of a workload", &workload.key.name),
        Action::Scale { workload, .. } => ("scale of a workload", &workload.key.name),
        Action::Mark { mark } => ("labels of a pod", &mark.pod.name),
        Action::Recreate { pod } => ("deletion of a pod without a node", &pod.name),
        Action::Delete { pod, .. } => ("deletion of a pod of a batch that is made anew", &pod.name),
        Action::LookAtLosses { .. } => ("look at whether replicas are lost", ""),
        Action::DiagnoseMissingPods { .. } => ("look at why pods do not appear", ""),
        Action::FindSurge { .. } => ("look at whether a rollout made what is too many", ""),
        Action::ConfirmGroup => ("look at the group", ""),
        Action::ConfirmPods => ("look at which pods are there", ""),
        Action::VerifyGone { .. } => ("look at whether the group is gone", ""),
        Action::CommitPlacement { .. } => ("note of where the pods of a PodGroup go", ""),
        Action::VerifyPodGroupGone => ("look at whether the PodGroup is gone", ""),
        Action::Publish { .. } | Action::PublishOfPodGroup { .. } | Action::PublishOfPods { .. } => ("Events", ""),
    }
}

#[cfg(test)]
#[path = "executor_tests.rs"]
mod tests;
