//! `apiextensions.k8s.io/v1 ConversionReview`: objects that an API server wants in another version.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// The only version of reviews that there is.
pub const API_VERSION: &str = "apiextensions.k8s.io/v1";
/// Their kind.
pub const KIND: &str = "ConversionReview";

/// A review as the API server sends it, borrowed from the request's body.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConversionReview<'a> {
    /// `apiextensions.k8s.io/v1`.
    #[serde(borrow)]
    pub api_version: Cow<'a, str>,
    /// `ConversionReview`.
    #[serde(borrow)]
    pub kind: Cow<'a, str>,
    /// What is asked.
    #[serde(borrow, default)]
    pub request: Option<ConversionRequest<'a>>,
}

/// What is asked.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConversionRequest<'a> {
    /// Must be in the answer.
    #[serde(borrow)]
    pub uid: Cow<'a, str>,
    /// The version that all are wanted in, `rolegate.dev/v1beta1`.
    #[serde(borrow, rename = "desiredAPIVersion")]
    pub desired_api_version: Cow<'a, str>,
    /// The objects, of any versions.
    #[serde(borrow, default)]
    pub objects: Option<Vec<&'a RawValue>>,
}

/// The answer.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ConversionAnswer<'a> {
    /// [`API_VERSION`].
    pub api_version: &'static str,
    /// [`KIND`].
    pub kind: &'static str,
    /// What became of the objects.
    pub response: ConversionResponse<'a>,
}

/// What became of the objects.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ConversionResponse<'a> {
    /// The request's.
    pub uid: &'a str,
    /// All of them, in the order in which they came; none when one of them cannot be converted.
    pub converted_objects: Vec<Box<RawValue>>,
    /// Whether all were.
    pub result: ConversionResult,
}

/// `metav1.Status`, of which an API server reads these.
#[derive(Debug, Serialize)]
pub struct ConversionResult {
    /// `Success` or `Failure`.
    pub status: &'static str,
    /// Why not; an API server hands it on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}
