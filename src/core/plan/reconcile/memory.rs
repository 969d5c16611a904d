//! Memory of the loop on one group between passes. All of it may be lost: the cluster holds the truth.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use crate::api::pod_group::POD_GROUP;
use crate::model::{Group, names};
use crate::plan::decide::all_or_nothing::AllOrNothing;
use crate::plan::decide::lacking::Lacking;
use crate::plan::decide::placed::PlacedWait;
use crate::plan::marks::{Label, Mark};
use crate::plan::reconcile::action::Answer;
use crate::plan::reconcile::ahead::ReportedAhead;
use crate::plan::reconcile::decided::Decided;
use crate::plan::reconcile::events::Reported;
use crate::plan::reconcile::lasting::Timed;
use crate::plan::reconcile::look::Looks;
use crate::plan::reconcile::movement::Movement;
use crate::plan::reconcile::owned_memory::{OwnedId, OwnedMemory};
use crate::plan::reconcile::pod_events::ReportedPods;
use crate::plan::reconcile::presence::Presence;
use crate::plan::reconcile::probes::{GivenUpUntil, MissingPodsProbe, SurgeProbe};
use crate::plan::reconcile::recovery_events::ReportedRecoveries;
use crate::plan::reconcile::recovery_memory::RecoveryMemory;
use crate::plan::reconcile::refusing::{Refusing, TurnedDownUntil};
use crate::plan::reconcile::request_events::ReportedRequests;
use crate::plan::reconcile::rollout_events::ReportedRollouts;
use crate::plan::reconcile::rounds::Rounds;
use crate::plan::reconcile::scales::ElasticMemory;
use crate::plan::reconcile::status_writes::StatusWrites;
use crate::plan::reconcile::subject::Subject;
use crate::plan::reconcile::tree_memory::TreeMemory;
use crate::plan::reconcile::tries::{Tries, Try};
use crate::plan::reconcile::uptime::Uptime;
use crate::plan::recovery::BatchId;
use crate::plan::rollout::{Late, Rollouts};
use crate::plan::view::{GroupPods, HeldPod, PodRef, Snapshot};

/// The memory of one group, or of a PodGroup that places its pods.
#[derive(Debug, Default)]
pub(in crate::plan) struct Memory {
    pub(in crate::plan) last_pass: Option<Uptime>,
    pub(in crate::plan) tries: Tries,
    pub(in crate::plan) owned: OwnedMemory,
    pub(in crate::plan) status: StatusWrites,
    pub(in crate::plan) presence: Presence,
    pub(in crate::plan) pods: PodWrites,
    pub(in crate::plan) looks: Looks,
    pub(in crate::plan) movement: Movement,
    pub(in crate::plan) decided: Decided,
    pub(in crate::plan) told: Told,
    /// Roles that were edited together.
    pub(in crate::plan) rounds: Rounds,
    pub(in crate::plan) waits: Waits,
    /// Why pods do not appear.
    pub(in crate::plan) missing_pods: MissingPodsProbe,
    /// Whether a rollout created the replicas beyond the desired ones.
    pub(in crate::plan) surges: SurgeProbe,
    /// Scales of its workloads.
    pub(in crate::plan) elastic: ElasticMemory,
    /// Batches that are, or may be, broken.
    pub(in crate::plan) recovery: RecoveryMemory,
    pub(in crate::plan) tree: TreeMemory,
}

/// Writes to pods that a watch may not show yet, by unique id.
#[derive(Debug, Default)]
pub(in crate::plan) struct PodWrites {
    /// Ordinals with which the releases of held pods were begun.
    given: HashMap<Arc<str>, u32>,
    /// Ordinals that running pods were given anew, until their labels show it.
    moved: HashMap<Arc<str>, u32>,
    /// Labels of their place that pods were last given: a label that somebody takes away is not written again.
    pub(in crate::plan) placed: HashMap<Arc<str>, Vec<Label>>,
    /// Pods that were deleted, until a watch shows it.
    pub(in crate::plan) deleted: HashSet<Arc<str>>,
    /// Pods to be labelled when the write that is under way has ended.
    pub(in crate::plan) unmarked: HashSet<Arc<str>>,
}

/// Events that were published.
#[derive(Debug, Default)]
pub(in crate::plan) struct Told {
    pub(in crate::plan) group: Reported,
    pub(in crate::plan) ahead: ReportedAhead,
    pub(in crate::plan) pods: ReportedPods,
    pub(in crate::plan) rollouts: ReportedRollouts,
    pub(in crate::plan) recoveries: ReportedRecoveries,
    pub(in crate::plan) requests: ReportedRequests,
}

/// Since when, and until when, things are as they are.
#[derive(Debug, Default)]
pub(in crate::plan) struct Waits {
    /// Batches and replicas that lack pods.
    pub(in crate::plan) incomplete: Timed<AllOrNothing>,
    /// Batches that are cut, because a role has fewer replicas than they take.
    pub(in crate::plan) cut: Timed<BatchId>,
    /// Batches that are to be recreated as a whole in another domain.
    pub(in crate::plan) moves: BTreeSet<BatchId>,
    /// Batches with a domain whose pods have no node.
    pub(in crate::plan) placed: Timed<PlacedWait>,
    /// Batches without room for which nodes are to be requested.
    pub(in crate::plan) no_room: Timed<BatchId>,
    /// Domains in which batches got no node in time.
    pub(in crate::plan) given_up: GivenUpUntil,
    /// Nodes whose kubelets refuse pods.
    pub(in crate::plan) refusing: Refusing,
    /// Nodes that the scheduler refuses to placed pods.
    pub(in crate::plan) turned_down: TurnedDownUntil,
    /// Workloads with an open rollout and without their claim, by unique id.
    pub(in crate::plan) unclaimed: Timed<Arc<str>>,
    /// Roles that lack something of their workloads.
    pub(in crate::plan) lacking: Timed<Lacking>,
    /// What rollouts fail by if it lasts.
    pub(in crate::plan) late: Timed<Late>,
}

impl Memory {
    pub(in crate::plan) fn new(now: Uptime) -> Self {
        Self { movement: Movement::since(now), ..Self::default() }
    }

    /// Returns when the next pass is due, some time after the last.
    pub(in crate::plan) fn pass_after(&self, pause: Duration, now: Uptime) -> Uptime {
        self.last_pass.map_or(now, |last| now.max(last + pause))
    }

    /// Returns the number of remembered objects.
    pub(in crate::plan) fn len(&self) -> usize {
        let Waits { given_up, no_room, refusing, turned_down, unclaimed, cut, moves, .. } = &self.waits;
        let waits = given_up.len()
            + cut.len()
            + moves.len()
            + no_room.len()
            + refusing.len()
            + turned_down.len()
            + unclaimed.len()
            + self.tree.unbound.len();
        self.recovery.len()
            + self.tries.len()
            + self.owned.len()
            + self.pods.given.len()
            + self.pods.moved.len()
            + self.pods.deleted.len()
            + waits
    }

    /// Clears the last decision: a replica that does not lead reports none.
    pub(in crate::plan) fn decided_nothing(&mut self) {
        self.decided = Decided::default();
        self.tree = TreeMemory::default();
        // A later leader verifies it again.
        self.presence.take_gone();
    }

    /// Reports whether no write or read is under way.
    pub(in crate::plan) fn is_idle(&self) -> bool {
        let asks = self.missing_pods.is_asking() || self.surges.is_asking();
        self.tries.is_idle() && !self.status.is_under_way && !self.tree.commits() && !asks
    }

    fn note_presence(&mut self, group: Option<&Group>, now: Uptime) {
        match group {
            // A failure of one object does not hold its successor up.
            Some(group) if self.presence.note(group.carrier.kind, &group.carrier.uid) => self.status.failures = 0,
            Some(_) => {}
            None => _ = self.presence.missing_since.get_or_insert(now),
        }
    }

    /// Removes the ordinals of pods that are no longer held, and those that their labels show.
    fn note_pods(&mut self, pods: &GroupPods) {
        let PodWrites { given, moved, .. } = &mut self.pods;
        if given.is_empty() && moved.is_empty() {
            return;
        }
        let unnumbered = pods.roles().flat_map(|(_, role)| role.unnumbered.values());
        let known: HashMap<_, _> = unnumbered.map(|pod| (&pod.pod.uid, pod)).collect();
        given.retain(|uid, _| known.get(uid).is_some_and(|pod| pod.held));
        moved.retain(|uid, to| known.get(uid).is_some_and(|pod| !pod.held && pod.identity.ordinal != Some(*to)));
    }

    /// Notes the counts of open rollouts.
    pub(in crate::plan) fn note_rollouts(&mut self, rollouts: &Rollouts, now: Uptime) {
        self.movement.note_rollouts(rollouts, now);
        let updated = rollouts.roles.iter().map(|(name, role)| (name.clone(), (role.at_template(), role.desired())));
        self.decided.updated = updated.collect();
    }

    /// Notes the ordinal of a release under way, for a pod whose controller gives none.
    pub(in crate::plan) fn give(&mut self, pod: &HeldPod) {
        if pod.identity.unnumbered.is_some() || pod.identity.ordinal.is_none() {
            self.pods.given.insert(pod.pod.uid.clone(), pod.ordinal);
        }
    }

    /// Notes the ordinal that a running pod is given anew.
    pub(in crate::plan) fn renumber(&mut self, mark: &Mark) {
        let index = mark.labels.iter().find(|(key, _)| key == names::KEP75_INSTANCE_INDEX);
        let to = index.and_then(|(_, index)| index.as_deref()?.parse().ok());
        self.pods.moved.extend(to.map(|to| (mark.pod.uid.clone(), to)));
    }

    /// Returns the ordinal with which the release or the move of a pod was tried: the pod may have it already, even if the watch
    /// does not show it.
    pub(in crate::plan) fn given(&self, pod: &PodRef) -> Option<u32> {
        self.pods.given.get(&pod.uid).or_else(|| self.pods.moved.get(&pod.uid)).copied()
    }

    /// Notes the answer to a live read.
    pub(in crate::plan) fn answered(&mut self, answer: Answer, now: Uptime) {
        match answer {
            Answer::Group { failed: false } => self.looks.show_group(self.looks.group),
            Answer::Pods { failed: false } => self.looks.show_pods(),
            Answer::Group { failed: true } | Answer::Pods { failed: true } => {}
            Answer::Owned { owner, found } => {
                found.into_iter().for_each(|found| self.owned.found(owner.clone(), found));
            }
            Answer::Losses(judged) => self.recovery.looked(judged, now),
            Answer::MissingPods(diagnoses) => self.missing_pods.answered(diagnoses, now),
            Answer::Surge(proven) => self.surges.answered(proven, now),
            Answer::Gone(gone) => self.presence.answered(gone, now),
        }
    }

    /// Notes what is there, and removes what is remembered of objects that no longer exist.
    pub(in crate::plan) fn note(&mut self, subject: Subject<'_>, now: Uptime) {
        match subject {
            Subject::Group(snapshot) => {
                self.forget_gone(snapshot);
                self.note_pods(&snapshot.pods);
                self.note_presence(snapshot.claims.as_ref().map(|claims| &*claims.group), now);
            }
            Subject::PodGroup(snapshot) => {
                let uids: HashSet<_> = snapshot.pods.iter().map(|pod| &*pod.pod.uid).collect();
                self.tries.keep_only(|one| matches!(one, Try::Object(uid) if uids.contains(&**uid)));
                snapshot.tree.iter().for_each(|tree| _ = self.presence.note(POD_GROUP, &tree.uid));
            }
        }
    }

    /// Removes what is remembered of objects that no longer exist.
    fn forget_gone(&mut self, snapshot: &Snapshot) {
        let owner = snapshot.claims.as_ref().map(|claims| claims.group.carrier.uid.as_str());
        owner.into_iter().for_each(|owner| self.owned.keep_only(owner));
        let others = snapshot.claims.iter().flat_map(|claims| &claims.others).map(|other| other.carrier.uid.as_str());
        self.status.dropped.keep_only(&others.clone().chain(owner).collect());
        let PodWrites { placed, deleted, .. } = &mut self.pods;
        if !(placed.is_empty() && deleted.is_empty()) {
            let present: HashSet<_> = snapshot.pods.iter().map(|pod| &pod.pod.uid).collect();
            placed.retain(|uid, _| present.contains(uid));
            deleted.retain(|uid| present.contains(uid));
        }
        if !self.tries.have_failed() {
            return;
        }
        let pods = snapshot.pods.iter().map(|pod| &*pod.pod.uid);
        let workloads = snapshot.workloads.iter().map(|workload| &*workload.uid);
        let scaled = snapshot.scaled.iter().map(|workload| &*workload.uid);
        let present: HashSet<_> = pods.chain(workloads).chain(scaled).chain(others).collect();
        self.tries.keep_only(|one| match one {
            Try::Object(uid) => present.contains(&**uid),
            Try::Owned(OwnedId { owner: of, .. }) | Try::OwnedBy(of) => owner == Some(of.as_str()),
            Try::Read(_) => true,
        });
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::api::Pod;
    use crate::api::pod_group::KUBE_POD_GROUP;
    use crate::model::Claims;
    use crate::model::{identify, names};
    use crate::plan::test_support::mk_group;
    use crate::plan::view::PodFacts;

    fn snapshot(owner: &str, pods: &[&str]) -> Snapshot {
        let mut group = mk_group(&[], &json!([]));
        owner.clone_into(&mut group.carrier.uid);
        let pod = |uid: &&str| -> PodFacts {
            let labels = json!({ names::GROUP: "pd", names::ROLE: "prefill" });
            let pod: Pod =
                serde_json::from_value(json!({ "metadata": { "name": uid, "uid": uid, "labels": labels } })).unwrap();
            PodFacts::of(&pod, identify(&pod, "ns", &()).unwrap()).unwrap()
        };
        let claims = Claims { group: Arc::new(group), others: Vec::new() };
        Snapshot { claims: Some(claims), pods: pods.iter().map(pod).collect(), ..Snapshot::default() }
    }

    #[test]
    fn what_failed_is_forgotten_with_its_object() {
        let mut memory = Memory::new(Uptime::ZERO);
        let id = |owner: &str| OwnedId { owner: owner.to_owned(), kind: KUBE_POD_GROUP, name: "pd-c0-0".to_owned() };
        let object = |uid: &str| Try::Object(uid.into());
        let failed = [object("a"), object("b"), Try::Owned(id("old")), Try::Owned(id("new"))];
        failed.iter().for_each(|one| _ = memory.tries.end(one.clone(), Some(""), Uptime::ZERO));
        [id("old"), id("new")].into_iter().for_each(|id| memory.owned.ended(id, Some(4), None));
        memory.forget_gone(&snapshot("new", &["b"]));
        let left = failed.each_ref().map(|one| memory.tries.has_failed(one));
        assert_eq!(left, [false, true, false, true]);
        assert_eq!([id("old"), id("new")].map(|id| memory.owned.members(&id)), [None, Some(4)]);
    }
}
