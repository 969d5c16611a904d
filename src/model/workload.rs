//! Workloads, as far as groups depend on them.

use std::collections::BTreeMap;
use std::fmt;

use crate::api::workload::{
    DEPLOYMENT, Deployment, LEADER_WORKER_SET, LeaderWorkerSet, PodTemplate, STATEFUL_SET, StatefulSet,
};
use crate::api::{IntOrString, Meta, ObjectKind};

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

impl WorkloadKind {
    /// Every kind.
    pub const ALL: &[Self] = &[Self::StatefulSet, Self::LeaderWorkerSet, Self::Deployment];

    /// As in `kind:`.
    pub const fn as_str(self) -> &'static str {
        self.object_kind().kind
    }

    /// What it is called at the API server.
    pub const fn object_kind(self) -> ObjectKind {
        match self {
            Self::StatefulSet => STATEFUL_SET,
            Self::LeaderWorkerSet => LEADER_WORKER_SET,
            Self::Deployment => DEPLOYMENT,
        }
    }

    /// The kind of this name.
    pub fn parse(kind: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|known| known.as_str() == kind)
    }
}

/// Names a workload.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkloadKey {
    /// Its namespace.
    pub namespace: String,
    /// Its kind.
    pub kind: WorkloadKind,
    /// Its name.
    pub name: String,
}

impl fmt::Display for WorkloadKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}/{}", self.kind.as_str(), self.namespace, self.name)
    }
}

/// Why a workload makes its pods one after another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OneByOne {
    /// StatefulSet: the next pod is made when the one before is ready.
    OrderedReady,
    /// LeaderWorkerSet: workers are made when their leader is ready.
    LeaderReady,
    /// LeaderWorkerSet: workers are made when their leader is scheduled.
    ExclusiveTopology,
}

/// Annotation of a LeaderWorkerSet: workers follow their leader into its domain.
pub const LWS_EXCLUSIVE_TOPOLOGY: &str = "leaderworkerset.sigs.k8s.io/exclusive-topology";

/// A workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workload {
    /// Its name.
    pub key: WorkloadKey,
    /// Desired replicas; a negative value reads as 0.
    pub desired: u32,
    /// Pods in one replica.
    pub replica_size: u32,
    /// Labels of its pods, one map for each template.
    pub template_labels: Vec<BTreeMap<String, String>>,
    /// Its own partition as written.
    pub partition: Option<i64>,
    /// True when it replaces no pods by itself.
    pub on_delete: bool,
    /// Extra replicas while an update is under way, as written.
    pub max_surge: Option<IntOrString>,
    /// Why it makes its pods one after another, if it does.
    pub one_by_one: Option<OneByOne>,
    /// DNS name of its first pod within the namespace, `decode-0.decode`; `None` without a governing Service.
    pub first_host: Option<String>,
}

impl Workload {
    /// Reads a StatefulSet.
    pub fn from_stateful_set(set: &StatefulSet) -> Self {
        let spec = &set.spec;
        let ordered = spec.pod_management_policy.as_deref().unwrap_or("OrderedReady") != "Parallel";
        Self {
            key: key(WorkloadKind::StatefulSet, &set.metadata),
            desired: desired(spec.replicas),
            replica_size: 1,
            template_labels: labels([&spec.template]),
            partition: spec.update_strategy.rolling_update.partition,
            on_delete: spec.update_strategy.r#type == "OnDelete",
            max_surge: None,
            one_by_one: ordered.then_some(OneByOne::OrderedReady),
            first_host: (!spec.service_name.is_empty())
                .then(|| format!("{}-{}.{}", set.metadata.display_name(), spec.ordinals.start, spec.service_name)),
        }
    }

    /// Reads a LeaderWorkerSet.
    pub fn from_leader_worker_set(set: &LeaderWorkerSet) -> Self {
        let spec = &set.spec;
        let template = &spec.leader_worker_template;
        let bounds = &spec.rollout_strategy.rolling_update_configuration;
        let one_by_one = if spec.startup_policy.as_deref() == Some("LeaderReady") {
            Some(OneByOne::LeaderReady)
        } else {
            set.metadata.annotation(LWS_EXCLUSIVE_TOPOLOGY).map(|_| OneByOne::ExclusiveTopology)
        };
        Self {
            key: key(WorkloadKind::LeaderWorkerSet, &set.metadata),
            desired: desired(spec.replicas),
            replica_size: desired(template.size).max(1),
            template_labels: labels(template.leader_template.iter().chain([&template.worker_template])),
            partition: bounds.partition,
            on_delete: false,
            max_surge: bounds.max_surge.clone(),
            one_by_one,
            first_host: Some(match spec.network_config.subdomain_policy.as_str() {
                "UniquePerReplica" => format!("{name}-0.{name}-0", name = set.metadata.display_name()),
                _ => format!("{name}-0.{name}", name = set.metadata.display_name()),
            }),
        }
    }

    /// Reads a Deployment.
    pub fn from_deployment(deployment: &Deployment) -> Self {
        Self {
            key: key(WorkloadKind::Deployment, &deployment.metadata),
            desired: desired(deployment.spec.replicas),
            replica_size: 1,
            template_labels: labels([&deployment.spec.template]),
            partition: None,
            on_delete: false,
            max_surge: None,
            one_by_one: None,
            first_host: None,
        }
    }

    /// The same but for its partition, which the loop moves: no group is read or refused by that.
    pub fn is_like(&self, other: &Self) -> bool {
        Self { partition: other.partition, ..self.clone() } == *other
    }

    /// True when an update may make replicas beyond the desired ones.
    pub fn surges(&self) -> bool {
        match &self.max_surge {
            None | Some(IntOrString::Int(0)) => false,
            Some(IntOrString::Int(_)) => true,
            Some(IntOrString::String(text)) => text.trim_end_matches('%').parse() != Ok(0),
        }
    }
}

fn key(kind: WorkloadKind, meta: &Meta) -> WorkloadKey {
    WorkloadKey { namespace: meta.namespace().to_owned(), kind, name: meta.display_name().to_owned() }
}

fn labels<'a>(templates: impl IntoIterator<Item = &'a PodTemplate>) -> Vec<BTreeMap<String, String>> {
    templates.into_iter().map(|template| template.metadata.labels.clone()).collect()
}

/// Replicas default to 1, as the API server does for every workload.
pub(super) fn desired(replicas: Option<i64>) -> u32 {
    u32::try_from(replicas.unwrap_or(1).max(0)).unwrap_or(u32::MAX)
}
