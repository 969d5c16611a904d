//! The facts of a pod that planning needs.

use std::cmp::Ordering;
use std::sync::Arc;

use crate::api::{Meta, Pod};
use crate::model::moment::Moment;
use crate::model::{MEMBER_KEYS, Maker, MemberKey, PodIdentity, Queued, foreign_gate, names, pinned, revision};
use crate::plan::view::{JobOf, Stamp};

#[expect(clippy::struct_excessive_bools, reason = "independent facts of a pod, not states of one machine")]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodFacts {
    /// Name and uid.
    pub pod: PodRef,
    /// Group, role and ordinal.
    pub identity: PodIdentity,
    /// Whether it has the gate of rolegate.
    pub held: bool,
    /// Whether it has other scheduling gates.
    pub gated: bool,
    /// The first of these that is not Kueue's.
    pub foreign_gate: Option<Arc<str>>,
    pub scheduled: bool,
    /// What the scheduler says of a pod for which it finds no node.
    pub unschedulable: Option<Arc<str>>,
    /// Whether its `Ready` condition is true, or it belongs to a Job and has succeeded.
    pub ready: bool,
    /// The place in its batches by its labels; `None` for a pod without batch labels: it is older than its group, or has no
    /// number.
    pub labelled: Option<LabelledPlace>,
    /// The time since when its `Ready` condition is true, in seconds since 1970.
    pub ready_since: Option<u32>,
    pub revision: Option<Arc<str>>,
    /// The cohort by its label.
    pub cohort: Option<Arc<str>>,
    /// Whether it lacks the label of its group: its workload shows that it belongs to the role.
    pub adopted: bool,
    /// Whether it is marked as draining: it is about to be taken away with its segment.
    pub draining: bool,
    /// Whether it is the pod of its segment that autoscalers count.
    pub scale_pod: bool,
    /// The PodGroups that it names, each with the label or annotation of its scheduler.
    pub pod_groups: Vec<(MemberKey, Arc<str>)>,
    pub queued: Queued,
    /// Where its release has sent it, as [`pinned::text`].
    pub pinned: Option<Arc<str>>,
    /// The creation time, RFC 3339: pods without an ordinal are served in this order.
    pub created: Option<Arc<str>>,
    pub stamp: Stamp,
    /// The Job that created it.
    pub job: Option<Arc<JobOf>>,
    /// The number of pods seen so far when it was first seen, itself included: a group that is known as of that number is known
    /// as of a time after the creation of this pod.
    pub seen: u64,
}

/// A reference to one pod, which does not match a successor of the same name.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PodRef {
    pub name: Arc<str>,
    pub uid: Arc<str>,
}

impl PodFacts {
    /// Returns the facts of a pod; `None` for a terminating, Failed or Succeeded pod, which never counts.
    pub fn of(pod: &Pod, identity: PodIdentity) -> Option<Self> {
        if pod.is_gone() {
            return None;
        }
        let meta = &pod.metadata;
        Some(Self {
            pod: PodRef {
                name: meta.name.as_deref().unwrap_or_default().into(),
                uid: meta.uid.as_deref().unwrap_or_default().into(),
            },
            identity,
            // A scheduler that places the pod by its PodGroup lifts the gate.
            held: pod.has_gate(names::GATE) && meta.label(names::PLACED_BY).is_none(),
            gated: pod.spec.scheduling_gates.iter().flatten().any(|gate| gate.name != names::GATE),
            foreign_gate: foreign_gate(pod.spec.scheduling_gates.iter().flatten().map(|gate| gate.name.as_str()))
                .map(Into::into),
            scheduled: pod.has_node(),
            unschedulable: pod.unschedulable().filter(|_| !pod.has_node()).map(in_short),
            ready: pod.condition_is_true("Ready") || pod.is_completed(),
            labelled: LabelledPlace::of(meta),
            ready_since: ready_since(pod),
            revision: revision(meta).map(Into::into),
            cohort: meta.label(names::COHORT).map(Into::into),
            adopted: names::LABEL_SCHEMES.iter().all(|(group, _)| meta.label(group).is_none_or(str::is_empty)),
            draining: meta.label(names::DRAINING) == Some("true"),
            scale_pod: meta.label(names::SCALE_POD).is_some(),
            pod_groups: pod_groups(meta),
            queued: Queued::of(pod),
            pinned: meta.annotation(names::PINNED).filter(|_| !pod.has_gate(names::GATE)).map(Into::into),
            created: meta.creation_timestamp.as_deref().map(Into::into),
            stamp: Stamp::of(meta),
            job: job_of(pod),
            seen: 0,
        })
    }
}

/// A pod to delete, so that its controller makes it again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deletion {
    pub pod: Arc<PodFacts>,
    /// Whether the other pods of its replica are deleted with it, and before it.
    pub with_dependents: bool,
}

impl PodFacts {
    /// Reports whether it is the first of several pods in its replica: the others depend on it, and are deleted with it.
    pub fn leads(&self) -> bool {
        self.identity.replica_size > 1 && self.identity.member == Some(0)
    }

    /// Reports whether its labels name this replica, in batches of this size. A number given by its controller needs no label.
    pub fn is_labelled_as(&self, size: u32, ordinal: u32) -> bool {
        let is_numbered = self.identity.unnumbered.is_none() || self.identity.ordinal == Some(ordinal);
        is_numbered && self.labelled == Some(LabelledPlace::at(size, ordinal))
    }

    /// Returns the value of a node label to which its release has sent it.
    pub fn sent_to(&self, key: &str) -> Option<&str> {
        pinned::read(self.pinned.as_deref()?).find(|(known, _)| *known == key).map(|(_, value)| value)
    }

    /// Returns the PodGroup that it names under this key.
    pub fn pod_group(&self, key: MemberKey) -> Option<&str> {
        self.pod_groups.iter().find(|(known, _)| *known == key).map(|(_, name)| &**name)
    }
}

/// The maximum number of characters of a message of the scheduler.
const SAID: usize = 240;

/// Returns the start of a message of the scheduler: why no node takes the pod, without why preemption does not help.
fn in_short(message: &str) -> Arc<str> {
    let why = message.split(" preemption: ").next().unwrap_or_default().trim_end_matches(['.', ' ']);
    why.chars().take(SAID).collect::<String>().into()
}

fn ready_since(pod: &Pod) -> Option<u32> {
    let mut conditions = pod.status.conditions.iter();
    let ready = conditions.find(|condition| condition.r#type == "Ready" && condition.status == "True")?;
    u32::try_from(Moment::parse(ready.last_transition_time.as_deref()?)?.0).ok()
}

fn job_of(pod: &Pod) -> Option<Arc<JobOf>> {
    let is_one_of_many = match Maker::of(&pod.metadata) {
        Maker::Job(_) => false,
        Maker::JobOfSet { .. } => true,
        _ => return None,
    };
    let uid = pod.metadata.controller()?.uid.as_str().into();
    Some(Arc::new(JobOf { uid, is_one_of_many, is_done: pod.is_completed() }))
}

fn pod_groups(meta: &Meta) -> Vec<(MemberKey, Arc<str>)> {
    MEMBER_KEYS.iter().filter_map(|key| Some((*key, key.read(meta)?.into()))).collect()
}

/// The place of a pod in its batches, by its labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LabelledPlace {
    /// The replicas of the role in one batch; 0 without a label.
    pub size: u32,
    /// The batch, from 0; [`u32::MAX`] without a label.
    pub segment: u32,
}

impl LabelledPlace {
    /// Returns the place of a replica in batches of this size.
    pub fn at(size: u32, ordinal: u32) -> Self {
        Self { size, segment: ordinal.checked_div(size).unwrap_or_default() }
    }

    fn of(meta: &Meta) -> Option<Self> {
        let [size, segment] = [names::KEP75_SUBGROUP_SIZE, names::SEGMENT].map(|key| meta.label(key));
        segment.or_else(|| meta.label(names::KEP75_INSTANCE_INDEX))?;
        let number = |text: Option<&str>| text.and_then(|text| text.parse().ok());
        Some(Self { size: number(size).unwrap_or_default(), segment: number(segment).unwrap_or(u32::MAX) })
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldPod {
    pub facts: Arc<PodFacts>,
    /// The ordinal of its replica, given or assigned.
    pub ordinal: u32,
}

impl HeldPod {
    /// Returns the role, empty if the pod names only the group.
    pub fn role(&self) -> &str {
        self.facts.identity.role.as_deref().unwrap_or_default()
    }

    /// Compares by ordinal, role and name: the order of releases and messages.
    pub(in crate::plan) fn in_order(&self, other: &Self) -> Ordering {
        (self.ordinal, self.role(), &self.pod).cmp(&(other.ordinal, other.role(), &other.pod))
    }
}

impl std::ops::Deref for HeldPod {
    type Target = PodFacts;

    fn deref(&self) -> &PodFacts {
        &self.facts
    }
}
