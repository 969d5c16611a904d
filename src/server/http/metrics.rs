//! Metrics of the server itself.

use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};
use tokio::sync::watch;

use crate::cluster::metrics::{By, shown, shown_as};
use crate::model::words::words;
use crate::tls::acceptor::Loaded;

/// Upper bounds of the duration histogram in seconds, 50 µs to 5 s. The API server's own histogram starts at 5 ms, more than
/// this server should need.
const DURATION_BUCKETS: [f64; 16] =
    [5e-5, 1e-4, 2e-4, 3e-4, 5e-4, 1e-3, 2e-3, 3e-3, 5e-3, 1e-2, 2.5e-2, 5e-2, 0.1, 0.5, 1.0, 5.0];

/// Paths distinguished in metrics, by their first segment. All others count as `other`, so that a caller can't invent label
/// values.
const PATHS: [&str; 4] = ["validate", "mutate", "livez", "page"];

words! {
/// Reason for which a connection failed before HTTP.
pub(crate) enum HandshakeFailure {
    /// Not finished in time.
    Timeout = "timeout",
    /// The caller spoke HTTP without TLS.
    PlainHttp = "plain_http",
    /// No certificate is loaded yet.
    NoCertificate = "no_certificate",
    /// The caller sent no client certificate, or one that is not allowed.
    ClientCertificate = "client_certificate",
    /// The caller does not trust the certificate: the CA bundle in the webhook configuration is wrong.
    Untrusted = "untrusted",
    /// The caller closed the connection, as TCP probes do.
    Closed = "closed",
    /// Any other error of the protocol.
    Tls = "tls",
}
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    path: &'static str,
    code: u16,
}

/// Metrics of one listener. Clones count into the same numbers.
#[derive(Debug, Clone)]
pub struct ServerMetrics {
    pub(crate) connections: Gauge,
    pub(crate) accept_errors: Counter,
    pub(crate) displaced: Counter,
    pub(crate) handshakes: Counter,
    handshake_failures: By<Counter>,
    requests: Family<RequestLabels, Counter>,
    in_flight: Gauge,
    duration: By<Histogram>,
    certificate_expiry: Gauge<f64, AtomicU64>,
    /// Whether the Secret of the certificates is somebody else's.
    pub foreign_secret: Gauge,
}

/// Registers the metrics under `server_…`, after the registry's own prefix.
pub fn register(registry: &mut Registry) -> ServerMetrics {
    let registry = registry.sub_registry_with_prefix("server");
    let duration = Family::new_with_constructor((|| Histogram::new(DURATION_BUCKETS)) as fn() -> Histogram);
    let metrics = ServerMetrics {
        connections: shown(registry, "connections_open", "Connections open now"),
        accept_errors: shown(registry, "accept_errors", "Errors of accept(2)"),
        displaced: shown(
            registry,
            "connections_displaced",
            "Connections without a review yet that were closed to make room for others",
        ),
        handshakes: shown(registry, "handshakes", "TLS handshakes that were completed"),
        handshake_failures: shown(
            registry,
            "handshakes_failed",
            "Connections that ended before their first request could be read, by reason",
        ),
        requests: shown(
            registry,
            "requests",
            "Requests by path and HTTP status; 499 if the caller left before the answer",
        ),
        in_flight: shown(registry, "requests_in_flight", "Requests being answered now"),
        duration: shown_as(
            registry,
            "request_duration",
            "From the end of the request's headers to the start of the response",
            Some(Unit::Seconds),
            duration,
        ),
        certificate_expiry: shown_as(
            registry,
            "certificate_expiry",
            "When the served certificate expires, as Unix time; 0 if none is loaded",
            Some(Unit::Seconds),
            Gauge::default(),
        ),
        foreign_secret: shown(
            registry,
            "foreign_secret",
            "1 while the Secret of the certificates is not rolegate's, and is neither read nor written",
        ),
    };
    HandshakeFailure::ALL.iter().for_each(|reason| _ = metrics.handshakes_failed(*reason));
    metrics
}

impl ServerMetrics {
    /// Updates the expiry gauge until the certificate store is gone.
    pub async fn follow_certificate(self, mut changes: watch::Receiver<Option<Loaded>>) {
        loop {
            let expires = |loaded: &Loaded| loaded.info.not_after.as_duration().as_secs_f64();
            self.certificate_expiry.set(changes.borrow_and_update().as_ref().map_or(0.0, expires));
            if changes.changed().await.is_err() {
                return;
            }
        }
    }

    pub(crate) fn handshake_failed(&self, reason: HandshakeFailure) {
        self.handshakes_failed(reason).inc();
    }

    fn handshakes_failed(&self, reason: HandshakeFailure) -> Counter {
        self.handshake_failures.get_or_create(&[("reason", reason.as_str())]).clone()
    }

    /// Counts a request as in flight until the returned guard is dropped.
    pub(crate) fn start(&self, path: &str) -> InFlight {
        self.in_flight.inc();
        let first = path.trim_start_matches('/').split('/').next();
        let path = PATHS.into_iter().find(|known| first == Some(known)).unwrap_or("other");
        InFlight { metrics: self.clone(), path, start: Instant::now(), code: 499 }
    }

    fn observe(&self, path: &'static str, code: u16, took: Duration) {
        self.requests.get_or_create(&RequestLabels { path, code }).inc();
        self.duration.get_or_create(&[("path", path)]).observe(took.as_secs_f64());
    }
}

/// One request being answered. Dropped without [`InFlight::finish`], it counts as 499: the caller left.
pub(crate) struct InFlight {
    metrics: ServerMetrics,
    path: &'static str,
    start: Instant,
    code: u16,
}

impl InFlight {
    /// Records the status of the answer.
    pub(crate) fn finish(mut self, code: http::StatusCode) {
        self.code = code.as_u16();
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.metrics.in_flight.dec();
        self.metrics.observe(self.path, self.code, self.start.elapsed());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(registry: &Registry) -> String {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, registry).unwrap();
        text
    }

    #[test]
    fn callers_cannot_invent_label_values() {
        let mut registry = Registry::with_prefix("rolegate");
        let metrics = register(&mut registry);
        for path in ["/validate", "/mutate/pods", "/../../etc", "/a", "/b"] {
            metrics.start(path).finish(http::StatusCode::OK);
        }
        drop(metrics.start("/mutate"));
        let text = text(&registry);
        for line in [
            "rolegate_server_requests_total{path=\"validate\",code=\"200\"} 1",
            "rolegate_server_requests_total{path=\"mutate\",code=\"200\"} 1",
            "rolegate_server_requests_total{path=\"mutate\",code=\"499\"} 1",
            "rolegate_server_requests_total{path=\"other\",code=\"200\"} 3",
            "rolegate_server_requests_in_flight 0",
            "rolegate_server_request_duration_seconds_count{path=\"other\"} 3",
            "rolegate_server_certificate_expiry_seconds 0.0",
        ] {
            assert!(text.contains(line), "{line} not in\n{text}");
        }
    }
}
