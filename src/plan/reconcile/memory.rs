//! What the loop remembers of one group between passes. All of it may be lost: the cluster holds the truth.

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

/// A write that failed.
#[derive(Debug)]
struct Retry {
    failures: u32,
    at: Uptime,
    /// What was answered, empty where that is not known.
    why: Arc<str>,
}

/// What the loop remembers of one group.
#[expect(clippy::struct_excessive_bools, reason = "independent facts, not states of one machine")]
#[derive(Debug)]
pub(in crate::plan) struct Memory {
    pub(in crate::plan) last_pass: Option<Uptime>,
    /// Uids of objects with a write on its way.
    pub(in crate::plan) in_flight: HashSet<Arc<str>>,
    retries: HashMap<Arc<str>, Retry>,
    /// PodGroups of its batches.
    pub(in crate::plan) pod_groups: PodGroupMemory,
    pub(in crate::plan) writing: bool,
    pub(in crate::plan) last_write: Option<Uptime>,
    /// How many pods had been seen by then.
    pub(in crate::plan) written_with: Option<u64>,
    pub(in crate::plan) write_failures: u32,
    /// That the status cannot be written, as it was told last.
    pub(in crate::plan) refused_status: RefusedStatus,
    /// Objects that are not written to, since they do not keep it.
    pub(in crate::plan) dropped: DroppedStatuses,
    /// What somebody else takes away again.
    pub(in crate::plan) overwritten: Overwritten,
    /// Kind of the object that carried the group when it was last there.
    pub(in crate::plan) carrier: Option<ObjectKind>,
    /// Unique id of that object: what failed for one does not hold its successor up.
    carrier_uid: String,
    /// Ordinals with which the releases of held pods were begun, by unique id.
    given: HashMap<Arc<str>, u32>,
    /// Labels that pods were last given for their place, by unique id: what somebody takes away again is not fought over.
    pub(in crate::plan) placed: HashMap<Arc<str>, Vec<Label>>,
    /// Pods that are to be marked when the write is over that is on its way.
    pub(in crate::plan) unmarked: HashSet<Arc<str>>,
    pub(in crate::plan) looks: Looks,
    pub(in crate::plan) missing_since: Option<Uptime>,
    /// Pods that run although the group is not there for which they were held.
    pub(in crate::plan) uncoordinated: u32,
    pub(in crate::plan) verifying: bool,
    pub(in crate::plan) verified_gone: bool,
    progress: Vec<u32>,
    moved: Uptime,
    /// Nothing was waited for at the last pass.
    pub(in crate::plan) rests: bool,
    /// Something has moved since the status said that nothing does.
    stall_is_over: bool,
    pub(in crate::plan) held: Vec<(HoldReason, u32)>,
    /// The status said last that nothing moves.
    pub(in crate::plan) stalled: bool,
    /// Batches by state, as they were last decided.
    pub(in crate::plan) batches: BTreeMap<BatchState, u32>,
    pub(in crate::plan) reported: Reported,
    pub(in crate::plan) reported_ahead: ReportedAhead,
    pub(in crate::plan) reported_pods: ReportedPods,
    pub(in crate::plan) release_timer: ReleaseTimer,
    pub(in crate::plan) reported_rollouts: ReportedRollouts,
    pub(in crate::plan) reported_recoveries: ReportedRecoveries,
    /// Which roles were edited together.
    pub(in crate::plan) rounds: Rounds,
    /// When workloads were first seen without their claim, by unique id.
    unclaimed: HashMap<Arc<str>, Uptime>,
    rolling: Vec<(u32, u32, u32)>,
    /// When an open rollout last moved.
    rolled: Uptime,
    /// Updated and desired replicas of the roles with an open rollout.
    pub(in crate::plan) updated: BTreeMap<String, (u32, u32)>,
    /// Pods that do not appear, and why.
    pub(in crate::plan) missing_pods: MissingPodsProbe,
    /// Since when batches and replicas lack pods.
    pub(in crate::plan) waits: IncompleteSince,
    /// Since when batches that have a domain wait.
    pub(in crate::plan) placed_waits: Since<PlacedWait>,
    /// Domains in which batches got no node in time.
    pub(in crate::plan) given_up: GivenUpUntil,
    /// Nodes whose kubelets refuse pods of its batches.
    pub(in crate::plan) refusing: Refusing,
    /// What has succeeded, as it was last decided: its pods may be gone before that is stored.
    pub(in crate::plan) succeeded: AllSucceeded,
    /// Since when roles lack something of their workloads.
    lacking: BTreeMap<Lacking, Uptime>,
    /// There are pods that are to be placed.
    pub(in crate::plan) needs_room: bool,
    /// Batches would be made if it were known what room there is.
    pub(in crate::plan) is_blind: bool,
    /// What is remembered of the scale of its workloads.
    pub(in crate::plan) elastic: ElasticMemory,
    /// Replicas beyond the desired ones.
    pub(in crate::plan) surges: SurgeProbe,
    /// Batches that are, or may be, broken.
    pub(in crate::plan) recovery: RecoveryMemory,
    /// Recoveries by their phase, as they were last decided.
    pub(in crate::plan) recoveries: Vec<Phase>,
    /// Its batches, as recoveries of all groups are counted.
    pub(in crate::plan) tally: Tally,
    /// A recovery of it waits for batches of other groups.
    pub(in crate::plan) braked: bool,
    /// How many of its batches look broken and are not made anew for now.
    pub(in crate::plan) paused: u32,
    /// Segments that are wanted, and how far they are.
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

    /// How many objects something is remembered of.
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

    /// Forgets what was last decided: who does not lead has nothing to say of it.
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

    /// Nothing is on its way.
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

    /// Forgets the ordinals of pods that are held no longer.
    pub(in crate::plan) fn note_pods(&mut self, pods: &GroupPods) {
        if self.given.is_empty() {
            return;
        }
        let unnumbered = pods.roles().flat_map(|(_, role)| role.unnumbered.values());
        let held: HashSet<_> = unnumbered.filter(|pod| pod.held).map(|pod| &pod.pod.uid).collect();
        self.given.retain(|uid, _| held.contains(uid));
    }

    /// Remembers when anything last moved.
    pub(in crate::plan) fn note_progress(&mut self, view: &GroupView, decision: &Decision, now: Uptime) {
        let counts = view.roles.values().flat_map(|role| [role.desired, role.current(), RoleView::ready_pods(role)]);
        let progress: Vec<_> = counts.chain(decision.released.values().copied()).collect();
        if progress != self.progress {
            self.stall_is_over = !self.progress.is_empty();
            self.progress = progress;
            self.moved = now;
        }
    }

    /// Remembers since when workloads with an open rollout are without their claim.
    pub(in crate::plan) fn note_unclaimed(&mut self, workloads: &[RolledWorkload], now: Uptime) {
        let unclaimed = workloads.iter().filter(|workload| workload.unclaimed).map(|workload| &workload.uid);
        note_since(&mut self.unclaimed, unclaimed, now);
    }

    /// Since when a workload is without its claim.
    pub(in crate::plan) fn unclaimed_since(&self, workload: &RolledWorkload) -> Option<Uptime> {
        self.unclaimed.get(&workload.uid).copied()
    }

    /// Remembers since when roles lack something of their workloads; returns what is not told yet, and when it is.
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

    /// Remembers when an open rollout last moved.
    pub(in crate::plan) fn note_rollouts(&mut self, rollouts: &Rollouts, now: Uptime) {
        let roles = rollouts.roles.values();
        let rolling: Vec<_> = roles.map(|role| (role.partition, role.updated(), role.done())).collect();
        if rolling != self.rolling {
            // What the first pass finds is no move.
            self.stall_is_over |= !self.rolling.is_empty();
            self.rolling = rolling;
            (self.rolled, self.moved) = (now, now);
        }
        let updated = rollouts.roles.iter().map(|(name, role)| (name.clone(), (role.updated(), role.desired())));
        self.updated = updated.collect();
    }

    /// When the open rollouts count as stuck if nothing moves.
    pub(in crate::plan) fn stuck_at(&self, patience: Duration) -> Uptime {
        self.rolled + patience
    }

    /// True when nothing has moved for so long, or since the status says so (`reported`): who starts now has not seen for how long.
    /// Nothing can stall where nothing was waited for at the last pass.
    pub(in crate::plan) fn is_stalled(&mut self, deadline: Duration, reported: bool, now: Uptime) -> bool {
        self.stall_is_over &= reported;
        if self.rests {
            self.moved = now;
        }
        now.saturating_sub(self.moved) >= deadline || (reported && !self.stall_is_over)
    }

    /// When the group counts as stalled if nothing moves.
    pub(in crate::plan) fn progress_due(&self, deadline: Duration) -> Option<Uptime> {
        self.moved.checked_add(deadline)
    }

    /// When the status may be written next, `None` for now.
    pub(in crate::plan) fn status_due(&self, every: Duration) -> Option<Uptime> {
        let pause = if self.write_failures == 0 { every } else { every.max(pause(self.write_failures)) };
        self.last_write.map(|last| last + pause)
    }

    /// When the release of a pod may be tried again, `None` for now.
    pub(in crate::plan) fn retry_due(&self, uid: &str) -> Option<Uptime> {
        self.retries.get(uid).map(|retry| retry.at)
    }

    /// Unique ids of the pods, and other objects, whose last write was refused, each with what was answered.
    pub(in crate::plan) fn refused(&self) -> BTreeMap<Arc<str>, Arc<str>> {
        self.retries.iter().map(|(uid, retry)| (uid.clone(), retry.why.clone())).collect()
    }

    /// Notes the ordinal with which the release of a pod is begun that has none from its maker.
    pub(in crate::plan) fn give(&mut self, pod: &HeldPod) {
        if pod.identity.unnumbered.is_some() || pod.identity.ordinal.is_none() {
            self.given.insert(pod.pod.uid.clone(), pod.ordinal);
        }
    }

    /// The ordinal with which the release of a pod was tried: it may have it already, even if it does not look so.
    pub(in crate::plan) fn given(&self, pod: &PodRef) -> Option<u32> {
        self.given.get(&pod.uid).copied()
    }

    /// A live look has ended; returns when it is to be tried again if it failed.
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

    /// One try of a write has ended; returns when there is to be another pass.
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

    /// Forgets what failed for objects that are no longer there.
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

    /// The same with what was answered.
    pub(in crate::plan) fn refused_with(&mut self, uid: &Arc<str>, why: &str, now: Uptime) -> Uptime {
        let at = self.failed(uid, now);
        if let Some(retry) = self.retries.get_mut(uid).filter(|retry| *retry.why != *why) {
            retry.why = why.into();
        }
        at
    }
}

/// Remembers since when each of these is as it is, and forgets the others. Most passes find what the last one found.
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
