//! Loops with one fault each, to show that the histories find it.

use rolegate::api::pod_group::KUBE_POD_GROUP;
use rolegate::api::status::RecoveryState;
use rolegate::model::batching::Choice;
use rolegate::model::{self, RolledWorkload, RollingBounds};
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

/// Returns the view of a pass in which the coordinations are changed.
fn with_changed(snapshot: &Snapshot, change: impl FnMut(&mut model::Coordination)) -> Option<Snapshot> {
    let mut snapshot = snapshot.clone();
    Arc::make_mut(&mut snapshot.claims.as_mut()?.group).coordinations.iter_mut().for_each(change);
    Some(snapshot)
}

/// Reports whether steps of a rollout wait for objects.
fn has_checks(snapshot: &Snapshot) -> bool {
    let all = snapshot.claims.iter().flat_map(|claims| &claims.group.coordinations);
    all.filter_map(|coordination| coordination.rolling_ready_when.as_ref()).any(|when| when.object.is_some())
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

/// Declares the faults, some with the seed of a history that found one last, where a search that begins at 0 takes long.
macro_rules! sabotages {
    ($($(#[$doc:meta])* $name:ident $(= $seed:literal)?,)*) => {
        /// The fault of a loop.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Sabotage { $($(#[$doc])* $name,)* }

        impl Sabotage {
            /// All faults, each with the seed to begin with.
            pub const ALL: &[(Self, u64)] = &[$((Self::$name, 0 $(+ $seed)?),)*];
        }
    };
}

sabotages! {
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
    DoesNotLook = 1900,
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
    /// Makes PodGroups for one pod.
    MakesSmallPodGroups,
    /// Lets PodGroups that are left over wait for pods that were lost.
    LosesRelaxations = 2530,
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
    ScalesUnread = 147,
    /// Loses every scale.
    LosesScales,
    /// Loses every mark.
    LosesMarks,
    /// Loses every deletion of a pod that runs in another rack than its batch.
    LosesGathers,
    /// Marks the pods of a Deployment without the deletion cost.
    MarksWithoutCost = 1072,
    /// Deletes a pod of another batch in a recovery.
    DeletesOthers = 69,
    /// Deletes the pods of a batch before its recovery is committed.
    DeletesUncommitted,
    /// Restarts a recovery that is under way.
    RecoversTwice,
    /// Starts all waiting recoveries at once.
    RecoversAll = 69,
    /// Starts a recovery while recoveries are paused.
    RecoversPaused,
    /// Releases the pods of a recovering batch before it is committed that all exist.
    ReleasesSingly = 65,
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
    /// Commits that batches have lost their racks while they run there.
    LosesPlaces,
    /// Releases a pod to a node that refuses it.
    SendsToRefusing = 203,
    /// Deletes pods for a new placement without checking that they have no node.
    RemakesBound = 463,
    /// Deletes pods without a node before the timeout.
    RemakesEarly,
    /// Ignores gates of others on a pod.
    ForgetsOthers,
    /// Releases batches of which other controllers gate pods.
    OvertakesOthers,
    /// Requests nodes before the commit.
    RequestsUncommitted,
    /// Loses every deletion of a request for nodes.
    KeepsRequests,
    /// Loses every deletion for a new placement.
    LosesRemakes = 343,
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
    IgnoresChecks = 196,
    /// Counts pods as soon as they are ready.
    CountsAtOnce,
    /// Takes back what was accepted.
    ForgetsAcceptance,
    /// Opens one segment more than decided.
    TakesMoreSegments,
    /// Deletes old pods of segments that are not open.
    RenewsBelow = 291,
    /// Deletes only one old pod of what is open.
    RenewsInPart = 291,
    /// Loses every deletion of an old pod that its controller does not replace.
    LosesRenewals = 291,
    /// Forgets that a rollout went back.
    ForgetsRollbacks = 236,
    /// Deletes updated pods before the rollback is committed.
    UndoesUncommitted = 236,
    /// Loses every deletion of an updated pod.
    LosesUndos = 307,
    /// Replaces the last old replica of a role at once.
    TakesLastOld = 206,
    /// Does not wait for the roles of a batch to grow.
    GoesCut,
    /// Begins recoveries that wait while one slow cause breaks many batches.
    RecoversSlowCause,
    /// Lets segments go with pods that a rollout is about to replace.
    StartsOld,
}

impl Sabotage {
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
                hasty.extend(snapshot.pods.iter().filter(may).map(|pod| let_go(pod)));
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
            Self::CommitsElsewhere | Self::LosesPlaces => {
                let rack = if self == Self::LosesPlaces { "" } else { "rack-0" };
                let domains = status.coordination_state.iter_mut().flat_map(|state| state.domains.values_mut());
                domains.for_each(|domain| rack.clone_into(domain));
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
            _ => self.of_words(status),
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
            Self::OvertakesOthers => {
                let free = |pod: &Arc<PodFacts>| PodFacts { foreign_gate: None, ..PodFacts::clone(pod) };
                Some(Snapshot { pods: snapshot.pods.iter().map(free).collect(), ..snapshot.clone() })
            }
            Self::ForgetsSteps => with_changed(snapshot, |one| {
                one.rolling_update.iter_mut().for_each(|(update, _)| update.steps = None);
            }),
            Self::SkipsCanaries => with_changed(snapshot, |one| {
                let canaries = one.batchings.iter_mut().filter(|batching| batching.is_canary());
                canaries.for_each(|batching| batching.progression = Choice::Known(Progression::OrderedReady));
            }),
            Self::TakesLastOld => with_changed(snapshot, |one| {
                one.rolling_update.iter_mut().for_each(|(update, _)| update.on_failure = None);
            }),
            Self::StartsOld => {
                let in_order = |open: &RolledWorkload| RolledWorkload { ordered: true, ..open.clone() };
                Some(Snapshot { workloads: snapshot.workloads.iter().map(in_order).collect(), ..snapshot.clone() })
            }
            Self::IgnoresObjects => Some(Snapshot { objects: AwaitedObjects::AllHold, ..snapshot.clone() }),
            Self::IgnoresChecks if has_checks(snapshot) => Self::IgnoresObjects.of_sight(snapshot),
            Self::CountsAtOnce => with_changed(snapshot, |one| {
                let whens = one.batchings.iter_mut().filter_map(|batching| batching.ready_when.as_mut());
                whens.for_each(|when| when.min_ready_seconds = 0);
            }),
            _ => None,
        }
    }

    fn of_placed(self, requests: &mut Vec<Request>, snapshot: &Snapshot) {
        for request in requests.iter_mut() {
            match request {
                Request::Ensure { gang, .. } if self == Self::MakesSmallPodGroups => gang.min_member = 1,
                _ => {}
            }
            let Request::Release { pin, pod_groups, .. } = request else { continue };
            self.of_pin(pin, snapshot);
            if self == Self::KeepsOldPodGroups {
                pod_groups.clear();
            }
        }
        let mut is_first = true;
        requests.retain(|request| match request {
            Request::Release { .. } if self == Self::GoesInPart => std::mem::take(&mut is_first),
            Request::Renew(_) if self == Self::RenewsInPart => std::mem::take(&mut is_first),
            _ => true,
        });
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
            Self::RecoversSlowCause if !says_paused(status) => {}
            Self::RecoversAll | Self::RecoversSlowCause => {
                status.conditions.retain(|told| self == Self::RecoversAll || told.r#type != "RecoveryPaused");
                for entry in status.recoveries.iter_mut().filter(in_phase("Waiting")) {
                    "Recreating".clone_into(&mut entry.phase);
                    entry.attempts.extend(entry.since.clone());
                }
            }
            Self::SaysReady => {
                for told in status.conditions.iter_mut().filter(|told| told.reason == "RolloutInProgress") {
                    "True".clone_into(&mut told.status);
                    "AllReplicasReady".clone_into(&mut told.reason);
                }
            }
            _ => {}
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
            Request::Renew(_) => self == Self::LosesRenewals,
            Request::Gather(_) => self == Self::LosesGathers,
            Request::RelaxPodGroup(..) => self == Self::LosesRelaxations,
            _ => false,
        }
    }
}
