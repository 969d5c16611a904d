//! Actions of the loop after a pass, and their results.

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

/// An action of the loop. The result of each is reported to the reconciler, except for actions that publish.
#[derive(Clone, Debug)]
pub enum Action {
    /// Lift the gate of rolegate from a pod.
    Release {
        pod: PodRef,
        /// The replica whose batch labels the pod lacks.
        labels: Option<MissingLabels>,
        /// The domain or node that the pod is bound to.
        pin: Pin,
        queued: Queued,
    },
    /// Write the status of the group, if the object has not changed since it was read.
    WriteStatus {
        /// The group as it was read.
        group: Arc<Group>,
        status: GroupStatus,
        /// Events to publish after the write: they were true of the version that was read.
        then: Vec<EventNote>,
    },
    /// Write on an object that another one controls its group.
    WriteConflicted {
        /// The group as that object carries it.
        other: Arc<Group>,
        status: GroupStatus,
    },
    /// Create the PodGroup of a batch, or relax it.
    EnsurePodGroup {
        group: Arc<Group>,
        /// The PodGroup with its minimum of members.
        gang: BatchPodGroup,
    },
    /// Find the PodGroups that were created for batches of the group.
    FindPodGroups {
        /// The group, whose object owns the PodGroups.
        group: Arc<Group>,
    },
    /// Delete the PodGroup of a batch that no longer exists.
    RemovePodGroup {
        group: Arc<Group>,
        /// The PodGroup, which no pod names any longer.
        id: PodGroupId,
    },
    /// Set the partition of a workload with an open rollout, if the workload has not changed since it was read.
    SetPartition {
        /// The workload as it was read.
        workload: Box<RolledWorkload>,
        partition: u32,
        /// Whether the rollout is over: the partition belongs to the user again.
        ends: bool,
    },
    /// Scale a workload, if neither the workload nor the commits of its group have changed since they were read.
    Scale {
        /// The group as it was read.
        group: Arc<Group>,
        role: String,
        /// The workload as it was read.
        workload: Box<ScaledWorkload>,
        replicas: u32,
        /// Events to publish after the write.
        then: Vec<EventNote>,
    },
    /// Set or remove labels of a pod.
    Mark {
        /// The pod, its labels and its deletion cost.
        mark: Mark,
    },
    /// Delete a pod if it still has no node, so that it is recreated.
    Recreate {
        /// The pod, held or placed without a node.
        pod: PodRef,
    },
    /// Delete a pod of a batch that is recreated.
    Delete {
        pod: PodRef,
        /// Whether the other pods of its replica are deleted with it, and before it.
        with_dependents: bool,
    },
    /// Read live whether replicas that look lost are lost.
    LookAtLosses {
        group: Arc<Group>,
        /// The batches that look broken.
        suspects: Vec<Suspect>,
    },
    /// Read live why pods do not appear.
    DiagnoseMissingPods {
        group: Arc<Group>,
        /// The replicas that lack pods.
        missing: Vec<MissingPods>,
    },
    /// Read live which pods beyond the desired replicas a rollout created.
    FindSurge {
        group: Arc<Group>,
        /// The held pods beyond the desired replicas, by role.
        surplus: Vec<Surplus>,
    },
    /// Read the group live: the watched state may be older than pods that are to be released.
    ConfirmGroup,
    /// Read live which running pods exist, before they count for a group that has never committed anything.
    ConfirmPods,
    /// Ask the API server whether the group is gone.
    VerifyGone {
        /// The kind of the object that carried it, if known.
        carrier: Option<ObjectKind>,
    },
    /// Write the placement of pods on their PodGroup, if it has not changed since it was read.
    CommitPlacement {
        /// The PodGroup as it was read.
        tree: Arc<GangTree>,
        placement: Placement,
    },
    /// Ask the API server whether a PodGroup is gone.
    VerifyPodGroupGone,
    /// Publish Events of a PodGroup.
    PublishOfPodGroup {
        tree: Arc<GangTree>,
        /// The Events, published on the PodGroup only.
        events: Vec<EventNote>,
    },
    /// Publish Events of pods.
    PublishOfPods {
        /// The Events, each with its pod.
        events: Vec<(PodRef, EventNote)>,
    },
    /// Publish Events of a group.
    Publish {
        group: Arc<Group>,
        /// The Events, published on the group and on the workloads of their roles.
        events: Vec<EventNote>,
    },
}

impl Action {
    /// Returns the result of an action without findings: done, or failed and to be tried again. Actions that publish have none.
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

/// The result of a write or a read.
#[derive(Clone, Debug)]
pub enum Ended {
    /// One try of a write on one object: a release, or the status of an object that controls nothing.
    Tried {
        object: PodRef,
        /// The error, as text; the write is tried again.
        failure: Option<String>,
    },
    /// The status of the group was written, or another client was faster.
    Written {
        /// The error, as text; the write is tried again.
        failure: Option<String>,
    },
    /// A status was written, and stored only in part.
    StatusDropped {
        object: StatusCarrier,
        /// The fields that were not stored as written.
        fields: Vec<&'static str>,
    },
    /// The PodGroup of a batch was created, or existed.
    PodGroupEnsured {
        /// The uid of the object that carries the group.
        owner: String,
        gang: BatchPodGroup,
        /// The error, as text; the write is tried again. `None` if the PodGroup exists.
        failure: Option<String>,
    },
    /// The PodGroups of the batches of a group were listed.
    PodGroupsFound {
        /// The uid of the object that carries the group.
        owner: String,
        /// The PodGroups; `None` if the read is to be tried again.
        found: Option<Vec<FoundPodGroup>>,
    },
    /// The PodGroup of a batch was deleted, or did not exist.
    PodGroupRemoved {
        id: PodGroupId,
        /// Whether it is to be tried again.
        failed: bool,
    },
    /// A workload was scaled, or not.
    Scaled {
        role: String,
        /// The uid of the workload.
        uid: Arc<str>,
        outcome: ScaleOutcome,
    },
    /// Replicas that look lost were read live.
    LossesSeen {
        /// The verdicts; `None` if the read is to be tried again.
        judged: Option<Vec<Judged>>,
    },
    /// The reasons why pods do not appear were read live.
    Diagnosed {
        /// The reasons, at most one for each role.
        diagnoses: Vec<Diagnosis>,
    },
    /// Pods beyond the desired replicas were read live.
    Surge {
        /// The pods that a rollout created.
        proven: Vec<PodRef>,
    },
    /// The group was read: the index is no older than the question.
    Confirmed {
        /// Whether it is to be tried again.
        failed: bool,
    },
    /// The pods were read: the index knows all that run.
    PodsConfirmed {
        /// Whether it is to be tried again.
        failed: bool,
    },
    /// The placement was written on a PodGroup, or another client was faster.
    PlacementCommitted {
        /// Whether nothing was written.
        failed: bool,
    },
    /// The API server was asked whether the group is gone.
    Verified {
        /// Whether the group is certainly gone.
        gone: bool,
    },
}
