//! What the loop is to do after a pass, and what it reports when that is done.

use std::sync::Arc;

use crate::api::ObjectKind;
use crate::api::status::GroupStatus;
use crate::model::{GangTree, Group, Placement, Queued, RolledWorkload, ScaledWorkload};
use crate::plan::decide::missing_pods::{Diagnosis, MissingPods};
use crate::plan::decide::placed::Pin;
use crate::plan::decide::pod_groups::BatchPodGroup;
use crate::plan::decide::surplus::Surplus;
use crate::plan::marks::Mark;
use crate::plan::reconcile::dropped::StatusCarrier;
use crate::plan::reconcile::events::EventNote;
use crate::plan::reconcile::pod_group_memory::{FoundPodGroup, PodGroupId};
use crate::plan::reconcile::scales::ScaleOutcome;
use crate::plan::recovery::{Judged, Suspect};
use crate::plan::view::{HeldPod, LabelledPlace, PodRef};

/// What is to be done. The end of each is reported to the reconciler, except that of those that publish.
#[derive(Clone, Debug)]
pub enum Action {
    /// Take our gate off a pod.
    Release {
        /// The pod.
        pod: PodRef,
        /// The replica whose batch labels it lacks.
        labels: Option<MissingLabels>,
        /// What it is bound to.
        pin: Pin,
        /// Where it stands with Kueue.
        queued: Queued,
    },
    /// Write the status of the group if nobody changed the object since it was read.
    WriteStatus {
        /// The group as it was read.
        group: Arc<Group>,
        /// Its status to be.
        status: GroupStatus,
        /// What is to be said when it is written: it was true of the version that was read.
        then: Vec<EventNote>,
    },
    /// Tell an object that another one controls its group.
    WriteConflicted {
        /// The group as that object carries it.
        other: Arc<Group>,
        /// Its status to be.
        status: GroupStatus,
    },
    /// Make the PodGroup of a batch, or loosen it.
    EnsurePodGroup {
        /// The group.
        group: Arc<Group>,
        /// The PodGroup.
        gang: BatchPodGroup,
    },
    /// Find the PodGroups that were made for batches of the group.
    FindPodGroups {
        /// The group.
        group: Arc<Group>,
    },
    /// Remove the PodGroup of a batch that is no more.
    RemovePodGroup {
        /// The group.
        group: Arc<Group>,
        /// The PodGroup.
        id: PodGroupId,
    },
    /// Set the partition of a workload with an open rollout, if nobody changed it since it was read.
    SetPartition {
        /// The workload as it was read.
        workload: Box<RolledWorkload>,
        /// Its partition to be.
        partition: u32,
        /// The rollout is over: the partition is its user's again.
        ends: bool,
    },
    /// Give a workload other replicas, if neither it nor what its group has committed has changed since it was read.
    Scale {
        /// The group as it was read.
        group: Arc<Group>,
        /// The role.
        role: String,
        /// The workload as it was read.
        workload: Box<ScaledWorkload>,
        /// Its replicas to be.
        replicas: u32,
        /// What is to be said when that is done.
        then: Vec<EventNote>,
    },
    /// Give labels to a pod, or take them away.
    Mark {
        /// The pod, and what it is to say.
        mark: Mark,
    },
    /// Delete a pod if it still has no node, so that it is made again.
    Recreate {
        /// The pod.
        pod: PodRef,
    },
    /// Delete a pod of a batch that is made anew.
    Delete {
        /// The pod.
        pod: PodRef,
        /// The other pods of its replica go with it, and before it.
        with_dependents: bool,
    },
    /// Find out whether replicas are lost that look so.
    LookAtLosses {
        /// The group.
        group: Arc<Group>,
        /// The batches that look broken.
        suspects: Vec<Suspect>,
    },
    /// Find out why pods do not appear.
    DiagnoseMissingPods {
        /// The group.
        group: Arc<Group>,
        /// Replicas that lack pods.
        missing: Vec<MissingPods>,
    },
    /// Find out which pods beyond the desired replicas a rollout made.
    FindSurge {
        /// The group.
        group: Arc<Group>,
        /// The pods.
        surplus: Vec<Surplus>,
    },
    /// Read the group live: what the watches know of it may be older than pods that are to be released.
    ConfirmGroup,
    /// Look which of the pods that run are there, before they count for a group that has never committed anything.
    ConfirmPods,
    /// Ask the API server whether the group is gone.
    VerifyGone {
        /// Kind of the object that carried it, where that is known.
        carrier: Option<ObjectKind>,
    },
    /// Note on a PodGroup where its pods go, if nobody changed it since it was read.
    CommitPlacement {
        /// The PodGroup as it was read.
        tree: Arc<GangTree>,
        /// What is to be noted.
        placement: Placement,
    },
    /// Ask the API server whether a PodGroup is gone.
    VerifyPodGroupGone,
    /// Publish Events of a PodGroup.
    PublishOfPodGroup {
        /// The PodGroup.
        tree: Arc<GangTree>,
        /// The Events.
        events: Vec<EventNote>,
    },
    /// Publish Events of pods.
    PublishOfPods {
        /// The Events, each with its pod.
        events: Vec<(PodRef, EventNote)>,
    },
    /// Publish Events.
    Publish {
        /// The group.
        group: Arc<Group>,
        /// The Events.
        events: Vec<EventNote>,
    },
}

impl Action {
    /// The word that it was done, or why it failed and is to be tried again. What finds something out has found nothing; what
    /// says something ends without a word.
    pub fn ended(&self, failure: Option<&str>) -> Option<Ended> {
        let failed = failure.is_some();
        let why = || failure.map(str::to_owned);
        let tried = |name: &str, uid: &Arc<str>| Ended::Tried {
            object: PodRef { name: name.into(), uid: uid.clone() },
            failure: why(),
        };
        Some(match self {
            Self::LookAtLosses { .. } => Ended::LossesSeen { judged: None },
            Self::Release { pod, .. } | Self::Recreate { pod } | Self::Delete { pod, .. } => {
                Ended::Tried { object: pod.clone(), failure: why() }
            }
            Self::WriteStatus { .. } => Ended::Written { failure: why() },
            Self::WriteConflicted { other, .. } => tried(&other.carrier.name, &other.carrier.uid.as_str().into()),
            Self::EnsurePodGroup { group, gang } => {
                let (owner, failure) = (group.carrier.uid.clone(), why());
                Ended::PodGroupEnsured { owner, gang: gang.clone(), failure }
            }
            Self::FindPodGroups { group } => Ended::PodGroupsFound { owner: group.carrier.uid.clone(), found: None },
            Self::RemovePodGroup { id, .. } => Ended::PodGroupRemoved { id: id.clone(), failed },
            Self::Scale { role, workload, replicas, .. } => {
                let outcome = failure.map_or(ScaleOutcome::Done(*replicas), |why| ScaleOutcome::Failed(why.to_owned()));
                Ended::Scaled { role: role.clone(), uid: workload.uid.clone(), outcome }
            }
            Self::Mark { mark } => Ended::Tried { object: mark.pod.clone(), failure: why() },
            Self::SetPartition { workload, .. } => tried(&workload.key.name, &workload.uid),
            Self::DiagnoseMissingPods { .. } => Ended::Diagnosed { diagnoses: Vec::new() },
            Self::FindSurge { .. } => Ended::Surge { proven: Vec::new() },
            Self::ConfirmGroup => Ended::Confirmed { failed },
            Self::ConfirmPods => Ended::PodsConfirmed { failed },
            Self::VerifyGone { .. } | Self::VerifyPodGroupGone => Ended::Verified { gone: false },
            Self::CommitPlacement { .. } => Ended::PlacementCommitted { failed },
            Self::Publish { .. } | Self::PublishOfPodGroup { .. } | Self::PublishOfPods { .. } => return None,
        })
    }
}

/// A replica whose pods came before their group, or have no ordinal of their own, or were made when its batches had
/// another size.
#[derive(Clone, Debug)]
pub struct MissingLabels {
    /// The group.
    pub group: Arc<Group>,
    /// The role.
    pub role: String,
    /// Ordinal of the replica.
    pub ordinal: u32,
    /// Only those of another size are missing.
    pub size_only: bool,
    /// Revision that the pod was made at.
    pub revision: Option<Arc<str>>,
}

impl MissingLabels {
    /// Those of a held pod; `None` when it has all.
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

/// A write or a read that has ended.
#[derive(Clone, Debug)]
pub enum Ended {
    /// One try of a write on one object: a release, or the status of an object that controls nothing.
    Tried {
        /// The object.
        object: PodRef,
        /// Why it is to be tried again, for people.
        failure: Option<String>,
    },
    /// The status of the group was written, or somebody was faster.
    Written {
        /// Why it is to be tried again, for people.
        failure: Option<String>,
    },
    /// A status was written, and not all of it was stored.
    StatusDropped {
        /// The object.
        object: StatusCarrier,
        /// Fields that were not stored as they were written.
        fields: Vec<&'static str>,
    },
    /// The PodGroup of a batch was made, or was there.
    PodGroupEnsured {
        /// Uid of the object that carries the group.
        owner: String,
        /// The PodGroup.
        gang: BatchPodGroup,
        /// Why it is to be tried again, for people; `None` when it is there.
        failure: Option<String>,
    },
    /// It was looked which PodGroups were made for batches of a group.
    PodGroupsFound {
        /// Uid of the object that carries the group.
        owner: String,
        /// These; `None` when it is to be tried again.
        found: Option<Vec<FoundPodGroup>>,
    },
    /// The PodGroup of a batch that is no more was removed, or was not there.
    PodGroupRemoved {
        /// The PodGroup.
        id: PodGroupId,
        /// True when it is to be tried again.
        failed: bool,
    },
    /// A workload was scaled, or not.
    Scaled {
        /// Its role.
        role: String,
        /// Its unique id.
        uid: Arc<str>,
        /// What became of it.
        outcome: ScaleOutcome,
    },
    /// It was looked whether replicas are lost.
    LossesSeen {
        /// What that has shown; `None` when it is to be tried again.
        judged: Option<Vec<Judged>>,
    },
    /// It was asked why pods do not appear.
    Diagnosed {
        /// Why, one entry for each role at most.
        diagnoses: Vec<Diagnosis>,
    },
    /// It was asked which pods beyond the desired replicas a rollout made.
    Surge {
        /// These pods.
        proven: Vec<PodRef>,
    },
    /// The group was read: what the index knows of it is no older than the question.
    Confirmed {
        /// True when it is to be tried again.
        failed: bool,
    },
    /// It was looked which pods are there: the index knows of no other that runs.
    PodsConfirmed {
        /// True when it is to be tried again.
        failed: bool,
    },
    /// It was noted on a PodGroup where its pods go, or somebody was faster.
    PlacementCommitted {
        /// True when nothing was noted.
        failed: bool,
    },
    /// It was asked whether the group is gone.
    Verified {
        /// True when it is certainly gone.
        gone: bool,
    },
}
