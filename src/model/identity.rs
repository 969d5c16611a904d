//! From a pod to its group, role and ordinal: one pure function over the label schemes of every maker of pods.

use super::workload_object::LWS_EXCLUSIVE_TOPOLOGY;
use super::{GroupKey, names};
use crate::api::meta::OwnerReference;
use crate::api::{Meta, Pod};

/// What ties a pod to a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodIdentity {
    /// Its group.
    pub group: GroupKey,
    /// Its role, `None` when only the group is named.
    pub role: Option<String>,
    /// Index of its replica in the role, from 0; `None` where the maker gives none (Deployments, stateless RoleInstanceSets).
    /// A replica beyond the desired ones keeps its index: whether it is one too many is for the loop to say.
    pub ordinal: Option<u32>,
    /// Index of the pod in its replica, from 0; `None` where the maker does not number the pods of one replica.
    pub member: Option<u32>,
    /// Pods of its replica: 1, or the size of its LeaderWorkerSet group or RoleInstance.
    pub replica_size: u32,
    /// True where the pods of its replica are all made at once, as far as the pod can say: a LeaderWorkerSet may still
    /// wait for the leader (startup policy LeaderReady), which only the set itself tells.
    pub made_at_once: bool,
    /// Where the maker gives no ordinal: an ordinal is the one that the loop assigned when it released the pod.
    pub unnumbered: Option<Unnumbered>,
}

/// A replica that its maker does not number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unnumbered {
    /// What the pods of one replica have in common: their RoleInstance. `None` where each pod is a replica.
    pub instance: Option<String>,
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
    let numbers = MAKERS.iter().find_map(|maker| maker(meta, namespace, starts)).unwrap_or_default();
    let instance = || meta.label(names::RBG_INSTANCE).or(meta.label(names::INSTANCE_NAME)).map(str::to_owned);
    Some(PodIdentity {
        group: GroupKey::new(namespace, group),
        role: role.map(str::to_owned),
        ordinal: numbers.ordinal.or_else(|| number(meta.label(names::KEP75_INSTANCE_INDEX)?)),
        member: numbers.member,
        replica_size: replica_size(meta),
        made_at_once: made_at_once(meta),
        unnumbered: numbers.ordinal.is_none().then(|| Unnumbered { instance: instance() }),
    })
}

fn non_empty(value: Option<&str>) -> Option<&str> {
    value.filter(|value| !value.is_empty())
}

/// What a maker of pods says about the place of one.
#[derive(Clone, Copy, Debug)]
struct Numbers {
    ordinal: Option<u32>,
    member: Option<u32>,
}

/// Of a maker that numbers nothing, each pod is a replica. The loop assigns the ordinal and writes it on the pod, as KEP-75
/// does, in the label role-instance-index.
impl Default for Numbers {
    fn default() -> Self {
        Self { ordinal: None, member: Some(0) }
    }
}

/// One maker's way to number its pods; `None` when the pod is not of this maker.
type Maker = fn(&Meta, &str, &dyn OrdinalStarts) -> Option<Numbers>;

/// Makers of pods, the more special first: an LWS worker also has a pod-index, which is its index within the group.
const MAKERS: &[Maker] = &[lws_group, rbg_instance, instance, stateful_set];

/// LeaderWorkerSet: the group's index. Only workers are born with the label; before LWS's own webhook has run, a leader
/// has its place in the StatefulSet of leaders, and a worker lacks its index, which is its place in the StatefulSet of its
/// group. The latter counts from 1, so that its numbers are those of the workers: no start is taken off here.
fn lws_group(meta: &Meta, _: &str, _: &dyn OrdinalStarts) -> Option<Numbers> {
    meta.label(names::LWS_NAME)?;
    let place = || index_in_set(meta, meta.controller()?);
    let member = meta.label(names::LWS_WORKER_INDEX).map_or_else(place, number);
    let ordinal = match meta.label(names::LWS_GROUP_INDEX) {
        Some(index) => number(index),
        None if member == Some(0) => place(),
        None => None,
    };
    Some(Numbers { ordinal, member })
}

/// RBG ≥ v0.7: the number that ends the RoleInstance's name. The label role-instance-index is not read: pods made in one
/// go all carry the last one's, and after a rollout it is missing.
fn rbg_instance(meta: &Meta, _: &str, _: &dyn OrdinalStarts) -> Option<Numbers> {
    let ordinal = instance_number(meta.label(names::RBG_INSTANCE)?);
    let alone = meta.label(names::RBG_INSTANCE_SIZE).is_none_or(|size| size == "1");
    let member = meta.label(names::RBG_MEMBER).map_or_else(|| alone.then_some(0), number);
    Some(Numbers { ordinal, member })
}

/// RBG ≤ v0.6: the number that ends the Instance's name; the pod's own name ends in the member's.
fn instance(meta: &Meta, _: &str, _: &dyn OrdinalStarts) -> Option<Numbers> {
    let name = meta.label(names::INSTANCE_NAME)?;
    let member = meta.name.as_deref().and_then(|pod| pod.strip_prefix(name)?.strip_prefix('-').and_then(number));
    Some(Numbers { ordinal: instance_number(name), member })
}

/// StatefulSet: the pod's index, counted from `spec.ordinals.start`.
fn stateful_set(meta: &Meta, namespace: &str, starts: &dyn OrdinalStarts) -> Option<Numbers> {
    let owner = meta.controller().filter(|owner| owner.kind == "StatefulSet")?;
    let from_start = |index: u32| u32::try_from(i64::from(index) - starts.start(namespace, &owner.name)).ok();
    Some(Numbers { ordinal: index_in_set(meta, owner).and_then(from_start), ..Numbers::default() })
}

/// The index of a StatefulSet's pod, as labelled since Kubernetes 1.28, or as it follows the set's name in the pod's.
fn index_in_set(meta: &Meta, set: &OwnerReference) -> Option<u32> {
    let in_name = |name: &str| number(name.strip_prefix(set.name.as_str())?.strip_prefix('-')?);
    let labelled = meta.label(names::POD_INDEX).and_then(number);
    let named = || meta.name.as_deref().or(meta.label(names::STATEFUL_SET_POD)).and_then(in_name);
    labelled.or_else(named)
}

/// Letters of a stateless RoleInstance's random id: the API machinery's `rand.String`.
const RANDOM_ID: &str = "bcdfghjklmnpqrstvwxz2456789";
/// Length of a stateless RoleInstance's random id.
const RANDOM_ID_LENGTH: usize = 5;

/// The number that ends an instance's name. Five letters that a random id may have are none, even when all are digits: a
/// stateless instance read as number 24 567 would never be released. No group has that many replicas of a role.
fn instance_number(name: &str) -> Option<u32> {
    let (_, end) = name.rsplit_once('-')?;
    let is_random = end.len() == RANDOM_ID_LENGTH && end.chars().all(|letter| RANDOM_ID.contains(letter));
    if is_random { None } else { number(end) }
}

/// Digits only: the standard library also takes a sign.
pub(super) fn number(text: &str) -> Option<u32> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

fn replica_size(meta: &Meta) -> u32 {
    let size = meta.annotation(names::LWS_SIZE).or_else(|| meta.label(names::RBG_INSTANCE_SIZE));
    size.and_then(number).filter(|size| *size > 0).unwrap_or(1)
}

/// LeaderWorkerSet makes the workers of an exclusive topology after their leader has a node; RBG makes leader and workers
/// together. Of an instance of custom components the pods do not say how many there are.
fn made_at_once(meta: &Meta) -> bool {
    let by_lws = meta.annotation(names::LWS_SIZE).is_some() && meta.annotation(LWS_EXCLUSIVE_TOPOLOGY).is_none();
    by_lws || (meta.label(names::RBG_INSTANCE_SIZE).is_some() && meta.label(names::RBG_MEMBER).is_some())
}
