//! An answer on its way to a response: status, media type and text.

use axum::response::{IntoResponse, Response};
use http::StatusCode;
use serde_json::json;

/// A response in plain words.
pub(super) fn plain(status: StatusCode, text: impl Into<String>) -> Response {
    (status, text.into()).into_response()
}

/// An answer before it is a response.
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) content_type: &'static str,
    pub(super) text: String,
}

impl Answer {
    pub(super) fn json(text: String) -> Self {
        Self { status: StatusCode::OK, content_type: "application/json", text }
    }

    /// As a Status, the message of which an API server hands on. Of a text with 503, unlike one with 500, it says nothing.
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

    pub(super) fn text(status: StatusCode, text: String) -> Self {
        Self { status, content_type: "text/plain; charset=utf-8", text }
    }
}
