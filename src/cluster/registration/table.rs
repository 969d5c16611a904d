//! THE list of handled requests: resource and operation → handling. The server dispatches on it, and the webhook
//! configurations are generated from it.

use crate::api::ObjectKind;
use crate::api::cluster_topology::{CLUSTER_TOPOLOGY, CLUSTER_TOPOLOGY_KEP75};
use crate::api::coordinated_policy::COORDINATED_POLICY;
use crate::api::grove::{POD_CLIQUE_SET, POD_GANG_SET};
use crate::api::pod::POD;
use crate::api::pod_group::POD_GROUP;
use crate::api::rbg::{ROLE_BASED_GROUP, ROLE_BASED_GROUP_INSTAI, ROLE_BASED_GROUP_V1ALPHA2};
use crate::api::review::Request;
use crate::api::role_coordination::ROLE_COORDINATION;
use crate::api::workload::{LEADER_WORKER_SET, STATEFUL_SET};

/// The webhook that a request was sent to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Endpoint {
    Mutate,
    Validate,
}

impl Endpoint {
    /// Returns the path of the URL.
    pub const fn path(self) -> &'static str {
        match self {
            Self::Mutate => "/mutate",
            Self::Validate => "/validate",
        }
    }
}

/// The handling of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Handling {
    /// Pods of groups get their gate and labels.
    HoldPod,
    /// Claimed workloads are frozen, or kept as frozen as they are.
    HoldRollout,
    /// ClusterTopologies get their finalizer.
    ProtectTopology,
    /// The object is judged by the rules of its kind.
    Judge,
}

#[derive(Clone, Copy, Debug)]
pub struct Row {
    pub endpoint: Endpoint,
    pub kind: ObjectKind,
    pub operations: &'static [&'static str],
    pub handling: Handling,
}

pub const TABLE: &[Row] = &[
    Row { endpoint: Endpoint::Mutate, kind: POD, operations: CREATE, handling: Handling::HoldPod },
    Row { endpoint: Endpoint::Mutate, kind: STATEFUL_SET, operations: WRITE, handling: Handling::HoldRollout },
    Row { endpoint: Endpoint::Mutate, kind: LEADER_WORKER_SET, operations: WRITE, handling: Handling::HoldRollout },
    Row { endpoint: Endpoint::Mutate, kind: CLUSTER_TOPOLOGY, operations: CREATE, handling: Handling::ProtectTopology },
    Row {
        endpoint: Endpoint::Mutate,
        kind: CLUSTER_TOPOLOGY_KEP75,
        operations: CREATE,
        handling: Handling::ProtectTopology,
    },
    judged(POD, CREATE),
    judged(ROLE_BASED_GROUP, WRITE),
    // Both versions: a request in one must not wait for a conversion to the other.
    judged(ROLE_BASED_GROUP_V1ALPHA2, WRITE),
    judged(ROLE_BASED_GROUP_INSTAI, WRITE),
    judged(ROLE_COORDINATION, WRITE),
    judged(CLUSTER_TOPOLOGY, &["CREATE", "UPDATE", "DELETE"]),
    judged(CLUSTER_TOPOLOGY_KEP75, &["CREATE", "UPDATE", "DELETE"]),
    judged(COORDINATED_POLICY, WRITE),
    judged(POD_GROUP, WRITE),
    judged(POD_CLIQUE_SET, WRITE),
    judged(POD_GANG_SET, WRITE),
];

const CREATE: &[&str] = &["CREATE"];
const WRITE: &[&str] = &["CREATE", "UPDATE"];

const fn judged(kind: ObjectKind, operations: &'static [&'static str]) -> Row {
    Row { endpoint: Endpoint::Validate, kind, operations, handling: Handling::Judge }
}

/// Returns the row of a request; `None` for a request out of scope, which is admitted.
pub fn find<O>(endpoint: Endpoint, request: &Request<'_, O>) -> Option<&'static Row> {
    TABLE.iter().find(|row| {
        row.endpoint == endpoint
            && row.kind.plural == request.resource.resource
            && row.kind.group == request.resource.group
            && row.kind.version == request.resource.version
            && request.sub_resource.as_deref().unwrap_or_default().is_empty()
            && row.operations.contains(&&*request.operation)
    })
}
