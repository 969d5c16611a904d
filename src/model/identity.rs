//! From a pod to its group, role and ordinal: one pure function over the label schemes of every maker of pods.

use super::{GroupKey, names};
use crate::api::{Meta, Pod};

/// What ties a pod to a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodIdentity {
    /// Its group.
    pub group: GroupKey,
    /// Its role, `None` when only the group is named.
    pub role: Option<String>,
    /// Index of its replica in the role, from 0; `None` where the maker gives none (Deployments, stateless RoleInstanceSets).
    pub ordinal: Option<u32>,
    /// Pods of its replica: 1, or the size of its LeaderWorkerSet group or RoleInstance.
    pub replica_size: u32,
}

/// `spec.ordinals.start` of StatefulSets, which their pods do not carry.
pub trait OrdinalStarts {
    /// Where the numbering of this StatefulSet's pods starts; 0 when it is not known.
    fn start(&self, namespace: &str, stateful_set: &str) -> i64;
}

/// Every StatefulSet counts from 0.
impl OrdinalStarts for () {
    fn start(&self, _: &str, _: &str) -> i64 {
        0
    }
}

/// The group, role and ordinal of a pod; `None` for a pod that names no group. The namespace is the request's, since a
/// pod may leave its own out.
pub fn identify(pod: &Pod, namespace: &str, starts: &impl OrdinalStarts) -> Option<PodIdentity> {
    let meta = &pod.metadata;
    let (group, role) = names::LABEL_SCHEMES
        .iter()
        .find_map(|(group, role)| Some((non_empty(meta.label(group))?, non_empty(meta.label(role)))))?;
    Some(PodIdentity {
        group: GroupKey::new(namespace, group),
        role: role.map(str::to_owned),
        ordinal: ORDINAL_SOURCES.iter().find_map(|source| source(meta, namespace, starts)).flatten(),
        replica_size: replica_size(meta),
    })
}

fn non_empty(value: Option<&str>) -> Option<&str> {
    value.filter(|value| !value.is_empty())
}

/// One maker's way to number replicas: `None` when the pod is not of this maker, `Some(None)` when it is and has no ordinal.
type OrdinalSource = fn(&Meta, &str, &dyn OrdinalStarts) -> Option<Option<u32>>;

/// Makers of pods, the more special first: an LWS worker also has a pod-index, which is its index within the group.
const ORDINAL_SOURCES: &[OrdinalSource] = &[lws_group, rbg_instance, instance, stateful_set];

/// LeaderWorkerSet: the group's index. Only workers are born with the label; before LWS's own webhook has run, a leader
/// has its place in the StatefulSet of leaders.
fn lws_group(meta: &Meta, namespace: &str, starts: &dyn OrdinalStarts) -> Option<Option<u32>> {
    meta.label(names::LWS_NAME)?;
    if let Some(index) = meta.label(names::LWS_GROUP_INDEX) {
        return Some(index.parse().ok());
    }
    let is_leader = meta.label(names::LWS_WORKER_INDEX) == Some("0");
    Some(if is_leader { stateful_set(meta, namespace, starts).flatten() } else { None })
}

/// RBG ≥ v0.7: the number that ends the RoleInstance's name. The label role-instance-index is not read: pods made in one
/// go all carry the last one's, and after a rollout it is missing.
fn rbg_instance(meta: &Meta, _: &str, _: &dyn OrdinalStarts) -> Option<Option<u32>> {
    Some(number_at_end(meta.label(names::RBG_INSTANCE)?))
}

/// RBG ≤ v0.6: the number that ends the Instance's name; the pod's own name ends in the member's.
fn instance(meta: &Meta, _: &str, _: &dyn OrdinalStarts) -> Option<Option<u32>> {
    Some(number_at_end(meta.label(names::INSTANCE_NAME)?))
}

/// StatefulSet: the pod's index, or the number that ends its name, counted from `spec.ordinals.start`.
fn stateful_set(meta: &Meta, namespace: &str, starts: &dyn OrdinalStarts) -> Option<Option<u32>> {
    let owner = meta.controller().filter(|owner| owner.kind == "StatefulSet")?;
    let index = meta.label(names::POD_INDEX).and_then(|index| index.parse::<i64>().ok());
    let index = index.or_else(|| meta.name.as_deref().and_then(number_at_end).map(i64::from));
    Some(index.and_then(|index| u32::try_from(index - starts.start(namespace, &owner.name)).ok()))
}

fn number_at_end(name: &str) -> Option<u32> {
    name.rsplit_once('-')?.1.parse().ok()
}

fn replica_size(meta: &Meta) -> u32 {
    let size = meta.annotation(names::LWS_SIZE).or_else(|| meta.label(names::RBG_INSTANCE_SIZE));
    size.and_then(|size| size.parse().ok()).filter(|size| *size > 0).unwrap_or(1)
}
