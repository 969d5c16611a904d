//! `admission.k8s.io/v1 AdmissionReview`: read without copying, answered in the version that asked.
//!
//! kube-core's own type writes a patch as a list of numbers and loses the uid of a refused request, hence these.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// A review as the API server sends it. Borrowed from the request's body; `O` is how the object is read.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "O: Deserialize<'de>"))]
pub struct Review<'a, O = &'a RawValue> {
    /// `admission.k8s.io/v1` or `v1beta1`.
    #[serde(borrow)]
    pub api_version: Cow<'a, str>,
    /// `AdmissionReview`.
    #[serde(borrow)]
    pub kind: Cow<'a, str>,
    /// What is asked.
    #[serde(borrow, default)]
    pub request: Option<Request<'a, O>>,
}

/// What is asked.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "O: Deserialize<'de>"))]
pub struct Request<'a, O = &'a RawValue> {
    /// Must be in the answer. Another one in each call, even for the same object.
    #[serde(borrow)]
    pub uid: Cow<'a, str>,
    /// What `object` is, after conversion to the version of the webhook's rule.
    #[serde(borrow)]
    pub kind: Kind<'a>,
    /// Resource of the webhook's rule.
    #[serde(borrow)]
    pub resource: Resource<'a>,
    /// `scale`, `status`, … or absent.
    #[serde(borrow, default)]
    pub sub_resource: Option<Cow<'a, str>>,
    /// Absent for `generateName` and for deletes of a collection.
    #[serde(borrow, default)]
    pub name: Option<Cow<'a, str>>,
    /// Absent for cluster-scoped objects.
    #[serde(borrow, default)]
    pub namespace: Option<Cow<'a, str>>,
    /// CREATE, UPDATE, DELETE, CONNECT.
    #[serde(borrow)]
    pub operation: Cow<'a, str>,
    /// Who asks; read only by the few rules that look at it.
    #[serde(borrow, default)]
    pub user_info: Option<&'a RawValue>,
    /// The object; absent or `null` on DELETE.
    #[serde(default)]
    pub object: Option<O>,
    /// The object before; absent or `null` on CREATE.
    #[serde(borrow, default)]
    pub old_object: Option<&'a RawValue>,
    /// Options of the call; read only where somebody's own writes are told from those of others.
    #[serde(borrow, default)]
    pub options: Option<&'a RawValue>,
    /// True when nothing will be stored.
    #[serde(default)]
    pub dry_run: Option<bool>,
}

/// Group, version and kind.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Kind<'a> {
    /// API group, `""` for the core group.
    #[serde(borrow)]
    pub group: Cow<'a, str>,
    /// Version.
    #[serde(borrow)]
    pub version: Cow<'a, str>,
    /// Kind.
    #[serde(borrow)]
    pub kind: Cow<'a, str>,
}

/// Group, version and resource.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Resource<'a> {
    /// API group, `""` for the core group.
    #[serde(borrow)]
    pub group: Cow<'a, str>,
    /// Version.
    #[serde(borrow)]
    pub version: Cow<'a, str>,
    /// Plural name.
    #[serde(borrow)]
    pub resource: Cow<'a, str>,
}

impl<'a, O> Request<'a, O> {
    /// The object as it was read, and the request without it.
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
    /// Who asks; nobody when that cannot be read.
    pub fn author(&self) -> UserInfo<'_> {
        self.user_info.and_then(|user| serde_json::from_str(user.get()).ok()).unwrap_or_default()
    }

    /// The field manager that writes, where the caller names one.
    pub fn field_manager(&self) -> Option<String> {
        self.options.and_then(|options| serde_json::from_str::<CallOptions>(options.get()).ok())?.field_manager
    }
}

/// The options of a call that are read.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct CallOptions {
    field_manager: Option<String>,
}

/// Who asks.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct UserInfo<'a> {
    /// User name, `system:serviceaccount:<namespace>:<name>` for service accounts.
    #[serde(borrow)]
    pub username: Cow<'a, str>,
    /// Unique id of the user.
    #[serde(borrow)]
    pub uid: Cow<'a, str>,
    /// Groups of the user.
    #[serde(borrow)]
    pub groups: Vec<Cow<'a, str>>,
    /// What an authenticator adds.
    #[serde(borrow)]
    pub extra: BTreeMap<Cow<'a, str>, Vec<Cow<'a, str>>>,
}

/// `metav1.Status`, as far as a refusal needs it.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Status {
    /// `Failure`.
    pub status: &'static str,
    /// All reasons in one text.
    pub message: String,
    /// `Invalid`, `Forbidden`, …
    pub reason: &'static str,
    /// HTTP code.
    pub code: u16,
    /// Reasons one by one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<StatusDetails>,
}

/// `metav1.StatusDetails`.
#[derive(Clone, Debug, Default, Serialize)]
pub struct StatusDetails {
    /// Name of the object.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Group of the object.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// Kind of the object.
    pub kind: String,
    /// One for each violation.
    pub causes: Vec<StatusCause>,
}

/// `metav1.StatusCause`.
#[derive(Clone, Debug, Default, Serialize)]
pub struct StatusCause {
    /// Kind of violation, `FieldValueInvalid`.
    pub reason: &'static str,
    /// Text without the path.
    pub message: String,
    /// Path of the field.
    pub field: String,
}
