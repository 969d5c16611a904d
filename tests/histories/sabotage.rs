//! Loops with one fault each, to show that the histories find it.

use rolegate::api::pod_group::KUBE_POD_GROUP;
use rolegate::api::status::RecoveryState;
use rolegate::model::batching::Choice;
use rolegate::model::{RolledWorkload, RollingBounds};
use rolegate::plan::AwaitedObjects;
use rolegate::plan::reconcile::owned_memory::OwnedId;

use crate::machines::RACK;
use crate::prelude::*;
use crate::recoveries::says_paused;
use crate::replica::Request;
use crate::spec::released;

/// Returns a pod in another batch of the same role.
fn far_from(pod: &PodRef, snapshot: &Snapshot) -> Option<PodRef> {
    let ordinal = |pod: &PodRef| pod.name.split('-').nth(1).and_then(|word| word.parse::<u32>().ok());
    let role = |pod: &PodRef| pod.name.split('-').next().map(str::to_owned);
    let is_far = |other: &&std::sync::Arc<PodFacts>| {
        let apart = ordinal(&other.pod).zip(ordinal(pod)).is_some_and(|(a, b)| a.abs_diff(b) >= 3);
        !other.held && apart && role(&other.pod) == role(pod)
    };
    let other = snapshot.pods.iter().find(is_far)?;
    Some(other.pod.clone())
}

/// Returns the view of a pass in which no rollout has steps.
fn without_steps(snapshot: &Snapshot) -> Option<Snapshot> {
    let mut snapshot = snapshot.clone();
    let group = Arc::make_mut(&mut snapshot.claims.as_mut()?.group);
    let updates = group.coordinations.iter_mut().filter_map(|coordination| coordination.rolling_update.as_mut());
    updates.for_each(|(update, _)| update.steps = None);
    Some(snapshot)
}

/// Returns the view of a pass in which no rollout goes back when it fails.
fn without_rollback(snapshot: &Snapshot) -> Option<Snapshot> {
    let mut snapshot = snapshot.clone();
    let group = Arc::make_mut(&mut snapshot.claims.as_mut()?.group);
    let updates = group.coordinations.iter_mut().filter_map(|coordination| coordination.rolling_update.as_mut());
    updates.for_each(|(update, _)| update.on_failure = None);
    Some(snapshot)
}

/// Returns the view of a pass in which canaries are ordered segments.
fn without_canaries(snapshot: &Snapshot) -> Option<Snapshot> {
    let mut snapshot = snapshot.clone();
    let group = Arc::make_mut(&mut snapshot.claims.as_mut()?.group);
    let batchings = group.coordinations.iter_mut().flat_map(|coordination| &mut coordination.batchings);
    let canaries = batchings.filter(|batching| batching.is_canary());
    canaries.for_each(|batching| batching.progression = Choice::Known(Progression::OrderedReady));
    Some(snapshot)
}

/// Reports whether steps of a rollout wait for objects.
fn has_checks(snapshot: &Snapshot) -> bool {
    let all = snapshot.claims.iter().flat_map(|claims| &claims.group.coordinations);
    all.filter_map(|coordination| coordination.rolling_ready_when.as_ref()).any(|when| when.object.is_some())
}

/// Returns the view of a pass in which pods count as soon as they are ready.
fn without_times(snapshot: &Snapshot) -> Option<Snapshot> {
    let mut snapshot = snapshot.clone();
    let group = Arc::make_mut(&mut snapshot.claims.as_mut()?.group);
    let batchings = group.coordinations.iter_mut().flat_map(|coordination| &mut coordination.batchings);
    batchings.filter_map(|batching| batching.ready_when.as_mut()).for_each(|when| when.min_ready_seconds = 0);
    Some(snapshot)
}

/// Returns the partition below the next segment, if segments are updated as a whole.
fn a_segment_lower(workload: &RolledWorkload, partition: u32, snapshot: &Snapshot) -> u32 {
    let (role, desired) = (&workload.claim.role, workload.desired);
    let bounds = snapshot.claims.iter().flat_map(|claims| RollingBounds::all_of(&claims.group));
    let lower = bounds.filter(|bounds| bounds.has(role)).find_map(|bounds| {
        let size = *bounds.segments.as_ref()?.get(role)?;
        let last = bounds.kept_of(role, desired).max(workload.asked_partition());
        Some(partition.min(desired).saturating_sub(size).max(last))
    });
    lower.unwrap_or(partition)
}

fn let_go(pod: &PodFacts) -> Request {
    Request::Release { pod: pod.pod.clone(), labels: Vec::new(), pod_groups: Vec::new(), pin: Pin::new() }
}

/// The fault of a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sabotage {
    /// Releases before the commit.
    ReleasesUncommitted,
    /// Commits one replica more than decided.
    CommitsTooMuch,
    /// Commits one replica less than committed before.
    CommitsTooLittle,
    /// Patches any pod with the name.
    IgnoresUid,
    /// Writes the status over any version.
    IgnoresVersion,
    /// Removes other gates too.
    TakesAllGates,
    /// Decides before all lists have arrived.
    ActsUnsynced,
    /// Reports the group as gone without a live read.
    DoesNotLook,
    /// Takes a failed write for a successful one.
    ForgetsFailures,
    /// Loses every release.
    LosesReleases,
    /// Confirms the group from the watch, without a live read.
    ConfirmsUnread,
    /// Takes the PodGroup of an earlier group for the current one.
    TakesOldPodGroups,
    /// Releases pods into the PodGroups that they were made for.
    KeepsOldPodGroups,
    /// Lets PodGroups that are left over wait for pods that were lost.
    LosesRelaxations,
    /// Lowers a partition by two replicas more than decided.
    LowersTooFar,
    /// Lowers a partition by one replica more than decided, but not below the final partition.
    LowersAhead,
    /// Lowers a partition before the cohort of the new pods is committed.
    LowersUncommitted,
    /// Sets a partition on any version of the workload.
    IgnoresWorkloadVersion,
    /// Gives a workload back when it lowers the partition.
    GivesBackEarly,
    /// Loses every partition.
    LosesPartitions,
    /// Scales up by one replica more than decided.
    ScalesTooFar,
    /// Scales down by one replica more than decided.
    ScalesTooLow,
    /// Removes all segments at once.
    ScalesAtOnce,
    /// Scales before the commit.
    ScalesUncommitted,
    /// Scales by the wanted segments of the last pass, without a live read.
    ScalesUnread,
    /// Loses every scale.
    LosesScales,
    /// Loses every mark.
    LosesMarks,
    /// Marks the pods of a Deployment without the deletion cost.
    MarksWithoutCost,
    /// Deletes a pod of another batch in a recovery.
    DeletesOthers,
    /// Deletes the pods of a batch before its recovery is committed.
    DeletesUncommitted,
    /// Restarts a recovery that is under way.
    RecoversTwice,
    /// Starts all waiting recoveries at once.
    RecoversAll,
    /// Starts a recovery while recoveries are paused.
    RecoversPaused,
    /// Releases the pods of a recovering batch before it is committed that all exist.
    ReleasesSingly,
    /// Loses every deletion.
    LosesDeletions,
    /// Forgets a recovery that is under way.
    ForgetsRecoveries,
    /// Reports a group as ready during its rollout.
    SaysReady,
    /// Releases a pod to another rack than the committed one.
    SendsElsewhere,
    /// Commits another rack than the decided one.
    CommitsElsewhere,
    /// Releases a pod to a node that refuses it.
    SendsToRefusing,
    /// Deletes pods for a new placement without checking that they have no node.
    RemakesBound,
    /// Deletes pods without a node before the timeout.
    RemakesEarly,
    /// Ignores gates of others on a pod.
    ForgetsOthers,
    /// Requests nodes before the commit.
    RequestsUncommitted,
    /// Loses every deletion of a request for nodes.
    KeepsRequests,
    /// Loses every deletion for a new placement.
    LosesRemakes,
    /// Releases only one pod of what goes at once.
    GoesInPart,
    /// Reports each role as complete.
    SaysComplete,
    /// Rolls all roles at one rate, whatever the steps.
    ForgetsSteps,
    /// Ends a pause between steps that nobody has ended.
    EndsPauses,
    /// Takes a canary for the first of ordered segments.
    SkipsCanaries,
    /// Accepts a canary that nobody has accepted.
    AcceptsCanaries,
    /// Takes an object that is not there, or has not its condition, for one that has.
    IgnoresObjects,
    /// The same, only for steps of rollouts.
    IgnoresChecks,
    /// Counts pods as soon as they are ready.
    CountsAtOnce,
    /// Takes back what was accepted.
    ForgetsAcceptance,
    /// Opens one segment more than decided.
    TakesMoreSegments,
    /// Deletes old pods of segments that are not open.
    RenewsBelow,
    /// Deletes only one old pod of what is open.
    RenewsInPart,
    /// Forgets that a rollout went back.
    ForgetsRollbacks,
    /// Deletes updated pods before the rollback is committed.
    UndoesUncommitted,
    /// Loses every deletion of an updated pod.
    LosesUndos,
    /// Replaces the last old replica of a role at once.
    TakesLastOld,
    /// Does not wait for the roles of a batch to grow.
    GoesCut,
    /// Begins recoveries that wait while one slow cause breaks many batches.
    RecoversSlowCause,
}

impl Sabotage {
    pub const ALL: &[Self] = &[
        Self::ReleasesUncommitted,
        Self::CommitsTooMuch,
        Self::CommitsTooLittle,
        Self::IgnoresUid,
        Self::IgnoresVersion,
        Self::TakesAllGates,
        Self::ActsUnsynced,
        Self::DoesNotLook,
        Self::ForgetsFailures,
        Self::LosesReleases,
        Self::ConfirmsUnread,
        Self::TakesOldPodGroups,
        Self::KeepsOldPodGroups,
        Self::LosesRelaxations,
        Self::LowersTooFar,
        Self::LowersAhead,
        Self::LowersUncommitted,
        Self::IgnoresWorkloadVersion,
        Self::GivesBackEarly,
        Self::LosesPartitions,
        Self::ScalesTooFar,
        Self::ScalesTooLow,
        Self::ScalesAtOnce,
        Self::ScalesUncommitted,
        Self::ScalesUnread,
        Self::LosesScales,
        Self::LosesMarks,
        Self::MarksWithoutCost,
        Self::DeletesOthers,
        Self::DeletesUncommitted,
        Self::RecoversTwice,
        Self::RecoversAll,
        Self::RecoversPaused,
        Self::ReleasesSingly,
        Self::LosesDeletions,
        Self::ForgetsRecoveries,
        Self::SaysReady,
        Self::SendsElsewhere,
        Self::CommitsElsewhere,
        Self::SendsToRefusing,
        Self::RemakesBound,
        Self::RemakesEarly,
        Self::ForgetsOthers,
        Self::RequestsUncommitted,
        Self::KeepsRequests,
        Self::LosesRemakes,
        Self::GoesInPart,
        Self::SaysComplete,
        Self::ForgetsSteps,
        Self::EndsPauses,
        Self::SkipsCanaries,
        Self::AcceptsCanaries,
        Self::IgnoresObjects,
        Self::IgnoresChecks,
        Self::CountsAtOnce,
        Self::ForgetsAcceptance,
        Self::TakesMoreSegments,
        Self::RenewsBelow,
        Self::RenewsInPart,
        Self::ForgetsRollbacks,
        Self::UndoesUncommitted,
        Self::LosesUndos,
        Self::TakesLastOld,
        Self::GoesCut,
        Self::RecoversSlowCause,
    ];

    /// Returns the seed of a history that found the fault last, where a search that begins at 0 takes long.
    pub fn last_found(self) -> u64 {
        match self {
            Self::LosesRelaxations => 2530,
            Self::DoesNotLook => 1900,
            Self::MarksWithoutCost => 1072,
            Self::RemakesBound => 463,
            Self::LosesRemakes => 343,
            Self::LosesUndos => 307,
            Self::RenewsBelow | Self::RenewsInPart => 291,
            Self::ForgetsRollbacks | Self::UndoesUncommitted => 236,
            Self::TakesLastOld => 206,
            Self::SendsToRefusing => 203,
            Self::IgnoresChecks => 196,
            Self::ScalesUnread => 147,
            Self::RecoversAll | Self::DeletesOthers => 69,
            Self::ReleasesSingly => 65,
            _ => 0,
        }
    }

    pub fn of_requests(self, requests: &mut Vec<Request>, snapshot: &Snapshot) {
        let mut hasty = Vec::new();
        for request in requests.iter_mut() {
            if let Request::SetPartition { workload, partition, ends, .. } = request
                && !*ends
            {
                match self {
                    Self::LowersTooFar => *partition = (*partition).min(workload.desired).saturating_sub(2),
                    Self::LowersAhead => *partition = (*partition).min(workload.desired).saturating_sub(1),
                    Self::TakesMoreSegments => *partition = a_segment_lower(workload, *partition, snapshot),
                    Self::GivesBackEarly => (*partition, *ends) = (workload.asked_partition(), true),
                    _ => {}
                }
            }
            if let Request::Scale { group, workload, replicas, .. } = request {
                let from = group.status.draining.zip(group.batch_size(&workload.claim.role));
                match self {
                    Self::ScalesTooFar if *replicas > workload.desired => *replicas += 1,
                    Self::ScalesTooLow if *replicas < workload.desired => *replicas = replicas.saturating_sub(1),
                    Self::ScalesAtOnce if *replicas < workload.desired => {
                        *replicas = from.map_or(*replicas, |(draining, size)| draining.from * size);
                    }
                    _ => {}
                }
            }
            if let (Self::DeletesOthers, Request::Delete { pod, .. }) = (self, &*request) {
                let other = far_from(pod, snapshot);
                hasty.extend(other.map(|pod| Request::Delete { pod, with_dependents: false }));
            }
            if let (Self::RenewsBelow, Request::Renew(pod)) = (self, &*request) {
                hasty.extend(far_from(pod, snapshot).map(Request::Renew));
            }
            if let (Self::RequestsUncommitted, Request::Write { group, status }) = (self, &*request) {
                let objects = crate::requests::requested(group, status).into_iter();
                let owner = &group.carrier.uid;
                hasty.extend(objects.map(|(kind, name)| Request::Create(OwnedId { owner: owner.clone(), kind, name })));
            }
            if let Request::Write { group, status } = request {
                self.of_write(group, status, snapshot, &mut hasty);
            }
        }
        requests.extend(hasty);
        self.of_placed(requests, snapshot);
    }

    /// Falsifies a status that is written, and what is sent with it.
    fn of_write(self, group: &Arc<Group>, status: &mut GroupStatus, snapshot: &Snapshot, hasty: &mut Vec<Request>) {
        match self {
            Self::DeletesUncommitted | Self::ReleasesSingly => {
                let is_begun = |entry: &&RecoveryState| {
                    let known = group.status.recoveries.iter();
                    let was = known.into_iter().any(|known| known.batch == entry.batch && known.phase == entry.phase);
                    let phase = if self == Self::ReleasesSingly { "Releasing" } else { "Recreating" };
                    entry.phase == phase && !was
                };
                if status.recoveries.iter().any(|entry| is_begun(&entry)) {
                    let pods = snapshot.pods.iter().filter(|pod| pod.held == (self == Self::ReleasesSingly));
                    hasty.extend(pods.map(|pod| match self {
                        Self::ReleasesSingly => let_go(pod),
                        _ => Request::Delete { pod: pod.pod.clone(), with_dependents: false },
                    }));
                }
            }
            Self::SaysReady
            | Self::ForgetsRecoveries
            | Self::RecoversTwice
            | Self::RecoversAll
            | Self::RecoversSlowCause
            | Self::RecoversPaused => {
                self.of_words(status);
            }
            Self::EndsPauses => {
                let rollouts = status.coordination_state.iter_mut().filter_map(|state| state.rollout.as_mut());
                for rollout in rollouts.filter(|rollout| rollout.paused_since.is_some()) {
                    rollout.passed.extend(ROLES[..ROLLED].iter().map(|role| ((*role).to_owned(), 100)));
                }
            }
            Self::ForgetsRollbacks | Self::UndoesUncommitted => self.of_rollback(group, status, snapshot, hasty),
            Self::AcceptsCanaries => {
                let known = status.coordination_state.iter_mut().filter_map(|state| state.accepted.as_mut());
                known.for_each(|accepted| *accepted = (*accepted).max(1));
            }
            Self::ForgetsAcceptance => {
                for state in &mut status.coordination_state {
                    let known = group.status.coordination(&state.name).and_then(|known| known.accepted);
                    state.accepted = state.accepted.map(|accepted| if known > Some(0) { 0 } else { accepted });
                }
            }
            Self::LowersUncommitted => {
                let is_new = |workload: &&RolledWorkload| {
                    let (role, to) = (&workload.claim.role, workload.update_revision.as_deref());
                    let known = status.cohorts.iter().filter_map(|cohorts| cohorts.roles.get(role)).flatten();
                    let commits = known.last().is_some_and(|last| Some(&*last.revision) == to);
                    let frozen = workload.partition >= workload.desired;
                    workload.is_open() && frozen && commits && group.known_cohort(role, to.unwrap()).is_none()
                };
                hasty.extend(snapshot.workloads.iter().filter(is_new).map(|workload| Request::SetPartition {
                    workload: Box::new(workload.clone()),
                    partition: workload.desired.saturating_sub(1),
                    ends: false,
                    carrier: Some(group.carrier.uid.clone()),
                }));
            }
            Self::ReleasesUncommitted => {
                let may = |pod: &&std::sync::Arc<PodFacts>| {
                    let count = pod.identity.role.as_deref().and_then(|role| released(status, role));
                    pod.held && pod.identity.ordinal < count
                };
                let pods = snapshot.pods.iter().filter(may).map(|pod| pod.pod.clone());
                let release =
                    |pod| Request::Release { pod, labels: Vec::new(), pod_groups: Vec::new(), pin: Pin::new() };
                hasty.extend(pods.map(release));
            }
            Self::ScalesUncommitted if group.scaled().is_some() => {
                let scale = |workload: &rolegate::model::ScaledWorkload| {
                    let role = workload.claim.role.clone();
                    let replicas = released(status, &role).filter(|count| *count > workload.desired)?;
                    let workload = Box::new(workload.clone());
                    Some(Request::Scale { group: group.clone(), role, workload, replicas })
                };
                hasty.extend(snapshot.scaled.iter().filter_map(scale));
            }
            Self::CommitsElsewhere => {
                let domains = status.coordination_state.iter_mut().flat_map(|state| state.domains.values_mut());
                domains.for_each(|domain| "rack-0".clone_into(domain));
            }
            Self::SaysComplete => {
                let told = status.coordination_state.iter_mut().flat_map(|state| state.progress.values_mut());
                told.for_each(|progress| "Complete".clone_into(&mut progress.state));
            }
            Self::CommitsTooMuch | Self::CommitsTooLittle => {
                let counts = status.coordination_state.iter_mut().flat_map(|state| state.progress.values_mut());
                for count in counts.filter_map(|progress| progress.released.as_mut()) {
                    *count = if self == Self::CommitsTooMuch { *count + 1 } else { count.saturating_sub(1) };
                }
            }
            _ => {}
        }
    }

    /// Falsifies a status that says that a rollout goes back, or hurries ahead of it.
    fn of_rollback(self, group: &Arc<Group>, status: &mut GroupStatus, snapshot: &Snapshot, hasty: &mut Vec<Request>) {
        let goes_back = |status: &GroupStatus| {
            let mut rollouts = status.coordination_state.iter().filter_map(|state| state.rollout.as_ref());
            rollouts.any(|rollout| rollout.rolled_back.is_some())
        };
        let (known, says) = (goes_back(&group.status), goes_back(&*status));
        if self == Self::ForgetsRollbacks && known {
            let rollouts = status.coordination_state.iter_mut().filter_map(|state| state.rollout.as_mut());
            rollouts.for_each(|rollout| rollout.rolled_back = None);
        }
        if self == Self::UndoesUncommitted && says && !known {
            let is_new = |pod: &&Arc<PodFacts>| {
                let revision = pod.revision.as_deref();
                snapshot.workloads.iter().any(|set| set.is_open() && set.update_revision.as_deref() == revision)
            };
            let pods = snapshot.pods.iter().filter(is_new);
            hasty.extend(pods.map(|pod| Request::Undo(pod.pod.clone())));
        }
    }

    /// Returns the falsified view of a pass.
    pub fn of_sight(self, snapshot: &Snapshot) -> Option<Snapshot> {
        let pods = || snapshot.pods.iter().map(|pod| PodFacts { gated: false, ..PodFacts::clone(pod) }).collect();
        match self {
            Self::ForgetsOthers => Some(Snapshot { pods: pods(), ..snapshot.clone() }),
            Self::ForgetsSteps => without_steps(snapshot),
            Self::SkipsCanaries => without_canaries(snapshot),
            Self::TakesLastOld => without_rollback(snapshot),
            Self::IgnoresObjects => Some(Snapshot { objects: AwaitedObjects::AllHold, ..snapshot.clone() }),
            Self::IgnoresChecks if has_checks(snapshot) => Self::IgnoresObjects.of_sight(snapshot),
            Self::CountsAtOnce => without_times(snapshot),
            _ => None,
        }
    }

    fn of_placed(self, requests: &mut Vec<Request>, snapshot: &Snapshot) {
        let pins = requests.iter_mut().filter_map(|request| match request {
            Request::Release { pin, .. } => Some(pin),
            _ => None,
        });
        pins.for_each(|pin| self.of_pin(pin, snapshot));
        for request in requests.iter_mut().filter(|_| self == Self::KeepsOldPodGroups) {
            if let Request::Release { pod_groups, .. } = request {
                pod_groups.clear();
            }
        }
        if self == Self::GoesInPart {
            let mut is_first = true;
            requests.retain(|request| {
                !matches!(request, Request::Release { .. }) || std::mem::replace(&mut is_first, false)
            });
        }
        if self == Self::RenewsInPart {
            let mut is_first = true;
            requests.retain(|request| !matches!(request, Request::Renew(_)) || std::mem::replace(&mut is_first, false));
        }
        if self == Self::RemakesEarly {
            let waits = snapshot.pods.iter().filter(|pod| !pod.held && !pod.scheduled);
            requests.extend(waits.map(|pod| Request::Recreate(pod.pod.clone())));
        }
    }

    fn of_pin(self, pin: &mut Pin, snapshot: &Snapshot) {
        let other = |label: &String| if label == "rack-0" { "rack-1" } else { "rack-0" };
        match self {
            Self::SendsElsewhere => {
                pin.entry(RACK.to_owned()).and_modify(|label| *label = other(label).to_owned());
            }
            Self::SendsToRefusing => {
                if let Some(refused) = snapshot.refused.iter().find(|refused| refused.times >= 2) {
                    pin.entry("kubernetes.io/hostname".to_owned()).and_modify(|name| *name = refused.node.to_string());
                }
            }
            _ => {}
        }
    }

    /// Falsifies the status: reports a group as ready during its rollout, omits a recovery, or adds a false one.
    fn of_words(self, status: &mut GroupStatus) {
        let in_phase = |phase: &'static str| move |entry: &&mut RecoveryState| entry.phase == phase;
        match self {
            Self::ForgetsRecoveries => status.recoveries.retain(|entry| entry.phase != "Releasing"),
            Self::RecoversTwice => {
                for entry in status.recoveries.iter_mut().filter(in_phase("Releasing")) {
                    "Recreating".clone_into(&mut entry.phase);
                    entry.attempt += 1;
                }
            }
            Self::RecoversPaused if says_paused(status) => {
                let begun = json!({ "coordination": "c0", "batch": 0, "phase": "Recreating" });
                status.recoveries.push(serde_json::from_value(begun).unwrap());
            }
            Self::RecoversPaused => {}
            Self::RecoversSlowCause if !says_paused(status) => {}
            Self::RecoversAll | Self::RecoversSlowCause => {
                status.conditions.retain(|told| self == Self::RecoversAll || told.r#type != "RecoveryPaused");
                for entry in status.recoveries.iter_mut().filter(in_phase("Waiting")) {
                    "Recreating".clone_into(&mut entry.phase);
                    entry.attempts.extend(entry.since.clone());
                }
            }
            _ => {
                for told in status.conditions.iter_mut().filter(|told| told.reason == "RolloutInProgress") {
                    "True".clone_into(&mut told.status);
                    "AllReplicasReady".clone_into(&mut told.reason);
                }
            }
        }
    }

    pub fn of_release(self, patch: &mut Value) {
        match self {
            Self::IgnoresUid => _ = patch["metadata"].as_object_mut().unwrap().remove("uid"),
            Self::TakesAllGates => {
                let gate = json!({ "$patch": "delete", "name": FOREIGN });
                patch["spec"]["schedulingGates"].as_array_mut().unwrap().push(gate);
            }
            _ => {}
        }
    }

    pub fn of_status(self, patch: &mut Value) {
        if self == Self::IgnoresVersion {
            patch["metadata"].as_object_mut().unwrap().clear();
        }
    }

    pub fn of_partition(self, patch: &mut Value) {
        if self == Self::IgnoresWorkloadVersion {
            patch["metadata"].as_object_mut().unwrap().remove("resourceVersion");
        }
    }

    pub fn swallows(self, request: &Request) -> bool {
        match request {
            Request::Release { .. } => self == Self::LosesReleases,
            Request::SetPartition { .. } => self == Self::LosesPartitions,
            Request::Scale { .. } => self == Self::LosesScales,
            Request::Mark(_) => self == Self::LosesMarks,
            Request::Delete { .. } => self == Self::LosesDeletions,
            Request::Recreate(_) => self == Self::LosesRemakes,
            Request::RemoveOwned(id) => self == Self::KeepsRequests && id.kind != KUBE_POD_GROUP,
            Request::Undo(_) => self == Self::LosesUndos,
            Request::RelaxPodGroup(..) => self == Self::LosesRelaxations,
            _ => false,
        }
    }
}
