//! Memory of the loop on one group between passes. All of it may be lost: the cluster holds the truth.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use crate::api::ObjectKind;
use crate::model::{Group, HoldReason, RolledWorkload};
use crate::plan::decide::batches::BatchState;
use crate::plan::decide::decision::Decision;
use crate::plan::decide::lacking::Lacking;
use crate::plan::decide::placed::PlacedWait;
use crate::plan::elastic::SegmentCounts;
use crate::plan::marks::Label;
use crate::plan::reconcile::ahead::ReportedAhead;
use crate::plan::reconcile::dropped::DroppedStatuses;
use crate::plan::reconcile::events::Reported;
use crate::plan::reconcile::lasting::LASTS;
use crate::plan::reconcile::look::{GROUP_READ, Looks, PODS_READ};
use crate::plan::reconcile::overwritten::Overwritten;
use crate::plan::reconcile::pauses::pause;
use crate::plan::reconcile::pod_events::ReportedPods;
use crate::plan::reconcile::pod_group_memory::{PodGroupMemory, writes_of};
use crate::plan::reconcile::probes::{GivenUpUntil, IncompleteSince, MissingPodsProbe, Since, SurgeProbe};
use crate::plan::reconcile::recovery_events::ReportedRecoveries;
use crate::plan::reconcile::recovery_memory::{LOSSES_READ, RecoveryMemory};
use crate::plan::reconcile::refused_status::RefusedStatus;
use crate::plan::reconcile::refusing::Refusing;
use crate::plan::reconcile::rollout_events::ReportedRollouts;
use crate::plan::reconcile::rounds::Rounds;
use crate::plan::reconcile::scales::ElasticMemory;
use crate::plan::reconcile::timing::ReleaseTimer;
use crate::plan::reconcile::uptime::Uptime;
use crate::plan::recovery::Tally;
use crate::plan::recovery::entry::Phase;
use crate::plan::rollout::Rollouts;
use crate::plan::view::{AllSucceeded, GroupPods, GroupView, HeldPod, PodRef, RoleView, Snapshot};

/// A failed write.
#[derive(Debug)]
struct Retry {
    failures: u32,
    at: Uptime,
    /// The answer, empty if not known.
    why: Arc<str>,
}

/// The memory of the loop on one group.
#[expect(clippy::struct_excessive_bools, reason = "independent facts, not states of one machine")]
#[derive(Debug)]
pub(in crate::plan) struct Memory {
    pub(in crate::plan) last_pass: Option<Uptime>,
    /// The uids of objects with a write in flight.
    pub(in crate::plan) in_flight: HashSet<Arc<str>>,
    retries: HashMap<Arc<str>, Retry>,
    pub(in crate::plan) pod_groups: PodGroupMemory,
    pub(in crate::plan) writing: bool,
    pub(in crate::plan) last_write: Option<Uptime>,
    /// The number of pods seen at the last write.
    pub(in crate::plan) written_with: Option<u64>,
    pub(in crate::plan) write_failures: u32,
    /// The last reported refusal of the status.
    pub(in crate::plan) refused_status: RefusedStatus,
    /// Objects whose status does not keep what is written, and which are not written to.
    pub(in crate::plan) dropped: DroppedStatuses,
    /// Writes that another client undoes.
    pub(in crate::plan) overwritten: Overwritten,
    /// The kind of the object that last carried the group.
    pub(in crate::plan) carrier: Option<ObjectKind>,
    /// The uid of that object: its failures do not delay its successor.
    carrier_uid: String,
    /// The ordinals with which releases of held pods began, by uid.
    given: HashMap<Arc<str>, u32>,
    /// The last place labels written on pods, by uid: labels that another client removes are not written again.
    pub(in crate::plan) placed: HashMap<Arc<str>, Vec<Label>>,
    /// Pods to mark after the write in flight.
    pub(in crate::plan) unmarked: HashSet<Arc<str>>,
    pub(in crate::plan) looks: Looks,
    pub(in crate::plan) missing_since: Option<Uptime>,
    /// The number of running pods that were held for the missing group.
    pub(in crate::plan) uncoordinated: u32,
    pub(in crate::plan) verifying: bool,
    pub(in crate::plan) verified_gone: bool,
    progress: Vec<u32>,
    moved: Uptime,
    /// Whether the last pass waited for nothing.
    pub(in crate::plan) rests: bool,
    /// Whether something has moved since the status reported a stall.
    stall_is_over: bool,
    pub(in crate::plan) held: Vec<(HoldReason, u32)>,
    /// Whether the last status reported a stall.
    pub(in crate::plan) stalled: bool,
    /// The last decided number of batches by state.
    pub(in crate::plan) batches: BTreeMap<BatchState, u32>,
    pub(in crate::plan) reported: Reported,
    pub(in crate::plan) reported_ahead: ReportedAhead,
    pub(in crate::plan) reported_pods: ReportedPods,
    pub(in crate::plan) release_timer: ReleaseTimer,
    pub(in crate::plan) reported_rollouts: ReportedRollouts,
    pub(in crate::plan) reported_recoveries: ReportedRecoveries,
    /// Edits of roles that belong together.
    pub(in crate::plan) rounds: Rounds,
    /// When each workload was first seen without its claim, by uid.
    unclaimed: HashMap<Arc<str>, Uptime>,
    rolling: Vec<(u32, u32, u32)>,
    /// When an open rollout last moved.
    rolled: Uptime,
    /// Updated and desired replicas of the roles with an open rollout.
    pub(in crate::plan) updated: BTreeMap<String, (u32, u32)>,
    /// Pods that do not appear, and the reasons.
    pub(in crate::plan) missing_pods: MissingPodsProbe,
    /// Since when batches and replicas lack pods.
    pub(in crate::plan) waits: IncompleteSince,
    /// Since when placed batches wait.
    pub(in crate::plan) placed_waits: Since<PlacedWait>,
    /// Domains in which batches got no node in time.
    pub(in crate::plan) given_up: GivenUpUntil,
    /// Nodes whose kubelets refuse pods of its batches.
    pub(in crate::plan) refusing: Refusing,
    /// The last decided succeeded replicas: their pods may be gone before that is stored.
    pub(in crate::plan) succeeded: AllSucceeded,
    /// Since when roles lack their workloads or labels.
    lacking: BTreeMap<Lacking, Uptime>,
    /// Whether pods are to be placed.
    pub(in crate::plan) needs_room: bool,
    /// Whether batches would be created if the room were known.
    pub(in crate::plan) is_blind: bool,
    pub(in crate::plan) elastic: ElasticMemory,
    /// Replicas beyond the desired ones.
    pub(in crate::plan) surges: SurgeProbe,
    /// Batches that are, or may be, broken.
    pub(in crate::plan) recovery: RecoveryMemory,
    /// The last decided phases of recoveries.
    pub(in crate::plan) recoveries: Vec<Phase>,
    /// The last counts of its batches for the brake on recoveries.
    pub(in crate::plan) tally: Tally,
    /// Whether one of its recoveries waits for other groups.
    pub(in crate::plan) braked: bool,
    /// The number of its batches that look broken and are not recreated for now.
    pub(in crate::plan) paused: u32,
    /// The last decided counts of its segments.
    pub(in crate::plan) segments: SegmentCounts,
}

impl Memory {
    pub(in crate::plan) fn new(now: Uptime) -> Self {
        Self {
            last_pass: None,
            in_flight: HashSet::new(),
            retries: HashMap::new(),
            pod_groups: PodGroupMemory::default(),
            writing: false,
            last_write: None,
            written_with: None,
            write_failures: 0,
            refused_status: RefusedStatus::default(),
            dropped: DroppedStatuses::default(),
            overwritten: Overwritten::default(),
            carrier: None,
            carrier_uid: String::new(),
            given: HashMap::new(),
            placed: HashMap::new(),
            unmarked: HashSet::new(),
            looks: Looks::default(),
            missing_since: None,
            uncoordinated: 0,
            verifying: false,
            verified_gone: false,
            progress: Vec::new(),
            moved: now,
            rests: false,
            stall_is_over: false,
            held: Vec::new(),
            stalled: false,
            batches: BTreeMap::new(),
            reported: Reported::default(),
            reported_ahead: ReportedAhead::default(),
            reported_pods: ReportedPods::default(),
            release_timer: ReleaseTimer::default(),
            reported_rollouts: ReportedRollouts::default(),
            reported_recoveries: ReportedRecoveries::default(),
            rounds: Rounds::default(),
            unclaimed: HashMap::new(),
            rolling: Vec::new(),
            rolled: now,
            updated: BTreeMap::new(),
            missing_pods: MissingPodsProbe::default(),
            waits: IncompleteSince::default(),
            placed_waits: Since::default(),
            given_up: GivenUpUntil::default(),
            refusing: Refusing::default(),
            succeeded: AllSucceeded::new(),
            lacking: BTreeMap::new(),
            needs_room: false,
            is_blind: false,
            elastic: ElasticMemory::default(),
            surges: SurgeProbe::default(),
            recovery: RecoveryMemory::default(),
            recoveries: Vec::new(),
            tally: Tally::default(),
            braked: false,
            paused: 0,
            segments: SegmentCounts::default(),
        }
    }

    /// Returns the number of remembered objects.
    pub(in crate::plan) fn len(&self) -> usize {
        self.recovery.len()
            + self.in_flight.len()
            + self.retries.len()
            + self.pod_groups.len()
            + self.given_up.len()
            + self.refusing.len()
            + self.given.len()
            + self.unclaimed.len()
    }

    /// Clears the last decision: a replica that does not lead reports none.
    pub(in crate::plan) fn decided_nothing(&mut self) {
        self.held.clear();
        self.stalled = false;
        self.uncoordinated = 0;
        (self.needs_room, self.is_blind) = (false, false);
        self.batches.clear();
        self.recoveries.clear();
        self.segments = SegmentCounts::default();
        self.release_timer = ReleaseTimer::default();
    }

    /// Reports whether no write or read is under way.
    pub(in crate::plan) fn is_idle(&self) -> bool {
        let asking =
            self.verifying || self.looks.are_under_way() || self.missing_pods.is_asking() || self.surges.is_asking();
        let asking = asking || self.recovery.is_asking();
        self.in_flight.is_empty() && !self.writing && !asking
    }

    pub(in crate::plan) fn note_presence(&mut self, group: Option<&Group>, now: Uptime) {
        match group {
            Some(group) => {
                self.carrier = Some(group.carrier.kind);
                if self.carrier_uid != group.carrier.uid {
                    self.carrier_uid.clone_from(&group.carrier.uid);
                    self.write_failures = 0;
                }
                self.missing_since = None;
            }
            None => _ = self.missing_since.get_or_insert(now),
        }
    }

    /// Removes the ordinals of pods that are no longer held.
    pub(in crate::plan) fn note_pods(&mut self, pods: &GroupPods) {
        if self.given.is_empty() {
            return;
        }
        let unnumbered = pods.roles().flat_map(|(_, role)| role.unnumbered.values());
        let held: HashSet<_> = unnumbered.filter(|pod| pod.held).map(|pod| &pod.pod.uid).collect();
        self.given.retain(|uid, _| held.contains(uid));
    }

    /// Notes when anything last moved.
    pub(in crate::plan) fn note_progress(&mut self, view: &GroupView, decision: &Decision, now: Uptime) {
        let counts = view.roles.values().flat_map(|role| [role.desired, role.current(), RoleView::ready_pods(role)]);
        let progress: Vec<_> = counts.chain(decision.released.values().copied()).collect();
        if progress != self.progress {
            self.stall_is_over = !self.progress.is_empty();
            self.progress = progress;
            self.moved = now;
        }
    }

    /// Notes since when workloads with an open rollout lack their claim.
    pub(in crate::plan) fn note_unclaimed(&mut self, workloads: &[RolledWorkload], now: Uptime) {
        let unclaimed = workloads.iter().filter(|workload| workload.unclaimed).map(|workload| &workload.uid);
        note_since(&mut self.unclaimed, unclaimed, now);
    }

    /// Returns since when a workload lacks its claim.
    pub(in crate::plan) fn unclaimed_since(&self, workload: &RolledWorkload) -> Option<Uptime> {
        self.unclaimed.get(&workload.uid).copied()
    }

    /// Notes what roles lack of their workloads; returns the entries that are not reported yet, and when they are.
    pub(in crate::plan) fn note_lacking(&mut self, found: Vec<Lacking>, now: Uptime) -> (Vec<Lacking>, Option<Uptime>) {
        let since = |lacks: Lacking| {
            let since = self.lacking.get(&lacks).copied().unwrap_or(now);
            (lacks, since)
        };
        self.lacking = found.into_iter().map(since).collect();
        let young = || self.lacking.iter().filter(|(_, since)| now < **since + LASTS);
        let due = young().map(|(_, since)| *since + LASTS).min();
        (young().map(|(lacks, _)| lacks.clone()).collect(), due)
    }

    /// Notes when an open rollout last moved.
    pub(in crate::plan) fn note_rollouts(&mut self, rollouts: &Rollouts, now: Uptime) {
        let roles = rollouts.roles.values();
        let rolling: Vec<_> = roles.map(|role| (role.partition, role.updated(), role.done())).collect();
        if rolling != self.rolling {
            // The first pass finds no move.
            self.stall_is_over |= !self.rolling.is_empty();
            self.rolling = rolling;
            (self.rolled, self.moved) = (now, now);
        }
        let updated = rollouts.roles.iter().map(|(name, role)| (name.clone(), (role.updated(), role.desired())));
        self.updated = updated.collect();
    }

    /// Returns when the open rollouts count as stuck if nothing moves.
    pub(in crate::plan) fn stuck_at(&self, patience: Duration) -> Uptime {
        self.rolled + patience
    }

    /// Reports whether nothing has moved for `deadline`, or since the status said so (`reported`), which a new process has not
    /// observed itself. A group that waited for nothing in the last pass cannot stall.
    pub(in crate::plan) fn is_stalled(&mut self, deadline: Duration, reported: bool, now: Uptime) -> bool {
        self.stall_is_over &= reported;
        if self.rests {
            self.moved = now;
        }
        now.saturating_sub(self.moved) >= deadline || (reported && !self.stall_is_over)
    }

    /// Returns when the group counts as stalled if nothing moves.
    pub(in crate::plan) fn progress_due(&self, deadline: Duration) -> Option<Uptime> {
        self.moved.checked_add(deadline)
    }

    /// Returns when the status may be written next; `None` for now.
    pub(in crate::plan) fn status_due(&self, every: Duration) -> Option<Uptime> {
        let pause = if self.write_failures == 0 { every } else { every.max(pause(self.write_failures)) };
        self.last_write.map(|last| last + pause)
    }

    /// Returns when a write on the object may be tried again; `None` for now.
    pub(in crate::plan) fn retry_due(&self, uid: &str) -> Option<Uptime> {
        self.retries.get(uid).map(|retry| retry.at)
    }

    /// Returns the uids of all objects whose last write was refused, each with the answer.
    pub(in crate::plan) fn refused(&self) -> BTreeMap<Arc<str>, Arc<str>> {
        self.retries.iter().map(|(uid, retry)| (uid.clone(), retry.why.clone())).collect()
    }

    /// Notes the ordinal of a release under way, for a pod whose controller gives none.
    pub(in crate::plan) fn give(&mut self, pod: &HeldPod) {
        if pod.identity.unnumbered.is_some() || pod.identity.ordinal.is_none() {
            self.given.insert(pod.pod.uid.clone(), pod.ordinal);
        }
    }

    /// Returns the ordinal with which the release of a pod was tried: the pod may have it already, even if the watch does not
    /// show it.
    pub(in crate::plan) fn given(&self, pod: &PodRef) -> Option<u32> {
        self.given.get(&pod.uid).copied()
    }

    /// Ends a live read; returns when to try again if it failed.
    pub(in crate::plan) fn looked(&mut self, at: &'static str, failed: bool, now: Uptime) -> Uptime {
        if at == GROUP_READ {
            self.looks.end_at_group(failed);
        } else {
            self.looks.end_at_pods(failed);
        }
        if failed {
            return self.failed(&at.into(), now);
        }
        self.succeeded(at);
        now
    }

    /// Ends one try of a write; returns when the next pass is due.
    pub(in crate::plan) fn tried(&mut self, id: &Arc<str>, failed: bool, now: Uptime) -> Uptime {
        self.in_flight.remove(id);
        if failed {
            return self.failed(id, now);
        }
        self.succeeded(id);
        now
    }

    pub(in crate::plan) fn succeeded(&mut self, uid: &str) {
        self.retries.remove(uid);
    }

    /// Removes what is remembered of objects that no longer exist.
    pub(in crate::plan) fn forget_gone(&mut self, snapshot: &Snapshot) {
        let owner = snapshot.claims.as_ref().map(|claims| claims.group.carrier.uid.as_str());
        owner.into_iter().for_each(|owner| self.pod_groups.keep_only(owner));
        let others = snapshot.claims.iter().flat_map(|claims| &claims.others).map(|other| other.carrier.uid.as_str());
        self.dropped.keep_only(&others.clone().chain(owner).collect());
        self.recovery.forget_gone(snapshot);
        if !self.placed.is_empty() {
            let present: HashSet<_> = snapshot.pods.iter().map(|pod| &*pod.pod.uid).collect();
            self.placed.retain(|uid, _| present.contains(&**uid));
        }
        if self.retries.is_empty() {
            return;
        }
        let pods = snapshot.pods.iter().map(|pod| &*pod.pod.uid);
        let workloads = snapshot.workloads.iter().map(|workload| &*workload.uid);
        let scaled = snapshot.scaled.iter().map(|workload| &*workload.uid);
        let present: HashSet<_> = pods.chain(workloads).chain(scaled).chain(others).collect();
        let pod_groups = owner.map(writes_of);
        let is_pod_group = |id: &str| pod_groups.as_ref().is_some_and(|begin| id.starts_with(begin));
        self.retries.retain(|id, _| {
            present.contains(&**id) || is_pod_group(id) || [GROUP_READ, PODS_READ, LOSSES_READ].contains(&&**id)
        });
    }

    /// Notes a refused write; returns when to try again.
    pub(in crate::plan) fn failed(&mut self, uid: &Arc<str>, now: Uptime) -> Uptime {
        let retry = self.retries.entry(uid.clone()).or_insert(Retry { failures: 0, at: now, why: Arc::default() });
        retry.failures += 1;
        retry.at = now + pause(retry.failures);
        retry.at
    }

    /// Notes a refused write with its answer; returns when to try again.
    pub(in crate::plan) fn refused_with(&mut self, uid: &Arc<str>, why: &str, now: Uptime) -> Uptime {
        let at = self.failed(uid, now);
        if let Some(retry) = self.retries.get_mut(uid).filter(|retry| *retry.why != *why) {
            retry.why = why.into();
        }
        at
    }
}

/// Notes since when each of these objects is in its state, and removes all others. Most passes find no change.
fn note_since<'a>(
    since: &mut HashMap<Arc<str>, Uptime>,
    uids: impl Iterator<Item = &'a Arc<str>> + Clone,
    now: Uptime,
) {
    let mut present = 0;
    for uid in uids.clone() {
        present += 1;
        if !since.contains_key(uid) {
            since.insert(uid.clone(), now);
        }
    }
    if since.len() > present {
        let present: HashSet<_> = uids.collect();
        since.retain(|uid, _| present.contains(uid));
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
    use crate::plan::reconcile::pod_group_memory::PodGroupId;
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
        let id = |owner: &str| PodGroupId { owner: owner.to_owned(), kind: KUBE_POD_GROUP, name: "pd-c0-0".to_owned() };
        let failed = ["a".into(), "b".into(), id("old").in_flight(), id("new").in_flight()];
        failed.iter().for_each(|uid| _ = memory.failed(uid, Uptime::ZERO));
        [id("old"), id("new")].into_iter().for_each(|id| memory.pod_groups.ensured(id, 4, None));
        memory.forget_gone(&snapshot("new", &["b"]));
        let left = failed.each_ref().map(|uid| memory.retry_due(uid).is_some());
        assert_eq!(left, [false, true, false, true]);
        assert_eq!([id("old"), id("new")].map(|id| memory.pod_groups.members(&id)), [None, Some(4)]);
    }

    #[test]
    fn the_time_in_which_nothing_moves_begins_when_something_is_waited_for() {
        let (mut memory, deadline) = (Memory::new(Uptime::ZERO), Duration::from_secs(600));
        let later = Uptime::ZERO + Duration::from_hours(1);
        memory.rests = true;
        assert!(!memory.is_stalled(deadline, false, later), "nothing was waited for before");
        memory.rests = false;
        assert!(!memory.is_stalled(deadline, false, later + deadline / 2));
        assert!(memory.is_stalled(deadline, false, later + deadline));
    }
}
