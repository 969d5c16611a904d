//! THE list of what is looked at: resource and operation → what is done. The server dispatches on it, and the webhook
//! configurations are generated from it.

use crate::api::ObjectKind;
use crate::api::pod::POD;
use crate::api::rbg::{ROLE_BASED_GROUP, ROLE_BASED_GROUP_INSTAI};
use crate::api::review::Request;

/// Which webhook a request came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Endpoint {
    /// `/mutate`.
    Mutate,
    /// `/validate`.
    Validate,
}

impl Endpoint {
    /// The path of the URL.
    pub const fn path(self) -> &'static str {
        match self {
            Self::Mutate => "/mutate",
            Self::Validate => "/validate",
        }
    }
}

/// What is done with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// Pods of groups get their gate and labels.
    HoldPod,
    /// The object is judged by the rules of its kind.
    Judge,
}

/// One row.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Where it is asked.
    pub endpoint: Endpoint,
    /// Kind of the object.
    pub kind: ObjectKind,
    /// Operations.
    pub operations: &'static [&'static str],
    /// What is done.
    pub action: Action,
}

/// The rows.
pub const TABLE: &[Row] = &[
    Row { endpoint: Endpoint::Mutate, kind: POD, operations: &["CREATE"], action: Action::HoldPod },
    judged(ROLE_BASED_GROUP),
    judged(ROLE_BASED_GROUP_INSTAI),
];

const fn judged(kind: ObjectKind) -> Row {
    Row { endpoint: Endpoint::Validate, kind, operations: &["CREATE", "UPDATE"], action: Action::Judge }
}

/// The row for a request; `None` for what is none of our business and passes.
pub fn find(endpoint: Endpoint, request: &Request<'_>) -> Option<&'static Row> {
    TABLE.iter().find(|row| {
        row.endpoint == endpoint
            && row.kind.plural == request.resource.resource
            && row.kind.group == request.resource.group
            && row.kind.version == request.resource.version
            && request.sub_resource.as_deref().unwrap_or_default().is_empty()
            && row.operations.contains(&&*request.operation)
    })
}
