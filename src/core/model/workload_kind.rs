//! Kinds of workload: one row for each, with all their differences.

use super::names;
use crate::api::ObjectKind;
use crate::api::workload::{DEPLOYMENT, LEADER_WORKER_SET, STATEFUL_SET};

/// Kinds of workload that a role may refer to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WorkloadKind {
    /// `apps/v1 StatefulSet`.
    #[default]
    StatefulSet,
    /// `leaderworkerset.x-k8s.io/v1 LeaderWorkerSet`.
    LeaderWorkerSet,
    /// `apps/v1 Deployment`.
    Deployment,
}

/// Properties of a kind of workload.
#[derive(Debug)]
pub struct WorkloadRow {
    pub object: ObjectKind,
    /// Short name in kubectl.
    pub short: &'static str,
    /// Paths of the pod templates; an object may lack some of them.
    pub templates: &'static [&'static [&'static str]],
    /// Label by which pods name their workload; `None` if `spec.selector` selects them.
    pub named_by: Option<&'static str>,
    /// Fields that hold a rollout; `None` for a kind without a partition.
    pub rollout: Option<RolloutFields>,
    /// Whether the names of its pods contain their ordinals.
    pub numbered: bool,
    pub surge: Surge,
    pub failures: FailuresIn,
    /// Kind of the objects that create its pods: one of its own name, and one for each replica.
    pub made_by: Option<WorkloadKind>,
    /// Makers of its pods without a number.
    pub unnumbered_by: &'static [MadeBy],
    pub controller: PodController,
    /// Minimum and maximum number of parts, separated by hyphens, that follow its name in the names of its pods.
    pub name_parts: (usize, usize),
}

/// Maker of a pod without a number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MadeBy {
    #[default]
    Controller,
    /// A LeaderWorkerSet whose groups have no numbers.
    HashedGroup,
    /// No controller.
    Nobody,
    /// No controller, although the pod has labels that only a controller sets: it is a copy, or its controller released it.
    NobodyNow,
    /// A StatefulSet that released the pod, and cannot create another one while the pod has its name.
    LetGo,
}

/// Controller of a workload's pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PodController {
    /// The workload itself.
    Itself,
    /// Objects whose names begin with the workload's.
    Parts,
    /// A ReplicaSet, named after the workload and the value of this label of the pods.
    ReplicaSet(&'static str),
}

/// Fields by which a rollout is held.
#[derive(Clone, Copy, Debug)]
pub struct RolloutFields {
    /// Fields whose change replaces pods.
    pub revised: &'static [&'static str],
    /// Path of the partition.
    pub partition: &'static [&'static str],
    /// Path of the strategy's type; see [`takes_partition`].
    pub strategy: &'static str,
    /// Feature gate without which the API server drops `maxUnavailable`.
    pub at_once_gate: Option<&'static str>,
}

/// Whether an update may create replicas beyond the desired ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Surge {
    Never,
    /// If `maxSurge` says so.
    AsWritten,
    /// Taken for granted, whatever the strategy says.
    Always,
}

/// Where the failure to create pods is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailuresIn {
    /// In Events on the object that creates the pods.
    Events,
    Status,
}

/// Reports whether a workload with this update strategy may have a partition: the API server refuses one beside `OnDelete` and
/// `Recreate`. Without a strategy it is `RollingUpdate`.
pub fn takes_partition(strategy: Option<&str>) -> bool {
    matches!(strategy, None | Some("" | "RollingUpdate"))
}

const STATEFUL_SET_ROW: WorkloadRow = WorkloadRow {
    object: STATEFUL_SET,
    short: "sts",
    templates: &[&["spec", "template"]],
    named_by: None,
    rollout: Some(RolloutFields {
        revised: &["/spec/template"],
        partition: &["spec", "updateStrategy", "rollingUpdate", "partition"],
        strategy: "/spec/updateStrategy/type",
        at_once_gate: Some("MaxUnavailableStatefulSet"),
    }),
    numbered: true,
    surge: Surge::Never,
    failures: FailuresIn::Events,
    made_by: None,
    unnumbered_by: &[],
    controller: PodController::Itself,
    name_parts: (1, 1),
};

const LEADER_WORKER_SET_ROW: WorkloadRow = WorkloadRow {
    object: LEADER_WORKER_SET,
    short: "lws",
    templates: &[
        &["spec", "leaderWorkerTemplate", "leaderTemplate"],
        &["spec", "leaderWorkerTemplate", "workerTemplate"],
    ],
    named_by: Some(names::LWS_NAME),
    rollout: Some(RolloutFields {
        revised: &[
            "/spec/leaderWorkerTemplate/leaderTemplate",
            "/spec/leaderWorkerTemplate/workerTemplate",
            "/spec/leaderWorkerTemplate/size",
        ],
        partition: &["spec", "rolloutStrategy", "rollingUpdateConfiguration", "partition"],
        strategy: "/spec/rolloutStrategy/type",
        at_once_gate: None,
    }),
    numbered: true,
    surge: Surge::AsWritten,
    failures: FailuresIn::Events,
    made_by: Some(WorkloadKind::StatefulSet),
    unnumbered_by: &[MadeBy::HashedGroup],
    controller: PodController::Parts,
    name_parts: (1, 3),
};

const DEPLOYMENT_ROW: WorkloadRow = WorkloadRow {
    object: DEPLOYMENT,
    short: "deploy",
    templates: &[&["spec", "template"]],
    named_by: None,
    rollout: None,
    numbered: false,
    surge: Surge::Always,
    failures: FailuresIn::Status,
    made_by: None,
    unnumbered_by: &[MadeBy::Controller],
    controller: PodController::ReplicaSet("pod-template-hash"),
    name_parts: (2, 2),
};

impl WorkloadKind {
    pub const ALL: &[Self] = &[Self::StatefulSet, Self::LeaderWorkerSet, Self::Deployment];

    /// Returns the properties of the kind.
    pub const fn row(self) -> &'static WorkloadRow {
        match self {
            Self::StatefulSet => &STATEFUL_SET_ROW,
            Self::LeaderWorkerSet => &LEADER_WORKER_SET_ROW,
            Self::Deployment => &DEPLOYMENT_ROW,
        }
    }

    /// Returns the kind as in `kind:`.
    pub const fn as_str(self) -> &'static str {
        self.object_kind().kind
    }

    /// Returns the names of the kind at the API server.
    pub const fn object_kind(self) -> ObjectKind {
        self.row().object
    }

    /// Returns the kind of this name.
    pub fn parse(kind: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|known| known.as_str() == kind)
    }

    /// Returns the kinds whose rollouts can be held.
    pub fn with_partition() -> impl Iterator<Item = Self> {
        Self::ALL.iter().copied().filter(|kind| kind.row().rollout.is_some())
    }

    /// Returns the kinds whose pods are created by objects of this kind.
    pub fn makes_for(self) -> impl Iterator<Item = Self> {
        Self::ALL.iter().copied().filter(move |kind| kind.row().made_by == Some(self))
    }
}
