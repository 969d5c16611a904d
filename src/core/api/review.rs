//! `admission.k8s.io/v1 AdmissionReview`: read without copies, answered in the version of the request.
//!
//! kube-core's own type writes a patch as a list of numbers and loses the uid of a refused request.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// A review from the API server, borrowed from the request body. `O` is the type of the object.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "O: Deserialize<'de>"))]
pub struct Review<'a, O = &'a RawValue> {
    /// `admission.k8s.io/v1` or `v1beta1`.
    #[serde(borrow)]
    pub api_version: Cow<'a, str>,
    /// `AdmissionReview`.
    #[serde(borrow)]
    pub kind: Cow<'a, str>,
    #[serde(borrow, default)]
    pub request: Option<Request<'a, O>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "O: Deserialize<'de>"))]
pub struct Request<'a, O = &'a RawValue> {
    /// Copied to the response. It differs in each call, even for the same object.
    #[serde(borrow)]
    pub uid: Cow<'a, str>,
    /// Kind of `object` after conversion to the version of the webhook's rule.
    #[serde(borrow)]
    pub kind: Kind<'a>,
    /// Resource of the webhook's rule.
    #[serde(borrow)]
    pub resource: Resource<'a>,
    /// `scale`, `status`, …; absent for the object itself.
    #[serde(borrow, default)]
    pub sub_resource: Option<Cow<'a, str>>,
    /// Absent for `generateName` and for deletion of a collection.
    #[serde(borrow, default)]
    pub name: Option<Cow<'a, str>>,
    /// Absent for cluster-scoped objects.
    #[serde(borrow, default)]
    pub namespace: Option<Cow<'a, str>>,
    /// CREATE, UPDATE, DELETE, CONNECT.
    #[serde(borrow)]
    pub operation: Cow<'a, str>,
    /// The requesting user, unparsed, since only a few rules read it.
    #[serde(borrow, default)]
    pub user_info: Option<&'a RawValue>,
    /// Absent or `null` on DELETE.
    #[serde(default)]
    pub object: Option<O>,
    /// The object before the change; absent or `null` on CREATE.
    #[serde(borrow, default)]
    pub old_object: Option<&'a RawValue>,
    /// Options of the call, unparsed; only the field manager is read.
    #[serde(borrow, default)]
    pub options: Option<&'a RawValue>,
    /// True when the API server will store nothing.
    #[serde(default)]
    pub dry_run: Option<bool>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Kind<'a> {
    /// API group, `""` for the core group.
    #[serde(borrow)]
    pub group: Cow<'a, str>,
    #[serde(borrow)]
    pub version: Cow<'a, str>,
    #[serde(borrow)]
    pub kind: Cow<'a, str>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Resource<'a> {
    /// API group, `""` for the core group.
    #[serde(borrow)]
    pub group: Cow<'a, str>,
    #[serde(borrow)]
    pub version: Cow<'a, str>,
    /// Plural name.
    #[serde(borrow)]
    pub resource: Cow<'a, str>,
}

impl<'a, O> Request<'a, O> {
    /// Returns the request without its object, and the object.
    pub fn take_object(self) -> (Request<'a>, Option<O>) {
        let Self {
            uid,
            kind,
            resource,
            sub_resource,
            name,
            namespace,
            operation,
            user_info,
            object,
            old_object,
            options,
            dry_run,
        } = self;
        let rest = Request {
            uid,
            kind,
            resource,
            sub_resource,
            name,
            namespace,
            operation,
            user_info,
            object: None,
            old_object,
            options,
            dry_run,
        };
        (rest, object)
    }
}

impl Request<'_> {
    /// Returns the requesting user; an empty one when it cannot be read.
    pub fn author(&self) -> UserInfo<'_> {
        self.user_info.and_then(|user| serde_json::from_str(user.get()).ok()).unwrap_or_default()
    }

    /// Returns the field manager that the caller names, if any.
    pub fn field_manager(&self) -> Option<String> {
        self.options.and_then(|options| serde_json::from_str::<CallOptions>(options.get()).ok())?.field_manager
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct CallOptions {
    field_manager: Option<String>,
}

/// The requesting user.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct UserInfo<'a> {
    /// User name, `system:serviceaccount:<namespace>:<name>` for service accounts.
    #[serde(borrow)]
    pub username: Cow<'a, str>,
    #[serde(borrow)]
    pub uid: Cow<'a, str>,
    #[serde(borrow)]
    pub groups: Vec<Cow<'a, str>>,
    /// Further data from the authenticator.
    #[serde(borrow)]
    pub extra: BTreeMap<Cow<'a, str>, Vec<Cow<'a, str>>>,
}

/// `metav1.Status`, limited to the fields of a refusal.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Status {
    /// `Failure`.
    pub status: &'static str,
    /// All violations in one text.
    pub message: String,
    /// `Invalid`, `Forbidden`, …
    pub reason: &'static str,
    /// HTTP status code.
    pub code: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<StatusDetails>,
}

/// `metav1.StatusDetails`.
#[derive(Clone, Debug, Default, Serialize)]
pub struct StatusDetails {
    /// Name of the refused object.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub group: String,
    pub kind: String,
    /// One entry for each violation.
    pub causes: Vec<StatusCause>,
}

/// `metav1.StatusCause`.
#[derive(Clone, Debug, Default, Serialize)]
pub struct StatusCause {
    /// Kind of violation, `FieldValueInvalid`.
    pub reason: &'static str,
    /// Description without the path of the field.
    pub message: String,
    /// Path of the field.
    pub field: String,
}
