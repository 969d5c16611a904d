//! A pod, as far as planning needs it.

use std::cmp::Ordering;
use std::sync::Arc;

use crate::api::{Meta, Pod};
use crate::model::moment::Moment;
use crate::model::{Maker, PodIdentity, Queued, names, revision};
use crate::plan::view::{JobOf, Stamp};

/// A pod, as far as planning needs it.
#[expect(clippy::struct_excessive_bools, reason = "independent facts of a pod, not states of one machine")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodFacts {
    /// Name and unique id.
    pub pod: PodRef,
    /// Group, role, ordinal.
    pub identity: PodIdentity,
    /// True while it carries our gate.
    pub held: bool,
    /// True while it carries gates of others.
    pub gated: bool,
    /// True once it has a node.
    pub scheduled: bool,
    /// True while its `Ready` condition is, and for the pod of a Job that has done its work.
    pub ready: bool,
    /// Where it is in its batches, as its labels say; `None` for a pod without labels of a batch, which came before its group
    /// or has no number.
    pub labelled: Option<LabelledPlace>,
    /// Since when its `Ready` condition is true, in seconds since 1970, where that is said.
    pub ready_since: Option<u32>,
    /// Revision that it was made at.
    pub revision: Option<Arc<str>>,
    /// With which pods of other roles it was rolled, as it is labelled.
    pub cohort: Option<Arc<str>>,
    /// It does not name its group itself: it was found that the workload of its role made it.
    pub adopted: bool,
    /// It says that it is about to be taken away with its segment.
    pub draining: bool,
    /// It says that it is the one of its segment that autoscalers count.
    pub scale_pod: bool,
    /// PodGroups that it says it is in, in the words of whichever scheduler.
    pub pod_groups: Vec<Arc<str>>,
    /// Where it stands with Kueue.
    pub queued: Queued,
    /// When it was made, RFC 3339: those without an ordinal are served in this order.
    pub created: Option<Arc<str>>,
    /// What admission wrote on it.
    pub stamp: Stamp,
    /// The Job that it is of, where one made it.
    pub job: Option<Arc<JobOf>>,
    /// How many pods had been seen when it was first seen in its group, itself included: who knows the group as it was after
    /// that many knows it as it was after this one was made.
    pub seen: u64,
}

/// Names one pod, not its successor of the same name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PodRef {
    /// Name.
    pub name: Arc<str>,
    /// Unique id.
    pub uid: Arc<str>,
}

impl PodFacts {
    /// The facts of a pod; `None` for one that no count may include: terminating, Failed or Succeeded.
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
            // Who places it by its PodGroup lifts the gate.
            held: pod.has_gate(names::GATE) && meta.label(names::PLACED_BY).is_none(),
            gated: pod.spec.scheduling_gates.iter().flatten().any(|gate| gate.name != names::GATE),
            scheduled: pod.has_node(),
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
            created: meta.creation_timestamp.as_deref().map(Into::into),
            stamp: Stamp::of(meta),
            job: job_of(pod),
            seen: 0,
        })
    }
}

impl PodFacts {
    /// True when its labels say that it is a pod of this replica, in batches of this size. A number that its maker gives needs
    /// no label.
    pub fn is_labelled_as(&self, size: u32, ordinal: u32) -> bool {
        let is_numbered = self.identity.unnumbered.is_none() || self.identity.ordinal == Some(ordinal);
        is_numbered && self.labelled == Some(LabelledPlace::at(size, ordinal))
    }
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

fn pod_groups(meta: &Meta) -> Vec<Arc<str>> {
    let annotations = [names::VOLCANO_POD_GROUP, names::KAI_POD_GROUP].into_iter();
    let named = annotations.filter_map(|key| meta.annotation(key)).chain(meta.label(names::KUBE_POD_GROUP));
    named.filter(|name| !name.is_empty()).map(Into::into).collect()
}

/// Where a pod is in its batches, as its labels say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LabelledPlace {
    /// Replicas of its role in one batch; 0 where no label says that.
    pub size: u32,
    /// Its batch, from 0; [`u32::MAX`] where no label says that.
    pub segment: u32,
}

impl LabelledPlace {
    /// The place of a replica in batches of this size.
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

/// A held pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldPod {
    /// What is known of it.
    pub facts: Arc<PodFacts>,
    /// Ordinal of its replica, given or assigned.
    pub ordinal: u32,
}

impl HeldPod {
    /// Its role, empty where it names only the group.
    pub fn role(&self) -> &str {
        self.facts.identity.role.as_deref().unwrap_or_default()
    }

    /// The order in which pods are released and told of: by ordinal, role and name.
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
