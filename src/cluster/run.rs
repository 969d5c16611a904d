//! The loop: dirty group → plan → commit → release. It decides in one task; writes run beside it, so that a slow or
//! refused one never stands between another pod and its release.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::{Semaphore, mpsc, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::index::SharedIndex;
use super::metrics::{LoopMetrics, Outcome, Reason, State};
use crate::api::ObjectKind;
use crate::api::status::GroupStatus;
use crate::cluster::read::lookup::Lookup;
use crate::cluster::read::{missing_pods, surge};
use crate::cluster::write::events::Events;
use crate::cluster::write::writer::{PartitionSet, Released, Writer, Written};
use crate::model::{Group, GroupKey, HoldReason, RolledWorkload};
use crate::mutate::batch_labels;
use crate::plan::decide::surplus::Surplus;
use crate::plan::{Action, BatchPodGroup, BatchState, Ended, MissingLabels, MissingPods, PodRef, Reconciler, Uptime};

pub use crate::plan::{IncompleteBatch, LoopOptions, MissingGroup};

/// Releases in flight at a time.
const RELEASES: usize = 64;

/// The loop.
pub struct GateLoop {
    index: SharedIndex,
    lookup: Lookup,
    writer: Writer,
    events: Events,
    metrics: LoopMetrics,
    leader: watch::Receiver<bool>,
    reconciler: Reconciler,
    started: Instant,
    permits: Arc<Semaphore>,
    done: mpsc::UnboundedSender<(GroupKey, Ended)>,
    results: mpsc::UnboundedReceiver<(GroupKey, Ended)>,
}

impl GateLoop {
    /// Prepares the loop.
    pub fn new(
        lookup: Lookup,
        writer: Writer,
        options: LoopOptions,
        events: Events,
        metrics: LoopMetrics,
        leader: watch::Receiver<bool>,
    ) -> Self {
        let (done, results) = mpsc::unbounded_channel();
        let mut reconciler = Reconciler::new(options);
        reconciler.lead(*leader.borrow(), [], Uptime::ZERO);
        Self {
            index: lookup.index().clone(),
            lookup,
            writer,
            events,
            metrics,
            leader,
            reconciler,
            started: Instant::now(),
            permits: Arc::new(Semaphore::new(RELEASES)),
            done,
            results,
        }
    }

    /// Runs until `stop`.
    pub async fn run(mut self, stop: CancellationToken) {
        loop {
            let next = self.reconciler.next().map(|at| self.started + at);
            let timer = async {
                match next {
                    Some(at) => tokio::time::sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = stop.cancelled() => return,
                Some((key, ended)) = self.results.recv() => self.ended(key, ended),
                () = self.index.changed() => self.take_changes(),
                Ok(()) = self.leader.changed() => self.leadership(),
                () = timer => self.pass_due(),
            }
        }
    }

    fn now(&self) -> Uptime {
        self.started.elapsed()
    }

    fn leadership(&mut self) {
        let leads = *self.leader.borrow();
        self.metrics.leader.set(i64::from(leads));
        let keys = self.index.read().keys();
        self.reconciler.lead(leads, keys, self.now());
    }

    fn ended(&mut self, key: GroupKey, ended: Ended) {
        self.reconciler.ended(key, ended, self.now());
        self.time_releases();
    }

    fn time_releases(&mut self) {
        for time in self.reconciler.take_released() {
            self.metrics.batch_release_seconds.observe(time.as_secs_f64());
        }
    }

    fn take_changes(&mut self) {
        let now = self.now();
        let dirty = self.index.write_quietly(super::index::Index::take_dirty);
        if !self.reconciler.is_synced() && self.index.read().is_synced() {
            let keys = self.index.read().keys();
            self.reconciler.sync(keys, now);
        }
        self.reconciler.changed(dirty, now);
    }

    fn pass_due(&mut self) {
        let now = self.now();
        while let Some(key) = self.reconciler.take_due(now) {
            let started = Instant::now();
            let snapshot = self.index.read().snapshot(&key);
            let actions = self.reconciler.pass(&key, &snapshot, now, &now_text());
            if snapshot.claims.is_some() {
                self.metrics.plan_seconds.observe(started.elapsed().as_secs_f64());
            }
            actions.into_iter().for_each(|action| self.act(&key, action));
        }
        self.time_releases();
        self.count();
    }

    fn act(&self, key: &GroupKey, action: Action) {
        match action {
            Action::Release { pod, labels } => self.release(key, pod, labels),
            Action::WriteStatus { group, status } => self.write_status(key, group, status),
            Action::WriteConflicted { other, status } => self.write_conflicted(key, other, status),
            Action::EnsurePodGroup { group, gang } => self.ensure_pod_group(key, group, gang),
            Action::SetPartition { workload, partition, ends } => self.set_partition(key, *workload, partition, ends),
            Action::Recreate { pod } => self.recreate(key, pod),
            Action::DiagnoseMissingPods { group, missing } => self.diagnose(key, group, missing),
            Action::FindSurge { group, surplus } => self.find_surge(key, &group, surplus),
            Action::VerifyGone { carrier } => self.verify_gone(key, carrier),
            Action::Publish { group, events } => self.events.publish(&group, events),
        }
    }

    /// Ends with a word to the reconciler.
    fn spawn(&self, key: &GroupKey, task: impl Future<Output = Ended> + Send + 'static) {
        let (done, key) = (self.done.clone(), key.clone());
        tokio::spawn(async move { _ = done.send((key, task.await)) });
    }

    fn write_conflicted(&self, key: &GroupKey, other: Arc<Group>, status: GroupStatus) {
        let (writer, index) = (self.writer.clone(), self.index.clone());
        self.spawn(key, async move {
            let carrier = &other.carrier;
            let object = PodRef { name: carrier.name.as_str().into(), uid: carrier.uid.as_str().into() };
            match writer.write_status(&other, &status).await {
                Ok(written) => {
                    if let Written::Done(Some(written)) = written {
                        index.write(|index| index.apply_carrier(None, written));
                    }
                    Ended::Tried { object, failed: false }
                }
                Err(error) => {
                    tracing::warn!(group = %other.key, name = %object.name, %error, "write failed, will retry");
                    Ended::Tried { object, failed: true }
                }
            }
        });
    }

    fn write_status(&self, key: &GroupKey, group: Arc<Group>, status: GroupStatus) {
        let (writer, lookup, metrics) = (self.writer.clone(), self.lookup.clone(), self.metrics.clone());
        self.spawn(key, async move {
            let key = &group.key;
            let (outcome, failed) = match writer.write_status(&group, &status).await {
                Ok(Written::Done(object)) => {
                    object
                        .into_iter()
                        .for_each(|object| lookup.index().write(|index| index.apply_carrier(None, object)));
                    ("written", false)
                }
                // Somebody was faster: plan again from what is there now.
                Ok(Written::Conflict) => {
                    let read = lookup.read_live(key).await;
                    if let Err(error) = &read {
                        tracing::warn!(group = %key, %error, "group cannot be read after a conflict");
                    }
                    ("conflict", read.is_err())
                }
                // The watch will say so; until then nothing is gained by asking again at once.
                Ok(Written::Gone) => ("gone", true),
                Err(error) => {
                    tracing::warn!(group = %key, %error, "status cannot be written");
                    ("failed", true)
                }
            };
            metrics.status_writes.get_or_create(&Outcome { outcome }).inc();
            Ended::Written { failed }
        });
    }

    fn ensure_pod_group(&self, key: &GroupKey, group: Arc<Group>, gang: BatchPodGroup) {
        let writer = self.writer.clone();
        self.spawn(key, async move {
            let made = writer.ensure_pod_group(&group, &gang).await;
            if let Err(error) = &made {
                tracing::warn!(group = %group.key, pod_group = %gang.name, %error, "PodGroup cannot be made, will retry");
            }
            Ended::PodGroupEnsured { gang, failed: made.is_err() }
        });
    }

    fn verify_gone(&self, key: &GroupKey, carrier: Option<ObjectKind>) {
        let (lookup, group) = (self.lookup.clone(), key.clone());
        self.spawn(key, async move {
            let gone = lookup.is_gone(&group, carrier).await.unwrap_or_else(|error| {
                tracing::warn!(%group, %error, "cannot tell whether the group is gone");
                false
            });
            Ended::Verified { gone }
        });
    }

    fn diagnose(&self, key: &GroupKey, group: Arc<Group>, missing: Vec<MissingPods>) {
        let writer = self.writer.clone();
        let makers = missing_pods::makers(&self.index.read(), &group, missing.iter().map(|missing| &*missing.role));
        self.spawn(key, async move {
            let found = missing_pods::find(writer.client(), &group, &missing, &makers).await;
            let diagnoses = found.unwrap_or_else(|error| {
                tracing::warn!(group = %group.key, %error, "cannot tell why pods do not appear");
                Vec::new()
            });
            Ended::Diagnosed { diagnoses }
        });
    }

    fn find_surge(&self, key: &GroupKey, group: &Group, surplus: Vec<Surplus>) {
        let (writer, of) = (self.writer.clone(), key.clone());
        let makers = missing_pods::makers(&self.index.read(), group, surplus.iter().map(|surplus| &*surplus.role));
        self.spawn(key, async move {
            let proven = surge::find(writer.client(), &surplus, &makers).await.unwrap_or_else(|error| {
                tracing::warn!(group = %of, %error, "cannot tell a surge from growth, will retry");
                Vec::new()
            });
            Ended::Surge { proven }
        });
    }

    fn recreate(&self, key: &GroupKey, pod: PodRef) {
        let (writer, group, permits) = (self.writer.clone(), key.clone(), self.permits.clone());
        self.spawn(key, async move {
            // The semaphore is never closed.
            let _permit = permits.acquire().await.ok();
            let deleted = writer.delete_held(&group.namespace, &pod).await;
            let failed = match deleted {
                Ok(true) => {
                    tracing::info!(%group, name = %pod.name, "deleted: it was made for another batch");
                    false
                }
                // Nobody would make it again, or it runs.
                Ok(false) => true,
                Err(error) => {
                    tracing::warn!(%group, name = %pod.name, %error, "delete failed, will retry");
                    true
                }
            };
            Ended::Tried { object: pod, failed }
        });
    }

    fn release(&self, key: &GroupKey, pod: PodRef, labels: Option<MissingLabels>) {
        let (writer, index, permits, metrics) =
            (self.writer.clone(), self.index.clone(), self.permits.clone(), self.metrics.clone());
        let group = key.clone();
        self.spawn(key, async move {
            let labels = labels.map(|of| batch_labels(&of.group, &of.role, Some(of.ordinal))).unwrap_or_default();
            // The semaphore is never closed.
            let _permit = permits.acquire().await.ok();
            let (outcome, failed) = match writer.release(&group.namespace, &pod, &labels).await {
                Ok(Released::Done(pod)) => {
                    index.write(|index| index.pod_written(&pod));
                    ("released", false)
                }
                Ok(Released::Gone) => ("gone", false),
                Err(error) => {
                    tracing::warn!(%group, name = %pod.name, %error, "write failed, will retry");
                    ("failed", true)
                }
            };
            metrics.releases.get_or_create(&Outcome { outcome }).inc();
            Ended::Tried { object: pod, failed }
        });
    }

    fn set_partition(&self, key: &GroupKey, workload: RolledWorkload, partition: u32, ends: bool) {
        let (writer, index, metrics) = (self.writer.clone(), self.index.clone(), self.metrics.clone());
        self.spawn(key, async move {
            let object = PodRef { name: workload.key.name.as_str().into(), uid: workload.uid.clone() };
            let (outcome, failed) = match writer.set_partition(&workload, partition, ends).await {
                Ok(PartitionSet::Done(seen)) => {
                    index.write(|index| index.apply_workload(None, *seen));
                    ("written", false)
                }
                Ok(PartitionSet::Changed) => ("conflict", true),
                Err(error) => {
                    tracing::warn!(workload = %workload.key, %error, "partition cannot be set, will retry");
                    ("failed", true)
                }
            };
            metrics.partitions.get_or_create(&Outcome { outcome }).inc();
            Ended::Tried { object, failed }
        });
    }

    /// What is held now, and how far the batches are. One who does not lead knows of neither.
    fn count(&self) {
        self.metrics.show_rollouts(self.reconciler.updated());
        let mut all: HashMap<HoldReason, i64> = HoldReason::ALL.iter().map(|reason| (*reason, 0)).collect();
        for (reason, pods) in self.reconciler.held() {
            *all.entry(reason).or_default() += i64::from(pods);
        }
        for (reason, pods) in all {
            self.metrics.held.get_or_create(&Reason { reason: reason.as_str() }).set(pods);
        }
        let mut all: HashMap<BatchState, i64> = BatchState::ALL.iter().map(|state| (*state, 0)).collect();
        for (state, batches) in self.reconciler.batches() {
            *all.entry(state).or_default() += i64::from(batches);
        }
        for (state, batches) in all {
            self.metrics.batches.get_or_create(&State { state: state.as_str() }).set(batches);
        }
    }
}

/// The time as Kubernetes writes it.
fn now_text() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
