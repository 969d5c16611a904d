//! The request path: body → review → table → rule → answer.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use http::{HeaderMap, StatusCode, header};
use serde_json::value::RawValue;
use tokio::time::Instant;
use tracing::{Instrument, Span, field};

use super::admission_metrics::AdmissionMetrics;
use super::answer::Verdict;
use super::decode::decode;
use super::limits::{Limits, read_body};
use super::table::{self, Action, Endpoint, Row};
use crate::api::Pod;
use crate::api::review::{Request, ReviewAnswer};
use crate::cluster::lookup::{Lookup, LookupError};
use crate::mutate::{GroupLookup, Subject, Surroundings, mutate_pod};
use crate::rules::judge::{DecodeError, Operation, decode as decode_object};
use crate::rules::{World, judge_json};

/// What the request path needs.
#[derive(Clone)]
pub struct Admission {
    /// Finds groups.
    pub lookup: Lookup,
    /// Objects that do not have the expected shape are refused instead of passed.
    pub strict: bool,
    /// Limits of bodies.
    pub limits: Limits,
    /// What is counted.
    pub metrics: AdmissionMetrics,
}

/// Our own fault: the failure policy decides.
#[derive(Debug, thiserror::Error)]
enum Fault {
    #[error(transparent)]
    Lookup(#[from] LookupError),
}

impl Admission {
    /// The routes of the webhook port.
    pub fn router(self) -> Router {
        let state = Arc::new(self);
        let admit = |endpoint: Endpoint| {
            post(move |State(admission): State<Arc<Self>>, headers: HeaderMap, body: Body| async move {
                admission.answer(endpoint, &headers, body).await
            })
        };
        Router::new()
            .route(Endpoint::Mutate.path(), admit(Endpoint::Mutate))
            .route(Endpoint::Validate.path(), admit(Endpoint::Validate))
            .route(super::self_dial::SELF_DIAL_PATH, get(|| async { "ok" }))
            .layer(tower_http::catch_panic::CatchPanicLayer::new())
            .with_state(state)
    }

    async fn answer(&self, endpoint: Endpoint, headers: &HeaderMap, body: Body) -> Response {
        let json =
            headers.get(header::CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"application/json"));
        if !json {
            return plain(StatusCode::UNSUPPORTED_MEDIA_TYPE, "Content-Type must be application/json");
        }
        let body = match read_body(body, self.limits.body_bytes, Instant::now() + self.limits.body_time).await {
            Ok(body) => body,
            Err(error) => return plain(error.status(), error.to_string()),
        };
        let (version, request) = match decode(&body) {
            Ok(review) => review,
            Err(error) => {
                self.metrics.unreadable.inc();
                return plain(StatusCode::BAD_REQUEST, error.to_string());
            }
        };
        let span = span_of(endpoint, &request);
        match self.judge(endpoint, &request).instrument(span.clone()).await {
            Ok(verdict) => {
                span.record("verdict", verdict.as_str());
                self.metrics.count(&request, verdict.as_str());
                let answer = ReviewAnswer {
                    api_version: version,
                    kind: "AdmissionReview",
                    response: verdict.into_response(&request),
                };
                ([(header::CONTENT_TYPE, "application/json")], serde_json::to_vec(&answer).unwrap_or_default())
                    .into_response()
            }
            Err(fault) => {
                span.record("verdict", "error");
                self.metrics.count(&request, "error");
                span.in_scope(|| tracing::error!(%fault, "cannot answer"));
                plain(StatusCode::INTERNAL_SERVER_ERROR, format!("request {}: {fault}", request.uid))
            }
        }
    }

    async fn judge(&self, endpoint: Endpoint, request: &Request<'_>) -> Result<Verdict, Fault> {
        let Some(row) = table::find(endpoint, request) else {
            self.metrics.unknown.inc();
            return Ok(Verdict::pass());
        };
        let Some(object) = request.object else { return Ok(Verdict::pass()) };
        let judged = match row.action {
            Action::HoldPod => match decode_object::<Pod>(object.get()) {
                Ok(pod) => Ok(self.hold_pod(&pod, request).await?),
                Err(error) => Err(error),
            },
            Action::Judge => judge_object(row, request, object),
        };
        Ok(judged.unwrap_or_else(|error| self.unexpected_shape(row.kind.kind, &error)))
    }

    /// The API server has checked the object against its schema already: a shape that cannot be read is a newer schema.
    fn unexpected_shape(&self, kind: &str, error: &DecodeError) -> Verdict {
        self.metrics.schema_skew.inc();
        tracing::warn!(kind, %error, "object does not have the expected shape");
        if self.strict {
            return Verdict::Deny { violations: vec![error.violation()], warnings: Vec::new() };
        }
        Verdict::warn(format!("rolegate cannot read this {kind} and lets it pass: {error}"))
    }

    async fn hold_pod(&self, pod: &Pod, request: &Request<'_>) -> Result<Verdict, Fault> {
        let namespace = request.namespace.as_deref().unwrap_or_else(|| pod.metadata.namespace());
        let Some(key) = Subject::of(pod, namespace, &()).group().cloned() else { return Ok(Verdict::pass()) };
        let group = self.lookup.group(&key).await?;
        if let Some(owner) = pod.metadata.controller().filter(|owner| owner.kind == "StatefulSet") {
            self.lookup.stateful_set(namespace, &owner.name).await;
        }
        let subject = Subject::of(pod, namespace, &*self.lookup.index().read());
        let lookup = group.as_deref().map_or(GroupLookup::Absent, GroupLookup::Found);
        let around = Surroundings { group: lookup, discovery: false, ..Surroundings::default() };
        let mutation = mutate_pod(pod, &subject, &around);
        Ok(Verdict::Allow { patch: mutation.patch, warnings: mutation.warnings })
    }
}

fn judge_object(row: &Row, request: &Request<'_>, object: &RawValue) -> Result<Verdict, DecodeError> {
    let Some(operation) = Operation::parse(&request.operation) else { return Ok(Verdict::pass()) };
    let (api_version, old) = (row.kind.api_version(), request.old_object.map(RawValue::get));
    let Some(judged) = judge_json(&api_version, row.kind.kind, operation, object.get(), old, &World::default()) else {
        return Ok(Verdict::pass());
    };
    let judged = judged?;
    let warnings = judged.warnings.iter().map(ToString::to_string).collect();
    Ok(if judged.errors.is_empty() {
        Verdict::Allow { patch: crate::mutate::Patch::default(), warnings }
    } else {
        Verdict::Deny { violations: judged.errors, warnings }
    })
}

fn span_of(endpoint: Endpoint, request: &Request<'_>) -> Span {
    tracing::info_span!(
        "admission",
        path = endpoint.path(),
        uid = %request.uid,
        kind = %request.kind.kind,
        operation = %request.operation,
        namespace = request.namespace.as_deref().unwrap_or_default(),
        name = request.name.as_deref().unwrap_or_default(),
        verdict = field::Empty,
    )
}

fn plain(status: StatusCode, text: impl Into<String>) -> Response {
    (status, text.into()).into_response()
}

/// Longest time that an answer may take: the webhook's timeout, which the configurations carry.
pub const TIMEOUT: Duration = Duration::from_secs(3);
