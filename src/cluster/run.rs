//! The loop: dirty group → plan → commit → release. It decides in one task. Writes run beside it, so that a slow or refused
//! write never delays the release of another pod.

use std::collections::HashMap;
use std::time::Duration;

use futures::future::OptionFuture;
use prometheus_client::metrics::gauge::Gauge;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::cluster::capacity::SharedCapacity;
use crate::cluster::index::SharedIndex;
use crate::cluster::metrics::{By, LoopMetrics, count};
use crate::cluster::write::executor::Executor;
use crate::model::{GroupKey, HoldReason};
use crate::plan::elastic::SegmentCounts;
use crate::plan::provision::entry;
use crate::plan::reconcile::decided::Decided;
use crate::plan::reconcile::request_events::RequestNews;
use crate::plan::recovery::entry::Phase;
use crate::plan::{Action, BatchState, Ended, Reconciler, Subject, Uptime};

pub use crate::plan::{IncompleteBatch, LoopOptions, MissingGroup};

/// Shortest interval between two counts over all groups.
const COUNT_EVERY: Duration = Duration::from_millis(250);

pub struct GateLoop {
    index: SharedIndex,
    executor: Executor,
    metrics: LoopMetrics,
    leader: watch::Receiver<bool>,
    /// How long nobody had led when this replica began to.
    unled: watch::Receiver<Option<Duration>>,
    /// Nodes and pods for placement; `None` where nothing is placed.
    capacity: Option<SharedCapacity>,
    reconciler: Reconciler,
    started: Instant,
    /// The time of the last count over all groups, and whether anything was decided since.
    counted: Option<Uptime>,
    is_uncounted: bool,
    done: mpsc::UnboundedSender<(GroupKey, Ended)>,
    results: mpsc::UnboundedReceiver<(GroupKey, Ended)>,
}

impl GateLoop {
    pub fn new(
        executor: Executor,
        options: LoopOptions,
        metrics: LoopMetrics,
        leader: watch::Receiver<bool>,
        unled: watch::Receiver<Option<Duration>>,
        capacity: Option<SharedCapacity>,
    ) -> Self {
        let (done, results) = mpsc::unbounded_channel();
        let mut reconciler = Reconciler::new(options);
        reconciler.nobody_led(*unled.borrow());
        reconciler.lead(*leader.borrow(), [], Uptime::ZERO);
        Self {
            index: executor.index().clone(),
            executor,
            metrics,
            leader,
            unled,
            capacity,
            reconciler,
            started: Instant::now(),
            counted: None,
            is_uncounted: false,
            done,
            results,
        }
    }

    pub async fn run(mut self, stop: CancellationToken) {
        loop {
            let count = self.count_due();
            let next = self.reconciler.next().into_iter().chain(count).min().map(|at| self.started + at);
            let timer = OptionFuture::from(next.map(sleep_until));
            let capacity = self.capacity.clone();
            let room = OptionFuture::from(capacity.as_ref().map(SharedCapacity::changed));
            tokio::select! {
                () = stop.cancelled() => return,
                Some((key, ended)) = self.results.recv() => self.ended(key, ended),
                () = self.index.changed() => self.take_changes(),
                Some(()) = room => self.take_room(),
                Ok(()) = self.leader.changed() => self.leadership(),
                Some(()) = timer => self.pass_due(),
            }
        }
    }

    fn now(&self) -> Uptime {
        self.started.elapsed()
    }

    fn leadership(&mut self) {
        let leads = *self.leader.borrow();
        self.metrics.leader.set(i64::from(leads));
        let keys = self.keys();
        self.reconciler.nobody_led(*self.unled.borrow());
        self.reconciler.lead(leads, keys, self.now());
    }

    /// Returns all groups, and the PodGroups that place pods.
    fn keys(&self) -> Vec<GroupKey> {
        let index = self.index.read();
        index.keys().into_iter().chain(index.tree_keys()).collect()
    }

    fn ended(&mut self, key: GroupKey, ended: Ended) {
        self.reconciler.ended(key, ended, self.now());
        self.time_releases();
    }

    fn time_releases(&mut self) {
        for time in self.reconciler.take_released() {
            self.metrics.batch_release_seconds.observe(time.as_secs_f64());
        }
        for news in self.reconciler.take_requests() {
            count(&self.metrics.requests_made, news.as_str());
            if let RequestNews::Whole(time) = news {
                self.metrics.request_seconds.observe(time.as_secs_f64());
            }
        }
    }

    fn take_changes(&mut self) {
        let now = self.now();
        let (dirty, redefined) = self.index.write_quietly(|index| (index.take_dirty(), index.take_redefined()));
        if redefined {
            self.reconciler.redefined(now);
        }
        if !self.reconciler.is_synced() && self.index.read().is_synced() {
            let keys = self.keys();
            self.reconciler.sync(keys, now);
        }
        self.reconciler.changed(dirty, now);
    }

    fn take_room(&mut self) {
        if let Some(capacity) = &self.capacity {
            self.reconciler.capacity_changed(capacity.freed(), self.started.elapsed());
        }
    }

    fn pass_due(&mut self) {
        let now = self.now();
        while let Some(key) = self.reconciler.take_due(now) {
            let actions = if let Some(tree) = key.pod_group() {
                let snapshot = self.index.read().tree_snapshot(&tree);
                self.pass(&key, &snapshot, now)
            } else {
                let started = Instant::now();
                let snapshot = self.index.read().snapshot(&key);
                let actions = self.pass(&key, &snapshot, now);
                if snapshot.claims.is_some() {
                    self.metrics.plan_seconds.observe(started.elapsed().as_secs_f64());
                }
                actions
            };
            actions.into_iter().for_each(|action| self.act(&key, action));
        }
        if let Some(capacity) = &self.capacity {
            capacity.want(self.reconciler.needs_room());
        }
        self.time_releases();
        self.is_uncounted = true;
        if self.count_due().is_some_and(|at| at <= self.now()) {
            self.count();
        }
    }

    /// Returns the time of the next count over all groups. A change of one group must not cost a scan of thousands each time.
    fn count_due(&self) -> Option<Uptime> {
        self.is_uncounted.then(|| self.counted.map_or(Uptime::ZERO, |last| last + COUNT_EVERY))
    }

    fn pass<'a>(&mut self, key: &GroupKey, subject: impl Into<Subject<'a>>, now: Uptime) -> Vec<Action> {
        let (reconciler, now_text) = (&mut self.reconciler, now_text());
        match &self.capacity {
            Some(capacity) => capacity.look(|sight| reconciler.pass(key, subject, Some(sight), now, &now_text)),
            None => reconciler.pass(key, subject, None, now, &now_text),
        }
    }

    fn act(&self, key: &GroupKey, action: Action) {
        // Events are sent in the order in which they were found, and nothing waits for them.
        if self.executor.publish(key, &action) {
            return;
        }
        let (executor, done, key) = (self.executor.clone(), self.done.clone(), key.clone());
        tokio::spawn(async move {
            if let Some(ended) = executor.carry_out(&key, action).await {
                _ = done.send((key, ended));
            }
        });
    }

    /// Sets the gauges of held pods and groups and of batches. A replica that does not lead knows neither.
    fn count(&mut self) {
        (self.counted, self.is_uncounted) = (Some(self.now()), false);
        let metrics = &self.metrics;
        let updated = self.reconciler.decided().map(|(key, decided)| (key, &decided.updated));
        metrics.show_rollouts(updated.filter(|(_, updated)| !updated.is_empty()));
        let decided = || self.reconciler.decided().map(|(_, decided)| decided);
        let sum = |of: fn(&Decided) -> u32| i64::from(decided().map(of).fold(0, u32::saturating_add));
        let held = self.reconciler.held().map(|(reason, pods)| (reason.as_str(), pods));
        show(&metrics.held, "reason", HoldReason::WORDS, held);
        let reasons = decided().flat_map(Decided::reasons).map(|reason| (reason.as_str(), 1));
        show(&metrics.held_groups, "reason", HoldReason::WORDS, reasons);
        metrics.uncoordinated.set(sum(|decided| decided.uncoordinated));
        metrics.stalled.set(sum(|decided| decided.stalled.into()));
        metrics.rollouts_paused.set(sum(|decided| decided.rollouts_paused));
        metrics.rollouts_rolled_back.set(sum(|decided| decided.rollouts_rolled_back));
        let batches = decided().flat_map(|decided| &decided.batches).map(|(state, batches)| (state.as_str(), *batches));
        show(&metrics.batches, "state", BatchState::WORDS, batches);
        let recoveries = decided().flat_map(|decided| &decided.recoveries).map(|phase| (phase.as_str(), 1));
        show(&metrics.recoveries, "state", Phase::WORDS, recoveries);
        let requests = decided().flat_map(|decided| &decided.requests).map(|phase| (phase.as_str(), 1));
        show(&metrics.requests, "state", entry::Phase::WORDS, requests);
        metrics.recoveries.get_or_create(&[("state", "Paused")]).set(sum(|decided| decided.paused));
        let of_segments = decided().map(|decided| decided.segments).fold([0_i64; 5], |sums, counts| {
            let SegmentCounts { wanted, released, present, draining, deferred } = counts;
            let all = [wanted, released, present, draining, deferred];
            std::array::from_fn(|at| sums.get(at).copied().unwrap_or(0) + i64::from(all.get(at).copied().unwrap_or(0)))
        });
        for (state, segments) in ["wanted", "released", "present", "draining", "deferred"].iter().zip(of_segments) {
            metrics.segments.get_or_create(&[("state", *state)]).set(segments);
        }
        for (of, entries) in self.reconciler.sizes() {
            self.metrics.entries.get_or_create(&[("of", of)]).set(i64::try_from(entries).unwrap_or(i64::MAX));
        }
    }
}

/// Shows the sum of what was counted under each word, 0 for a word under which nothing was.
fn show<L>(
    family: &By<Gauge>,
    label: &'static str,
    words: &[(&'static str, L)],
    counted: impl Iterator<Item = (&'static str, u32)>,
) {
    let mut sums: HashMap<_, i64> = words.iter().map(|(word, _)| (*word, 0)).collect();
    counted.for_each(|(word, number)| *sums.entry(word).or_default() += i64::from(number));
    sums.into_iter().for_each(|(word, sum)| _ = family.get_or_create(&[(label, word)]).set(sum));
}

/// Returns the current time as Kubernetes writes it.
fn now_text() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
