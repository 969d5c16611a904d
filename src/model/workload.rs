//! A workload, whatever its kind: what groups and rules depend on.

use std::collections::BTreeMap;
use std::fmt;

use super::names::LABEL_SCHEMES;
use super::workload_kind::Surge;
use super::{RolloutClaim, WorkloadKind};
use crate::api::IntOrString;

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

/// A workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workload {
    /// Its name.
    pub key: WorkloadKey,
    /// Its unique id; empty where it has none yet.
    pub uid: String,
    /// Desired replicas; a negative value reads as 0.
    pub desired: u32,
    /// Pods in one replica.
    pub replica_size: u32,
    /// Labels of its pods, one map for each template.
    pub template_labels: Vec<BTreeMap<String, String>>,
    /// Its own partition, as its user has written it.
    pub partition: Option<i64>,
    /// How long a pod of it must be ready before it counts, in seconds.
    pub min_ready_seconds: u32,
    /// Its own progress deadline is over: it says that it has failed.
    pub is_overdue: bool,
    /// True when it replaces no pods by itself.
    pub on_delete: bool,
    /// Extra replicas while an update is under way, as written.
    pub max_surge: Option<IntOrString>,
    /// Why it makes its pods one after another, if it does.
    pub one_by_one: Option<OneByOne>,
    /// Its claim to be rolled in lockstep.
    pub claim: Option<RolloutClaim>,
    /// The controller that owns it, as `RoleBasedGroup "pd"`.
    pub owner: Option<String>,
    /// True where Kueue queues all of its pods as one, and holds to the number that it has seen first.
    pub queued_as_one: bool,
    /// The annotation by which its pods ask Kueue for a place in a topology.
    pub asks_kueue: Option<&'static str>,
    /// DNS name of its first pod within the namespace, `decode-0.decode`; `None` without a governing Service.
    pub first_host: Option<String>,
}

/// What the pods of a workload do not say, and so what becomes of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unlabelled {
    /// They name the group and another role: they count for the role whose workload makes them.
    Role,
    /// They do not name the group: they are not held.
    Group,
}

impl Workload {
    /// The same but for its partition, which the loop moves: no group is read or refused by that.
    pub fn is_like(&self, other: &Self) -> bool {
        Self { partition: other.partition, ..self.clone() } == *other
    }

    /// What its pods do not say of this group and role, in the words of one of the schemes; `None` where they say all.
    pub fn unlabelled(&self, group: &str, role: &str) -> Option<Unlabelled> {
        let is = |labels: &BTreeMap<String, String>, key: &str, value: &str| {
            labels.get(key).is_some_and(|found| found.as_str() == value)
        };
        let lack = |labels: &BTreeMap<String, String>| {
            let of_group = || LABEL_SCHEMES.iter().filter(|(group_key, _)| is(labels, group_key, group));
            if of_group().any(|(_, role_key)| is(labels, role_key, role)) {
                None
            } else if of_group().next().is_some() {
                Some(Unlabelled::Role)
            } else {
                Some(Unlabelled::Group)
            }
        };
        self.template_labels.iter().filter_map(lack).max()
    }

    /// True when an update may make replicas beyond the desired ones.
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

/// More replicas than any cluster has room for, several times over. What is looked at replica by replica ends here, whatever
/// number somebody writes.
const MOST_REPLICAS: u32 = 1_000_000;

/// Replicas default to 1, as the API server does for every workload.
pub(super) fn desired(replicas: Option<i64>) -> u32 {
    most(replicas.unwrap_or(1))
}

/// A number of replicas or segments that can be; a negative one reads as 0.
pub(super) fn most(number: i64) -> u32 {
    u32::try_from(number.max(0)).map_or(MOST_REPLICAS, |number| number.min(MOST_REPLICAS))
}
