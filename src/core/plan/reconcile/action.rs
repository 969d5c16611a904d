//! Actions of the loop after a pass, and their results.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::api::ObjectKind;
use crate::api::status::GroupStatus;
use crate::model::{GangTree, Group, Placement, Queued, RolledWorkload, ScaledWorkload};
use crate::plan::decide::missing_pods::{Diagnosis, MissingPods};
use crate::plan::decide::placed::Pin;
use crate::plan::decide::pod_groups::{BatchPodGroup, MemberEdit};
use crate::plan::decide::surplus::Surplus;
use crate::plan::marks::Mark;
use crate::plan::provision::entry::RequestObject;
use crate::plan::reconcile::dropped::StatusCarrier;
use crate::plan::reconcile::events::EventNote;
use crate::plan::reconcile::owned_memory::{FoundOwned, OwnedId};
use crate::plan::reconcile::tries::{Read, Try};
use crate::plan::recovery::{Judged, Suspect};
use crate::plan::view::{HeldPod, LabelledPlace, PodRef};

/// An action of the loop. The result of each is reported to the reconciler, except for Events.
#[derive(Clone, Debug)]
pub enum Action {
    /// Lift the gate of rolegate from a pod.
    Release {
        pod: PodRef,
        /// The replica whose batch labels the pod lacks.
        labels: Option<MissingLabels>,
        /// The PodGroups that the pod does not name yet, or no longer.
        pod_groups: Vec<MemberEdit>,
        /// The domain or node that the pod is bound to.
        pin: Pin,
        queued: Queued,
        /// The ProvisioningRequest whose nodes the pod takes, and its class.
        consumes: Option<(String, String)>,
    },
    /// Set or remove labels of a pod, and its deletion cost.
    Mark(Mark),
    /// Delete a pod, so that it is recreated.
    Delete { pod: PodRef, extent: Extent },
    /// Write the state of an object, if the object has not changed since it was read.
    WriteStatus(StatusWrite),
    /// Change a workload by one step, if the workload has not changed since it was read.
    Step(Step),
    /// Write an object that the carrier of the group owns.
    WriteOwned {
        /// The group, whose object is the owner.
        group: Arc<Group>,
        id: OwnedId,
        write: OwnedWrite,
    },
    /// Read live what the watches do not show.
    Read(Question),
    /// Publish Events of an object.
    Publish { about: About, events: Vec<EventNote> },
}

/// The pods that a deletion takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// The pod, if it still has no node.
    Unscheduled,
    /// A pod that runs in another domain than its batch.
    Stray,
    /// An old pod that its controller would not replace in time.
    Outdated,
    /// An updated pod of a rollout that goes back; with the other pods of its replica, if these depend on it.
    RolledBack { with_dependents: bool },
    /// The pod of a batch that is recreated.
    Pod,
    /// The same, with the other pods of its replica, which are deleted before it.
    Dependents,
}

#[derive(Clone, Debug)]
pub enum StatusWrite {
    /// The status of the group.
    Group {
        /// The group as it was read.
        group: Arc<Group>,
        status: Box<GroupStatus>,
        /// Events to publish after the write: they were true of the version that was read.
        then: Vec<EventNote>,
        /// Whether the group is read before: the last write was never answered, and may have landed.
        reads_first: bool,
    },
    /// The status of an object whose group another object controls.
    Conflicted {
        /// The group as that object carries it.
        other: Arc<Group>,
        status: Box<GroupStatus>,
    },
    /// The placement of pods on their PodGroup.
    Placement {
        /// The PodGroup as it was read.
        tree: Arc<GangTree>,
        placement: Placement,
    },
}

#[derive(Clone, Debug)]
pub enum Step {
    /// Set the partition of a workload with an open rollout.
    Partition {
        /// The workload as it was read.
        workload: Box<RolledWorkload>,
        partition: u32,
        /// Whether the rollout is over: the partition belongs to the user again.
        ends: bool,
    },
    /// Scale a workload, if the commits of its group have not changed either.
    Replicas {
        /// The group as it was read.
        group: Arc<Group>,
        role: String,
        /// The workload as it was read.
        workload: Box<ScaledWorkload>,
        replicas: u32,
        /// Events to publish after the write.
        then: Vec<EventNote>,
    },
}

#[derive(Clone, Debug)]
pub enum OwnedWrite {
    /// Create a PodGroup, or relax it to this minimum of members.
    Ensure(BatchPodGroup),
    /// Create an object of a request for nodes.
    Create(Box<RequestObject>),
    /// Relax one that is left over: no more pods will name it, and those that do must not wait for others.
    Relax(u32),
    /// Delete it: nothing asks for it any more, and no pod names it.
    Remove,
}

/// A live read.
#[derive(Clone, Debug)]
pub enum Question {
    /// The group: the watched state may be older than pods that are to be released.
    Group,
    /// The running pods, before they count for a group that has never committed anything.
    Pods,
    /// The objects that were created for batches of the group, whose object owns them.
    Owned { group: Arc<Group>, kinds: BTreeSet<ObjectKind> },
    /// Whether replicas that look lost are lost.
    Losses {
        group: Arc<Group>,
        /// The batches that look broken.
        suspects: Vec<Suspect>,
    },
    /// Why pods do not appear.
    MissingPods {
        group: Arc<Group>,
        /// The replicas that lack pods.
        missing: Vec<MissingPods>,
    },
    /// Which pods beyond the desired replicas a rollout created.
    Surge {
        group: Arc<Group>,
        /// The held pods beyond the desired replicas, by role.
        surplus: Vec<Surplus>,
    },
    /// Whether the group or PodGroup is gone.
    Gone {
        /// The kind of the object that carried the group, if known.
        carrier: Option<ObjectKind>,
    },
}

/// The object that Events are about.
#[derive(Clone, Debug)]
pub enum About {
    /// The object that carries the group, and the workloads of the roles that an Event names.
    Group(Arc<Group>),
    PodGroup(Arc<GangTree>),
    Pod(PodRef),
}

/// The result of a write or a read.
#[derive(Clone, Debug)]
pub enum Ended {
    Written {
        target: Target,
        /// The error, as text; the write is tried again. Empty if the error is not known.
        failure: Option<String>,
    },
    /// A status was written, and stored only in part.
    StatusDropped {
        target: Target,
        object: StatusCarrier,
        /// The fields that were not stored as written.
        fields: Vec<&'static str>,
    },
    /// The write of the status of the group was not answered in time: it may have landed, or may still.
    StatusLate {
        why: String,
    },
    Read(Answer),
}

/// The target of a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// The status of the group, or the placement of the PodGroup, that is reconciled.
    Status,
    /// A pod, the partition of a workload, or the status of an object that controls nothing, by uid.
    Object(Arc<str>),
    /// The replicas of a workload.
    Replicas { role: String, uid: Arc<str>, replicas: u32 },
    Owned {
        id: OwnedId,
        /// The minimum of members of a PodGroup, 1 for another object; `None` for one that is deleted.
        members: Option<u32>,
    },
}

/// The answer to a [`Question`].
#[derive(Clone, Debug)]
pub enum Answer {
    /// The index is no older than the question, unless the read has failed and is to be tried again.
    Group { failed: bool },
    /// The index knows all pods that run, unless the read has failed and is to be tried again.
    Pods { failed: bool },
    Owned {
        /// The uid of the object that carries the group.
        owner: String,
        /// The objects; `None` if the read is to be tried again.
        found: Option<Vec<FoundOwned>>,
    },
    /// The verdicts; `None` if the read is to be tried again.
    Losses(Option<Vec<Judged>>),
    /// The reasons, at most one for each role.
    MissingPods(Vec<Diagnosis>),
    /// The pods that a rollout created.
    Surge(Vec<PodRef>),
    /// Whether the group or PodGroup is certainly gone.
    Gone(bool),
}

impl Action {
    /// Returns the result of an action without findings: done, or failed and to be tried again. Events have none.
    pub fn ended(&self, failure: Option<&str>) -> Option<Ended> {
        let target = match self {
            Self::Release { pod, .. } | Self::Delete { pod, .. } | Self::Mark(Mark { pod, .. }) => {
                Target::Object(pod.uid.clone())
            }
            Self::WriteStatus(write) => write.target(),
            Self::Step(Step::Partition { workload, .. }) => Target::Object(workload.uid.clone()),
            Self::Step(Step::Replicas { role, workload, replicas, .. }) => {
                Target::Replicas { role: role.clone(), uid: workload.uid.clone(), replicas: *replicas }
            }
            Self::WriteOwned { id, write, .. } => Target::Owned { id: id.clone(), members: write.members() },
            Self::Read(question) => return Some(Ended::Read(question.without_findings(failure.is_some()))),
            Self::Publish { .. } => return None,
        };
        Some(Ended::written(target, failure))
    }

    /// Returns the key among the writes and reads under way.
    pub(in crate::plan) fn key(&self) -> Option<Try> {
        self.ended(None)?.key()
    }

    /// Publishes an Event of a pod.
    pub(in crate::plan) fn of_pod((pod, event): (PodRef, EventNote)) -> Self {
        Self::Publish { about: About::Pod(pod), events: vec![event] }
    }
}

impl Ended {
    pub fn written(target: Target, failure: Option<&str>) -> Self {
        Self::Written { target, failure: failure.map(str::to_owned) }
    }

    /// Returns the key among the writes and reads under way; `None` for a result that has a record of its own.
    pub(in crate::plan) fn key(&self) -> Option<Try> {
        Some(match self {
            Self::Written { target, .. } | Self::StatusDropped { target, .. } => match target {
                Target::Status => return None,
                Target::Object(uid) | Target::Replicas { uid, .. } => Try::Object(uid.clone()),
                Target::Owned { id, .. } => Try::Owned(id.clone()),
            },
            Self::StatusLate { .. } => return None,
            Self::Read(answer) => match answer {
                Answer::Group { .. } => Try::Read(Read::Group),
                Answer::Pods { .. } => Try::Read(Read::Pods),
                Answer::Owned { owner, .. } => Try::OwnedBy(owner.clone()),
                Answer::Losses(_) => Try::Read(Read::Losses),
                Answer::Gone(_) => Try::Read(Read::Gone),
                Answer::MissingPods(_) | Answer::Surge(_) => return None,
            },
        })
    }

    /// Returns the error, if it failed and is tried again.
    pub(in crate::plan) fn failure(&self) -> Option<&str> {
        match self {
            Self::Written { failure, .. } => failure.as_deref(),
            Self::Read(
                Answer::Group { failed: true }
                | Answer::Pods { failed: true }
                | Answer::Owned { found: None, .. }
                | Answer::Losses(None),
            ) => Some(""),
            _ => None,
        }
    }
}

impl StatusWrite {
    pub fn target(&self) -> Target {
        match self {
            Self::Group { .. } | Self::Placement { .. } => Target::Status,
            Self::Conflicted { other, .. } => Target::Object(other.carrier.uid.as_str().into()),
        }
    }
}

impl OwnedWrite {
    fn members(&self) -> Option<u32> {
        match self {
            Self::Ensure(gang) => Some(gang.min_member),
            Self::Create(_) => Some(1),
            Self::Relax(members) => Some(*members),
            Self::Remove => None,
        }
    }
}

impl Question {
    fn without_findings(&self, failed: bool) -> Answer {
        match self {
            Self::Group => Answer::Group { failed },
            Self::Pods => Answer::Pods { failed },
            Self::Owned { group, .. } => Answer::Owned { owner: group.carrier.uid.clone(), found: None },
            Self::Losses { .. } => Answer::Losses(None),
            Self::MissingPods { .. } => Answer::MissingPods(Vec::new()),
            Self::Surge { .. } => Answer::Surge(Vec::new()),
            Self::Gone { .. } => Answer::Gone(false),
        }
    }
}

/// A replica whose pods lack batch labels: they are older than their group, have no ordinal of their own, or were created with
/// another batch size.
#[derive(Clone, Debug)]
pub struct MissingLabels {
    pub group: Arc<Group>,
    pub role: String,
    pub ordinal: u32,
    /// Whether only the labels that depend on the batch size are missing.
    pub size_only: bool,
    pub revision: Option<Arc<str>>,
}

impl MissingLabels {
    /// Returns the missing labels of a held pod; `None` if it has all.
    pub(in crate::plan) fn of(group: &Arc<Group>, pod: &HeldPod) -> Option<Self> {
        let size_only = pod.labelled.is_some();
        let at_place = |size| pod.labelled == Some(LabelledPlace::at(size, pod.ordinal));
        if size_only && group.batch_size(pod.role()).is_none_or(at_place) {
            return None;
        }
        let (role, revision) = (pod.role().to_owned(), pod.revision.clone());
        Some(Self { group: group.clone(), role, ordinal: pod.ordinal, size_only, revision })
    }
}
