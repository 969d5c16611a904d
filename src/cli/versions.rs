//! RoleCoordinations in files, of whatever version: read as they would be stored, spoken of as they are written.

use serde_json::Value;

use crate::api::role_coordination::ROLE_COORDINATION;
use crate::api::versions::Version;
use crate::model::conversion::{ConversionError, convert};

/// An object of v1beta1 as it would be stored; `None` for everything else, which is read as it is.
pub(super) fn stored(api_version: &str, kind: &str, json: &str) -> Option<Result<String, ConversionError>> {
    if kind != ROLE_COORDINATION.kind || api_version != Version::V1beta1.api_version() {
        return None;
    }
    let mut object: Value = serde_json::from_str(json).unwrap_or_default();
    // The items of a list need not say what they are.
    if let Some(fields) = object.as_object_mut() {
        fields.insert("apiVersion".to_owned(), api_version.into());
        fields.insert("kind".to_owned(), kind.into());
    }
    Some(convert(object, &Version::V1alpha1.api_version()).map(|stored| stored.to_string()))
}
