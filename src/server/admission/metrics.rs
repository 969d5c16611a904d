//! Metrics of the request path.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::registry::Registry;

use crate::api::review::Request;
use crate::cluster::metrics::By;
use crate::cluster::registration::table::Row;
use crate::model::Mode;
use crate::rules::{Judged, Violation};
use crate::server::http::body::BodyError;

/// Label for requests without a row.
const OTHER: &str = "other";

#[derive(Clone, Debug, Default)]
pub struct AdmissionMetrics {
    answered: By<Counter, 3>,
    findings: By<Counter, 2>,
    refused_bodies: By<Counter>,
    /// Bodies that were not reviews.
    pub unreadable: Counter,
    /// Reviews of objects or operations without a row.
    pub unknown: Counter,
    /// Objects without the expected shape.
    pub schema_skew: Counter,
    /// Reviews without an answer in time.
    pub late: Counter,
    /// Repairs of webhook configurations that were changed by others.
    pub webhook_repairs: Counter,
}

impl AdmissionMetrics {
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        registry.register("reviews", "Reviews answered", metrics.answered.clone());
        let help = "What rules found in reviews, by rule, and what became of it";
        registry.register("findings", help, metrics.findings.clone());
        // Initialized, so that an alert sees the first one.
        BodyError::REASONS.iter().for_each(|reason| _ = metrics.refused_bodies(reason));
        registry.register("refused_bodies", "Bodies not read to their end, by reason", metrics.refused_bodies.clone());
        registry.register("unreadable_bodies", "Bodies that were no AdmissionReview", metrics.unreadable.clone());
        registry.register("unknown_reviews", "Reviews of what no rule is for; they pass", metrics.unknown.clone());
        registry.register("late_reviews", "Reviews answered 503: there was no answer in time", metrics.late.clone());
        let help = "Repairs of webhook configurations that somebody else has changed";
        registry.register("webhook_repairs", help, metrics.webhook_repairs.clone());
        registry.register("schema_skew", "Objects without the expected shape", metrics.schema_skew.clone());
        metrics
    }

    /// Counts a body that was not read to its end.
    pub(in crate::server) fn refuse_body(&self, error: &BodyError) {
        self.refused_bodies(error.as_str()).inc();
    }

    /// Counts findings, by their effect in a mode.
    pub(in crate::server) fn count_findings(&self, judged: &Judged, mode: Mode) {
        let (denied, warned) = match mode {
            Mode::Enforce => ("denied", "warned"),
            Mode::Warn => ("would-deny", "warned"),
            Mode::Observe => ("would-deny", "would-warn"),
        };
        // A missing right refuses in every mode.
        let effect = |violation: &Violation| if violation.is_missing_right() { "denied" } else { denied };
        let errors = judged.errors.iter().map(|violation| (violation.rule, effect(violation)));
        for (rule, verdict) in errors.chain(judged.warnings.iter().map(|violation| (violation.rule, warned))) {
            self.findings.get_or_create(&[("rule", rule), ("verdict", verdict)]).inc();
        }
    }

    fn refused_bodies(&self, reason: &'static str) -> Counter {
        self.refused_bodies.get_or_create(&[("reason", reason)]).clone()
    }

    /// Counts an answer by the names of its row: those of the caller are unbounded.
    pub(in crate::server) fn count(&self, row: Option<&Row>, request: &Request<'_>, verdict: &'static str) {
        let operation = row.and_then(|row| row.operations.iter().find(|known| **known == request.operation));
        let (resource, operation) = (row.map_or(OTHER, |row| row.kind.plural), operation.copied().unwrap_or(OTHER));
        let labels = [("resource", resource), ("operation", operation), ("verdict", verdict)];
        self.answered.get_or_create(&labels).inc();
    }
}
