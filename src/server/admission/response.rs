//! Answers and responses.

use axum::response::{IntoResponse, Response};
use http::{StatusCode, header};
use serde_json::json;

/// Status, media type and text of a response.
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) content_type: &'static str,
    pub(super) text: String,
}

impl Answer {
    pub(super) fn json(text: String) -> Self {
        Self { status: StatusCode::OK, content_type: "application/json", text }
    }

    /// Returns a Status with code 503, whose message the API server passes on. It drops a plain text with this code.
    pub(super) fn unavailable(message: &str) -> Self {
        let status = json!({
            "apiVersion": "v1",
            "kind": "Status",
            "status": "Failure",
            "reason": "ServiceUnavailable",
            "code": 503,
            "message": message,
        });
        Self { status: StatusCode::SERVICE_UNAVAILABLE, ..Self::json(status.to_string()) }
    }

    pub(super) fn text(status: StatusCode, text: impl Into<String>) -> Self {
        Self { status, content_type: "text/plain; charset=utf-8", text: text.into() }
    }
}

impl IntoResponse for Answer {
    fn into_response(self) -> Response {
        (self.status, [(header::CONTENT_TYPE, self.content_type)], self.text).into_response()
    }
}
