//! From a request's body to a review, or to words that say what is wrong with it.

use crate::api::review::{Request, Review};

/// Why a body is no review. Shown to whoever sent it.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum NoReview {
    /// Not JSON, or a field has another type.
    #[error("the body is not an AdmissionReview: {0}")]
    Unreadable(String),
    /// Another kind or version.
    #[error(
        "the body is not an AdmissionReview of admission.k8s.io/v1: it says apiVersion {api_version:?}, kind {kind:?}"
    )]
    OtherKind {
        /// As sent.
        api_version: String,
        /// As sent.
        kind: String,
    },
    /// An answer, or an empty review.
    #[error("the AdmissionReview has no `request`")]
    NoRequest,
    /// Brackets within brackets beyond reason.
    #[error("the body is nested deeper than {MAX_DEPTH} levels")]
    TooDeep,
}

/// Deepest nesting of a body. Real objects stay far below a hundred; the API server's own limit is 10,000.
const MAX_DEPTH: usize = 512;

/// A review that asks something: the version to answer in, and the request.
///
/// # Errors
///
/// When the body is none.
pub fn decode(body: &[u8]) -> Result<(&'static str, Request<'_>), NoReview> {
    if is_too_deep(body) {
        return Err(NoReview::TooDeep);
    }
    let review: Review<'_> = serde_json::from_slice(body).map_err(|error| NoReview::Unreadable(error.to_string()))?;
    let version = match (&*review.api_version, &*review.kind) {
        ("admission.k8s.io/v1", "AdmissionReview") => "admission.k8s.io/v1",
        ("admission.k8s.io/v1beta1", "AdmissionReview") => "admission.k8s.io/v1beta1",
        (api_version, kind) => {
            return Err(NoReview::OtherKind { api_version: api_version.to_owned(), kind: kind.to_owned() });
        }
    };
    Ok((version, review.request.ok_or(NoReview::NoRequest)?))
}

/// Looks for nesting before anything recursive does. Counting brackets is enough for nearly every body.
fn is_too_deep(body: &[u8]) -> bool {
    if body.iter().filter(|byte| matches!(byte, b'{' | b'[')).count() <= MAX_DEPTH {
        return false;
    }
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    for byte in body {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => depth += 1,
            b'}' | b']' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_DEPTH {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(body: &str) -> String {
        decode(body.as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn bodies_that_are_no_review_are_refused_in_plain_words() {
        assert!(refused("{}").contains("missing field `apiVersion`"));
        assert!(refused("null").starts_with("the body is not an AdmissionReview"));
        assert!(refused("").contains("EOF"));
        assert!(refused("[1,2]").starts_with("the body is not an AdmissionReview"));
        assert_eq!(
            refused(r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}"#),
            "the AdmissionReview has no `request`"
        );
        assert_eq!(
            refused(r#"{"apiVersion":"v1","kind":"Pod","request":null}"#),
            r#"the body is not an AdmissionReview of admission.k8s.io/v1: it says apiVersion "v1", kind "Pod""#
        );
    }

    #[test]
    fn nesting_beyond_reason_is_refused_wherever_it_stands() {
        let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(refused(&deep), "the body is nested deeper than 512 levels");
        let inside =
            format!(r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{{"object":{deep}}}}}"#);
        assert_eq!(refused(&inside), "the body is nested deeper than 512 levels");
    }

    #[test]
    fn brackets_in_strings_and_side_by_side_are_no_nesting() {
        let wide = format!(r#"{{"a":"{}\"{}","b":[{}1]}}"#, "[".repeat(2000), "{".repeat(2000), "{},".repeat(2000));
        assert!(!is_too_deep(wide.as_bytes()));
    }
}
