//! One pass over one group: from observation and memory to actions, which the loop carries out.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use crate::api::ObjectKind;
use crate::api::provisioning::REQUESTS;
use crate::model::batch::Batch;
use crate::model::moment::Moment;
use crate::model::{Group, GroupKey, HoldReason, Queued};
use crate::plan::decide::DecisionContext;
use crate::plan::decide::batches::states;
use crate::plan::decide::decision::Decision;
use crate::plan::decide::growing;
use crate::plan::decide::held::Held;
use crate::plan::decide::lacking::{Lacking, lacking};
use crate::plan::decide::placed::{Pin, Placed};
use crate::plan::decide::pod_groups::{self, pod_group_of};
use crate::plan::decide::together::going_with;
use crate::plan::elastic::{ElasticContext, ElasticPlan};
use crate::plan::evaluate::{Evaluation, evaluate};
use crate::plan::placement::Placer;
use crate::plan::placement::loose::CLOSED_FOR;
use crate::plan::provision::{ProvisionContext, ProvisionPlan};
use crate::plan::reconcile::action::{About, Action, Extent, MissingLabels, Question, StatusWrite};
use crate::plan::reconcile::behind::behind;
use crate::plan::reconcile::events::EventNote;
use crate::plan::reconcile::lasting::LASTS;
use crate::plan::reconcile::memory::Memory;
use crate::plan::reconcile::options::{IncompleteBatch, LoopOptions};
use crate::plan::reconcile::pod_events::PodHold;
use crate::plan::reconcile::probes::ProbeStep;
use crate::plan::reconcile::request_events::RequestNews;
use crate::plan::reconcile::subject::Subject;
use crate::plan::reconcile::tries::{Begin, Try};
use crate::plan::reconcile::uptime::Uptime;
use crate::plan::recovery::{BatchId, BrakeContext, RecoveryContext, RecoveryPlan, Tally};
use crate::plan::status::{conditions, has_ours, transition_times};
use crate::plan::view::{GroupView, HeldPod, PodFacts, PodRef, Snapshot, count};

/// The minimum interval between writes of a status that differs only in counts.
const COUNTS_EVERY: Duration = Duration::from_secs(1);

/// The time for which an update waits for held pods before that counts: their turn may come.
const BEHIND_LASTS: Duration = Duration::from_secs(30);

/// The pause before a group that waits for others is looked at again.
pub(in crate::plan) const NEXT_TURN: Duration = Duration::from_millis(10);

/// Reports whether no recovery may begin: the group is being deleted, is faulty or is scaled in, or running pods do not name
/// it, so that their successors might not be seen.
fn no_recovery_begins(group: &Group, view: &GroupView, snapshot: &Snapshot) -> bool {
    let has_adopted = || view.roles.values().any(|role| role.replicas.has_adopted());
    group.deleting || !snapshot.faults.is_empty() || group.status.draining.is_some() || has_adopted()
}

/// Returns the request whose nodes a pod takes.
fn consumed(group: &Group, decision: &Decision, pod: &HeldPod) -> Option<(String, String)> {
    let consumed = &decision.provision.consumed;
    let mut batches = group.batches_of(pod.role(), pod.ordinal).filter(|_| !consumed.is_empty());
    batches.find_map(|batch| consumed.get(&(batch.coordination.index, batch.index)).cloned())
}

pub(in crate::plan) struct Pass<'a> {
    pub(in crate::plan) key: &'a GroupKey,
    pub(in crate::plan) memory: &'a mut Memory,
    pub(in crate::plan) options: LoopOptions,
    pub(in crate::plan) now: Uptime,
    /// The current time, RFC 3339.
    pub(in crate::plan) now_text: &'a str,
    pub(in crate::plan) actions: Vec<Action>,
    /// When the next pass is due without any event.
    pub(in crate::plan) again: Option<Uptime>,
    /// The placement of this pass; `None` if nothing is placed.
    pub(in crate::plan) placer: Option<Placer<'a>>,
    /// How long nobody led before this replica; `None` if that is not known.
    pub(in crate::plan) unled: Option<Duration>,
    /// The time that the release of a batch took, if it has just ended.
    pub(in crate::plan) released: Option<Duration>,
    /// The room that was freed so far, as [`crate::plan::placement::Capacity::freed`]: pods that are given up free some.
    pub(in crate::plan) freed: Option<u64>,
    /// Changes of requests for nodes.
    pub(in crate::plan) requests: Vec<RequestNews>,
    /// The context of recoveries of other groups.
    pub(in crate::plan) brake: BrakeContext,
}

impl Pass<'_> {
    pub(in crate::plan) fn run(&mut self, subject: Subject<'_>) {
        let Memory { decided, recovery, .. } = &mut *self.memory;
        (decided.needs_room, decided.is_blind, decided.uncoordinated, decided.paused) = (false, false, 0, 0);
        (recovery.tally, recovery.braked) = (Tally::default(), false);
        // The verification counts for this pass only, whatever the pass handles: later pods are verified again.
        let verified_gone = self.memory.presence.take_gone();
        let snapshot = match subject {
            Subject::Group(snapshot) => snapshot,
            Subject::PodGroup(snapshot) => return self.tree(snapshot, verified_gone),
        };
        self.decide(snapshot, verified_gone);
        if let Some(placer) = self.placer.take() {
            // A pod whose release is in flight may have gone by now, to its place.
            let stays =
                |pod: &&Arc<PodFacts>| pod.held && !self.memory.tries.is_under_way(&Try::Object(pod.pod.uid.clone()));
            self.freed = placer.finish(|| snapshot.pods.iter().filter(stays).map(|pod| pod.pod.uid.clone()).collect());
        }
    }

    fn decide(&mut self, snapshot: &Snapshot, verified_gone: bool) {
        match &snapshot.claims {
            _ if snapshot.rests => {}
            _ if snapshot.lets_go().is_some() => self.let_go(snapshot),
            Some(claims) => {
                self.group(&claims.group, snapshot);
                for other in &claims.others {
                    self.write_conflicted(other, &claims.group);
                }
            }
            None => self.missing(snapshot, verified_gone),
        }
    }

    /// Plans another pass at this time, if it is to come.
    pub(in crate::plan) fn pass_again(&mut self, at: impl Into<Option<Uptime>>) {
        let at = at.into().filter(|at| *at > self.now);
        self.again = self.again.into_iter().chain(at).min();
    }

    fn group(&mut self, group: &Arc<Group>, snapshot: &Snapshot) {
        let deadline = self.options.progress_deadline;
        let refused = self.memory.tries.refused();
        let observation = self.observe(group, snapshot);
        let stalled = self.memory.movement.is_stalled(deadline, conditions::says_stalled(&group.status), self.now);
        let growing = self.growing(group, &observation.view);
        if observation.view.adopts_pods(group) && !self.memory.looks.show_pods_of(&group.carrier.uid) {
            return self.look_at_pods(&group.carrier.uid);
        }
        let overdue = match self.options.incomplete {
            IncompleteBatch::Wait => Vec::new(),
            IncompleteBatch::ReleaseAfter(time) => self.memory.waits.incomplete.overdue(time, self.now),
        };
        let drained = self.drained(group, &observation.view);
        let refused_by_nodes = self.memory.waits.refusing.avoid(group, &snapshot.refused, self.now);
        let waited = self.memory.waits.placed.overdue(self.options.bind_timeout, self.now);
        let not_yet_told = self.not_yet_told(group);
        let (judged, overdue_recoveries) = self.memory.recovery.known(self.now);
        let recovery = RecoveryContext {
            off: !self.options.allowed.recovery,
            now: self.now_of_recoveries(group),
            rests: no_recovery_begins(group, &observation.view, snapshot),
            verdicts: &judged,
            unready: &overdue_recoveries,
            moves: &self.memory.waits.moves.clone(),
            brake: self.brake,
        };
        let missing = self.memory.owned.missing(&group.carrier.uid);
        let lacking_room = self.memory.waits.no_room.lasting(self.now);
        let present = self.present_requests(group);
        let context = DecisionContext {
            faults: &snapshot.faults,
            missing_layers: &snapshot.missing_layers,
            domain_keys: &snapshot.domain_keys,
            waited: &waited,
            given_up: &self.memory.waits.given_up.now(self.now),
            refusing: &[self.memory.waits.refusing.now(self.now), self.memory.waits.turned_down.now(self.now)].concat(),
            stalled,
            refused: Some(&refused),
            in_flight: Some(self.memory.tries.objects()),
            missing_owned: &missing,
            diagnoses: self.memory.missing_pods.diagnoses(),
            overdue: &overdue,
            growing: Some(&growing),
            surge: self.memory.surges.proven(),
            not_yet_told: Some(&not_yet_told),
            behind: Some(&self.memory.waits.behind.overdue(BEHIND_LASTS, self.now)),
            frees_unknown_roles: self.options.frees_unknown_roles,
            discovery_is_off: self.options.discovery_is_off,
            provision: &self.requests_of(group, snapshot, &lacking_room, present.as_deref()),
            elastic: ElasticContext {
                workloads: &snapshot.scaled,
                drained,
                failures: Some(&self.memory.elastic.failures),
            },
            recovery: &recovery,
        };
        let seen = evaluate(group, observation, context, self.placer.as_mut());
        let Evaluation { view, rollouts, decision, .. } = &seen;
        self.memory.movement.note(&seen, &group.status, self.now);
        self.missing_pods(group, view, decision);
        self.surplus(group, decision);
        self.placed(decision);
        let again = self.memory.waits.behind.note(decision.behind.iter().cloned(), BEHIND_LASTS, self.now);
        self.pass_again(again);
        self.remember_decided(group, &seen);
        self.remember_recoveries(&decision.recovery);
        self.released = self.memory.decided.release_timer.decided(view, decision, self.now);
        let reports = [
            refused_by_nodes,
            self.memory.waits.turned_down.turn_down(group, &decision.placed.turned_down, self.now),
            self.memory.told.group.events(group, &seen, self.memory.surges.is_asking(), self.now),
            self.memory.told.ahead.events(group, view, self.now),
            self.memory.told.rollouts.events(rollouts, &decision.rollout, self.memory.decided.stalled, self.now),
            self.memory.told.recoveries.events(group, &decision.recovery, self.now),
        ];
        let mut events: Vec<_> = decision.placed.moved.iter().map(|moved| EventNote::moved(group, moved)).collect();
        for (report, again) in reports {
            events.extend(report);
            self.pass_again(again);
        }
        events.extend(self.tell_of_requests(group, &decision.provision));
        events.extend(self.memory.status.events(group));
        self.publish(About::Group(group.clone()), events);
        self.tell_pods(group, view, decision);
        // A rollout that pauses waits for nobody, and has not stalled when it goes on; so do the segments after a canary.
        let mut open = decision.rollout.values().filter(|role| !role.state.rests());
        let lacks = !decision.held.is_empty() || !conditions::is_ready(&view.roles);
        let waits = open.next().is_some() || (lacks && !decision.pauses());
        self.memory.movement.rests = !waits;
        self.pass_again(self.memory.movement.stalled_at(deadline).filter(|_| waits));
        self.pass_after_pause(rollouts, &decision.targets);
        self.roll(group, rollouts, decision);
        self.note_late(rollouts);
        self.renew(rollouts, &decision.rollout, view);
        self.scale(group, view, decision, snapshot);
        self.label_places(group, view);
        self.owned(group, view, snapshot, decision);
        self.recreate(decision);
        self.recover(group, &decision.recovery, snapshot);
        self.release_those_that_go(group, view, decision, snapshot);
        self.write_status(group, &seen, snapshot);
    }

    /// Returns what workloads lack since a short time only: files are applied in any order.
    fn not_yet_told(&mut self, group: &Group) -> Vec<Lacking> {
        let lacking = lacking(group);
        let again = self.memory.waits.lacking.note(lacking.iter().cloned(), LASTS, self.now);
        self.pass_again(again);
        let told = self.memory.waits.lacking.overdue(LASTS, self.now);
        lacking.into_iter().filter(|lacks| !told.contains(lacks)).collect()
    }

    /// Remembers the figures of a decision.
    fn remember_decided(&mut self, group: &Arc<Group>, seen: &Evaluation) {
        let Evaluation { view, rollouts, decision, .. } = seen;
        let paused = rollouts.stages.iter().filter(|stage| stage.pause.is_some()).count();
        let decided = &mut self.memory.decided;
        decided.held = decision.held.iter().map(|held| (held.reason, held.count())).collect();
        decided.stalled = conditions::says_stalled(&seen.status);
        decided.rollouts_paused = count(paused + decision.targets.pauses().count());
        decided.batches = states(group, view, decision);
        decided.segments = decision.elastic.as_ref().map(ElasticPlan::counts).unwrap_or_default();
    }

    fn release_those_that_go(
        &mut self,
        group: &Arc<Group>,
        view: &GroupView,
        decision: &Decision,
        snapshot: &Snapshot,
    ) {
        let at_once = decision.release.iter().filter(|release| release.at_once);
        let at_once: Vec<_> = at_once.map(|release| (release, pod_group_of(group, view, &release.pod))).collect();
        let lacking = at_once.iter().filter_map(|(_, of)| of.as_ref()).filter(|of| !self.has_pod_group(group, of));
        let lacking: BTreeSet<BatchId> = lacking.map(|of| (of.batch.coordination.index, of.batch.index)).collect();
        let lacking: BTreeSet<BatchId> = lacking.into_iter().flat_map(|id| going_with(group, view, id)).collect();
        // A batch that goes as a whole waits for the last of its PodGroups, and of those of batches that share replicas with it.
        let waits = |batch: Batch<'_>| {
            batch.batching.placed_in().is_some() && lacking.contains(&(batch.coordination.index, batch.index))
        };
        for (release, pod_group) in at_once {
            let pod = &release.pod;
            // A pod released before its PodGroup would be scheduled without it.
            if pod_group.as_ref().is_some_and(|of| !self.has_pod_group(group, of))
                || !lacking.is_empty() && group.batches_of(pod.role(), pod.ordinal).any(waits)
            {
                continue;
            }
            if !self.memory.looks.show_group_of(pod) {
                self.look_at_group(snapshot);
                continue;
            }
            let labels = MissingLabels::of(group, pod);
            let pod_groups = pod_groups::edits(group, pod, pod_group.as_ref());
            let (pod_ref, pin, queued) = (pod.pod.clone(), release.pin.clone(), pod.queued);
            let consumes = consumed(group, decision, pod);
            if self.begin(Action::Release { pod: pod_ref, labels, pod_groups, pin, queued, consumes }) {
                self.memory.give(pod);
            }
        }
    }

    /// Returns the inputs for requests for nodes.
    fn requests_of<'b>(
        &self,
        group: &Group,
        snapshot: &Snapshot,
        waited: &'b [(BatchId, Duration)],
        present: Option<&'b [(ObjectKind, String)]>,
    ) -> ProvisionContext<'b> {
        ProvisionContext {
            off: !self.options.allowed.provision,
            now: group.requests_nodes().then(|| Moment::parse(self.now_text)).flatten(),
            rests: group.deleting || !snapshot.faults.is_empty(),
            waited,
            missing: &[],
            present,
        }
    }

    /// Returns the objects of requests for nodes of a group that has any; `None` while they are not known.
    fn present_requests(&self, group: &Group) -> Option<Vec<(ObjectKind, String)>> {
        let has_any = !group.status.provisioning.is_empty();
        has_any.then(|| self.memory.owned.present(&group.carrier.uid, &REQUESTS)).flatten()
    }

    /// Notes the changes of requests for nodes; returns their Events.
    fn tell_of_requests(&mut self, group: &Group, plan: &ProvisionPlan) -> Vec<EventNote> {
        let (events, news) = self.memory.told.requests.news(group, Moment::parse(self.now_text));
        self.requests.extend(news);
        self.memory.decided.requests = plan.phases().collect();
        events
    }

    /// Returns the time for recoveries; `None` if no batch is recovered.
    fn now_of_recoveries(&self, group: &Group) -> Option<Moment> {
        let recovers = group.batched().any(|(_, batching)| batching.recovers().is_some());
        let moves = !(self.memory.waits.moves.is_empty() && group.status.recoveries.is_empty());
        (recovers || moves).then(|| Moment::parse(self.now_text)).flatten()
    }

    fn remember_recoveries(&mut self, plan: &RecoveryPlan) {
        self.memory.decided.recoveries = plan.phases().collect();
        self.memory.recovery.tally = plan.brake.own;
        let silent = count(plan.unknown.len());
        self.memory.decided.paused = if plan.brake.is_paused() { plan.brake.own.unready } else { silent };
        self.memory.recovery.braked = plan.brake.stop.is_some();
    }

    pub(in crate::plan) fn publish(&mut self, about: About, events: Vec<EventNote>) {
        if !events.is_empty() {
            self.actions.push(Action::Publish { about, events });
        }
    }

    /// Publishes an Event on the first pod of each batch with the reason why it is held. A surplus is left out while it is
    /// examined.
    fn tell_pods(&mut self, group: &Group, view: &GroupView, decision: &Decision) {
        let asks = self.memory.surges.is_asking();
        let is_known = |held: &&Held| !(asks && held.reason == HoldReason::BeyondDesired);
        let holds = decision.held.iter().filter(is_known).filter_map(|held| PodHold::of(group, view, held));
        self.publish_of_pods(holds);
    }

    pub(in crate::plan) fn publish_of_pods(&mut self, holds: impl Iterator<Item = PodHold>) {
        let (events, again) = self.memory.told.pods.events(holds, self.now);
        self.pass_again(again);
        self.actions.extend(events.into_iter().map(Action::of_pod));
    }

    /// Reads the group live before a pod is released that is younger than the last read: the watched state may be older than
    /// the pod, from a time when another object carried the group or no coordination batched the role.
    pub(in crate::plan) fn look_at_group(&mut self, snapshot: &Snapshot) {
        if self.begin(Action::Read(Question::Group)) {
            self.memory.looks.group = Some(snapshot.seen);
        }
    }

    /// Reads the pods live before running ones count for a group that has never committed anything: they may belong to an
    /// earlier group, and be gone.
    fn look_at_pods(&mut self, carrier: &str) {
        if self.begin(Action::Read(Question::Pods)) {
            self.memory.looks.pods = Some(carrier.to_owned());
        }
    }

    /// Reads why pods do not appear if that has lasted, and notes since when batches lack them.
    fn missing_pods(&mut self, group: &Arc<Group>, view: &GroupView, decision: &Decision) {
        self.memory.missing_pods.note_jobs(view);
        let step = self.memory.missing_pods.note(&decision.missing_pods, self.now);
        let missing = self.memory.missing_pods.with_jobs(&decision.missing_pods);
        self.probe(step, || Question::MissingPods { group: group.clone(), missing });
        if let IncompleteBatch::ReleaseAfter(time) = self.options.incomplete {
            let again = self.memory.waits.incomplete.note(decision.incomplete.iter().cloned(), time, self.now);
            self.pass_again(again);
        }
    }

    /// Reads whether a rollout created the pods beyond the desired replicas.
    fn surplus(&mut self, group: &Arc<Group>, decision: &Decision) {
        let step = self.memory.surges.note(&decision.surplus, self.now);
        self.probe(step, || Question::Surge { group: group.clone(), surplus: decision.surplus.clone() });
    }

    fn probe(&mut self, step: ProbeStep, question: impl FnOnce() -> Question) {
        match step {
            ProbeStep::Rest => {}
            ProbeStep::Wait(until) => self.pass_again(until),
            ProbeStep::Ask => self.actions.push(Action::Read(question())),
        }
    }

    /// Notes since when batches are cut; returns those that wait for the roles that have fewer replicas than they take.
    fn growing(&mut self, group: &Group, view: &GroupView) -> Vec<BatchId> {
        let (settle, now) = (self.options.settle, self.now);
        let cut = growing::cut(group, view);
        let again = self.memory.waits.cut.note(cut.iter().copied(), settle, now);
        self.pass_again(again);
        let settled = self.memory.waits.cut.overdue(settle, now);
        cut.into_iter().filter(|id| settled.binary_search(id).is_err()).collect()
    }

    /// Notes since when placed batches wait, and since when others lack room, and plans another pass if the group waits for its
    /// turn.
    fn placed(&mut self, decision: &Decision) {
        let Placed { waits, given_up, needs_room, is_blind, is_next, moves, .. } = &decision.placed;
        let is_new = *moves != self.memory.waits.moves && !moves.is_empty();
        // A recovery that begins is not placed any more, and is known only when the status is written, which may be later.
        let begins = |id: &BatchId| decision.recovery.placed_anew.contains(id);
        self.memory.waits.moves.retain(begins);
        self.memory.waits.moves.extend(moves);
        (self.memory.decided.needs_room, self.memory.decided.is_blind) = (*needs_room, *is_blind);
        let (after, now) = (self.options.bind_timeout, self.now);
        let again = self.memory.waits.placed.note(waits.iter().copied(), after, now);
        self.pass_again(again.map(|at| at.min(now + CLOSED_FOR / 2)));
        let again = self.memory.waits.given_up.give_up(given_up, after, now);
        self.pass_again(again);
        self.pass_again((*is_next || is_new).then(|| now + NEXT_TURN));
        let ProvisionPlan { lacking, due, .. } = &decision.provision;
        self.memory.waits.no_room.note(lacking.iter().copied(), Duration::ZERO, now);
        self.pass_again(due.map(|due| now + due));
    }

    /// Recreates pods with the wrong stamp, placed pods that got no node, and one that runs in another domain than its batch.
    fn recreate(&mut self, decision: &Decision) {
        let (remakes, recovers) = (self.options.recreate_mis_stamped, self.options.allowed.recovery);
        let is_remade = |(_, is_early): &&(PodRef, bool)| remakes || (recovers && *is_early);
        let mis_stamped = decision.mis_stamped.iter().filter(is_remade).map(|(pod, _)| pod);
        for pod in mis_stamped.chain(&decision.placed.made_again) {
            self.begin(Action::Delete { pod: pod.clone(), extent: Extent::Unscheduled });
        }
        if let Some(pod) = &decision.placed.stray {
            self.begin(Action::Delete { pod: pod.clone(), extent: Extent::Stray });
        }
    }

    /// Writes on an object that another one controls its group.
    fn write_conflicted(&mut self, other: &Arc<Group>, controls: &Group) {
        let status = transition_times::set(conditions::conflicted(other, controls), &other.status, self.now_text);
        let event = self.memory.status.dropped.event(other);
        self.publish(About::Group(other.clone()), event.into_iter().collect());
        if status != other.status && !self.drops_writes(other) {
            let status = Box::new(status);
            self.begin(Action::WriteStatus(StatusWrite::Conflicted { other: other.clone(), status }));
        }
    }

    /// Writes the status: commits at once, and other counts at most once a second. An object that coordinates nothing is
    /// written to only to remove the status of an earlier coordination.
    fn write_status(&mut self, group: &Arc<Group>, seen: &Evaluation, snapshot: &Snapshot) {
        if !group.is_claim() && !has_ours(&group.status) {
            return;
        }
        let mut status = transition_times::set(seen.status.clone(), &group.status, self.now_text);
        // While another status is being written, that one will stand.
        if !self.memory.status.is_under_way && transition_times::says_the_same(&status, &group.status) {
            self.memory.status.overwritten.stands(group);
        }
        if (status == group.status && !self.memory.movement.is_shifted()) || group.deleting {
            return;
        }
        let urgent = seen.needs_commit(group) || transition_times::differs_in_substance(&status, &group.status);
        let allowed = self.memory.status.due(if urgent { Duration::ZERO } else { COUNTS_EVERY });
        let allowed = allowed.max(self.memory.status.overwritten.due(group, &status));
        if self.memory.status.is_under_way || self.drops_writes(group) {
            return;
        }
        if let Some(at) = allowed.filter(|at| *at > self.now) {
            return self.pass_again(at);
        }
        let before = group.status.last_moved_time.as_deref();
        status.last_moved_time = self.memory.movement.stored(before, (self.now, self.now_text));
        self.memory.status.overwritten.writes(group, &status, self.now);
        let is_first = self.memory.status.begin(snapshot.seen, self.now);
        let then = behind(group, &seen.view, !is_first).into_iter().collect();
        let (group, status, reads_first) = (group.clone(), Box::new(status), self.memory.status.is_late());
        self.actions.push(Action::WriteStatus(StatusWrite::Group { group, status, then, reads_first }));
    }

    /// Reports whether the object has not kept a written status, and would not now.
    fn drops_writes(&mut self, group: &Group) -> bool {
        let barred = self.memory.status.dropped.bar(group, self.now);
        self.pass_again(self.memory.status.dropped.again(group).filter(|_| barred));
        barred
    }

    /// Releases a pod whose metadata stays; returns whether that begins now.
    pub(in crate::plan) fn release(&mut self, pod: &PodRef, pin: Pin, queued: Queued) -> bool {
        let (labels, pod_groups, consumes) = (None, Vec::new(), None);
        self.begin(Action::Release { pod: pod.clone(), labels, pod_groups, pin, queued, consumes })
    }

    /// Begins a write or read, unless the last one is under way, or has failed and must wait; returns whether it begins now.
    pub(in crate::plan) fn begin(&mut self, action: Action) -> bool {
        let begin = action.key().map_or(Begin::Now, |key| self.memory.tries.begin(key, self.now));
        match begin {
            Begin::Now => self.actions.push(action),
            Begin::UnderWay => {}
            Begin::At(at) => self.pass_again(at),
        }
        begin == Begin::Now
    }
}
