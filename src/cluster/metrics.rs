//! Metrics of the loop.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Metric, Registry};

use crate::model::GroupKey;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Outcome {
    pub outcome: &'static str,
}

/// A deletion of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Deletion {
    /// One of [`DELETED_FOR`].
    pub why: &'static str,
    pub outcome: &'static str,
}

/// The causes for which running pods are deleted: a batch that is made anew, a segment that is updated, a rollout that goes back.
pub const DELETED_FOR: [&str; 3] = ["recovery", "update", "rollback"];

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Reason {
    /// A `HoldReason`.
    pub reason: &'static str,
}

/// State of a batch, a recovery, a request for nodes or a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct State {
    /// A `BatchState`, the phase of a recovery or a request, or the state of a segment.
    pub state: &'static str,
}

/// A map kept in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Of {
    /// Kind of its entries.
    pub of: &'static str,
}

/// Upper bounds in seconds for the release of a batch: hundreds of writes at most.
const RELEASE_BUCKETS: [f64; 12] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0];
/// Upper bounds in seconds for nodes that were requested: minutes.
const REQUEST_BUCKETS: [f64; 9] = [5.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1200.0, 3600.0];
/// A group with an open rollout.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Rolling {
    pub namespace: String,
    pub group: String,
    /// A role of the group; empty for all of its roles.
    pub role: String,
}

type Share = Gauge<f64, AtomicU64>;

#[derive(Clone, Debug)]
pub struct LoopMetrics {
    pub releases: Family<Outcome, Counter>,
    pub status_writes: Family<Outcome, Counter>,
    pub events: Family<Outcome, Counter>,
    pub held: Family<Reason, Gauge>,
    pub held_groups: Family<Reason, Gauge>,
    pub uncoordinated: Gauge,
    pub batches: Family<State, Gauge>,
    pub stalled: Gauge,
    pub rollouts_paused: Gauge,
    pub rollouts_rolled_back: Gauge,
    pub batch_release_seconds: Histogram,
    pub plan_seconds: Histogram,
    pub leader: Gauge,
    pub partitions: Family<Outcome, Counter>,
    pub scales: Family<Outcome, Counter>,
    pub recovery_deletions: Family<Deletion, Counter>,
    pub recoveries: Family<State, Gauge>,
    pub requests: RequestMetrics,
    pub segments: Family<State, Gauge>,
    pub write_limit: Gauge,
    pub entries: Family<Of, Gauge>,
    updated: Family<Rolling, Share>,
    skew: Family<Rolling, Share>,
}

/// Metrics of requests for nodes.
#[derive(Clone, Debug)]
pub struct RequestMetrics {
    pub made: Family<Outcome, Counter>,
    pub now: Family<State, Gauge>,
    pub seconds: Histogram,
}

impl RequestMetrics {
    fn register(registry: &mut Registry) -> Self {
        Self {
            made: shown(
                registry,
                "node_requests",
                "Requests for nodes for batches that fit nowhere: made, given up, and those after which the batch was released",
                Family::default(),
            ),
            now: shown(
                registry,
                "node_requests_now",
                "Batches for which nodes are requested now, or were in vain, by state",
                Family::default(),
            ),
            seconds: shown(
                registry,
                "node_request_seconds",
                "From a request for nodes to the release of its batch",
                Histogram::new(REQUEST_BUCKETS),
            ),
        }
    }
}

impl LoopMetrics {
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self {
            releases: shown(registry, "releases", "Pods released, by outcome", Family::default()),
            status_writes: shown(registry, "status_writes", "Status writes, by outcome", Family::default()),
            events: shown(registry, "events", "Events, by outcome", Family::default()),
            held: shown(registry, "held_pods", "Pods that are held now, by reason", Family::default()),
            held_groups: shown(
                registry,
                "held_groups",
                "Groups and PodGroups in which something is held now, by reason",
                Family::default(),
            ),
            uncoordinated: shown(
                registry,
                "uncoordinated_pods",
                "Pods that run although the group is not there for which they were held",
                Gauge::default(),
            ),
            batches: shown(registry, "batches", "Batches of all groups now, by state", Family::default()),
            stalled: shown(
                registry,
                "stalled_groups",
                "Groups in which nothing has moved for too long",
                Gauge::default(),
            ),
            rollouts_paused: shown(
                registry,
                "rollouts_paused",
                "Rollouts that are at a pause of their steps now",
                Gauge::default(),
            ),
            rollouts_rolled_back: shown(
                registry,
                "rollouts_rolled_back",
                "Rollouts that went back and whose templates were not edited since",
                Gauge::default(),
            ),
            batch_release_seconds: shown(
                registry,
                "batch_release_seconds",
                "From the event that lets a batch go to the end of the last release of its pods",
                Histogram::new(RELEASE_BUCKETS),
            ),
            plan_seconds: shown(
                registry,
                "plan_seconds",
                "Time of one decision for one group",
                Histogram::new([1e-5, 1e-4, 5e-4, 1e-3, 5e-3, 1e-2, 5e-2, 0.1, 0.5]),
            ),
            partitions: shown(registry, "partitions", "Partitions set, by outcome", Family::default()),
            scales: shown(registry, "scales", "Workloads scaled, by outcome", Family::default()),
            recovery_deletions: shown(
                registry,
                "recovery_deletions",
                "Pods deleted so that they are made anew, by cause and outcome",
                Family::default(),
            ),
            recoveries: shown(
                registry,
                "recoveries",
                "Batches that are made anew, were within the window, or are not for now or for good, by state",
                Family::default(),
            ),
            requests: RequestMetrics::register(registry),
            segments: shown(
                registry,
                "segments",
                "Segments of groups whose workloads are scaled together: those that are wanted, released, there, taken away, deferred",
                Family::default(),
            ),
            updated: shown(
                registry,
                "rollout_updated_ratio",
                "Updated share of a role in a rollout",
                Family::default(),
            ),
            skew: shown(registry, "rollout_skew", "Difference of the updated shares of a group", Family::default()),
            write_limit: shown(
                registry,
                "write_limit",
                "Writes of pods that may be in flight at a time: as many as the API server takes",
                Gauge::default(),
            ),
            entries: shown(
                registry,
                "loop_entries",
                "Entries of what the loop keeps in memory, by what they are of",
                Family::default(),
            ),
            leader: shown(registry, "leader", "1 on the replica that releases", Gauge::default()),
        };
        metrics.begin_counting();
        metrics
    }

    /// Initializes the counters of outcomes, so that an alert sees the first failure.
    fn begin_counting(&self) {
        let outcomes: [(_, &[&'static str]); 6] = [
            (&self.releases, &["released", "gone", "failed"]),
            (&self.status_writes, &["written", "dropped", "conflict", "gone", "failed"]),
            (&self.events, &["written", "failed", "dropped", "limited", "gone"]),
            (&self.partitions, &["written", "conflict", "failed"]),
            (&self.scales, &["written", "conflict", "failed"]),
            (&self.requests.made, &["requested", "given_up", "whole"]),
        ];
        for (family, outcomes) in outcomes {
            outcomes.iter().for_each(|outcome| _ = family.get_or_create(&Outcome { outcome }));
        }
        for why in DELETED_FOR {
            ["deleted", "failed"]
                .iter()
                .for_each(|outcome| _ = self.recovery_deletions.get_or_create(&Deletion { why, outcome }));
        }
    }

    /// Shows the open rollouts of all groups, by role: updated and desired replicas. Drops rollouts that are over.
    pub fn show_rollouts<'a>(&self, groups: impl Iterator<Item = (&'a GroupKey, &'a BTreeMap<String, (u32, u32)>)>) {
        self.updated.clear();
        self.skew.clear();
        for (key, roles) in groups {
            let labels = |role: &str| {
                let (namespace, group) = (key.namespace.to_string(), key.name.to_string());
                Rolling { namespace, group, role: role.to_owned() }
            };
            let share = |(updated, desired): &(u32, u32)| f64::from(*updated) / f64::from((*desired).max(1));
            for (role, counts) in roles {
                self.updated.get_or_create(&labels(role)).set(share(counts));
            }
            let shares = || roles.values().map(share);
            let (low, high) = (shares().fold(1.0, f64::min), shares().fold(0.0, f64::max));
            self.skew.get_or_create(&labels("")).set((high - low).max(0.0));
        }
    }
}

fn shown<M: Metric + Clone>(registry: &mut Registry, name: &str, help: &str, metric: M) -> M {
    registry.register(name, help, metric.clone());
    metric
}
