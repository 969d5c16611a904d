//! The request path: body → review → table → rule → answer.

pub mod answer;
pub mod beside;
pub mod deadline;
pub mod decode;
pub mod metrics;
mod pods;
mod response;
mod rollout;

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Router};
use http::{HeaderMap, StatusCode, Uri, header};
use serde_json::value::RawValue;
use tokio::time::{Instant, timeout_at};
use tracing::{Instrument, Span};

use crate::api::pod::POD;
use crate::api::review::Request;
use crate::api::{ClusterTopology, ObjectKind, Pod};
use crate::cluster::read::lookup::{Lookup, LookupError};
use crate::cluster::read::shortages::Shortages;
use crate::cluster::registration::table::{Endpoint, Handling, Row};
use crate::model::{Mode, names};
use crate::mutate::{PodSettings, protect_topology};
use crate::rules::decode::decode as decode_object;
use crate::rules::question::Question;
use crate::rules::{DecodeError, Judged, Operation, judge_json};
use crate::server::admission::answer::{Outcome, Verdict, Word};
use crate::server::admission::beside::{Beside, LIGHT};
use crate::server::admission::deadline::deadline;
use crate::server::admission::decode::{DecodedReview, decode};
use crate::server::admission::metrics::AdmissionMetrics;
use crate::server::admission::response::Answer;
use crate::server::http::Proven;
use crate::server::http::body::{Bodies, BodyError};

/// The parts of the request path.
#[derive(Clone)]
pub struct Admission {
    pub lookup: Lookup,
    /// Finds the batches of groups that do not fit.
    pub shortages: Shortages,
    /// Refuses objects without the expected shape instead of admitting them.
    pub strict: bool,
    /// True when pods have a validating webhook.
    pub kai_pods: bool,
    pub pods: PodSettings,
    pub bodies: Bodies,
    /// Judges large reviews.
    pub beside: Beside,
    pub metrics: AdmissionMetrics,
}

/// A failure of rolegate or of the API server: the failure policy decides.
#[derive(Debug, thiserror::Error)]
enum AdmissionError {
    #[error(transparent)]
    Lookup(#[from] LookupError),
    /// A step other than a read took too long.
    #[error("judging it: no answer in time")]
    Late,
}

/// A request, and when its answer is due.
type Asked<'a> = (&'a Request<'a>, Instant);
type Judgement = Result<Verdict, AdmissionError>;

impl AdmissionError {
    /// Reports whether only the caller's deadline has passed.
    fn is_late(&self) -> bool {
        matches!(self, Self::Late | Self::Lookup(LookupError::Timeout(_)))
    }
}

impl Admission {
    /// Returns the routes of the webhook port.
    pub fn router(self) -> Router {
        let state = Arc::new(self);
        let answer = |endpoint: Endpoint| {
            post(move |State(admission): State<Arc<Self>>, request: axum::extract::Request| async move {
                let (head, body) = request.into_parts();
                admission.answer(endpoint, &head.uri, &head.headers, body).await
            })
        };
        Router::new()
            .route(Endpoint::Mutate.path(), answer(Endpoint::Mutate))
            .route(Endpoint::Validate.path(), answer(Endpoint::Validate))
            .route(crate::server::http::self_dial::SELF_DIAL_PATH, get(|| async { "ok" }))
            .layer(tower_http::catch_panic::CatchPanicLayer::new())
            .with_state(state)
    }

    async fn answer(self: Arc<Self>, endpoint: Endpoint, uri: &Uri, headers: &HeaderMap, body: Body) -> Response {
        if !is_json(headers) {
            return Answer::text(StatusCode::UNSUPPORTED_MEDIA_TYPE, "Content-Type must be application/json")
                .into_response();
        }
        let deadline = deadline(uri.query());
        let body = match self.bodies.read(body, deadline).await {
            Ok(body) => body,
            Err(error) => return self.refuse(&error),
        };
        let (answer, body) = if body.len() <= LIGHT {
            (self.review(endpoint, &body, deadline).await, body)
        } else {
            let (admission, beside) = (self.clone(), self.beside.clone());
            let review = async move { (admission.review(endpoint, &body, deadline).await, body) };
            match Box::pin(beside.run(deadline, review)).await {
                Some(done) => done,
                None => return self.refuse(&BodyError::NoTurn),
            }
        };
        let Answer { status, content_type, text } = answer;
        // A sender of reviews has proven its connection.
        let proven = (status != StatusCode::BAD_REQUEST).then_some(Extension(Proven));
        match body.answered(text) {
            Ok(text) => (status, proven, [(header::CONTENT_TYPE, content_type)], Body::new(text)).into_response(),
            Err(error) => self.refuse(&error),
        }
    }

    fn refuse(&self, error: &BodyError) -> Response {
        self.metrics.refuse_body(error);
        let answer = match error.status() {
            StatusCode::SERVICE_UNAVAILABLE => Answer::unavailable(&error.to_string()),
            status => Answer::text(status, error.to_string()),
        };
        answer.into_response()
    }

    async fn review(&self, endpoint: Endpoint, body: &[u8], deadline: Instant) -> Answer {
        let DecodedReview { version, request, row, pod } = match decode(endpoint, body) {
            Ok(asked) => asked,
            Err(error) => {
                self.metrics.unreadable.inc();
                return Answer::text(StatusCode::BAD_REQUEST, error.to_string());
            }
        };
        let span = span_of(endpoint, &request);
        let Some(mode) = self.mode(row, &request, deadline).await else {
            // The configurations select this namespace, the flags do not.
            self.metrics.count(row, &request, "allowed");
            return Answer::json(Verdict::pass().in_mode(Mode::Enforce).into_json(version, &request));
        };
        let says = says_verdict(row, pod.as_ref(), mode, self.kai_pods);
        let judged = timeout_at(deadline, self.judge(row, (&request, deadline), pod)).instrument(span.clone()).await;
        match judged.unwrap_or(Err(AdmissionError::Late)) {
            Ok(verdict) => {
                self.metrics.count_findings(&verdict.judged, mode);
                let mut outcome = verdict.in_mode(mode);
                span.in_scope(|| tell(row, &request, &outcome));
                self.metrics.count(row, &request, metric(&outcome));
                outcome.audit.verdict =
                    outcome.audit.verdict.filter(|_| says || matches!(outcome.word, Word::Denied | Word::WouldDeny));
                Answer::json(outcome.into_json(version, &request))
            }
            Err(fault) if mode == Mode::Observe => {
                self.metrics.late.inc_by(u64::from(fault.is_late()));
                self.metrics.count(row, &request, "error");
                span.in_scope(|| tracing::warn!(uid = %request.uid, %fault, "nothing found out, and nothing refused"));
                Answer::json(Outcome::unknown(mode).into_json(version, &request))
            }
            Err(late) if late.is_late() => {
                self.metrics.late.inc();
                self.metrics.count(row, &request, "error");
                span.in_scope(|| tracing::warn!(uid = %request.uid, %late, "no answer in time"));
                Answer::unavailable(&format!("request {}: {late}", request.uid))
            }
            Err(fault) => {
                self.metrics.count(row, &request, "error");
                span.in_scope(|| tracing::error!(uid = %request.uid, %fault, "cannot answer"));
                Answer::text(StatusCode::INTERNAL_SERVER_ERROR, format!("request {}: {fault}", request.uid))
            }
        }
    }

    /// Returns the mode of a request's namespace; `None` where it is not served.
    async fn mode(&self, row: Option<&Row>, request: &Request<'_>, deadline: Instant) -> Option<Mode> {
        let is_namespaced = row.is_some_and(|row| row.kind.namespaced);
        let namespace = request.namespace.as_deref().filter(|_| is_namespaced).unwrap_or_default();
        let known = self.lookup.index().read().stance(namespace);
        let stance = match known {
            Some(stance) if stance.out.is_none() => stance,
            // The namespace is new, its labels have just changed, or the configurations select more than the flags.
            _ => self.lookup.stance(namespace, deadline).await,
        };
        stance.out.is_none().then_some(stance.mode)
    }

    async fn judge(&self, row: Option<&Row>, (request, deadline): Asked<'_>, pod: Option<Pod>) -> Judgement {
        let Some(row) = row else {
            self.metrics.unknown.inc();
            return Ok(Verdict::pass());
        };
        if let Some(pod) = pod {
            return self.hold_pod(&pod, (request, deadline)).await;
        }
        // A DELETE carries only the old object.
        let Some(object) = request.object.or(request.old_object) else { return Ok(Verdict::pass()) };
        // Other objects than pods are rare, and boxed: otherwise the path of a pod would carry their state.
        let judged = match row.handling {
            Handling::HoldPod => match decode_object::<Pod>(object.get()) {
                Ok(pod) => Ok(self.hold_pod(&pod, (request, deadline)).await?),
                Err(error) => Err(error),
            },
            Handling::HoldRollout => Ok(Box::pin(self.hold_rollout(row.kind, object, (request, deadline))).await?),
            Handling::ProtectTopology => decode_object::<ClusterTopology>(object.get())
                .map(|topology| Verdict::change(protect_topology(&topology))),
            Handling::Judge => Box::pin(self.judge_object(row.kind, object, (request, deadline))).await?,
        };
        Ok(judged.unwrap_or_else(|error| self.unexpected_shape(row.kind.kind, request, &error)))
    }

    /// The API server has validated the object against its schema: an unreadable shape is a newer schema.
    fn unexpected_shape(&self, kind: &str, request: &Request<'_>, error: &DecodeError) -> Verdict {
        self.metrics.schema_skew.inc();
        let (namespace, name) = (request.namespace.as_deref(), request.name.as_deref());
        tracing::warn!(kind, namespace, name, %error, "object does not have the expected shape");
        if self.strict {
            return Verdict::of(Judged { errors: vec![error.violation()], ..Judged::default() });
        }
        Verdict::warn(format!("rolegate cannot read this {kind} and lets it pass: {error}"))
    }

    /// Judges an object by the rules of its kind, with live reads of their needs.
    async fn judge_object(
        &self,
        kind: ObjectKind,
        object: &RawValue,
        (request, deadline): Asked<'_>,
    ) -> Result<Result<Verdict, DecodeError>, AdmissionError> {
        let Some(operation) = Operation::parse(&request.operation) else { return Ok(Ok(Verdict::pass())) };
        let old = request.old_object.map(RawValue::get).filter(|_| operation == Operation::Update);
        let question = Question { kind, operation, object: object.get(), old };
        let mut world = match self.lookup.world(question, &request.author(), deadline).await? {
            Ok(world) => world,
            Err(error) => return Ok(Err(error)),
        };
        if let Some((group, shortages)) = self.shortages.of(question, &world, deadline).await {
            world.add_shortages(group, shortages);
        }
        let Some(judged) = judge_json(&kind.api_version(), kind.kind, operation, object.get(), old, &world) else {
            return Ok(Ok(Verdict::pass()));
        };
        Ok(judged.map(|judged| Verdict { held_by: held_by(kind, object), ..Verdict::of(judged) }))
    }
}

/// Returns false where another webhook of rolegate reports the verdict: the API server accepts each key once per webhook
/// name, and the last webhook that judges an object reports.
fn says_verdict(row: Option<&Row>, pod: Option<&Pod>, mode: Mode, kai_pods: bool) -> bool {
    let is_judged = || kai_pods && pod.is_some_and(|pod| pod.metadata.annotation(names::KAI_POD_GROUP).is_some());
    match row.map(|row| (row.endpoint, row.handling)) {
        Some((Endpoint::Mutate, Handling::ProtectTopology)) => false,
        Some((Endpoint::Mutate, Handling::HoldPod)) => mode == Mode::Observe || !is_judged(),
        Some((Endpoint::Validate, Handling::Judge)) => mode != Mode::Observe || row.is_none_or(|row| row.kind != POD),
        _ => true,
    }
}

/// Returns the holder of a judged pod, which the other webhook has written.
fn held_by(kind: ObjectKind, object: &RawValue) -> Option<String> {
    let pod = (kind == POD).then(|| decode_object::<Pod>(object.get()).ok())??;
    let by = pod.metadata.annotation(names::HELD_BY).filter(|_| pod.has_gate(names::GATE));
    by.map(str::to_owned)
}

/// Returns the word for metrics, which do not distinguish a held pod from another changed object.
fn metric(outcome: &Outcome) -> &'static str {
    match outcome.word {
        // A reinvocation for an already mutated pod.
        Word::Held if outcome.patch.is_empty() => Word::Allowed.as_str(),
        Word::Held => Word::Patched.as_str(),
        Word::WouldHold => Word::WouldPatch.as_str(),
        other => other.as_str(),
    }
}

/// Logs a would-be refusal; other outcomes only at debug level.
fn tell(row: Option<&Row>, request: &Request<'_>, outcome: &Outcome) {
    let verdict = outcome.word.as_str();
    if outcome.word != Word::WouldDeny {
        return tracing::debug!(verdict, "answered");
    }
    let kind = row.map_or("", |row| row.kind.kind);
    let (namespace, name) = (request.namespace.as_deref(), request.name.as_deref());
    let (rules, mode) = (outcome.audit.rules.join(","), outcome.audit.mode.as_str());
    tracing::info!(kind, namespace, name, rules, mode, "would be refused in mode enforce");
}

/// Compares the media type without its parameters, ignoring case (RFC 9110, 8.3.1).
fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let media_type = kind.split(';').next().unwrap_or_default();
    media_type.trim().eq_ignore_ascii_case("application/json")
}

/// Only at debug level: seven formatted fields cost more than the rest of the log.
fn span_of(endpoint: Endpoint, request: &Request<'_>) -> Span {
    tracing::debug_span!(
        "admission",
        path = endpoint.path(),
        uid = %request.uid,
        kind = %request.kind.kind,
        operation = %request.operation,
        namespace = request.namespace.as_deref().unwrap_or_default(),
        name = request.name.as_deref().unwrap_or_default(),
    )
}

#[cfg(test)]
mod tests {
    use kube::Client;
    use prometheus_client::registry::Registry;
    use tower::ServiceExt as _;

    use super::*;
    use crate::cluster::index::SharedIndex;
    use crate::rules::Options;
    use crate::server::http::limits::Limits;

    /// Returns the routes of a webhook port whose API server answers nothing.
    fn router() -> Router {
        let nobody = tower::service_fn(|_: http::Request<kube::client::Body>| {
            std::future::pending::<Result<http::Response<kube::client::Body>, std::convert::Infallible>>()
        });
        let (client, index) = (Client::new(nobody, "default"), SharedIndex::default());
        let admission = Admission {
            lookup: Lookup::new(client.clone(), index.clone(), Options::default()),
            shortages: Shortages::new(client, index, None),
            strict: false,
            kai_pods: true,
            pods: PodSettings::default(),
            bodies: Bodies::new(&Limits::default()),
            beside: Beside::default(),
            metrics: AdmissionMetrics::register(&mut Registry::default()),
        };
        admission.router()
    }

    #[tokio::test]
    async fn who_sends_something_else_than_reviews_has_proven_nothing() {
        let review = r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"1","operation":"CREATE",
            "kind":{},"resource":{"group":"","version":"v1","resource":"services"},"object":{}}}"#;
        let router = router();
        for (body, status, proves) in [(review, 200, true), ("{}", 400, false)] {
            let request = http::Request::post("/mutate").header(header::CONTENT_TYPE, "application/json");
            let answer = router.clone().oneshot(request.body(Body::from(body)).unwrap()).await.unwrap();
            let proven = answer.extensions().get::<Proven>().is_some();
            assert_eq!((answer.status().as_u16(), proven), (status, proves), "{body}");
        }
    }

    #[test]
    fn a_content_type_is_json_whatever_its_case_and_parameters() {
        let is_json = |kind: &'static str| {
            is_json(&HeaderMap::from_iter([(header::CONTENT_TYPE, http::HeaderValue::from_static(kind))]))
        };
        assert!(is_json("application/json") && is_json("Application/JSON ; charset=utf-8"));
        assert!(!is_json("application/jsonp") && !is_json("text/plain; application/json") && !is_json(""));
    }
}
