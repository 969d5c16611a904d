//! Kinds of workload: one row for each, with everything in which they differ.

use super::names;
use crate::api::ObjectKind;
use crate::api::workload::{DEPLOYMENT, LEADER_WORKER_SET, STATEFUL_SET};

/// Kinds of workload that a role may refer to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WorkloadKind {
    /// `apps/v1 StatefulSet`.
    StatefulSet,
    /// `leaderworkerset.x-k8s.io/v1 LeaderWorkerSet`.
    LeaderWorkerSet,
    /// `apps/v1 Deployment`.
    Deployment,
}

/// What is known of a kind of workload.
#[derive(Debug)]
pub struct WorkloadRow {
    /// What it is called at the API server.
    pub object: ObjectKind,
    /// What kubectl calls it as well.
    pub short: &'static str,
    /// Steps to the templates of its pods; not every object has each.
    pub templates: &'static [&'static [&'static str]],
    /// The label by which its pods name it; `None` where they are those of its `spec.selector`.
    pub named_by: Option<&'static str>,
    /// Where its rollout is held; `None` for a kind without a partition.
    pub rollout: Option<RolloutFields>,
    /// Whether the names of its pods say their ordinals.
    pub numbered: bool,
    /// Whether an update may make replicas beyond the desired ones.
    pub surge: Surge,
    /// Where it is told that its pods cannot be made.
    pub failures: FailuresIn,
    /// The kind of the objects that make its pods for it: one of its own name, and one for each replica.
    pub made_by: Option<WorkloadKind>,
    /// What makes those of its pods that have no number.
    pub unnumbered_by: &'static [MadeBy],
    /// What controls its pods.
    pub controller: PodController,
    /// How many parts follow its name in those of its pods, with hyphens between: at least, at most.
    pub name_parts: (usize, usize),
}

/// What made a pod that has no number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MadeBy {
    /// A controller.
    #[default]
    Controller,
    /// A LeaderWorkerSet whose groups have no numbers.
    HashedGroup,
    /// Nobody controls it.
    Nobody,
    /// Nobody controls it, and it has labels that only a controller gives: it is a copy of a pod, or its controller let it go.
    NobodyNow,
    /// A StatefulSet that let it go, and can make no other while it has the name.
    LetGo,
}

/// What controls the pods of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PodController {
    /// The workload itself.
    Itself,
    /// Objects whose names begin with its own.
    Parts,
    /// A ReplicaSet, which has its name and the value of this label of the pods.
    ReplicaSet(&'static str),
}

/// The fields by which a rollout is held.
#[derive(Clone, Copy, Debug)]
pub struct RolloutFields {
    /// Fields of which a change replaces pods.
    pub revised: &'static [&'static str],
    /// Steps to the partition.
    pub partition: &'static [&'static str],
    /// The strategy's word: under `OnDelete` no partition may be set.
    pub strategy: &'static str,
}

/// Whether an update may make replicas beyond the desired ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Surge {
    /// It makes none.
    Never,
    /// As its `maxSurge` says.
    AsWritten,
    /// It does unless it is told otherwise.
    Always,
}

/// Where it is told that pods cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailuresIn {
    /// In Events on the object that makes them.
    Events,
    /// In the workload's own status.
    Status,
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
    /// Every kind.
    pub const ALL: &[Self] = &[Self::StatefulSet, Self::LeaderWorkerSet, Self::Deployment];

    /// What is known of the kind.
    pub const fn row(self) -> &'static WorkloadRow {
        match self {
            Self::StatefulSet => &STATEFUL_SET_ROW,
            Self::LeaderWorkerSet => &LEADER_WORKER_SET_ROW,
            Self::Deployment => &DEPLOYMENT_ROW,
        }
    }

    /// As in `kind:`.
    pub const fn as_str(self) -> &'static str {
        self.object_kind().kind
    }

    /// What it is called at the API server.
    pub const fn object_kind(self) -> ObjectKind {
        self.row().object
    }

    /// The kind of this name.
    pub fn parse(kind: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|known| known.as_str() == kind)
    }

    /// Kinds that can be held in a rollout.
    pub fn with_partition() -> impl Iterator<Item = Self> {
        Self::ALL.iter().copied().filter(|kind| kind.row().rollout.is_some())
    }

    /// Kinds whose pods objects of this kind make for them.
    pub fn makes_for(self) -> impl Iterator<Item = Self> {
        Self::ALL.iter().copied().filter(move |kind| kind.row().made_by == Some(self))
    }
}
