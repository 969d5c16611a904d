//! A workload of any kind, limited to the fields that groups and rules depend on.

use std::collections::BTreeMap;
use std::fmt;

use super::engine::TemplateEngine;
use super::names::LABEL_SCHEMES;
use super::share::Unavailable;
use super::words::words;
use super::workload_kind::Surge;
use super::{Hosts, RolloutClaim, WorkloadKind};
use crate::api::{IntOrString, Meta};

/// Kind, namespace and name of a workload.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkloadKey {
    pub namespace: String,
    pub kind: WorkloadKind,
    pub name: String,
}

impl WorkloadKey {
    pub(super) fn of(kind: WorkloadKind, meta: &Meta) -> Self {
        Self { namespace: meta.namespace().to_owned(), kind, name: meta.display_name().to_owned() }
    }
}

impl fmt::Display for WorkloadKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}/{}", self.kind.as_str(), self.namespace, self.name)
    }
}

words! {
/// Reason for which a workload creates its pods one after another.
pub enum OneByOne {
    /// StatefulSet: the next pod is created when the previous one is ready.
    OrderedReady = "podManagementPolicy OrderedReady",
    /// LeaderWorkerSet: workers are created when their leader is ready.
    LeaderReady = "startupPolicy LeaderReady",
    /// LeaderWorkerSet: workers are created when their leader is scheduled.
    ExclusiveTopology = "exclusive topology",
}
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Workload {
    pub key: WorkloadKey,
    /// Empty for an object without one.
    pub uid: String,
    /// Desired replicas; a negative number counts as 0.
    pub desired: u32,
    /// Pods in one replica.
    pub replica_size: u32,
    /// Labels of its pods, one map for each template.
    pub template_labels: Vec<BTreeMap<String, String>>,
    /// Partition that its user set.
    pub partition: Option<i64>,
    /// Seconds that a pod must be ready before it counts.
    pub min_ready_seconds: u32,
    /// True when the workload reports that its progress deadline has passed.
    pub is_overdue: bool,
    /// False when its update strategy takes no partition.
    pub takes_partition: bool,
    /// Extra replicas during an update, as written.
    pub max_surge: Option<IntOrString>,
    /// Replicas that its controller updates at once, as written.
    pub max_unavailable: Option<IntOrString>,
    /// Reason for which it creates its pods one after another, if it does.
    pub one_by_one: Option<OneByOne>,
    /// LeaderWorkerSet: the subgroups of one group.
    pub subgroups: u32,
    /// LeaderWorkerSet: node label of which each subgroup has a value for itself.
    pub subgroup_topology: Option<String>,
    pub claim: Option<RolloutClaim>,
    /// The controller that owns it, as `RoleBasedGroup "pd"`.
    pub owner: Option<String>,
    /// True when Kueue queues all its pods as one and insists on the number that it saw first.
    pub queued_as_one: bool,
    /// Queue of Kueue that it or its pods name.
    pub queue: Option<String>,
    /// Annotation by which its pods ask Kueue for a place in a topology.
    pub asks_kueue: Option<&'static str>,
    /// DNS names of its pods within the namespace; `None` without a governing Service.
    pub hosts: Option<Hosts>,
    /// Engines that its pod templates ask for, as their annotations say; each once.
    pub engines: Vec<String>,
    /// What its pod templates say of the engine in their pods; of two, the first is that of the leader.
    pub templates: Vec<TemplateEngine>,
    /// The first gate of another controller in its pod templates.
    pub foreign_gate: Option<String>,
    /// The update of a StatefulSet that is under way.
    pub update: Option<OwnUpdate>,
}

/// How the controller of a StatefulSet replaces its pods, as it has observed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnUpdate {
    /// Revision of its new pods.
    pub revision: String,
    /// Ordinal from which on it replaces pods.
    pub from: u32,
}

/// Labels that the pods of a workload lack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unlabelled {
    pub lack: Lack,
    /// Name of the template that lacks them, if another one has them.
    pub template: Option<&'static str>,
}

/// The labels that pods lack, and the effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lack {
    /// They name the group and another role: they count for the role whose workload creates them.
    Role,
    /// They do not name the group: they are not held.
    Group,
}

impl Workload {
    /// Reports whether both are equal apart from the partition and the update under way, which the loop moves and on which no group
    /// depends.
    pub fn is_like(&self, other: &Self) -> bool {
        Self { partition: other.partition, update: other.update.clone(), ..self.clone() } == *other
    }

    /// Returns which labels of this group and role the pods lack in every label scheme; `None` if one scheme is complete.
    pub fn unlabelled(&self, group: &str, role: &str) -> Option<Unlabelled> {
        let is = |labels: &BTreeMap<String, String>, key: &str, value: &str| {
            labels.get(key).is_some_and(|found| found.as_str() == value)
        };
        let lack = |labels: &BTreeMap<String, String>| {
            let of_group = || LABEL_SCHEMES.iter().filter(|(group_key, _)| is(labels, group_key, group));
            if of_group().any(|(_, role_key)| is(labels, role_key, role)) {
                None
            } else if of_group().next().is_some() {
                Some(Lack::Role)
            } else {
                Some(Lack::Group)
            }
        };
        let lacks: Vec<_> = self.template_labels.iter().map(lack).collect();
        let worst = lacks.iter().copied().flatten().max()?;
        let at = lacks.iter().position(|lack| *lack == Some(worst))?;
        let is_one_of_two = lacks.iter().any(|lack| *lack != Some(worst));
        let template = self.key.kind.row().templates.get(at)?.last().copied().filter(|_| is_one_of_two);
        Some(Unlabelled { lack: worst, template })
    }

    /// Returns the number of replicas that its controller updates at once.
    pub fn updated_at_once(&self) -> u32 {
        Unavailable::parse(self.max_unavailable.as_ref()).of(self.desired)
    }

    /// Reports whether its old pods may be deleted several at once: its controller makes each of them again, whatever the others do.
    pub fn is_remade(&self) -> bool {
        let fields = self.key.kind.row().rollout;
        fields.is_some_and(|fields| fields.at_once_gate.is_some()) && self.one_by_one.is_none()
    }

    /// Reports whether an update may create replicas beyond the desired ones.
    pub fn surges(&self) -> bool {
        match self.key.kind.row().surge {
            Surge::Never => false,
            Surge::Always => true,
            Surge::AsWritten => match &self.max_surge {
                None | Some(IntOrString::Int(0)) => false,
                Some(IntOrString::Int(_)) => true,
                Some(IntOrString::String(text)) => text.trim_end_matches('%').parse() != Ok(0),
            },
        }
    }
}

/// Upper bound of all numbers of replicas, several times the room of any cluster. It limits loops over replicas, whatever
/// number is written.
const MOST_REPLICAS: u32 = 1_000_000;

/// Returns the desired replicas, by default 1 as in the API server.
pub(super) fn desired(replicas: Option<i64>) -> u32 {
    most(replicas.unwrap_or(1))
}

/// Returns a number of replicas or segments from 0 to `MOST_REPLICAS`.
pub(super) fn most(number: i64) -> u32 {
    u32::try_from(number.max(0)).map_or(MOST_REPLICAS, |number| number.min(MOST_REPLICAS))
}
