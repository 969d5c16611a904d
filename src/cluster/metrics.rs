//! Metrics of the loop, and of requests to the API server.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::AtomicU64;

use http::{Method, StatusCode};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{
    DescriptorEncoder, EncodeGaugeValue, EncodeLabelSet, EncodeLabelValue, EncodeMetric,
};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Metric, Registry, Unit};

use crate::model::GroupKey;

/// Metrics by labels whose names and values are words of ours.
pub type By<M, const LABELS: usize = 1> = Family<[(&'static str, &'static str); LABELS], M>;

/// The causes for which running pods are deleted: a batch that is made anew, a segment that is updated, a rollout that goes back.
pub const DELETED_FOR: [&str; 3] = ["recovery", "update", "rollback"];

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
    pub releases: By<Counter>,
    pub status_writes: By<Counter>,
    pub events: By<Counter>,
    pub held: By<Gauge>,
    pub held_groups: By<Gauge>,
    pub uncoordinated: Gauge,
    pub batches: By<Gauge>,
    pub stalled: Gauge,
    pub rollouts_paused: Gauge,
    pub rollouts_rolled_back: Gauge,
    pub batch_release_seconds: Histogram,
    pub plan_seconds: Histogram,
    pub leader: Gauge,
    pub partitions: By<Counter>,
    pub scales: By<Counter>,
    pub recovery_deletions: By<Counter, 2>,
    pub recoveries: By<Gauge>,
    pub requests_made: By<Counter>,
    pub requests: By<Gauge>,
    pub request_seconds: Histogram,
    pub segments: By<Gauge>,
    pub write_limit: Gauge,
    pub entries: By<Gauge>,
    updated: Family<Rolling, Share>,
    skew: Family<Rolling, Share>,
}

impl LoopMetrics {
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self {
            releases: shown(registry, "releases", "Pods released, by outcome"),
            status_writes: shown(registry, "status_writes", "Status writes, by outcome"),
            events: shown(registry, "events", "Events, by outcome"),
            held: shown(registry, "held_pods", "Pods that are held now, by reason"),
            held_groups: shown(
                registry,
                "held_groups",
                "Groups and PodGroups in which something is held now, by reason",
            ),
            uncoordinated: shown(
                registry,
                "uncoordinated_pods",
                "Pods that run although the group is not there for which they were held",
            ),
            batches: shown(registry, "batches", "Batches of all groups now, by state"),
            stalled: shown(registry, "stalled_groups", "Groups in which nothing has moved for too long"),
            rollouts_paused: shown(registry, "rollouts_paused", "Rollouts that are at a pause of their steps now"),
            rollouts_rolled_back: shown(
                registry,
                "rollouts_rolled_back",
                "Rollouts that went back and whose templates were not edited since",
            ),
            batch_release_seconds: shown_as(
                registry,
                "batch_release_seconds",
                "From the event that lets a batch go to the end of the last release of its pods",
                None,
                Histogram::new(RELEASE_BUCKETS),
            ),
            plan_seconds: shown_as(
                registry,
                "plan_seconds",
                "Time of one decision for one group",
                None,
                Histogram::new([1e-5, 1e-4, 5e-4, 1e-3, 5e-3, 1e-2, 5e-2, 0.1, 0.5]),
            ),
            partitions: shown(registry, "partitions", "Partitions set, by outcome"),
            scales: shown(registry, "scales", "Workloads scaled, by outcome"),
            recovery_deletions: shown(
                registry,
                "recovery_deletions",
                "Pods deleted so that they are made anew, by cause and outcome",
            ),
            recoveries: shown(
                registry,
                "recoveries",
                "Batches that are made anew, were within the window, or are not for now or for good, by state",
            ),
            requests_made: shown(
                registry,
                "node_requests",
                "Requests for nodes for batches that fit nowhere: made, given up, and those after which the batch was released",
            ),
            requests: shown(
                registry,
                "node_requests_now",
                "Batches for which nodes are requested now, or were in vain, by state",
            ),
            request_seconds: shown_as(
                registry,
                "node_request_seconds",
                "From a request for nodes to the release of its batch",
                None,
                Histogram::new(REQUEST_BUCKETS),
            ),
            segments: shown(
                registry,
                "segments",
                "Segments of groups whose workloads are scaled together: those that are wanted, released, there, taken away, deferred",
            ),
            updated: shown(registry, "rollout_updated_ratio", "Updated share of a role in a rollout"),
            skew: shown(registry, "rollout_skew", "Difference of the updated shares of a group"),
            write_limit: shown(
                registry,
                "write_limit",
                "Writes of pods that may be in flight at a time: as many as the API server takes",
            ),
            entries: shown(registry, "loop_entries", "Entries of what the loop keeps in memory, by what they are of"),
            leader: shown(registry, "leader", "1 on the replica that releases"),
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
            (&self.requests_made, &["requested", "given_up", "whole"]),
        ];
        for (family, outcomes) in outcomes {
            outcomes.iter().for_each(|outcome| _ = family.get_or_create(&[("outcome", *outcome)]));
        }
        for why in DELETED_FOR {
            for outcome in ["deleted", "failed"] {
                _ = self.recovery_deletions.get_or_create(&[("why", why), ("outcome", outcome)]);
            }
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

/// Registers a metric that begins with nothing.
pub fn shown<M: Metric + Clone + Default>(registry: &mut Registry, name: &str, help: &str) -> M {
    shown_as(registry, name, help, None, M::default())
}

/// Registers a metric.
pub fn shown_as<M: Metric + Clone>(
    registry: &mut Registry,
    name: &str,
    help: &str,
    unit: Option<Unit>,
    metric: M,
) -> M {
    match unit {
        Some(unit) => registry.register_with_unit(name, help, unit, metric.clone()),
        None => registry.register(name, help, metric.clone()),
    }
    metric
}

/// A family of gauges that are read when they are asked for.
pub struct Gauges<F> {
    pub name: &'static str,
    pub help: &'static str,
    pub label: &'static str,
    /// Returns the values by the values of the label.
    pub read: F,
}

impl<F> fmt::Debug for Gauges<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl<F, L, V> Collector for Gauges<F>
where
    F: Fn() -> Vec<(L, V)> + Send + Sync + 'static,
    L: EncodeLabelValue,
    V: EncodeGaugeValue,
{
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let mut family = encoder.encode_descriptor(self.name, self.help, None, MetricType::Gauge)?;
        for (word, value) in (self.read)() {
            ConstGauge::new(value).encode(family.encode_family(&[(self.label, word)])?)?;
        }
        Ok(())
    }
}

/// Counts what has ended, by its outcome.
pub fn count(family: &By<Counter>, outcome: &'static str) {
    family.get_or_create(&[("outcome", outcome)]).inc();
}

/// Code of requests without an answer.
pub const NO_ANSWER: &str = "none";

/// Counter of requests to the API server. A missing right or throttling shows here first. Clones count into the same numbers.
#[derive(Clone, Debug, Default)]
pub struct ApiRequests(Family<[(&'static str, String); 2], Counter>);

impl ApiRequests {
    pub fn register(registry: &mut Registry) -> Self {
        let help = "Requests to the API server by HTTP method and status; \"none\" if no answer came";
        let requests = Self(shown(registry, "api_requests", help));
        // Initialized, so that an alert sees the first one.
        for method in [Method::GET, Method::POST, Method::PATCH] {
            for code in [StatusCode::FORBIDDEN, StatusCode::TOO_MANY_REQUESTS] {
                _ = requests.of(method.as_str(), code.as_str());
            }
        }
        requests
    }

    pub fn begin(&self, method: &Method) -> InFlight {
        InFlight { requests: self.clone(), method: method.clone(), code: None }
    }

    /// Returns the counter of an HTTP method and a status.
    pub fn of(&self, method: &str, code: &str) -> Counter {
        self.0.get_or_create(&[("method", method.to_owned()), ("code", code.to_owned())]).clone()
    }
}

/// One request in flight. Dropped before an answer, it counts as unanswered.
pub struct InFlight {
    requests: ApiRequests,
    method: Method,
    code: Option<StatusCode>,
}

impl InFlight {
    pub fn answered(&mut self, code: StatusCode) {
        self.code = Some(code);
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let code = self.code.as_ref().map_or(NO_ANSWER, StatusCode::as_str);
        self.requests.of(self.method.as_str(), code).inc();
    }
}
