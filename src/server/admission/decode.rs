//! Decoding of a request body into a review, or into a description of its fault.

use crate::api::Pod;
use crate::api::review::{Request, Review};
use crate::cluster::registration::table;
use crate::cluster::registration::table::{Endpoint, Handling, Row};
use crate::rules::DecodeError;

/// Reason for which a body is not a review, as shown to the sender.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum NoReview {
    /// Not JSON, or a field of another type.
    #[error("the body is not an AdmissionReview: {0}")]
    Unreadable(#[from] DecodeError),
    #[error(
        "the body is not an AdmissionReview of admission.k8s.io/v1: it says apiVersion {api_version:?}, kind {kind:?}"
    )]
    OtherKind {
        /// As in the body.
        api_version: String,
        kind: String,
    },
    /// An answer, or an empty review.
    #[error("the AdmissionReview has no `request`")]
    NoRequest,
    /// Nested deeper than `MAX_DEPTH` levels.
    #[error("the body is nested deeper than {MAX_DEPTH} levels")]
    TooDeep,
}

/// Deepest nesting of a body. Real objects stay far below a hundred; the API server's own limit is 10,000.
const MAX_DEPTH: usize = 512;

/// Decodes a review with a request: the version of the answer, the request, and its object if it is a pod to be mutated.
///
/// # Errors
///
/// When the body is not a review with a request.
pub fn decode(endpoint: Endpoint, body: &[u8]) -> Result<DecodedReview<'_>, NoReview> {
    if is_too_deep(body) {
        return Err(NoReview::TooDeep);
    }
    // Nearly all mutations are of pods: one pass reads envelope and pod. Other kinds and unexpected shapes are read again,
    // with an unparsed object.
    if endpoint == Endpoint::Mutate
        && let Ok(Ok((version, request))) = serde_json::from_slice::<Review<'_, Pod>>(body).map(asked)
    {
        let row = table::find(endpoint, &request);
        if row.is_some_and(|row| row.handling == Handling::HoldPod) {
            let (request, pod) = request.take_object();
            return Ok(DecodedReview { version, request, row, pod });
        }
    }
    let review = serde_json::from_slice(body).map_err(DecodeError::from)?;
    let (version, request) = asked(review)?;
    let row = table::find(endpoint, &request);
    Ok(DecodedReview { version, request, row, pod: None })
}

#[derive(Debug)]
pub struct DecodedReview<'a> {
    /// The version of the answer.
    pub version: &'static str,
    pub request: Request<'a>,
    /// `None` for a request out of scope.
    pub row: Option<&'static Row>,
    /// The object, if it was decoded in the same pass; then the request lacks it.
    pub pod: Option<Pod>,
}

fn asked<O>(review: Review<'_, O>) -> Result<(&'static str, Request<'_, O>), NoReview> {
    let version = match (&*review.api_version, &*review.kind) {
        ("admission.k8s.io/v1", "AdmissionReview") => "admission.k8s.io/v1",
        ("admission.k8s.io/v1beta1", "AdmissionReview") => "admission.k8s.io/v1beta1",
        (api_version, kind) => {
            return Err(NoReview::OtherKind { api_version: api_version.to_owned(), kind: kind.to_owned() });
        }
    };
    Ok((version, review.request.ok_or(NoReview::NoRequest)?))
}

/// Checks the nesting before a recursive parser runs. Counting brackets suffices for nearly every body.
fn is_too_deep(body: &[u8]) -> bool {
    if opening_brackets(body) <= MAX_DEPTH {
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

/// Counts in chunks whose count fits a byte, so that the compiler vectorizes the loop.
fn opening_brackets(body: &[u8]) -> usize {
    let of_chunk = |chunk: &[u8]| chunk.iter().map(|byte| u8::from(matches!(byte, b'{' | b'['))).sum::<u8>();
    body.chunks(usize::from(u8::MAX)).map(|chunk| usize::from(of_chunk(chunk))).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(body: &str) -> String {
        let mutating = decode(Endpoint::Mutate, body.as_bytes()).unwrap_err();
        assert_eq!(decode(Endpoint::Validate, body.as_bytes()).unwrap_err(), mutating);
        mutating.to_string()
    }

    fn review(resource: &str, object: &str) -> String {
        format!(
            r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{{"uid":"1","operation":"CREATE",
            "kind":{{}},"resource":{{"group":"","version":"v1","resource":"{resource}"}},"object":{object}}}}}"#
        )
    }

    #[test]
    fn a_pod_to_be_mutated_is_read_with_its_review_and_all_else_is_left_as_it_is() {
        let pod = review("pods", r#"{"metadata":{"name":"p"}}"#);
        let asked = decode(Endpoint::Mutate, pod.as_bytes()).unwrap();
        assert_eq!(asked.pod.unwrap().metadata.name.unwrap(), "p");
        assert!(asked.request.object.is_none());
        let left = [
            (Endpoint::Validate, review("pods", r#"{"metadata":{"name":"p"}}"#)),
            (Endpoint::Mutate, review("pods", r#"{"metadata":7}"#)),
            (Endpoint::Mutate, review("services", r#"{"metadata":{"name":"s"}}"#)),
        ];
        for (endpoint, body) in left {
            let asked = decode(endpoint, body.as_bytes()).unwrap();
            assert!(asked.pod.is_none() && asked.request.object.is_some(), "{body}");
        }
    }

    #[test]
    fn bodies_that_are_no_review_are_refused_in_plain_words() {
        assert!(refused("{}").ends_with(": apiVersion: must be set"));
        assert!(refused("null").starts_with("the body is not an AdmissionReview"));
        assert!(refused("").ends_with(": not JSON: it ends too early"));
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
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        let review = |depth: usize| review("x", &nested(depth));
        for endpoint in [Endpoint::Mutate, Endpoint::Validate] {
            assert!(decode(endpoint, review(510).as_bytes()).is_ok());
            assert_eq!(decode(endpoint, review(511).as_bytes()).unwrap_err(), NoReview::TooDeep);
        }
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
