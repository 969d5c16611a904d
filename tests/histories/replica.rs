//! A rolegate: the real reconciler and index, and the loop of `cluster::run`, with delayed watches and answers.

use std::collections::HashSet;

use rolegate::cluster::index::{CarrierObject, Index};
use rolegate::model::{Allowed, GroupKey, RolledWorkload, ScaledWorkload};
use rolegate::mutate::{Entry, late_labels};
use rolegate::plan::marks::Mark;
use rolegate::plan::reconcile::events::EventNote;
use rolegate::plan::reconcile::owned_memory::{FoundOwned, OwnedId};
use rolegate::plan::{
    About, Action, Answer as Found, BatchPodGroup, Extent, Judged, LoopOptions, MemberEdit, MissingGroup,
    MissingLabels, OwnedWrite, Question, Reconciler, StatusWrite, Step, Suspect,
};

use crate::lockstep::Edits;
use crate::prelude::*;
use crate::readiness::JOB;
use crate::room::{Refusals, Room};
use crate::seen::Seen;
use crate::server::WATCHES;

/// Time for which a group must be gone before its pods are released.
pub const GRACE: Duration = Duration::from_secs(30);
/// Time to wait for a group that never existed.
pub const MISSING: Duration = Duration::from_secs(60);

/// A request that has not reached the API server.
#[derive(Clone, Debug)]
pub enum Request {
    Release {
        pod: PodRef,
        labels: Vec<Entry>,
        pod_groups: Vec<MemberEdit>,
        pin: Pin,
    },
    Write {
        group: Arc<Group>,
        status: Box<GroupStatus>,
    },
    /// Creates the PodGroup of a batch.
    Ensure {
        id: OwnedId,
        gang: BatchPodGroup,
    },
    /// Creates an object of a request for nodes.
    Create(OwnedId),
    /// Lowers the members of a PodGroup that is left over.
    RelaxPodGroup(OwnedId, u32),
    /// Finds what the object with this uid owns.
    FindOwned(String),
    /// Removes an object that nothing asks for any more.
    RemoveOwned(OwnedId),
    /// Sets the partition of a workload; the rollout is over if it `ends`.
    SetPartition {
        workload: Box<RolledWorkload>,
        partition: u32,
        ends: bool,
        /// Unique id of the group in the decision.
        carrier: Option<String>,
    },
    Scale {
        group: Arc<Group>,
        role: String,
        workload: Box<ScaledWorkload>,
        replicas: u32,
    },
    Mark(Mark),
    /// Deletes a pod of a recovering batch, and with it the other pods of its replica.
    Delete {
        pod: PodRef,
        with_dependents: bool,
    },
    /// Deletes an old pod that its controller does not replace in time.
    Renew(PodRef),
    /// Deletes an updated pod of a rollout that goes back.
    Undo(PodRef),
    /// Deletes a pod that runs in another rack than its batch.
    Gather(PodRef),
    /// Deletes a released pod without a node, so that it is placed again.
    Recreate(PodRef),
    /// Checks whether replicas are lost.
    LookAtLosses(Vec<Suspect>),
    /// Reads the group after a conflict.
    Reread,
    /// Reads the group before the release of pods that are newer than the last read.
    Confirm,
    /// Lists the pods before running ones count for a group without commits.
    ConfirmPods,
    Verify,
    /// Diagnoses missing or surplus pods; finds nothing.
    Look(Found),
}

/// An answer that has not reached the replica.
#[derive(Debug)]
pub enum Answer {
    Released(PodRef, Answered<Arc<Pod>>),
    Written(Answered<Arc<Stored>>),
    PartitionSet(PodRef, Answered<Box<SeenWorkload>>),
    /// The new resourceVersion of a scaled workload; `None` when the group had changed since the plan.
    Scaled {
        role: String,
        workload: Box<ScaledWorkload>,
        replicas: u32,
        answer: Option<Answered<String>>,
        read: LiveRead,
    },
    Marked(PodRef, Answered<Option<Arc<Pod>>>),
    /// Whether the PodGroup exists.
    Ensured(OwnedId, BatchPodGroup, Answered<bool>),
    /// The objects of an owner; an error when they cannot be read.
    FoundOwned(String, Answered<Vec<FoundOwned>>),
    /// Whether the object of a request exists.
    Created(OwnedId, Answered<bool>),
    OwnedRemoved(OwnedId, Answered<()>),
    PodGroupRelaxed(OwnedId, u32, Answered<()>),
    Reread(LiveRead),
    Confirmed(LiveRead),
    /// Unique ids of the existing pods, and the version of the list; an error when it cannot be read.
    ConfirmedPods(Result<(HashSet<String>, u64), ()>),
    Looked(Found),
    Deleted(PodRef, Answered<()>),
    Recreated(PodRef, Answered<bool>),
    LossesSeen(LiveRead, Option<Vec<Judged>>),
    /// `absent` is the truth at the time of the read.
    Verified {
        read: LiveRead,
        absent: bool,
    },
}

#[derive(Debug)]
pub struct LiveRead {
    /// The known group at the time of the request.
    pub known: Option<CarrierObject>,
    /// The group that was found; an error when it cannot be read.
    pub found: Result<Option<Arc<Stored>>, ()>,
}

/// A fault of the API server or of the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    None,
    /// The request is refused with this code, without effect.
    Refused(u16),
    /// The request takes effect, but the answer is an error.
    AnswerLost,
}

/// A replica's knowledge of a missing group.
#[derive(Default)]
pub struct MissingPods {
    /// Since when its passes see no group.
    pub since: Option<Duration>,
    /// Whether the last live read found none, truthfully.
    pub verified: bool,
    /// Whether the group existed before.
    pub carried: bool,
}

#[derive(Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts, not states of one machine")]
pub struct Replica {
    pub reconciler: Reconciler,
    pub index: Index,
    pub leads: bool,
    born: Duration,
    /// Position of each watch; `None` before its list.
    pub cursors: [Option<usize>; WATCHES],
    pub requests: Vec<Request>,
    pub answers: Vec<Answer>,
    /// Labels for pods with a requested release that are held as far as it knows.
    pub asked: BTreeMap<Arc<str>, Vec<Entry>>,
    /// Numbers that running pods were given anew, until their labels show it.
    pub moved: BTreeMap<Arc<str>, u32>,
    /// Pods with a refused release that has not been retried successfully.
    pub refused: BTreeSet<Arc<str>>,
    /// Times of the last failed releases, by unique id of the pod.
    pub failed: BTreeMap<Arc<str>, Duration>,
    /// PodGroups that could not be created, by owner and name.
    pub without_pod_group: BTreeSet<(String, String)>,
    /// Objects of requests for nodes that were deleted.
    pub removing: BTreeSet<OwnedId>,
    /// Workloads that could not be scaled, and pods that could not be marked.
    pub unscaled: BTreeSet<Arc<str>>,
    /// Workloads whose partition could not be set.
    pub frozen: BTreeSet<Arc<str>>,
    /// The revisions of open rollouts that it has seen.
    pub edits: Edits,
    /// Pods whose deletion was refused.
    pub undeleted: BTreeSet<Arc<str>>,
    /// Pods that were deleted, and may still be seen.
    pub deleted: BTreeSet<Arc<str>>,
    /// Whether its last check for losses failed.
    pub look_failed: bool,
    /// Whether its last write of the status failed.
    pub write_failed: bool,
    /// Whether its last read of the group before a release failed.
    pub confirm_failed: bool,
    /// Whether its last list of existing pods failed.
    pub confirm_pods_failed: bool,
    /// What it must know from delivered events.
    pub seen: Seen,
    pub absence: MissingPods,
    pub room: Room,
    /// Since when batches lack nodes for released pods.
    pub unbound: BTreeMap<u32, Option<Duration>>,
    /// Since when batches that go as a whole are cut.
    pub cut: BTreeMap<crate::growth::BatchId, Duration>,
    /// Delivered refusals of pods by kubelets.
    pub refusals: Refusals,
    /// Position of the watch of the objects that groups wait for; `None` before its list.
    pub sees_objects: Option<usize>,
    /// Reasons of Events.
    pub said: BTreeSet<String>,
    /// Subjects of Events of type Warning.
    pub warned: Vec<String>,
    pub sabotage: Option<Sabotage>,
}

fn told(event: &EventNote) -> String {
    format!("{}: {}", event.reason, event.note)
}

pub fn key() -> GroupKey {
    GroupKey::new(NAMESPACE, GROUP)
}

impl Replica {
    pub fn new(now: Duration, leads: bool, sabotage: Option<Sabotage>) -> Self {
        let options = LoopOptions {
            missing_group: MissingGroup::ReleaseAfter(MISSING),
            vanished_grace: GRACE,
            settle: if sabotage == Some(Sabotage::GoesCut) { Duration::ZERO } else { crate::growth::SETTLE },
            allowed: Allowed::ALL,
            ..LoopOptions::default()
        };
        let reconciler = Reconciler::new(options);
        let mut replica = Self { reconciler, leads, born: now, sabotage, ..Self::default() };
        replica.index.allow_scale(true);
        replica.index.await_kind(JOB, None);
        (0..WATCHES).for_each(|watch| replica.index.expect(watch));
        replica.reconciler.lead(leads, [], Duration::ZERO);
        replica
    }

    /// Reports whether a failed request will be retried.
    pub fn retries(&self) -> bool {
        let looks_again = self.confirm_failed || self.confirm_pods_failed || self.look_failed;
        self.write_failed
            || looks_again
            || !self.unscaled.is_empty()
            || !self.frozen.is_empty()
            || !self.refused.is_empty()
            || !self.undeleted.is_empty()
            || !self.without_pod_group.is_empty()
    }

    pub fn clock(&self, now: Duration) -> Duration {
        now.saturating_sub(self.born)
    }

    pub fn is_synced(&self) -> bool {
        self.cursors.iter().all(Option::is_some)
    }

    /// Returns the time of its next pass.
    pub fn next(&self) -> Option<Duration> {
        self.reconciler.next().map(|at| at + self.born)
    }

    pub fn lead(&mut self, leads: bool, now: Duration) {
        self.leads = leads;
        self.failed.clear();
        self.cut.clear();
        let keys = self.index.keys();
        self.reconciler.lead(leads, keys, self.clock(now));
    }

    /// Applies changes and runs due passes; `check` inspects the decisions before they are sent.
    pub fn turn(
        &mut self,
        now: Duration,
        mut check: impl FnMut(&mut Self, &Snapshot, &[Request]) -> Result<(), Broken>,
    ) -> Result<bool, Broken> {
        let clock = self.clock(now);
        let dirty = self.index.take_dirty();
        let synced = self.index.is_synced() || self.sabotage == Some(Sabotage::ActsUnsynced);
        if !self.reconciler.is_synced() && synced {
            self.reconciler.sync(self.index.keys(), clock);
        }
        self.reconciler.changed(dirty, clock);
        if let Some(freed) = self.room.take_freed() {
            self.reconciler.capacity_changed(freed, clock);
        }
        let (mut acted, mut passes) = (false, 0);
        while let Some(due) = self.reconciler.take_due(clock) {
            let snapshot = self.index.snapshot(&due);
            self.note(&snapshot, now);
            let text = format!(
                "2026-01-01T{:02}:{:02}:{:02}Z",
                now.as_secs() / 3600,
                now.as_secs() / 60 % 60,
                now.as_secs() % 60
            );
            let seen = self.sabotage.and_then(|sabotage| sabotage.of_sight(&snapshot));
            let seen = seen.as_ref().unwrap_or(&snapshot);
            let actions = self.reconciler.pass(&due, seen, Some(self.room.sight()), clock, &text);
            let mut requests: Vec<_> =
                actions.into_iter().filter_map(|action| self.request(action, &snapshot)).collect();
            if let Some(sabotage) = self.sabotage {
                sabotage.of_requests(&mut requests, &snapshot);
            }
            check(self, &snapshot, &requests)?;
            self.asked.extend(requests.iter().filter_map(|request| match request {
                Request::Release { pod, labels, .. } => Some((pod.uid.clone(), labels.clone())),
                _ => None,
            }));
            self.moved.extend(requests.iter().filter_map(|request| {
                let Request::Mark(mark) = request else { return None };
                let index = mark.labels.iter().find(|(key, _)| key == names::KEP75_INSTANCE_INDEX);
                Some((mark.pod.uid.clone(), index?.1.as_deref()?.parse().unwrap()))
            }));
            acted |= !requests.is_empty();
            self.requests.extend(requests);
            passes += 1;
            hold!(passes < 20, "L2: it looks again and again, at one and the same time");
        }
        Ok(acted)
    }

    fn note(&mut self, snapshot: &Snapshot, now: Duration) {
        let owner = snapshot.claims.as_ref().map(|claims| &claims.group.carrier.uid);
        self.without_pod_group.retain(|(uid, _)| Some(uid) == owner);
        let is_held = |uid: &Arc<str>| snapshot.pods.iter().any(|pod| pod.pod.uid == *uid && pod.held);
        self.asked.retain(|uid, _| is_held(uid));
        self.refused.retain(is_held);
        self.moved.retain(|uid, to| {
            let known = snapshot.pods.iter().find(|pod| pod.pod.uid == *uid);
            known.is_some_and(|pod| !pod.held && pod.identity.ordinal != Some(*to))
        });
        let is_open = |uid: &Arc<str>| snapshot.workloads.iter().any(|set| set.uid == *uid && set.is_open());
        self.frozen.retain(is_open);
        self.unscaled.retain(|uid| {
            let is_pod = snapshot.pods.iter().any(|pod| pod.pod.uid == *uid);
            is_pod || snapshot.scaled.iter().any(|workload| workload.uid == *uid)
        });
        self.undeleted.retain(|uid| snapshot.pods.iter().any(|pod| pod.pod.uid == *uid));
        if snapshot.claims.is_some() {
            self.absence = MissingPods { carried: true, ..MissingPods::default() };
        } else {
            self.absence.since.get_or_insert(now);
        }
    }

    fn request(&mut self, action: Action, snapshot: &Snapshot) -> Option<Request> {
        match action {
            Action::Release { pod, labels, pod_groups, pin, .. } => {
                let late = |of: MissingLabels| {
                    late_labels(&of.group, &of.role, of.ordinal, of.size_only, of.revision.as_deref())
                };
                let labels = labels.map(late);
                Some(Request::Release { pod, labels: labels.unwrap_or_default(), pod_groups, pin })
            }
            Action::WriteStatus(StatusWrite::Group { group, status, .. }) => Some(Request::Write { group, status }),
            Action::WriteOwned { id, write: OwnedWrite::Ensure(gang), .. } => Some(Request::Ensure { id, gang }),
            Action::WriteOwned { id, write: OwnedWrite::Relax(members), .. } => {
                Some(Request::RelaxPodGroup(id, members))
            }
            Action::WriteOwned { id, write: OwnedWrite::Create(_), .. } => Some(Request::Create(id)),
            Action::WriteOwned { id, write: OwnedWrite::Remove, .. } => Some(Request::RemoveOwned(id)),
            Action::Delete { pod, extent: Extent::Unscheduled } => Some(Request::Recreate(pod)),
            Action::Delete { pod, extent: Extent::Stray } => Some(Request::Gather(pod)),
            Action::Delete { pod, extent: Extent::Outdated } => Some(Request::Renew(pod)),
            Action::Delete { pod, extent: Extent::RolledBack { .. } } => Some(Request::Undo(pod)),
            Action::Delete { pod, extent } => {
                Some(Request::Delete { pod, with_dependents: extent == Extent::Dependents })
            }
            Action::Read(question) => Some(asked(question)),
            Action::Publish { about, events } => {
                self.warned.extend(events.iter().filter(|event| event.warning).map(told));
                if matches!(about, About::Group(_)) {
                    self.said.extend(events.into_iter().map(|event| event.reason));
                }
                None
            }
            Action::Step(Step::Replicas { group, role, workload, replicas, .. }) => {
                Some(Request::Scale { group, role, workload, replicas })
            }
            Action::Mark(mark) => Some(Request::Mark(mark)),
            Action::Step(Step::Partition { workload, partition, ends }) => {
                let carrier = snapshot.claims.as_ref().map(|claims| claims.group.carrier.uid.clone());
                Some(Request::SetPartition { workload, partition, ends, carrier })
            }
            Action::WriteStatus(StatusWrite::Conflicted { .. }) => unreachable!("there is one carrier"),
            Action::WriteStatus(StatusWrite::Placement { .. }) => unreachable!("no PodGroup places its pods here"),
        }
    }

    /// Reports whether a PodGroup is being created, by these requests or earlier ones, or will be retried.
    pub fn makes_pod_group(&self, owner: &str, name: &str, now: &[Request]) -> bool {
        let asks = |one: &Request| matches!(one, Request::Ensure { id, .. } if id.owner == owner && id.name == name);
        let answered = |one: &Answer| matches!(one, Answer::Ensured(id, ..) if id.owner == owner && id.name == name);
        now.iter().chain(&self.requests).any(asks)
            || self.answers.iter().any(answered)
            || self.without_pod_group.contains(&(owner.to_owned(), name.to_owned()))
    }

    /// Reports whether the group is being read before a release, or will be again.
    pub fn confirms(&self, now: &[Request]) -> bool {
        let asks = |one: &Request| matches!(one, Request::Confirm | Request::ConfirmPods);
        now.iter().chain(&self.requests).any(asks)
            || self.answers.iter().any(|one| {
                matches!(one, Answer::Confirmed(_) | Answer::ConfirmedPods(_) | Answer::Looked(Found::Group { .. }))
            })
            || self.confirm_failed
            || self.confirm_pods_failed
    }

    /// Reports whether losses are being checked, will be again, or their result is about to be stored.
    pub fn looks_at_losses(&self, now: &[Request]) -> bool {
        let asks = |one: &Request| matches!(one, Request::LookAtLosses(_) | Request::Write { .. } | Request::Reread);
        let answered = |one: &Answer| matches!(one, Answer::LossesSeen(..) | Answer::Written(_) | Answer::Reread(_));
        now.iter().chain(&self.requests).any(asks)
            || self.answers.iter().any(answered)
            || self.look_failed
            || self.write_failed
    }

    /// Reports whether a pod is deleted as far as the replica is concerned, or anything about it is pending or failed.
    pub fn is_busy_with(&self, uid: &Arc<str>) -> bool {
        let asks = self.requests.iter().any(|one| match one {
            Request::Renew(pod)
            | Request::Undo(pod)
            | Request::Gather(pod)
            | Request::Recreate(pod)
            | Request::Delete { pod, .. } => pod.uid == *uid,
            Request::Mark(mark) => mark.pod.uid == *uid,
            _ => false,
        });
        let answered = self.answers.iter().any(|one| match one {
            Answer::Deleted(pod, _) | Answer::Recreated(pod, _) | Answer::Marked(pod, _) => pod.uid == *uid,
            _ => false,
        });
        let failed =
            [&self.undeleted, &self.deleted, &self.refused, &self.unscaled].iter().any(|all| all.contains(uid));
        asks || answered || failed || self.is_under_way(uid)
    }

    /// Reports whether a release of the pod is pending, or its answer.
    pub fn is_under_way(&self, uid: &str) -> bool {
        let asked = self.requests.iter().any(|one| matches!(one, Request::Release { pod, .. } if *pod.uid == *uid));
        asked || self.answers.iter().any(|one| matches!(one, Answer::Released(pod, _) if *pod.uid == *uid))
    }
}

/// Returns the request of a live read. Missing and surplus pods are not diagnosed.
fn asked(question: Question) -> Request {
    match question {
        Question::Group => Request::Confirm,
        Question::Pods => Request::ConfirmPods,
        Question::Owned { group, .. } => Request::FindOwned(group.carrier.uid.clone()),
        Question::Losses { suspects, .. } => Request::LookAtLosses(suspects),
        Question::Gone { .. } => Request::Verify,
        Question::MissingPods { .. } => Request::Look(Found::MissingPods(Vec::new())),
        Question::Surge { .. } => Request::Look(Found::Surge(Vec::new())),
    }
}
