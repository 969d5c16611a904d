//! Metrics of the loop.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use crate::model::GroupKey;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Outcome {
    pub outcome: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Reason {
    /// A `HoldReason`.
    pub reason: &'static str,
}

/// State of a batch, a recovery or a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct State {
    /// A `BatchState`, the phase of a recovery, or the state of a segment.
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
    /// Pods released, by outcome: released, gone, failed.
    pub releases: Family<Outcome, Counter>,
    /// Status writes, by outcome: written, dropped, conflict, gone, failed.
    pub status_writes: Family<Outcome, Counter>,
    /// Events, by outcome: written, failed, dropped, limited, gone.
    pub events: Family<Outcome, Counter>,
    /// Pods held now, by reason.
    pub held: Family<Reason, Gauge>,
    /// Groups and PodGroups that hold something now, by reason: pods, rollouts, or batches without pods.
    pub held_groups: Family<Reason, Gauge>,
    /// Pods that run now although the group they were held for is missing.
    pub uncoordinated: Gauge,
    /// Batches of all groups now, by state.
    pub batches: Family<State, Gauge>,
    /// Groups with the reason ProgressDeadlineExceeded now.
    pub stalled: Gauge,
    /// Seconds from the event that lets a batch go to its last release.
    pub batch_release_seconds: Histogram,
    /// Seconds of one decision for one group.
    pub plan_seconds: Histogram,
    /// 1 on the replica that releases.
    pub leader: Gauge,
    /// Partitions set, by outcome: written, conflict, failed.
    pub partitions: Family<Outcome, Counter>,
    /// Workloads scaled, by outcome: written, conflict, failed.
    pub scales: Family<Outcome, Counter>,
    /// Pods deleted for a recovery, by outcome: deleted, failed.
    pub recovery_deletions: Family<Outcome, Counter>,
    /// Batches of all groups that have lost a replica, by phase of their recovery.
    pub recoveries: Family<State, Gauge>,
    /// Segments of all groups whose workloads are scaled together, by state.
    pub segments: Family<State, Gauge>,
    /// Limit of concurrent writes of pods.
    pub write_limit: Gauge,
    /// Entries kept in memory, by map.
    pub entries: Family<Of, Gauge>,
    /// Updated share of each role with an open rollout, 0 to 1.
    updated: Family<Rolling, Share>,
    /// Largest difference of the updated shares of two roles of a group, 0 to 1.
    skew: Family<Rolling, Share>,
}

impl LoopMetrics {
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self {
            releases: Family::default(),
            status_writes: Family::default(),
            events: Family::default(),
            held: Family::default(),
            held_groups: Family::default(),
            uncoordinated: Gauge::default(),
            batches: Family::default(),
            stalled: Gauge::default(),
            batch_release_seconds: Histogram::new(RELEASE_BUCKETS),
            plan_seconds: Histogram::new([1e-5, 1e-4, 5e-4, 1e-3, 5e-3, 1e-2, 5e-2, 0.1, 0.5]),
            leader: Gauge::default(),
            partitions: Family::default(),
            scales: Family::default(),
            recovery_deletions: Family::default(),
            recoveries: Family::default(),
            segments: Family::default(),
            write_limit: Gauge::default(),
            entries: Family::default(),
            updated: Family::default(),
            skew: Family::default(),
        };
        registry.register("releases", "Pods released, by outcome", metrics.releases.clone());
        registry.register("status_writes", "Status writes, by outcome", metrics.status_writes.clone());
        registry.register("events", "Events, by outcome", metrics.events.clone());
        registry.register("held_pods", "Pods that are held now, by reason", metrics.held.clone());
        registry.register(
            "held_groups",
            "Groups and PodGroups in which something is held now, by reason",
            metrics.held_groups.clone(),
        );
        registry.register(
            "uncoordinated_pods",
            "Pods that run although the group is not there for which they were held",
            metrics.uncoordinated.clone(),
        );
        registry.register("batches", "Batches of all groups now, by state", metrics.batches.clone());
        registry.register("stalled_groups", "Groups in which nothing has moved for too long", metrics.stalled.clone());
        registry.register(
            "batch_release_seconds",
            "From the event that lets a batch go to the end of the last release of its pods",
            metrics.batch_release_seconds.clone(),
        );
        registry.register("plan_seconds", "Time of one decision for one group", metrics.plan_seconds.clone());
        registry.register("partitions", "Partitions set, by outcome", metrics.partitions.clone());
        registry.register("scales", "Workloads scaled, by outcome", metrics.scales.clone());
        registry.register(
            "recovery_deletions",
            "Pods deleted since their batch is made anew, by outcome",
            metrics.recovery_deletions.clone(),
        );
        registry.register(
            "recoveries",
            "Batches that are made anew, were within the window, or are not for now or for good, by state",
            metrics.recoveries.clone(),
        );
        registry.register(
            "segments",
            "Segments of groups whose workloads are scaled together: those that are wanted, released, there, taken away, deferred",
            metrics.segments.clone(),
        );
        registry.register("rollout_updated_ratio", "Updated share of a role in a rollout", metrics.updated.clone());
        registry.register("rollout_skew", "Difference of the updated shares of a group", metrics.skew.clone());
        registry.register(
            "write_limit",
            "Writes of pods that may be in flight at a time: as many as the API server takes",
            metrics.write_limit.clone(),
        );
        registry.register(
            "loop_entries",
            "Entries of what the loop keeps in memory, by what they are of",
            metrics.entries.clone(),
        );
        registry.register("leader", "1 on the replica that releases", metrics.leader.clone());
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
            (&self.recovery_deletions, &["deleted", "failed"]),
        ];
        for (family, outcomes) in outcomes {
            outcomes.iter().for_each(|outcome| _ = family.get_or_create(&Outcome { outcome }));
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
