//! The loop: dirty group → plan → commit → release. It decides in one task; writes run beside it, so that a slow or
//! refused one never stands between another pod and its release.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, mpsc, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::apply::{Released, Writer};
use super::events::Events;
use super::group_run::GroupRun;
use super::index::{SharedIndex, Snapshot};
use super::lookup::Lookup;
use super::metrics::{LoopMetrics, Outcome, Reason};
use crate::model::{Group, GroupKey, HoldReason};
use crate::mutate::pod::batch_labels;
use crate::plan::conditions;
use crate::plan::{Circumstances, Decision, GroupView, PodRef, decide, stamp};
use crate::rules::{World, judge_group};

/// What happens to pods that name a group which is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MissingGroup {
    /// They are released when the group has not appeared for this long.
    ReleaseAfter(Duration),
    /// They are held until it appears.
    Hold,
}

/// How the loop behaves.
#[derive(Clone, Copy, Debug)]
pub struct LoopOptions {
    /// Pods whose group never was there.
    pub missing_group: MissingGroup,
    /// How long a group must be gone before its held pods are released.
    pub vanished_grace: Duration,
    /// How long nothing may move before the group says `ProgressDeadlineExceeded`.
    pub progress_deadline: Duration,
}

/// Events of one group within this time are planned together; the first is planned at once.
const COALESCE: Duration = Duration::from_millis(10);
/// Status that differs in counts only is written this often at most.
const COUNTS_EVERY: Duration = Duration::from_secs(1);
/// Releases in flight at a time.
const RELEASES: usize = 64;

/// The loop.
pub struct GateLoop {
    index: SharedIndex,
    lookup: Lookup,
    writer: Writer,
    options: LoopOptions,
    events: Events,
    metrics: LoopMetrics,
    leader: watch::Receiver<bool>,
    groups: HashMap<GroupKey, GroupRun>,
    due: BTreeSet<(Instant, GroupKey)>,
    permits: Arc<Semaphore>,
    done: mpsc::UnboundedSender<Done>,
    results: mpsc::UnboundedReceiver<Done>,
    synced: bool,
}

/// A write or a read that has ended.
#[derive(Debug)]
enum Done {
    /// One try of a write on one object: a release, or the status of an object that controls nothing.
    Tried {
        key: GroupKey,
        object: PodRef,
        result: Result<(), kube::Error>,
    },
    Written {
        key: GroupKey,
        failed: bool,
    },
    Verified {
        key: GroupKey,
        gone: bool,
    },
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
        Self {
            index: lookup.index().clone(),
            lookup,
            writer,
            options,
            events,
            metrics,
            leader,
            groups: HashMap::new(),
            due: BTreeSet::new(),
            permits: Arc::new(Semaphore::new(RELEASES)),
            done,
            results,
            synced: false,
        }
    }

    /// Runs until `stop`.
    pub async fn run(mut self, stop: CancellationToken) {
        loop {
            let next = self.due.first().map(|(at, _)| *at);
            let timer = async {
                match next {
                    Some(at) => tokio::time::sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = stop.cancelled() => return,
                Some(done) = self.results.recv() => self.finish(done),
                () = self.index.changed() => self.take_changes(),
                Ok(()) = self.leader.changed() => self.leadership(),
                () = timer => self.pass_due(),
            }
        }
    }

    fn leads(&self) -> bool {
        *self.leader.borrow()
    }

    /// A new leader looks at everything: what the old one had committed is finished first by the plan itself.
    fn leadership(&mut self) {
        self.metrics.leader.set(i64::from(self.leads()));
        self.schedule_all();
    }

    fn schedule_all(&mut self) {
        let keys = self.index.read().keys();
        let now = Instant::now();
        keys.into_iter().for_each(|key| self.schedule(key, now));
    }

    fn take_changes(&mut self) {
        let dirty = self.index.write_quietly(super::index::Index::take_dirty);
        if !self.synced && self.index.read().is_synced() {
            self.synced = true;
            self.schedule_all();
        }
        let now = Instant::now();
        for key in dirty {
            let last = self.groups.get(&key).and_then(|run| run.last_pass);
            self.schedule(key, last.map_or(now, |last| now.max(last + COALESCE)));
        }
    }

    /// Plans a pass, or brings a later one forward.
    fn schedule(&mut self, key: GroupKey, at: Instant) {
        let run = self.groups.entry(key.clone()).or_insert_with(|| GroupRun::new(Instant::now()));
        match run.next_pass {
            Some(planned) if planned <= at => return,
            Some(planned) => _ = self.due.remove(&(planned, key.clone())),
            None => {}
        }
        run.next_pass = Some(at);
        self.due.insert((at, key));
    }

    fn pass_due(&mut self) {
        let now = Instant::now();
        while let Some((_, key)) =
            self.due.first().filter(|(at, _)| *at <= now).cloned().inspect(|due| _ = self.due.remove(due))
        {
            let snapshot = self.index.read().snapshot(&key);
            let Some(mut run) = self.groups.remove(&key) else { continue };
            run.next_pass = None;
            run.last_pass = Some(now);
            if snapshot.claims.is_none() && snapshot.pods.is_empty() && run.is_idle() {
                continue;
            }
            run.note_presence(snapshot.claims.as_ref().map(|claims| &*claims.group), now);
            self.groups.insert(key.clone(), run);
            if self.leads() && self.synced {
                self.pass(&key, &snapshot, now);
            }
        }
        self.count_held();
    }

    fn pass(&mut self, key: &GroupKey, snapshot: &Snapshot, now: Instant) {
        match &snapshot.claims {
            _ if snapshot.ignored => self.release_all(key, snapshot, now),
            Some(claims) => {
                self.pass_group(key, &claims.group, snapshot, now);
                for other in &claims.others {
                    self.say_conflicted(key, other, &claims.group);
                }
            }
            None => self.pass_missing(key, snapshot, now),
        }
    }

    fn pass_group(&mut self, key: &GroupKey, group: &Arc<Group>, snapshot: &Snapshot, now: Instant) {
        let started = std::time::Instant::now();
        let judged = judge_group(group, None, &World::default());
        let view = GroupView::build(group, &snapshot.pods);
        let Some(run) = self.groups.get_mut(key) else { return };
        let deadline = self.options.progress_deadline;
        let decision =
            decide(group, &view, Circumstances { faults: &judged.errors, stalled: run.is_stalled(deadline, now) });
        self.metrics.plan_seconds.observe(started.elapsed().as_secs_f64());
        run.note_progress(&view, &decision, now);
        run.held = decision.held.iter().map(|held| (held.reason, held.pods)).collect();
        let news = run.said.news(group, &decision);
        self.events.publish(group, news);
        let again = run.progress_due(deadline).filter(|_| !decision.held.is_empty());
        if let Some(at) = again.filter(|at| *at > now) {
            self.schedule(key.clone(), at);
        }
        for release in decision.release.iter().filter(|release| release.at_once) {
            let pod = &release.pod;
            let labels = if pod.labelled { Vec::new() } else { batch_labels(group, &pod.role, Some(pod.ordinal)) };
            self.release(key, &pod.pod, labels, now);
        }
        self.write_status(key, group, &decision, now);
    }

    /// Tells an object that another one controls its group.
    fn say_conflicted(&mut self, key: &GroupKey, other: &Arc<Group>, controls: &Group) {
        let status = stamp::stamp(conditions::conflicted(other, controls), &other.status, &now_text());
        let Some(run) = self.groups.get_mut(key) else { return };
        let uid: Arc<str> = other.carrier.uid.as_str().into();
        if status == other.status || !run.in_flight.insert(uid.clone()) {
            return;
        }
        let (writer, index, done, other, key) =
            (self.writer.clone(), self.index.clone(), self.done.clone(), other.clone(), key.clone());
        tokio::spawn(async move {
            let result = writer.write_status(&other, &status).await.map(|written| {
                written.into_iter().for_each(|written| index.write(|index| index.apply_carrier(None, written)));
            });
            let object = PodRef { name: other.carrier.name.as_str().into(), uid };
            _ = done.send(Done::Tried { key, object, result });
        });
    }

    /// Commits released counts at once, and shows counts at most once a second.
    fn write_status(&mut self, key: &GroupKey, group: &Arc<Group>, decision: &Decision, now: Instant) {
        let status = stamp::stamp(decision.status.clone(), &group.status, &now_text());
        if status == group.status || group.deleting {
            return;
        }
        let urgent = decision.needs_commit(&group.status) || stamp::differs_in_substance(&status, &group.status);
        let Some(run) = self.groups.get_mut(key) else { return };
        let allowed = run.status_due(if urgent { Duration::ZERO } else { COUNTS_EVERY });
        if run.writing {
            return;
        }
        if let Some(at) = allowed.filter(|at| *at > now) {
            return self.schedule(key.clone(), at);
        }
        run.writing = true;
        run.last_write = Some(now);
        let (writer, lookup, done, group, key, metrics) = (
            self.writer.clone(),
            self.lookup.clone(),
            self.done.clone(),
            group.clone(),
            key.clone(),
            self.metrics.clone(),
        );
        tokio::spawn(async move {
            let (outcome, failed) = match writer.write_status(&group, &status).await {
                Ok(Some(written)) => {
                    lookup.index().write(|index| index.apply_carrier(None, written));
                    ("written", false)
                }
                Ok(None) => {
                    // Somebody was faster, or the object is gone: plan again from what is there now.
                    if let Err(error) = lookup.read_live(&key).await {
                        tracing::warn!(group = %key, %error, "group cannot be read after a conflict");
                    }
                    ("conflict", false)
                }
                Err(error) => {
                    tracing::warn!(group = %key, %error, "status cannot be written");
                    ("failed", true)
                }
            };
            metrics.status_writes.get_or_create(&Outcome { outcome }).inc();
            _ = done.send(Done::Written { key, failed });
        });
    }

    /// The group is not there: its pods wait, and are released when a live read says so, not before (S7).
    fn pass_missing(&mut self, key: &GroupKey, snapshot: &Snapshot, now: Instant) {
        let held = u32::try_from(snapshot.pods.iter().filter(|pod| pod.held).count()).unwrap_or(u32::MAX);
        let Some(run) = self.groups.get_mut(key) else { return };
        run.held = vec![(HoldReason::GroupMissing, held)];
        if held == 0 {
            return;
        }
        if run.verified_gone {
            // What comes later waits its own time.
            run.verified_gone = false;
            run.missing_since = Some(now);
            return self.release_all(key, snapshot, now);
        }
        let grace = match (run.carrier, self.options.missing_group) {
            (Some(_), _) => self.options.vanished_grace,
            (None, MissingGroup::ReleaseAfter(time)) => time,
            (None, MissingGroup::Hold) => return,
        };
        let since = *run.missing_since.get_or_insert(now);
        if since + grace > now {
            return self.schedule(key.clone(), since + grace);
        }
        if !std::mem::replace(&mut run.verifying, true) {
            let (lookup, carrier, key, done) = (self.lookup.clone(), run.carrier, key.clone(), self.done.clone());
            tokio::spawn(async move {
                let gone = lookup.is_gone(&key, carrier).await.unwrap_or_else(|error| {
                    tracing::warn!(group = %key, %error, "cannot tell whether the group is gone");
                    false
                });
                _ = done.send(Done::Verified { key, gone });
            });
        }
    }

    fn release_all(&mut self, key: &GroupKey, snapshot: &Snapshot, now: Instant) {
        for pod in snapshot.pods.iter().filter(|pod| pod.held) {
            self.release(key, &pod.pod, Vec::new(), now);
        }
    }

    fn release(&mut self, key: &GroupKey, pod: &PodRef, labels: Vec<(&'static str, String)>, now: Instant) {
        let Some(run) = self.groups.get_mut(key) else { return };
        if let Some(at) = run.retry_due(&pod.uid).filter(|at| *at > now) {
            return self.schedule(key.clone(), at);
        }
        if !run.in_flight.insert(pod.uid.clone()) {
            return;
        }
        let (writer, index, permits, done, key, pod) = (
            self.writer.clone(),
            self.index.clone(),
            self.permits.clone(),
            self.done.clone(),
            key.clone(),
            pod.clone(),
        );
        let metrics = self.metrics.clone();
        tokio::spawn(async move {
            // The semaphore is never closed.
            let _permit = permits.acquire().await.ok();
            let (outcome, result) = match writer.release(&key.namespace, &pod, &labels).await {
                Ok(Released::Done(pod)) => {
                    index.write(|index| index.pod_written(&pod));
                    ("released", Ok(()))
                }
                Ok(Released::Gone) => ("gone", Ok(())),
                Err(error) => ("failed", Err(error)),
            };
            metrics.releases.get_or_create(&Outcome { outcome }).inc();
            _ = done.send(Done::Tried { key, object: pod, result });
        });
    }

    fn finish(&mut self, done: Done) {
        let now = Instant::now();
        match done {
            Done::Tried { key, object, result } => {
                let Some(run) = self.groups.get_mut(&key) else { return };
                run.in_flight.remove(&object.uid);
                match result {
                    Ok(()) => run.succeeded(&object.uid),
                    Err(error) => {
                        let at = run.failed(&object.uid, now);
                        tracing::warn!(group = %key, name = %object.name, %error, "write failed, will retry");
                        self.schedule(key, at);
                    }
                }
            }
            Done::Written { key, failed } => {
                let Some(run) = self.groups.get_mut(&key) else { return };
                run.writing = false;
                run.write_failures = if failed { run.write_failures + 1 } else { 0 };
                self.schedule(key, now);
            }
            Done::Verified { key, gone } => {
                let Some(run) = self.groups.get_mut(&key) else { return };
                run.verifying = false;
                run.verified_gone = gone;
                if !gone {
                    // The time counts from when all could be seen again.
                    run.missing_since = Some(now);
                }
                self.schedule(key, now);
            }
        }
    }

    fn count_held(&self) {
        let mut all: HashMap<HoldReason, i64> = HoldReason::ALL.iter().map(|reason| (*reason, 0)).collect();
        for (reason, pods) in self.groups.values().flat_map(|run| &run.held) {
            *all.entry(*reason).or_default() += i64::from(*pods);
        }
        for (reason, pods) in all {
            self.metrics.held.get_or_create(&Reason { reason: reason.as_str() }).set(pods);
        }
    }
}

/// The time as Kubernetes writes it.
fn now_text() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
