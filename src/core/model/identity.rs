//! The group, role and ordinal of a pod: one pure function over the label schemes of all controllers that create pods.

use std::str::FromStr;
use std::sync::Arc;

use super::{GroupKey, MadeBy, names};
use crate::api::meta::OwnerReference;
use crate::api::{Meta, Pod};

/// Identity of a pod in a group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodIdentity {
    pub group: GroupKey,
    /// `None` when only the group is named.
    pub role: Option<Arc<str>>,
    /// Index of the replica in the role, from 0; `None` if the controller gives none (Deployments, stateless RoleInstanceSets).
    /// A replica beyond the desired ones keeps its index; the loop decides whether it is one too many.
    pub ordinal: Option<u32>,
    /// Index of the pod in its replica, from 0; `None` if the controller does not number the pods of a replica.
    pub member: Option<u32>,
    /// Pods in the replica: 1, or the size of its LeaderWorkerSet group, RoleInstance or Job of a JobSet.
    pub replica_size: u32,
    /// True when all pods of the replica are created at once, as far as the pod can tell: a LeaderWorkerSet may still wait for
    /// the leader (startup policy LeaderReady), which only the set itself tells.
    pub made_at_once: bool,
    /// Set when the controller gives no ordinal; `ordinal` is then the one that the loop assigned when it released the pod.
    pub unnumbered: Option<Unnumbered>,
    /// True when rolegate's own label names the group, so that the pod is meant to be coordinated.
    pub named_by_us: bool,
}

/// A replica that its controller does not number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unnumbered {
    /// Name shared by the pods of one replica: their RoleInstance or their leader. `None` if each pod is a replica, and for a
    /// leader, whose own name it is.
    pub instance: Option<Box<str>>,
    pub by: MadeBy,
}

/// `spec.ordinals.start` of StatefulSets, which their pods do not carry.
pub trait OrdinalStarts {
    /// Returns the ordinal of the StatefulSet's first pod; 0 when it is not known.
    fn start(&self, namespace: &str, stateful_set: &str) -> i64;
}

/// Starts every StatefulSet at 0.
impl OrdinalStarts for () {
    fn start(&self, _: &str, _: &str) -> i64 {
        0
    }
}

/// Returns the identity of a pod; `None` for a pod that names no group. The namespace is that of the request, since a pod may
/// omit its own. A held pod keeps the identity of its creation when its labels change.
pub fn identify(pod: &Pod, namespace: &str, starts: &impl OrdinalStarts) -> Option<PodIdentity> {
    let meta = &pod.metadata;
    let held = pod.has_gate(names::GATE);
    let labelled = || {
        names::pod_schemes()
            .find_map(|(group, role)| Some((non_empty(meta.label(group))?, non_empty(meta.label(role)))))
    };
    let (group, role) = born_as(meta).filter(|_| held).or_else(labelled)?;
    let maker = Maker::of(meta);
    let numbers = maker.numbers(meta, namespace, starts);
    let instance = match maker {
        Maker::RoleInstance(name) | Maker::Instance(name) => Some(name.into()),
        Maker::HashedGroup { leader } => leader.map(Into::into),
        _ => None,
    };
    let by = match maker {
        Maker::HashedGroup { .. } => MadeBy::HashedGroup,
        _ if meta.controller().is_some() => MadeBy::Controller,
        _ if meta.name.is_some() && meta.label(names::STATEFUL_SET_POD) == meta.name.as_deref() => MadeBy::LetGo,
        _ if names::MAKERS_LABELS.iter().any(|key| meta.label(key).is_some()) => MadeBy::NobodyNow,
        _ => MadeBy::Nobody,
    };
    // The loop writes the number that it assigns in the PATCH that lifts the gate; before that there is none. An orphaned pod
    // of a StatefulSet has its number from creation.
    let assigned = || {
        meta.label(names::KEP75_INSTANCE_INDEX)
            .filter(|_| meta.uid.is_some() && (!held || by == MadeBy::LetGo))
            .and_then(number)
    };
    Some(PodIdentity {
        group: GroupKey::new(namespace, group),
        role: role.map(Into::into),
        ordinal: numbers.ordinal.or_else(assigned),
        member: numbers.member,
        replica_size: maker.replica_size(meta),
        made_at_once: maker.makes_at_once(meta),
        unnumbered: numbers.ordinal.is_none().then_some(Unnumbered { instance, by }),
        named_by_us: non_empty(meta.label(names::GROUP)).is_some(),
    })
}

/// Returns the group and the role that admission recorded when it held the pod.
fn born_as(meta: &Meta) -> Option<(&str, Option<&str>)> {
    let (group, role) = meta.annotation(names::BORN_AS)?.split_once('/')?;
    Some((non_empty(Some(group))?, non_empty(Some(role))))
}

fn non_empty(value: Option<&str>) -> Option<&str> {
    value.filter(|value| !value.is_empty())
}

/// The controller of a pod, by its kind and name: unlike labels, they cannot be changed on an existing pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Maker<'a> {
    /// A LeaderWorkerSet, by way of StatefulSets: one for the leaders, with the name of the set, and one for the workers of
    /// each group.
    LeaderWorkerSet {
        /// Name of the LeaderWorkerSet.
        name: &'a str,
        /// Index of the group; `None` for a leader, whose own index it is.
        group: Option<u32>,
    },
    /// A LeaderWorkerSet whose groups have no numbers (`groupIdentity: Hash`, KEP-898): a ReplicaSet creates the leaders, and
    /// the StatefulSet of a group's workers has the name of its leader.
    HashedGroup {
        /// Name of the group's leader; `None` for a leader, whose own name it is.
        leader: Option<&'a str>,
    },
    /// RBG ≥ v0.7: the RoleInstance of this name.
    RoleInstance(&'a str),
    /// RBG ≤ v0.6: the Instance of this name.
    Instance(&'a str),
    StatefulSet(&'a str),
    /// A Job, which numbers its pods if it is Indexed.
    Job(&'a str),
    /// One of several Jobs that a JobSet creates from one template; each has pods with the same completion indexes.
    JobOfSet {
        /// Name of the Job.
        name: &'a str,
        /// Index of the Job among those of the template.
        index: u32,
    },
    /// A controller that gives no numbers, such as a ReplicaSet or a PodClique, or no controller.
    Other,
}

/// Place of a pod, as its controller tells it.
#[derive(Clone, Copy, Debug)]
struct Numbers {
    ordinal: Option<u32>,
    member: Option<u32>,
}

/// If the controller numbers nothing, each pod is a replica. The loop assigns the ordinal and writes it on the pod, like
/// KEP-75, in the label role-instance-index.
impl Default for Numbers {
    fn default() -> Self {
        Self { ordinal: None, member: Some(0) }
    }
}

impl<'a> Maker<'a> {
    /// Reads the controller of a pod.
    pub fn of(meta: &'a Meta) -> Self {
        let Some(owner) = meta.controller() else { return Self::Other };
        let name = owner.name.as_str();
        match owner.kind.as_str() {
            "StatefulSet" => Self::leader_worker_set(meta, name).unwrap_or(Self::StatefulSet(name)),
            "ReplicaSet" if Self::is_hashed_leader(meta, name) => Self::HashedGroup { leader: None },
            "RoleInstance" => Self::RoleInstance(name),
            "Instance" => Self::Instance(name),
            "Job" => Self::job_of_set(meta, name).unwrap_or(Self::Job(name)),
            _ => Self::Other,
        }
    }

    /// Reports whether the name of a pod is that of its instance and a number.
    pub fn is_numbered_pod_of(meta: &Meta, instance: &str) -> bool {
        let in_name = |pod: &str| pod.strip_prefix(instance)?.strip_prefix('-').and_then(number::<u32>);
        meta.name.as_deref().and_then(in_name).is_some()
    }

    /// Returns the LeaderWorkerSet that the label names, if it creates this StatefulSet.
    fn leader_worker_set(meta: &'a Meta, stateful_set: &'a str) -> Option<Self> {
        let name = meta.label(names::LWS_NAME)?;
        let rest = stateful_set.strip_prefix(name)?;
        if rest.is_empty() {
            return Some(Self::LeaderWorkerSet { name, group: None });
        }
        let group = number(rest.strip_prefix('-')?);
        let hashed = || meta.annotation(names::LWS_SIZE).map(|_| Self::HashedGroup { leader: Some(stateful_set) });
        group.map(|group| Self::LeaderWorkerSet { name, group: Some(group) }).or_else(hashed)
    }

    /// Reports whether the ReplicaSet is that of a LeaderWorkerSet's leaders: its Deployment has the name of the set.
    fn is_hashed_leader(meta: &Meta, replica_set: &str) -> bool {
        let of_set = |name: &str| replica_set.strip_prefix(name).is_some_and(|rest| rest.starts_with('-'));
        meta.label(names::LWS_NAME).is_some_and(of_set) && meta.annotation(names::LWS_SIZE).is_some()
    }

    /// Returns the Job of the JobSet and template that the labels name, if the JobSet creates several Jobs of the template.
    fn job_of_set(meta: &Meta, job: &'a str) -> Option<Self> {
        let (set, template) = (meta.label(names::JOBSET_NAME)?, meta.label(names::JOBSET_TEMPLATE)?);
        let index = job.strip_prefix(set)?.strip_prefix('-')?.strip_prefix(template)?.strip_prefix('-')?;
        let index = number(index)?;
        (meta.label(names::JOBSET_REPLICAS) != Some("1")).then_some(Self::JobOfSet { name: job, index })
    }

    fn numbers(self, meta: &Meta, namespace: &str, starts: &impl OrdinalStarts) -> Numbers {
        let in_set = || meta.controller().and_then(|owner| index_in_set(meta, owner));
        match self {
            Self::LeaderWorkerSet { group: None, .. } => Numbers { ordinal: in_set(), member: Some(0) },
            // The StatefulSet of the workers starts at 1, so its indexes are those of the workers: no start is subtracted.
            Self::LeaderWorkerSet { group, .. } => Numbers { ordinal: group, member: in_set() },
            Self::HashedGroup { leader: None } => Numbers::default(),
            Self::HashedGroup { .. } => Numbers { ordinal: None, member: in_set() },
            // The label role-instance-index is not read: pods that are created in one go all carry the last index, and after a
            // rollout the label is missing.
            Self::RoleInstance(name) => {
                let alone = meta.label(names::RBG_INSTANCE_SIZE).is_none_or(|size| size == "1");
                let member = meta.label(names::RBG_MEMBER).map_or_else(|| alone.then_some(0), number);
                Numbers { ordinal: instance_number(name), member }
            }
            Self::Instance(name) => {
                let member =
                    meta.name.as_deref().and_then(|pod| pod.strip_prefix(name)?.strip_prefix('-').and_then(number));
                Numbers { ordinal: instance_number(name), member }
            }
            Self::StatefulSet(name) => {
                let from_start = |index| u32::try_from(i64::from(index) - starts.start(namespace, name)).ok();
                Numbers { ordinal: in_set().and_then(from_start), ..Numbers::default() }
            }
            Self::Job(name) => Numbers { ordinal: completion_index(meta, name), ..Numbers::default() },
            // A Job is a replica only if its number of pods is known; otherwise nothing tells when it is complete. The
            // completion indexes alone occur once in each Job.
            Self::JobOfSet { name, index } if own_size(meta).is_some() => {
                Numbers { ordinal: Some(index), member: completion_index(meta, name) }
            }
            Self::JobOfSet { .. } | Self::Other => Numbers::default(),
        }
    }

    /// Returns the number of pods in the replica.
    fn replica_size(self, meta: &Meta) -> u32 {
        let size = match self {
            Self::LeaderWorkerSet { .. } | Self::HashedGroup { .. } => meta.annotation(names::LWS_SIZE),
            Self::RoleInstance(_) => meta.label(names::RBG_INSTANCE_SIZE),
            Self::JobOfSet { .. } => return own_size(meta).unwrap_or(1),
            _ => None,
        };
        size.and_then(number).filter(|size| *size > 0).unwrap_or(1)
    }

    /// Reports whether all pods of the replica are created at once. LeaderWorkerSet and JobSet create the workers of an
    /// exclusive topology after their leader has a node; RBG creates leader and workers together. Pods of an instance of custom
    /// components do not tell their number.
    fn makes_at_once(self, meta: &Meta) -> bool {
        match self {
            Self::LeaderWorkerSet { .. } | Self::HashedGroup { .. } => {
                meta.annotation(names::LWS_SIZE).is_some() && meta.annotation(names::LWS_EXCLUSIVE_TOPOLOGY).is_none()
            }
            Self::RoleInstance(_) => {
                meta.label(names::RBG_INSTANCE_SIZE).is_some() && meta.label(names::RBG_MEMBER).is_some()
            }
            Self::JobOfSet { .. } => {
                own_size(meta).is_some() && meta.annotation(names::JOBSET_EXCLUSIVE_TOPOLOGY).is_none()
            }
            _ => false,
        }
    }
}

/// Returns the index of a StatefulSet's pod: the suffix of its name or, without a name, the label of Kubernetes ≥ 1.28.
fn index_in_set(meta: &Meta, set: &OwnerReference) -> Option<u32> {
    let in_name = |name: &str| number(name.strip_prefix(set.name.as_str())?.strip_prefix('-')?);
    match meta.name.as_deref().or(meta.label(names::STATEFUL_SET_POD)) {
        Some(name) => in_name(name),
        None => meta.label(names::POD_INDEX).and_then(number),
    }
}

/// Returns the completion index of an Indexed Job's pod, which is between the Job's name and a random suffix.
fn completion_index(meta: &Meta, job: &str) -> Option<u32> {
    let in_name = |name: &str| number(name.strip_prefix(job)?.strip_prefix('-')?.split_once('-')?.0);
    // Pods of a Job that is not Indexed have only a random suffix, which may look like a number.
    meta.annotation(names::COMPLETION_INDEX)?;
    meta.name.as_deref().or(meta.generate_name.as_deref()).and_then(in_name)
}

/// Returns the number of pods in a replica that the user set.
fn own_size(meta: &Meta) -> Option<u32> {
    meta.annotation(names::REPLICA_SIZE).and_then(number).filter(|size| *size > 0)
}

/// Letters of a stateless RoleInstance's random id, from the API machinery's `rand.String`.
const RANDOM_ID: &str = "bcdfghjklmnpqrstvwxz2456789";
const RANDOM_ID_LENGTH: usize = 5;

/// Returns the number at the end of an instance's name. Five letters that a random id may have are no number, even if all are
/// digits: a stateless instance read as number 24567 would never be released, and no group has that many replicas of a role.
fn instance_number(name: &str) -> Option<u32> {
    let (_, end) = name.rsplit_once('-')?;
    let is_random = end.len() == RANDOM_ID_LENGTH && end.chars().all(|letter| RANDOM_ID.contains(letter));
    if is_random { None } else { number(end) }
}

/// Parses digits only; the standard library also accepts a sign.
pub(super) fn number<T: FromStr>(text: &str) -> Option<T> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}
