//! Facts about other objects that rules need.

use std::fmt;

use crate::api::ObjectKind;
use crate::model::{AwaitedKind, GroupKey, WorkloadKey};

/// A fact outside the judged object that a rule looks up. The caller of the judgement reads it first: from caches, by a live
/// read, or from the files at hand.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Need {
    /// The RoleBasedGroup of this name, of any served version.
    RoleBasedGroup(GroupKey),
    /// All RoleBasedGroups and RoleCoordinations of the namespace, which may coordinate the group or its workloads as well.
    Groups {
        /// The namespace.
        namespace: String,
    },
    Workload(WorkloadKey),
    /// A ClusterTopology of either API group.
    ClusterTopology(String),
    /// All RoleBasedGroups and RoleCoordinations that refer to this ClusterTopology.
    TopologyReferrers(String),
    /// Whether a role of a group has pods.
    Pods {
        /// The group.
        group: GroupKey,
        role: String,
    },
    /// All PodDisruptionBudgets of the namespace.
    DisruptionBudgets {
        /// The namespace.
        namespace: String,
    },
    /// All HorizontalPodAutoscalers of the namespace.
    Autoscalers {
        /// The namespace.
        namespace: String,
    },
    /// The CoordinatedPolicy of this name, which RBG applies to the group of the same name.
    CoordinatedPolicy(GroupKey),
    PodGroup(GroupKey),
    Service(GroupKey),
    /// KAI's Topology of this name.
    KaiTopology(String),
    /// Whether the API server serves objects of this kind.
    Served(ObjectKind),
    /// Whether a kind that rolegate watches has no namespaces.
    ClusterScoped(AwaitedKind),
    /// Whether the author may create objects of a kind (SubjectAccessReview).
    MayCreate {
        namespace: String,
        kind: ObjectKind,
    },
    /// Whether the author may scale a workload (SubjectAccessReview).
    MayScale(WorkloadKey),
    /// Whether the author may delete pods (SubjectAccessReview).
    MayDeletePods {
        /// The namespace.
        namespace: String,
    },
    /// Whether rolegate watches a kind, and the author may get its objects (SubjectAccessReview).
    MayGet {
        namespace: String,
        kind: AwaitedKind,
    },
}

impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RoleBasedGroup(key) => write!(f, "RoleBasedGroup {key}"),
            Self::Groups { namespace } => write!(f, "the groups of namespace {namespace:?}"),
            Self::Workload(key) => key.fmt(f),
            Self::ClusterTopology(name) => write!(f, "ClusterTopology {name}"),
            Self::TopologyReferrers(name) => write!(f, "the groups that refer to ClusterTopology {name}"),
            Self::Pods { group, role } => write!(f, "the pods of role {role:?} of group {group}"),
            Self::DisruptionBudgets { namespace } => write!(f, "the disruption budgets of namespace {namespace:?}"),
            Self::Autoscalers { namespace } => write!(f, "the autoscalers of namespace {namespace:?}"),
            Self::MayScale(key) => write!(f, "the author's right to scale {key}"),
            Self::CoordinatedPolicy(key) => write!(f, "CoordinatedPolicy {key}"),
            Self::PodGroup(key) => write!(f, "PodGroup {key}"),
            Self::Service(key) => write!(f, "Service {key}"),
            Self::KaiTopology(name) => write!(f, "Topology {name}"),
            Self::Served(kind) => write!(f, "what the API server says of {}", kind.crd_name()),
            Self::ClusterScoped(kind) => write!(f, "whether {kind} has namespaces"),
            Self::MayCreate { kind, .. } => write!(f, "the author's right to create {}", kind.crd_name()),
            Self::MayGet { namespace, kind } => write!(f, "the author's right to get {kind} in {namespace:?}"),
            Self::MayDeletePods { namespace } => write!(f, "the author's right to delete pods in {namespace:?}"),
        }
    }
}

/// The state of a fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known<T> {
    /// The object exists, or the fact is true.
    Present(T),
    /// A live read proves the opposite.
    Absent,
    /// Not read: rules that depend on it do not judge.
    Unknown,
}

impl<T> Known<T> {
    pub fn present(self) -> Option<T> {
        match self {
            Self::Present(value) => Some(value),
            Self::Absent | Self::Unknown => None,
        }
    }
}
