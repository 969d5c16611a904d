//! From a verdict to the answer that the API server understands.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::api::review::{Request, Response, Status, StatusCause, StatusDetails};
use crate::mutate::Patch;
use crate::rules::{Judged, Violation};

/// What is answered.
#[derive(Debug)]
pub enum Verdict {
    /// It passes, maybe changed.
    Allow {
        /// The changes.
        patch: Patch,
        /// Shown to the user.
        warnings: Vec<String>,
    },
    /// It is refused.
    Deny {
        /// Why.
        violations: Vec<Violation>,
        /// Shown to the user.
        warnings: Vec<String>,
        /// What refuses is the state of the cluster or the author's rights, not the object.
        forbidden: bool,
    },
}

impl Verdict {
    /// What was judged. Rules that could not judge are no news to the user.
    pub fn of(judged: Judged) -> Self {
        let warnings = judged.warnings.iter().map(ToString::to_string).collect();
        if judged.is_allowed() {
            return Self::Allow { patch: Patch::default(), warnings };
        }
        Self::Deny { forbidden: judged.is_forbidden(), violations: judged.errors, warnings }
    }

    /// It passes as it is.
    pub fn pass() -> Self {
        Self::Allow { patch: Patch::default(), warnings: Vec::new() }
    }

    /// It passes as it is, with a warning.
    pub fn warn(warning: String) -> Self {
        Self::Allow { patch: Patch::default(), warnings: vec![warning] }
    }

    /// One word, for metrics and traces.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Allow { patch, .. } if patch.is_empty() => "allowed",
            Self::Allow { .. } => "patched",
            Self::Deny { .. } => "denied",
        }
    }

    /// The response to a request.
    pub fn into_response<'a>(self, request: &'a Request<'_>) -> Response<'a> {
        let uid = &*request.uid;
        match self {
            Self::Allow { patch, warnings } => {
                let patch = (!patch.is_empty()).then(|| STANDARD.encode(patch.to_json()));
                Response {
                    uid,
                    allowed: true,
                    patch_type: patch.as_ref().map(|_| "JSONPatch"),
                    patch,
                    warnings,
                    status: None,
                }
            }
            Self::Deny { violations, warnings, forbidden } => Response {
                uid,
                allowed: false,
                status: Some(refusal(request, &violations, forbidden)),
                warnings,
                ..Response::default()
            },
        }
    }
}

/// Violations in the message; all are in the causes.
const IN_MESSAGE: usize = 10;

fn refusal(request: &Request<'_>, violations: &[Violation], forbidden: bool) -> Status {
    let mut shown: Vec<_> = violations.iter().take(IN_MESSAGE).map(ToString::to_string).collect();
    if let Some(more) = violations.len().checked_sub(IN_MESSAGE).filter(|more| *more > 0) {
        shown.push(format!("and {more} more"));
    }
    let list = shown.join(", ");
    let list = if violations.len() > 1 { format!("[{list}]") } else { list };
    let (kind, group) = (request.kind.kind.to_string(), request.kind.group.to_string());
    let name = request.name.as_deref().unwrap_or_default().to_owned();
    let qualified = if group.is_empty() { kind.clone() } else { format!("{kind}.{group}") };
    let (word, reason, code) = if forbidden { ("forbidden", "Forbidden", 403) } else { ("invalid", "Invalid", 422) };
    let causes = violations.iter().map(|violation| StatusCause {
        reason: violation.cause.as_str(),
        message: violation.message(),
        field: violation.path.to_string(),
    });
    Status {
        status: "Failure",
        message: format!("{qualified} {name:?} is {word}: {list}"),
        reason,
        code,
        details: Some(StatusDetails { name, group, kind, causes: causes.collect() }),
    }
}
