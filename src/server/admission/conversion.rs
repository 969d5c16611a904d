//! RoleCoordinations in the version that somebody asks for: what an API server sends here where both are served.
//!
//! It needs nothing but the objects: no cache, no client, no leader. So it answers from the first moment on.

use std::borrow::Cow;

use http::StatusCode;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::{Admission, Answer};
use crate::api::conversion_review::{
    API_VERSION, ConversionAnswer, ConversionRequest, ConversionResponse, ConversionResult, ConversionReview, KIND,
};
use crate::api::review::Kind;
use crate::api::role_coordination::ROLE_COORDINATION;
use crate::api::versions::Version;
use crate::model::conversion::{convert, text_in_v1beta1};
use crate::server::admission::answer::Verdict;

/// Why a body is no review of conversions. Shown to whoever sent it.
#[derive(Debug, thiserror::Error)]
enum NoConversion {
    #[error("the body is not a ConversionReview: {0}")]
    Unreadable(#[from] serde_json::Error),
    #[error("the body is not a ConversionReview of {API_VERSION}: it says apiVersion {0:?}, kind {1:?}")]
    OtherKind(String, String),
    #[error("the ConversionReview has no `request`")]
    NoRequest,
}

impl Admission {
    /// The answer to a review of conversions.
    pub(super) fn converted(&self, body: &[u8]) -> Answer {
        let request = match asked(body) {
            Ok(request) => request,
            Err(error) => {
                self.metrics.unreadable.inc();
                return Answer::text(StatusCode::BAD_REQUEST, error.to_string());
            }
        };
        let desired = &*request.desired_api_version;
        let objects = request.objects.unwrap_or_default();
        let all: Result<Vec<_>, _> =
            objects.iter().enumerate().map(|(index, object)| one(index, objects.len(), object, desired)).collect();
        let to = Version::parse(desired).map(Version::name);
        self.metrics.count_conversion(to, all.is_ok());
        let (converted_objects, result) = match all {
            Ok(all) => (all, ConversionResult { status: "Success", message: None }),
            Err(message) => {
                tracing::warn!(uid = %request.uid, desired, message, "cannot be converted");
                (Vec::new(), ConversionResult { status: "Failure", message: Some(message) })
            }
        };
        let response = ConversionResponse { uid: &request.uid, converted_objects, result };
        let answer = ConversionAnswer { api_version: API_VERSION, kind: KIND, response };
        Answer::json(serde_json::to_string(&answer).unwrap_or_default())
    }
}

fn asked(body: &[u8]) -> Result<ConversionRequest<'_>, NoConversion> {
    let review: ConversionReview<'_> = serde_json::from_slice(body)?;
    if (&*review.api_version, &*review.kind) != (API_VERSION, KIND) {
        return Err(NoConversion::OtherKind(review.api_version.into_owned(), review.kind.into_owned()));
    }
    review.request.ok_or(NoConversion::NoRequest)
}

/// One of so many objects, or which one it is and why it cannot be.
fn one(index: usize, count: usize, object: &RawValue, desired: &str) -> Result<Box<RawValue>, String> {
    let of = |why: &dyn std::fmt::Display| {
        let name = serde_json::from_str::<Named<'_>>(object.get()).unwrap_or_default().metadata;
        format!("object {} of {count}, {}/{}: {why}", index + 1, name.namespace, name.name)
    };
    let read: Value = serde_json::from_str(object.get()).map_err(|error| of(&error))?;
    let converted = convert(read, desired).map_err(|error| of(&error))?;
    serde_json::value::to_raw_value(&converted).map_err(|error| of(&error))
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Named<'a> {
    #[serde(borrow)]
    metadata: Name<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Name<'a> {
    #[serde(borrow)]
    namespace: Cow<'a, str>,
    #[serde(borrow)]
    name: Cow<'a, str>,
}

/// A review of a RoleCoordination, as far as it says which version its author wrote.
#[derive(Deserialize)]
struct Authored<'a> {
    #[serde(borrow)]
    request: AuthoredRequest<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AuthoredRequest<'a> {
    #[serde(borrow, default)]
    request_kind: Option<Kind<'a>>,
}

/// What is said of a RoleCoordination, with the paths of the version that its author wrote: the API server has converted it for
/// the rules. Read only where something is said.
pub(super) fn in_words_of_author(mut verdict: Verdict, body: &[u8]) -> Verdict {
    if verdict.judged.errors.is_empty() && verdict.judged.warnings.is_empty() && verdict.warnings.is_empty() {
        return verdict;
    }
    let asked: Option<Authored<'_>> = serde_json::from_slice(body).ok();
    let kind = asked.and_then(|asked| asked.request.request_kind);
    if kind.is_none_or(|kind| kind.group != ROLE_COORDINATION.group || kind.version != Version::V1beta1.name()) {
        return verdict;
    }
    verdict.judged = verdict.judged.in_v1beta1();
    verdict.warnings.iter_mut().for_each(|warning| *warning = text_in_v1beta1(warning));
    verdict
}
