//! From a verdict to the answer that the API server understands.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::api::review::{Request, Response, ReviewAnswer, Status, StatusCause, StatusDetails};
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
        let warnings = bounded(judged.warnings.iter().map(ToString::to_string), |more| more);
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

    /// The answer to a request, in the version that asked.
    pub fn into_json(self, api_version: &str, request: &Request<'_>) -> String {
        let uid = &*request.uid;
        match self {
            Self::Allow { patch, warnings } => allowed(api_version, uid, patch, &warnings),
            Self::Deny { violations, warnings, forbidden } => {
                let status = Some(refusal(request, &violations, forbidden));
                let response = Response { uid, allowed: false, status, warnings };
                let answer = ReviewAnswer { api_version, kind: "AdmissionReview", response };
                serde_json::to_string(&answer).unwrap_or_default()
            }
        }
    }
}

/// The answer that nearly all get: written by hand, the patch encoded where it stands. Nothing in base64 is to be escaped.
fn allowed(api_version: &str, uid: &str, patch: Patch, warnings: &[String]) -> String {
    let patch = if patch.is_empty() { Vec::new() } else { patch.into_bytes() };
    let mut text = String::with_capacity(256 + patch.len() * 4 / 3);
    text.push_str(r#"{"apiVersion":""#);
    text.push_str(api_version);
    text.push_str(r#"","kind":"AdmissionReview","response":{"uid":"#);
    // It is the caller's word.
    _ = write!(text, "{}", Value::from(uid));
    text.push_str(r#","allowed":true"#);
    if !warnings.is_empty() {
        _ = write!(text, r#","warnings":{}"#, json!(warnings));
    }
    if !patch.is_empty() {
        text.push_str(r#","patchType":"JSONPatch","patch":""#);
        STANDARD.encode_string(patch, &mut text);
        text.push('"');
    }
    text.push_str("}}");
    text
}

/// Violations in the message.
const IN_MESSAGE: usize = 10;
/// Causes, and warnings, of one answer; the last says how many more there are.
const IN_ANSWER: usize = 100;

/// The first so many, the last of which stands for the rest.
fn bounded<T>(all: impl ExactSizeIterator<Item = T>, rest: impl FnOnce(String) -> T) -> Vec<T> {
    let count = all.len();
    if count <= IN_ANSWER {
        return all.collect();
    }
    let more = rest(format!("and {} more", count - IN_ANSWER + 1));
    all.take(IN_ANSWER - 1).chain([more]).collect()
}

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
    let causes = bounded(causes, |message| StatusCause { message, ..StatusCause::default() });
    Status {
        status: "Failure",
        message: format!("{qualified} {name:?} is {word}: {list}"),
        reason,
        code,
        details: Some(StatusDetails { name, group, kind, causes }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_of_a_hundred_counts_those_that_are_left_out() {
        let of = |count: u32| bounded((0..count).map(|number| number.to_string()), |more| more);
        assert_eq!((of(100).len(), of(100).last().map(String::as_str)), (100, Some("99")));
        assert_eq!((of(150).len(), of(150).last().map(String::as_str)), (100, Some("and 51 more")));
    }
}
