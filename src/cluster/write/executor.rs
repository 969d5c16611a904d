//! Carries out the decisions of the loop. Each action reports its end to the reconciler, whatever the API server does: an
//! action without an answer, or with a panic, has failed.

use prometheus_client::metrics::counter::Counter;

use crate::api::Pod;
use crate::cluster::failure::{namespace_is_gone, short};
use crate::cluster::index::SharedIndex;
use crate::cluster::metrics::{By, DELETED_FOR, LoopMetrics, count};
use crate::cluster::read::lookup::{Looked, Lookup, LookupError};
use crate::cluster::read::pod_groups::TAKEN;
use crate::cluster::read::{losses, missing_pods, pods};
use crate::cluster::write::deadline::Unfinished;
use crate::cluster::write::events::Events;
use crate::cluster::write::write_limit::{Load, WriteLimit};
use crate::cluster::write::writer::{ReleaseEdits, Writer, Written, release_patch};
use crate::model::{Group, GroupKey, ScaledWorkload};
use crate::mutate::late_labels;
use crate::plan::marks::Mark;
use crate::plan::reconcile::events::EventNote;
use crate::plan::reconcile::owned_memory::OwnedId;
use crate::plan::status::dropped;
use crate::plan::{
    About, Action, Answer, Ended, Extent, MissingLabels, MissingPods, OwnedWrite, PodRef, Question, StatusCarrier,
    StatusWrite, Step,
};

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

    /// Reports whether the API server has not answered in time: the write may have landed, or may still.
    fn is_late(&self) -> bool {
        match self {
            Self::Unfinished(Unfinished::Timeout(_)) => true,
            Self::Api(kube::Error::Api(status)) => status.code == 504,
            _ => false,
        }
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

/// What an action comes to.
type ActionResult<T> = Result<T, ActionError>;
/// Result of an action: a word for the metrics, and a report to the reconciler.
type Completion = (&'static str, Option<Ended>);
/// Result of a write: a word for the metrics, and why nothing was written; empty if another client was faster.
type WriteResult = (&'static str, Option<&'static str>);

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
        let turn = if row(&action).is_of_pod { Some(self.limit.turn().await) } else { None };
        let done = self.writer.in_time(self.act(key, &action)).await;
        if let Some(turn) = turn {
            turn.end(done.as_ref().map_or_else(ActionError::load, |_| Load::Answered));
        }
        let (outcome, ended) = match done {
            Ok(done) => done,
            Err(error) => {
                let Row { what, name, .. } = row(&action);
                let text = error.text();
                if error.is_of_gone_namespace() {
                    tracing::debug!(group = %key, name, error = text, "the namespace is being deleted: {what}");
                } else {
                    tracing::warn!(group = %key, name, error = text, "failed, will be tried again: {what}");
                }
                let is_late = error.is_late() && matches!(action, Action::WriteStatus(StatusWrite::Group { .. }));
                ("failed", if is_late { Some(Ended::StatusLate { why: text }) } else { action.ended(Some(&text)) })
            }
        };
        self.count(&action, outcome);
        ended
    }

    /// Queues the Events of an action; `false` for an action of another kind.
    pub fn publish(&self, key: &GroupKey, action: &Action) -> bool {
        let Action::Publish { about, events } = action else { return false };
        self.publish_about(key, about, events);
        true
    }

    fn publish_about(&self, key: &GroupKey, about: &About, events: &[EventNote]) {
        let workload = |role: &str| match about {
            About::Group(group) => self.index().read().workload_of(group, role),
            About::PodGroup(_) | About::Pod(_) => None,
        };
        self.events.publish(&key.namespace, about, events, workload);
    }

    async fn act(&self, key: &GroupKey, action: &Action) -> ActionResult<Completion> {
        let (outcome, failure) = match action {
            Action::Release { pod, labels, pod_groups, pin, queued, consumes } => {
                let late = |of: &MissingLabels| {
                    late_labels(&of.group, &of.role, of.ordinal, of.size_only, of.revision.as_deref())
                };
                let labels = labels.as_ref().map(late).unwrap_or_default();
                let (pin, queued, consumes) = (Some(pin), *queued, consumes.as_ref());
                let patch = release_patch(pod, ReleaseEdits { labels: &labels, pod_groups, pin, queued, consumes });
                let released = self.writer.release(&key.namespace, pod, patch).await?;
                (self.pod_written(released, "released"), None)
            }
            Action::Mark(mark) => (self.mark(key, mark).await?, None),
            Action::Delete { pod, extent } => self.delete(key, pod, *extent).await?,
            Action::WriteStatus(write) => return self.write_status(key, write).await,
            Action::Step(step) => self.step(key, step).await?,
            Action::WriteOwned { group, id, write } => self.write_owned(key, group, id, write).await?,
            Action::Read(question) => return Ok(("found", Some(Ended::Read(self.read(key, question).await?)))),
            Action::Publish { about, events } => {
                self.publish_about(key, about, events);
                return Ok(("queued", None));
            }
        };
        Ok((outcome, action.ended(failure)))
    }

    async fn mark(&self, key: &GroupKey, mark: &Mark) -> ActionResult<&'static str> {
        let marked = self.writer.mark(&key.namespace, mark).await?;
        Ok(self.pod_written(marked, "written"))
    }

    fn pod_written(&self, written: Option<Pod>, done: &'static str) -> &'static str {
        let Some(pod) = written else { return "gone" };
        self.index().write(|index| index.pod_written(&pod));
        done
    }

    async fn delete(&self, key: &GroupKey, pod: &PodRef, extent: Extent) -> ActionResult<WriteResult> {
        let with_dependents = matches!(extent, Extent::Dependents | Extent::RolledBack { with_dependents: true });
        let deleted = if extent == Extent::Unscheduled {
            self.writer.delete_without_node(&key.namespace, pod).await?
        } else {
            self.writer.delete(&key.namespace, pod, with_dependents).await.map(|()| true)?
        };
        if deleted {
            tracing::info!(group = %key, name = %pod.name, "deleted: {}", cause(extent).log);
        }
        Ok(("deleted", (!deleted).then_some("nobody would make it again, or it runs")))
    }

    async fn write_status(&self, key: &GroupKey, write: &StatusWrite) -> ActionResult<Completion> {
        let (group, status, then): (_, _, &[EventNote]) = match write {
            StatusWrite::Group { group, status, then, reads_first } => {
                if *reads_first && self.has_moved_on(group).await? {
                    return Ok(("conflict", Some(Ended::written(write.target(), None))));
                }
                (group, status, then)
            }
            StatusWrite::Conflicted { other, status } => (other, status, &[]),
            StatusWrite::Placement { tree, placement } => {
                let noted = self.writer.note_placement(tree, placement).await?;
                let (outcome, failure) = if noted { ("written", None) } else { ("conflict", Some("")) };
                return Ok((outcome, Some(Ended::written(write.target(), failure))));
            }
        };
        let (outcome, failure) = match self.writer.write_status(group, status).await? {
            Written::Done(object) => {
                self.publish_about(key, &About::Group(group.clone()), then);
                let fields = object.as_ref().map(|object| dropped(status, object.status())).unwrap_or_default();
                object.into_iter().for_each(|object| self.index().write(|index| index.apply_carrier(None, object)));
                if !fields.is_empty() {
                    return Ok(("dropped", Some(status_dropped(write, group, fields))));
                }
                ("written", None)
            }
            _ if matches!(write, StatusWrite::Conflicted { .. }) => ("conflict", None),
            // Another writer was faster: plan again from the current object.
            Written::Conflict => ("conflict", self.reread(group).await.is_err().then_some("it cannot be read")),
            // The watch will report it; a read now gains nothing.
            Written::Gone => ("gone", Some("it is gone")),
        };
        Ok((outcome, Some(Ended::written(write.target(), failure))))
    }

    /// Reports whether a live read shows another version of the carrier.
    async fn has_moved_on(&self, group: &Group) -> Looked<bool> {
        self.lookup.read_live(&group.key).await?;
        let now = self.index().read().group(&group.key);
        Ok(now.is_none_or(|now| now.carrier.resource_version != group.carrier.resource_version))
    }

    async fn reread(&self, group: &Group) -> Looked<()> {
        let read = self.lookup.read_live(&group.key).await;
        read.inspect_err(|error| tracing::warn!(group = %group.key, %error, "group cannot be read after a conflict"))
    }

    async fn step(&self, key: &GroupKey, step: &Step) -> ActionResult<WriteResult> {
        let is_done = match step {
            Step::Partition { workload, partition, ends } => {
                let seen = self.writer.set_partition(workload, *partition, *ends).await?;
                let is_done = seen.is_some();
                seen.into_iter().for_each(|seen| self.index().write(|index| index.apply_workload(None, seen)));
                is_done
            }
            Step::Replicas { group, workload, replicas, then, .. } => {
                let scaled = self.scale(group, workload, *replicas).await?;
                if scaled {
                    self.publish_about(key, &About::Group(group.clone()), then);
                }
                scaled
            }
        };
        Ok(if is_done { ("written", None) } else { ("conflict", Some("")) })
    }

    /// Scales a workload by the committed status of its group; `false` if it was changed. A stale group would scale it to an
    /// earlier number.
    async fn scale(&self, group: &Group, workload: &ScaledWorkload, replicas: u32) -> ActionResult<bool> {
        self.lookup.read_live(&group.key).await?;
        let now = self.index().read().group(&group.key);
        if !now.is_some_and(|now| now.has_committed_like(group)) {
            return Ok(false);
        }
        let Some(version) = self.writer.scale(workload, replicas).await? else { return Ok(false) };
        self.index().write(|index| index.workload_scaled(workload, replicas, &version));
        Ok(true)
    }

    async fn write_owned(
        &self,
        key: &GroupKey,
        group: &Group,
        id: &OwnedId,
        write: &OwnedWrite,
    ) -> ActionResult<WriteResult> {
        let gang = match write {
            OwnedWrite::Ensure(gang) => gang,
            OwnedWrite::Create(object) => {
                let made = self.writer.create_request(group, object).await?;
                if made.is_none() {
                    tracing::info!(group = %key, name = id.name, "{} created: nodes are requested", id.kind.kind);
                }
                return Ok(("written", made));
            }
            OwnedWrite::Relax(members) => {
                self.writer.relax_pod_group(group, id, *members).await?;
                return Ok(("written", None));
            }
            OwnedWrite::Remove => {
                self.writer.remove_owned(group, id).await?;
                tracing::info!(group = %key, name = id.name, "{} removed: nothing asks for it any more", id.kind.kind);
                return Ok(("deleted", None));
            }
        };
        let made = self.writer.ensure_pod_group(group, gang).await?;
        if !made {
            tracing::info!(group = %key, name = id.name, "PodGroup of a batch is not made: {TAKEN}");
        }
        Ok(("written", (!made).then_some(TAKEN)))
    }

    async fn read(&self, key: &GroupKey, question: &Question) -> ActionResult<Answer> {
        let client = &self.writer.client;
        Ok(match question {
            Question::Group => {
                self.lookup.read_live(key).await?;
                Answer::Group { failed: false }
            }
            Question::Pods => {
                let found = pods::running(client, key).await?;
                self.index().write(|index| index.running_pods_read(key, &found.uids, found.at));
                Answer::Pods { failed: false }
            }
            Question::Owned { group, kinds } => {
                let (owner, found) = (group.carrier.uid.clone(), self.writer.find_owned(group, kinds).await?);
                Answer::Owned { owner, found: Some(found) }
            }
            Question::Losses { group, suspects } => {
                self.lookup.read_live(key).await?;
                Answer::Losses(Some(losses::look(&self.lookup, group, suspects).await?))
            }
            Question::MissingPods { group, missing } => {
                let roles = missing.iter().map(|missing| &*missing.role);
                let makers = missing_pods::makers(&self.index().read(), group, roles);
                let adopted = self.adopt(key, group, missing).await?;
                let mut diagnoses = missing_pods::find(client, group, missing, &makers).await?;
                // The watch will report the adopted pods.
                diagnoses.retain(|diagnosis| !adopted.contains(&diagnosis.role));
                Answer::MissingPods(diagnoses)
            }
            Question::Surge { group, surplus } => Answer::Surge(pods::of_surge(&self.lookup, group, surplus).await?),
            Question::Gone { carrier } => Answer::Gone(match key.pod_group() {
                Some(key) => self.lookup.is_pod_group_gone(&key).await?,
                None => self.lookup.is_gone(key, *carrier).await?,
            }),
        })
    }

    /// Labels running pods of roles that lack some and do not name the group: their workload made them before it could. They
    /// count from then on. Returns the roles with such pods.
    async fn adopt(&self, key: &GroupKey, group: &Group, missing: &[MissingPods]) -> ActionResult<Vec<String>> {
        let mut adopted = Vec::new();
        for role in missing.iter().filter_map(|missing| group.role(&missing.role)) {
            let workload = &role.workload;
            let Some(maker) = workload.key.as_ref().filter(|_| workload.reference.is_some()) else { continue };
            let unlabelled = pods::unlabelled(&self.writer.client, key, &role.name, maker).await?;
            for pod in &unlabelled {
                self.mark(key, &Mark::adopted(pod, key, &role.name)).await?;
            }
            if !unlabelled.is_empty() {
                tracing::info!(group = %key, role = role.name, pods = unlabelled.len(), "pods run that do not name the group: counted");
                adopted.push(role.name.clone());
            }
        }
        Ok(adopted)
    }

    fn count(&self, action: &Action, outcome: &'static str) {
        if let Action::Delete { extent, .. } = action
            && let Some(why) = cause(*extent).metric
        {
            self.metrics.recovery_deletions.get_or_create(&[("why", why), ("outcome", outcome)]).inc();
        }
        row(action).counter.into_iter().for_each(|of| count(of(&self.metrics), outcome));
    }
}

/// Logs and reports a status that was not stored in full.
fn status_dropped(write: &StatusWrite, group: &Group, fields: Vec<&'static str>) -> Ended {
    let carrier = &group.carrier;
    let (kind, name, fields_text) = (carrier.kind.full_name(), &carrier.name, fields.join(", "));
    tracing::warn!(group = %group.key, kind, name, "status does not keep {fields_text}: not written again");
    Ended::StatusDropped { target: write.target(), object: StatusCarrier::of(group), fields }
}

/// Why a pod is deleted.
struct Cause {
    /// The word of the metric.
    metric: Option<&'static str>,
    /// What the log says of a deletion.
    log: &'static str,
    /// What is said of a deletion that failed.
    what: &'static str,
}

const fn cause(extent: Extent) -> Cause {
    let [recovery, update, rollback] = DELETED_FOR;
    let (metric, log, what) = match extent {
        Extent::Unscheduled => {
            (None, "it is made again for its batch and its place", "deletion of a pod without a node")
        }
        Extent::Stray => {
            (Some(recovery), "its batch is in another domain", "deletion of a pod in another domain than its batch")
        }
        Extent::Outdated => (Some(update), "its role is updated", "deletion of an old pod of a rollout"),
        Extent::RolledBack { .. } => {
            (Some(rollback), "its rollout goes back", "deletion of a pod whose rollout goes back")
        }
        Extent::Pod | Extent::Dependents => {
            (Some(recovery), "its batch is made anew", "deletion of a pod of a batch that is made anew")
        }
    };
    Cause { metric, log, what }
}

/// What is so of every action of a sort.
struct Row<'a> {
    /// A description for people.
    what: &'static str,
    /// The name of the object; empty where that is the group.
    name: &'a str,
    /// The counter of its outcomes.
    counter: Option<fn(&LoopMetrics) -> &By<Counter>>,
    /// Whether it writes a pod. Hundreds of pods may be due at a time.
    is_of_pod: bool,
}

fn row<'a>(action: &'a Action) -> Row<'a> {
    let row = |what, name: &'a str| Row { what, name, counter: None, is_of_pod: false };
    let of_pod = |what, pod: &'a PodRef| Row { is_of_pod: true, ..row(what, &pod.name) };
    let counted = |row: Row<'a>, counter: fn(&LoopMetrics) -> &By<Counter>| Row { counter: Some(counter), ..row };
    match action {
        Action::Release { pod, .. } => counted(of_pod("release of a pod", pod), |metrics| &metrics.releases),
        Action::Mark(mark) => of_pod("labels of a pod", &mark.pod),
        Action::Delete { pod, extent } => of_pod(cause(*extent).what, pod),
        Action::WriteStatus(StatusWrite::Group { .. }) => {
            counted(row("status of the group", ""), |metrics| &metrics.status_writes)
        }
        Action::WriteStatus(StatusWrite::Conflicted { other, .. }) => {
            row("status of an object that controls nothing", &other.carrier.name)
        }
        Action::WriteStatus(StatusWrite::Placement { .. }) => row("note of where the pods of a PodGroup go", ""),
        Action::Step(Step::Partition { workload, .. }) => {
            counted(row("partition of a workload", &workload.key.name), |metrics| &metrics.partitions)
        }
        Action::Step(Step::Replicas { workload, .. }) => {
            counted(row("scale of a workload", &workload.key.name), |metrics| &metrics.scales)
        }
        Action::WriteOwned { id, write: OwnedWrite::Ensure(_), .. } => row("PodGroup of a batch", &id.name),
        Action::WriteOwned { id, write: OwnedWrite::Create(_), .. } => row("object of a request for nodes", &id.name),
        Action::WriteOwned { id, .. } => row("removal of an owned object that nothing asks for", &id.name),
        Action::Read(question) => row(asked(question), ""),
        Action::Publish { .. } => row("Events", ""),
    }
}

const fn asked(question: &Question) -> &'static str {
    match question {
        Question::Group => "look at the group",
        Question::Pods => "look at which pods are there",
        Question::Owned { .. } => "look at which owned objects are there",
        Question::Losses { .. } => "look at whether replicas are lost",
        Question::MissingPods { .. } => "look at why pods do not appear",
        Question::Surge { .. } => "look at whether a rollout made what is too many",
        Question::Gone { .. } => "look at whether the group is gone",
    }
}

#[cfg(test)]
#[path = "executor_tests.rs"]
mod tests;
