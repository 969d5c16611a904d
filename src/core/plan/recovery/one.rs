//! Recovery of one batch: whether it is broken, and its phase.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use crate::api::status::RecoveryState;
use crate::model::moment::Moment;
use crate::model::wording::counted as counted_text;
use crate::model::{Batching, Coordination, Group, Recovery};
use crate::plan::recovery::brake::{Stop, counts_until};
use crate::plan::recovery::entry::{Phase, broken, counted, loss_text, of_batch};
use crate::plan::recovery::{
    BatchId, Blocked, Deletion, Judged, Loss, RecoveryContext, RecoveryPlan, Suspect, Verdict,
};
use crate::plan::view::{GroupView, LastWords, LossKind, PodFacts, ReplicaIs, RoleView, count};

pub(super) struct One<'a> {
    pub(super) group: &'a Group,
    pub(super) view: &'a GroupView,
    pub(super) coordination: &'a Coordination,
    pub(super) batching: &'a Batching,
    pub(super) recovery: &'a Recovery,
    pub(super) batch: u32,
    /// Its committed entry.
    pub(super) known: Option<(Phase, &'a RecoveryState)>,
    /// Whether the status marks it as complete.
    pub(super) was_complete: bool,
    /// Whether no recovery begins now.
    pub(super) rests: bool,
    /// Whether a rollout of one of its roles is open.
    pub(super) rolls: bool,
    pub(super) context: RecoveryContext<'a>,
}

impl One<'_> {
    /// Decides; returns whether the batch is to be marked as complete.
    pub(super) fn decide(&self, plan: &mut RecoveryPlan) -> bool {
        match self.known {
            None => self.look(None, plan),
            Some((Phase::Complete, entry)) => self.look(Some(entry), plan),
            // All its pods have room by now.
            Some((Phase::Waiting, entry)) if entry.reason == LossKind::NoRoom.as_str() && !self.moves() => {
                plan.entries.extend(self.still_counts(&given_up(entry)));
                self.is_all(ReplicaIs::Ready)
            }
            Some((Phase::Waiting, entry)) => self.wait(entry, plan),
            Some((Phase::Recreating, entry)) => self.recreate(entry, plan),
            Some((Phase::Releasing, entry)) => {
                plan.entries.push(self.completed(entry));
                self.is_all(ReplicaIs::Ready)
            }
            Some((Phase::Exhausted, entry)) => {
                if self.group.carrier.is_resumed_since(entry.since.as_deref()) {
                    return self.wait(&resumed(entry), plan);
                }
                if entry.generation == self.group.carrier.generation {
                    plan.entries.push(self.completed(entry));
                }
                self.is_all(ReplicaIs::Ready)
            }
        }
    }

    /// Decides on a batch without an open recovery: complete, not yet complete, or broken.
    fn look(&self, entry: Option<&RecoveryState>, plan: &mut RecoveryPlan) -> bool {
        let keep = |plan: &mut RecoveryPlan| plan.entries.extend(entry.and_then(|entry| self.still_counts(entry)));
        if let Some(((loss, words), now)) = self.without_room().zip(self.context.now).filter(|_| !self.rests) {
            self.begin(entry, (&loss, &words), now, plan);
            return false;
        }
        if self.batching.recovers().is_none() {
            keep(plan);
            return false;
        }
        if self.is_all(ReplicaIs::Ready) || !self.was_complete {
            keep(plan);
            return self.is_all(ReplicaIs::Ready);
        }
        // A replica removed by a rollout is not lost: the batch must be complete again first.
        if self.rolls {
            keep(plan);
            return false;
        }
        let Some(loss) = self.loss(plan).filter(|_| !self.rests) else {
            keep(plan);
            return true;
        };
        if self.is_made_anew_elsewhere(&loss) {
            keep(plan);
            return false;
        }
        if plan.brake.is_on() {
            plan.brake.stop = Some(Stop::OneCause);
            keep(plan);
            self.block(plan, "recovery is paused");
            return true;
        }
        if plan.brake.cleared && !loss.unready.is_empty() {
            keep(plan);
            return true;
        }
        plan.broken.insert(self.id());
        let is_this = |judged: &&Judged| judged.id == self.id() && judged.loss == loss;
        let verdict = self.context.verdicts.iter().find(is_this).map(|judged| &judged.verdict);
        match (verdict, self.context.now) {
            (Some(Verdict::NotLost), _) => {
                keep(plan);
                false
            }
            (Some(Verdict::Unknown { pod, node }), Some(now)) if plan.brake.resumed => {
                let kind = LossKind::NotReady;
                let words = LastWords { pod: pod.clone(), node: node.clone(), kind, ..LastWords::default() };
                self.begin(entry, (&loss, &words), now, plan);
                false
            }
            (Some(Verdict::Unknown { pod, node }), _) => {
                keep(plan);
                let name = self.batching.batch_name(self.batch);
                let told = format!(
                    "{name} is not made anew: node {node} of pod {pod} does not answer, and the pod is not deleted"
                );
                plan.unknown.insert(self.id(), told);
                true
            }
            (Some(Verdict::Lost(words)), Some(now)) => {
                self.begin(entry, (&loss, words), now, plan);
                false
            }
            _ => {
                keep(plan);
                let what = format!("replica {} of role {:?}", loss.ordinal, loss.role);
                self.block(plan, &format!("{what} is lost, or looks so"));
                let roles = self.batching.sizes.keys().cloned().collect();
                plan.suspects.push(Suspect { id: self.id(), loss, roles });
                true
            }
        }
    }

    fn moves(&self) -> bool {
        self.context.moves.contains(&self.id())
    }

    /// Returns the first replica without a node of a batch that moves as a whole, and what is known of its pod.
    fn without_room(&self) -> Option<(Loss, LastWords)> {
        // All of it must be able to go again.
        let may_go = self.roles().all(|(_, role, range)| range.is_empty() || role.committed >= Some(range.end));
        let mut roles = self.roles().filter(|_| may_go && self.moves());
        let (role, ordinal, pod) = roles.find_map(|(name, role, mut range)| {
            let unbound = |ordinal: u32| role.replicas.pods_of(ordinal).iter().find(|pod| !pod.held && !pod.scheduled);
            range.find_map(|ordinal| Some((name.to_owned(), ordinal, unbound(ordinal)?)))
        })?;
        let words = LastWords { kind: LossKind::NoRoom, pod: pod.pod.name.to_string(), ..LastWords::default() };
        Some((Loss { role, ordinal, unready: Vec::new() }, words))
    }

    /// Begins the recovery of a broken batch, or leaves the batch as it is after too many.
    fn begin(&self, entry: Option<&RecoveryState>, what: (&Loss, &LastWords), now: Moment, plan: &mut RecoveryPlan) {
        let when = (now, self.group.carrier.generation);
        let found = broken(self.coordination, self.batch, self.recovery, what, entry, when);
        if found.phase == Phase::Exhausted.as_str() {
            plan.entries.push(found);
        } else {
            self.wait(&found, plan);
        }
    }

    /// Continues a recovery that begins after a pause, unless all replicas become ready before.
    fn wait(&self, entry: &RecoveryState, plan: &mut RecoveryPlan) -> bool {
        if self.is_all(ReplicaIs::Ready) {
            plan.entries.push(self.completed(entry));
            return true;
        }
        let Some(now) = self.context.now.filter(|_| !self.rests) else {
            if self.rests {
                // A rollout or a fault comes first: its pods come back one by one.
                plan.entries.extend(self.still_counts(&given_up(entry)));
            } else {
                self.block(plan, &self.is_made_anew(entry));
                plan.entries.push(entry.clone());
            }
            return false;
        };
        // The one cause is over: pods that are not ready get their time anew, as those of batches that do not wait yet.
        let anew = self.recovery.unready_for.filter(|_| plan.brake.cleared && self.may_come_back());
        let anew = anew.map(|time| RecoveryState { not_before: Some(now.after(time).text()), ..entry.clone() });
        let entry = anew.as_ref().unwrap_or(entry);
        let due = entry.not_before.as_deref().and_then(Moment::parse).filter(|due| *due > now);
        if let Some(due) = due {
            plan.due = Some(plan.due.map_or(due, |other| other.min(due)));
            self.block(plan, &format!("{} at {}", self.is_made_anew(entry), due.text()));
            plan.entries.push(entry.clone());
            return false;
        }
        if let Err(until) = plan.brake.begin(self.recovery) {
            self.block(plan, &format!("it waits {until}; {}", self.is_made_anew(entry)));
            plan.entries.push(entry.clone());
            return false;
        }
        let mut attempts = counted(Some(entry), self.recovery, now);
        attempts.push(now.text());
        let youngest = self.released_pods().filter_map(|(_, pod)| pod.created.clone()).max();
        let begun = RecoveryState {
            phase: Phase::Recreating.as_str().to_owned(),
            attempt: count(attempts.len()),
            youngest: youngest.map(|time| time.to_string()),
            not_before: None,
            attempts,
            ..entry.clone()
        };
        self.block(plan, &self.is_made_anew(&begun));
        plan.placed_anew.insert(self.id());
        plan.entries.push(begun);
        false
    }

    /// Deletes the old pods; the new ones wait until all exist and no old one is left.
    fn recreate(&self, entry: &RecoveryState, plan: &mut RecoveryPlan) -> bool {
        plan.entries.push(entry.clone());
        plan.placed_anew.insert(self.id());
        // Old pods are no younger than the youngest at the time of the loss.
        let is_old = |(_, pod): &(u32, &Arc<PodFacts>)| pod.created.as_deref() <= entry.youngest.as_deref();
        let old: Vec<_> = self.released_pods().filter(is_old).collect();
        let leads = |ordinal: u32, role: &str| {
            old.iter().any(|(at, pod)| *at == ordinal && pod.identity.role.as_deref() == Some(role) && pod.leads())
        };
        for (ordinal, pod) in &old {
            let role = pod.identity.role.as_deref().unwrap_or_default();
            if pod.leads() || !leads(*ordinal, role) {
                plan.delete.push(Deletion { pod: (*pod).clone(), with_dependents: pod.leads() });
            }
        }
        let leaving = self.view.leaving.iter().filter(|pod| self.has(&pod.role, pod.ordinal));
        let leaving: Vec<_> = leaving.collect();
        if old.is_empty() && leaving.is_empty() && self.is_all(ReplicaIs::Complete) {
            plan.ready_to_go.insert(self.id());
            return false;
        }
        let roles = self.roles().filter(|(_, _, range)| !range.is_empty()).map(|(name, role, range)| {
            let there = role.replicas.count_in(range.clone(), ReplicaIs::Complete);
            let of_old = old.iter().filter(|(_, pod)| pod.identity.role.as_deref() == Some(name));
            let of_old = of_old.map(|(ordinal, _)| *ordinal).collect::<BTreeSet<_>>();
            format!("{}/{} {name}", there.saturating_sub(count(of_old.len())), range.len())
        });
        let left = match (old.len() + leaving.len(), leaving.first()) {
            (0, _) => String::new(),
            (left, Some(first)) if old.is_empty() => {
                let node = if first.node.is_empty() { String::new() } else { format!(" on node {}", first.node) };
                format!(", {} still there ({}{node})", counted_text(count(left), "old pod"), first.pod.name)
            }
            (left, _) => format!(", {} still there", counted_text(count(left), "old pod")),
        };
        let there = roles.collect::<Vec<_>>().join(" and ");
        self.block(plan, &format!("{}: {there} exist{left}", self.is_made_anew(entry)));
        false
    }

    /// Returns the entry, completed if all replicas are ready again.
    fn completed(&self, entry: &RecoveryState) -> RecoveryState {
        let Some(now) = self.context.now.filter(|_| self.is_all(ReplicaIs::Ready)) else { return entry.clone() };
        RecoveryState {
            phase: Phase::Complete.as_str().to_owned(),
            completed: Some(now.text()),
            not_before: None,
            youngest: None,
            generation: None,
            ..entry.clone()
        }
    }

    /// Returns the time until which its open recovery holds up others.
    pub(super) fn counts_until(&self) -> Option<Moment> {
        self.known.and_then(|(phase, entry)| counts_until(phase, entry, self.context.now))
    }

    /// Reports whether the batch looks broken by pods that are not ready: they exist or are being deleted, and may come back by
    /// themselves, or the batch is being recreated, for as long as that holds up others.
    pub(super) fn looks_broken(&self) -> bool {
        if self.recovery.unready_for.is_none() || self.is_all(ReplicaIs::Ready) {
            return false;
        }
        match self.known.map(|(phase, _)| phase) {
            Some(Phase::Recreating | Phase::Releasing) => self.counts_until().is_some(),
            Some(Phase::Waiting) => self.may_come_back(),
            Some(Phase::Complete | Phase::Exhausted) | None => self.was_complete && self.may_come_back(),
        }
    }

    /// Reports whether the batch may be complete again without a recovery: no replica of it is missing or held for good.
    fn may_come_back(&self) -> bool {
        self.is_all(ReplicaIs::Released) || self.view.leaving.iter().any(|pod| self.has(&pod.role, pod.ordinal))
    }

    /// Returns the entry of a finished recovery while it counts for the limit.
    fn still_counts(&self, entry: &RecoveryState) -> Option<RecoveryState> {
        let now = self.context.now;
        let counts = now.is_none_or(|now| !counted(Some(entry), self.recovery, now).is_empty());
        counts.then(|| entry.clone())
    }

    /// Returns the first replica that is missing or held, else the first that was unready for too long.
    fn loss(&self, plan: &mut RecoveryPlan) -> Option<Loss> {
        let first = |what: ReplicaIs| {
            self.roles().find_map(|(name, role, range)| {
                let fails = |ordinal: &u32| role.replicas.get(*ordinal).is_none_or(|replica| !what.holds(replica));
                let ordinal = (!role.all_in(range.clone(), what)).then(|| range.clone().find(fails)).flatten()?;
                Some((name.to_owned(), role, ordinal))
            })
        };
        if let Some((role, _, ordinal)) = first(ReplicaIs::Released) {
            return Some(Loss { role, ordinal, unready: Vec::new() });
        }
        plan.unready.push((self.id(), self.recovery.unready_for?));
        let (role, seen, ordinal) = first(ReplicaIs::Ready).filter(|_| self.context.unready.contains(&self.id()))?;
        let unready = seen.replicas.pods_of(ordinal).iter().filter(|pod| !pod.ready).map(|pod| pod.pod.clone());
        Some(Loss { role, ordinal, unready: unready.collect() })
    }

    /// Iterates over the released pods of the batch.
    fn released_pods(&self) -> impl Iterator<Item = (u32, &Arc<PodFacts>)> {
        let pods = self.roles().flat_map(|(_, role, range)| {
            range.flat_map(move |ordinal| role.replicas.pods_of(ordinal).iter().map(move |pod| (ordinal, pod)))
        });
        pods.filter(|(_, pod)| !pod.held)
    }

    /// Reports whether the recovery of another batch, which shares the replica, removes it.
    fn is_made_anew_elsewhere(&self, loss: &Loss) -> bool {
        let mut others = self.group.batches_of(&loss.role, loss.ordinal);
        others.any(|batch| {
            let known = of_batch(&self.group.status.recoveries, batch.coordination, batch.index);
            let takes = known.is_some_and(|(phase, _)| matches!(phase, Phase::Recreating | Phase::Releasing));
            takes && batch.coordination.index != self.coordination.index && batch.batching.recovers().is_some()
        })
    }

    fn roles(&self) -> impl Iterator<Item = (&str, &RoleView, Range<u32>)> {
        self.view.ranges(self.batching, self.batch)
    }

    fn is_all(&self, what: ReplicaIs) -> bool {
        self.roles().all(|(_, role, range)| role.all_in(range, what))
    }

    fn has(&self, role: &str, ordinal: u32) -> bool {
        self.roles().any(|(name, _, range)| name == role && range.contains(&ordinal))
    }

    fn id(&self) -> BatchId {
        (self.coordination.index, self.batch)
    }

    fn is_made_anew(&self, entry: &RecoveryState) -> String {
        let RecoveryState { attempt, .. } = entry;
        format!("it is made anew (recovery {attempt} of {}), since {}", self.recovery.limit, loss_text(entry))
    }

    fn block(&self, plan: &mut RecoveryPlan, why: &str) {
        let message = format!("{} is held: {why}", self.batching.batch_name(self.batch));
        plan.blocked.insert(self.id(), Blocked { message });
    }
}

/// Returns the entry of an exhausted recovery that a person resumed: earlier attempts do not count.
fn resumed(entry: &RecoveryState) -> RecoveryState {
    let (phase, attempts) = (Phase::Waiting.as_str().to_owned(), Vec::new());
    RecoveryState { phase, attempts, attempt: 1, generation: None, ..entry.clone() }
}

/// Returns the entry of a recovery that ends before it began: earlier attempts count.
fn given_up(entry: &RecoveryState) -> RecoveryState {
    RecoveryState { phase: Phase::Complete.as_str().to_owned(), not_before: None, ..entry.clone() }
}
